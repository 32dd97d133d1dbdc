"""`colibri hook`, the program: what it records, what it keeps, what it answers."""

import hashlib
import json
import os
import re
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import apsw
import pytest

from colibri.core import canonical
from colibri.store import moved
from colibri.store.sqlite.connection import connect
from tests.hook.conftest import HOOK, Project
from tests.hook.fixtures import KEPT, RECORDED, expected
from tests.support import engines
from tests.support.client import Server, execute_raw
from tests.support.program import UNMEASURED

SESSION = RECORDED["claude-code"]["environment"]["CLAUDE_CODE_SESSION_ID"]


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def git(root: Path, *arguments: str) -> str:
    command = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
    done = subprocess.run((*command, *arguments), cwd=root, check=True, capture_output=True)
    return done.stdout.decode().strip()


# What is recorded.


@pytest.mark.parametrize("host", RECORDED)
def test_a_session_of_a_real_host_becomes_deeds(project: Project, host: str) -> None:
    """Specification 20.1, 20.2: each payload with its event, class, exit code and ids."""
    (project.root / "a.txt").write_text("HELLO\n")
    names = [name for owner, name in KEPT if owner == host and "as-claude" not in name][::4]
    for name in names:
        project.hook(host, name)
    found = project.records()
    assert len(found) == len(names)
    for deed, name in zip(found, names, strict=True):
        told = expected(host, name)
        assert told is not None
        assert deed["host"] == host
        members = {"host_session": "session", "host_agent": "agent", "host_version": "version"}
        for member in ("event", "use", "tool", "class", "exit", "duration_ms", *members):
            assert deed[member] == told.get(members.get(member, member)), (name, member)
        assert (deed["late"], deed["session"]) == (None, None)
    assert project.lost() == 0
    project.verify()


def test_a_tool_call_is_recorded_with_its_command_and_digests_of_the_rest(project: Project) -> None:
    """Specification 20.5: the input canonical, the output as the host gives it."""
    project.hook("claude-code", "PostToolUse.Bash")
    (deed,), (text,) = project.records(), project.texts()
    given = {"command": "cat a.txt", "description": "try"}
    data = canonical.encode(given)
    assert deed["input"] == {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
    assert deed["output"]["size"] > 10
    assert (deed["class"], deed["exit"], deed["files"]) == ("run", 0, [])
    assert text["command"] == "cat a.txt"
    assert (text["of"], text["call"], text["text"]) == (deed["seq"], deed["call"], None)


def test_an_edit_is_recorded_with_what_is_on_disk(project: Project) -> None:
    """Specification 20.6: the path as the work tree has it, the digest of what is there now."""
    (project.root / "a.txt").write_text("HELLO\n")
    project.hook("claude-code", "PostToolUse.Write")
    project.hook("claude-code", "PostToolUseFailure.Read")
    (edit, missing), (text, _) = project.records(), project.texts()
    assert edit["files"] == [{"n": 0, "sha256": sha256("HELLO\n"), "size": 6}]
    assert (text["paths"], text["tree"]) == (["a.txt"], ".")
    assert missing["files"] == [{"n": 0, "sha256": None, "size": None}]


def test_an_edit_that_begins_is_recorded_with_what_it_finds(project: Project) -> None:
    """Specification 20.6: so that what was taken back before it is no part of the change."""
    (project.root / "a.txt").write_text("hello\n")
    project.hook("claude-code", "PreToolUse.Write")
    project.hook("claude-code", "PreToolUse.Read")
    edit, read = project.records()
    assert (edit["event"], edit["files"]) == (
        "tool.begin",
        [{"n": 0, "sha256": sha256("hello\n"), "size": 6}],
    )
    assert read["files"] == []


def test_only_regular_files_in_the_work_tree_are_read(project: Project, tmp_path: Path) -> None:
    """Specification 20.6: no link, no pipe, nothing outside, nothing larger than 16 MiB."""
    outside = tmp_path / "secret"
    outside.mkdir()
    (outside / "file").write_text("x")
    (project.root / "link").symlink_to(outside / "file")
    (project.root / "folder").symlink_to(outside)
    os.mkfifo(project.root / "pipe")
    with (project.root / "large").open("wb") as file:
        file.truncate(16 * 1024 * 1024 + 1)
    names = [
        "link",
        "folder/file",
        "pipe",
        "large",
        "sub",
        "../secret/file",
        "a\0b",
        "n\nl\x1b[31m",
    ]
    (project.root / "sub").mkdir()
    (project.root / "n\nl\x1b[31m").write_text("y")
    project.hook("claude-code", "PostToolUse.Read", tool_input={"paths": names})
    (deed,), (text,) = project.records(), project.texts()
    assert [one["sha256"] for one in deed["files"]] == [None] * 7 + [sha256("y")]
    shown = ["link", None, "pipe", "large", "sub", None, "a\\x00b", "n\\nl\\x1b[31m"]
    assert text["paths"] == shown


def test_a_path_longer_than_any_is_not_followed(project: Project) -> None:
    """Following its parts would take quadratic time, and the parts of a directory gigabytes."""
    given = {"tool_input": {"file_path": "a/" * 500_000}}
    data = project.payload("claude-code", "PostToolUse.Write", **given)
    assert project.send(data, program=HOOK).code == 0
    data = project.payload("codex", "PostToolUse.Bash", cwd="a/" * 10_000)
    assert project.send(data, "codex", program=HOOK).code == 0
    assert [deed["host"] for deed in project.records()] == ["claude-code", "codex"]
    assert project.records()[0]["files"] == [{"n": 0, "sha256": None, "size": None}]


def test_a_project_that_is_reached_through_a_link_is_the_same(
    project: Project, tmp_path: Path
) -> None:
    (tmp_path / "other").symlink_to(project.root)
    (project.root / "a.txt").write_text("x")
    there = str(tmp_path / "other")
    data = project.payload("codex", "PostToolUse.apply_patch", cwd=there)
    assert project.send(data, "codex").code == 0
    edit = project.payload("codex", "PostToolUse.apply_patch", cwd=there, tool_use_id="2")
    edit = edit.replace(b"File: a.txt", f"File: {there}/a.txt".encode())
    assert project.send(edit, "codex").code == 0
    assert [text["paths"] for text in project.texts()] == [["a.txt"], ["a.txt"]]
    assert {deed["files"][0]["sha256"] for deed in project.records()} == {sha256("x")}


def test_branch_and_commit_are_read_without_git(project: Project, tmp_path: Path) -> None:
    """Specification 20.6: loose and packed references, a detached head, another work tree."""
    root = project.root
    git(root, "init", "-q")
    git(root, "commit", "-q", "--allow-empty", "-m", "one")
    commit = git(root, "rev-parse", "HEAD")
    git(root, "worktree", "add", "-q", str(tmp_path / "tree"), "-b", "topic/x")
    steps = [
        ("main", root),
        ("topic/x", tmp_path / "tree"),
    ]
    for pack in (False, True):
        if pack:
            git(root, "pack-refs", "--all")
        for branch, cwd in steps:
            project.hook("codex", "PreToolUse.Bash", cwd=str(cwd), tool_use_id=f"{pack}{branch}")
            assert project.records()[-1]["git"] == {"branch": branch, "commit": commit}
    git(root, "checkout", "-q", "--detach")
    project.hook("codex", "PreToolUse.Bash", tool_use_id="d")
    assert project.records()[-1]["git"] == {"branch": None, "commit": commit}


def test_a_file_in_another_work_tree_is_named_by_that_tree(
    project: Project, tmp_path: Path
) -> None:
    git(project.root, "init", "-q")
    git(project.root, "commit", "-q", "--allow-empty", "-m", "one")
    tree = tmp_path / "tree"
    git(project.root, "worktree", "add", "-q", str(tree))
    (tree / "a.txt").write_text("x")
    project.hook("codex", "PostToolUse.apply_patch", cwd=str(tree))
    assert (project.texts()[0]["tree"], project.texts()[0]["paths"]) == ("../tree", ["a.txt"])


@pytest.mark.parametrize(
    "head",
    ["", "ref: refs/heads/../../x", "ref: refs/heads/.invalid", "0" * 39, "ref: refs/tags/x"],
)
def test_a_repository_that_cannot_be_read_has_no_branch(project: Project, head: str) -> None:
    (project.root / ".git").mkdir()
    (project.root / ".git" / "HEAD").write_text(head)
    project.hook("claude-code", "PreToolUse.Bash")
    assert project.records()[0]["git"] is None


# Once.


def test_what_is_reported_twice_is_recorded_once(project: Project) -> None:
    """Specification 20.2: the second of Copilot's dialects too, though it names no call."""
    for _ in range(2):
        project.hook("claude-code", "PostToolUse.Bash")
    for name in ("postToolUse.bash", "as-claude.PostToolUse.Bash", "as-claude.PostToolUse.Bash"):
        project.hook("copilot", name)
    assert project.hook("copilot", "sessionStart.new") != ""
    assert project.hook("copilot", "as-claude.SessionStart.new") == ""
    assert [deed["event"] for deed in project.records()] == ["tool.end"] * 2 + ["session.start"]


# Which project.


def test_a_project_without_a_ledger_is_left_alone(bare_project: Project) -> None:
    """Specification 20.4."""
    engines.require_sqlite("a ledger that does not exist")
    assert bare_project.hook("claude-code", "SessionStart.startup") == ""
    assert bare_project.hook("claude-code", "PostToolUse.Bash") == ""
    assert bare_project.send(b"no JSON").out == ""
    assert list(bare_project.root.iterdir()) == []


def test_a_ledger_that_was_moved_is_left_alone_and_the_deed_waits(project: Project) -> None:
    """The spool is next to the file, wherever the ledger is."""
    engines.require_sqlite("a file is moved")
    with closing(connect(str(project.database), "write")) as db:
        moved.set_mark(db, moved.Mark(moved.FINISHED, "postgresql://db.example.org/x#colibri"))
    project.hook("claude-code", "PostToolUse.Bash")
    assert (project.records(), project.beside("-spool").stat().st_size > 0) == ([], True)


def test_the_project_is_the_one_that_the_host_names_and_not_one_it_inherited(
    project: Project, tmp_path: Path
) -> None:
    """Specification 20.4: `cd` moves cwd; Codex inside Claude Code inherits CLAUDE_PROJECT_DIR."""
    engines.require_sqlite("the environment names a server for every directory")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    project.hook("claude-code", "PreToolUse.Bash", cwd=str(elsewhere))
    assert len(project.records()) == 1
    data = project.payload("codex", "PreToolUse.Bash")
    assert project.send(data, "codex", CLAUDE_PROJECT_DIR=str(elsewhere)).code == 0
    assert len(project.records()) == 2
    data = project.payload("codex", "PreToolUse.Bash", cwd=str(elsewhere), tool_use_id="x")
    project.send(data, "codex", CLAUDE_PROJECT_DIR=str(project.root))
    assert len(project.records()) == 2
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("mode", ["READONLY", "MINIMAL", "nonsense"])
def test_nothing_is_recorded_where_nothing_may_be(project: Project, mode: str) -> None:
    data = project.payload("claude-code", "PostToolUse.Bash")
    assert project.send(data, COLIBRI_MODE=mode).code == 0
    assert project.records() == []


def test_a_directory_that_is_gone_does_not_hide_the_project(project: Project) -> None:
    project.hook("claude-code", "PreToolUse.Bash", cwd=str(project.root / "gone"))
    assert len(project.records()) == 1


# Binding.


def opened(server: Server) -> str:
    started = server.data("audit_session_start", intent="Work", agent_id="ada")
    return str(started["session_id"])


def test_a_deed_belongs_to_the_session_that_its_host_began(project: Project) -> None:
    with project.server(CLAUDE_CODE_SESSION_ID=SESSION) as server:
        session = opened(server)
        task = server.data("task_create", title="One")["task_id"]
        server.data("task_next_actions", claim=True)
        project.hook("claude-code", "PostToolUse.Bash")
    (deed,) = project.records()
    assert (deed["session"], deed["task"], deed["agent"]) == (session, task, "ada")
    project.verify()


@pytest.mark.parametrize(
    ("host", "name", "told"),
    [
        (
            "gemini",
            "AfterTool.mcp_probe_structured",
            lambda text: {
                "tool_name": "mcp_colibri_audit_session_start",
                "tool_response": {
                    "llmContent": [{"text": f"<untrusted_context>\n{text}\n</untrusted_context>"}]
                },
            },
        ),
        (
            "cline",
            "PostToolUse.probe__structured",
            lambda text: {
                "tool_result": {
                    "id": "call_1",
                    "name": "colibri__audit_session_start",
                    "output": {"content": [{"type": "text", "text": text}]},
                }
            },
        ),
        (
            "opencode",
            "tool.execute.after.probe_structured",
            lambda text: {
                "input": {
                    "tool": "colibri_audit_session_start",
                    "sessionID": "ses_e1b30e37cffe1lxV4Pb1mQpxjP",
                    "callID": "c1",
                },
                "output": {"content": [{"type": "text", "text": text}]},
            },
        ),
    ],
)
def test_a_host_that_names_no_session_is_bound_by_the_answer_that_it_shows(
    project: Project, host: str, name: str, told: Any
) -> None:
    """Specification 19.4."""
    later = {
        "gemini": "AfterTool.run_shell_command",
        "cline": "PostToolUse.run_commands",
        "opencode": "tool.execute.after.bash",
    }[host]
    with project.server() as server:
        result = server.call("audit_session_start", intent="Work")
        session = result["structuredContent"]["data"]["session_id"]
        project.hook(host, name, **told(result["content"][0]["text"]))
        project.hook(host, later)
    found = project.records()
    assert [deed["event"] for deed in found] == ["bind", "tool.end", "tool.end"]
    assert {deed["session"] for deed in found} == {session}
    project.verify()


# What the agent is told.


def test_a_session_begins_with_the_brief(project: Project) -> None:
    """Specification 20.10: in the form of the host; the deed has its digest."""
    with project.server() as server:
        server.data("task_create", title="Paint the fence")
    texts = []
    for host, name in (
        ("claude-code", "SessionStart.startup"),
        ("claude-code", "SessionStart.resume"),
        ("claude-code", "SessionStart.compact"),
        ("gemini", "SessionStart.startup"),
        ("qwen", "SessionStart.startup"),
    ):
        told = json.loads(project.hook(host, name))["hookSpecificOutput"]
        assert told["hookEventName"] == "SessionStart"
        texts.append(told["additionalContext"])
    texts.append(project.hook("codex", "SessionStart.startup"))
    texts.append(json.loads(project.hook("copilot", "sessionStart.new"))["additionalContext"])
    texts.append(json.loads(project.hook("opencode", "event.session.created"))["additionalContext"])
    assert all("Paint the fence" in text and len(text) < 6000 for text in texts)
    kept = [deed["output"]["sha256"] for deed in project.records()]
    assert kept == [sha256(text) for text in texts]


def test_cline_hears_that_it_may_go_on_whatever_happens(project: Project) -> None:
    """It takes anything else for a refusal, and passes no context on."""
    for name in ("TaskStart", "PostToolUse.editor", "TaskComplete"):
        assert json.loads(project.hook("cline", name)) == {"cancel": False}
    unknown = project.payload("cline", "TaskStart", hookName="new", taskStart=None)
    assert json.loads(project.send(unknown.replace(b"taskStart", b"x"), "cline").out) == {
        "cancel": False
    }


def worked(server: Server, project: Project) -> str:
    session = opened(server)
    server.data("task_create", title="One")
    server.data("task_next_actions", claim=True)
    project.hook("claude-code", "PostToolUse.Bash")
    return session


def test_an_agent_that_stops_without_a_word_is_reminded_once(project: Project) -> None:
    """Specification 20.11: with the exact call, which the server takes."""
    with project.server(CLAUDE_CODE_SESSION_ID=SESSION) as server:
        session = worked(server, project)
        answer = json.loads(project.hook("claude-code", "Stop"))
        assert answer["decision"] == "block"
        call = json.loads(answer["reason"].partition("with ")[2].partition("}")[0] + "}")
        assert call["session_id"] == session
        assert project.hook("claude-code", "Stop") == ""  # said once
        server.data("thought_record", **call)
    first, second = project.records()[-2:]
    assert first["output"]["sha256"] == sha256(answer["reason"])
    assert second["output"] is None


def test_an_agent_that_recorded_its_work_is_not_reminded(project: Project) -> None:
    """Specification 20.11."""
    with project.server(CLAUDE_CODE_SESSION_ID=SESSION) as server:
        worked(server, project)
        assert project.hook("claude-code", "Stop.again") == ""  # refused by another hook already
        server.data("thought_record", type="reflection", content="It works.")
        assert project.hook("claude-code", "Stop") == ""
        project.hook("claude-code", "PostToolUse.Read")
        assert project.hook("claude-code", "Stop") == ""  # reading is no work
        project.hook("claude-code", "PostToolUse.Edit")
        assert json.loads(project.hook("claude-code", "Stop"))["decision"] == "block"


def test_no_reminder_without_a_held_task_or_a_known_session(project: Project) -> None:
    """Specification 20.11."""
    assert project.hook("claude-code", "Stop") == ""
    with project.server(CLAUDE_CODE_SESSION_ID=SESSION) as server:
        opened(server)
        project.hook("claude-code", "PostToolUse.Bash")
        assert project.hook("claude-code", "Stop") == ""


# Hook settings.


def test_changed_hook_settings_show_and_other_settings_do_not(project: Project) -> None:
    """Specification 20.9: the digest of what the settings say of hooks, at the start."""
    folder = project.root / ".claude"
    folder.mkdir()
    for text in (
        {"model": "x"},
        {"hooks": {"Stop": []}, "model": "x"},
        {"hooks": {"Stop": []}, "model": "y"},
        {"hooks": {"Stop": [1]}},
    ):
        (folder / "settings.json").write_text(json.dumps(text))
        project.hook("claude-code", "SessionStart.startup")
    none, first, same, other = [deed["settings"] for deed in project.records()]
    assert none is None
    assert first == same != other


@pytest.mark.parametrize("text", ["no JSON", "[]", '"x"', "{}"])
def test_settings_of_any_form_are_read(project: Project, text: str) -> None:
    (project.home / ".gemini").mkdir()
    (project.home / ".gemini" / "settings.json").write_text(text)
    project.hook("gemini", "SessionStart.startup")
    assert (project.records()[0]["settings"] is None) == (text == "{}")


def test_a_folder_of_hooks_counts_file_by_file(project: Project) -> None:
    folder = project.root / ".clinerules" / "hooks"
    folder.mkdir(parents=True)
    for text in ("a", "b"):
        (folder / "PostToolUse").write_text(text)
        project.hook("cline", "TaskStart")
    first, second = [deed["settings"] for deed in project.records()]
    assert first != second


# Privacy.

CANARY = "CANARY-7f3a"
WORDS = ("Do the work.", "hello", "HELLO", "All done.", "From the subagent.")
# What says which event of which host it is, where and when; and what is kept.
TOLD = re.compile(
    r"(?i:.*id|.*path|.*roots|.*version|.*name|.*at)|command|commands|cwd|directory|event|file|files"
    r"|host|timestamp|tool|type"
)
# All payloads of a host, each to a process of its own that has loaded everything already.
ALL_AT_ONCE = """
import json, os, sys, tempfile
from colibri.hook import clock, keep, main
clock.SECONDS = clock.SECONDS_AT_END = 60.0
clock._FOR_SPOOL = float(sys.argv[1])
for payload in json.load(sys.stdin):
    with tempfile.TemporaryFile() as file:
        file.write(json.dumps(payload).encode())
        file.seek(0)
        if not (child := os.fork()):
            os.dup2(file.fileno(), 0)
            main()
        assert os.waitpid(child, 0)[1] == 0
"""


def seen(project: Project, word: str) -> set[str]:
    """The files of the project and the home that hold a word, byte by byte."""
    found = (path for path in project.root.parent.rglob("*") if path.is_file())
    return {path.name for path in found if word.encode() in path.read_bytes()}


def marked(value: Any, key: str = "") -> Any:
    """The same with a canary in every text that is not to be kept."""
    if isinstance(value, dict):
        return {name: marked(one, name) for name, one in value.items()}
    if isinstance(value, list):
        return [marked(one, key) for one in value]
    if not isinstance(value, str):
        return value
    if value.startswith(("{", "[")):
        with suppress(ValueError):
            return json.dumps(marked(json.loads(value), key))
    for word in WORDS:
        value = value.replace(word, CANARY)
    return value if TOLD.fullmatch(key) else f"{value} {CANARY}"


def report_all(project: Project, host: str, *, for_spool: float) -> None:
    names = [name for owner, name in KEPT if owner == host]
    payloads = [marked(json.loads(project.payload(host, name))) for name in names]
    assert json.dumps(payloads).count(CANARY) > len(names)
    done = execute_raw(
        [sys.executable, "-c", ALL_AT_ONCE, str(for_spool)],
        cwd=project.root,
        env=project.environment(host, **UNMEASURED),
        input=json.dumps(payloads).encode(),
    )
    assert (done.returncode, done.stderr) == (0, b"")
    kept = len(project.records()) + len(project.spooled())
    assert kept > len(names) / 2, "of two dialects one is kept"
    assert project.lost() == 0


@pytest.mark.parametrize("host", RECORDED)
def test_no_prompt_content_or_output_is_kept(project: Project, host: str) -> None:
    """Specification 20.5: whatever a host reports, only commands and paths are kept as text."""
    report_all(project, host, for_spool=0.25)
    assert seen(project, CANARY) == set()


def test_no_prompt_content_or_output_is_spooled(project: Project) -> None:
    """Nor is it in the ledger when that takes the spool in."""
    holder = apsw.Connection(str(project.database))
    holder.execute("BEGIN IMMEDIATE")
    report_all(project, "claude-code", for_spool=59.95)
    assert (project.records(), seen(project, CANARY)) == ([], set())
    waiting = len(project.spooled())
    holder.close()
    project.hook("claude-code", "Stop")
    assert len(project.records()) == waiting + 1
    assert (project.spooled(), seen(project, CANARY)) == ([], set())


def test_texts_are_kept_where_that_is_asked_for(project: Project) -> None:
    """Specification 20.5, 14.1: COLIBRI_CAPTURE=text, without secrets."""
    for name, changes in (
        ("UserPromptSubmit", {"prompt": f"Do {CANARY}, token ghp_{'a1B2' * 9}"}),
        ("PostToolUse.Bash", {}),
        ("Stop", {"last_assistant_message": "Done."}),
        ("PreToolUse.Agent", {}),
    ):
        data = project.payload("claude-code", name, **changes)
        project.send(data, COLIBRI_CAPTURE="text")
    prompt, output, said, given = [text["text"] for text in project.texts()]
    assert prompt == f"Do {CANARY}, token [redacted:github-token]"
    assert "HELLO" in output
    assert said == "Done."
    assert "SUBWORD" in given


def test_secrets_in_commands_paths_and_ids_are_redacted(project: Project) -> None:
    """Specification 20.5: also one that would be cut in the middle."""
    secret = "ghp_" + "a1B2" * 9
    for number, command in enumerate((f"curl -H 'x: {secret}' y", "x" * 4080 + " " + secret)):
        given = {"command": command}
        project.hook("claude-code", "PreToolUse.Bash", tool_input=given, tool_use_id=f"{number}")
    project.hook("claude-code", "PreToolUse.Read", tool_input={"file_path": f"{secret}/b"})
    project.hook("claude-code", "PreToolUse.Agent", tool_use_id=secret, tool_name=f"x {secret}")
    texts = project.texts()
    assert texts[0]["command"] == "curl -H 'x: [redacted:github-token]' y"
    assert len(texts[1]["command"]) <= 4096
    assert seen(project, secret[:20]) == set()


# What it loads.

HEAVY = (
    *("msgspec", "rich", "argparse", "dataclasses", "pathlib", "logging", "asyncio", "socket"),
    *("ssl", "threading", "inspect", "subprocess", "uuid", "datetime"),
    *("colibri.cli", "colibri.server", "colibri.tools"),
)
LIST_MODULES = """
import os, sys
end = os._exit
def tell(code):
    sys.stderr.write(" ".join(sorted(sys.modules)))
    sys.stderr.flush()
    end(code)
os._exit = tell
sys.argv = ["colibri", "hook"]
from colibri.__main__ import main
main()
"""


def test_it_loads_nothing_that_one_record_does_not_need(project: Project) -> None:
    """Specification 20.12."""
    engines.require_sqlite("what a file needs")
    ended = subprocess.run(
        (sys.executable, "-S", "-c", LIST_MODULES),
        cwd=project.root,
        env=project.environment("claude-code", PYTHONPATH=_paths()),
        input=project.payload("claude-code", "PostToolUse.Edit"),
        capture_output=True,
        check=True,
    )
    loaded = set(ended.stderr.decode().split())
    assert "colibri.store.deeds" in loaded
    assert [name for name in HEAVY if name in loaded] == []
    assert len(project.records()) == 1


def _paths() -> str:
    return os.pathsep.join(path for path in sys.path if path)
