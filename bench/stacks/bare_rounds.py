"""The floor of many calls in flight: Colibri's rows in Colibri's rounds, and nothing else.

All waiting calls form a round: their enter records and a commit, then every task with its three
records and a synced commit, then the answers. The rows, hashes and indexes are those that Colibri
writes; there are no checks, limits, threads, savepoints, search or structured answers.
"""

import json
import os
import time
from hashlib import sha256
from typing import Any

from colibri.store.ledger import _INSERT
from colibri.store.sqlite.opening import open_writer

LOG = "colibri/" + "0" * 32
TASK = (
    "INSERT INTO tasks (number, title, priority, status, attempt, version, created_at,"
    " updated_at, attempt_seq, open_dependencies)"
    " VALUES (?, ?, 'medium', 'INIT', 1, 1, ?, ?, ?, 0)"
)
AT = "2026-01-01T00:00:00.000000Z"
GREETING = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "bare", "version": "1"},
}

opened = open_writer(
    "data/colibri.db",
    lock_timeout=1,
    monotonic=time.monotonic,
    sleep=time.sleep,
    stamp="",
    new_log=lambda: LOG,
)
execute = opened.db.execute
seq, prev, tasks = 0, sha256(b"colibri/ledger/v1\n" + LOG.encode()).digest(), 0


def append(kind: str, call: str, task: str | None, payload: dict[str, object]) -> int:
    global seq, prev  # noqa: PLW0603 - a program of its own
    seq += 1
    body = json.dumps(payload, sort_keys=True, separators=(",", ":")).encode()
    nonce = os.urandom(32)
    commitment = sha256(b"colibri/payload/v1\n" + nonce + body).digest()
    named = "null" if task is None else f'"{task}"'
    header = (
        f'{{"agent":null,"at":"{AT}","call":"{call}","kind":"{kind}","log":"{LOG}","payload":'
        f'"{commitment.hex()}","prev":"{prev.hex()}","seq":{seq},"session":null,"task":{named},"v":1}}'
    ).encode()
    leaf = sha256(b"\0" + header).digest()
    row = (seq, AT, kind, call, None, task, None, commitment, nonce, body, leaf, prev)
    execute(_INSERT, row)
    prev = leaf
    return seq


def create(call: str, enter: int, title: str) -> str:
    global tasks  # noqa: PLW0603 - a program of its own
    tasks += 1
    id = f"T-{tasks:04d}"
    made = {"status": [None, "INIT"], "priority": [None, "medium"], "assignee": [None, None]}
    made |= {"project": [None, None], "depends_on": [None, []]}
    head = {"task_id": id, "version": 1}
    begun = append("task", call, id, {**head, "attempt": 1, "set": made})
    text = {"title": [None, title], "description": [None, None]}
    append("task.text", call, id, {**head, "set": text})
    execute(TASK, (tasks, title, AT, AT, begun))
    answer = json.dumps({"data": {"task_id": id, "title": title}, "ok": True})
    ended = {"enter": enter, "tool": "task_create", "outcome": "ok", "code": None}
    digest = sha256(answer.encode()).hexdigest()
    append("call.exit", call, id, {**ended, "result_sha256": digest, "duration_ms": 0})
    return answer


def round_(calls: list[dict[str, Any]]) -> bytes:
    ids, entered, answers = [], [], []
    execute("PRAGMA synchronous = NORMAL")
    execute("BEGIN IMMEDIATE")
    for message in calls:
        ids.append(os.urandom(18).hex())
        title = message["params"]["arguments"]["title"].encode()
        digest = {"sha256": sha256(title).hexdigest(), "size": len(title)}
        payload = {"server": LOG, "tool": "task_create", "arguments": {"title": digest}}
        entered.append(
            append("call.enter", ids[-1], None, payload | {"size": None, "sha256": None})
        )
    execute("COMMIT")
    execute("PRAGMA synchronous = FULL")
    execute("BEGIN IMMEDIATE")
    for message, call, enter in zip(calls, ids, entered, strict=True):
        answers.append(create(call, enter, message["params"]["arguments"]["title"]))
    execute("COMMIT")
    return b"".join(
        line(message, {"content": [{"type": "text", "text": text}], "isError": False})
        for message, text in zip(calls, answers, strict=True)
    )


def line(message: dict[str, Any], result: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode() + b"\n"


rest = b""
while chunk := os.read(0, 65536):
    *lines, rest = (rest + chunk).split(b"\n")
    waiting = []
    for message in map(json.loads, lines):
        if message["method"] == "tools/call":
            waiting.append(message)
        elif "id" in message:
            os.write(1, line(message, GREETING))
    if waiting:
        os.write(1, round_(waiting))
