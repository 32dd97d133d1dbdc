"""Keeping what a host reported: in the ledger; else in the spool; else as a number."""

import os
import time
from functools import partial

from colibri.core import canonical
from colibri.core.errors import ResourceError
from colibri.core.uuids import uuid4
from colibri.hook import deed as making
from colibri.hook import gate, lost, spool, words
from colibri.store import deeds
from colibri.store.deeds import Arrival, Deed
from colibri.store.sqlite import SCHEMA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from colibri.config import Config
    from colibri.hook.clock import Clock
    from colibri.hook.report import Report
    from colibri.store.home import Opened

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
        record = partial(_record, found, deed, arrival, config, clock)
        text = record() if config.db_url is None else _aside(record, clock)
    except Exception as problem:  # whatever is wrong with the ledger, the deed is kept
        deed = deed.but(unjudged=_unjudged(found, config))
        clock.extend()
        if config.db_url is not None:
            _make_room(config.db_path)
        if not spool.put(config.db_path, deed, arrival, clock):
            clock.count_pending()
        if found.event == "session.start":
            text = words.trouble(found, problem)
    clock.pending = None
    if text is not None and found.event == "tool.begin":
        return gate.said(found.host, text)
    return words.said(found, text)


def _record(
    found: "Report", deed: Deed, arrival: Arrival, config: "Config", clock: "Clock"
) -> str | None:
    """Append a deed, and before it those that wait; what to say to the agent."""
    opened, leave = _open(config, clock)
    try:
        text, unjudged = _words_for(found, deed, opened, config)
        deed = deed.but(unjudged=unjudged)
        if text is not None:
            event = "tool.denied" if found.event == "tool.begin" else deed.event
            deed = deed.but(event=event, output=making.digest(text))
        with spool.Waiting(config.db_path, clock, spool.SMALL) as kept:
            before = lost.count(config)
            left = _append(opened, kept, deed, arrival.but(lost=before), config.claim_minutes)
            clock.pending = None
            kept.done()
        lost.settle(config, before, left or 0)
        if config.db_url is None:
            lost.prepare(config)
    finally:
        leave(opened)
    return text if left is None else None


def _aside(record: "Callable[[], str | None]", clock: "Clock") -> str | None:
    from colibri.hook import aside  # for a server alone

    return aside.run(record, clock)


def _make_room(path: str) -> None:
    """Make the directory of the spool: only a ledger in a file has one already."""
    from colibri.store.sqlite.files import make_directory

    try:
        make_directory(os.path.dirname(path))
    except (OSError, ResourceError):
        pass  # then the deed is lost


def _open(config: "Config", clock: "Clock") -> "tuple[Opened, Callable[..., object]]":
    """The ledger, open for a few records, and how to leave it."""
    if config.db_url is not None:
        from colibri.store.homes import home_of

        home = home_of(*config.home)
        opened = home.open_writer(
            timeout=0.0, monotonic=time.monotonic, sleep=time.sleep, stamp="", new_log=str
        )
        return opened, lambda server: server.close()
    _require_hope(config.db_path)
    from colibri.store.sqlite import appending

    return appending.open_current(config.db_path, clock), appending.leave


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
) -> int | None:
    """One transaction, not synced: the next that is covers it. None if the deed is new, and so
    tells how many are lost; otherwise how many are."""
    db, log = opened.db, opened.log
    with opened.transaction(durable=False):
        chain = opened.chain(log, _nonce)
        deeds.ask(db, deed, arrival.call)
        arrival = arrival.but(at=opened.utc() or arrival.at)
        left = kept.record(db, chain, now=arrival.at, lost=arrival.lost, minutes=minutes)
        arrival = arrival.but(lost=left or kept.missing(db, deed))
        is_new = deeds.record(db, chain, deed, arrival, minutes=minutes) is not None
        opened.check()
    return None if is_new else left


def _words_for(
    found: "Report", deed: Deed, opened: "Opened", config: "Config"
) -> tuple[str | None, str | None]:
    """What the hook says to the agent, and why it cannot say whether an edit is allowed."""
    asked = gate.is_asked(found, config.project)
    say = {"session.start": words.brief, "stop": words.reminder}.get(found.event)
    if not asked and say is None:
        return None, None
    with opened.db:  # one state of the ledger
        session = deeds.bound(opened.db, deed, now=_utc(), minutes=config.claim_minutes)
        if say is not None:
            return say(opened.db, found, session), None
        judged = gate.judge(opened.db, found, session, config.project)
    return judged.denial, judged.unjudged


def _unjudged(found: "Report", config: "Config") -> str | None:
    """Why an edit was not judged by a rule, where the ledger cannot be used."""
    try:
        return gate.unread(config.project) if gate.is_asked(found, config.project) else None
    except Exception:  # the deed matters more
        return "rules"


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
    """Of the same source the same, of none a random one."""
    return uuid4(canonical.sha256(source) if source else os.urandom(16))


def _utc() -> str:
    seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    second = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{second}.{nanoseconds // 1000:06d}Z"


def _nonce(_seq: int) -> bytes:
    return os.urandom(32)
