"""An index rebuilt over other keys, under the definition that it always had, is found.

Each is emptied, made to hide some rows, filled from another column, or given entries too many.
"""

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from colibri.store.sqlite import expected, indexes
from colibri.store.sqlite.opening import open_reader
from tests.store.test_schema import made
from tests.support.client import COLIBRI, Server
from tests.support.ledger_writer import Lab, no_pause, opened

NAMED = [
    (str(name), str(table), str(sql))
    for name, table, sql in made().execute(
        "SELECT name, tbl_name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"
    )
]
# Of each table a column that no index of it begins with, and a condition on some of its rows.
OTHER = {
    "ledger": ("at", "seq % 2"),
    "thoughts": ("idx", "seq % 2"),
    "tasks": ("version", "number % 2"),
    "sessions": ("record_count", "open_seq % 2"),
    "task_dependencies": ("position", "position"),
    "deeds": ("seq", "seq % 2"),
}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Path]:
    with opened(tmp_path) as db:
        lab = Lab(db)
        for number in range(20):
            lab.create(f"task {number}", project=f"p{number % 3}", assignee=f"a{number % 2}")
        lab.create("the last", "T-0001", "T-0002")
        for session in ("S-1", "S-2"):
            lab.start(session)
            for type in ("plan", "decision", "plan"):
                lab.think(session, type=type, task="T-0003")
        lab.move("T-0004", "GATHER", session="S-1")
        lab.move("T-0005", "GATHER", session="S-1")
        lab.erase(lab.think("S-1").seq)
        lab.seal("S-2")
        lab.client = "host"
        for session in ("S-3", "S-4"):
            lab.start(session)
            lab.deed()  # so the records of the next are even where these are odd
            began: dict[str, Any] = {"tool": "audit_session_start", "class_": "mcp"}
            lab.use = session
            lab.resume(session)
            lab.deed(**began, host_session=session, use=session)
    yield tmp_path / "data" / "colibri.db"


def redefine(database: Path, name: str, sql: str) -> None:
    """Write a definition into the schema and have SQLite believe it."""
    with closing(apsw.Connection(str(database))) as db:
        db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (sql, name))


def rebuild(database: Path, name: str, honest: str, sql: str) -> None:
    redefine(database, name, sql)
    with closing(apsw.Connection(str(database))) as db:
        db.execute(f"REINDEX {name}")
    redefine(database, name, honest)


def found(database: Path, slice_size: int = 7) -> list[str]:
    with closing(open_reader(str(database))) as reader:
        assert expected.foreign(reader) == []
        return [*indexes.damaged(reader, pause=no_pause, slice_size=slice_size)]


def test_honest_indexes_yield_no_finding(database: Path) -> None:
    assert found(database) == []


@pytest.mark.parametrize("way", ["emptied", "hides rows", "another column"])
@pytest.mark.parametrize(("name", "table", "sql"), NAMED, ids=[name for name, _, _ in NAMED])
def test_every_index_is_compared_with_its_table(
    database: Path, name: str, table: str, sql: str, way: str
) -> None:
    definition, _, condition = sql.partition(" WHERE ")
    key, some = OTHER[table]
    other = {
        "emptied": f"{definition} WHERE false",
        "hides rows": f"{definition} WHERE {condition or 'true'} AND {some}",
        "another column": re.sub(r"\(\w+", f"({key}", sql),
    }[way]
    rebuild(database, name, sql, other)
    assert found(database)


def test_entries_too_many_are_found(database: Path) -> None:
    """They would have every record pass for an erasure."""
    name, _, sql = next(one for one in NAMED if one[0] == "ledger_erasures")
    rebuild(database, name, sql, sql.partition(" WHERE ")[0])
    (what,) = found(database)
    assert re.fullmatch(f"the index {name} has [0-9]+ entries for 1 rows of ledger", what)


def test_two_indexes_that_were_exchanged_are_found(database: Path) -> None:
    """The schema says where each one begins; that is no part of its definition."""
    with closing(apsw.Connection(str(database))) as db:
        db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
        db.execute("PRAGMA writable_schema = ON")
        pages: dict[str, int] = dict(
            db.execute("SELECT name, rootpage FROM sqlite_schema WHERE name LIKE 'ledger_by_%'")
        )
        one, other = pages
        for name, page in ((one, pages[other]), (other, pages[one])):
            db.execute("UPDATE sqlite_schema SET rootpage = ? WHERE name = ?", (page, name))
    assert len(found(database)) == 2


def test_the_index_of_a_key_is_compared_too(database: Path) -> None:
    with closing(apsw.Connection(str(database))) as db:
        honest = str(db.execute("SELECT sql FROM sqlite_schema WHERE name = 'thoughts'").get)
    swapped = honest.replace("UNIQUE (session, idx)", "UNIQUE (idx, session)")
    assert swapped != honest
    rebuild(database, "thoughts", honest, swapped)
    assert "sqlite_autoindex_thoughts_1" in found(database)[0]


def test_the_search_index_is_compared_too(database: Path) -> None:
    """It is made of tables of its own, in which somebody makes it forget a task."""
    with closing(apsw.Connection(str(database))) as db:
        db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
        db.execute("DELETE FROM task_search_data WHERE id > 10")
    assert found(database)


def test_audit_verify_chain_finds_it(tmp_path: Path) -> None:
    """The tools then show a lie while every record and every row is sound."""
    name, _, sql = next(one for one in NAMED if one[0] == "thoughts_of_task")
    with Server(tmp_path, COLIBRI) as server:
        server.data("task_create", title="roof")
        session = server.data("audit_session_start", intent="try")["session_id"]
        server.data(
            "thought_record", session_id=session, content="x", type="plan", task_id="T-0001"
        )
        assert server.data("audit_verify_chain")["valid"] is True
        assert server.close() == 0
    rebuild(server.database, name, sql, f"{sql} AND false")
    with Server(tmp_path, COLIBRI) as server:
        assert server.data("thought_record_list", task_id="T-0001")["records"] == []
        verdict = server.data("audit_verify_chain")
        assert verdict["valid"] is False
        assert [broken["what"] for broken in verdict["breaks"]] == ["damaged-file"]
        assert name in verdict["breaks"][0]["detail"]
        assert server.close() == 0
