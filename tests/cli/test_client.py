"""cli/demo/client.py: a server that fails is reported, and nobody waits for it without end."""

import sys
import time
from pathlib import Path

import pytest

from colibri.cli.demo import client
from colibri.cli.demo.client import serving
from colibri.config import bare_environment
from colibri.core.errors import ResourceError
from tests.support.client import environment

GREETING = 'print(\'{"jsonrpc":"2.0","id":1,"result":{}}\', flush=True)\n'
READ = "import sys; sys.stdin.readline()\n"
ENDED = "the server ended, or did not answer in time"

SERVERS = {
    "one that ends": ("import sys; sys.exit(1)", ENDED),
    "one that ends after the handshake": (READ + GREETING, ENDED),
    "one that closes its input": (
        READ + "import os, time; os.close(0)\n" + GREETING + "time.sleep(60)",
        ENDED,
    ),
    "one that is silent": ("import sys; sys.stdin.read()", ENDED),
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
def test_a_server_that_does_not_answer_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, why: str
) -> None:
    if "sleep" in program or "read()" in program:
        monkeypatch.setattr(client, "PATIENCE", 3.0)
    log = tmp_path / "server.log"
    server = serving([sys.executable, "-c", program], env=environment(), log=str(log))
    began = time.monotonic()
    with pytest.raises(ResourceError, match=why) as told, server as call:
        while True:  # until it has noticed
            call("server_ping", {})
    assert told.value.hint == f"{log} has what it said"
    assert time.monotonic() - began < 20


def test_a_server_that_stays_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the end of input ending it."""
    program = READ + GREETING + "import time; time.sleep(60)"
    began = time.monotonic()
    with serving([sys.executable, "-c", program], env=environment(), log=str(tmp_path / "log")):
        monkeypatch.setattr(client, "PATIENCE", 0.5)
    assert time.monotonic() - began < 20


def test_a_child_does_not_inherit_what_is_meant_for_us(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLIBRI_DB_PATH", "AMS_MODE", "CLAUDE_PROJECT_DIR"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("SOMETHING", "else")
    inherited = bare_environment()
    assert inherited["SOMETHING"] == "else"
    assert {"COLIBRI_DB_PATH", "AMS_MODE", "CLAUDE_PROJECT_DIR"}.isdisjoint(inherited)
