"""The same calls in mode TEST leave the same ledger on both engines, byte for byte.

Through the front door: the server over stdio, the hook and the commands, with clocks that stand
still (tests/support/still.py). Only server_health is left out: it tells where the ledger is and how
much memory the server has, and its exit record holds the hash of that. The receipt of a read names
the newest record that is synced (Specification 4.8), and on PostgreSQL more of them are.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from colibri.config import load
from colibri.server.ids import Ids
from colibri.store.homes import home_of
from colibri.tools.catalogue import CATALOGUE
from tests.hook.fixtures import environment as told_by
from tests.hook.fixtures import payload
from tests.support.client import JSON, Server, environment, execute_raw
from tests.support.still import stop_clock

STILL = (sys.executable, "-m", "tests.support.still")
SEED = 7
STEPS = ["GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY", "DONE"]
WHY = {"type": "reflection", "content": "it holds, as the tests say"}
DEEDS = ("PreToolUse.Bash", "PostToolUse.Bash", "PostToolUse.Edit")
LEDGER = "seq, at, kind, call, session, task, agent, payload, nonce, body, leaf, prev"
ROWS = {
    "ledger": LEDGER,
    "merkle_nodes": "*",
    "sessions": "session_id, agent",
    "tasks": "task_id, title, status",
}


class Left(NamedTuple):
    """What the work on one engine left."""

    answers: list[JSON]  # to every call
    receipts: list[JSON]  # of these
    bundles: list[bytes]
    rows: dict[str, list[Any]]


@pytest.fixture
def still_database() -> Iterator[dict[str, str]]:
    """How to reach a schema of a database of PostgreSQL in which it is always noon."""
    from tests.support import postgres

    name = f"still_{os.getpid()}"
    with postgres.server().connect() as admin:
        admin.execute(f"CREATE DATABASE {name}".encode())
    place = _beside(postgres.server().url(), name)
    with closing(postgres.team.connect(place)) as admin:
        stop_clock(admin)
        postgres.team.make(admin, name, Ids(SEED).log())
    eraser = _beside(postgres.server().url(f"{name}_eraser"), name)
    yield {"COLIBRI_DB_URL": eraser, "COLIBRI_DB_SCHEMA": name}
    with postgres.server().connect() as admin:
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def test_the_same_calls_leave_the_same_bytes(
    tmp_path: Path, still_database: dict[str, str]
) -> None:
    """Answers, leaves, seals and bundles."""
    project = tmp_path / "project"  # the same path for both: deeds name files
    found = []
    for name, env in (("sqlite", {}), ("postgres", still_database)):
        project.mkdir()
        found.append(_leave(project, {"COLIBRI_MODE": "TEST", "COLIBRI_SEED": str(SEED), **env}))
        project.rename(tmp_path / name)
    sqlite, postgres = found
    assert postgres.answers == sqlite.answers
    assert postgres.rows == sqlite.rows
    assert postgres.bundles == sqlite.bundles
    _require_all_of_it(sqlite)
    for left in found:
        _require_receipts(left)


def _require_all_of_it(left: Left) -> None:
    """They are not the same because little happened."""
    records = left.rows["ledger"]
    kinds = {"deed", "deed.text", "erasure", "session.seal", "task", "thought"}
    assert kinds <= {record[2] for record in records}
    said = [json.loads(record[9]) for record in records if record[9]]
    tools = {payload.get("tool") for payload in said}
    assert {tool.name for tool in CATALOGUE} - tools == {"server_health"}
    assert all(left.rows.values())


def _require_receipts(left: Left) -> None:
    """Each names a record of the ledger."""
    leaves = {record[0]: record[-2].hex() for record in left.rows["ledger"]}
    assert len(left.receipts) > len(CATALOGUE)
    for receipt in left.receipts:
        assert leaves[receipt["seq"]] == receipt["head"]


def _leave(project: Path, env: dict[str, Any]) -> Left:
    """Use every tool, report deeds, erase a text and export; what is there then."""
    (project / "a.txt").write_text("an old line\n", encoding="utf-8")
    host = told_by("claude-code")["CLAUDE_CODE_SESSION_ID"]
    env = {**env, "CLAUDE_CODE_SESSION_ID": host, "STILL_SEED": "server"}
    with Server(project, (*STILL, "serve"), **env) as server:
        answers = _work(server, project, env)
        assert server.close() == 0
    _run(project, env, "erase", _thought(answers), "--reason", "asked for", "--yes")
    session = answers[0]["structuredContent"]["data"]["session_id"]
    bundles = [
        _run(project, env, "export", *what, "--output", "-")
        for what in (["--all"], ["--session", session])
    ]
    with closing(home_of(*load(str(project), env).home).open_reader()) as db:
        rows = {
            table: sorted(db.execute(f"SELECT {columns} FROM {table}").fetchall())
            for table, columns in ROWS.items()
        }
    receipts = [one.pop("_meta")["colibri/receipt"] for one in answers if "_meta" in one]
    return Left(answers, receipts, bundles, rows)


def _work(server: Server, project: Path, env: dict[str, str]) -> list[JSON]:
    answers = [server.call("audit_session_start", intent="the same", agent_id="ada")]
    mine = {"session_id": answers[0]["structuredContent"]["data"]["session_id"]}

    def call(tool: str, **arguments: Any) -> None:
        answers.append(server.call(tool, **arguments))

    call("skill_list")
    call("task_next_actions")
    for number in range(20):
        key = f"k{number}"
        call("task_create", title=f"Task {number} äöü", key=key, project=f"p{number % 3}")
        why = f"reason {number}: \u1e9e \U0001f30a"
        call("thought_record", type="decision", content=why, task_id=f"T-{number + 1:04d}")
    for name in DEEDS:
        _report(project, env, name)
    call("task_next_actions", claim=True)
    call("task_update", task_id="T-0001", status=STEPS, thought=WHY)
    call("task_update", task_id="T-0001", status="APPLY")  # refused
    call("task_update", task_id="T-0002", status="GATHER", colour="red")  # invalid
    call("task_create", title="Task 3 äöü", key="k3", project="p0")  # sent again
    call("task_get", task_id="T-0001")
    call("task_list", search="task 1")
    call("thought_record_list", search="reason 7")
    call("audit_verify_chain")
    call("merkle_finalize", **mine)
    call("merkle_root", **mine)
    call("audit_session_start", intent="the next")
    call("server_ping")  # last, since it is answered before it is recorded
    return answers


def _thought(answers: list[JSON]) -> str:
    """The seq of the thought that was searched for."""
    found = [one["structuredContent"].get("data", {}).get("records") for one in answers]
    ((first, *_),) = [records for records in found if records]
    return str(first["seq"])


def _report(project: Path, env: dict[str, str], name: str) -> None:
    """As a host does, by its hook."""
    text = json.dumps(payload("claude-code", name)).replace("/project", str(project))
    host = {**told_by("claude-code"), "CLAUDE_PROJECT_DIR": str(project), "PWD": str(project)}
    _run(project, {**host, **env, "STILL_SEED": name}, "hook", input=text.encode())


def _run(project: Path, env: dict[str, str], *arguments: str, input: bytes = b"") -> bytes:
    done = execute_raw([*STILL, *arguments], cwd=project, env=environment(**env), input=input)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _beside(url: str, database: str) -> str:
    return f"{url.rpartition('/')[0]}/{database}"
