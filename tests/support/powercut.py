"""Simulates power cuts on a disk, by playing back the notes of tests.support.recording_disk.

What was synced stays. Any other 512-byte sector, truncation and name may be lost or kept: in any
order, or in order up to one that is torn.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from tests.support.recording_disk import DATABASE, Note

SECTOR = 512


@dataclass
class File:
    """An inode: what was synced, and the changes since."""

    durable: bytearray = field(default_factory=bytearray)
    pending: list[Note] = field(default_factory=list)  # (offset, data), or (size,) of a truncation
    dirty_name: bool = False  # its next sync also syncs the directory, as SQLite does

    def sync(self) -> None:
        for change in self.pending:
            _apply(self.durable, change)
        self.pending.clear()

    def survivor(self, random: Random) -> bytes:
        """The file as a power cut may leave it."""
        content = bytearray(self.durable)
        if random.random() < 0.3:  # in order, up to a torn one
            cut = random.randint(0, len(self.pending))
            for change in self.pending[:cut]:
                _apply(content, change)
            for offset, data in (change for change in self.pending[cut : cut + 1] if change[1:]):
                _apply(content, (offset, data[: random.randint(1, len(data))]))
        else:  # in any order
            kept = random.choice((0.05, 0.5, 0.95))
            for change in self.pending:
                for part in _sectors(change):
                    if random.random() < kept:
                        _apply(content, part)
        return bytes(content)


def _apply(content: bytearray, change: Note) -> None:
    offset, data = change if change[1:] else (change[0], b"")
    if not data:
        del content[offset:]
    content.extend(bytes(max(0, offset - len(content))))
    content[offset : offset + len(data)] = data


def _sectors(change: Note) -> Iterator[Note]:
    if len(change) == 1:
        yield change
        return
    offset, data = change
    begin = 0
    while begin < len(data):
        end = min(len(data), (offset + begin) // SECTOR * SECTOR + SECTOR - offset)
        yield offset + begin, data[begin:end]
        begin = end


class Disk:
    """A directory during playback; `names` has the files that each name may lead to after a cut.

    A disk that ignores syncs is the control.
    """

    def __init__(self, before: bytes | None, *, syncs: bool = True) -> None:
        self.syncs = syncs
        self.names: dict[str, list[File | None]] = {}
        if before is not None:
            self.names[DATABASE] = [File(bytearray(before))]

    def play(self, note: Note) -> None:
        kind, name, *rest = note
        if kind == "open":
            self._open(name, create=rest[0])
        elif kind == "delete":
            self.names[name].append(None)
            if rest[0] and self.syncs:
                self._sync_names()
        elif file := self.names[name][-1]:
            if kind != "sync":
                file.pending.append(tuple(rest))
            elif self.syncs:
                file.sync()
                if file.dirty_name:
                    file.dirty_name = False
                    self._sync_names()

    def _open(self, name: str, *, create: bool) -> None:
        leads_to = self.names.setdefault(name, [None])
        if leads_to[-1] is None:
            leads_to.append(File())
        file = leads_to[-1]
        assert file is not None
        file.dirty_name = create

    def _sync_names(self) -> None:
        for leads_to in self.names.values():
            del leads_to[:-1]

    def cut(self, random: Random) -> dict[str, bytes]:
        """The files after a power cut now."""
        survivors = ((name, random.choice(files)) for name, files in self.names.items())
        return {name: file.survivor(random) for name, file in survivors if file is not None}
