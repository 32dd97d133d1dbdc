"""Calls that a host should have reported, and did not: its hooks were taken out, or failed.

A host that names its tool calls, in its reports and in the calls themselves, should have reported
each call of a host session or session of which it has reported one with an id. Of other hosts only
the end is known: calls after the last deed of a session, if it reported calls of MCP tools before.

Memory grows with the sessions, and with the calls that were not reported.
"""

from typing import Any

from colibri.core.check.deed_payloads import Deed
from colibri.core.check.kinds import Enter, Exit
from colibri.core.ledger import HUMAN
from colibri.core.rows import Row


class _Host:
    """How a session of a host reports."""

    def __init__(self) -> None:
        self.has_ids = False
        self.has_begins = False
        self.lacks_ids = False  # of calls of MCP tools


class _Session:
    """What was reported of an open session by a host without ids."""

    def __init__(self) -> None:
        self.has_ids = False  # in its calls: then those without are not the agent's
        self.begun = 0  # calls of MCP tools that have begun, and whose calls have not ended
        self.tail: list[int] = []  # the calls after its last deed


class Unseen:
    """Shown calls and deeds in the order of the log; of one session alone with `only`."""

    def __init__(self, only: str | None = None) -> None:
        self.is_active = False  # whether there is any deed to go by
        self._only = only
        self._hosts: dict[str | None, _Host] = {}
        self._sessions: dict[str, _Session] = {}
        self._with_ids: set[str | None] = set()  # sessions
        self._begun: set[str] = set()  # ids of tool calls that have not ended
        self._missing: dict[str, tuple[int, bool]] = {}  # enter, and whether it has ended
        self._lost: list[int] = []  # of sealed sessions

    def deed(self, row: Row, said: Deed) -> None:
        """A deed; what is no tool call shows only that there are reports."""
        self.is_active = True
        session = self._sessions.get(row.session or "")
        if session is not None:
            session.tail.clear()
        if said.class_ is None:
            return
        host = self._hosts.setdefault(said.host_session, _Host())
        if said.use is not None:
            self._name(row, said, said.use, host)
        if said.class_ != "mcp":
            return
        host.lacks_ids |= said.use is None
        if row.session is not None:
            session = self._sessions.setdefault(row.session, _Session())
            begins = said.event == "tool.begin"
            session.begun = session.begun + 1 if begins else 0

    def _name(self, row: Row, said: Deed, use: str, host: _Host) -> None:
        """A report of a tool call that has an id."""
        host.has_ids = True
        if row.session is not None:
            self._with_ids.add(row.session)
        self._missing.pop(use, None)
        if said.event == "tool.begin":
            host.has_begins = True
            self._begun.add(use)
        else:
            self._begun.discard(use)

    def enter(self, row: tuple[Any, ...], said: Enter) -> None:
        """A call with an id begins."""
        seq, session, agent, use = row[0], row[4], row[6], said.use
        host = self._hosts.get(said.host_session)
        known = session in self._with_ids or (host is not None and host.has_ids)
        lacks = host is not None and host.lacks_ids
        if use is None or use in self._begun or (agent or "").startswith(HUMAN):
            return
        ours = self._only is None or session in (None, self._only)
        if ours and known and not lacks:
            self._missing[use] = seq, False

    def exit(self, row: tuple[Any, ...], enter: int, begun: Enter, said: Exit) -> None:
        """A call ends."""
        session = row[4]
        if (row[6] or "").startswith(HUMAN):
            return
        if begun.use is None:
            self._end_of_session(session, enter, said)
        elif self._missing.get(begun.use, (0, False))[0] == enter:
            host = self._hosts.get(begun.host_session)
            begins = host is not None and host.has_begins
            seals = said.tool == "merkle_finalize" and said.outcome == "ok"
            ours = self._only in (None, session) and said.outcome != "cancelled"
            if ours and (begins or not seals):  # else its report comes after the seal
                self._missing[begun.use] = enter, True
            else:
                del self._missing[begun.use]
        if begun.use is not None and (found := self._sessions.get(session or "")) is not None:
            found.has_ids = True

    def _end_of_session(self, id: str | None, enter: int, said: Exit) -> None:
        session = self._sessions.get(id or "")
        if session is None or said.outcome == "cancelled":
            return
        if session.begun:
            session.begun -= 1
        else:
            session.tail.append(enter)

    def seal(self, id: str | None) -> None:
        """A session ends; the call that seals it is reported later."""
        session = self._sessions.pop(id or "", None)
        if session is not None and not session.has_ids:
            self._lost += session.tail

    def found(self) -> list[int]:
        """Where the calls were entered."""
        ended = [enter for enter, has_ended in self._missing.values() if has_ended]
        tails = [one.tail for one in self._sessions.values() if not one.has_ids]
        return sorted([*self._lost, *ended, *(seq for tail in tails for seq in tail)])
