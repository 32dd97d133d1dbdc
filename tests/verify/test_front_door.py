"""What breaks a rule of claims, resumed sessions or repeats, in the database of a real server."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import COLIBRI, Server
from tests.support.forging import rows_of
from tests.support.ledger_reader import reading
from tests.support.ledger_writer import disable_triggers, opened
from tests.support.program import colibri
from tests.vectors.builder import bundle_from
from tests.verify.conftest import INDEX, VECTORS

MARK = "zzq"  # begins whatever must be gone
LIES = {  # one for each code
    entry["code"]: entry
    for entry in INDEX
    if entry["file"].startswith("bad/claims-") and entry["code"] not in ("bad-payload", "bad-pair")
    if json.loads((VECTORS / entry["file"]).read_bytes().splitlines()[0])["scope"] is None
}


def test_the_lies_cover_the_new_rules() -> None:
    assert LIES.keys() == {
        *("change-after-seal", "outside-session", "wrong-server", "wrong-holder", "claimed-change"),
        *("wrong-takeover", "bad-repeat", "missing-evidence", "stray-change", "wrong-digest"),
    }


@pytest.mark.parametrize("code", LIES)
def test_the_tool_and_the_command_report_a_forged_database(code: str, tmp_path: Path) -> None:
    """The chain is rewritten, so that only the rule can detect it."""
    entry = LIES[code]
    bundle = bundle_from((VECTORS / entry["file"]).read_bytes())
    with opened(tmp_path, bundle["log"]) as db:
        disable_triggers(db)
        db.executemany(f"INSERT INTO ledger VALUES ({'?, ' * 11}?)", rows_of(bundle))
    exited, out, err = colibri(tmp_path, "verify", "--json")
    assert exited == 1, err
    found = {(one["code"], one["seq"]) for one in json.loads(out)["findings"]}
    assert (code, entry["seq"]) in found
    with Server(tmp_path, COLIBRI) as server:
        data = server.data("audit_verify_chain")
        server.close()
    assert data["valid"] is False
    assert (code, entry["seq"]) in {(one["what"], one["seq"]) for one in data["breaks"]}


def call(server: Server, tool: str, meta: dict[str, Any], **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    answer = server.request("tools/call", params)["result"]
    assert answer["isError"] is False, answer
    data: dict[str, Any] = answer["structuredContent"]["data"]
    return data


def files_with(project: Path, text: str) -> list[str]:
    files = (project / "data").glob("*")
    return [path.name for path in files if text.encode() in path.read_bytes()]


@pytest.mark.parametrize("resumed", [False, True])
def test_nothing_of_an_erased_call_stays_in_any_table(tmp_path: Path, resumed: bool) -> None:
    """The client, its session and use, a key, an intent, the words of thoughts; the key counts."""
    client = {"name": f"{MARK}client", "version": "1"}
    meta = {"io.modelcontextprotocol/clientInfo": client, "threadId": f"{MARK}thread"}
    meta["callId"] = f"{MARK}use"
    thought = {"session_id": "S-1", "type": "plan", "content": f"{MARK}content"}
    with Server(tmp_path, COLIBRI) as server:
        call(server, "audit_session_start", meta, session_id="S-1", intent=f"{MARK}intent")
        if resumed:
            call(server, "audit_session_start", meta, session_id="S-1", resume=True, brief=False)
        first = call(server, "thought_record", meta, **thought, key=f"{MARK}key")
        made = call(server, "task_create", {}, title=f"{MARK}title", key=f"{MARK}key")
        update = {"task_id": made["task_id"], "session_id": "S-1", "claim": True}
        call(server, "task_update", {}, **update, thought={**thought_of(f"{MARK}why")})
        for number in range(20):  # so that the index of words has them
            call(server, "thought_record", {}, session_id="S-1", **thought_of(f"{MARK}{number}"))
        assert files_with(tmp_path, MARK)
        server.close()
    with reading(tmp_path / "data" / "colibri.db") as db:
        query = "SELECT seq FROM ledger WHERE instr(body, CAST(? AS BLOB)) ORDER BY seq"
        named = [str(seq) for (seq,) in db.execute(query, (MARK,)) if seq]
        kinds = "('call.enter', 'session.open', 'thought', 'task.text')"
        holds = {str(seq) for (seq,) in db.execute(f"SELECT seq FROM ledger WHERE kind IN {kinds}")}
    assert {*named} <= holds
    exited, _, err = colibri(tmp_path, "erase", *named, "--reason", "asked for", "--yes")
    assert exited == 0, err
    assert files_with(tmp_path, MARK) == []
    exited, out, err = colibri(tmp_path, "verify")
    assert exited == 0, out + err
    with Server(tmp_path, COLIBRI) as server:
        if not resumed:
            again = call(server, "thought_record", {}, **thought, key=f"{MARK}key")
            assert (again["thought_id"], again["repeated"]) == (first["thought_id"], True)
        again = call(server, "task_create", {}, title="another", key=f"{MARK}key")
        assert (again["task_id"], again["repeated"]) == (made["task_id"], True)
        server.close()
    exited, out, err = colibri(tmp_path, "verify")
    assert exited == 0, out + err


def thought_of(content: str) -> dict[str, str]:
    return {"type": "plan", "content": content}
