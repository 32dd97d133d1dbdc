"""A database that is open for writing, as store/home.py describes it."""

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

import apsw

from colibri.core.errors import Damaged
from colibri.core.ledger import Head
from colibri.store.home import Patience
from colibri.store.ledger import Chain, leaf_at, log_id
from colibri.store.sqlite.checkpoint import set_patience
from colibri.store.sqlite.connection import Connection
from colibri.store.sqlite.files import sync_log
from colibri.store.sqlite.identity import Place, changed, check_place, has_other_log, is_in_place
from colibri.store.sqlite.watch import Change, Watch


class Opened(NamedTuple):
    """A database open for writing, and its state when it was opened."""

    db: Connection
    path: str
    lock: int  # descriptor of `<db>.lock`, held shared
    version: int
    unclean: bool  # no other process had it open, yet its write-ahead log was not empty
    migrated_from: int | None  # 0 if it was created
    backup: str | None  # made before migrating
    place: Place
    watch: Watch
    uncopied: Sequence[Exception] = ()  # why commits could not copy the log back; appending.py

    @property
    def log(self) -> str:
        return log_id(self.db)

    @property
    def is_far(self) -> bool:
        return False

    @property
    def connections(self) -> int:
        return 0

    def transaction(self, *, durable: bool, **_: object) -> Change:
        """The answer to a client needs nothing more than the commit, and no trip is saved."""
        return Change(self.db, self.watch, durable=durable)

    def chain(
        self,
        log: str,
        nonce: Callable[[int], bytes],
        dump: Callable[[object], bytes] | None = None,
        *,
        known: Head | None = None,
        far: bool = False,
    ) -> Chain:
        """Damaged if an older copy was written over the file, which keeps the inode."""
        chain = Chain(self.db, log, nonce, dump)
        if known is not None and chain.mark() != known:
            self._require(known)
        return chain

    def _require(self, known: Head) -> None:
        if leaf_at(self.db, known.seq) != known.leaf:
            raise Damaged(
                f"the ledger is not the one this server wrote: record {known.seq} is missing or"
                " differs; was an older copy restored? Restart to continue with the file as it is"
            )

    def rest(self) -> None:
        """Nothing is begun ahead."""

    def utc(self) -> str | None:
        return None

    def check(self) -> None:
        """Damaged if the path no longer leads to the database that was opened.

        Called before a commit that a client will learn of; `guard_commits` checks the other files.
        """
        if not is_in_place(self.place):
            raise Damaged(changed(self.place))

    def check_again(self) -> None:
        """Damaged if one of the files is no longer the one that was opened; costs three `lstat`."""
        check_place(self.place)

    def wait_with(self, patience: Patience, failed: Callable[[Exception], None]) -> None:
        set_patience(self.db, patience, failed)

    def sync(self) -> None:
        sync_log(self.path)

    def close(self, *, checkpoint: bool = True) -> str:
        """Close it, once; returns what happened to its files if they were replaced.

        The lock is released last, so that its next holder finds the file at rest. Without a
        checkpoint the `-wal` stays for the next start, which checks it frame by frame: after an I/O
        error it may not read back as it was written. There is no checkpoint either if the file or
        its log was replaced: another process may be writing there.
        """
        place = self.place
        fate = changed(place)
        try:
            if checkpoint and is_in_place(place) and not has_other_log(place):
                # A reader keeps SQLite from emptying the `-wal` on close: like after a crash.
                self.db.set_busy_timeout(0)
                self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            else:
                self.db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        except apsw.Error:
            pass  # committed data is safe in the `-wal`
        finally:
            self.db.close()
            os.close(self.lock)
        return fate
