"""Keeps heads of the ledger in the user's state directory: after a seal, and at the end."""

from colibri.core.errors import ColibriError
from colibri.store import heads, ledger
from colibri.store.faults import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from colibri.config import Config
    from colibri.core.ledger import Head
    from colibri.server.health import Health
    from colibri.server.recorder import Recorder


class Keeper:
    """What was kept of one ledger."""

    def __init__(self, recorder: "Recorder", config: "Config", health: "Health") -> None:
        self._recorder = recorder
        self._state = config.state
        self._place = heads.here(config.ledger_name)
        self._health = health
        self._kept: Head | None = None

    @property
    def is_due(self) -> bool:
        """Whether a session was sealed since a head was kept."""
        return self._recorder.seals

    def keep(self) -> None:
        """Keep the newest synced head outside of the ledger, where no call waits for it."""
        recorder = self._recorder
        recorder.seals, head = False, recorder.synced
        if self._state is None or head is None or head == self._kept:
            return
        db = recorder.opened.db
        try:
            heads.keep(
                self._state,
                recorder.log,
                head,
                at=recorder.utc(),
                place=self._place,
                extends=lambda one: ledger.leaf_at(db, one.seq) == one.leaf,
            )
            self._kept = head
        except errors(OSError, ColibriError) as problem:
            self._health.warn(f"the head was not kept in {self._state}: {problem}")

    def keep_last(self) -> None:
        """The same at the end, if anything was written; what can be synced is synced first."""
        self._recorder.sync()
        self.keep()
