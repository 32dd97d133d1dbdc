"""The gate for edits: `colibri hook` denies one where the project's rule is clearly not met."""

import hashlib
import json

import pytest

from tests.hook.conftest import Project
from tests.hook.fixtures import expected
from tests.support.client import Server

RULE = '[gate.edit]\nstate = "APPLY"\n'
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
    ("host", "name", "rule"),
    [
        ("claude-code", "PreToolUse.Edit", None),
        ("claude-code", "PreToolUse.Edit", '[gate.done]\ncommand = "x"\n'),
        ("claude-code", "PreToolUse.Edit", "[gate.edit]\nstate = 'NOWHERE'\n"),
        ("claude-code", "PreToolUse.Bash", RULE),
        ("claude-code", "PostToolUse.Edit", RULE),
        ("cline", "PreToolUse.editor", RULE),
        ("opencode", "tool.execute.before.edit", RULE),
    ],
)
def test_what_the_rule_does_not_clearly_forbid_passes(
    project: Project, host: str, name: str, rule: str | None
) -> None:
    """Specification 21.8: no rule, a broken one, no edit, a host that would end its session."""
    if rule is not None:
        (project.root / "colibri.toml").write_text(rule)
    with at_work(project, host, name) as server:
        server.data("audit_session_start", intent="x", brief=False)
        assert project.hook(host, name) == ('{"cancel":false}' if host == "cline" else "")
        assert project.records()[0]["event"] != "tool.denied"


def test_an_edit_of_a_host_that_works_in_no_session_passes(project: Project) -> None:
    """Specification 21.8."""
    (project.root / "colibri.toml").write_text(RULE)
    assert project.hook("claude-code", "PreToolUse.Edit") == ""
    assert [deed["event"] for deed in project.records()] == ["tool.begin"]


def test_an_edit_passes_where_the_ledger_cannot_be_read(project: Project) -> None:
    """Specification 21.8: and the gap is kept in the spool, or where time runs out as a number."""
    (project.root / "colibri.toml").write_text(RULE)
    project.database.write_bytes(b"no database" * 1000)
    assert project.hook("claude-code", "PreToolUse.Edit") == ""
    assert len(project.spooled()) + project.lost() == 1
