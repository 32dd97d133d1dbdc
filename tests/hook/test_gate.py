"""The gate for edits: `colibri hook` denies one where the project's rule is clearly not met."""

import hashlib
import json

import pytest

from tests.hook.conftest import Project
from tests.hook.fixtures import expected
from tests.support import engines
from tests.support.client import Server

RULE = '[gate.edit]\nstate = "APPLY"\n'
DONE = 'command = "x"\n'
EDITS = {
    "claude-code": "PreToolUse.Edit",
    "codex": "PreToolUse.apply_patch",
    "copilot": "preToolUse.edit",
    "gemini": "BeforeTool.replace",
    "qwen": "PreToolUse.edit",
}


def reason(host: str, answer: str) -> str:
    """Why an edit is denied, from where its host looks for it."""
    said = json.loads(answer)
    if host == "gemini":
        assert said.keys() == {"decision", "reason"} and said["decision"] == "deny"
        return str(said["reason"])
    inner = said["hookSpecificOutput"]
    assert (inner["hookEventName"], inner["permissionDecision"]) == ("PreToolUse", "deny")
    if host == "copilot":
        assert said["permissionDecisionReason"] == inner["permissionDecisionReason"]
        assert said["permissionDecision"] == "deny"
    else:
        assert said.keys() == {"hookSpecificOutput"}
    return str(inner["permissionDecisionReason"])


def at_work(project: Project, host: str, name: str) -> Server:
    """A server whose session belongs to the host's."""
    told = expected(host, name)
    assert told is not None
    return project.server(CLAUDE_CODE_SESSION_ID=told["session"])


@pytest.mark.parametrize("host", EDITS)
def test_an_edit_without_a_task_is_denied_with_the_call_that_allows_it(
    project: Project, host: str
) -> None:
    """Specification 21.8: in the form of each host; the denied edit is a deed, and no edit."""
    (project.root / "colibri.toml").write_text(RULE)
    with at_work(project, host, EDITS[host]) as server:
        session = server.data("audit_session_start", intent="x", brief=False)["session_id"]
        server.data("task_create", title="t")
        text = reason(host, project.hook(host, EDITS[host]))
        assert "colibri.toml allows edits only while you hold a task in APPLY or later" in text
        assert json.dumps({"claim": True, "session_id": session}) in text
        (deed,) = project.records()
        assert (deed["event"], deed["class"], deed["session"]) == ("tool.denied", "edit", session)
        digest = {"sha256": hashlib.sha256(text.encode()).hexdigest(), "size": len(text.encode())}
        assert deed["output"] == digest
    project.verify()


def test_a_task_in_an_earlier_state_is_named_with_the_way_to_the_right_one(
    project: Project,
) -> None:
    """Specification 21.8: the call that is named opens the gate; later states are fine too."""
    (project.root / "colibri.toml").write_text(RULE)
    host, name = "claude-code", "PreToolUse.Edit"
    with at_work(project, host, name) as server:
        server.data("audit_session_start", intent="x", brief=False)
        server.data("task_create", title="t")
        server.data("task_update", task_id="T-0001", status="GATHER")
        text = reason(host, project.hook(host, name, tool_use_id="1"))
        assert "T-0001 is in GATHER. Call task_update with " in text
        call = json.loads(text.partition("task_update with ")[2].partition(", then edit")[0])
        assert call["status"] == ["ANALYZE", "PLAN", "APPLY"]
        server.data("task_update", **call)
        assert project.hook(host, name, tool_use_id="2") == ""
        server.data("task_update", task_id="T-0001", status="VERIFY")
        assert project.hook(host, name, tool_use_id="3") == ""
        assert [deed["event"] for deed in project.records()] == ["tool.denied", *["tool.begin"] * 2]


@pytest.mark.parametrize(
    ("host", "name", "rule", "why"),
    [
        ("claude-code", "PreToolUse.Edit", None, None),
        ("claude-code", "PreToolUse.Edit", "[gate.done]\n" + DONE, None),
        ("claude-code", "PreToolUse.Edit", "[gate.edit]\nstate = 'NOWHERE'\n", "rules"),
        ("claude-code", "PreToolUse.Bash", RULE, None),
        ("claude-code", "PostToolUse.Edit", RULE, None),
        ("cline", "PreToolUse.editor", RULE, "host"),
        ("opencode", "tool.execute.before.edit", RULE, "host"),
    ],
)
def test_what_the_rule_does_not_clearly_forbid_passes_and_the_deed_says_what_was_not_judged(
    project: Project, host: str, name: str, rule: str | None, why: str | None
) -> None:
    """Specification 21.8: no rule, a broken one, no edit, a host that would end its session."""
    if rule is not None:
        (project.root / "colibri.toml").write_text(rule)
    with at_work(project, host, name) as server:
        server.data("audit_session_start", intent="x", brief=False)
        assert project.hook(host, name) == ('{"cancel":false}' if host == "cline" else "")
        (deed,) = project.records()
        assert deed["event"] != "tool.denied"
        assert deed.get("unjudged") == why
    project.verify()


def test_an_edit_of_a_host_that_works_in_no_session_passes_and_the_deed_says_so(
    project: Project,
) -> None:
    """Specification 21.8."""
    (project.root / "colibri.toml").write_text(RULE)
    assert project.hook("claude-code", "PreToolUse.Edit") == ""
    (deed,) = project.records()
    assert (deed["event"], deed["unjudged"]) == ("tool.begin", "session")
    project.verify()


@pytest.mark.parametrize(
    ("rule", "why"), [(RULE, "ledger"), ("[gate.edit", "rules"), ("[gate.done]\n" + DONE, None)]
)
def test_an_edit_passes_where_the_ledger_cannot_be_read_and_the_deed_says_so(
    project: Project, rule: str, why: str | None
) -> None:
    """Specification 21.8: kept in the spool, and recorded with it; or counted, without time."""
    engines.require_sqlite("a file that is damaged")
    (project.root / "colibri.toml").write_text(rule)
    ledger = project.database.read_bytes()
    project.database.write_bytes(b"no database" * 1000)
    assert project.hook("claude-code", "PreToolUse.Edit") == ""
    assert len(project.spooled()) + project.lost() == 1
    assert [one["deed"]["unjudged"] for one in project.spooled()] in ([why], [])
    project.database.write_bytes(ledger)
    project.hook("claude-code", "PostToolUse.Edit")
    late = [deed for deed in project.records() if deed["late"]]
    assert [deed.get("unjudged") for deed in late] in ([why], [])
    project.verify()


def test_what_an_older_version_left_in_the_spool_is_recorded(project: Project) -> None:
    """Specification 20.8: its lines do not say whether a rule could judge."""
    engines.require_sqlite("it breaks the file")
    (project.root / "colibri.toml").write_text(RULE)
    ledger = project.database.read_bytes()
    project.database.write_bytes(b"no database" * 1000)
    project.hook("claude-code", "PreToolUse.Edit")
    project.database.write_bytes(ledger)
    lines = project.spooled()
    assert len(lines) == 1
    del lines[0]["deed"]["unjudged"]
    project.beside("-spool").write_text(json.dumps(lines[0]) + "\n")
    project.hook("claude-code", "PostToolUse.Edit")
    assert [deed["event"] for deed in project.records()] == ["tool.begin", "tool.end"]
    assert project.lost() == 0
    project.verify()
