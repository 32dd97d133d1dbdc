"""The database that tests are given: SQLite, or a schema on PostgreSQL.

The fixture `engine` of tests/conftest.py chooses. ledger_writer.in_memory follows, and so do
programs that are started with `environment`, and ledger_reader, which looks at what they wrote.
"""

import os
import weakref
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing, contextmanager
from pathlib import Path
from types import CodeType
from typing import Any

import apsw
import pytest

from colibri.store.connection import Connection

ENGINES = ("sqlite", "postgres")

_chosen = ["sqlite"]
_own_logs = [False]
_free: list[str] = []  # schemas that nobody uses now


_of_projects: dict[Path, str] = {}  # the schemas of servers in these directories


def parametrize(
    metafunc: pytest.Metafunc,
    on_both: set[str],
    file_only: set[Any],
    often: set[str] | None = None,
    of_a_file: AbstractSet[str] = frozenset(),
) -> None:
    """Run the tests of some modules on both engines, but for those that call what is only for a
    file, or take a fixture that is. Of modules that are not run `often` on PostgreSQL, that half is
    `long`.
    """
    property = getattr(metafunc.function, "hypothesis", None)  # where it is one
    names = _names((property.inner_test if property else metafunc.function).__code__)
    called = {one for name in names if callable(one := getattr(metafunc.module, name, None))}
    only = {"apsw", "drop_triggers", "require_sqlite"}
    is_for_both = not (called & file_only or names & only or of_a_file & {*metafunc.fixturenames})
    module = metafunc.module.__name__.rpartition(".")[2]
    if module in on_both and is_for_both:
        run_on_both(metafunc, often is None or module in often)
    elif module in on_both:  # so that it shares what the other tests on SQLite have made
        metafunc.parametrize("engine", ["sqlite"], indirect=True, scope="module")


def _names(code: CodeType) -> set[str]:
    """What a function names, also in functions within it."""
    within = [one for one in code.co_consts if isinstance(one, CodeType)]
    return {*code.co_names}.union(*map(_names, within))


def run_on_both(metafunc: pytest.Metafunc, often: bool) -> None:
    marks = [pytest.mark.postgres] if often else [pytest.mark.postgres, pytest.mark.long]
    both = ("sqlite", pytest.param("postgres", marks=marks))
    metafunc.parametrize("engine", both, indirect=True, scope="module")


@contextmanager
def use(name: str, *, own_logs: bool = False) -> Iterator[None]:
    """With its own log, no project meets heads that servers kept of the one before it in a schema;
    without, all have the log of the tests.
    """
    _chosen.append(name)
    _own_logs.append(own_logs)
    try:
        yield
    finally:
        _chosen.pop()
        _own_logs.pop()


def environment(project: Path, role: str = "writer") -> dict[str, str]:
    """What a server in this directory needs, so that it uses the engine of the test."""
    if chosen() == "sqlite":
        return {}
    from tests.support import postgres

    name = schema_of(project)
    url = postgres.server().url(f"{name}_{role}")
    return {"COLIBRI_DB_URL": url, "COLIBRI_DB_SCHEMA": name}


def schema_of(project: Path) -> str:
    """The schema of the servers in a directory; a new one has no record."""
    from tests.support import postgres

    project = project.resolve()
    if project not in _of_projects:
        name = _free.pop() if _free else postgres.fresh_schema()
        postgres.empty(name, f"colibri/{os.urandom(16).hex()}" if _own_logs[-1] else postgres.LOG)
        _of_projects[project] = name
    return _of_projects[project]


def open_reader(project: Path) -> Connection:
    """What the servers in a directory have written, if they are on PostgreSQL."""
    from colibri.store.postgres.home import Home
    from tests.support import postgres

    name = schema_of(project)
    return Home(postgres.server().url(f"{name}_reader"), "the tests' ledger", name).open_reader()


def chosen() -> str:
    return _chosen[-1]


def on_postgres(log: str) -> Connection:
    """A schema without a record; the next test gets it once nobody holds the connection."""
    from tests.support import postgres  # which skips the test if there is none

    name = _free.pop() if _free else postgres.fresh_schema(log)
    postgres.empty(name, log)
    from colibri.store.postgres.connection import connect

    db = connect(postgres.server().url(f"{name}_eraser"))
    weakref.finalize(db, _release, db.pg, name)
    return db


def of_project(project: Path, role: str = "eraser") -> Connection:
    """A connection to the schema of a project."""
    from tests.support import postgres  # which skips the test if there is none

    name = schema_of(project)
    from colibri.store.postgres.connection import connect

    return connect(postgres.server().url(f"{name}_{role}"))


def release(folder: Path) -> None:
    """The projects below a folder are gone: others may have their schemas."""
    for project in [one for one in _of_projects if one.is_relative_to(folder.resolve())]:
        _free.append(_of_projects.pop(project))


def tamper(db: Connection, statement: str, values: Sequence[object] = ()) -> None:
    """Change rows behind the store's back: as a superuser, past the triggers."""
    if isinstance(db, apsw.Connection):
        db.execute("PRAGMA foreign_keys = OFF")
        db.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        db.execute(statement, values)
        db.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 1)
        db.execute("PRAGMA foreign_keys = ON")
        return
    from colibri.store.postgres.connection import connect
    from tests.support import postgres

    schema = db.execute("SELECT current_schema()").get
    with closing(connect(postgres.server().url())) as admin:
        admin.execute(f"SET search_path = {schema}; SET session_replication_role = replica")
        admin.execute(statement, values)


def blob(data: bytes) -> str:
    """Bytes, as SQL."""
    return f"x'{data.hex()}'" if chosen() == "sqlite" else f"'\\x{data.hex()}'::bytea"


def _release(pg: Any, name: str) -> None:
    pg.close()
    _free.append(name)


def require_sqlite(what: str) -> None:
    """Skip the rest of a test, which is about what only SQLite has."""
    if chosen() != "sqlite":
        pytest.skip(f"{what}: SQLite only")
