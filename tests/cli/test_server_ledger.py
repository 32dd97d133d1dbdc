"""What commands do with a ledger on PostgreSQL that a file does not need, or cannot do."""

import json
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from colibri.cli import follow
from colibri.store import ledger, log_tree
from colibri.store.homes import home_of
from tests.support import engines, postgres
from tests.support.client import Server, environment
from tests.support.committer import Committer
from tests.support.ledger_reader import eventually, reading
from tests.support.ledger_writer import Lab, opened, story
from tests.support.program import colibri, database_of, tamper
from tests.support.terminal import COLIBRI


@pytest.fixture(autouse=True)
def on_server() -> Iterator[None]:
    with engines.use("postgres"):
        yield


@pytest.fixture
def told(tmp_path: Path) -> Path:
    """A project with 54 records."""
    with opened(tmp_path) as db:
        story(Lab(db))
    return tmp_path


def as_role(project: Path, role: str) -> dict[str, Any]:
    return engines.environment(project, role)


# Reading.


def test_what_is_shown_is_flushed_first(told: Path) -> None:
    """Servers commit without waiting for the disk: a crash must not undo a head that is kept."""
    with closing(engines.of_project(told)) as writer, closing(_reader(told)) as reader:
        lab = Lab(writer)
        for _ in range(20):
            lab.read()
            with reader:
                ledger.head(reader)
                seen = reader.execute("SELECT CAST(pg_current_wal_insert_lsn() AS text)").get
                reader.engine.sync(reader)
                flushed = reader.execute(
                    "SELECT CAST(? AS pg_lsn) <= pg_current_wal_flush_lsn()", (seen,)
                ).get
            assert flushed is True


def test_a_server_that_writes_nothing_flushes_what_it_shows(told: Path) -> None:
    """Its own commits cannot do that."""
    with (
        closing(engines.of_project(told)) as writer,
        Server(told, COLIBRI_MODE="READONLY", **as_role(told, "reader")) as running,
    ):
        for _ in range(10):
            Lab(writer).read()
            seen = writer.execute("SELECT CAST(pg_current_wal_insert_lsn() AS text)").get
            running.data("task_list")
            with postgres.server().connect() as admin:
                flushed = admin.execute("SELECT %s <= pg_current_wal_flush_lsn()", (seen,))
                assert flushed.fetchone() == (True,)


def _reader(project: Path) -> Any:
    found = as_role(project, "reader")
    return home_of("", found["COLIBRI_DB_URL"], found["COLIBRI_DB_SCHEMA"], "it").open_reader()


def test_a_server_that_went_away_is_not_called_damage(tmp_path: Path) -> None:
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    env = {"COLIBRI_DB_URL": f"postgresql://a@127.0.0.1:{port}/x"}
    for command in ("status", "verify", "trail", "gate check", "heads"):
        code, out, err = colibri(tmp_path, *command.split(), **env)
        assert (code, out) == (75, ""), command
        assert "check that the server runs and that this machine can reach it" in err


def test_following_is_woken_by_the_server(told: Path) -> None:
    """Nobody asks again and again: a look every 10 s is only for what was missed."""
    process = subprocess.Popen(
        [*COLIBRI, "log", "--follow", "--json", "--limit", "1"],
        cwd=told,
        env=environment(**engines.environment(told)),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        assert json.loads(process.stdout.readline())["seq"] == 54
        with postgres.server().connect() as admin:
            listening = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
            eventually(lambda: admin.execute(listening).fetchone() != (0,), "somebody listens")
        began = time.monotonic()
        with opened(told) as db:
            Lab(db).read()
        assert json.loads(process.stdout.readline())["seq"] == 55
        assert time.monotonic() - began < follow.AT_MOST / 2
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()


def test_a_report_that_is_watched_ends_with_its_session(tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        lab = Lab(db)
        lab.start("S-1")
        lab.think()
    process = subprocess.Popen(
        [*COLIBRI, "report", "S-1", "-o", "page.html", "--watch"],
        cwd=tmp_path,
        env=environment(**engines.environment(tmp_path)),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert "watching for new records" in process.stderr.readline()
    with opened(tmp_path) as db:
        Lab(db).seal()
    assert process.wait(60) == 0
    process.stderr.close()
    assert (tmp_path / "page.html").exists()


# What a superuser of the database has changed.


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("UPDATE ledger SET at = '2026-01-01T00:00:00.000001Z' WHERE seq = 9", "altered-header"),
        ("DELETE FROM ledger WHERE seq = 9", "missing-record"),
        ("UPDATE tasks SET title = 'other' WHERE number = 1", "altered-task"),
        ("ALTER TABLE ledger DISABLE TRIGGER ledger_refuses_update", "foreign-schema"),
        ("CREATE TABLE more (x bigint)", "foreign-schema"),
        ("TRUNCATE ledger CASCADE", "truncated"),
    ],
)
def test_verify_names_what_was_done_to_it(told: Path, statement: str, code: str) -> None:
    with reading(database_of(told)) as db:
        head = ledger.head(db)
    assert head is not None
    schema = engines.schema_of(told)
    try:
        tamper(database_of(told), statement)
        known = ["--head", f"{head.seq}:{head.leaf.hex()}"]
        ended, out, _ = colibri(told, "verify", "--json", *known)
        assert ended == 1
        assert code in {one["code"] for one in json.loads(out)["findings"]}
    finally:
        with postgres.server().connect() as admin:  # another test gets the schema
            admin.execute(f"ALTER TABLE {schema}.ledger ENABLE TRIGGER USER".encode())
            admin.execute(f"DROP TABLE IF EXISTS {schema}.more".encode())


# Erasing.


def test_only_the_eraser_erases_and_is_named(told: Path) -> None:
    schema = engines.schema_of(told)
    (seq, *_) = [one for one in _seqs(told, "thought")]
    code, out, err = colibri(told, "erase", str(seq), "--reason", "asked", "--yes")
    assert (code, out) == (75, "")
    assert f"that is for the role {schema}_eraser" in err
    assert f"COLIBRI_DB_URL=postgresql://{schema}_eraser@" in err
    eraser = as_role(told, "eraser")
    code, out, err = colibri(told, "erase", str(seq), "--reason", "asked", "--yes", **eraser)
    assert (code, err) == (0, "")
    assert "PostgreSQL keeps it for a while, in dead rows, write-ahead log, standbys" in out
    assert f"VACUUM FULL {schema}.ledger, " in out
    assert "no trace is left" not in out
    code, out, _ = colibri(told, "verify", "--json")
    assert (code, json.loads(out)["verdict"]) == (0, "good")
    assert seq in json.loads(out)["erased"]


def test_what_it_says_an_administrator_can_do_works(told: Path) -> None:
    (seq, *_) = [one for one in _seqs(told, "thought")]
    eraser = as_role(told, "eraser")
    arguments = ("erase", str(seq), "--reason", "asked", "--yes", "--json")
    code, out, _ = colibri(told, *arguments, **eraser)
    done = json.loads(out)
    assert (code, done["gone"], done["erasure"]["seq"]) == (0, False, 55)
    assert done["kept_in"] == ["dead rows", "write-ahead log", "standbys", "backups"]
    code, _, err = colibri(told, "erase", "--finish", **eraser)
    assert code == 1
    statement = err.partition("as an administrator: ")[2].partition(";")[0]
    assert statement.startswith("VACUUM FULL ")
    with postgres.server().connect() as admin:
        admin.execute(statement.encode())
    assert colibri(told, "verify")[0] == 0
    assert colibri(told, "add", "the lock is still the same")[0] == 0


def _seqs(project: Path, kind: str) -> list[int]:
    with reading(database_of(project)) as db:
        rows = db.execute("SELECT seq FROM ledger WHERE kind = ? ORDER BY seq", (kind,))
        return [seq for (seq,) in rows]


# Copies.


def test_backup_and_restore_say_what_to_do_instead(told: Path) -> None:
    code, out, err = colibri(told, "backup", "copy.db")
    assert (code, out) == (1, "")
    assert f"pg_dump --format=custom --schema={engines.schema_of(told)} copies it" in err
    code, out, err = colibri(told, "restore", "copy.db")
    assert (code, out) == (1, "")
    assert "pg_restore puts a dump" in err
    assert [path.name for path in told.iterdir()] == []


def test_a_dump_that_was_put_back_is_the_same_ledger(told: Path) -> None:
    """As backup and restore say."""
    programs, server = postgres.programs(), postgres.server()
    assert programs is not None
    schema, dump = engines.schema_of(told), told / "dump"
    code, out, _ = colibri(told, "verify", "--json")
    head = json.loads(out)["head"]
    made = ("--format=custom", f"--schema={schema}", f"--file={dump}", server.url())
    subprocess.run([programs / "pg_dump", *made], check=True)
    database = f"copy_{schema}"
    with server.connect() as admin:
        admin.execute(f"CREATE DATABASE {database} TEMPLATE template0 ENCODING 'UTF8'".encode())
    there = server.url().rpartition("/")[0]
    subprocess.run([programs / "pg_restore", f"--dbname={there}/{database}", dump], check=True)
    env = engines.environment(told)
    env["COLIBRI_DB_URL"] = f"{env['COLIBRI_DB_URL'].rpartition('/')[0]}/{database}"
    known = f"{head['seq']}:{head['leaf']}"
    code, out, err = colibri(told, "verify", "--json", "--head", known, **env)
    assert (code, json.loads(out)["head"]) == (0, head), (out, err)
    assert colibri(told, "add", "it goes on", **env)[0] == 0
    with server.connect() as admin:
        admin.execute(f"DROP DATABASE {database}".encode())


# Witnesses.


def test_a_witness_keeps_the_roots_of_the_log(tmp_path: Path) -> None:
    """A checkpoint of a long log costs what is new; a reader's computes all, and keeps nothing."""
    ann = Committer(tmp_path, story=False)
    with opened(ann.project) as db:
        lab = Lab(db)
        for _ in range(300):
            lab.read()
    reader: Any = as_role(ann.project, "reader")
    writer: Any = as_role(ann.project, "writer")
    assert ann.colibri("witness", "--json", **reader)[0] == 0
    with reading(database_of(ann.project)) as db:
        assert log_tree.is_behind(db)
    code, out, _ = ann.colibri("witness", "--json", **writer)
    assert (code, json.loads(out)["new"]) == (0, False)
    with reading(database_of(ann.project)) as db:
        assert not log_tree.is_behind(db)
    code, out, _ = ann.colibri("verify", "--json", **writer)
    (kept,) = json.loads(out)["witnesses"]
    assert (code, kept["kind"], kept["result"]) == (0, "ref", "held")


def test_heads_notice_records_that_are_gone_and_can_be_accepted(tmp_path: Path) -> None:
    """As after a failover to a standby that lacked the newest records."""
    env = {"XDG_STATE_HOME": str(tmp_path / "state")}
    for title in ("one", "two"):
        assert colibri(tmp_path, "add", title, **env)[0] == 0
    code, out, _ = colibri(tmp_path, "heads", "--json", **env)
    assert (code, {one["result"] for one in json.loads(out)["witnesses"]}) == (0, {"held"})
    tamper(
        database_of(tmp_path),
        "DELETE FROM ledger WHERE seq > 7",
        "DELETE FROM tasks WHERE number = 2",
        "DELETE FROM task_search WHERE number = 2",
        "UPDATE task_counts SET n = 1",
    )
    code, out, _ = colibri(tmp_path, "heads", **env)
    assert (code, "diverged" in out) == (1, True)
    code, out, _ = colibri(tmp_path, "verify", "--json", **env)
    assert (code, json.loads(out)["lines"]["witnessed"]) == (1, "no")
    assert colibri(tmp_path, "heads", "accept", "--why", "the primary was lost", **env)[0] == 0
    code, out, _ = colibri(tmp_path, "heads", "--json", **env)
    accepted = [one for one in json.loads(out)["witnesses"] if one["accepted"]]
    assert (code, [one["accepted"]["why"] for one in accepted]) == (0, ["the primary was lost"])


# The doctor.


def checks(project: Path, **env: str) -> dict[str, tuple[str, str]]:
    _, out, err = colibri(project, "doctor", "--json", **env)
    assert out, err
    found = json.loads(out)["findings"]
    return {one["check"]: (one["status"], f"{one['detail']}; {one['hint']}") for one in found}


def test_the_doctor_knows_the_server_the_role_and_the_connection(told: Path) -> None:
    found, schema = checks(told), engines.schema_of(told)
    assert {found[name][0] for name in ("psycopg", "database", "server", "role", "TLS")} == {"ok"}
    assert {found[name][0] for name in ("records", "witness")} == {"ok"}
    assert "file system" not in found
    assert f"schema {schema} of version 5" in found["database"][1]
    assert "PostgreSQL 1" in found["database"][1]
    assert "it is the primary" in found["server"][1]
    assert f"{schema}_writer may read and write" in found["role"][1]
    assert "54; the newest 54 were checked" in found["records"][1]


def test_the_doctor_says_which_role_does_not_do(told: Path) -> None:
    reader = as_role(told, "reader")
    status, detail = checks(told, **reader)["role"]
    assert (status, "mode FULL has to write" in detail) == ("problem", True)
    assert checks(told, COLIBRI_MODE="READONLY", **reader)["role"][0] == "ok"
    admin = engines.environment(told) | {"COLIBRI_DB_URL": postgres.server().url()}
    status, detail = checks(told, **admin)["role"]
    assert (status, "can rewrite what others recorded" in detail) == ("warning", True)


def test_the_doctor_sees_a_guard_that_is_off(told: Path) -> None:
    schema = engines.schema_of(told)
    switch = f"ALTER TABLE {schema}.ledger {{}} TRIGGER ledger_refuses_update"
    with postgres.server().connect() as admin:
        admin.execute(switch.format("DISABLE").encode())
        status, detail = checks(told)["records"]
        admin.execute(switch.format("ENABLE").encode())
    assert status == "problem"
    assert "the trigger ledger_refuses_update is defined differently" in detail


def test_the_doctor_and_the_status_tell_what_hooks_could_not_record(told: Path) -> None:
    (told / "data").mkdir()
    (told / "data" / "colibri.db-spool").write_text("{}\n")
    (told / "data" / "colibri.db-lost").write_text("000000000003\n")
    _, out, _ = colibri(told, "doctor", "--json")
    found = [one for one in json.loads(out)["findings"] if one["check"] == "deeds"]
    assert [one["status"] for one in found] == ["warning", "warning"]
    assert "3 deeds could not be kept" in found[0]["detail"]
    assert "3 bytes of deeds wait in " in found[1]["detail"]
    assert f"#{engines.schema_of(told)} can be written" in found[1]["hint"]
    code, out, _ = colibri(told, "status", "--json")
    assert (code, len(json.loads(out)["unrecorded"])) == (0, 2)


def test_the_doctor_of_a_server_that_is_out_of_reach_says_what_to_do(tmp_path: Path) -> None:
    url = "postgresql://a@127.0.0.1:1/x"
    found = checks(tmp_path, COLIBRI_DB_URL=url)
    assert found["database"][0] == "problem"
    assert "check that the server runs" in found["database"][1]
    other = postgres.server().url().replace(f"/{postgres.DATABASE}", "/none")
    assert "a database and a role of" in checks(tmp_path, COLIBRI_DB_URL=other)["database"][1]
    minimal = checks(tmp_path, COLIBRI_DB_URL=url, COLIBRI_MODE="MINIMAL")
    assert minimal["database"][0] == "ok"


def test_a_person_who_may_only_read_learns_that(told: Path) -> None:
    code, _, err = colibri(told, "add", "x", **as_role(told, "reader"))
    assert (code, "permission denied" in err) == (75, True)
    assert "`colibri doctor` says which role does" in err
    assert [*told.iterdir()] == []
