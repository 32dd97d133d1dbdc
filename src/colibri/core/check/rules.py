"""Rules: which rule is shown which record."""

from collections.abc import Iterable, Sequence
from typing import Any

from colibri.core.check.calls import Calls, Others
from colibri.core.check.deeds import Deeds
from colibri.core.check.gates import Gates
from colibri.core.check.payload import Payload
from colibri.core.check.rows import Columns, Rows
from colibri.core.check.sessions import Sessions
from colibri.core.check.tasks import Tasks
from colibri.core.check.unseen import Unseen
from colibri.core.report import Coverage, Findings, Note, OpenCall
from colibri.core.rows import Row


class Rules:
    """Shown the records of a log that is sound so far, in its order.

    A check of one session begins at its opening and looks at no task.
    """

    def __init__(
        self, found: Findings, *, session: str | None = None, remember: bool = False
    ) -> None:
        self.sessions = Sessions(found, session)
        self.tasks = Tasks(found, self.sessions)
        unseen = Unseen(session)
        self.calls = Calls(
            *(found, self.tasks, self.sessions, unseen),
            from_start=session is None,
            remember=remember,
        )
        self.deeds = Deeds(found, self.calls, self.sessions, self.tasks, unseen, session)
        self.gates = Gates(found)
        self._session = session
        self._others: Others = {
            "session.open": self._open,
            "session.resume": self._resume,
            "thought": self._thought,
            "session.seal": self._seal,
            "task": self._task,
            "task.text": self._task,
            "erasure": lambda row, said: None,
            "deed": self._deed,
            "deed.text": self._deed_text,
        }

    def take(self, rows: Rows, c: Columns, said: Sequence[Payload | None]) -> None:
        """Some records, with None for a payload that is erased."""
        self.calls.take(rows, c, said, self._others)

    def show(self, row: Row, said: Payload | None) -> None:
        """A record that is neither enter nor exit, by itself."""
        self._others[row.kind](row, said)

    def notes(self) -> Iterable[Note]:
        """What could not be told."""
        return self.gates.notes()

    def finish(self) -> tuple[tuple[OpenCall, ...], Coverage]:
        """The calls that are still open, and how much of the work the deeds show."""
        return self.calls.finish(), self.deeds.coverage()

    def _open(self, row: Row, said: Any) -> None:
        self.calls.change(row, said)
        self.sessions.open(row, said, self.calls.caller(row))
        self._name_task(row)

    def _resume(self, row: Row, said: Any) -> None:
        self.calls.change(row, said)
        self.sessions.resume(row, said, self.calls.caller(row))

    def _thought(self, row: Row, said: Any) -> None:
        self.calls.change(row, said)
        self.sessions.thought(row, said, self.calls.caller)
        self._name_task(row)

    def _seal(self, row: Row, said: Any) -> None:
        self.calls.change(row, said)
        self.sessions.seal(row, said, self.calls.caller)
        self.deeds.seal(row.session)
        self.gates.seal(row.session)

    def _deed(self, row: Row, said: Any) -> None:
        self.deeds.take(row, said)
        self.gates.deed(row, said)

    def _deed_text(self, row: Row, said: Any) -> None:
        self.deeds.text(row, said)
        self.gates.text(row, said)

    def _task(self, row: Row, said: Any) -> None:
        self.calls.change(row, said)
        self.sessions.change(row, self.calls.caller)
        if self._session is None:
            self.tasks.take(row, said, self.calls.reasons)
        if self._session in (None, row.session):
            self.gates.task(row, said, self.calls.reasons)

    def _name_task(self, row: Row) -> None:
        if row.task is not None and self._session is None:
            self.tasks.name(row)
