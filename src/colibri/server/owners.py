"""Whose call it is: the session it names, else the one in which its caller works; and the agent.

That is read in the transaction that enters the call. If the database is far, it finds the owner
itself while it appends the record, and `settle` takes over what it found.
"""

from colibri.server.origin import NOWHERE, recordable
from colibri.store import sessions
from colibri.store.sessions import Caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from colibri.config import Config
    from colibri.server.call import Call
    from colibri.server.origin import Origin
    from colibri.store.connection import Connection


class Owners:
    """The callers of one server."""

    def __init__(self, server: str, db: "Connection", config: "Config") -> None:
        self._server = server
        self._db = db
        self._minutes = config.claim_minutes
        self._person = config.person
        self._host_session = host = recordable(config.host_session)
        self._last_caller: tuple[Origin, Caller] = (NOWHERE, Caller(server, None, host))
        # In the current transaction: where callers work, and calls that were entered far away.
        self._current: dict[Caller, tuple[str, str | None] | None] = {}
        self._entered: list[tuple[Call, Any]] = []
        self._last_session: dict[Caller | None, str | None] = {}

    def begin(self) -> None:
        """A transaction begins: forget what was read in another."""
        self._current.clear()
        self._entered.clear()

    def caller_at(self, origin: "Origin") -> Caller:
        """The caller of this origin; cached, for most calls of a client have the same one."""
        known, caller = self._last_caller
        if known is not origin:
            host_session = recordable(origin.host_session) or self._host_session
            caller = Caller(self._server, recordable(origin.client), host_session)
            self._last_caller = (origin, caller)
        return caller

    def find(self, call: "Call", caller: Caller, now: str) -> None:
        """Assign the call to its owner."""
        session, agent = call.owner
        if self._person is not None:
            if session is None and call.refusal is not None:
                session = self._session_of(self._person)
            call.set_owner(session, self._person)
        elif session is not None:
            if agent is None:
                call.set_owner(session, sessions.agent_of(self._db, session))
        elif call.tool is None or call.tool.session != "opened":
            if caller not in self._current:
                self._current[caller] = sessions.current(
                    self._db, caller, now=now, minutes=self._minutes
                )
            if found := self._current[caller]:
                call.set_owner(found[0], agent or found[1])

    def _session_of(self, person: str) -> str | None:
        """The person's newest session, which a call named whose arguments were refused."""
        found = next(sessions.open_of(self._db, person), None)
        return None if found is None else found.session_id

    # Far away.

    def enter(self, chain: "Any", call: "Call", caller: Caller, body: bytes) -> "Any":
        """Append the enter record, and let the database find the owner."""
        session, agent = call.owner
        opens = call.tool is not None and call.tool.session == "opened"
        entered = chain.enter(
            body,
            call=call.id,
            task=call.task,
            session=session,
            agent=agent,
            seeks=session is not None or not opens,
            caller=caller,
            minutes=self._minutes,
        )
        self._entered.append((call, entered))
        return entered

    def settle(self) -> None:
        """Give calls that were entered so their records and owners; waits for these."""
        for call, entered in self._entered:
            call.entry = entered.entry
            call.set_owner(*entered.owner)
            self.remember(call)
        self._entered.clear()

    def remember(self, call: "Call") -> None:
        """Note in which session a caller was last at work."""
        self._last_session[call.caller] = call.session

    def first_reads(self, calls: "Sequence[Call]") -> "list[Callable[[], object]]":
        """What calls will read first, as far as their arguments and their callers tell."""
        reads: list[Callable[[], object]] = []
        for call in calls:
            if call.refusal is None and call.tool is not None:
                session = call.owner[0] or self._last_session.get(call.caller)
                reads += call.tool.reads(self._db, call.args, session)
        return reads
