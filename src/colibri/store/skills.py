"""The folder of skills, read afresh each time: every <root>/<name>/SKILL.md, and nothing else.

Nobody knows who wrote what is in there. No symbolic link is followed, neither in the root nor on
the way to it from the project; only regular files are opened, so that no pipe or device can keep us
waiting; everything has a bound. What is not listed is reported: a file under `skipped`, the rest in
`note`.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import NamedTuple

from colibri.core import skills
from colibri.core.canonical import sha256
from colibri.core.errors import Malformed
from colibri.core.skills import Skill
from colibri.core.visible import visible

FILE = "SKILL.md"
MAX_NAMES = 100_000  # entries of the root whose names are read
MAX_FOLDERS = 2_000  # folders that are opened, in the order of the list
MAX_FILE = 16 * 1024 * 1024
MAX_FILES = 128 * 1024 * 1024  # of all files that are read at a time
MAX_HEADS = 1024 * 1024  # of all frontmatter that is parsed at a time
MAX_SKIPPED = 100

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_REGULAR = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_TOO_LARGE = f"it is larger than {MAX_FILE >> 20} MiB"
_IS_LINK = "it is a symbolic link, which is not followed"

_Identity = tuple[int, int]  # device and inode


class Found(NamedTuple):
    """A skill, where it is, and the hash of its whole file."""

    skill: Skill
    path: str
    sha256: str


class Skipped(NamedTuple):
    """What stands in the place of a skill and is none."""

    path: str
    reason: str


class Listing(NamedTuple):
    """What a root holds: canonical skills first, then by name."""

    skills: tuple[Found, ...]
    skipped: tuple[Skipped, ...]
    note: str | None


def read(
    root: str,
    project: str,
    *,
    database: str | None = None,
    pause: Callable[[], None] = lambda: None,
) -> Listing:
    """Every skill of the root, whatever else is in it; `pause` is called between two of them.

    `database` is the one that this process may have open: see `only_for_sqlite`.
    """
    try:
        with _opened(root, project) as folder:
            return _Reading(folder, root, only_for_sqlite(database)).run(pause)
    except OSError as problem:
        return Listing((), (), _why_not(root, problem))


def count_files(root: str, project: str) -> int:
    """How many SKILL.md there are, good or bad: a first idea that needs no PyYAML."""
    try:
        with _opened(root, project) as folder:
            names = _entries(folder).folders[:MAX_FOLDERS]
            return sum(_has_file(folder, name) for name in names)
    except OSError:
        return 0


# The root.


class _LeadsOut(OSError):
    """The root is a link that leads out of the project."""


@contextmanager
def _opened(root: str, project: str) -> Iterator[int]:
    """A descriptor of the root.

    One outside the project is where the user said. One inside came with the project, so it has to
    be there really: each step from the project to it is taken without following links.
    """
    real = os.path.realpath(root)
    steps: list[str] = []
    if _is_within(root, project):
        base = os.path.realpath(project)
        if not _is_within(real, base):
            raise _LeadsOut
        steps, real = os.path.relpath(real, base).split(os.sep), base
    folder = os.open(real, _FOLDER)
    try:
        for step in steps:
            inner = os.open(step, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def _is_within(path: str, folder: str) -> bool:
    """By whole components: /a/bc is not within /a/b."""
    folder = os.path.normpath(folder)
    return os.path.commonpath([os.path.normpath(path), folder]) == folder


def _why_not(root: str, problem: OSError) -> str:
    if isinstance(problem, FileNotFoundError):
        what = f"there is no folder {root}: a skill is a file NAME/{FILE} in it"
    elif isinstance(problem, _LeadsOut):
        what = f"{root} leads out of the project by a link, which is not followed"
    else:
        what = f"{root} cannot be read: {problem.strerror}"
    return f"{what}; COLIBRI_SKILLS_ROOT can name another folder"


# What is in it.


class _Entries(NamedTuple):
    """Names in a root: of folders, in the order of the list, and of links."""

    folders: list[str]
    links: list[str]
    is_all: bool


def _entries(folder: int) -> _Entries:
    """What is in the root; hidden entries do not count."""
    folders, links = [], []
    with os.scandir(folder) as entries:
        for entry in islice(entries, MAX_NAMES):
            if entry.name.startswith("."):
                continue
            if entry.is_symlink():
                links.append(entry.name)
            elif entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
        is_all = next(entries, None) is None
    folders.sort(key=lambda name: (not name.startswith(skills.CANONICAL), name))
    return _Entries(folders, sorted(links), is_all)


def _has_file(folder: int, name: str) -> bool:
    try:
        found = os.stat(os.path.join(name, FILE), dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode)


class _Reading:
    """One way through the folders of a root."""

    def __init__(self, folder: int, root: str, forbidden: frozenset[_Identity]) -> None:
        self._folder = folder
        self._root = root
        self._forbidden = forbidden
        self._found: list[Found] = []
        self._skipped: list[Skipped] = []
        self._read = 0
        self._parsed = 0

    def run(self, pause: Callable[[], None]) -> Listing:
        names, links, is_all = _entries(self._folder)
        notes = [] if is_all else [f"only {MAX_NAMES} of its entries were looked at"]
        if len(names) > MAX_FOLDERS:
            notes.append(f"only the first {MAX_FOLDERS} of {len(names)} folders were read")
        for name in names[:MAX_FOLDERS]:
            self._take(name)
            if self._read > MAX_FILES or self._parsed > MAX_HEADS:
                notes.append(
                    f"the folders up to {visible(name)} hold so much that no more were read"
                )
                break
            pause()
        self._skipped += [Skipped(self._path(name), _IS_LINK) for name in links]
        if (more := len(self._skipped) - MAX_SKIPPED) > 0:
            notes.append(f"{more} more were skipped")
        return Listing(
            tuple(self._found), tuple(self._skipped[:MAX_SKIPPED]), "; ".join(notes) or None
        )

    def _take(self, name: str) -> None:
        """Read the skill in a folder; a folder without the file is none."""
        path = self._path(name, FILE)
        try:
            data = _data(self._folder, name, self._forbidden)
            if data is not None:
                self._found.append(Found(self._skill(data, name), path, sha256(data).hex()))
        except Malformed as problem:
            self._skipped.append(Skipped(path, problem.message))
        except OSError as problem:
            self._skipped.append(Skipped(path, f"it cannot be read: {problem.strerror}"))

    def _skill(self, data: bytes, name: str) -> Skill:
        self._read += len(data)
        head = skills.between_fences(data)
        self._parsed += len(head)
        return skills.parse(head, name)

    def _path(self, *names: str) -> str:
        return os.path.join(self._root, *map(visible, names))


def _data(folder: int, name: str, forbidden: frozenset[_Identity]) -> bytes | None:
    """The bytes of a folder's SKILL.md; None if it has none; Malformed if it is no plain file."""
    inner = os.open(name, _FOLDER, dir_fd=folder)
    try:
        # Opening a device can do things, so look first; and again at what was opened.
        found = os.stat(FILE, dir_fd=inner, follow_symlinks=False)
        _check_plain(found)
        if (found.st_dev, found.st_ino) in forbidden:
            raise Malformed("it is Colibri's own database, which nothing else may open")
        file = os.open(FILE, _REGULAR, dir_fd=inner)
    except FileNotFoundError:
        return None
    finally:
        os.close(inner)
    try:
        _check_plain(os.fstat(file))
        with open(file, "rb", closefd=False) as stream:
            data = stream.read(MAX_FILE + 1)
    finally:
        os.close(file)
    if len(data) > MAX_FILE:
        raise Malformed(_TOO_LARGE)
    return data


def only_for_sqlite(database: str | None) -> frozenset[_Identity]:
    """The files of the database: one could stand here too, as a hard link under another name.

    To close it would drop every lock that SQLite has on it in this process.
    """
    found = set()
    for end in ("", "-wal", "-shm") if database else ():
        try:
            file = os.stat(f"{database}{end}")
        except OSError:
            continue
        found.add((file.st_dev, file.st_ino))
    return frozenset(found)


def _check_plain(found: os.stat_result) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise Malformed(_IS_LINK)
    if not stat.S_ISREG(found.st_mode):
        raise Malformed("it is not a regular file")
    if found.st_size > MAX_FILE:
        raise Malformed(_TOO_LARGE)
