"""What a handler gets in addition to its arguments; tools/tool.py describes each member."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from colibri.config import Config
    from colibri.core.gates import Gates
    from colibri.core.ledger import Entry
    from colibri.server.call import Call
    from colibri.server.ids import Ids
    from colibri.store.connection import Connection
    from colibri.store.ledger import Chain
    from colibri.store.sessions import Caller


class Work:
    """Made for each run of a handler."""

    __slots__ = ("_chain", "_db", "_gates", "_ids", "call", "config", "now", "pause")

    def __init__(  # noqa: PLR0913 - what each lane adds
        self,
        call: "Call",
        now: str,
        ids: "Ids",
        config: "Config",
        *,
        db: "Connection | None" = None,
        chain: "Chain | None" = None,
        gates: "Gates | None" = None,
        pause: "Callable[[], None]" = lambda: None,
    ) -> None:
        self.call = call
        self.now = now
        self.config = config
        self._ids = ids
        self._chain = chain
        self._db = db
        self._gates = gates
        self.pause = pause

    @property
    def has_db(self) -> bool:
        """Whether this server has a database."""
        return self._db is not None

    @property
    def db(self) -> "Connection":
        if self._db is None:
            raise RuntimeError("this server has no database")
        return self._db

    @property
    def gates(self) -> "Gates":
        assert self._gates is not None, "only a writing call is judged by them"
        return self._gates

    @property
    def rules(self) -> "Gates | None":
        return self._gates

    @property
    def caller(self) -> "Caller":
        assert self.call.caller is not None, "only a call in the ledger has one"
        return self.call.caller

    @property
    def session(self) -> str | None:
        return self.call.session

    @property
    def agent(self) -> str | None:
        return self.call.agent

    @property
    def arguments(self) -> dict[str, object]:
        return self.call.plain or {}

    @property
    def is_redacted(self) -> bool:
        return bool(self.call.redacted)

    def repeat(self, enter: int) -> None:
        self.call.repeats = enter

    def set_verified(self, seq: int) -> None:
        self.call.verified = seq

    @property
    def before(self) -> int | None:
        return None if self.call.entry is None else self.call.entry.seq - 1

    @property
    def next_seq(self) -> int:
        return self._writing().mark().seq + 1

    def new_id(self, purpose: str) -> str:
        return self._ids.draw(purpose, self.next_seq)[:6].hex()

    def record(
        self,
        kind: str,
        payload: dict[str, object],
        *,
        session: str | None = None,
        task: str | None = None,
    ) -> "Entry":
        """Append a record of this call; the call's later records name the same session and task."""
        call = self.call
        call.session = session or call.session
        call.task = task or call.task
        return call.append(self._writing(), kind, payload, self.now)

    def _writing(self) -> "Chain":
        if self._chain is None:
            raise RuntimeError("only a writing call can append records")
        return self._chain
