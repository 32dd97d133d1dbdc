"""Which edits explain a version of a file.

An edit explains a version if it left exactly its content: the SHA-256 of the file in the commit is
the one that the hook took of the file on disk. Commit ids and dates play no part in that, so it
holds after a rebase. What was edited since the version before is part of the same change:

    version before      |  edit  |  edit  |  edit that left the content  |  commit
    what the first of   |  each found what the one before it left; their |
    these edits found   |  tasks are why the change was made             |

Where a host does not tell what an edit found, the change begins with the last edit that left the
version before, else with the date of that version; and what another commit took from the same work
tree, before a branch was left, is no part of it. That is not certain, and the answer says so.

If no edit left the content, because a rebase, a merge or a person changed it afterwards, edits are
likely that left another version with lines that this one adds. Such versions are in commits that a
rebase replaced, or on other branches.

The oldest commits of a shallow clone seem to add every line that is older than they are. Nothing
can be told of their change; the edits up to then are listed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import dropwhile, islice
from typing import Literal, NamedTuple

from colibri.cli import git
from colibri.cli.git import GitError, Repository
from colibri.cli.show import times
from colibri.cli.why import edits, versions
from colibri.cli.why.elsewhere import Commit, Elsewhere
from colibri.cli.why.versions import Place, Version
from colibri.store.connection import Connection
from colibri.store.deed_list import Edit

LATER = "~"  # sorts after every time
MOST_EARLIER = 20  # edits that are listed where the history ends
TELLING = 4  # characters that a line needs to be told from any other

Digests = frozenset[str]
NOTHING: Digests = frozenset()


class Explained(NamedTuple):
    """A version and the edits since the one before it; the last of them explains it, or none.

    `certain` is whether each of them is known to be a part of the change.
    """

    version: Version
    edits: Sequence[Edit]
    state: Literal["explained", "likely", "unexplained", "unchanged", "cut"]
    certain: bool = True

    @property
    def until(self) -> str:
        """When it was committed, or last edited: no reason for it came later."""
        return max([_after(self.version.time), *(f"{edit.at}{LATER}" for edit in self.edits)])


def file(
    db: Connection,
    project: str,
    repository: Repository,
    name: str,
    text: bytes,
    lines: range | None,
) -> list[Explained]:
    """The versions that some lines of a file are from, or else all of them, and their edits; `text`
    is what the file holds now."""
    found = _versions(repository, name, lines)
    places = {place for one in found for place in (one.place, one.previous) if place}
    held = versions.contents(repository, places)
    names = {name, *(place.path for place in places)}
    every = [*edits.of(db, project, repository, names)]
    past = cache(lambda: versions.history(repository, name))
    elsewhere = Elsewhere(repository, names)
    told = []
    for one in found:
        now = held.get(one.place, NOTHING) if one.place else versions.digests(text)
        before = held.get(one.previous, NOTHING) if one.previous else NOTHING
        change = _Change(repository, one, now, before, past, elsewhere, text)
        told.append(change.explain(every))
    return [one for one in told if one.version.commit or one.state != "unchanged"]


def _versions(repository: Repository, name: str, lines: range | None) -> list[Version]:
    try:
        git.run(repository, "rev-parse", "--verify", "--quiet", f"HEAD:{name}")
    except GitError as problem:
        if problem.code is None:
            raise
        return [versions.on_disk(name, None, (lines,) if lines else ())]  # it is in no commit
    if lines is not None:
        return versions.blame(repository, name, lines)
    return [versions.on_disk(name, Place("HEAD", name)), *versions.history(repository, name)]


class _Change(NamedTuple):
    """What led from the version before to a version, of which the SHA-256 is `now`."""

    repository: Repository
    version: Version
    now: Digests
    before: Digests
    past: Callable[[], Sequence[Version]]
    elsewhere: Elsewhere
    on_disk: bytes

    def explain(self, every: Iterable[Edit]) -> Explained:
        """Find its edits among those of the file."""
        version, previous = self.version, self.version.previous
        if self.now and self.now == self.before:
            return Explained(version, (), "unchanged")
        names = {version.path, previous.path if previous else version.path}
        mine = [edit for edit in every if edit.path in names]
        in_time = [edit for edit in mine if edit.at < _after(version.time)]
        if version.cut:
            return Explained(version, in_time[-MOST_EARLIER:], "cut", False)
        left = [edit for edit in in_time if edit.sha256 in self.now][-1:]
        left = (
            left or [edit for edit in mine if edit.sha256 in self.now][:1]
        )  # amended: it is older
        if not left:
            return self._guess(in_time)
        (last,) = left
        made = [edit for edit in mine if edit.seq < last.seq and edit.tree == last.tree]
        known, rest = self._followed(last, made)
        base = max((one.seq for one in rest if one.sha256 in self.before), default=0)
        since = self._older() if rest and not base else ""
        rest = [one for one in rest if one.seq > base and one.at >= since]
        if {_whose(one) for one in rest} - {_whose(one) for one in known}:
            rest = self._ours(rest)
        return Explained(version, (*rest, *known), "explained", not rest)

    def _followed(self, last: Edit, made: Sequence[Edit]) -> tuple[list[Edit], Sequence[Edit]]:
        """The edits of which each found what the one before it left, from the last one back; and
        those before them, where that is not known."""
        known = [last]
        while found := known[0].before:
            if found in self.before:
                return known, ()
            earlier = [one for one in made if one.seq < known[0].seq and one.sha256 == found]
            if not earlier:
                break
            known.insert(0, earlier[-1])
        return known, [one for one in made if one.seq < known[0].seq]

    def _ours(self, made: Sequence[Edit]) -> list[Edit]:
        """Without those up to the last one whose content another commit took, from which this
        version does not come: then the file was put back before it was edited again."""
        same = self.elsewhere.current(self.now)
        taken = 0
        for one in made:
            homes = self.elsewhere.current({one.sha256})
            if homes and not any(self._led_here(home, same) for home in homes.items()):
                taken = one.seq
        return [one for one in made if one.seq > taken]

    def _led_here(self, home: tuple[str, Commit], same: Iterable[str]) -> bool:
        """Whether a commit became this version: a rebase or an amendment replaced it, or a squash
        merge joined it with others."""
        commit, first = home
        if first == (self.version.author, self.version.time):
            return True
        return any(self.elsewhere.leads(commit, one) for one in same if one != self.version.commit)

    def _guess(self, in_time: Sequence[Edit]) -> Explained:
        """What came before a version that no edit left."""
        base = max((one.seq for one in in_time if one.sha256 in self.before), default=0)
        since = self._older() if in_time and not base else ""
        recent = {one.seq for one in in_time if one.seq > base and one.at >= since}
        likely = self._likely([one for one in in_time if one.seq > base])
        whose = {_whose(one) for one in likely}
        first, last = (likely[0].seq, likely[-1].seq) if likely else (0, -1)
        kept = [
            one
            for one in in_time
            if one.seq in recent or (first <= one.seq <= last and _whose(one) in whose)
        ]
        return Explained(self.version, kept, "likely" if likely else "unexplained", False)

    def _likely(self, some: Sequence[Edit]) -> list[Edit]:
        """The edits that left another version with lines which this one adds."""
        texts = [(edit, self.elsewhere.text(edit.sha256)) for edit in some]
        known = [(edit, text) for edit, text in texts if text is not None]
        added = self._added() if known else set()
        return [edit for edit, text in known if added & _lines(text)]

    def _added(self) -> set[bytes]:
        place, previous = self.version.place, self.version.previous
        now = versions.text(self.repository, place) if place else self.on_disk
        before = versions.text(self.repository, previous) if previous else b""
        return _lines(now or b"") - _lines(before or b"")

    def _older(self) -> str:
        """When the version before was committed, as records have times."""
        rest: Iterator[Version] = iter(self.past())
        if self.version.commit is not None:
            mine = self.version.commit
            rest = islice(dropwhile(lambda one: one.commit != mine, rest), 1, None)
        return "".join(recorded_time(one.time or 0) for one in islice(rest, 1))


def _whose(edit: Edit) -> tuple[str | None, str | None]:
    return edit.session, edit.task


def _lines(text: bytes) -> set[bytes]:
    """The lines of a text that can be told from others."""
    lines = (line.strip() for line in text.split(b"\n"))
    return {line for line in lines if len(line) >= TELLING}


def _after(seconds: int | None) -> str:
    """The second after a time of git, as records have times; LATER if it is none."""
    return LATER if seconds is None else recorded_time(seconds + 1)


def recorded_time(seconds: int) -> str:
    """A time of git as records have it; LATER if that cannot be a date."""
    try:
        return times.recorded(datetime.fromtimestamp(seconds, UTC))
    except (ValueError, OverflowError, OSError):
        return LATER
