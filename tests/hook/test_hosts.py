"""Payloads of hosts and what they report; tests/hook/fixtures has those of real programs."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colibri.hook import hosts, report
from colibri.hook.report import Report
from tests.hook.fixtures import ALL, KEPT, RECORDED, environment, expected, payload

GATES = (Path(__file__).parents[2] / "docs" / "gates.md").read_text(encoding="utf-8")
# What a host tells that is no deed of its own, or is told by another event as well.
LEFT_OUT = {
    "claude-code": """CwdChanged MessageDisplay PermissionRequest.Write PostToolBatch
        PostToolBatch.subagent PreCompact.manual UserPromptSubmit.not-from-the-user""",
    "cline": "",
    "codex": "PreCompact.auto PreModelRequest PreModelRequest.subagent UserPromptSubmit.subagent",
    "copilot": """agentStop.subagent as-claude.Stop.subagent as-claude.UserPromptSubmit.subagent
        userPromptSubmitted.subagent permissionRequest.* as-claude.PermissionRequest.*""",
    "gemini": "AfterModel BeforeModel BeforeToolSelection PreCompress.auto PreCompress.manual",
    "opencode": """chat.params event.catalog.updated event.file.* event.integration.updated
        event.message.* event.permission.* event.plugin.added event.reference.updated
        event.session.diff event.session.status event.session.updated*
        experimental.chat.system.transform shell.env""",
    "qwen": """InstructionsLoaded.session_start MessageDisplay Notification PostToolBatch
        PostToolBatch.subagent UserPromptSubmit.not-from-the-user""",
}


def plain(found: Report | None) -> dict[str, Any] | None:
    """A report without what it does not tell; long and structured values are only named."""
    if found is None:
        return None
    told: dict[str, Any] = {}
    for name in Report.__slots__:
        value = getattr(found, name)
        if value is None or value is False or value == ():
            continue
        if name in ("input", "output") and (not isinstance(value, str) or len(value) > 120):
            value = "(given)" if isinstance(value, str) else "(object)"
        told[name.rstrip("_")] = list(value) if isinstance(value, tuple) else value
    return told


def read(host: str, name: str, **changes: Any) -> Report:
    found = report.read(payload(host, name, **changes), environment(host))
    assert found is not None
    return found


@pytest.mark.parametrize(("host", "name"), ALL)
def test_a_real_payload_yields_what_its_host_reported(host: str, name: str) -> None:
    assert plain(report.read(payload(host, name), environment(host))) == expected(host, name)


@pytest.mark.parametrize(
    ("host", "title"),
    [
        *(("claude-code", "Claude Code"), ("qwen", "Qwen Code"), ("opencode", "OpenCode")),
        *(("copilot", "Copilot CLI"), ("codex", "Codex CLI"), ("gemini", "Gemini CLI")),
        ("cline", "Cline"),
    ],
)
def test_the_page_on_gates_says_which_hosts_report_what_a_rule_needs(host: str, title: str) -> None:
    """Specification 21.2: the exit code 0, and when a command began."""
    (said,) = re.findall(rf"^\| {title} \| (yes|only|no)\b", GATES, re.MULTILINE)
    told = [one["report"] or {} for one in RECORDED[host]["payloads"].values()]
    ends = [one for one in told if one.get("class") == "run" and one["event"] == "tool.end"]
    reports_zero = any(one.get("exit") == 0 for one in ends)
    events = {hosts.HOSTS[host].events[name] for name in hosts.registered(host)}
    begins = "tool.begin" in events
    assert said == ("no" if not reports_zero else "yes" if begins else "only")


@pytest.mark.parametrize("host", RECORDED)
def test_what_is_left_out_is_listed(host: str) -> None:
    patterns = [re.escape(one).replace(r"\*", ".*") for one in LEFT_OUT[host].split()]
    for name in RECORDED[host]["payloads"]:
        listed = any(re.fullmatch(one, name) for one in patterns)
        assert listed == (expected(host, name) is None), name


@pytest.mark.parametrize(("host", "name"), KEPT)
def test_a_host_is_known_without_its_variables_and_amid_those_of_another(
    host: str, name: str
) -> None:
    """One that runs inside another inherits that one's environment."""
    for other in RECORDED:
        around = environment(other) if other != host else {}
        if host == "claude-code" and other == host:
            around = {"CLAUDECODE": "1"}
        found = report.read(payload(host, name), around)
        assert found is not None
        assert found.host == host


def test_each_host_can_be_told_to_report_and_no_hook_changes_what_it_does() -> None:
    for name, events in hosts.EVENTS.items():
        assert set(hosts.registered(name)) <= events.keys()
        assert {"tool.end", "stop"} <= {events[one] for one in hosts.registered(name)}
    assert "WorktreeCreate" not in hosts.EVENTS["claude-code"]
    assert "preToolUse" not in hosts.registered("copilot")
    assert "PreToolUse" not in hosts.registered("cline")


def test_copilots_two_dialects_report_the_same() -> None:
    """It runs the hooks of .claude/settings.json as well: the same instant, tool and answer."""
    names = [name for host, name in KEPT if host == "copilot"]
    claude = [name for name in names if name.startswith("as-claude.")]
    native = [plain(read("copilot", name)) for name in names if name not in claude]
    assert [name for name in claude if plain(read("copilot", name)) not in native] == []
    assert len(claude) == 33


# Exit codes.


@pytest.mark.parametrize(
    "changes",
    [
        {"interrupted": True},
        {"interrupted": None},
        {"backgroundTaskId": "b1"},
        {"backgroundedByUser": True},
        {"returnCodeInterpretation": "No matches found"},
    ],
)
def test_claude_code_tells_no_exit_code_of_a_command_that_was_cut_short_or_goes_on(
    changes: dict[str, Any],
) -> None:
    """Specification 20.3."""
    told = payload("claude-code", "PostToolUse.Bash")["tool_response"]
    assert read("claude-code", "PostToolUse.Bash").exit == 0
    changed = read("claude-code", "PostToolUse.Bash", tool_response={**told, **changes})
    assert changed.exit is None


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ("Exit code 3\nout", 3),
        ("Exit code 137", 137),
        ("Exit code 3x", None),
        ("The tool said\nExit code 3", None),
        ("Exit code 99999999999", None),
        (["Exit code 3"], None),
    ],
)
def test_claude_codes_failure_begins_with_the_exit_code(error: object, code: int | None) -> None:
    assert read("claude-code", "PostToolUseFailure.Bash.exit-3", error=error).exit == code


def test_a_background_command_of_claude_code_has_no_exit_code() -> None:
    given = {"command": "make", "run_in_background": True}
    assert read("claude-code", "PostToolUse.Bash", tool_input=given).exit is None


@pytest.mark.parametrize(
    ("text", "shown", "code"),
    [
        ("Output: a\nExit Code: 3\nProcess Group PGID: 1\n", "a", 3),
        ("Output: a\nError: x\nExit Code: 3\n", "a", 3),
        ("Output: a\nExit Code: 0\nProcess Group PGID: 1\n", "a", None),
        ("Output: Exit Code: 5\n\nProcess Group PGID: 1\n", "Exit Code: 5\n", None),
        ("Output: (empty)\nExit Code: 4\n", "Command exited with code: 4", 4),
        ("Output: b\nExit Code: 3\n", "a", None),
    ],
)
def test_gemini_tells_the_code_behind_the_output_and_not_in_it(
    text: str, shown: str, code: int | None
) -> None:
    told = {"llmContent": text, "returnDisplay": shown}
    assert read("gemini", "AfterTool.run_shell_command", tool_response=told).exit == code


@pytest.mark.parametrize(
    ("host", "name", "said"),
    [
        ("qwen", "PostToolUse.run_shell_command", "Exit Code: 0\nSignal: (none)"),
        ("copilot", "postToolUse.bash", "<shellId: 0 completed with exit code 0>"),
        ("cline", "PostToolUse.run_commands", "Command exited with code 0"),
    ],
)
def test_what_a_command_prints_is_not_taken_for_its_exit_code(
    host: str, name: str, said: str
) -> None:
    output = f"{said}\nand more"
    changes: dict[str, dict[str, Any]] = {
        "qwen": {"tool_response": {"llmContent": f"Output: {output}\nError: (none)\n"}},
        "copilot": {"toolResult": {"textResultForLlm": output}},
        "cline": {"tool_result": {"id": "1", "name": "run_commands", "output": [{"result": said}]}},
    }
    assert read(host, name, **changes[host]).exit is None


# What is not what it seems.


@pytest.mark.parametrize(
    ("host", "name", "changes"),
    [
        ("claude-code", "SubagentStop.subagent", {"agent_type": ""}),
        ("claude-code", "UserPromptSubmit", {"prompt": "<task-notification>\n<task-id>a"}),
        ("gemini", "BeforeAgent", {"prompt": f"{report.REMINDER}call thought_record"}),
        ("qwen", "UserPromptSubmit", {"prompt": ""}),
        ("claude-code", "SessionStart.startup", {"hook_event_name": "WorktreeCreate"}),
        ("claude-code", "SessionStart.startup", {"hook_event_name": ["SessionStart"]}),
        ("cline", "TaskStart", {"taskStart": None, "hookName": "something new"}),
        ("copilot", "sessionStart.new", {"source": None}),
    ],
)
def test_an_event_that_says_nothing_new_is_left_out(
    host: str, name: str, changes: dict[str, Any]
) -> None:
    changed = payload(host, name, **changes)
    kept = {key: value for key, value in changed.items() if value is not None}
    assert report.read(kept, environment(host)) is None


def test_a_host_is_not_guessed_from_a_dialect_alone() -> None:
    bare = {"hook_event_name": "PostToolUse", "session_id": "s", "tool_name": "Bash"}
    assert report.read(bare, {}) is None
    assert report.read({**bare, "timestamp": "t", "transcript_path": None}, {}) is None
    claude = report.read(bare, {"CLAUDECODE": "1"})
    assert claude is not None
    assert claude.host == "claude-code"


def test_a_session_of_codex_that_keeps_no_transcript_is_known() -> None:
    found = report.read(payload("codex", "SessionStart.startup", transcript_path=None), {})
    assert found is not None
    assert found.host == "codex"


def test_gemini_is_known_by_its_events_alone() -> None:
    bare = {"hook_event_name": "AfterTool", "session_id": "s", "tool_name": "glob"}
    found = report.read(bare, {})
    assert found is not None
    assert found.host == "gemini"


def test_cline_that_is_cancelled_ends_its_session() -> None:
    cancelled = payload("cline", "TaskStart", hookName="session_shutdown")
    del cancelled["taskStart"]
    found = report.read(cancelled, {})
    assert found is not None
    assert found.event == "session.end"


def test_a_subagent_of_opencode_is_one_of_its_parents_session() -> None:
    found = read("opencode", "tool.execute.after.bash", parent="ses_parent")
    assert (found.session, found.agent) == ("ses_parent", "ses_e1b30e37cffe1lxV4Pb1mQpxjP")
    assert read("opencode", "event.session.idle", parent="ses_parent").event == "subagent.end"


# Hosts that are known from their documents.

CURSOR = {
    "conversation_id": "c1",
    "generation_id": "g1",
    "cursor_version": "2.4.0",
    "workspace_roots": ["/project"],
    "hook_event_name": "postToolUse",
    "tool_name": "Shell",
    "tool_input": {"command": "make"},
    "tool_output": '{"exitCode":0}',
    "tool_use_id": "u1",
    "duration": 12.5,
}
VSCODE = {
    "timestamp": "2026-02-09T10:30:00.000Z",
    "cwd": "/project",
    "sessionId": "s1",
    "hookEventName": "PostToolUse",
    "transcript_path": "/t.json",
    "tool_name": "replace_string_in_file",
    "tool_input": {"filePath": "/project/a.txt"},
    "tool_use_id": "u1",
    "tool_response": "done",
}
WINDSURF = {
    "agent_action_name": "post_run_command",
    "trajectory_id": "t1",
    "execution_id": "e1",
    "timestamp": "2026-02-09T10:30:00Z",
    "tool_info": {"command_line": "make", "cwd": "/project"},
}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            CURSOR,
            {"host": "cursor", "version": "2.4.0", "session": "c1", "event": "tool.end"}
            | {"use": "u1", "tool": "Shell", "class": "run", "duration_ms": 12, "command": "make"}
            | {"input": "(object)", "output": '{"exitCode":0}', "cwd": "/project"},
        ),
        (
            {**CURSOR, "hook_event_name": "preToolUse", "tool_name": "MCP:probe"},
            {"host": "cursor", "version": "2.4.0", "session": "c1", "event": "tool.begin"}
            | {"use": "u1", "tool": "MCP:probe", "class": "mcp"}
            | {"input": "(object)", "cwd": "/project"},
        ),
        (
            VSCODE,
            {"host": "vscode", "session": "s1", "event": "tool.end", "use": "u1", "class": "edit"}
            | {"tool": "replace_string_in_file", "paths": ["/project/a.txt"], "cwd": "/project"}
            | {"input": "(object)", "output": "done"},
        ),
        (
            WINDSURF,
            {"host": "windsurf", "session": "t1", "event": "tool.end", "tool": "run_command"}
            | {"class": "run", "command": "make", "input": "(object)", "cwd": "/project"},
        ),
        (
            {
                **WINDSURF,
                "agent_action_name": "pre_user_prompt",
                "tool_info": {"user_prompt": "Go"},
            },
            {"host": "windsurf", "session": "t1", "event": "prompt", "input": "Go"},
        ),
    ],
)
def test_the_documented_payloads_of_other_hosts(
    given: dict[str, Any], told: dict[str, Any]
) -> None:
    assert plain(report.read(given, {})) == told


# Inputs of tools.


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        ({"files": [{"path": "a"}, {"path": "b"}, {"path": 3}, 4]}, ("a", "b")),
        ({"paths": ["a", "b", "a"]}, ("a", "b")),
        ({"replacements": [{"filePath": "a"}]}, ("a",)),
        ({"file_path": "a", "path": "b", "files": "c"}, ("a", "b")),
        (
            {"patchText": "*** Update File: a\n*** Move to: b c\n@@\n+*** Add File: no"},
            ("a", "b c"),
        ),
        ("*** Begin Patch\n*** Delete File: a\n", ("a",)),
        ({"file_path": ""}, ()),
        (None, ()),
    ],
)
def test_the_files_of_a_tool_are_what_its_input_names(
    given: object, paths: tuple[str, ...]
) -> None:
    changed = payload("claude-code", "PostToolUse.Edit", tool_input=given)
    found = report.read(changed, environment("claude-code"))
    assert found is not None
    assert found.paths == paths


def test_no_more_paths_are_taken_than_a_deed_holds() -> None:
    many = {"paths": [f"f{number}" for number in range(1000)]}
    assert len(read("claude-code", "PostToolUse.Edit", tool_input=many).paths) == 64


@pytest.mark.parametrize(
    ("given", "command"),
    [
        ({"command": ["bash", "-lc", "make all"]}, "bash -lc make all"),
        ({"commands": ["make", "make test"]}, "make\nmake test"),
        ({"cmd": "make"}, "make"),
        ({"command": 3}, None),
        ("make", None),
    ],
)
def test_the_command_of_a_tool_is_what_its_input_names(given: object, command: str | None) -> None:
    assert read("codex", "PostToolUse.Bash", tool_input=given).command == command


def test_a_patch_is_no_command() -> None:
    """Codex hands over the contents of files as the `command` of apply_patch."""
    assert read("codex", "PostToolUse.apply_patch").command is None


@pytest.mark.parametrize("moment", [-1, 2**60, True, 10**15, None, {}, ""])
def test_an_invalid_time_distinguishes_no_events(moment: object) -> None:
    found = read("copilot", "postToolUse.bash", timestamp=moment)
    assert found.moment is None or isinstance(found.moment, str)


# Whatever a payload holds.

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=200)
@given(st.sampled_from(KEPT), st.data())
def test_any_field_may_be_missing_of_another_type_or_nested(
    which: tuple[str, str], data: st.DataObject
) -> None:
    """Every report stays within the form of a deed, whatever is done to a real payload."""
    changed = payload(*which)
    for _ in range(data.draw(st.integers(1, 3))):
        place: Any = changed
        while True:
            key = data.draw(st.sampled_from(sorted(place)))
            inside = place[key]
            if isinstance(inside, dict) and inside and data.draw(st.booleans()):
                place = inside
                continue
            break
        if data.draw(st.booleans()) and len(place) > 1:
            del place[key]
        else:
            place[key] = data.draw(st.just({key: inside}) | st.just([inside]) | JSON)
    found = report.read(changed, environment(which[0]))
    if found is None:
        return
    for name in ("version", "session", "agent", "use", "tool", "command", "cwd", "said", "moment"):
        assert isinstance(getattr(found, name), str | None), name
    assert found.host in hosts.HOSTS
    assert found.exit is None or type(found.exit) is int
    assert found.duration_ms is None or type(found.duration_ms) is int
    assert all(type(path) is str and path for path in found.paths)
    assert (found.class_ is None) == (not found.event.startswith("tool."))
    json.dumps([found.input, found.output])
