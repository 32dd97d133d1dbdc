"""What `colibri doctor` asks about a database in a file.

Nothing is changed. The file is opened by SQLite alone, read-only; where no `-wal` exists no new
file appears either. Sizes and permissions come from `os.stat`.
"""

import os
import stat
from collections.abc import Iterator

from colibri.cli.doctor import Finding, guarded, newest_records, ok, problem, warning
from colibri.config import Config
from colibri.core.errors import Damaged, ResourceError
from colibri.core.modes import Mode
from colibri.store.connection import Connection
from colibri.store.faults import errors
from colibri.store.home import Outdated
from colibri.store.sqlite import locks, place
from colibri.store.sqlite.opening import MAKE, open_reader
from colibri.store.sqlite.schema import load_migrations, quick_check, small_tables

MIB = 1 << 20
LITTLE_SPACE = 100 * MIB
NO_SPACE = 10 * MIB
LARGE_WAL = 64 * MIB

_DAMAGED = "colibri verify shows what is damaged; restore a backup if you have one"
_WRITABLE = "make it writable, or set COLIBRI_DB_PATH to another place"


def examine(config: Config) -> Iterator[Finding]:
    """Everything about the database of a project."""
    path = os.path.realpath(config.db_path)  # as SQLite does: there are its `-wal` and its lock
    directory = _existing(os.path.dirname(path))
    yield from guarded("file system", _file_system, path, directory)
    yield from guarded("disk space", _space, directory)
    if config.mode == Mode.MINIMAL:
        yield ok(f"{path}, which mode MINIMAL does not open", "database")
    elif not os.path.exists(path):
        yield from guarded("database", _missing, path, directory, config.mode)
    else:
        yield from guarded("database", _content, path)
        yield from guarded("permissions", _permissions, path, config.mode)
        yield from guarded("lock", _lock, path)
        yield from guarded("write-ahead log", _write_ahead_log, path)


def _existing(path: str) -> str:
    """The path, or the nearest directory above it that exists."""
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def _missing(path: str, directory: str, mode: Mode) -> Iterator[Finding]:
    beside = os.path.relpath(path, directory).split(os.sep)[0]
    if mode == Mode.READONLY:
        hint = MAKE
        yield problem(f"there is none at {path}, and READONLY creates none", hint)
    elif os.path.exists(os.path.join(directory, beside)):
        detail = f"{path} cannot be created: {os.path.join(directory, beside)} is not a directory"
        yield problem(detail, "set COLIBRI_DB_PATH to another place")
    elif not os.access(directory, os.W_OK | os.X_OK):
        detail = f"{path} cannot be created: {directory} is not writable"
        yield problem(detail, _WRITABLE)
    else:
        yield ok(f"none yet at {path}; the server creates it when it first starts")


def _file_system(path: str, directory: str) -> Iterator[Finding]:
    kind = place.file_system(directory) or "one that the system does not name"
    try:
        place.require_local(path)
    except ResourceError as remote:
        yield problem(remote.message, remote.hint)
        return
    yield ok(f"{directory} is on {kind}")


def _space(directory: str) -> Iterator[Finding]:
    volume = os.statvfs(directory)
    free = volume.f_bavail * volume.f_frsize
    detail = f"{free // MIB:,} MiB free at {directory}"
    if free >= LITTLE_SPACE:
        yield ok(detail)
    else:
        judge = warning if free >= NO_SPACE else problem
        hint = "free some space, or set COLIBRI_DB_PATH to another volume"
        yield judge(detail, hint)


def _permissions(path: str, admits: Mode) -> Iterator[Finding]:
    mode = stat.S_IMODE(os.stat(path).st_mode)
    directory = os.path.dirname(path)
    above = os.stat(directory).st_mode
    locked = [one for one in (path, directory) if not os.access(one, os.W_OK)]
    if locked and admits != Mode.READONLY:
        yield problem(f"{locked[0]} is not writable", _WRITABLE)
    elif mode & 0o077:
        yield warning(f"{path} is open to others ({mode:o})", f"chmod 600 {path}")
    elif above & 0o022 and not above & stat.S_ISVTX:
        detail = f"others can replace files in {directory} ({stat.S_IMODE(above):o})"
        yield warning(detail, f"chmod go-w {directory}")
    else:
        yield ok(f"{mode:o}, in a directory with {stat.S_IMODE(above):o}")


def _lock(path: str) -> Iterator[Finding]:
    state = locks.use(path)
    if state == "exclusive":
        hint = "wait for it; if it lasts, close the other clients of this project"
        yield warning("a server is creating or migrating the database", hint)
    else:
        users = "no server" if state == "free" else "at least one server"
        yield ok(f"{users} is using the database")


def _content(path: str) -> Iterator[Finding]:
    try:
        reader = open_reader(path, untouched=True)
    except Outdated as outdated:
        yield warning(outdated.message, outdated.hint)
        return
    except ResourceError as unusable:
        yield problem(unusable.message, unusable.hint)
        return
    try:
        yield ok(f"{path}, schema version {load_migrations()[-1].version}")
        yield _records(reader)
    except errors(Damaged, UnicodeDecodeError) as unreadable:
        yield problem(f"{path} cannot be read: {unreadable}", _DAMAGED, "records")
    finally:
        reader.close()


def _records(reader: Connection) -> Finding:
    with reader:  # one transaction: what is read belongs together
        found, checked = newest_records(reader)
        for table in small_tables(reader):
            found += [f"table {table}: {what}" for what in quick_check(reader, table)]
    if found:
        return problem(found[0], _DAMAGED, "records")
    return ok(checked, "records")


def _write_ahead_log(path: str) -> Iterator[Finding]:
    try:
        size = os.stat(f"{path}-wal").st_size
    except FileNotFoundError:
        size = 0
    if size > LARGE_WAL:
        hint = "it shrinks when all servers and readers of this database have ended"
        yield warning(f"{size // MIB:,} MiB", hint)
    elif size and locks.use(path) == "free":
        taken_over = "the last server did not end cleanly; the next one will recover it"
        yield ok(f"{size // 1024:,} KiB; {taken_over}")
    else:
        yield ok(f"{size // 1024:,} KiB")
