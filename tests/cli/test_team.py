"""`colibri team init`: a place for a ledger that machines share, and what each of them needs."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import COLIBRI, Server, environment, execute
from tests.support.postgres import SUPERUSER, psycopg, server
from tests.support.program import colibri
from tests.support.sample_project import Printed

SECRET = "hunter2-correct-horse"
# The program where psycopg is not installed.
WITHOUT = "import sys; sys.modules['psycopg'] = None; from colibri.__main__ import main; main()"


@pytest.fixture
def schema(tmp_path: Path) -> str:
    """A name that nobody else uses."""
    return f"team{os.getpid()}_{abs(hash(tmp_path)) % 10**9}"


def init(project: Path, *options: str) -> dict[str, Any]:
    code, out, err = colibri(project, "team", "init", server().url(), *options, "--json")
    assert (code, err) == (0, ""), (out, err)
    made: dict[str, Any] = json.loads(out)
    return made


def test_what_it_prints_is_all_that_a_machine_needs(tmp_path: Path, schema: str) -> None:
    made = init(tmp_path, "--schema", schema)
    assert (made["schema"], made["version"], made["before"]) == (schema, 5, 0)
    assert made["roles"]["owner"] == f"{schema}_owner"
    assert (made["tls"], made["warnings"]) == (False, []), "the socket of this machine"
    writer, reader = made["environment"]["writer"], made["environment"]["reader"]
    assert (writer["COLIBRI_DB_SCHEMA"], reader["COLIBRI_MODE"]) == (schema, "READONLY")
    assert colibri(tmp_path, "add", "lay the floor", **writer)[0] == 0
    with Server(tmp_path, COLIBRI, **reader) as readonly:
        assert [one["title"] for one in readonly.data("task_list")["tasks"]] == ["lay the floor"]
    code, out, _ = colibri(tmp_path, "status", "--json", **reader)
    assert (code, json.loads(out)["log"]) == (0, made["log"])
    assert json.loads(out)["server"]["rights"] == ["read"]
    writer["COLIBRI_DB_URL"] = reader_url(made)
    code, _, err = colibri(tmp_path, "add", "another", **writer)
    assert (code, "permission denied" in err) == (75, True), "the database refuses it"


def reader_url(made: dict[str, Any]) -> str:
    return str(made["environment"]["reader"]["COLIBRI_DB_URL"])


def test_it_can_be_repeated_and_keeps_the_log(tmp_path: Path, schema: str) -> None:
    first = init(tmp_path, "--schema", schema)
    again = init(tmp_path, "--schema", schema)
    assert (again["before"], again["version"]) == (5, 5)
    assert again["log"] == first["log"]
    assert again | {"before": 0} == first


def test_people_are_told_step_by_step(tmp_path: Path, schema: str) -> None:
    code, out, err = colibri(tmp_path, "team", "init", server().url(), "--schema", schema)
    assert (code, err) == (0, "")
    assert f"{schema}, made with version 5" in out
    for role in ("writer", "reader", "eraser"):
        assert f"-c '\\password {schema}_{role}'" in out
    where = f"{server().directory}:{server().port}:postgres:{schema}_writer:PASSWORD"
    assert f"     {where}\n" in out, "a line of ~/.pgpass"
    url = f"postgresql://{schema}_writer@/postgres?host={server().directory}&port={server().port}"
    assert f"     export COLIBRI_DB_URL='{url}'\n" in out
    assert f"     export COLIBRI_DB_SCHEMA={schema}\n" in out
    assert "     export COLIBRI_MODE=READONLY\n" in out
    assert "doctor shows on each machine whether it works" in out
    # Again; the name is that of the environment unless one is given.
    _, out, _ = colibri(tmp_path, "team", "init", server().url(), COLIBRI_DB_SCHEMA=schema)
    assert f"{schema}, version 5, as before" in out


def test_passwords_stay_where_libpq_finds_them(tmp_path: Path, schema: str) -> None:
    """Over TCP every role needs one. No output, ledger, state or server log has it."""
    made = init(tmp_path, "--schema", schema)
    with server().connect() as admin:
        for user in (SUPERUSER, made["roles"]["writer"]):
            hashed = admin.pgconn.encrypt_password(SECRET.encode(), user.encode(), b"scram-sha-256")
            admin.execute(f"ALTER ROLE {user} PASSWORD '{hashed.decode()}'".encode())
    passwords = tmp_path / "passwords"
    passwords.write_text(f"127.0.0.1:{server().port}:*:*:{SECRET}\n")
    passwords.chmod(0o600)
    finds = {"PGPASSFILE": str(passwords), "XDG_STATE_HOME": str(tmp_path / "state")}
    url = server().url(tcp=True)
    code, out, err = colibri(tmp_path, "team", "init", url, "--schema", schema, "--json", **finds)
    assert code == 0
    made = json.loads(out)
    writer = made["environment"]["writer"]
    assert writer["COLIBRI_DB_URL"] == (
        f"postgresql://{schema}_writer@127.0.0.1:{server().port}/postgres"
    )
    assert made["passwords"]["writer"] == [f"127.0.0.1:{server().port}:postgres:{schema}_writer"]
    url = writer["COLIBRI_DB_URL"]
    writer["COLIBRI_DB_URL"] += "?target_session_attrs=read-write"
    said = [out, err]
    for command in (["add", "a"], ["status"], ["log", "--payload"], ["doctor"], ["verify"]):
        code, out, err = colibri(tmp_path, *command, **writer | finds)
        assert code == 0, (out, err)
        said += [out, err]
    code, out, err = colibri(tmp_path, "status", **writer)
    assert (code, "no password supplied" in err, "~/.pgpass" in err) == (75, True, True)
    code, _, err = colibri(tmp_path, "team", "init", url, "--schema", schema)
    assert (code, "without asking for a password: ~/.pgpass" in err) == (75, True)
    kept = [path.read_text() for path in (tmp_path / "state").rglob("*.jsonl")]
    assert kept
    assert SECRET not in "".join((*said, err, *kept, server().log()))


@pytest.mark.parametrize(
    ("url", "says"),
    [
        (f"postgresql://a:{SECRET}@localhost/db", "the URL holds a secret"),
        (f"postgresql://a@localhost/db?password={SECRET}", "the URL holds a secret"),
        (SECRET, "not the URL of a database"),
        ("postgresql://a@127.0.0.1:1/db", "refused"),
    ],
)
def test_a_url_that_does_not_do_is_explained_and_no_secret_is_repeated(
    tmp_path: Path, colibri: Printed, url: str, says: str
) -> None:
    code, out, err = _run("team", "init", url)
    assert (code, out) == (75, "")
    assert says in err
    assert "colibri: hint: " in err
    assert SECRET not in err


def _run(*arguments: str, **env: str) -> tuple[int, str, str]:
    done = execute([sys.executable, "-m", "colibri", *arguments], env=environment(**env))
    return done.returncode, done.stdout, done.stderr


def test_who_may_not_make_it_learns_what_is_missing(tmp_path: Path, schema: str) -> None:
    made = init(tmp_path, "--schema", schema)
    for name in (schema, f"{schema}_b"):
        code, _, err = colibri(tmp_path, "team", "init", reader_url(made), "--schema", name)
        assert code == 75
        assert f"{schema}_reader may not make it: " in err
        assert "connect as a superuser, or as a role with CREATEROLE" in err
    code, _, err = colibri(tmp_path, "team", "init", server().url(), "--schema", "Not-A-Name")
    assert (code, "cannot be the name of a schema" in err) == (75, True)


def test_a_schema_that_was_not_made_is_named_with_the_way_to_make_it(tmp_path: Path) -> None:
    env = {"COLIBRI_DB_URL": server().url(), "COLIBRI_DB_SCHEMA": "nowhere"}
    code, out, err = colibri(tmp_path, "status", **env)
    assert (code, out) == (75, "")
    assert "there is no ledger at postgresql://" in err
    assert "#nowhere\n" in err
    assert "team init URL makes the schema" in err
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    "command", [["status"], ["verify"], ["trail"], ["heads"], ["team", "init", "postgresql://x/y"]]
)
def test_without_psycopg_every_command_says_how_to_install_it(
    tmp_path: Path, command: list[str]
) -> None:
    env = environment(COLIBRI_DB_URL="postgresql://a@127.0.0.1:1/db")
    done = execute([sys.executable, "-c", WITHOUT, *command], cwd=tmp_path, env=env)
    assert (done.returncode, done.stdout) == (75, "")
    assert "a ledger on PostgreSQL needs psycopg, which cannot be loaded" in done.stderr
    assert "pip install 'colibri-mcp[postgres]' installs it" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_psycopg_the_server_and_the_doctor_say_so_too(tmp_path: Path) -> None:
    env: Any = {"COLIBRI_DB_URL": "postgresql://a@127.0.0.1:1/db"}
    program = (sys.executable, "-c", WITHOUT, "serve")
    with Server(tmp_path, program, **env) as mcp:
        result = mcp.call("task_list")
        assert result["isError"] is True
        assert "needs psycopg" in json.dumps(result)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, "doctor"],
        cwd=tmp_path,
        env=environment(**env),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    lines = [line for line in done.stdout.splitlines() if line.startswith("problem")]
    assert any("psycopg" in line and "colibri-mcp[postgres]" in line for line in lines)


def test_nothing_is_made_in_a_database_that_only_reads(tmp_path: Path, schema: str) -> None:
    """As on a standby."""
    url = f"{server().url()}?options=-c%20default_transaction_read_only%3Don"
    code, _, err = colibri(tmp_path, "team", "init", url, "--schema", schema)
    assert (code, "read-only transaction" in err) == (75, True)
    with psycopg.connect(server().url()) as pg:
        query = "SELECT count(*) FROM pg_roles WHERE rolname LIKE %s"
        assert pg.execute(query, (f"{schema}%",)).fetchone() == (0,)
