"""One attempt at a round of writing calls."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import deque

    from colibri.core.ledger import Entry
    from colibri.server.call import Call
    from colibri.server.envelope import Outcome


class Attempt:
    """One attempt at a round: the calls left, those started and those done."""

    __slots__ = ("calls", "done", "savepoints", "started")

    def __init__(self, calls: "deque[Call]", *, savepoints: bool) -> None:
        self.calls = calls
        self.savepoints = savepoints
        self.started: list[Call] = []
        self.done: list[tuple[Call, Outcome, Entry]] = []

    def in_savepoints(self) -> "Attempt":
        """The same calls, now in savepoints; forgets what their next records would have named."""
        for call in self.started:
            call.reset_names()
        self.calls.extendleft(reversed(self.started))
        return Attempt(self.calls, savepoints=True)
