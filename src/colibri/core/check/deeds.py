"""Deeds: each under an id of its own, with its text right after it, in a session that is open and
about a task that this session holds; and how much of the work they show.

Memory grows with the tool calls that have begun and not ended, and with the sessions.
"""

from typing import Any

from colibri.core.check.calls import Calls
from colibri.core.check.deed_payloads import Deed, DeedText
from colibri.core.check.sessions import Sessions
from colibri.core.check.tasks import Tasks
from colibri.core.check.unseen import Unseen
from colibri.core.ledger import HUMAN
from colibri.core.report import CALLS, MAX_LISTED, Coverage, Findings
from colibri.core.rows import Row

_ENDS = ("tool.end", "tool.failed")
_SEALING = ("mcp", "run")  # the classes of tools by which an agent can seal its session

Use = tuple[str | None, str | None, str]  # host session, host agent, and the host's id of the call


class _Halves:
    """What a session of a host reported of tool calls without saying what belongs together."""

    def __init__(self) -> None:
        self.begins = self.ends = 0  # without an id
        self.has_ids = False  # whether a begin has one
        self.early = 0  # ends before the first of these: they began before the session did
        self.lone = 0  # ends without a begin, later

    @property
    def unpaired(self) -> int:
        return max(self.begins, self.ends) + self.early + self.lone


class Deeds:
    """Shown the deeds and their texts, in the order of the log.

    A check of one session measures its deeds alone, and was shown no task.
    """

    def __init__(
        self,
        found: Findings,
        calls: Calls,
        sessions: Sessions,
        tasks: Tasks,
        unseen: Unseen,
        only: str | None = None,
    ) -> None:
        # What the rows of `deeds` must hold, in the order of the columns.
        self.rows: list[tuple[Any, ...]] = []
        self._found, self._calls, self._sessions, self._tasks = found, calls, sessions, tasks
        self._unseen, self._only = unseen, only
        self._last: tuple[Row, Deed] | None = None
        self._begun: dict[Use, tuple[int, str | None]] = {}  # where, and the class
        self._newest: dict[str, Use] = {}  # the last that began in each open session
        self._sealing: set[Use] = set()  # that began, sealed a session, and end after that
        self._halves: dict[str | None, _Halves] = {}  # of each session of a host
        self._heard_of: set[str | None] = set()
        self._settings: dict[str, str] = {}
        self._count = self._changes = self._lost = self._unjudged = 0

    def take(self, row: Row, said: Deed) -> None:
        """A deed record."""
        self._last = row, said
        if not self._calls.use_id(row.call):
            self._note(row, "another call or deed has its id")
        if row.session is None and row.agent is not None:
            self._note(row, "an agent without a session")
        self._sessions.deed(row, is_sign=said.late is None)
        if row.task is not None and self._only is None:
            self._tasks.work(row)
        host = (said.host, said.host_session, said.host_agent)
        self.rows.append(
            (
                *(row.seq, row.call, row.session, *host, said.event, said.use),
                *(said.class_, said.exit, said.late),
            )
        )
        if self._only in (None, row.session):
            self._measure(row, said)

    def text(self, row: Row, said: DeedText | None) -> None:
        """A deed.text record."""
        before, self._last = self._last, None
        if before is None or before[0].seq != row.seq - 1 or before[0][3:7] != row[3:7]:
            self._note(row, "it does not follow its deed")
        elif said is not None and any(one.n >= len(said.paths) for one in before[1].files):
            self._note(row, "a file of its deed has no path")

    def seal(self, session: str | None) -> None:
        """The tool call that seals a session ends after it: it counts as ended."""
        self._unseen.seal(session)
        use = self._newest.pop(session or "", None)
        if use is not None and self._begun.get(use, (0, None))[1] in _SEALING:
            del self._begun[use]
            self._sealing.add(use)

    def coverage(self) -> Coverage:
        """How much of the work the deeds show."""
        agents = {id: one.opening["agent"] for id, one in self._sessions.known.items()}
        of_hosts = [id for id, agent in agents.items() if not (agent or "").startswith(HUMAN)]
        begun = [seq for seq, _ in self._begun.values()]
        unseen = self._unseen.found()
        return Coverage(
            deeds=self._count,
            not_ended=tuple(begun[:MAX_LISTED]),
            not_ended_count=len(begun),
            unpaired=sum(one.unpaired for one in self._halves.values()),
            unseen=tuple(unseen[:MAX_LISTED]),
            unseen_count=len(unseen),
            unjudged=self._unjudged,
            settings_changed=self._changes,
            lost=self._lost,
            sessions=len(of_hosts),
            unreported=sum(id not in self._heard_of for id in of_hosts),
        )

    def _measure(self, row: Row, said: Deed) -> None:
        self._count += 1
        self._lost += said.lost
        if row.session is not None:
            self._heard_of.add(row.session)
        if said.settings is not None:
            before = self._settings.get(said.host, said.settings)
            self._changes += before != said.settings
            self._settings[said.host] = said.settings
        self._unjudged += said.is_unjudged
        self._unseen.deed(row, said)
        if said.class_ is not None:
            self._pair(row, said)

    def _pair(self, row: Row, said: Deed) -> None:
        """The report of a tool call's begin or end."""
        halves = self._halves.setdefault(said.host_session, _Halves())
        begins, ends = said.event == "tool.begin", said.event in _ENDS
        if said.use is None:
            halves.begins += begins
            halves.ends += ends
            return
        use = (said.host_session, said.host_agent, said.use)
        if begins:
            halves.early, halves.has_ids = 0, True
            self._begun[use] = row.seq, said.class_
            if row.session is not None:
                self._newest[row.session] = use
        elif use in self._sealing:
            self._sealing.discard(use)
        elif self._begun.pop(use, None) is None and ends:
            halves.early += not halves.has_ids
            halves.lone += halves.has_ids

    def _note(self, row: Row, detail: str) -> None:
        self._found.note(CALLS, row.seq, "bad-pair", detail)
