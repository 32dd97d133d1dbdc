"""Deeds that could not be recorded at once: `<db>-spool`.

It has one JSON line for each deed, with the ids and the time under which it is recorded later.
Whoever writes to it or takes it in holds its lock; it is emptied only after the commit, so a crash
in between takes it in again, and each id is looked up first.
"""

import fcntl
import json
import os
import stat

from colibri.core import canonical
from colibri.hook.hosts import TELL_BEGINS
from colibri.store import deeds
from colibri.store.deeds import Arrival, Deed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from colibri.store.connection import Connection
    from colibri.store.ledger import Chain

LARGEST = 16 * 1024 * 1024  # bytes of the spool
SMALL = 256 * 1024  # what a hook takes in itself; a server takes in all
_FIELDS = frozenset(Deed.__slots__)


def _spool(database: str) -> str:
    return f"{os.path.realpath(database)}-spool"


def size(database: str) -> int:
    """Bytes of deeds that wait; 0 if there are none."""
    try:
        return os.lstat(_spool(database)).st_size
    except OSError:
        return 0


def put(database: str, deed: Deed, arrival: Arrival, patience: "Callable[[int], bool]") -> bool:
    """Keep a deed for later; False if it cannot be kept."""
    fields = {name: getattr(deed, name) for name in Deed.__slots__}
    ids = {"call": arrival.call, "bind_call": arrival.bind_call, "at": arrival.at}
    line = json.dumps({**ids, "deed": fields}).encode() + b"\n"
    try:
        file = open_own(_spool(database), os.O_RDWR | os.O_CREAT | os.O_APPEND)
    except OSError:
        return False
    try:
        return _lock(file, patience) and _append(file, line)
    except OSError:
        return False
    finally:
        os.close(file)


def _append(file: int, line: bytes) -> bool:
    """Add a line, whole or not at all; after one that was cut off it begins a new one."""
    before = os.fstat(file).st_size
    if before + len(line) > LARGEST:
        return False
    if before and os.pread(file, 1, before - 1) != b"\n":
        line = b"\n" + line
    try:
        if os.write(file, line) == len(line):
            return True
    except OSError:
        pass
    os.ftruncate(file, before)
    return False


class Waiting:
    """The deeds that wait, held so that nobody else takes them in; use it as a context manager."""

    def __init__(
        self, database: str, patience: "Callable[[int], bool]", most: int = LARGEST
    ) -> None:
        self._file = -1
        self.lines: list[bytes] = []
        self._is_all = not (waiting := size(database))
        if not 0 < waiting <= most:
            return
        try:
            self._file = open_own(_spool(database), os.O_RDWR)
            if _lock(self._file, patience):
                self.lines = os.pread(self._file, LARGEST, 0).split(b"\n")
                self._is_all = True
        except OSError:
            pass

    def __enter__(self) -> "Waiting":
        return self

    def __exit__(self, *_: object) -> None:
        if self._file >= 0:
            os.close(self._file)

    def record(
        self, db: "Connection", chain: "Chain", *, now: str, lost: int, minutes: float
    ) -> int:
        """Record them all, in order, as late; how many are lost that none of them tells of."""
        for line in filter(None, self.lines):
            try:
                deed, arrival = _read(line, now)
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                lost += 1
                continue
            arrival = arrival.but(lost=lost or self.missing(db, deed))
            if deeds.record(db, chain, deed, arrival, minutes=minutes) is not None:
                lost = 0
        return lost

    def missing(self, db: "Connection", deed: Deed) -> int:
        """1 if the begin of this tool call should have come before it, but was lost without a
        trace: its hook was killed."""
        told = self._is_all and deed.host in TELL_BEGINS
        return int(told and deeds.lacks_begin(db, deed))

    def done(self) -> None:
        """What was recorded is committed: forget it."""
        if self.lines:
            os.ftruncate(self._file, 0)


def _read(line: bytes, now: str) -> tuple[Deed, Arrival]:
    """The deed of a line; ValueError, KeyError or TypeError if it has none that can be recorded."""
    kept = json.loads(line)
    fields = {"unjudged": None, **kept["deed"]}  # which older versions do not have
    if fields.keys() != _FIELDS or not all(map(_fits, fields, fields.values())):
        raise ValueError("not the form of a deed")
    canonical.encode(fields)
    call, bind_call, late = (str(kept[name]) for name in ("call", "bind_call", "at"))
    arrival = Arrival(call=call, bind_call=bind_call, at=now, late=late, lost=0)
    return Deed(**fields), arrival


def _fits(name: str, value: object) -> bool:
    """Whether a member of a deed can have this value."""
    if name in ("files", "paths"):
        return isinstance(value, list)
    if name in ("input", "output", "git"):
        return value is None or isinstance(value, dict)
    if name in ("exit", "duration_ms"):
        return value is None or isinstance(value, int)
    return isinstance(value, str) or (value is None and name not in ("host", "event"))


# Files.


def open_own(path: str, flags: int) -> int:
    """A regular file of our own, under one name; OSError if something else is there."""
    file = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    found = os.fstat(file)
    if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and found.st_nlink == 1:
        return file
    os.close(file)
    raise OSError(f"{path} is not a file of ours")


def _lock(file: int, patience: "Callable[[int], bool]") -> bool:
    tries = 0
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tries += 1
            if not patience(tries):
                return False
        else:
            return True
