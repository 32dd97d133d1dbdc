"""Session bundles with a tail: the headers up to the last record that is included after it."""

from collections.abc import Iterator

from tests.vectors.builder import (
    Log,
    Object,
    bundle_of,
    edit_header,
    rehead,
    session_bundle,
    without,
)
from tests.vectors.honest import S, erased, expect, small
from tests.vectors.vector import Vector


def vectors() -> Iterator[Vector]:
    """The session's seal is record 14 and its exit 15, then a ping (16, 17), an erasure (18)."""
    bundle = session_bundle(erased(), S, tail=True)
    yield Vector(
        "session-tail",
        "an erasure after the stretch, and the headers that link it",
        bundle,
        verdict="good",
        expect=expect("session", "yes", erased=[7, 8]),
    )
    log = small()
    log.exit(log.enter("merkle_root", {"session_id": S}, session=S))
    log.erase(log.drafts[7], log.drafts[6])
    yield Vector(
        "session-tail-call",
        "a call that names the session after its seal is in the tail, and not disclosed",
        session_bundle(log, S, tail=True),
        verdict="good",
        expect=expect("session", "yes", erased=[7, 8]),
    )
    log = erased()
    yield Vector(
        "session-tail-head-given",
        "a head beyond the stretch is known, and linked to it",
        bundle,
        verdict="good",
        head=(17, log.make().leaves[16].hex()),
        expect=expect("session", "yes", erased=[7, 8]),
    )
    for name, seq, says in (
        ("session-tail-exit-altered", 15, "the exit of the seal, the last of the stretch"),
        ("session-tail-altered", 16, "a header of the tail"),
    ):
        edited = edit_header(bundle, seq, agent="somebody else")
        yield Vector(name, says, edited, "altered-header", seq)
    edited = session_bundle(broken(), S, tail=True)
    yield Vector("session-tail-broken", "record 17 follows record 15", edited, "broken-link", 17)
    yield Vector(
        "session-tail-incomplete", "17 is left out", without(bundle, 17), "stray-record", 16
    )
    yield Vector("session-tail-too-long", "nothing needs it", longer(), "stray-record", 16)
    there, shown = range(2, 19), [*map(int, bundle["payloads"]), 16]
    edited = bundle_of(log.make(), S, [1, *there], shown)
    yield Vector("session-tail-payload", "of the ping", edited, "stray-payload", 16)


def broken() -> Log:
    log = erased()
    log.drafts[16].header["prev"] = lambda made: made.leaves[14].hex()
    return log


def longer() -> Object:
    """A session without anything after its stretch, and a header after it all the same."""
    bundle, log = session_bundle(small(), S), session_bundle(erased(), S, tail=True)
    bundle["headers"].append(log["headers"][15])
    return rehead(bundle)
