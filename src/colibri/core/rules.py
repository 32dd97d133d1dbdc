"""Rules: the replays of tasks and sessions, as a chain check shows them its records."""

from collections.abc import Mapping
from typing import Any

from colibri.core import replay, trail
from colibri.core.record import Record

Finding = tuple[replay.What | trail.What, str]


class Rules:
    """Fed the records that are neither a call's enter nor its exit, in the order of the log.

    A check of one session looks at no task, and one of tasks at no session. Once records are gone
    of which nobody knows what they were about, the rules are blind.
    """

    def __init__(self, *, session: str | None = None, only_tasks: bool = False) -> None:
        self.tasks = replay.Replay(blind=session is not None)
        self.sessions = trail.Trail(only=session, blind=only_tasks)
        self.blind = False

    def feed(self, record: Record, payload: Mapping[str, Any] | None) -> list[Finding]:
        """Take a record, without its payload if that is erased."""
        found: list[Finding] = []
        if record.task is not None or record.kind in ("task", "task.text"):
            found += self.tasks.feed(record, payload)
        if record.kind in trail.KINDS:
            found += self.sessions.feed(record, payload)
        return found

    def take(self, row: tuple[Any, ...]) -> bool:
        """Take a record, as rows.Row has it, whose payload plainly says what it must, if it does.

        Whether it does; otherwise it is left to `feed`.
        """
        seq, at, kind, call, session, task, _, _, _, body, leaf, _ = row
        if kind == "thought":
            taken = self.sessions.think(seq, leaf, session, task, body)
            if taken and task is not None:
                self.tasks.witness(task)
            return taken
        if kind == "task":
            return self.tasks.step(at, call, task, body)
        return kind == "session.seal" and self.sessions.seal(seq, at, session, body)

    def lose(self, record: Record) -> None:
        """The payload of a record cannot be read."""
        self.tasks.lose(record)
        self.sessions.lose(record)
        if record.kind in ("task", "task.text") and record.task is None:
            self.go_blind()

    def go_blind(self) -> None:
        """Records are gone."""
        self.blind = self.tasks.blind = self.sessions.blind = True
