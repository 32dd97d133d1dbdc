"""A database that is open for writing, and whether its path still leads to it."""

import os
from dataclasses import dataclass
from typing import NamedTuple

from apsw import Connection

from colibri.core.errors import Damaged
from colibri.store.sqlite.connection import version
from colibri.store.sqlite.files import wal


class Identity(NamedTuple):
    """Which file stands at a path; renaming another over it changes this."""

    device: int
    inode: int


@dataclass(frozen=True, slots=True)
class Opened:
    """A database open for writing, and what it was when it was opened."""

    db: Connection
    path: str
    lock: int  # descriptor of `<db>.lock`, held shared
    version: int
    unclean: bool  # nobody else had it open, yet its write-ahead log was not empty
    migrated_from: int | None  # 0: it was created
    backup: str | None  # made before migrating
    file: Identity | None
    wal: Identity | None


def identity(path: str) -> Identity | None:
    """Of the file at a path, if there is one."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return Identity(found.st_dev, found.st_ino)


def check_same_file(opened: Opened) -> None:
    """Damaged if the path no longer leads to the database that was opened, at that version."""
    file = identity(opened.path)
    if file != opened.file:
        raise Damaged(f"the database file was {'replaced' if file else 'deleted'}")
    if not has_its_log(opened):
        raise Damaged("the write-ahead log was deleted or replaced")
    now = version(opened.db)
    if now > opened.version:
        raise Damaged("a newer Colibri migrated it: restart")
    if now < opened.version:
        raise Damaged("the database file was replaced by an older one")


def has_its_log(opened: Opened) -> bool:
    """Whether the write-ahead log is the one that was opened."""
    return identity(wal(opened.path)) == opened.wal
