"""Files that commands write: whole or not at all, and never over another without being told to.

A link is followed to the file it names, and stays. What we write for people is for its owner alone:
evidence may hold what nobody else should read. A text file of another program is read as it is;
when it is replaced, the new one has its permissions and its owner, and the old is kept beside it.
"""

import os
import stat
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import BinaryIO

from colibri.cli.settings.jsonc import Broken
from colibri.core.errors import Refused, ResourceError

# Ours.


def refuse_existing(path: str, *, force: bool) -> None:
    """ERR_EXISTS, unless it may be replaced; what is no regular file never is."""
    if os.path.exists(path) and not os.path.isfile(path):
        what = "a directory" if os.path.isdir(path) else "not a regular file"
        raise Refused("ERR_EXISTS", f"{path} is {what}", hint="name a file")
    if os.path.exists(path) and not force:
        hint = "name another file, or add --force"
        raise Refused("ERR_EXISTS", f"{path} exists already", hint=hint)


def write(pieces: Iterable[bytes], path: str) -> int:
    """Write pieces into a file, or to stdout for -; how many bytes.

    A file is given its name when it is complete and on the disk.
    """
    if path == "-":
        size = sum(map(sys.stdout.buffer.write, pieces))
        sys.stdout.buffer.flush()
        return size
    path = os.path.realpath(path)
    partial = f"{path}.partial-{os.getpid()}"
    try:
        with _opened(partial, 0o600) as file:
            size = sum(map(file.write, pieces))
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError as problem:
        hint = "is there such a directory, may you write there, and has the disk room?"
        raise ResourceError(f"cannot write {path}: {why(problem)}", hint) from problem
    finally:
        if os.path.exists(partial):
            os.unlink(partial)
    return size


def reason(problem: OSError) -> str:
    """What the system says is wrong, in words: which file, and why."""
    return f"cannot use {problem.filename}: {why(problem)}" if problem.filename else why(problem)


def why(problem: OSError) -> str:
    """The same without the file."""
    return problem.strerror or str(problem)


def _opened(path: str, mode: int) -> BinaryIO:
    """A new file for writing."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    return open(descriptor, "wb")


# Those of other programs.


@dataclass(frozen=True, slots=True)
class Text:
    """What a file held when it was read; `found` is None when there was none."""

    path: str
    text: str
    found: os.stat_result | None


def read(path: str) -> Text:
    """The text behind a path; Broken if it is not UTF-8, ResourceError if it cannot be read."""
    real = os.path.realpath(path)
    try:
        found = os.stat(real)
        if not stat.S_ISREG(found.st_mode):
            raise ResourceError(f"{path} is not a regular file", "name another with --file")
        with open(real, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return Text(real, "", None)
    except OSError as problem:
        raise ResourceError(
            f"cannot read {path}: {problem.strerror}", "check its permissions"
        ) from problem
    try:
        return Text(real, data.decode(), found)
    except UnicodeDecodeError as problem:
        before = data[: problem.start].decode()
        raise Broken(before, len(before), "it is not UTF-8") from None


def replace(old: Text, new: str, stamp: str) -> str | None:
    """Put new text where the old was; the path of the copy of the old, if there was any.

    1 refuse what is read-only    2 write the new text beside it    3 look whether the old is still
    the same    4 copy it    5 give the new text its name
    """
    partial = f"{old.path}.partial-{os.getpid()}"
    backup = f"{old.path}.backup-{stamp}" if old.found else None
    try:
        _refuse_read_only(old)  # 1
        os.makedirs(os.path.dirname(old.path), exist_ok=True)
        try:
            _create(partial, new, old.found)  # 2
            _refuse_changed(old)  # 3
            if backup:
                _create(backup, old.text, old.found)  # 4
            os.replace(partial, old.path)  # 5
        finally:
            if os.path.exists(partial):
                os.unlink(partial)
    except OSError as problem:
        raise ResourceError(
            f"cannot write {old.path}: {problem.strerror}",
            "check the permissions of the file and its directory",
        ) from problem
    return backup


def _refuse_read_only(old: Text) -> None:
    """Replacing needs no permission to write the file itself, but whoever took it away meant it."""
    if old.found and (not old.found.st_mode & 0o222 or not os.access(old.path, os.W_OK)):
        raise ResourceError(f"{old.path} is read-only", "make it writable, or edit it yourself")


def _refuse_changed(old: Text) -> None:
    if read(old.path).text != old.text:
        raise ResourceError(f"{old.path} has just been changed by another program", "try again")


def _create(path: str, text: str, like: os.stat_result | None) -> None:
    """A new file, synced; nobody can look into it before it has the permissions of the other."""
    with _opened(path, 0o600 if like else 0o666) as file:
        descriptor = file.fileno()
        if like:
            made = os.fstat(descriptor)
            if (made.st_uid, made.st_gid) != (like.st_uid, like.st_gid):
                os.fchown(descriptor, like.st_uid, like.st_gid)
            os.fchmod(descriptor, stat.S_IMODE(like.st_mode))
        file.write(text.encode())
        file.flush()
        os.fsync(descriptor)
