"""Sends answers, each once, and makes the lanes wait while too much is unread."""

import threading

from colibri.core import canonical
from colibri.server.call import UnknownTool
from colibri.server.stages import UNKNOWN_TOOL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from colibri.core.ledger import Entry
    from colibri.server.answers import Answers
    from colibri.server.audit import Audit
    from colibri.server.call import Call, Load
    from colibri.server.envelope import Outcome
    from colibri.server.journal import Journal
    from colibri.server.transport import Transport

WRITE_BYTES = 64 * 1024  # the default capacity of a pipe
MAX_UNREAD = 32 * 1024 * 1024
# A client begins with a handshake and tools/list. Loading the database and the tools competes with
# the main thread for the interpreter, so it begins after these two, or when a call needs it.
OPENING_ANSWERS = 2


class Outbox:
    """`room` is clear while a lane must not begin a call, because answers pile up unread."""

    def __init__(
        self,
        transport: "Transport",
        answers: "Answers",
        audit: "Audit",
        journal: "Journal",
        load: "Load",
        may_load: threading.Event,
    ) -> None:
        self._transport = transport
        self._answers = answers
        self._audit = audit
        self._journal = journal
        self._load = load
        self._may_load = may_load
        self._sent = 0
        self.room = threading.Event()
        self.room.set()

    def send(self, lines: bytes) -> None:
        """Send whole lines, from any thread; does nothing if there are none."""
        if not lines:
            return
        self._transport.send(lines)
        if self._transport.unsent > MAX_UNREAD:
            self.room.clear()
            self._transport.wake()  # the main thread may have sent all of it just now
        if not self._may_load.is_set():
            self._sent += 1
            if self._sent >= OPENING_ANSWERS:
                self._may_load.set()

    def has_room(self) -> bool:
        """Whether more may be read; if so, also lets the lanes continue."""
        if self._transport.unsent > MAX_UNREAD:
            return False
        if not self.room.is_set():
            self.room.set()
        return True

    def finish(self, done: "Sequence[tuple[Call, Outcome, Entry | None]]") -> None:
        """Answer calls, in order and in one write, since each write wakes the client."""
        lines, size = [], 0
        for call, outcome, entry in done:
            line = self._answer(call, outcome, entry)
            lines.append(line)
            size += len(line)
            if size >= WRITE_BYTES:
                self.send(b"".join(lines))
                lines, size = [], 0
        self.send(b"".join(lines))
        for call, _, _ in done:
            call.request.work = None  # break the cycle, so that memory is freed at once
            self._load.release(call)

    def _answer(self, call: "Call", outcome: "Outcome", entry: "Entry | None") -> bytes:
        if call.sink_entered:
            self._audit.exit(call, outcome)
        if outcome.body is None:
            if isinstance(call.refusal, UnknownTool):
                return self._answers.fail(call.request, UNKNOWN_TOOL, str(call.refusal))
            return b""
        meta = []
        if entry is not None and (receipt := self._journal.receipt(entry)) is not None:
            meta.append(b'"colibri/receipt":' + receipt)
        if call.redacted:
            meta.append(b'"colibri/redacted":' + canonical.dump(call.redacted))
        return self._answers.answer(call.request, meta, *outcome.members())
