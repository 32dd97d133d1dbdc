"""Which session owns a call: the one that it names, else the one in which its caller works."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import engines
from tests.support.client import COLIBRI, JSON, Server
from tests.support.ledger_reader import reading
from tests.support.task_client import refusal

WHY: JSON = {"type": "decision", "content": "so"}
CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
SILENCE = 1.0  # seconds after which a session of an impatient server counts as dead


def hasty(project: Path) -> Server:
    return Server(project, COLIBRI, COLIBRI_CLAIM_MINUTES=f"{SILENCE / 60:.6f}")


def start(server: Server, session: str, **more: Any) -> JSON:
    return server.data("audit_session_start", intent="try", session_id=session, brief=False, **more)


def enters(server: Server) -> list[tuple[Any, ...]]:
    """Tool, session and agent of every call except probes, which are recorded late."""
    with reading(server.database) as db:
        rows = db.execute(
            "SELECT body, session, agent FROM ledger WHERE kind = 'call.enter' ORDER BY seq"
        )
        found = [(json.loads(body)["tool"], *owner) for body, *owner in rows]
    return [one for one in found if not one[0].startswith("server_")]


def owner(server: Server) -> tuple[str | None, str | None]:
    """The owner of a call made now that names no session."""
    server.data("task_list")
    _, session, agent = enters(server)[-1]
    return session, agent


def with_meta(server: Server, tool: str, meta: JSON, **arguments: Any) -> JSON:
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    result: JSON = server.request("tools/call", params)["result"]
    return result


def test_calls_sent_right_after_a_start_belong_to_its_session(tmp_path: Path) -> None:
    """Specification 3.6, 7.4: a start has its own round, so that later calls see it."""
    calls: list[tuple[str, JSON]] = [
        ("task_create", {"title": "before"}),
        ("audit_session_start", {"intent": "try", "session_id": "S-1", "agent_id": "ada"}),
        ("task_create", {"title": "after"}),
        ("thought_record", WHY),
        ("task_next_actions", {"claim": True}),
        ("task_update", {"task_id": "T-0001", "status": "DONE", "agent_id": "eve"}),
        ("task_update", {"task_id": "no id"}),
        ("no_such_tool", {}),
        ("merkle_finalize", {"session_id": "S-1"}),
        ("task_create", {"title": "late"}),
    ]
    with Server(tmp_path, COLIBRI) as server:
        ids = [server.post_call(tool, **arguments) for tool, arguments in calls]
        for id in ids:
            server.answer(id)
        found = enters(server)
        assert server.close() == 0
    mine = ("S-1", "ada")
    owners = [(None, None), *[mine] * 4, ("S-1", "eve"), *[mine] * 3, (None, None)]
    assert found == [(tool, *owner) for (tool, _), owner in zip(calls, owners, strict=True)]


def test_a_probe_belongs_to_the_session_too(tmp_path: Path) -> None:
    with Server(tmp_path, COLIBRI) as server:
        start(server, "S-1", agent_id="ada")
        server.data("server_ping")
        server.data("task_create", title="x")
        assert server.close() == 0
        with reading(server.database) as db:
            rows = db.execute("SELECT session, agent, body FROM ledger WHERE kind = 'call.enter'")
            owners = [one for *one, body in rows if json.loads(body)["tool"] == "server_ping"]
    assert owners == [["S-1", "ada"]]


def test_with_two_sessions_neither_is_assumed_and_the_second_start_says_so(tmp_path: Path) -> None:
    """Specification 7.5: a wrong name is worse than none."""
    with Server(tmp_path, COLIBRI) as server:
        assert start(server, "S-1", agent_id="ada")["note"] is None
        assert owner(server) == ("S-1", "ada")
        note = start(server, "S-2")["note"]
        assert note == "name session_id from now on: you also work in S-1"
        assert owner(server) == (None, None)
        server.data("task_list", session_id="S-2")
        assert enters(server)[-1][1:] == ("S-2", None)
        server.data("thought_record", session_id="S-2", **WHY)
        server.data("merkle_finalize", session_id="S-2")
        assert owner(server) == ("S-1", "ada")
        assert start(server, "S-1b")["note"] is not None


def test_a_start_names_only_some_of_very_many_sessions(tmp_path: Path) -> None:
    with Server(tmp_path, COLIBRI) as server:
        for number in range(40):
            note = start(server, f"S-{number}")["note"]
        assert note.endswith(" more")
        assert len(note) < 400
        assert owner(server) == (None, None)


@pytest.mark.parametrize(
    "meta",
    [{CLIENT_INFO: {"name": "other", "version": "2"}}, {"threadId": "t-2"}, {"sessionId": "s-2"}],
)
def test_another_client_or_client_session_has_its_own_session(tmp_path: Path, meta: JSON) -> None:
    """Specification 7.4: one process may serve several clients."""
    opening = {"intent": "try", "brief": False}
    with Server(tmp_path, COLIBRI) as server:
        start(server, "S-1")
        made = with_meta(server, "audit_session_start", meta, session_id="S-2", **opening)
        assert made["structuredContent"]["data"]["note"] is None
        assert owner(server)[0] == "S-1"
        with_meta(server, "task_list", meta)
        assert enters(server)[-1][1] == "S-2"


def test_the_environment_of_a_client_tells_its_sessions_apart(tmp_path: Path) -> None:
    """Specification 7.4."""
    with Server(tmp_path, COLIBRI, CLAUDE_CODE_SESSION_ID="c-1") as server:
        start(server, "S-1")
        with_meta(server, "task_list", {"threadId": "t-1"})
        assert enters(server)[-1][1] is None
        assert owner(server)[0] == "S-1"
        with reading(server.database) as db:
            found = db.execute("SELECT client, host_session FROM sessions").fetchall()
        assert found == [("test 1", "c-1")]


def test_a_session_of_another_process_is_not_the_current_one_until_it_is_resumed(
    tmp_path: Path,
) -> None:
    """Specification 7.4, 7.7: then it belongs to the process that resumed it last."""
    with Server(tmp_path, COLIBRI) as first, Server(tmp_path, COLIBRI) as second:
        start(first, "S-1", agent_id="ada")
        assert owner(second) == (None, None)
        again = second.data("audit_session_start", session_id="S-1", resume=True, agent_id="eve")
        assert (again["resumed"], again["intent"], again["agent_id"]) == (True, "try", "ada")
        assert enters(second)[-1] == ("audit_session_start", "S-1", "eve")
        assert owner(second) == ("S-1", "ada")
        assert owner(first) == (None, None)
        assert refusal(first.call("task_create", title="x", session_id="S-1"))["code"] == (
            "ERR_CLAIMED"
        )
        assert refusal(first.call("merkle_finalize", session_id="S-1"))["code"] == "ERR_CLAIMED"
        first.data("audit_session_start", session_id="S-1", resume=True)
        assert owner(first) == ("S-1", "ada")
        assert refusal(second.call("task_create", title="x", session_id="S-1"))["code"] == (
            "ERR_CLAIMED"
        )
        assert first.data("audit_verify_chain")["valid"]


def test_a_session_that_was_never_resumed_may_be_named_by_any_process(tmp_path: Path) -> None:
    with Server(tmp_path, COLIBRI) as first, Server(tmp_path, COLIBRI) as second:
        start(first, "S-1", agent_id="ada")
        second.data("task_create", title="x", session_id="S-1")
        assert enters(second)[-1] == ("task_create", "S-1", "ada")


def test_a_silent_session_owns_no_calls_until_it_is_named(tmp_path: Path) -> None:
    """Specification 7.4, 7.6: a sign of life is a call that was not refused."""
    with hasty(tmp_path) as server:
        start(server, "S-1")
        assert owner(server)[0] == "S-1"
        time.sleep(SILENCE * 1.2)
        assert owner(server)[0] is None
        refusal(server.call("task_get", task_id="T-0099", session_id="S-1"))
        assert owner(server)[0] is None
        server.data("task_list", session_id="S-1")
        assert owner(server)[0] == "S-1"


def test_selecting_a_session_does_not_name_the_caller(tmp_path: Path) -> None:
    """Specification 7.3: reading a trail earns no credit for it."""
    selecting: list[tuple[str, JSON]] = [
        ("thought_record_list", {"session_id": "S-1"}),
        ("audit_verify_chain", {"session_id": "S-1"}),
        ("merkle_root", {"session_id": "S-1"}),
        ("task_list", {"holder": "S-1"}),
    ]
    with Server(tmp_path, COLIBRI) as worker, Server(tmp_path, COLIBRI) as reader:
        start(worker, "S-1")
        worker.data("thought_record", **WHY)
        worker.data("merkle_finalize", session_id="S-1")
        for tool, arguments in selecting:
            reader.data(tool, **arguments)
            assert enters(reader)[-1] == (tool, None, None)


# Claims.


def taken(server: Server, **change: Any) -> JSON:
    return server.data("task_update", task_id="T-0001", **change)


ENDS: dict[str, Callable[[Server], object]] = {
    "seal": lambda server: server.data("merkle_finalize", session_id="S-1"),
    "CANCELLED": lambda server: taken(server, status="CANCELLED"),
    "DONE": lambda server: taken(
        server, status=["GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY", "DONE"]
    ),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_claim_ends_with_the_seal_and_with_the_task(tmp_path: Path, end: str) -> None:
    """Specification 8.4: by itself, without a record."""
    with Server(tmp_path, COLIBRI) as server:
        start(server, "S-1")
        server.data("task_create", title="x")
        assert taken(server, claim=True)["holder"] == "S-1"
        assert server.data("task_list", holder="S-1")["total_count"] == 1
        server.data("thought_record", task_id="T-0001", **WHY)
        ENDS[end](server)
        assert server.data("task_get", task_id="T-0001")["holder"] is None
        assert server.data("task_list", holder="S-1")["total_count"] == 0
        with reading(server.database) as db:
            kinds = db.execute("SELECT kind FROM ledger WHERE kind NOT LIKE 'call.%'").fetchall()
        assert len(kinds) == {"seal": 6, "CANCELLED": 6, "DONE": 11}[end]
        assert server.data("audit_verify_chain")["valid"]


def test_moving_takes_a_free_task_and_a_call_without_a_session_takes_nothing(
    tmp_path: Path,
) -> None:
    """Specification 8.1."""
    with Server(tmp_path, COLIBRI) as server:
        server.data("task_create", title="x")
        assert taken(server, status="GATHER")["holder"] is None
        start(server, "S-1")
        assert taken(server, title="y")["holder"] is None
        assert taken(server, status="ANALYZE")["holder"] == "S-1"
        assert taken(server, claim=False)["holder"] is None
        before = taken(server, claim=False)
        assert before == server.data("task_update", task_id="T-0001", title="y")


def test_only_a_move_or_a_claim_takes_over_from_the_dead(tmp_path: Path) -> None:
    """Specification 8.5, 8.6: `taken` names the last sign of life; the loser claims again."""
    with (
        hasty(tmp_path) as dead,
        hasty(tmp_path) as heir,
        hasty(tmp_path) as nobody,
    ):
        start(dead, "S-1", agent_id="ada")
        dead.data("task_create", title="x")
        taken(dead, status="GATHER")
        start(heir, "S-2")
        time.sleep(SILENCE * 1.2)
        stranger = refusal(nobody.call("task_update", task_id="T-0001", status="ANALYZE"))
        assert (stranger["is_alive"], "name your session_id" in stranger["message"]) == (
            False,
            True,
        )
        edit = refusal(heir.call("task_update", task_id="T-0001", title="y", session_id="S-2"))
        assert (edit["is_alive"], "add claim: true" in edit["message"]) == (False, True)
        assert taken(heir, status="ANALYZE", session_id="S-2")["holder"] == "S-2"
        taken(heir, claim=False, session_id="S-2")
        for change in ({"status": "PLAN"}, {"title": "z"}, {"claim": False}):
            lost = refusal(dead.call("task_update", task_id="T-0001", session_id="S-1", **change))
            assert (lost["code"], lost["lost"]) == ("ERR_CLAIMED", True)
            assert "claim: true" in lost["message"]
        moved = taken(dead, claim=True, status="PLAN", session_id="S-1")
        assert (moved["holder"], moved["status"]) == ("S-1", "PLAN")
        assert taken(dead, title="z", session_id="S-1")["title"] == "z"
        assert dead.data("audit_verify_chain")["valid"]


def test_mine_comes_first_then_what_is_free_and_others_are_counted(tmp_path: Path) -> None:
    """Specification 8.8: within the requested filter."""
    with Server(tmp_path, COLIBRI) as server, Server(tmp_path, COLIBRI) as other:
        start(server, "S-1")
        start(other, "S-2")
        for priority in ("low", "critical", "high", "medium"):
            server.data("task_create", title=priority, priority=priority, project="p")
        server.data("task_create", title="elsewhere", project="q")
        taken(server, claim=True)
        other.data("task_update", task_id="T-0003", claim=True)
        other.data("task_update", task_id="T-0005", claim=True)
        mine = server.data("task_next_actions", project="p")
        assert [task["task_id"] for task in mine["tasks"]] == ["T-0001", "T-0002", "T-0004"]
        assert (mine["total_count"], mine["held_by_others"]) == (3, 1)
        theirs = other.data("task_next_actions", project="q")
        assert (len(theirs["tasks"]), theirs["total_count"], theirs["held_by_others"]) == (1, 1, 0)
        nobodys = server.data("task_next_actions", project="q")
        assert (nobodys["tasks"], nobodys["total_count"], nobodys["held_by_others"]) == ([], 0, 1)
        none = server.data("task_next_actions", project="q", claim=True)
        assert (none["tasks"], none["held_by_others"]) == ([], 1)


# Checks, evidence, keys.


def test_the_checks_come_in_their_order(tmp_path: Path) -> None:
    """Specification 6.7: a call that breaks every rule gets one error after the other."""
    with Server(tmp_path, COLIBRI) as server, Server(tmp_path, COLIBRI) as other:
        server.data("task_create", title="done")
        server.data("task_create", title="open")
        start(other, "S-2")
        other.data("task_update", task_id="T-0002", claim=True)
        start(server, "S-1")
        taken(server, status="CANCELLED", thought=WHY)
        wrong: JSON = {
            "session_id": "nobody",
            "task_id": "T-0099",
            "expected_version": 99,
            "depends_on": ["T-0098"],
            "status": ["GATHER", "APPLY"],
        }

        def code(**mended: Any) -> str:
            wrong.update(mended)
            found: str = refusal(server.call("task_update", **wrong))["code"]
            return found

        assert code() == "ERR_SESSION_NOT_FOUND"
        assert code(session_id="S-1") == "ERR_NOT_FOUND"
        assert code(task_id="T-0002") == "ERR_CLAIMED"
        other.data("task_update", task_id="T-0002", claim=False)
        assert code() == "ERR_VERSION_CONFLICT"
        assert code(task_id="T-0001") == "ERR_VERSION_CONFLICT"
        assert code(expected_version=2) == "ERR_INVALID_TRANSITION"
        assert code(task_id="T-0002", expected_version=3) == "ERR_NOT_FOUND"
        assert code(depends_on=["T-0002"]) == "ERR_CYCLE"
        assert code(depends_on=[]) == "ERR_INVALID_TRANSITION"
        blocked = server.data("task_create", title="x")["task_id"]
        assert code(depends_on=[blocked], status=["GATHER", "ANALYZE", "PLAN", "APPLY"]) == (
            "ERR_BLOCKED"
        )
        assert code(depends_on=[], status=["GATHER", "CANCELLED"]) == "ERR_WRITEBACK_REQUIRED"
        assert server.data("task_get", task_id="T-0002")["version"] == 3


def test_a_thought_is_recorded_first_and_is_evidence_for_its_moves(tmp_path: Path) -> None:
    """Specification 6.15: then one record per step, the first with the fields, then the text."""
    with Server(tmp_path, COLIBRI) as server:
        start(server, "S-1")
        server.data("task_create", title="x")
        taken(server, status=["GATHER", "CANCELLED"], thought=WHY, title="y", priority="high")
        with reading(server.database) as db:
            rows = db.execute(
                "SELECT kind, body FROM ledger WHERE kind NOT LIKE 'call.%' AND seq > 8"
                " ORDER BY seq"
            )
            found = [(kind, json.loads(body)) for kind, body in rows]
    assert [kind for kind, _ in found] == ["thought", "task", "task", "task.text"]
    first, second, text = (said for _, said in found[1:])
    assert first["set"].keys() == {"status", "holder", "priority"}
    assert second["set"] == {"status": ["GATHER", "CANCELLED"]}
    assert (first["version"], second["version"], text["version"]) == (2, 3, 3)


def test_a_thought_that_was_recorded_before_is_evidence_for_the_end(tmp_path: Path) -> None:
    with Server(tmp_path, COLIBRI) as server:
        start(server, "S-1")
        server.data("task_create", title="x")
        error = refusal(server.call("task_update", task_id="T-0001", status="CANCELLED"))
        assert error["code"] == "ERR_WRITEBACK_REQUIRED"
        server.data("thought_record", task_id="T-0001", **WHY)
        assert taken(server, status="CANCELLED")["status"] == "CANCELLED"


def test_a_key_counts_for_its_tool_and_for_thoughts_in_its_session(tmp_path: Path) -> None:
    """Specification 6.16: a repeated call answers with the current state of what was made."""
    with Server(tmp_path, COLIBRI) as server:
        made = server.data("task_create", title="x", key="k", priority="medium")
        assert made["repeated"] is False
        start(server, "S-1")
        server.data("task_update", task_id="T-0001", title="y")
        again = server.data("task_create", title="x", key="k", agent_id="eve", depends_on=[])
        assert (again["repeated"], again["task_id"], again["title"]) == (True, "T-0001", "y")
        first = server.data("thought_record", key="k", **WHY)
        start(server, "S-2")
        other = server.data("thought_record", key="k", session_id="S-2", **WHY)
        assert (first["repeated"], other["repeated"]) == (False, False)
        twice = server.data("thought_record", key="k", session_id="S-1", **WHY)
        assert twice == {**first, "repeated": True}
        with reading(server.database) as db:
            rows = db.execute("SELECT body FROM ledger WHERE kind = 'call.exit' ORDER BY seq")
            repeats = [json.loads(body)["repeats"] for (body,) in rows]
        assert [one for one in repeats if one is not None] == [1, first["seq"] - 1]
        assert server.data("audit_verify_chain")["valid"]


def test_the_first_answer_counts_for_a_key_with_a_secret(tmp_path: Path) -> None:
    """Specification 6.17: what redaction replaced cannot be compared."""
    engines.require_sqlite("it looks into the files")
    secret = "ghp_" + "A1b2C3d4" * 4 + "E5f6"
    with Server(tmp_path, COLIBRI) as server:
        first = server.data("task_create", title=f"use {secret}", key="k")
        assert secret not in first["title"]
        again = server.data("task_create", title=f"use {secret[::-1]} or {secret}", key="k")
        assert again == {**first, "repeated": True}


def test_a_secret_in_a_thought_that_comes_with_a_move_is_never_stored(tmp_path: Path) -> None:
    engines.require_sqlite("it looks into the files")
    secret = "ghp_" + "A1b2C3d4" * 4 + "E5f6"
    with Server(tmp_path, COLIBRI) as server:
        start(server, "S-1")
        server.data("task_create", title="x")
        taken(server, status="GATHER", thought={"type": "plan", "content": f"use {secret}"})
        (thought,) = server.data("thought_record_list")["records"]
        assert secret not in thought["content"]
        assert server.close() == 0
        files = [path.read_bytes() for path in server.database.parent.iterdir()]
    assert not any(secret.encode() in data for data in files)


# Modes.


def test_a_server_that_only_reads_has_no_queue_to_take_from(tmp_path: Path) -> None:
    """Specification 8.8: it is not among the six tools of READONLY."""
    with Server(tmp_path, COLIBRI) as server:
        server.data("task_create", title="x")
        assert server.close() == 0
    with Server(tmp_path, COLIBRI, COLIBRI_MODE="READONLY") as server:
        listed = [tool["name"] for tool in server.request("tools/list")["result"]["tools"]]
        assert "task_next_actions" not in listed
        assert "task_list" in listed
        assert server.request("tools/call", {"name": "task_next_actions", "arguments": {}})["error"]
        assert server.data("task_list")["total_count"] == 1
