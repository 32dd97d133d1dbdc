"""Search over thoughts and the queue of tasks, through the server."""

from pathlib import Path

from tests.store.test_thought_search import HOSTILE
from tests.support.client import COLIBRI, Server


def test_a_search_is_answered_or_refused_whatever_it_asks(tmp_path: Path) -> None:
    with Server(tmp_path, COLIBRI) as server:
        server.data("audit_session_start", intent="watch birds")
        for number in range(20):
            server.data("thought_record", type="plan", content=f'pelican {number} OR "x" NEAR y')
        for question in HOSTILE.values():
            short = question.encode(errors="ignore").decode()[:256]
            if "\0" in short:
                refused = server.call("thought_record_list", search=short)["structuredContent"]
                assert "control characters" in str(refused["error"]["details"]["issues"])
                continue
            found = server.data("thought_record_list", search=short, limit=3)
            assert len(found["records"]) <= 3
            if "pelican" in short:
                assert all("pelican" in one["content"] for one in found["records"])
                assert found["total_count"] >= 20
        answer = server.request(
            "tools/call", {"name": "thought_record_list", "arguments": {"search": "p" * 257}}
        )
        assert "search: expected str of length <= 256" in str(answer)
        assert server.close() == 0


def test_tasks_held_in_other_projects_do_not_count(tmp_path: Path) -> None:
    with Server(tmp_path, COLIBRI) as one, Server(tmp_path, COLIBRI) as two:
        for project in ("roof", "roof", "cellar", "cellar", "cellar"):
            one.data("task_create", title="mend it", project=project)
        one.data("audit_session_start", intent="mend", agent_id="one")
        for number in (1, 3, 4):
            one.data("task_update", task_id=f"T-{number:04d}", claim=True)
        two.data("audit_session_start", intent="mend", agent_id="two")
        seen = {}
        for name in ("roof", "cellar", ""):
            wanted = {"project": name} if name else {}
            answer = two.data("task_next_actions", **wanted)
            ids = [task["task_id"] for task in answer["tasks"]]
            seen[name] = (ids, answer["total_count"], answer["held_by_others"])
        assert seen == {
            "roof": (["T-0002"], 1, 1),
            "cellar": (["T-0005"], 1, 2),
            "": (["T-0002", "T-0005"], 2, 3),
        }
        mine = one.data("task_next_actions", project="cellar")
        assert [task["task_id"] for task in mine["tasks"]] == ["T-0003", "T-0004", "T-0005"]
        assert (mine["total_count"], mine["held_by_others"]) == (3, 0)
