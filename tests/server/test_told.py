"""What the server produces besides answers: stderr, exit codes, late exit records."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import apsw
import pytest

from colibri.server import call
from colibri.server.context import add_tool
from colibri.server.log import Log
from colibri.store.sqlite.transaction import Transaction
from tests.contract import Linked
from tests.support.client import COLIBRI, environment
from tests.support.in_process import project, tool
from tests.support.ledger_reader import calls

TWO = (signal.SIGINT, signal.SIGINT), (signal.SIGTERM, signal.SIGINT), (signal.SIGTERM,) * 2
HOSTILE = "\x1b[2J\x07\n[colibri] shutdown 6/6 release: exit 0\r\u202e"


@pytest.mark.parametrize("signals", TWO)
@pytest.mark.parametrize("moment", ["starting", "answered", "serving"])
def test_two_signals_with_nothing_running_are_an_orderly_end(
    tmp_path: Path, moment: str, signals: tuple[signal.Signals, ...]
) -> None:
    """Specification 13.1: Claude Code's `mcp list` interrupts a starting server twice."""
    with subprocess.Popen(
        COLIBRI,
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        if moment == "starting":
            assert b"starting" in process.stderr.readline()
        else:
            process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
            process.stdin.flush()
            process.stdout.readline()
            time.sleep(0.5 if moment == "serving" else 0)
        for one in signals:
            process.send_signal(one)
            time.sleep(0.002)
        assert process.wait(30) == 0


def test_foreign_text_cannot_pass_for_a_log_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown tool's name used to reach stderr raw; now no name does, and nothing is raw."""
    monkeypatch.setattr(call, "MAX_CALLS", 0)
    server = Linked()
    with server:
        answers = [server.call(name) for name in (HOSTILE, f"ghp_{'a' * 36}{HOSTILE}")]
    assert {one["structuredContent"]["error"]["code"] for one in answers} == {"OVERLOADED"}
    said = [line for line in server.logged if "OVERLOADED" in line]
    assert len(said) == 2
    assert all(line.isprintable() and "ghp_" not in line for line in said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("plain", "plain"),
        ("a\x1b[2Jb\x07", "a\\x1b[2Jb\\x07"),
        ("Traceback\n  here", "Traceback\n      here"),
        (f"x{HOSTILE}", "x\\x1b[2J\\x07\n    [colibri] shutdown 6/6 release: exit 0\\r\\u202e"),
    ],
)
def test_control_characters_in_log_lines_are_escaped(text: str, said: str) -> None:
    """Only the first line of a message begins at the margin."""
    heard: list[str] = []
    Log("info", heard.append)("warn", text)
    assert heard == [said]


@pytest.mark.parametrize("error", [apsw.FullError, apsw.BusyError])
def test_the_exit_of_a_read_that_could_not_be_written_is_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """A disk that was full at that moment used to leave the call open."""
    server = Linked(config=project(tmp_path))
    add_tool(server.ctx, tool("look", lambda work, args: {}, lane="read"))
    add_tool(server.ctx, tool("plain", lambda work, args: {}))
    begin, failing = Transaction.__enter__, [False]

    def sometimes(self: Transaction) -> None:
        if failing[0]:
            raise error("not now")
        begin(self)

    monkeypatch.setattr(Transaction, "__enter__", sometimes)

    def look(work: object, args: object) -> object:
        failing[0] = True
        return {}

    add_tool(server.ctx, tool("fill", look, lane="read"))
    with server:
        server.data("look")
        server.call("fill")
        failing[0] = False
        server.data("plain")
    [pair] = calls(tmp_path / "data" / "colibri.db", "fill")
    assert pair.exit is not None


def test_a_signal_before_the_server_is_built_ends_with_0(tmp_path: Path) -> None:
    """Nothing has begun, so nothing can fail."""
    program = (
        "import os, signal, sys; sys.argv = ['colibri', 'serve']\n"
        "class Late:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'colibri.server': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Late())\n"
        "from colibri.__main__ import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment(), check=False, timeout=30
    )
    assert done.returncode == 0
