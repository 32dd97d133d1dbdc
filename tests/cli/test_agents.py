"""`colibri agents`: what each agent and each person has done, counted from the records."""

import json
import time
from pathlib import Path

from tests.support.client import COLIBRI, Server
from tests.support.sample_project import Printed


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
