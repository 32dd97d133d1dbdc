"""How an administrator reaches the server, and how each role does afterwards."""

import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from colibri.core.errors import ResourceError
from colibri.store import ledger
from colibri.store.postgres import SCHEMA
from colibri.store.verify import verify
from tests.support.ledger_writer import Lab, no_pause, story
from tests.support.postgres import (
    LOG,
    SUPERUSER,
    Home,
    connection,
    expected,
    fresh_schema,
    programs,
    psycopg,
    server,
    team,
)

SECRET = "hunter2-correct-horse"


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://a:{SECRET}@localhost/db",
        f"postgresql://a@localhost/db?password={SECRET}",
        f"postgresql://a@localhost/db?sslpassword={SECRET}",
        f"host=localhost password={SECRET}",
        f"postgresql://a:{SECRET}/more@localhost/db",  # read as a host and a port
        f"postgresql://a@localhost:{SECRET}/db",
        f"postgresql://a@localhost/db?unknown={SECRET}",
        f"postgresql://a@[{SECRET}/db",
        SECRET,
    ],
)
def test_a_secret_on_the_command_line_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ResourceError) as told:
        team.connect(url)
    assert SECRET not in f"{told.value} {told.value.hint}"
    assert told.value.hint
    assert told.value.__cause__ is None


def test_every_secret_that_libpq_knows_is_one() -> None:
    """It marks them for programs that ask for them, but for the keys made of a password."""
    known = {one.keyword.decode(): one.dispchar for one in psycopg.pq.Conninfo.get_defaults()}
    secrets = {name for name, shown in known.items() if shown == b"*" or name.endswith("_key")}
    assert {"password", "sslpassword"} <= secrets
    for name in secrets:
        with pytest.raises(ResourceError, match="holds a secret") as refused:
            team.require_no_password(f"postgresql://a@localhost/db?{name}={SECRET}")
        assert SECRET not in str(refused.value)


def test_what_a_server_says_reaches_stderr_only_through_us() -> None:
    """What psycopg logs would go there as it came, with escapes for the terminal in it."""
    script = (
        "import logging, colibri.store.postgres.faults;"
        "logging.getLogger('psycopg').warning('\x1b[2J');"
        "logging.getLogger('psycopg.pool').error('\x1b[2J')"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
    assert done.stderr == b""


@pytest.mark.parametrize("value", ["", "x", "1.5", "\x1b[2J", "9" * 5_000])
def test_a_version_that_is_no_number_is_refused(value: str) -> None:
    name = fresh_schema()
    with server().connect() as admin:
        admin.execute(f"UPDATE {name}.meta SET value = %s WHERE key = 'schema'".encode(), (value,))
        with pytest.raises(ResourceError, match="is not the version of a schema"):
            team.make(admin, name, LOG)
    home = Home(server().url(f"{name}_writer"), "it", name)
    with pytest.raises(ResourceError, match="is not the version of a schema"):
        home.open_reader()


def test_a_server_that_cannot_be_reached_is_named() -> None:
    with pytest.raises(ResourceError, match=r"127\.0\.0\.1.*refused"):
        team.connect("postgresql://a@127.0.0.1:1/db")


def test_each_role_reaches_the_database_over_the_socket() -> None:
    name = fresh_schema()
    with team.connect(server().url()) as admin:
        url = team.url_of(team.place_of(admin), f"{name}_reader")
    assert url == (
        f"postgresql://{name}_reader@/postgres?host={server().directory}&port={server().port}"
    )
    with psycopg.connect(url) as reader:
        assert reader.execute("SELECT count(*) FROM ledger").fetchone() == (0,)


def test_passwords_come_from_the_file_of_passwords(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over TCP the server wants one; that of a role is sent as a hash, so no log can have it."""
    name = fresh_schema()
    with team.connect(server().url()) as admin:
        for user in (SUPERUSER, f"{name}_writer"):
            hashed = admin.pgconn.encrypt_password(SECRET.encode(), user.encode(), b"scram-sha-256")
            admin.execute(f"ALTER ROLE {user} PASSWORD '{hashed.decode()}'".encode())
    kept = tmp_path / "passwords"
    kept.write_text(f"127.0.0.1:{server().port}:*:*:{SECRET}\n")
    kept.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(kept))
    with team.connect(server().url(tcp=True)) as admin:
        url = team.url_of(team.place_of(admin), f"{name}_writer")
    assert url == f"postgresql://{name}_writer@127.0.0.1:{server().port}/postgres"
    with psycopg.connect(url) as writer:
        writer.execute("SELECT lock_head(%s)", (SCHEMA,))
    kept.write_text("")
    with pytest.raises(ResourceError, match="no password supplied"):
        team.connect(server().url(tcp=True))
    assert SECRET not in server().log()


@pytest.mark.parametrize(
    ("place", "url"),
    [
        ({"host": "db.example", "port": "5433"}, "postgresql://w@db.example:5433/x%2Fy"),
        (
            {"host": "db.example", "sslmode": "require", "user": "admin"},
            "postgresql://w@db.example/x%2Fy?sslmode=require",
        ),
        (
            {"host": "a,b", "port": "1,2", "target_session_attrs": "read-write"},
            "postgresql://w@/x%2Fy?target_session_attrs=read-write&host=a,b&port=1,2",
        ),
    ],
)
def test_the_url_of_a_role_leads_to_the_same_place(place: dict[str, str], url: str) -> None:
    place = {**place, "dbname": "x/y"}
    assert team.url_of(place, "w") == url
    assert psycopg.conninfo.conninfo_to_dict(url) == {**place, "user": "w"}


def test_a_dump_by_the_reader_can_be_restored_elsewhere(tmp_path: Path) -> None:
    """docs/team.md: backups need no more than reading, and what comes back is the same ledger."""
    name, dump = fresh_schema(), tmp_path / "dump"
    with closing(connection.connect(server().url(f"{name}_writer"))) as db:
        story(Lab(db))
    with server().connect() as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'".encode())
    found = programs()
    assert found
    for command in (
        ("pg_dump", "--schema", name, "--format", "custom", "--file", dump, _url(f"{name}_reader")),
        ("pg_restore", "--exit-on-error", "--dbname", _url(SUPERUSER, name), dump),
    ):
        subprocess.run([found / command[0], *command[1:]], check=True)
    with closing(connection.connect(_url(f"{name}_reader", name))) as copy:
        assert expected.foreign(copy) == []
        assert (verify(copy, pause=no_pause).valid, ledger.last_seq(copy)) == (True, 54)


def _url(user: str, database: str = "postgres") -> str:
    return f"{server().url(user).rpartition('/')[0]}/{database}"


def test_another_role_can_be_given_the_rights_of_the_writer() -> None:
    """As docs/team.md does for CI."""
    name = fresh_schema()
    with server().connect() as admin:
        admin.execute(f"CREATE ROLE {name}_ci LOGIN IN ROLE {name}_writer".encode())
    home = Home(server().url(f"{name}_ci"), name, name)
    opened = home.open_writer(
        timeout=5, monotonic=time.monotonic, sleep=time.sleep, stamp="", new_log=str
    )
    with closing(opened):
        Lab(opened.db).create()
        assert ledger.last_seq(opened.db) == 4
