"""A file's versions as git has them: the commit that each line is from, and what the file held."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import NamedTuple

from colibri.cli import git, objects
from colibri.cli.git import Repository
from colibri.cli.objects import Fact
from colibri.hook.files import LARGEST

_FORMAT = "%H%x00%P%x00%an%x00%at%x00%s"
_ESCAPE = re.compile(rb'\\([abtnvfr"\\]|[0-7]{3})')
_ESCAPED = dict(zip(b'abtnvfr"\\', b'\a\b\t\n\v\f\r"\\', strict=True))
_LINE = re.compile(rb"([0-9a-f]{40}|[0-9a-f]{64}) [0-9]+ ([0-9]+)(?: ([0-9]+))?")


class Place(NamedTuple):
    """A file in a commit."""

    commit: str
    path: str


class Version(NamedTuple):
    """A file as a commit left it, or as it is on disk: then it has no commit, author or time."""

    path: str
    commit: str | None
    author: str | None
    time: int | None  # seconds, when it was first committed: a rebase does not change that
    subject: str | None
    previous: Place | None  # the file before it, if there was one
    lines: tuple[range, ...] = ()
    cut: bool = False  # the clone is shallow and ends here: what it held may be older

    @property
    def place(self) -> Place | None:
        """Where its content is in git."""
        return None if self.commit is None else Place(self.commit, self.path)


def blame(repository: Repository, path: str, lines: range) -> list[Version]:
    """The versions that some lines are from, each with its lines, in the order of the lines."""
    span = f"{lines.start},{lines.stop - 1}"
    text = git.run(repository, "blame", "--porcelain", "-L", span, "--", path)
    facts: dict[bytes, dict[bytes, bytes]] = {}
    found: dict[bytes, list[range]] = {}
    commit = b""
    for line in text.split(b"\n"):
        if begun := _LINE.fullmatch(line):
            commit, number = begun[1], int(begun[2])
            if begun[3]:
                found.setdefault(commit, []).append(range(number, number + int(begun[3])))
        elif line and not line.startswith(b"\t"):
            name, _, value = line.partition(b" ")
            facts.setdefault(commit, {}).setdefault(name, value)
    ends = git.shallow(repository)
    blamed = [_blamed(one, facts[one], tuple(found[one])) for one in found]
    return [one._replace(cut=one.commit in ends) for one in blamed]


def _blamed(commit: bytes, facts: dict[bytes, bytes], lines: tuple[range, ...]) -> Version:
    sha, _, name = facts.get(b"previous", b"").partition(b" ")
    previous = Place(_text(sha), _unquoted(name)) if sha else None
    path = _unquoted(facts[b"filename"])
    if not commit.strip(b"0"):
        return on_disk(path, previous, lines)
    author, subject = _text(facts[b"author"]), _text(facts[b"summary"])
    time = int(facts[b"author-time"])
    return Version(path, _text(commit), author, time, subject, previous, lines)


def on_disk(path: str, previous: Place | None, lines: tuple[range, ...] = ()) -> Version:
    """A file that is not committed as it is."""
    return Version(path, None, None, None, None, previous, lines)


def _unquoted(name: bytes) -> str:
    """A path as git prints it, in quotes if it has control characters, quotes or backslashes."""
    if name.startswith(b'"'):
        name = _ESCAPE.sub(_unescaped, name[1:-1])
    return _name(name)


def _name(path: bytes) -> str:
    return path.decode(errors="surrogateescape")


def _text(told: bytes) -> str:
    return told.decode(errors="replace")


def _unescaped(found: "re.Match[bytes]") -> bytes:
    text = found[1]
    return bytes([int(text, 8) if text.isdigit() else _ESCAPED[text[0]]])


def history(repository: Repository, path: str) -> list[Version]:
    """The committed versions of a file, the newest first, also those under another name."""
    words = ("--follow", "-c", f"--format={_FORMAT}", "--name-status", "-z", "HEAD", "--", path)
    fields = iter(git.run(repository, "log", *words).split(b"\0"))
    found: list[Version] = []
    ends = git.shallow(repository)
    commit = next(fields)
    while commit:
        parents, author, time, subject = (_text(next(fields)) for _ in range(4))
        status, names = _change(fields)
        previous = None if status == "A" else Place(parents.split()[0], names[0])
        if status != "D":
            made = Version(names[-1], _text(commit), author, int(time), subject, previous)
            found.append(made._replace(cut=made.commit in ends))
        commit = next(fields)
    return found


def _change(fields: Iterator[bytes]) -> tuple[str, list[str]]:
    """How a file changed, and its names before and after."""
    status = next(fields)
    if not status:  # a merge that is like none of its parents: a letter for each of them
        next(fields)
        return "M", [_name(next(fields))]
    letter = _text(status[1:2])
    return letter, [_name(next(fields)) for _ in range(2 if letter in "RC" else 1)]


def contents(
    repository: Repository, places: Iterable[Place], most: int | None = None
) -> dict[Place, frozenset[str]]:
    """The digests of what files held, as far as git has it and hooks would read it."""
    names = {place: f"{place.commit}:{place.path}" for place in places if "\n" not in place.path}
    held = hashed(repository, names.values(), most)
    return {place: held[name] for place, name in names.items() if name in held}


def text(repository: Repository, place: Place) -> bytes | None:
    """What a file held; None where git does not have it, or hooks would not read it."""
    (fact,) = objects.facts(repository, [f"{place.commit}:{place.path}"])
    found = objects.read(repository, [fact] if fact and _is_readable(fact) else [])
    return next((content for _, content in found), None)


def hashed(
    repository: Repository, names: Iterable[str], most: int | None = None
) -> dict[str, frozenset[str]]:
    """The digests of the blobs that have some names, as many as fit into `most` bytes."""
    wanted = [*dict.fromkeys(names)]
    known = zip(wanted, objects.facts(repository, wanted), strict=True)
    blobs = {name: fact for name, fact in known if fact and _is_readable(fact)}
    held = {
        id: digests(content)
        for id, content in objects.read(repository, _within(blobs.values(), most))
    }
    return {name: held[fact.id] for name, fact in blobs.items() if fact.id in held}


def _is_readable(fact: Fact) -> bool:
    return fact.kind == "blob" and fact.size <= LARGEST


def _within(blobs: Iterable[Fact], most: int | None) -> Iterator[Fact]:
    """The first of some blobs, which together have at most `most` bytes."""
    unique = [*dict.fromkeys(blobs)]
    sums = accumulate(blob.size for blob in unique)
    return (blob for blob, done in zip(unique, sums, strict=True) if most is None or done <= most)


def digests(content: bytes) -> frozenset[str]:
    """The SHA-256 of a content with its own line ends, and with those of Windows."""
    other = content.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    return frozenset(hashlib.sha256(one).hexdigest() for one in (content, other))
