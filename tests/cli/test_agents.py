"""`colibri agents`: what each agent and each person has done, counted from the records."""

import json
import time
from pathlib import Path

import pytest

from tests.support import engines
from tests.support.client import COLIBRI, Server
from tests.support.program import database_of, tamper
from tests.support.sample_project import Printed, Shown


def test_each_agent_is_credited_with_its_own_work(tmp_path: Path, colibri: Printed) -> None:
    with Server(tmp_path, COLIBRI, COLIBRI_CLAIM_MINUTES="0.0001") as server:
        ada = server.data("audit_session_start", intent="one", agent_id="ada")["session_id"]
        bob = server.data("audit_session_start", intent="two", agent_id="bob")["session_id"]
        for title in ("one", "two", "three"):
            server.data("task_create", title=title, session_id=ada)
        reason = {"type": "reflection", "content": "because"}
        steps = ["GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY"]
        server.data("task_update", task_id="T-0001", status=steps, session_id=ada)
        server.data("task_update", task_id="T-0001", status="GATHER", session_id=ada)
        end = ["ANALYZE", "PLAN", "APPLY", "VERIFY", "DONE"]
        server.data("task_update", task_id="T-0001", status=end, thought=reason, session_id=ada)
        server.data("task_update", task_id="T-0002", claim=True, session_id=ada)
        time.sleep(0.05)  # the claim is dead after 6 ms
        server.data(
            "task_update", task_id="T-0002", status="CANCELLED", thought=reason, session_id=bob
        )
        server.call("task_update", task_id="T-0001", status="DONE", session_id=bob)
        server.data("audit_verify_chain")
        server.data("task_update", task_id="T-0003", claim=True, session_id=bob)
        server.data("merkle_finalize", session_id=ada)
    code, out, _ = colibri(tmp_path, "agents", "--json")
    found = {one["name"]: one for one in json.loads(out)}
    assert code == 0
    wanted = ("sessions", "sealed", "finished", "cancelled", "retried", "refused", "thoughts")
    assert [found["ada"][name] for name in wanted] == [1, 1, 1, 0, 1, 0, 1]
    assert [found["bob"][name] for name in wanted] == [1, 0, 0, 1, 0, 1, 1]
    assert (found["ada"]["abandoned"], found["bob"]["abandoned"]) == (1, 0)
    assert (found["ada"]["holds"], found["bob"]["holds"]) == (0, 1)
    assert sum(one["verified"] for one in found.values()) == 1


def test_a_project_in_which_nobody_has_worked_says_so(tmp_path: Path, colibri: Printed) -> None:
    with Server(tmp_path, COLIBRI):
        pass
    code, out, err = colibri(tmp_path, "agents")
    assert (code, out) == (0, "")
    assert "nobody has worked on this project yet" in err


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """One agent that has finished a task and holds another, and one that gave no name."""
    with Server(tmp_path, COLIBRI) as server:
        server.data("task_create", title="one")
        server.data("audit_session_start", intent="work", agent_id="ada")
        server.data("task_create", title="two")
        steps = ["GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY", "DONE"]
        reason = {"type": "reflection", "content": "because"}
        server.data("task_update", task_id="T-0001", status=steps, thought=reason)
        server.data("task_update", task_id="T-0002", claim=True)
        server.data("audit_verify_chain")
    return tmp_path


def test_what_an_agent_holds_and_leaves_is_left_behind(
    project: Path, colibri: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, nameless = json.loads(colibri(project, "agents", "--json")[1])
    assert (ada["name"], ada["holds"], ada["abandoned"]) == ("ada", 1, 0)
    assert (nameless["name"], nameless["calls"]) == (None, 1)
    monkeypatch.setenv("COLIBRI_CLAIM_MINUTES", "0.0001")
    ada, _ = json.loads(colibri(project, "agents", "--json")[1])
    assert (ada["holds"], ada["abandoned"]) == (1, 1)


def test_a_pipe_gets_columns_and_a_terminal_what_there_is_to_say(
    project: Path, colibri: Printed, shown: Shown
) -> None:
    headings, ada, nameless = colibri(project, "agents")[1].splitlines()
    assert headings.split()[:2] == ["AGENT", "DONE"]
    assert (ada.split()[:2], nameless.split()[:2]) == (["ada", "1"], ["-", "0"])
    text = shown(120, "agents", project=project)
    assert (
        "ada        1 done, 1 in hand  1 thought · 5 calls · 1 session · 1 check of the log · last"
        in text
    )
    assert "(no name)  1 call · last seen" in text, "in one column with the other names"
    assert " 0 " not in text


def test_a_part_is_named_with_its_whole(project: Path, shown: Shown) -> None:
    with Server(project, COLIBRI) as server:
        session = server.data("audit_session_start", intent="more", agent_id="ada")["session_id"]
        server.data("thought_record", type="plan", content="x")
        server.call("task_update", task_id="T-0009", status="DONE")
        server.data("merkle_finalize", session_id=session)
    text = shown(120, "agents", project=project)
    assert "1 of 9 calls refused · 1 of 2 sessions sealed" in text


def test_a_record_that_cannot_be_read_is_not_counted(project: Path, colibri: Printed) -> None:
    tamper(
        database_of(project), f"UPDATE ledger SET body = {engines.blob(b'{')} WHERE kind = 'task'"
    )
    ada, _ = json.loads(colibri(project, "agents", "--json")[1])
    assert (ada["finished"], ada["thoughts"]) == (0, 1)


@pytest.mark.parametrize("said", ["{}", '{"set":7}', '{"set":{"status":"DONE"},"taken":1}', "[]"])
def test_a_record_of_another_form_is_not_counted(
    project: Path, colibri: Printed, said: str
) -> None:
    tamper(database_of(project), f"UPDATE ledger SET body = {engines.blob(said.encode())}")
    tamper(database_of(project), "UPDATE tasks SET holder = NULL")
    code, out, _ = colibri(project, "agents", "--json")
    assert (code, {one["finished"] for one in json.loads(out)}) == (0, {0})


@pytest.mark.parametrize("command", [["agents"], ["tasks", "T-0002"]])
def test_a_holder_that_no_record_opened_is_an_error_that_says_so(
    project: Path, colibri: Printed, command: list[str]
) -> None:
    tamper(database_of(project), "UPDATE tasks SET holder = 'S-gone' WHERE holder IS NOT NULL")
    code, _, err = colibri(project, *command)
    assert (code, "session S-gone" in err) == (1, True)
