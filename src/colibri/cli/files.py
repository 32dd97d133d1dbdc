"""Files that commands write: whole or not at all, and never over another without being told to.

What we write for people is for its owner alone: evidence may hold what nobody else should read. A
settings file of another program keeps its permissions and its owner, and the old text is kept next
to it. No mode depends on the umask alone: others never get to write.

A repository may hold links. Below the project and below the working directory none is followed when
something is written: refuse_links() names it and where it leads.
"""

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO

from colibri.cli.complaint import Complaint, why
from colibri.cli.settings.jsonc import Broken
from colibri.core.errors import ResourceError

PRIVATE = 0o600
SETTINGS = 0o644  # of a new settings file; the umask may take some of it away
DIRECTORY = 0o755
MAX_TEXT = 16 << 20  # bytes of a settings file

# Where may we write?


def refuse_links(path: str, project: str) -> None:
    """A Complaint if a link lies between the project, or the working directory, and the file."""
    path = os.path.abspath(path)
    roots = {project, os.path.realpath(project), os.getcwd(), os.path.dirname(path)}
    at = path
    while at != (above := os.path.dirname(at)):
        if os.path.islink(at) and any(
            f"{above}{os.sep}".startswith(f"{root}{os.sep}") for root in roots
        ):
            message = f"{at} is a link to {os.path.realpath(at)}"
            raise Complaint(message, "name that place itself, or delete the link")
        at = above


def refuse_existing(path: str, *, force: bool) -> None:
    """A Complaint, unless it may be replaced; what is no regular file never is."""
    if os.path.exists(path) and not os.path.isfile(path):
        what = "a directory" if os.path.isdir(path) else "not a regular file"
        raise Complaint(f"{path} is {what}", "name a file")
    if os.path.exists(path) and not force:
        raise Complaint(f"{path} already exists", "name another file, or add --force")


# Ours.


def create(path: str, mode: int = PRIVATE) -> BinaryIO:
    """A new file for writing; FileExistsError if anything has that name, even a link."""
    return open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode), "w+b")


def write(
    pieces: Iterable[bytes], path: str, check: Callable[[BinaryIO], None] | None = None
) -> int:
    """Write pieces into a file, or to stdout for -; how many bytes.

    The file gets its name, and stdout its bytes, when all of them are on the disk and the check
    has read them without a complaint.
    """
    try:
        if path != "-":
            with _unfinished(os.path.abspath(path), PRIVATE) as file:
                return _fill_and_check(file, pieces, check)
        if check is None:
            size = sum(map(sys.stdout.buffer.write, pieces))
        else:
            with tempfile.TemporaryFile() as file:
                size = _fill_and_check(file, pieces, check)
                file.seek(0)
                shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as problem:
        hint = "check that the directory exists, is writable and has free space"
        raise ResourceError(f"cannot write {path}: {why(problem)}", hint) from problem
    return size


def _fill_and_check(
    file: BinaryIO, pieces: Iterable[bytes], check: Callable[[BinaryIO], None] | None
) -> int:
    size = sum(map(file.write, pieces))
    if check is not None:
        file.seek(0)
        check(file)
    return size


@contextmanager
def _unfinished(path: str, mode: int) -> Iterator[BinaryIO]:
    """A new file next to `path`, which is given that name when all of it is on the disk."""
    name = f"{path}.partial-{os.getpid()}"
    file = create(name, mode)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


# Those of other programs.


@dataclass(frozen=True, slots=True)
class Text:
    """What a file held when it was read; `found` is None when there was none."""

    path: str
    text: str
    found: os.stat_result | None


def read(path: str, hint: str = "name another with --file") -> Text:
    """The text behind a path; Broken if it is not UTF-8, ResourceError if it cannot be read."""
    real = os.path.realpath(path)
    try:
        found = os.stat(real)
        if not stat.S_ISREG(found.st_mode):
            raise ResourceError(f"{path} is not a regular file", hint)
        if found.st_size > MAX_TEXT:
            raise ResourceError(f"{path} is too large for settings", hint)
        with open(real, "rb") as file:
            data = file.read(MAX_TEXT)
    except FileNotFoundError:
        return Text(real, "", None)
    except OSError as problem:
        raise ResourceError(
            f"cannot read {path}: {why(problem)}", "check its permissions"
        ) from None
    try:
        return Text(real, data.decode(), found)
    except UnicodeDecodeError as problem:
        before = data[: problem.start].decode()
        raise Broken.at(before, len(before), "it is not UTF-8") from None


def replace(old: Text, new: str, stamp: str, mode: int = SETTINGS) -> str | None:
    """Put new text where the old was; the path of the copy of the old, unless stamp is "".

    1 refuse what is read-only    2 write the new text next to it    3 check that the old is still
    the same    4 copy it    5 give the new text its name
    """
    backup = f"{old.path}.backup-{stamp}" if old.found and stamp else None
    try:
        refuse_read_only(old)  # 1
        _make_directory(os.path.dirname(old.path))
        with _unfinished(old.path, mode if old.found is None else PRIVATE) as file:
            _fill(file, new, old.found)  # 2
            _refuse_changed(old)  # 3
            if backup:
                with _unfinished(backup, PRIVATE) as copy:
                    _fill(copy, old.text, old.found)  # 4
    except OSError as problem:  # 5 is the end of the block
        hint = "check the permissions of the file and its directory"
        raise ResourceError(f"cannot write {old.path}: {why(problem)}", hint) from problem
    return backup


def delete(old: Text) -> None:
    """Take away a file that is ours and as it was when it was read."""
    try:
        refuse_read_only(old)
        _refuse_changed(old)
        os.unlink(old.path)
    except OSError as problem:
        hint = "check the permissions of its directory"
        raise ResourceError(f"cannot delete {old.path}: {why(problem)}", hint) from problem


def _refuse_changed(old: Text) -> None:
    if read(old.path).text != old.text:
        raise ResourceError(f"{old.path} has just been changed by another program", "try again")


def refuse_read_only(old: Text) -> None:
    """Replacing needs no permission to write the file itself, but whoever took it away meant it."""
    if old.found and (not old.found.st_mode & 0o222 or not os.access(old.path, os.W_OK)):
        raise ResourceError(f"{old.path} is read-only", "make it writable, or edit it yourself")


def _make_directory(path: str) -> None:
    """With all above it; os.makedirs gives only the last one a mode."""
    if not os.path.isdir(path):
        _make_directory(os.path.dirname(path))
        os.mkdir(path, DIRECTORY)


def _fill(file: BinaryIO, text: str, like: os.stat_result | None) -> None:
    """Nobody can look into it before it has the owner and the permissions of the other."""
    if like:
        made = os.fstat(file.fileno())
        if (made.st_uid, made.st_gid) != (like.st_uid, like.st_gid):
            os.fchown(file.fileno(), like.st_uid, like.st_gid)
        os.fchmod(file.fileno(), like.st_mode & 0o775)  # not writable by everyone, not setuid
    file.write(text.encode())
