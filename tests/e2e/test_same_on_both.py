"""The same calls in mode TEST leave the same ids, nonces and records on both engines.

Only the time differs, and what is made of it: hashes are compared by the tests of the store, whose
time stands still.
"""

import json
from pathlib import Path
from typing import Any

from colibri.tools.catalogue import CATALOGUE
from tests.support import engines
from tests.support.client import COLIBRI, Server
from tests.support.ledger_reader import reading
from tests.support.observed import HOST, edit, run
from tests.support.program import colibri

COLUMNS = "seq, kind, call, session, task, agent, nonce, length(leaf)"
MADE_OF_TIME = {"duration_ms", "result_sha256", "prev", "root"}
WHY = {"type": "reflection", "content": "it holds, as the tests say"}


def test_the_same_calls_leave_the_same_records(tmp_path: Path) -> None:
    found = {}
    for name in engines.ENGINES:
        with engines.use(name):
            (tmp_path / name).mkdir()
            found[name] = _leave(tmp_path / name)
    assert found["postgres"] == found["sqlite"]
    assert {kind for _, kind, *_ in found["sqlite"]} >= {"deed", "deed.text", "erasure"}
    tools = {said.get("tool") for *_, said in found["sqlite"] if said}
    assert {tool.name for tool in CATALOGUE} <= tools


def _leave(project: Path) -> list[Any]:
    """Use every tool, report deeds and erase a text; the records of it."""
    path = project / "data" / "colibri.db"
    env: Any = {"COLIBRI_MODE": "TEST", "COLIBRI_DB_PATH": str(path)}
    with Server(project, COLIBRI, CLAUDE_CODE_SESSION_ID=HOST, **env) as server:
        _work(server, project)
        thought = server.data("thought_record_list", search="reason 7")["records"][0]["seq"]
    may_erase = engines.environment(project, "eraser") | env
    asked = ("--reason", "asked for", "--yes")
    assert colibri(project, "erase", str(thought), *asked, **may_erase)[0] == 0
    with reading(path) as db:
        rows = db.execute(f"SELECT {COLUMNS}, body FROM ledger ORDER BY seq").fetchall()
    return [(*_repeatable(row), _without_time(row[1], body)) for *row, body in rows]


def _work(server: Server, project: Path) -> None:
    session = server.data("audit_session_start", intent="the same", agent_id="ada", brief=False)
    mine = {"session_id": session["session_id"]}
    for tool in ("server_ping", "server_health", "skill_list", "task_next_actions"):
        server.data(tool)
    for number in range(20):
        task = server.data("task_create", title=f"Task {number} äöü", key=f"k{number}")["task_id"]
        server.data("thought_record", type="decision", content=f"reason {number}", task_id=task)
    edit(project)
    run(project, "pytest -q")
    server.data("task_next_actions", claim=True)
    steps = ["GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY", "DONE"]
    server.data("task_update", task_id="T-0001", status=steps, thought=WHY)
    assert server.call("task_update", task_id="T-0001", status="APPLY")["isError"]
    server.data("task_get", task_id="T-0001")
    server.data("task_list", search="task 1")
    server.data("merkle_finalize", **mine)
    server.data("merkle_root", **mine)
    assert server.data("audit_verify_chain")["valid"]


def _repeatable(row: list[Any]) -> list[Any]:
    """Hooks draw their ids and nonces at random, in every mode."""
    return row[:2] if row[1].startswith("deed") else row


def _without_time(kind: str, body: bytes | None) -> Any:
    said = None if body is None or kind.startswith("deed") else json.loads(body)
    return said and {name: value for name, value in said.items() if name not in MADE_OF_TIME}
