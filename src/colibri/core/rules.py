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

    def take_plain_thought(
        self, seq: int, leaf: bytes, session: str | None, task: str | None, body: bytes
    ) -> bool:
        """The same for a thought that is as it must be; False, and nothing is taken, if it may
        not be, or if not everything is judged."""
        if self.tasks.blind or not self.sessions.take_plain_thought(seq, leaf, session, body):
            return False
        if task is not None and task not in self.tasks.lost:
            self.tasks.witness(task)
        return True

    def lose(self, record: Record) -> None:
        """The payload of a record cannot be read."""
        self.tasks.lose(record)
        self.sessions.lose(record)
        if record.kind in ("task", "task.text") and record.task is None:
            self.go_blind()

    def go_blind(self) -> None:
        """Records are gone."""
        self.blind = self.tasks.blind = self.sessions.blind = True
