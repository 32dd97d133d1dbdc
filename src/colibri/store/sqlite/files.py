"""The files of a database and their directory: inspecting and creating them.

In this process only SQLite may open the database or its `-shm`: closing another descriptor would
drop SQLite's locks. So this module uses only `os.stat` and `os.path`, one O_EXCL creation of a file
that nobody has open, and one sync of the `-wal`, in which SQLite locks nothing.
"""

import os
import stat

from colibri.core.errors import ResourceError

BEFORE_RESTORE = ".before-restore-"  # plus the time: the name of a database that a restore replaced


def wal(path: str) -> str:
    """The write-ahead log of a database."""
    return f"{path}-wal"


def is_there(path: str) -> bool:
    """Whether the file exists; ResourceError if the path is something else."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(mode):
        what = "a directory" if stat.S_ISDIR(mode) else "not a regular file"
        raise ResourceError(f"{path} is {what}", "set COLIBRI_DB_PATH to a file")
    return True


def size(path: str) -> int:
    """The size of a file; 0 if it does not exist."""
    try:
        return os.path.getsize(path)
    except FileNotFoundError:
        return 0


def create(path: str) -> None:
    """Create an empty database file, mode 0600, if there is none."""
    if os.path.exists(wal(path)):
        raise ResourceError(
            f"{path} is missing, but its write-ahead log {wal(path)} is there",
            "put the database back, or move the log away to start a new one",
        )
    # No process can have this file open yet, so closing the descriptor drops no lock.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def sync_log(path: str) -> None:
    """Make sure that everything read so far survives a power cut.

    Commits that no client was told of are not synced, but readers see them. If there is no log,
    everything is in the file, which was synced before the log was removed.
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
    """Remove the second name that an interrupted restore gave to the database."""
    if not os.path.exists(path) or os.stat(path).st_nlink == 1:
        return
    folder, name = os.path.split(path)
    for other in os.listdir(folder):
        kept = os.path.join(folder, other)
        if other.startswith(name + BEFORE_RESTORE) and os.path.samefile(kept, path):
            os.unlink(kept)


def make_directory(path: str) -> None:
    """Create a directory and its missing parents, mode 0700; existing ones are left alone."""
    if os.path.isdir(path):
        return
    make_directory(os.path.dirname(path))
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:  # another process made it meanwhile
        pass
    sync_directory(os.path.dirname(path))


def sync_directory(path: str) -> None:
    """Make sure that files created or renamed in a directory survive a power cut.

    SQLite does this for the files that it creates, but not for the directory itself.
    """
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
