"""What several tools share: finding the caller's session, and handling a call sent twice."""

from functools import partial
from typing import Annotated

from msgspec import Meta

from colibri.store import claims, keys, sessions
from colibri.store.connection import Connection
from colibri.store.keys import First, Key
from colibri.store.sessions import Session
from colibri.tools.text import AgentId, CallKey, SessionId
from colibri.tools.tool import Read, Work

SessionOf = Annotated[SessionId | None, Meta(description="your session, if you have several")]
AgentOf = Annotated[AgentId | None, Meta(description="your name, if not your session's")]
KeyOf = Annotated[CallKey | None, Meta(description="send it again with the same key: done once")]


def working(work: Work) -> Session | None:
    """The open session that the call belongs to, if any.

    ERR_SESSION_NOT_FOUND, ERR_ALREADY_FINALIZED, ERR_CLAIMED if another process has resumed it.
    """
    if work.session is None:
        return None
    return sessions.get_mine(work.db, work.session, work.caller.server)


def required(work: Work, purpose: str) -> Session:
    """The same, for a call that needs a session."""
    session = working(work)
    if session is None:
        raise claims.without_session(purpose)
    return session


def session_reads(db: Connection, session: str | None) -> list[Read]:
    """What finding the caller's session asks."""
    return [] if session is None else [partial(sessions.find, db, session)]


def key_reads(db: Connection, key: Key | None) -> list[Read]:
    """What looking for an earlier call with a key asks."""
    return [] if key is None else [partial(keys.find, db, key, {}, compare=False)]


def made_before(work: Work, key: Key | None) -> int | None:
    """The number of what an earlier call with this key created; this call then only repeats it."""
    if key is None:
        return None
    first = keys.find(work.db, key, work.arguments, compare=not work.is_redacted)
    if first is None:
        return None
    work.repeat(first.enter)
    return first.made


def keep(work: Work, key: Key | None, made: int) -> None:
    """Remember what the first call with a key created."""
    if key is not None and work.before is not None:
        keys.keep(work.db, key, First(work.before + 1, made))
