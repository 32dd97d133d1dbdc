"""Rounds without savepoints: one that fails after a write is undone and run again with them."""

import threading
from pathlib import Path

import pytest

from colibri.core.errors import Refused
from colibri.server import ColibriToolConfig, register_colibri_tool
from colibri.server.context import add_tool
from colibri.server.work import Work
from tests.contract import Linked
from tests.support.in_process import Nothing, project, tool
from tests.support.ledger_reader import calls, eventually, reading

ENDINGS = {"refuse": "refused", "fail": "error", "keep": "ok"}


@pytest.mark.parametrize("foreign", [False, True], ids=["own tools", "with a registered tool"])
def test_a_call_that_fails_after_a_write_undoes_itself_alone(tmp_path: Path, foreign: bool) -> None:
    """Specification 3.7: a foreign handler is never run twice (decision 010)."""
    server = Linked(config=project(tmp_path))
    begun, go, ran = threading.Event(), threading.Event(), []

    def hold(work: Work, args: object) -> object:
        begun.set()
        return {"went": go.wait(30)}

    def handler(name: str) -> object:
        def handle(work: Work, args: object) -> object:
            ran.append(name)
            work.db.execute("INSERT INTO meta (key, value) VALUES (?, 'kept')", (name,))
            if name == "refuse":
                raise Refused("ERR_TEST", "refused after writing")
            if name == "fail":
                raise RuntimeError("failed after writing")
            return {}

        return handle

    add_tool(server.ctx, tool("hold", hold))
    for name in ENDINGS:
        add_tool(server.ctx, tool(name, handler(name)))
    once = ColibriToolConfig(input_schema=Nothing)
    register_colibri_tool(server.ctx, "once", once, lambda _: ran.append("once"))
    with server:
        server.wait_for_store()
        server.post("hold")
        assert begun.wait(30)
        names = [*(["once"] if foreign else []), *ENDINGS]
        for name in names:
            server.post(name)
        eventually(lambda: len(server.ctx.parts.load) == len(names) + 1, "all calls wait")
        go.set()
        assert [server.receive()["id"] for _ in range(len(names) + 1)] == list(
            range(1, len(names) + 2)
        )
    database = tmp_path / "data" / "colibri.db"
    assert {name: calls(database, name)[0].outcome for name in ENDINGS} == ENDINGS
    with reading(database) as db:
        kept = [key for (key,) in db.execute("SELECT key FROM meta WHERE value = 'kept'")]
    assert kept == ["keep"]
    assert ran == (names if foreign else ["refuse", *names])
