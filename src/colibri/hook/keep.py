"""Keeping what a host reported: in the ledger; else in the spool; else as a number."""

import os
import time
from functools import partial

from colibri.core import canonical
from colibri.core.errors import ResourceError
from colibri.hook import deed as making
from colibri.hook import gate, spool, words
from colibri.store import deeds
from colibri.store.deeds import Arrival, Deed
from colibri.store.sqlite import SCHEMA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from colibri.config import Config
    from colibri.hook.clock import Clock
    from colibri.hook.report import Report
    from colibri.store.sqlite.identity import Opened

_HEADER, _VERSION = 100, slice(60, 64)  # of a database: its header, and where its version is


def keep(found: "Report", config: "Config", environ: "Mapping[str, str]", clock: "Clock") -> str:
    """Record a report, and what waits in the spool before it; what to answer the host."""
    cwd = found.cwd if found.cwd and os.path.isdir(found.cwd) else config.project
    keeps_text = config.capture == "text"
    deed = making.make(found, config.project, cwd, keeps_text=keeps_text, in_time=clock.left)
    if found.event == "session.start":
        from colibri.hook import settings  # then alone

        deed = deed.but(settings=settings.digest(found.host, config.project, environ))
    arrival = Arrival(
        call=_uuid(_known_by(found, deed)), bind_call=_uuid(b""), at=_utc(), late=None, lost=0
    )
    text: str | None = None
    try:
        text = _record(found, deed, arrival, config, clock)
    except Exception:  # whatever is wrong with the ledger, the deed is kept
        clock.extend()
        if not spool.put(config.db_path, deed, arrival, clock):
            spool.add_lost(config.db_path, 1)
    clock.pending = None
    if text is not None and found.event == "tool.begin":
        return gate.said(found.host, text)
    return words.said(found, text)


def _record(
    found: "Report", deed: Deed, arrival: Arrival, config: "Config", clock: "Clock"
) -> str | None:
    """Append a deed, and before it those that wait; what to say to the agent."""
    _require_hope(config.db_path)
    from colibri.store.sqlite import appending

    opened = appending.open_current(config.db_path, clock)
    try:
        text = _words_for(found, deed, opened, config)
        if text is not None:
            event = "tool.denied" if found.event == "tool.begin" else deed.event
            deed = deed.but(event=event, output=making.digest(text))
        with spool.Waiting(config.db_path, clock, spool.SMALL) as kept:
            lost = spool.lost(config.db_path)
            is_new = _append(opened, kept, deed, arrival.but(lost=lost), config.claim_minutes)
            kept.done()
        if lost:
            spool.add_lost(config.db_path, -lost)
        spool.prepare(config.db_path)
    finally:
        appending.leave(opened)
    return text if is_new else None


def _require_hope(path: str) -> None:
    """ResourceError if a glance tells that nothing can be recorded: SQLite need not be loaded.

    The file is read while nothing in this process has it open. If another Colibri has migrated it
    meanwhile, its header says so at the latest when the log was copied back.
    """
    if not os.path.isfile(path) or not os.access(path, os.W_OK):
        raise ResourceError(f"{path} is not there, or cannot be written", "")
    with open(path, "rb") as file:
        header = file.read(_HEADER)
    if int.from_bytes(header[_VERSION], "big") > SCHEMA:
        raise ResourceError(f"{path} is that of a newer Colibri", "")


def _append(
    opened: "Opened", kept: spool.Waiting, deed: Deed, arrival: Arrival, minutes: float
) -> bool:
    """One transaction, not synced: the next that is covers it. Whether the deed is new."""
    from colibri.store import ledger
    from colibri.store.sqlite.identity import check_same_file
    from colibri.store.sqlite.watch import Change

    db = opened.db
    with Change(db, opened.watch, durable=False):
        chain = ledger.Chain(db, ledger.log_id(db), _nonce)
        lost = kept.record(db, chain, now=arrival.at, lost=arrival.lost, minutes=minutes)
        is_new = deeds.record(db, chain, deed, arrival.but(lost=lost), minutes=minutes) is not None
        check_same_file(opened)
    return is_new


def _words_for(found: "Report", deed: Deed, opened: "Opened", config: "Config") -> str | None:
    """What the hook says to the agent."""
    say = {"session.start": words.brief, "stop": words.reminder}.get(found.event)
    if gate.is_asked(found, config.project):
        say = partial(gate.denial, project=config.project)
    if say is None:
        return None
    with opened.db:  # one state of the ledger
        session = deeds.bound(opened.db, deed, now=_utc(), minutes=config.claim_minutes)
        text = say(opened.db, found, session)
    return text


def _known_by(found: "Report", deed: Deed) -> bytes:
    """What tells an event from all others, where the host does not name it but tells the moment.

    Copilot reports in two dialects if it finds the settings of two hosts: that is one deed.
    """
    if found.moment is None:
        return b""
    given = deed.input["sha256"] if deed.input else None
    known = (found.host, found.session, found.agent, found.event, found.moment, given)
    return repr(known).encode("utf-8", "surrogatepass")


def _uuid(source: bytes) -> str:
    """A uuid 4; of the same source the same, of none a random one."""
    raw = bytearray(canonical.sha256(source)[:16] if source else os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _utc() -> str:
    seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    second = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{second}.{nanoseconds // 1000:06d}Z"


def _nonce(_seq: int) -> bytes:
    return os.urandom(32)
