"""The files of a database and their directory: what is there, and making what is not.

Nothing in this process may open the database or its `-shm` but SQLite: closing such a descriptor
drops SQLite's locks. So here are `os.stat` and `os.path` only, one O_EXCL creation of a file that
nobody has, and one sync of the `-wal`, in which SQLite locks nothing.
"""

import os
import stat

from colibri.core.errors import ResourceError

BEFORE_RESTORE = ".before-restore-"  # and the time: what a restore calls the database it replaces


def wal(path: str) -> str:
    """The write-ahead log of a database."""
    return f"{path}-wal"


def is_there(path: str) -> bool:
    """Whether there is a file; ResourceError if there is something else."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(mode):
        what = "a directory" if stat.S_ISDIR(mode) else "not a regular file"
        raise ResourceError(f"{path} is {what}", "set COLIBRI_DB_PATH to a file")
    return True


def size(path: str) -> int:
    """Of a file; 0 if there is none."""
    try:
        return os.path.getsize(path)
    except FileNotFoundError:
        return 0


def create(path: str) -> None:
    """Make an empty database, 0600, where there is none."""
    if os.path.exists(wal(path)):
        raise ResourceError(
            f"{path} is missing, but its write-ahead log {wal(path)} is there",
            "put the database back, or move the log away to start a new one",
        )
    # Nobody can have this file open yet, so closing the descriptor drops no lock.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def sync_log(path: str) -> None:
    """Make sure that all that was read so far is there after a power cut.

    A commit of records that nobody was told of is not synced, and readers see it all the same.
    Without a log everything is in the file, and was synced before the log went.
    """
    try:
        log = os.open(wal(os.path.realpath(path)), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        os.fsync(log)
    finally:
        os.close(log)


def drop_second_name(path: str) -> None:
    """Undo what a restore left that was interrupted: the database has its later name already."""
    if not os.path.exists(path) or os.stat(path).st_nlink == 1:
        return
    folder, name = os.path.split(path)
    for other in os.listdir(folder):
        kept = os.path.join(folder, other)
        if other.startswith(name + BEFORE_RESTORE) and os.path.samefile(kept, path):
            os.unlink(kept)


def make_directory(path: str) -> None:
    """With mode 0700, and what is missing above it too; what exists is left alone."""
    if os.path.isdir(path):
        return
    make_directory(os.path.dirname(path))
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:  # another process made it meanwhile
        pass
    sync_directory(os.path.dirname(path))


def sync_directory(path: str) -> None:
    """Make sure that what was made or renamed in a directory is so after a power cut.

    SQLite does this for the files that it makes, but not for the directory they are in.
    """
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
