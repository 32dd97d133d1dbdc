"""cli/client.py: a server that does not do its part is told, and never waited for for ever."""

import sys
import time
from pathlib import Path

import pytest

from colibri.cli.demo import client
from colibri.cli.demo.client import Client
from colibri.config import bare_environment
from colibri.core.errors import ResourceError
from tests.support.client import environment

GREETING = 'print(\'{"jsonrpc":"2.0","id":1,"result":{}}\', flush=True)\n'
READ = "import sys; sys.stdin.readline()\n"

SERVERS = {
    "one that ends": ("import sys; sys.exit(1)", "the server ended"),
    "one that ends after the handshake": (READ + GREETING, "the server ended"),
    "one that is silent": ("import sys; sys.stdin.read()", "the server does not answer"),
    "one that answers something else": (
        READ + GREETING.replace('"id":1', '"id":7'),
        "the server did not answer initialize: ",
    ),
    "one that refuses": (
        READ + GREETING.replace('"result":{}', '"error":{"code":-32603}'),
        "the server did not answer initialize: ",
    ),
}


@pytest.mark.parametrize(("program", "why"), SERVERS.values(), ids=SERVERS.keys())
def test_a_server_that_does_not_answer_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, why: str
) -> None:
    monkeypatch.setattr(client, "PATIENCE", 2.0 if "read()" not in program else 0.2)
    log = tmp_path / "server.log"
    server = Client([sys.executable, "-c", program], env=environment(), log=str(log))
    with pytest.raises(ResourceError, match=why) as told, server as started:
        while True:  # until it has noticed
            started.call("server_ping", {})
    assert told.value.hint == f"{log} has what it said"


def test_a_server_that_is_gone_is_told(tmp_path: Path) -> None:
    server = Client(
        [sys.executable, "-c", READ + GREETING + READ], env=environment(), log=str(tmp_path / "log")
    )
    with pytest.raises(ResourceError, match="the server ended"), server as started:
        started._process.wait(10)
        started.call("server_ping", {})


def test_a_server_that_stays_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the end of input ending it."""
    program = READ + GREETING + "import time; time.sleep(60)"
    server = Client([sys.executable, "-c", program], env=environment(), log=str(tmp_path / "log"))
    with server:
        monkeypatch.setattr(client, "PATIENCE", 0.5)
        began = time.monotonic()
    assert time.monotonic() - began < 10
    assert server._process.returncode == -9


def test_a_child_does_not_inherit_what_is_meant_for_us(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLIBRI_DB_PATH", "AMS_MODE", "CLAUDE_PROJECT_DIR"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("SOMETHING", "else")
    inherited = bare_environment()
    assert inherited["SOMETHING"] == "else"
    assert {"COLIBRI_DB_PATH", "AMS_MODE", "CLAUDE_PROJECT_DIR"}.isdisjoint(inherited)
