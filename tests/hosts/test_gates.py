"""The gates in a real host: what the model reads when an edit or DONE is refused, and what then.

Specification 21.2 and 21.8.
"""

import json
from pathlib import Path

import pytest

from tests.hosts.drive import HOSTS, Place, run
from tests.hosts.model import Turn, say
from tests.hosts.story import PASSES, Played, ready

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


def register_begins(place: Place) -> None:
    """What docs/gates.md tells the users of Copilot to do."""
    path = place.project / ".github" / "hooks" / "colibri.json"
    settings = json.loads(path.read_text())
    settings["hooks"]["preToolUse"] = settings["hooks"]["postToolUse"]
    path.write_text(json.dumps(settings))


# docs/gates.md, "On which hosts it can pass"; what the model reads where it cannot.
PASS = {
    **dict.fromkeys(("qwen", "opencode", "copilot with preToolUse"), ""),
    "copilot": "the hooks of copilot report only how commands end",
    **{
        name: f"has no exit code: {name} does not report it"
        for name in ("codex", "gemini", "cline")
    },
}


@pytest.mark.parametrize("name", PASS)
def test_done_passes_on_the_hosts_that_can_show_it_and_others_say_what_they_lack(
    name: str, tmp_path: Path
) -> None:
    """Specification 21.2."""
    host, place = name.split(maxsplit=1)[0], Place.below(tmp_path)
    ready(place, host)
    if host != name:
        register_begins(place)
    (place.project / "colibri.toml").write_text(f'[gate.done]\ncommand = "{PASSES}"\n')
    tools, file = HOSTS[host].tools, place.project / "a.txt"
    to_done = ["GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY", "DONE"]
    why = {"type": "reflection", "content": "It is written."}
    turns: list[Turn] = [
        [tools.colibri("audit_session_start", intent="Write a file", agent_id="agent")],
        [tools.colibri("task_create", title="Write a file")],
        [tools.write(str(file), "alpha\n")],
        [tools.run(PASSES)],
        [tools.colibri("task_update", task_id="T-0001", status=to_done, thought=why)],
        [say("Done.")],
    ]
    ran = run(host, turns, place)
    assert ran.code == 0, ran.err[-2000:]
    task = json.loads(place.colibri("tasks", "T-0001", "--json"))
    assert (task["status"] == "DONE") == (PASS[name] == "")
    assert ran.sent(PASS[name]) and ran.sent("--why TEXT") == (PASS[name] != "")
    place.colibri("verify")


@pytest.mark.parametrize("name", ["codex", "gemini", "qwen", "copilot"])
def test_every_other_host_that_can_deny_denies_the_edit_and_tells_the_model_why(
    name: str, tmp_path: Path
) -> None:
    place = Place.below(tmp_path)
    ready(place, name)
    if name == "copilot":
        register_begins(place)
    (place.project / "colibri.toml").write_text('[gate.edit]\nstate = "APPLY"\n')
    tools, file = HOSTS[name].tools, place.project / "a.txt"
    to_apply = ["GATHER", "ANALYZE", "PLAN", "APPLY"]
    turns: list[Turn] = [
        [tools.colibri("audit_session_start", intent="Write a file", agent_id="agent")],
        [tools.colibri("task_create", title="Write a file")],
        [tools.write(str(file), "beta\n")],
        [tools.colibri("task_update", task_id="T-0001", status=to_apply)],
        [tools.write(str(file), "alpha\n")],
        [say("Done.")],
    ]
    ran = run(name, turns, place)
    assert ran.code == 0, ran.err[-2000:]
    assert ran.sent("colibri.toml allows edits only while you hold a task in APPLY or later")
    assert ran.sent("Call task_next_actions with")
    (denied,) = Played(name, place, ran).deeds("tool.denied")
    assert denied["payload"]["class"] == "edit"
    assert file.read_text() == "alpha\n"
