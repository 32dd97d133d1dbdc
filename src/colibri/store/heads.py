"""Heads of ledgers in the user's state directory, which keep witness of what the ledgers held.

One file a log, `heads/LOG.jsonl`, with the lines of head_lines.py. Those that are damaged are
skipped and reported. Directories and files must belong to the user, and links are not followed. A
file that exceeds MOST_BYTES is rewritten without the heads that later ones make redundant; a line
that another process adds meanwhile may be lost with them: the next one tells as much.
"""

import os
import stat
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from colibri.core.errors import ResourceError
from colibri.core.ledger import Head
from colibri.core.witness import Acceptance, Place, Witness, Witnesses, describe
from colibri.store import head_lines, ledger, witnessed
from colibri.store.connection import Connection
from colibri.store.sqlite.files import make_directory

MOST_BYTES = 64 * 1024
MOST_READ = 16 * 1024 * 1024  # what a person accepted stays, however much it is
MOST_LOGS = 1000  # files that are searched for other logs of the same path,
NEWEST_BYTES = 4096  # each in its newest lines
KEPT_HEADS = 50  # the newest ones, when a file is rewritten
SHARED = "shared"  # in the place of a machine
KEPT_OTHERS = 200  # of heads that the log does not extend, the newest of each place


def here(path: str) -> Place:
    """The place of a database: on this machine, or the same for all that share a server."""
    if "://" in path:
        return Place(path, SHARED)
    real = os.path.realpath(path).encode(errors="backslashreplace").decode()
    return Place(real, os.uname().nodename)


def file_of(state: str, log: str) -> str:
    """The path of the file about a log; ResourceError for what is no log's id."""
    if not head_lines.is_log(log):
        raise ResourceError(f"{log!r} is not the id of a log")
    return os.path.join(state, "heads", f"{os.path.basename(log)}.jsonl")


def of(db: Connection, path: str, state: str | None, *, others: bool = False) -> Witnesses:
    """What the state directory has about the log of a database.

    With `others`, also the newest head of each other log that was kept for the same place.
    """
    log, place = ledger.log_id(db), here(path)
    kept = read(state, log, place)
    if state is None or not others:
        return kept
    found = _other_logs(os.path.join(state, "heads"), log, place)
    return kept._replace(found=(*kept.found, *found))


def problem(db: Connection, path: str, state: str | None) -> str:
    """What the newest head that the log does not extend says, and what to do; "" if all hold."""
    kept = of(db, path, state)
    bad = [one for one in witnessed.judge(db, kept) if one.result == "diverged"]
    if not bad:
        return ""
    newest = max(bad, key=lambda one: one.witness.size)
    return (
        f"{describe(newest)}; a log can be truncated, rewritten, restored or copied: `colibri"
        " verify` shows more, `colibri heads accept --why TEXT` accepts it"
    )


def read(state: str | None, log: str, place: Place | None) -> Witnesses:
    """What the state directory has about a log; what cannot be read is in `problems`."""
    if state is None:
        return Witnesses(place=place)
    try:
        path = file_of(state, log)
    except ResourceError as problem:  # nothing can be kept of it
        return Witnesses(place=place, problems=(problem.message,))
    try:
        lines, problems, is_whole = _lines(path)
    except (OSError, ResourceError) as problem:
        return Witnesses((_unread(log, str(problem)),), place=place)
    found = [one.said for one in lines if isinstance(one.said, Witness)]
    if not is_whole:
        large = f"{path} is larger than Colibri makes it: its start was not read"
        found.append(_unread(log, large))
    own = [one.said for one in lines if one.log == log]
    accepted = tuple(one for said in own if not isinstance(said, Witness) for one in said)
    return Witnesses(tuple(found), accepted, place, tuple(problems))


def _unread(log: str, problem: str) -> Witness:
    return Witness(log, 0, None, None, "state", head_lines.WHERE, problem=problem)


def keep(
    state: str,
    log: str,
    head: Head,
    *,
    at: str,
    place: Place,
    extends: Callable[[Head], bool],
) -> None:
    """Add a head; raises OSError or ResourceError. `extends` says whether the log has another."""
    path = file_of(state, log)
    if _append(path, head_lines.of_head(log, head, at, place)) > MOST_BYTES:
        _shorten(path, log, extends)


def accept(
    state: str,
    log: str,
    witnesses: Iterable[Witness],
    *,
    why: str,
    at: str,
    by: Head,
    place: Place,
) -> None:
    """Accept that a log, whose newest record is `by`, does not extend these; OSError."""
    accepted = [
        Acceptance(one.size, one.hash, one.place, why, at, by, place, one.what) for one in witnesses
    ]
    _append(file_of(state, log), "".join(head_lines.of_acceptances(log, accepted)))


def _append(path: str, text: str) -> int:
    """Write lines at once, at the end; how large the file is then."""
    make_directory(os.path.dirname(path))
    with _directory(os.path.dirname(path)) as folder:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
        file = _open(os.path.basename(path), flags, folder, path)
        try:
            size = os.fstat(file).st_size
            if size and os.pread(file, 1, size - 1) != b"\n":  # a full disk cut the last line off
                text = f"\n{text}"
            os.write(file, text.encode())
            return size + len(text)
        finally:
            os.close(file)


def _shorten(path: str, log: str, extends: Callable[[Head], bool]) -> None:
    """Drop what no verdict needs: of the heads that the log extends, all but the first and the
    newest. Others stay, so that what reveals tampering is not lost over time, and all that a
    person accepted.
    """
    lines = _lines(path)[0]
    text = b"".join(one.text + b"\n" for one in _needed(lines, log, extends))
    if sum(len(one.text) + 1 for one in lines) - len(text) < MOST_BYTES // 2:
        return  # it is long because much was accepted
    with _directory(os.path.dirname(path)) as folder:
        name = os.path.basename(path)
        new = f".{name}.new"
        try:
            file = _open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, folder, path)
        except FileExistsError:  # another process is at it, or died: the next time is early enough
            os.unlink(new, dir_fd=folder)
            return
        try:
            os.write(file, text)
        finally:
            os.close(file)
        os.rename(new, name, src_dir_fd=folder, dst_dir_fd=folder)


def _needed(
    lines: list[head_lines.Line], log: str, extends: Callable[[Head], bool]
) -> list[head_lines.Line]:
    unique = [*dict.fromkeys(lines)]
    held, others = [], defaultdict[Place | None, list[head_lines.Line]](list)
    for one in unique:
        if not isinstance(one.said, Witness):
            continue
        if one.log == log and extends(Head(one.said.size, one.said.hash)):
            held.append(one)
        else:
            others[one.said.place].append(one)
    wanted = {*held[:1], *held[-KEPT_HEADS:]}
    wanted.update(one for some in others.values() for one in some[-KEPT_OTHERS:])
    return [one for one in unique if one in wanted or not isinstance(one.said, Witness)]


def _lines(path: str, most: int = MOST_READ) -> tuple[list[head_lines.Line], list[str], bool]:
    """The last lines of a file, what is wrong with others, and whether that is all of the file;
    nothing if there is none."""
    try:
        with _directory(os.path.dirname(path)) as folder:
            file = _open(os.path.basename(path), os.O_RDONLY, folder, path)
    except FileNotFoundError:
        return [], [], True
    with open(file, "rb") as stream:
        size = os.fstat(file).st_size
        skipped = max(0, size - most)
        stream.seek(skipped)
        whole = stream.read(most)
    lines, problems = [], []
    for number, text in enumerate(whole.split(b"\n")[bool(skipped) :], 1):
        try:
            if text:
                lines.append(head_lines.parse(text))
        except ValueError as problem:
            problems.append(f"{path}, line {number}, was skipped: {problem}")
    return lines, problems, not skipped


def _other_logs(folder: str, log: str, place: Place) -> Iterator[Witness]:
    """The newest heads of other logs that were kept for a place."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return  # it does not exist, or `read` has said what is wrong with it
    for name in names[:MOST_LOGS]:
        if name.endswith(".jsonl") and name != f"{os.path.basename(log)}.jsonl":
            try:
                lines, *_ = _lines(os.path.join(folder, name), NEWEST_BYTES)
            except (OSError, ResourceError):
                continue
            heads = [one.said for one in lines if isinstance(one.said, Witness)]
            if heads and heads[-1].place == place and heads[-1].log != log:
                yield heads[-1]


@contextmanager
def _directory(path: str) -> Iterator[int]:
    """A descriptor of `heads` in Colibri's own directory, neither of which may be a link."""
    parent, name = os.path.split(path)
    flags = os.O_RDONLY | os.O_DIRECTORY
    above = _open(parent, flags, None, parent)
    try:
        folder = _open(name, flags, above, path)
    finally:
        os.close(above)
    try:
        yield folder
    finally:
        os.close(folder)


def _open(name: str, flags: int, folder: int | None, path: str) -> int:
    """A descriptor of a file or directory of the user's own; ResourceError if it is not."""
    safe = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        file = os.open(name, flags | safe, 0o600, dir_fd=folder)
    except (FileNotFoundError, FileExistsError):
        raise
    except OSError as problem:
        raise ResourceError(f"cannot open {path}: {_reason(problem, name, folder)}") from problem
    found = os.fstat(file)
    is_kind = stat.S_ISDIR if flags & os.O_DIRECTORY else stat.S_ISREG
    if is_kind(found.st_mode) and found.st_uid == os.geteuid():
        return file
    os.close(file)
    what = "belongs to another user" if is_kind(found.st_mode) else "is not a regular file"
    raise ResourceError(f"{path} {what}: it was not used")


def _reason(problem: OSError, name: str, folder: int | None) -> str:
    mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    return "it is a link" if stat.S_ISLNK(mode) else str(problem.strerror)
