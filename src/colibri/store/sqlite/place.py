"""Where the database is: on which kind of file system, and who else can access it.

Uses only `os.stat`: see files.py for what opening the file would do.
"""

import os
from collections.abc import Iterator

from colibri.core.errors import ResourceError

MOUNTS = "/proc/self/mountinfo"
# File systems, by their Linux names, on which locks or shared memory cannot be trusted, because
# other machines or the host of this one have the file too. Every FUSE is added to these.
_REMOTE = frozenset(
    {
        *("9p", "acfs", "afs", "aufs", "beegfs", "ceph", "cifs", "coda", "cvfs", "davfs", "drvfs"),
        *("fakeowner", "fhgfs", "gfs", "gfs2", "glusterfs", "gpfs", "grpcfuse", "kafs", "lustre"),
        *("mfs", "mmfs", "moosefs", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "osxfs", "panfs"),
        *("prl_fs", "pvfs2", "smb2", "smb3", "smbfs", "snfs", "vboxsf", "virtiofs", "vmhgfs"),
        *("vmblock", "wekafs"),
    }
)


def require_local(path: str) -> None:
    """ResourceError if SQLite's write-ahead log is not safe there, as far as Linux tells.

    A database mounted as a single file is not safe either: other processes look for its log in
    another directory.
    """
    kind = file_system(path)
    if kind is not None and (kind in _REMOTE or kind.split(".")[0] in ("fuse", "fuseblk")):
        raise ResourceError(
            f"{path} is on a network, shared or user-space file system ({kind}), where a database"
            " that several processes share can be damaged",
            "set COLIBRI_DB_PATH to a local disk",
        )
    if any(mount[4] == path.replace(" ", "\\040") for mount, _ in _mounts()):
        raise ResourceError(
            f"{path} is mounted as a single file: nobody else would see its write-ahead log",
            "mount its directory instead",
        )


def file_system(path: str) -> str | None:
    """The type of the file system that a path is on, or would be; None if it is unknown.

    It is found by its device number; those of btrfs's subvolumes are not listed.
    """
    device = _device(path)
    return next((kind for mount, kind in _mounts() if mount[2] == device), None)


def _mounts() -> Iterator[tuple[list[str], str]]:
    """The fields of each mount (2 is its device, 4 its path) and its type."""
    try:
        with open(MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:  # not Linux
        return
    for line in lines:
        mount, _, source = line.partition(" - ")
        yield mount.split(" "), source.split(" ")[0]


def _device(path: str) -> str:
    while not os.path.exists(path):
        path = os.path.dirname(path)
    number = os.stat(path).st_dev
    return f"{os.major(number)}:{os.minor(number)}"


def exposure(path: str) -> str:
    """Which files of a database other users can read or write, and what to do; or nothing."""
    path = os.path.realpath(path)
    try:
        way = _enterable_to(os.path.dirname(path))
    except OSError:
        return ""  # the directory is gone; other checks report that
    files = [file for file in (path, f"{path}-wal") if _accessible_to(file) & way]
    return f"other users can open {' and '.join(files)}: chmod 600" if files else ""


def _enterable_to(directory: str) -> int:
    """Who may enter all the directories down to this one: the x bits of group and others."""
    bits = 0o011 & os.stat(directory).st_mode
    above = os.path.dirname(directory)
    return bits if above == directory else bits & _enterable_to(above)


def _accessible_to(file: str) -> int:
    """Who may read or write a file, as if these were the x bits of group and others."""
    try:
        mode = os.stat(file).st_mode
    except FileNotFoundError:
        return 0
    return (mode >> 2) | (mode >> 1)
