"""Gates: whether the deeds that a move to DONE names satisfy the rule that it states
(docs/formats.md §6, rule 13).

Of each open session the last edit and the last RUNS commands are kept.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from colibri.core.check.deed_payloads import Deed, DeedText
from colibri.core.check.kinds import Gate, TaskFields
from colibri.core.gates import RUNS, matches
from colibri.core.ledger import HUMAN
from colibri.core.report import TASKS, Findings, Note
from colibri.core.rows import Row

_ENDS = ("tool.end", "tool.failed")

Use = tuple[str | None, str | None, str | None]  # host session, host agent, id of the tool call


class _Run(NamedTuple):
    """A command that has ended."""

    said: Deed
    begun: int | None  # where it began, if that is known
    command: str | None = None
    is_erased: bool = False


class _Work:
    """What hosts reported of a session."""

    def __init__(self) -> None:
        self.edit: int | None = None  # the last
        self.runs: dict[int, _Run] = {}
        self.begun: dict[Use, tuple[int, bool]] = {}  # where, and whether it can be told by that


class Gates:
    """Shown deeds, their texts and the records of tasks, in the order of the log."""

    def __init__(self, found: Findings) -> None:
        self.unread = 0  # moves whose evidence is a command that is erased
        self._found = found
        self._sessions: dict[str, _Work] = {}

    def deed(self, row: Row, said: Deed) -> None:
        """A deed record."""
        if row.session is None or said.class_ not in ("edit", "run"):
            return
        work = self._sessions.setdefault(row.session, _Work())
        if said.class_ == "run":
            _run(work, row.seq, said)
        elif said.event != "tool.denied":
            work.edit = row.seq

    def text(self, row: Row, said: DeedText | None) -> None:
        """The deed.text record of the deed before it."""
        runs = {} if row.session is None else self._work_of(row.session).runs
        if (run := runs.get(row.seq - 1)) is not None:
            command = None if said is None else said.command
            runs[row.seq - 1] = run._replace(command=command, is_erased=said is None)

    def seal(self, session: str | None) -> None:
        """A session ends: no task becomes DONE by its commands any more."""
        self._sessions.pop(session or "", None)

    def task(self, row: Row, said: Any, reasons: Callable[[Row], Sequence[str | None]]) -> None:
        """A task record, and the tasks of the thoughts of its call."""
        gate = said.gated if isinstance(said, TaskFields) else None
        if gate is None:
            return
        moves = said.set.get("status", ("", ""))[1] == "DONE"
        problem = self._problem(row, gate, reasons) if moves else "it is no move to DONE"
        if problem is not None:
            self._found.note(TASKS, row.seq, "wrong-gate", f"task {row.task}: {problem}")

    def notes(self) -> Iterator[Note]:
        """What could not be told."""
        if self.unread:
            yield Note("gate", f"moves to DONE whose command is erased: {self.unread} in all")

    def _problem(
        self, row: Row, gate: Gate, reasons: Callable[[Row], Sequence[str | None]]
    ) -> str | None:
        if gate.is_waived:
            is_person = (row.agent or "").startswith(HUMAN)
            fits = is_person and not gate.evidence and row.task in reasons(row)
            return None if fits else "only a person sets a rule aside, with a reason"
        if not gate.evidence:
            return "it names no command"
        work = self._work_of(row.session or "")
        problems = [_fault(gate, work, seq) for seq in gate.evidence]
        self.unread += any(seq in work.runs and work.runs[seq].is_erased for seq in gate.evidence)
        return next(filter(None, problems), None)

    def _work_of(self, session: str) -> _Work:
        return self._sessions.get(session) or _Work()


def _run(work: _Work, seq: int, said: Deed) -> None:
    use = (said.host_session, said.host_agent, said.use)
    if said.event == "tool.begin":
        work.begun[use] = seq, use not in work.begun and said.late is None
        return
    begun, is_known = work.begun.pop(use, (seq, False))
    if said.event in _ENDS:
        work.runs[seq] = _Run(said, begun if is_known else None)
        if len(work.runs) > RUNS:
            del work.runs[next(iter(work.runs))]


def _fault(gate: Gate, work: _Work, seq: int) -> str | None:
    run, edit = work.runs.get(seq), work.edit
    if run is None:
        return f"record {seq} is none of the last commands of its session"
    if run.said.late is not None or run.said.exit != gate.exit:
        return f"record {seq} came late, or has another exit code"
    if not run.is_erased and not matches(gate.command, run.command or ""):
        return f"record {seq} is another command"
    if gate.after_last_edit and edit is not None and (run.begun is None or run.begun < edit):
        return f"record {seq} did not begin after the last edit, record {edit}"
    return None
