"""Rules: which rule is shown which record."""

from collections.abc import Sequence
from typing import Any

from colibri.core.check.calls import Calls, Others
from colibri.core.check.deeds import Deeds
from colibri.core.check.payload import Payload
from colibri.core.check.rows import Columns, Rows
from colibri.core.check.sessions import Sessions
from colibri.core.check.tasks import Tasks
from colibri.core.report import Coverage, Findings, OpenCall
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
        self.calls = Calls(
            found, self.tasks, self.sessions, from_start=session is None, remember=remember
        )
        self.deeds = Deeds(found, self.calls, self.sessions, self.tasks, session)
        self._session = session
        self._others: Others = {
            "session.open": self._open,
            "session.resume": self._resume,
            "thought": self._thought,
            "session.seal": self._seal,
            "task": self._task,
            "task.text": self._task,
            "erasure": lambda row, said: None,
            "deed": self.deeds.take,
            "deed.text": self.deeds.text,
        }

    def take(self, rows: Rows, c: Columns, said: Sequence[Payload | None]) -> None:
        """Some records, with None for a payload that is erased."""
        self.calls.take(rows, c, said, self._others)

    def show(self, row: Row, said: Payload | None) -> None:
        """A record that is neither enter nor exit, by itself."""
        self._others[row.kind](row, said)

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

    def _task(self, row: Row, said: Any) -> None:
        self.calls.change(row, said)
        self.sessions.change(row, self.calls.caller)
        if self._session is None:
            self.tasks.take(row, said, self.calls.reasons)

    def _name_task(self, row: Row) -> None:
        if row.task is not None and self._session is None:
            self.tasks.name(row)
