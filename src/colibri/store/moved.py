"""The mark of a file whose ledger was moved: nobody writes to it any more.

It is a row of `meta`: `moving` from before the first record is copied, `moved` from when the copy
was verified. Its value is the new place, as messages show it. Reading the file stays possible.
"""

from typing import NamedTuple

from colibri.core.errors import ResourceError
from colibri.store.connection import Connection

UNFINISHED, FINISHED = "moving", "moved"


class Mark(NamedTuple):
    key: str
    place: str

    @property
    def is_finished(self) -> bool:
        return self.key == FINISHED


def mark_of(db: Connection) -> Mark | None:
    """The mark of a ledger, if it has one."""
    row = db.execute(
        f"SELECT key, value FROM meta WHERE key IN ('{UNFINISHED}', '{FINISHED}')"
    ).fetchone()
    return Mark(*row) if row else None


def set_mark(db: Connection, mark: Mark | None) -> None:
    """Put this mark, or none, in the place of another; inside a transaction of the caller."""
    db.execute(f"DELETE FROM meta WHERE key IN ('{UNFINISHED}', '{FINISHED}')")
    if mark is not None:
        db.execute("INSERT INTO meta (key, value) VALUES (?, ?)", mark)


def require_unmarked(db: Connection, path: str) -> None:
    """ResourceError if the ledger of a file is to be written at another place."""
    mark = mark_of(db)
    if mark is None:
        return
    if mark.is_finished:
        raise ResourceError(
            f"the ledger of {path} was moved to {mark.place}, and is written only there",
            "set COLIBRI_DB_URL and COLIBRI_DB_SCHEMA, which colibri team init prints for each"
            " machine; colibri move-ledger --help says how to go back to the file",
        )
    raise ResourceError(
        f"the ledger of {path} is being moved to {mark.place}, which has not finished",
        "colibri move-ledger --to URL continues; colibri move-ledger --undo stays with the file",
    )
