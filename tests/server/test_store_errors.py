"""Unexpected errors of the store, wherever they come from: every call is answered."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from colibri.server.context import add_tool
from colibri.store import ledger
from colibri.store.sqlite import opened
from colibri.store.sqlite.transaction import Transaction
from tests.contract import Linked
from tests.support.in_process import project, tool

# Failed locks, a misused statement, no memory, an interruption: none has its own handling.
UNFORESEEN = (apsw.ProtocolError, apsw.MisuseError, apsw.NoMemError, apsw.InterruptError)
PLACES: dict[str, tuple[Any, str]] = {
    "begin": (Transaction, "__enter__"),
    "commit": (Transaction, "__exit__"),
    "append": (ledger.Chain, "append"),
    "head": (ledger, "head"),
}


@pytest.mark.parametrize("error", UNFORESEEN, ids=lambda error: error.__name__)
@pytest.mark.parametrize("place", PLACES)
def test_every_accepted_call_is_answered_whatever_the_store_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, error: type[Exception]
) -> None:
    """Such an error used to end the lane and the server: now it leads to SAFE_MODE io."""
    server = Linked(config=project(tmp_path))
    add_tool(server.ctx, tool("plain", lambda work, args: {}))
    add_tool(server.ctx, tool("look", lambda work, args: {}, lane="read"))
    with server:
        server.data("plain")
        server.data("look")
        owner, name = PLACES[place]
        real = getattr(owner, name)

        def failing(*arguments: Any, **options: Any) -> Any:
            if place == "commit":
                arguments[0]._db.execute("ROLLBACK")
            raise error("not foreseen")

        monkeypatch.setattr(owner, name, failing)
        ids = [server.post(one) for one in ("plain", "look", "plain", "look", "server_ping")]
        answered = sorted(server.receive()["id"] for _ in ids)
        monkeypatch.setattr(owner, name, real)
        assert answered == ids
        assert server.ctx.parts.health.condition.cause == "io"
        assert server.call("look")["isError"] is False
    assert server.exit_code == 0


def test_a_log_that_cannot_be_copied_back_stops_the_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commits are safe in the log, but it would grow without end."""
    failed: list[Callable[[Exception], None]] = []
    monkeypatch.setattr(opened, "set_patience", lambda db, patience, tell: failed.append(tell))
    server = Linked(config=project(tmp_path))
    add_tool(server.ctx, tool("plain", lambda work, args: {}))
    with server:
        server.data("plain")
        failed[0](apsw.IOError("the disk is broken"))
        error = server.call("plain")["structuredContent"]["error"]
    assert error["code"] == "UNAVAILABLE"
    assert "cannot be copied into the database file: the disk is broken" in error["message"]
