"""Whether the files of an open database are still the ones that were opened.

SQLite finds the write-ahead log and its shared memory by the name of the database. Two processes
that open the file under two names, or find another `-wal` or `-shm`, do not see each other's locks:
they fork the log. So all three must stay as they were: at their paths, not symbolic links, and
without a second hard link.
"""

import os
from typing import NamedTuple

from colibri.core.errors import Damaged, ResourceError
from colibri.store.sqlite.connection import Connection

_NAMES = ("the database file", "the write-ahead log", "the shared memory of the write-ahead log")
_ENDS = ("", "-wal", "-shm")

# device, inode and number of links of a file; None if it does not exist
Seen = tuple[int, int, int] | None


class Place(NamedTuple):
    """The three files as they were seen."""

    path: str
    wal: str
    shm: str
    seen: tuple[Seen, Seen, Seen]


def look(path: str) -> Place:
    """The files of a database as they are now."""
    wal, shm = f"{path}-wal", f"{path}-shm"
    return Place(path, wal, shm, (_see(path), _see(wal), _see(shm)))


def _see(path: str) -> Seen:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_nlink


def guard_commits(db: Connection, was: Place) -> None:
    """Make every commit of a connection fail with Damaged if its log is no longer ours.

    A process with another log or shared memory cannot see our locks, so our commit would overwrite
    what it acknowledged. Nothing is written to the log before this check.
    """
    logs = was.seen[1:]

    def check() -> bool:
        if (_see(was.wal), _see(was.shm)) != logs:
            raise Damaged(changed(was))
        return False  # continue with the commit

    db.set_commit_hook(check)


def check_place(was: Place) -> None:
    """Damaged if one of the files is no longer the one that was seen."""
    if (_see(was.path), _see(was.wal), _see(was.shm)) != was.seen:
        raise Damaged(changed(was))


def changed(was: Place) -> str:
    """What happened to the files, the worst first; empty if they are unchanged."""
    for name, end, before in zip(_NAMES, _ENDS, was.seen, strict=True):
        now = _see(was.path + end)
        if now != before:
            return f"{name} {_fate(was.path + end, before, now)}"
    return ""


def _fate(path: str, before: Seen, now: Seen) -> str:
    if now is None:
        return "was deleted or moved away"
    if before is None:
        return "was added"
    if now[:2] == before[:2]:
        return "has a different number of names (hard links)"
    if os.path.islink(path):
        return "was moved away, and a symbolic link is in its place"
    return "was replaced"


def require_one_name(path: str) -> None:
    """ResourceError if the database, its log or its shared memory has a second hard link."""
    for end in _ENDS:
        seen = _see(path + end)
        if seen is not None and seen[2] > 1:
            raise ResourceError(
                f"{path}{end} has {seen[2]} names (hard links): a program that opens it by another"
                " name would not see our locks, and the log would fork",
                f"keep one: find DIR -samefile {path}{end} lists them; cp makes a real copy",
            )


def require_no_log_left(given: str, path: str) -> None:
    """ResourceError if `given` is a link to the database at `path`, and a log is next to the link.

    That happens when somebody moves the database away without its write-ahead log.
    """
    log = f"{os.path.abspath(given)}-wal"
    if os.path.islink(given) and f"{path}-wal" != os.path.realpath(log) and os.path.exists(log):
        raise ResourceError(
            f"{path} was moved there without its write-ahead log {log}, which may hold its newest"
            " records",
            f"end every server that still uses it; then move the log to {path}-wal, or, if it"
            " belongs to another database, out of the way",
        )


def is_in_place(was: Place) -> bool:
    """Whether the database file is the one that was opened, whatever happened to the others."""
    return _see(was.path) == was.seen[0]


def has_other_log(was: Place) -> bool:
    """Whether another log or shared memory replaced ours; another process may be writing to it."""
    _, wal, shm = look(was.path).seen
    return wal not in (was.seen[1], None) or shm not in (was.seen[2], None)


def require_own_log(path: str, noted: str) -> None:
    """ResourceError if the log belongs to another database that was at this path before.

    SQLite cannot tell: it would replay that log into this file.
    """
    file, wal, _ = describe(look(path)).split()
    if noted and wal != "-" and noted.split()[1] == wal and noted.split(maxsplit=1)[0] != file:
        raise ResourceError(
            f"{path} was replaced, but the write-ahead log next to it, {path}-wal, belongs to the"
            " previous database",
            "put that one back; or move the log away, which loses the records that only it holds",
        )


def describe(place: Place) -> str:
    """The identities in one line, for the lock file."""
    return " ".join("-" if one is None else f"{one[0]}:{one[1]}" for one in place.seen)
