"""`colibri move-ledger`: everything arrives, whatever interrupts it, and one place is written."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from colibri.core.errors import ResourceError
from colibri.store import ledger, moved
from colibri.store.verify import verify
from tests.support.client import COLIBRI as SERVE
from tests.support.client import JSON, Server, environment
from tests.support.ledger_reader import booted, eventually, reading, verified
from tests.support.ledger_writer import LOG, Lab, no_pause, opened
from tests.support.moved_ledger import fill, require_same, save, shared
from tests.support.postgres import (
    copying,
    expected,
    fresh_schema,
    moving,
    psycopg,
    server,
    team,
)
from tests.support.program import INTERRUPTIBLE, UNMEASURED, database_of, head_of, tamper
from tests.support.random_logs import random_log
from tests.support.sample_project import Printed

from colibri.store.postgres import SCHEMA  # isort: skip - after the check that psycopg is there

OTHER = "colibri/" + "f" * 32
KILLS = 4  # of each of five
# Moves a ledger in small parts; after so many calls of functions, the process is killed.
MORTAL = """
import os, signal, sys
left = int(sys.argv.pop(1))
def count(frame, event, argument):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
from colibri import cli
from colibri.store.postgres import copying
copying.PART = 20
sys.setprofile(count)
code = cli.main(sys.argv[1:])
sys.setprofile(None)
print(left, file=sys.stderr)
sys.exit(code)
"""


_numbers = count(1)


def new_name() -> str:
    """Of a schema that does not exist."""
    return f"m{os.getpid()}_{next(_numbers)}"


def place_of(schema: str) -> str:
    return f"{server().url().replace('admin@', '')}#{schema}"


def target(schema: str, user: str = "admin") -> tuple[str, ...]:
    return "--to", server().url(user), "--schema", schema


def rows(statement: str, *values: object) -> list[Any]:
    with server().connect() as admin:
        return admin.execute(statement.encode(), values).fetchall()


def meta(schema: str) -> dict[str, str]:
    return dict(rows(f"SELECT key, value FROM {schema}.meta"))


def exists(schema: str) -> bool:
    return bool(rows("SELECT 1 FROM pg_namespace WHERE nspname = %s", schema))


def mark_of(project: Path) -> moved.Mark | None:
    with reading(database_of(project)) as db:
        return moved.mark_of(db)


def on_server(schema: str, role: str = "writer") -> dict[str, Any]:
    """What a machine sets to use the ledger of a schema."""
    return {"COLIBRI_DB_URL": server().url(f"{schema}_{role}"), "COLIBRI_DB_SCHEMA": schema}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("filled") / "project", 600)


@pytest.fixture
def full(filled: Path, tmp_path: Path) -> Path:
    """A project with a ledger that has everything in it."""
    return Path(shutil.copytree(filled, tmp_path / "full"))


# What arrives.


def test_every_row_bundle_and_answer_is_the_same(full: Path, colibri: Printed) -> None:
    schema, head = new_name(), head_of(database_of(full))
    code, out, err = colibri(full, "move-ledger", *target(schema))
    assert (code, err) == (0, "")
    assert out.startswith(f"moved    862 records to {place_of(schema)}, checked\n")
    assert f"head     {head}\n" in out
    require_same(full, schema)
    with shared(schema) as copy:
        assert ledger.log_id(copy) == LOG
        assert expected.foreign(copy) == []
        for table in ("ledger", *sum(copying.GROUPS, ())):
            assert copy.execute(f"SELECT EXISTS (SELECT 1 FROM {table})").get, table
    assert meta(schema) == {"log": LOG, "schema": str(SCHEMA), "verified": "862"}


def test_a_ledger_without_a_record_is_moved_as_well(tmp_path: Path, colibri: Printed) -> None:
    with opened(tmp_path):
        pass
    schema = new_name()
    code, out, _ = colibri(tmp_path, "move-ledger", *target(schema), "--json")
    assert (code, json.loads(out)["head"], meta(schema)["log"]) == (0, None, LOG)
    with Server(tmp_path, SERVE, **on_server(schema)) as client:
        assert client.data("task_create", title="the first")["task_id"] == "T-0001"


def test_json_says_what_was_done(project: Path, colibri: Printed) -> None:
    schema = new_name()
    code, out, err = colibri(project, "move-ledger", *target(schema), "--json")
    seq, leaf = head_of(database_of(project)).split(":")
    told = {
        "moved": True,
        "from": str(database_of(project)),
        "to": place_of(schema),
        "log": LOG,
        "records": 54,
        "head": {"seq": int(seq), "leaf": leaf},
        "found": "empty",
    }
    assert (code, json.loads(out), err) == (0, told, "")
    code, out, _ = colibri(project, "move-ledger", *target(schema), "--json")
    assert (code, json.loads(out)) == (0, {**told, "found": "whole"})
    _, out, _ = colibri(project, "move-ledger", *target(schema))
    assert ", which was done before\n" in out


def test_an_empty_schema_that_team_init_made_is_taken(project: Path, colibri: Printed) -> None:
    schema = fresh_schema(OTHER, new_name())
    assert colibri(project, "move-ledger", *target(schema))[0] == 0
    assert meta(schema)["log"] == LOG
    require_same(project, schema)


# Afterwards.


def test_a_server_continues_the_log_and_the_file_is_refused(
    project: Path, colibri: Printed
) -> None:
    schema, before = new_name(), head_of(database_of(project))
    assert colibri(project, "move-ledger", *target(schema))[0] == 0
    with Server(project, SERVE, **on_server(schema)) as client:
        answer = client.call("task_create", title="go on")
        receipt = answer["_meta"]["colibri/receipt"]
        assert (receipt["log"], receipt["seq"]) == (LOG, 58)
        assert len(client.data("thought_record_list", session_id="S-1")["records"]) == 5
        assert client.data("audit_verify_chain")["valid"] is True
    said = f"the ledger of {database_of(project)} was moved to {place_of(schema)}"
    with Server(project, SERVE) as client:
        refused = client.call("task_create", title="no more")["structuredContent"]["error"]
        assert (refused["code"], said in refused["message"]) == ("UNAVAILABLE", True)
        assert "set COLIBRI_DB_URL and COLIBRI_DB_SCHEMA" in refused["message"], "what to do"
        assert client.close() == 75
        assert said in client.stderr and "hint: set COLIBRI_DB_URL" in client.stderr
    assert head_of(database_of(project)) == before
    code, _, err = colibri(project, "add", "no more")
    assert (code, "set COLIBRI_DB_URL" in err) == (75, True)
    code, _, err = colibri(project, "erase", "9", "--reason", "none", "--yes")
    assert (code, said in err) == (75, True)
    code, _, err = colibri(project, "move-ledger", *target(new_name()))
    assert (code, said in err) == (75, True)


def test_the_file_can_still_be_read(project: Path, colibri: Printed) -> None:
    schema = new_name()
    assert colibri(project, "move-ledger", *target(schema))[0] == 0
    code, out, err = colibri(project, "status")
    note = f"this ledger was moved to {place_of(schema)}: what is shown here ends with that"
    assert (code, "54" in out, err) == (0, True, f"colibri: {note}\n")
    assert colibri(project, "verify")[0] == 0
    assert colibri(project, "backup", str(project / "copy.db"))[0] == 0
    code, _, err = colibri(project, "restore", str(project / "copy.db"), "--force")
    assert (code, "a copy here would be a second one" in err) == (75, True)
    with Server(project, SERVE, COLIBRI_MODE="READONLY") as client:
        assert client.data("task_get", task_id="T-0001")["status"] == "DONE"


# What is refused before anything is copied.


def test_a_tampered_file_is_refused(project: Path, colibri: Printed) -> None:
    schema = new_name()
    tamper(database_of(project), "UPDATE ledger SET agent = 'eve' WHERE seq = 9")
    code, out, err = colibri(project, "move-ledger", *target(schema))
    assert (code, out) == (1, "")
    assert "is not sound, so nothing was copied: record 9: altered-header" in err
    assert (exists(schema), mark_of(project)) == (False, None)


def test_a_file_without_records_that_a_witness_knows_is_refused(
    tmp_path: Path, colibri: Printed
) -> None:
    """The user's state directory has a head of the log as it was."""
    with Server(tmp_path, SERVE) as client:
        for number in range(3):
            client.data("task_create", title=f"task {number}")
    shutil.copytree(tmp_path / "data", tmp_path / "old")
    with Server(tmp_path, SERVE) as client:
        client.data("task_create", title="lost")
    shutil.rmtree(tmp_path / "data")
    (tmp_path / "old").rename(tmp_path / "data")
    schema = new_name()
    code, _, err = colibri(tmp_path, "move-ledger", *target(schema))
    assert (code, "so nothing was copied" in err, exists(schema)) == (1, True, False)


def test_a_damaged_file_is_refused(project: Path, colibri: Printed) -> None:
    data = bytearray(database_of(project).read_bytes())
    page = data.index(b"call.enter") // 4096 * 4096
    data[page : page + 4096] = b"\xff" * 4096
    database_of(project).write_bytes(data)
    schema = new_name()
    code, _, err = colibri(project, "move-ledger", *target(schema))
    assert (code, "a damaged one" in err, exists(schema)) == (75, True, False)


def test_a_schema_with_records_is_refused(
    project: Path, tmp_path_factory: pytest.TempPathFactory, colibri: Printed
) -> None:
    schema, other = new_name(), tmp_path_factory.mktemp("other")
    with opened(other, OTHER) as db:
        Lab(db, OTHER).create()
    assert colibri(other, "move-ledger", *target(schema))[0] == 0
    code, _, err = colibri(project, "move-ledger", *target(schema))
    said = f"the schema {schema} is not empty: it holds 4 records of {OTHER}"
    assert (code, said in err, mark_of(project)) == (75, True, None)


def test_a_schema_of_another_program_is_refused(project: Path, colibri: Printed) -> None:
    schema = new_name()
    with server().connect() as admin:
        admin.execute(f"CREATE SCHEMA {schema}".encode())
    code, _, err = colibri(project, "move-ledger", *target(schema))
    assert (code, "was not made by Colibri" in err, mark_of(project)) == (75, True, None)


def test_a_running_server_is_not_disturbed(project: Path, colibri: Printed) -> None:
    schema = new_name()
    with Server(project, SERVE) as client:
        client.data("task_create", title="mine")
        code, _, err = colibri(project, "move-ledger", *target(schema))
        assert (code, "a Colibri server is using" in err, exists(schema)) == (75, True, False)
        client.data("task_create", title="still mine")
    assert colibri(project, "move-ledger", *target(schema))[0] == 0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, "--to URL is missing"),
        (("--to", "db.example.org"), 2, "must look like postgresql://"),
        (("--to", "postgresql://a:secret@localhost/x"), 2, "has a password in it"),
        (("--to", "postgresql://a@127.0.0.1:1/x"), 75, "cannot connect to PostgreSQL"),
        (("--to", "postgresql://a@127.0.0.1:1/x", "--schema", "No!"), 75, "name of a schema"),
        (("--undo",), 1, "was not moved"),
    ],
)
def test_a_mistake_is_explained(
    project: Path, colibri: Printed, arguments: tuple[str, ...], code: int, said: str
) -> None:
    found = colibri(project, "move-ledger", *arguments)
    assert (found[0], found[1], said in found[2], "secret" in found[2]) == (code, "", True, False)


def test_a_project_without_a_ledger_is_told_so(tmp_path: Path, colibri: Printed) -> None:
    code, _, err = colibri(tmp_path, "move-ledger", *target(new_name()))
    assert (code, "there is no database at" in err) == (75, True)
    assert not (tmp_path / "data").exists()


def test_the_missing_library_is_named(
    project: Path, colibri: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "colibri.store.postgres.faults", None)
    code, _, err = colibri(project, "move-ledger", *target(new_name()))
    assert (code, "needs psycopg" in err) == (75, True)
    assert "colibri-mcp[postgres]" in err


def test_somebody_without_the_right_is_told_which_one(project: Path, colibri: Printed) -> None:
    schema = fresh_schema(OTHER, new_name())
    code, _, err = colibri(project, "move-ledger", *target(schema, f"{schema}_writer"))
    assert (code, f"a member of {schema}_owner" in err, mark_of(project)) == (75, True, None)
    code, _, err = colibri(project, "move-ledger", *target(new_name(), f"{schema}_writer"))
    assert (code, "may not make it" in err, mark_of(project)) == (75, True, None)


def test_the_character_that_postgresql_has_not_is_named(tmp_path: Path, colibri: Printed) -> None:
    with opened(tmp_path) as db:
        Lab(db).create("a \0 b")
    code, _, err = colibri(tmp_path, "move-ledger", *target(new_name()))
    assert (code, "PostgreSQL cannot hold a text of the file" in err) == (75, True)
    assert "U+0000" in err
    assert colibri(tmp_path, "move-ledger", "--undo")[0] == 0


# Interruptions.


@pytest.mark.parametrize("seed", range(5))
def test_killed_at_any_moment_it_is_continued(tmp_path: Path, seed: int) -> None:
    """And meanwhile no server can write to either place, once the first record is copied."""
    chance = random.Random(seed)
    filled = save(random_log(chance, 80), tmp_path / "filled")
    project, schema = Path(shutil.copytree(filled, tmp_path / "0")), new_name()
    _, last = _mortal(project, schema, 10**12)
    calls, kills, copies = 10**12 - int(last.split()[-1]), 0, 0
    require_same(project, schema)
    while kills < KILLS:
        copies += 1
        project, schema, code = Path(shutil.copytree(filled, tmp_path / str(copies))), new_name(), 1
        while code and kills < KILLS:
            code, said = _mortal(project, schema, chance.randrange(calls))
            assert code in (0, -signal.SIGKILL), said
            kills += code != 0
            _require_one_writable(project, schema)
        assert _mortal(project, schema, 10**12)[0] == 0
        require_same(project, schema)
        verified(database_of(project))


def _mortal(project: Path, schema: str, calls: int) -> tuple[int, str]:
    done = subprocess.run(
        [
            *(sys.executable, "-c", MORTAL, str(calls), "move-ledger", *target(schema)),
            *("--project", str(project)),
        ],
        env=environment(**UNMEASURED),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


def _require_one_writable(project: Path, schema: str) -> None:
    """The file or the copy, or none of them."""
    mark = mark_of(project)
    if not exists(schema):
        assert mark is None
        return
    found = meta(schema)
    assert found["log"] == LOG
    if found["schema"] == str(SCHEMA):
        assert mark == (moved.FINISHED, place_of(schema))
        return
    with psycopg.connect(server().url(f"{schema}_writer"), autocommit=True) as writer:
        with pytest.raises(psycopg.Error) as refused:
            writer.execute("SELECT lock_head(%s)", (SCHEMA,))
        assert refused.value.sqlstate == "CB001"
    with server().connect() as admin:
        copied = admin.execute(f"SELECT count(*) FROM {schema}.ledger".encode()).fetchone()
    assert copied == (0,) or mark is not None


def unfinished(project: Path, schema: str, parts: int = 2) -> None:
    """Copy some records, and end as if it had been interrupted."""
    with pytest.MonkeyPatch.context() as patch, reading(database_of(project)) as db:
        patch.setattr(copying, "PART", 10)
        seen: list[int] = []

        def stop(done: int, of: int) -> None:
            seen.append(done)
            if len(seen) > parts:
                raise ConnectionError

        with pytest.raises(ConnectionError), moving.target(server().url(), schema) as copy:
            assert copy.begin(ledger.log_id(db), ledger.head(db)) == "empty"
            copy.copy(db, stop)
    with opened(project) as db:
        moved.set_mark(db, moved.Mark(moved.UNFINISHED, place_of(schema)))


def test_an_unfinished_copy_cannot_be_used(project: Path, colibri: Printed) -> None:
    schema = new_name()
    unfinished(project, schema)
    for role in ("writer", "reader"):
        mode = "READONLY" if role == "reader" else "FULL"
        with Server(project, SERVE, COLIBRI_MODE=mode, **on_server(schema, role)) as client:
            refused = client.call("task_list")["structuredContent"]["error"]
            assert "holds an unfinished copy of a ledger" in refused["message"]
    with server().connect() as admin, pytest.raises(ResourceError, match="unfinished") as told:
        team.make(admin, schema, LOG)
    assert "after --undo unset COLIBRI_DB_URL" in told.value.hint
    with Server(project, SERVE) as client:
        refused = client.call("task_list")["structuredContent"]["error"]
        assert "is being moved to" in refused["message"]
    assert colibri(project, "move-ledger", *target(schema))[0] == 0
    require_same(project, schema)


def test_an_unfinished_copy_of_another_log_is_refused(
    project: Path, tmp_path_factory: pytest.TempPathFactory, colibri: Printed
) -> None:
    schema, other = new_name(), tmp_path_factory.mktemp("other")
    with opened(other, OTHER) as db:
        Lab(db, OTHER).create()
    unfinished(other, schema, parts=0)
    code, _, err = colibri(project, "move-ledger", *target(schema))
    assert (code, f"is of another log, {OTHER}" in err) == (75, True)


def test_an_unfinished_copy_with_other_records_is_refused(
    project: Path, tmp_path_factory: pytest.TempPathFactory, colibri: Printed
) -> None:
    """Two files can have the same log: one is a copy, to which somebody wrote."""
    schema, other = new_name(), tmp_path_factory.mktemp("other")
    with opened(other) as db:
        Lab(db).create("another first task")
    unfinished(other, schema)
    code, _, err = colibri(project, "move-ledger", *target(schema))
    assert (code, "that the file has not" in err) == (75, True)


def test_undo_stays_with_the_file_and_a_later_move_brings_what_is_new(
    project: Path, colibri: Printed
) -> None:
    """Texts that were erased meanwhile are erased in the copy."""
    schema = new_name()
    unfinished(project, schema, parts=9)
    assert colibri(project, "move-ledger", "--undo")[0] == 0
    with opened(project) as db:
        lab = Lab(db)
        lab.think("S-2", "one more")
        lab.erase_everywhere(lab.seqs("thought", session="S-1")[0])
        lab.create("one more task")
    code, out, _ = colibri(project, "move-ledger", *target(schema), "--json")
    assert (code, json.loads(out)["found"]) == (0, "unfinished")
    require_same(project, schema)


def test_undo_after_the_move_goes_back_if_nothing_was_written(
    project: Path, colibri: Printed
) -> None:
    schema = new_name()
    assert colibri(project, "move-ledger", *target(schema))[0] == 0
    code, _, err = colibri(project, "move-ledger", "--undo")
    assert (code, f"was moved to {place_of(schema)}: name that place" in err) == (1, True)
    code, out, _ = colibri(project, "move-ledger", "--undo", *target(schema))
    assert (code, out.startswith("undone   servers write to ")) == (0, True)
    assert meta(schema)["schema"] == str(-SCHEMA)
    with Server(project, SERVE) as client:
        client.data("task_create", title="in the file again")
    assert colibri(project, "move-ledger", *target(schema))[0] == 0
    require_same(project, schema)
    with Server(project, SERVE, **on_server(schema)) as client:
        client.data("task_create", title="in the database")
    code, _, err = colibri(project, "move-ledger", "--undo", *target(schema))
    assert (code, "records that the file has not" in err) == (75, True)
    assert mark_of(project) == (moved.FINISHED, place_of(schema))


def test_undo_goes_back_if_the_schema_was_dropped(project: Path, colibri: Printed) -> None:
    schema = new_name()
    assert colibri(project, "move-ledger", *target(schema))[0] == 0
    with server().connect() as admin:
        admin.execute(f"DROP SCHEMA {schema} CASCADE".encode())
    code, out, _ = colibri(project, "move-ledger", "--undo", *target(schema), "--json")
    told: JSON = json.loads(out)
    assert (code, told["moved"], told["to"], mark_of(project)) == (0, False, place_of(schema), None)


def test_a_server_on_an_empty_schema_cannot_write_to_the_copy(
    project: Path, colibri: Printed
) -> None:
    """It has opened the ledger that was there before, under another name."""
    schema = fresh_schema(OTHER, new_name())
    elsewhere = project / "elsewhere"
    elsewhere.mkdir()
    with Server(elsewhere, SERVE, **on_server(schema)) as client:
        booted(client)
        assert colibri(project, "move-ledger", *target(schema))[0] == 0
        client.call("task_create", title="too late")
        client.call("task_create", title="too late again")
    with shared(schema) as db:
        assert verify(db, pause=no_pause).valid
        assert db.execute("SELECT count(*) FROM tasks").get == 1


def test_two_cannot_fill_a_schema_at_once(
    project: Path, colibri: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = new_name()
    monkeypatch.setattr(moving, "_SECONDS", 0.1)
    with moving.target(server().url(), schema):
        code, _, err = colibri(project, "move-ledger", *target(schema))
    assert (code, "another colibri move-ledger is at work" in err) == (75, True)


def test_a_connection_that_breaks_is_reported_and_it_continues(
    project: Path, colibri: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = new_name()
    whole = copying._Copying.group

    def cut(self: Any, *arguments: Any) -> None:
        rows("SELECT pg_terminate_backend(%s)", self._pg.info.backend_pid)
        whole(self, *arguments)

    monkeypatch.setattr(copying._Copying, "group", cut)
    code, _, err = colibri(project, "move-ledger", *target(schema))
    assert (code, "the same command again: it continues" in err) == (75, True)
    monkeypatch.setattr(copying._Copying, "group", whole)
    assert colibri(project, "move-ledger", *target(schema))[0] == 0
    require_same(project, schema)


def test_a_copy_that_is_not_sound_is_not_used(
    project: Path, colibri: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = new_name()
    whole = moving.Target.check

    def change(self: Any, *arguments: Any) -> Any:
        rows(f"UPDATE {schema}.tasks SET title = 'another' WHERE number = 1 RETURNING 1")
        return whole(self, *arguments)

    monkeypatch.setattr(moving.Target, "check", change)
    code, _, err = colibri(project, "move-ledger", *target(schema))
    assert (code, "the copy is not sound" in err) == (1, True)
    assert meta(schema)["schema"] == str(-SCHEMA)
    mark = mark_of(project)
    assert mark and not mark.is_finished


def test_an_interrupt_says_how_to_continue(full: Path) -> None:
    schema = new_name()
    slow = "from colibri.store.postgres import copying; copying.PART = 5; "
    *python, program = INTERRUPTIBLE
    process = subprocess.Popen(
        [*python, slow + program, "move-ledger", *target(schema), "--project", str(full)],
        env=environment(**UNMEASURED),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    eventually(
        lambda: exists(schema) and rows(f"SELECT 1 FROM {schema}.ledger LIMIT 1"), "a record"
    )
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err.startswith("colibri: error: interrupted after about ")
    assert "the same command continues; move-ledger --undo stays with the file" in err
    done = subprocess.run(
        [sys.executable, "-m", "colibri", "move-ledger", *target(schema), "--project", str(full)],
        env=environment(),
        check=False,
    )
    assert done.returncode == 0
    require_same(full, schema)
