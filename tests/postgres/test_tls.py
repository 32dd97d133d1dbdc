"""TLS to a real server, with a certificate of its own: what a machine checks, and is told."""

import json
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from colibri.store.postgres import faults
from tests.support import postgres_keeper as keeper
from tests.support.client import COLIBRI, Server
from tests.support.far import Far
from tests.support.postgres import SUPERUSER, UNPRIVILEGED, programs, psycopg
from tests.support.program import colibri

OPENSSL = shutil.which("openssl")
HBA = "local all all trust\nhostssl all all 127.0.0.1/32 trust\n"
KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


class Encrypted(NamedTuple):
    """A server that takes encrypted connections alone; its certificate is for localhost."""

    directory: Path
    port: int

    def url(self, host: str = "localhost", ca: str = "ca.pem", mode: str = "verify-full") -> str:
        checked = f"sslmode={mode}&sslrootcert={self.directory / ca}"
        return f"postgresql://{SUPERUSER}@{host}:{self.port}/postgres?{checked}"


@pytest.fixture(scope="module")
def encrypted() -> Iterator[Encrypted]:
    found = programs()
    if found is None or OPENSSL is None:
        pytest.skip("PostgreSQL or openssl is missing")
    directory = Path(tempfile.mkdtemp(prefix="colibri-tls-"))
    directory.chmod(0o755)  # for the certificates, which clients read
    started: dict[str, Any] = {"cwd": directory}
    if not os.getuid():  # as root PostgreSQL does not start
        user = next(pwd.getpwnam(name) for name in UNPRIVILEGED)
        os.chown(directory, user.pw_uid, user.pw_gid)
        started |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    keeper.initialize(found, directory, started)
    make_certificates(directory, started)
    (directory / "data" / "pg_hba.conf").write_text(HBA, encoding="ascii")
    with (directory / "data" / "postgresql.conf").open("a", encoding="ascii") as settings:
        files = {"cert": directory / "server.pem", "key": directory / "server.key"}
        said = "".join(f"ssl_{kind}_file = '{file}'\n" for kind, file in files.items())
        settings.write(f"ssl = on\n{said}")
    port = keeper.free_port()
    running = keeper.start(found, directory, port, started)
    try:
        yield Encrypted(directory, port)
    finally:
        keeper.stop(running)
        shutil.rmtree(directory)


def make_certificates(directory: Path, started: dict[str, Any]) -> None:
    """An authority, a certificate of the server for localhost, and an authority of strangers."""

    def openssl(*arguments: str) -> None:
        command = [str(OPENSSL), *arguments]
        subprocess.run(command, **started, check=True, capture_output=True)

    for name in ("ca", "strangers"):
        files = ("-keyout", f"{name}.key", "-out", f"{name}.pem")
        openssl("req", "-x509", *KEY, *files, "-subj", f"/CN={name}", "-days", "2")
    openssl("req", *KEY, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost")
    (directory / "names").write_text("subjectAltName=DNS:localhost\n", encoding="ascii")
    authority = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial")
    signed = ("-in", "server.csr", "-out", "server.pem", "-extfile", "names")
    openssl("x509", "-req", *authority, *signed, "-days", "2")


def test_a_verified_connection_is_used_by_everything(tmp_path: Path, encrypted: Encrypted) -> None:
    code, out, err = colibri(tmp_path, "team", "init", encrypted.url(), "--json")
    assert (code, err) == (0, "")
    made = json.loads(out)
    assert (made["tls"], made["warnings"]) == (True, [])
    writer = made["environment"]["writer"]
    assert writer["COLIBRI_DB_URL"].endswith(encrypted.url().partition("?")[2])
    with Server(tmp_path, COLIBRI, **writer) as running:
        assert running.data("task_create", title="encrypted")["task_id"] == "T-0001"
    code, out, _ = colibri(tmp_path, "status", "--json", **writer)
    assert (code, json.loads(out)["server"]["tls"]) == (0, "TLSv1.3")


@pytest.mark.parametrize(
    ("how", "said", "hint"),
    [
        ({"ca": "strangers.pem"}, "certificate verify failed", "sslrootcert"),
        ({"host": "127.0.0.1"}, 'does not match host name "127.0.0.1"', "sslrootcert"),
        ({"ca": "nothing.pem"}, "nothing.pem", "sslrootcert"),
        ({"mode": "disable"}, "no encryption", "sslmode=verify-full"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_a_server_that_cannot_be_trusted_is_refused_at_once(
    tmp_path: Path, encrypted: Encrypted, how: dict[str, str], said: str, hint: str
) -> None:
    """By the administrator's command, by others, and by a server, which says so."""
    url = encrypted.url(**how)
    there: Any = {"COLIBRI_DB_URL": url, "COLIBRI_DB_SCHEMA": "colibri"}
    for command, names in ((("team", "init", url), {}), (("add", "a task"), there)):
        code, out, err = colibri(tmp_path, *command, **names)
        assert (code, out) == (75, ""), (out, err)
        assert said in err
        assert hint in err.partition("hint:")[2]
    with Server(tmp_path, COLIBRI, **there) as running:
        refused = running.call("task_create", title="to a stranger")
        assert refused["isError"] is True
        assert said in str(refused)


def test_a_broken_connection_is_no_refusal_and_no_call_notices(
    tmp_path: Path, encrypted: Encrypted
) -> None:
    with Far(("127.0.0.1", encrypted.port)) as far:
        url = encrypted.url().replace(f":{encrypted.port}/", f":{far.port}/")
        code, out, err = colibri(tmp_path, "team", "init", url, "--schema", "broken", "--json")
        assert (code, err) == (0, ""), out
        there: Any = {"COLIBRI_DB_URL": url, "COLIBRI_DB_SCHEMA": "broken"}
        with Server(tmp_path, COLIBRI, **there) as running:
            running.data("task_create", title="before")
            running.data("task_list")
            far.drop()
            running.data("task_create", title="after")
            assert running.data("task_list")["total_count"] == 2
            far.cut()
            far.drop()
            assert "cannot be reached" in str(running.call("task_create", title="lost"))


@pytest.mark.parametrize(
    ("why", "meaning"),
    [
        ("SSL error: unexpected eof while reading", "unreachable"),
        ("SSL SYSCALL error: Connection reset by peer", "unreachable"),
        ("SSL connection has been closed unexpectedly", "unreachable"),
        ("SSL error: tlsv1 alert unknown ca", "not allowed"),
        ("server does not support SSL, but SSL was required", "not allowed"),
    ],
)
def test_only_a_refusal_is_one(why: str, meaning: str) -> None:
    assert faults.fault(psycopg.OperationalError(why)) == meaning
    assert bool(faults.tls_hint(why)) == (meaning == "not allowed")
