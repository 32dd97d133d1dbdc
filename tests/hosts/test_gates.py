"""The gates in a real host: what the model reads when an edit or DONE is refused, and what then.

Specification 21.2 and 21.8.
"""

from pathlib import Path

import pytest

from tests.hosts.drive import HOSTS, Place, run
from tests.hosts.model import Turn, say
from tests.hosts.test_sessions import PASSES, Played, ready

pytestmark = pytest.mark.slow

RULES = f'[gate.done]\ncommand = "{PASSES}"\n[gate.edit]\nstate = "APPLY"\n'


def story(project: Path) -> list[Turn]:
    tools = HOSTS["claude-code"].tools
    ours, file = tools.colibri, str(project / "a.txt")
    why = {"type": "reflection", "content": "It is written."}

    def done() -> Turn:
        return [ours("task_update", task_id="T-0001", status=["VERIFY", "DONE"], thought=why)]

    return [
        [ours("audit_session_start", intent="Write a file", agent_id="agent")],
        [ours("task_create", title="Write a file")],
        [tools.write(file, "beta\n")],
        [ours("task_update", task_id="T-0001", status=["GATHER", "ANALYZE", "PLAN", "APPLY"])],
        [tools.write(file, "alpha\n")],
        done(),
        [tools.run(f"{PASSES} || true")],
        done(),
        [tools.run(PASSES)],
        done(),
        [say("Done.")],
    ]


def test_claude_code_denies_the_edit_and_the_server_refuses_done_until_the_test_has_passed(
    tmp_path: Path,
) -> None:
    place = Place.below(tmp_path)
    ready(place, "claude-code")
    (place.project / "colibri.toml").write_text(RULES)
    ran = run("claude-code", story(place.project), place)
    assert ran.code == 0, ran.err[-2000:]
    played = Played("claude-code", place, ran)
    assert ran.sent("colibri.toml allows edits only while you hold a task in APPLY or later")
    assert ran.sent("Call task_next_actions with")
    assert ran.sent("no command of this session was seen")
    assert ran.sent("it has a shell operator")
    (denied,) = played.deeds("tool.denied")
    assert denied["payload"]["class"] == "edit"
    assert (place.project / "a.txt").read_text() == "alpha\n"
    moves = [one["payload"] for one in played.records("task") if "gate" in one["payload"]]
    (seq,) = [one["seq"] for one in played.ends() if one["payload"]["class"] == "run"][1:]
    assert [one["gate"]["evidence"] for one in moves] == [[seq]]
    place.colibri("verify")
