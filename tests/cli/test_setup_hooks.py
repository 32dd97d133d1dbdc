"""`colibri setup --hooks`: added where each client reads them, once, and taken out again.

Specification 22.1.
"""

import difflib
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from colibri.cli.settings import hooks
from colibri.cli.settings.hooks import HOOKS, MARK, OWNER, Hooks
from colibri.cli.settings.jsonc import Broken, Json
from colibri.hook.hosts import EVENTS, registered
from tests.support.client import TESTS, execute
from tests.support.user_home import Home, plain

SCRIPT = str(TESTS.parent / "scripts" / "colibri")
LINE = f"{SCRIPT} hook 2>/dev/null || : {MARK}"
LISTS = {  # by client: its file with and without --user, and where the command is in an item
    "claude-code": ("project/.claude/settings.local.json", "home/.claude/settings.json"),
    "cursor": ("project/.cursor/hooks.json", "home/.cursor/hooks.json"),
    "codex": ("home/.codex/hooks.json", "home/.codex/hooks.json"),
    "gemini": ("project/.gemini/settings.json", "home/.gemini/settings.json"),
    "copilot": ("project/.github/hooks/colibri.json", "home/.copilot/hooks/colibri.json"),
    "qwen": ("project/.qwen/settings.json", "home/.qwen/settings.json"),
}
PROGRAMS = {
    "cline": ("project/.clinerules/hooks/{event}.sh", "home/.cline/hooks/{event}.sh"),
    "opencode": (
        "project/.opencode/plugins/colibri.js",
        "home/.config/opencode/plugins/colibri.js",
    ),
}
FOREIGN = """\
{
  "model": "m",
  "hooks": {
    "PostToolUse": [
      {"matcher": "Bash", "hooks": [{"type": "command", "command": "lint"}]}
    ],
    "AfterTool": [{"hooks": []}],
    "postToolUse": [{"command": "x"}],
    "Elsewhere": []
  }
}
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def commands(value: Any) -> list[str]:
    """Every command line in a document, in order."""
    if isinstance(value, str):
        return [value] if value.endswith(MARK) else []
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [line for one in inside for line in commands(one)]


@pytest.mark.parametrize("options", [(), ("--user",)], ids=["project", "user"])
@pytest.mark.parametrize("client", LISTS)
def test_hooks_are_added_for_every_event_and_taken_out_again(
    home: Home, client: str, options: tuple[str, ...]
) -> None:
    path = home.path.parent / LISTS[client][len(options)]
    done = home.report("setup", client, *options, "--hooks", "--write")
    assert [one["file"] for one in done["hooks"]] == [str(path)]
    assert done["entry"], "the server is set up as well"
    found = plain(path.read_text())
    assert commands(found) == [LINE] * len(registered(client))
    assert list(found["hooks"]) == list(registered(client))
    if client == "copilot":
        assert found["version"] == 1

    again = home.report("setup", client, *options, "--hooks", "--write")
    assert [one["action"] for one in again["hooks"]] == ["none"]
    gone = home.report("setup", client, *options, "--no-hooks", "--write")
    assert gone.keys() == {"hooks", "guide"}, "whoever takes them out did not ask for the server"
    if client == "copilot":
        assert not path.exists(), "nothing else was in it"
    else:
        assert commands(plain(path.read_text())) == []
        assert "hooks" not in plain(path.read_text())
    again = home.report("setup", client, *options, "--no-hooks", "--write")
    assert [one["action"] for one in again["hooks"]] == ["none"]


@pytest.mark.parametrize("client", LISTS)
def test_hooks_and_settings_of_others_stay_byte_for_byte(home: Home, client: str) -> None:
    path = home.path.parent / LISTS[client][0]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(FOREIGN)
    home.report("setup", client, "--hooks", "--write")
    text = path.read_text()
    assert commands(plain(text)) == [LINE] * len(registered(client))
    steps = difflib.SequenceMatcher(None, FOREIGN, text, autojunk=False).get_opcodes()
    assert {tag for tag, *_ in steps} == {"equal", "insert"}
    home.report("setup", client, "--no-hooks", "--write")
    left = plain(path.read_text())
    left.pop("mcpServers", None)
    if client in ("copilot", "cursor"):
        assert left.pop("version") == 1
    assert left == plain(FOREIGN)


def test_an_older_hook_is_replaced_and_never_doubled(home: Home) -> None:
    """Also one that its owner moved into another group."""
    old = f"/old/colibri hook 2>/dev/null || : {MARK}"
    lint = {"type": "command", "command": "lint"}
    ours = {"type": "command", "command": old}
    path = home.project / ".claude" / "settings.local.json"
    path.parent.mkdir()
    mixed = {"matcher": "*", "hooks": [lint, ours]}
    before = {"hooks": {"Stop": [{"hooks": [ours]}, mixed, 3], "Gone": [{"hooks": [ours]}]}}
    path.write_text(json.dumps(before))
    home.report("setup", "claude-code", "--hooks", "--write")
    found = plain(path.read_text())
    assert commands(found) == [LINE] * len(registered("claude-code"))
    assert found["hooks"]["Stop"][:2] == [{"matcher": "*", "hooks": [lint]}, 3]
    assert "Gone" not in found["hooks"]


@pytest.mark.parametrize("options", [(), ("--user",)], ids=["project", "user"])
@pytest.mark.parametrize("client", PROGRAMS)
def test_a_file_of_our_own_is_made_updated_and_deleted(
    home: Home, client: str, options: tuple[str, ...]
) -> None:
    name = str(home.path.parent / PROGRAMS[client][len(options)])
    paths = [Path(name.replace("{event}", event)) for event in registered(client)]
    paths = list(dict.fromkeys(paths))
    done = home.report("setup", client, *options, "--hooks", "--write")
    assert [one["file"] for one in done["hooks"]] == [str(path) for path in paths]
    for path in paths:
        assert OWNER in path.read_text()
        assert SCRIPT in path.read_text()
        assert bool(path.stat().st_mode & stat.S_IXUSR) == (client == "cline")
    paths[0].write_text(f"// {OWNER}: an older one")
    again = home.report("setup", client, *options, "--hooks", "--write")
    assert again["hooks"][0]["action"] == "change"
    assert [one.name for one in paths[0].parent.iterdir() if "backup" in one.name] == []
    code, out, err = home.run("setup", client, *options, "--no-hooks")
    assert (code, err) == (
        0,
        "colibri: hint: nothing was written; add --write to make this change\n",
    )
    assert f"--- {paths[0]}\n+++ /dev/null\n" in out
    code, out, _ = home.run("setup", client, *options, "--no-hooks", "--write")
    assert (code, out.splitlines()) == (0, [f"deleted {path}" for path in paths])
    assert not any(path.exists() for path in paths)


@pytest.mark.parametrize("client", PROGRAMS)
def test_a_file_of_somebody_else_is_neither_replaced_nor_deleted(home: Home, client: str) -> None:
    name = PROGRAMS[client][0].replace("{event}", registered(client)[0])
    path = home.path.parent / name
    path.parent.mkdir(parents=True)
    path.write_text("mine\n")
    code, _, err = home.run("setup", client, "--hooks", "--write")
    assert (code, err) == (
        1,
        f"colibri: error: {path} is not Colibri's\n"
        "colibri: hint: move it out of the way, or use --user\n",
    )
    home.report("setup", client, "--no-hooks", "--write")
    assert path.read_text() == "mine\n"


def test_what_cannot_be_read_is_named_and_left_alone(home: Home) -> None:
    path = home.project / ".claude" / "settings.local.json"
    path.parent.mkdir()
    for data, what in (
        (b'{"hooks": []}', "line 1, column 11: hooks is not an object"),
        (b'{"hooks": {"Stop": 3}}', "line 1, column 20: hooks.Stop is not a list"),
        (b"{", "line 1, column 2: expecting property name enclosed in double quotes"),
        (b"\xff", "line 1, column 1: it is not UTF-8"),
    ):
        path.write_bytes(data)
        code, out, err = home.run("setup", "claude-code", "--hooks", "--write")
        assert (code, out) == (1, "")
        assert err == f"colibri: error: {path}, {what}: fix it, then try again\n"
        assert path.read_bytes() == data
        assert not (home.project / ".mcp.json").exists(), "all or nothing"


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (("generic", "--hooks"), "hooks of another client are not known; known are those of"),
        (("gemini", "--hooks", "--file", "x"), "hooks have a file of their own: leave out --file"),
        (("gemini", "--hooks", "--print"), "--print prints the entry alone: leave out --hooks"),
    ],
)
def test_what_makes_no_sense_is_refused(home: Home, options: tuple[str, ...], what: str) -> None:
    code, out, err = home.run("setup", *options)
    assert (code, out) == (2, "")
    assert what in err


def test_a_link_in_the_project_is_not_followed(home: Home) -> None:
    (home.path / "elsewhere").mkdir()
    (home.project / ".claude").symlink_to(home.path / "elsewhere")
    code, _, err = home.run("setup", "claude-code", "--hooks", "--write")
    assert code == 1
    assert "is a link to" in err
    assert list((home.path / "elsewhere").iterdir()) == []


def test_codex_users_are_told_to_trust_the_hooks(home: Home) -> None:
    """Colibri never writes that trust itself. Specification 22.3."""
    _, out, _ = home.run("setup", "codex", "--hooks", "--write")
    assert "enter /hooks and trust them" in out
    written = [one for one in home.path.rglob("*") if one.is_file()]
    assert not any("trusted_hash" in one.read_text() for one in written)


@pytest.mark.parametrize("program", ["/no/such/program", "/bin/false", "/bin/sh -c 'exit 2'"])
def test_a_program_that_is_missing_or_fails_does_no_harm(program: str) -> None:
    """As a client starts it: exit code 0, and nothing said. Specification 22.2."""
    command = program.split(" ", 2)
    for shell in ("sh", "bash"):
        done = execute([shell, "-c", hooks.line(command)])
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    add = HOOKS["cline"].add("cline", "", command)
    done = execute(["sh", "-c", add])
    assert (done.returncode, done.stdout, done.stderr) == (0, '{"cancel":false}\n', "")


def test_the_plugin_reports_the_events_that_the_hook_knows(home: Home) -> None:
    """By a script in place of `colibri hook`, and with one that is missing; what this answers when
    a session is created goes into the system prompt."""
    seen = home.path / "seen.jsonl"
    recorder = home.path / "record"
    brief = 'grep -q session.created && echo \'{"additionalContext":"Where it stands."}\''
    recorder.write_text(f'#!/bin/sh\ntee -a "{seen}" | {brief}\necho >> "{seen}"\nexit 3\n')
    recorder.chmod(0o755)
    for program, system in ((str(recorder), ["Where it stands."]), ("/no/such/program", [])):
        plugin = home.path / f"plugin-{Path(program).name}.mjs"
        plugin.write_text(HOOKS["opencode"].add("opencode", "", [program]))
        done = execute(["node", str(TESTS / "support" / "opencode_events.mjs"), plugin])
        assert (json.loads(done.stdout), done.stderr) == (system, "")
    lines = [json.loads(line) for line in seen.read_text().splitlines()]
    told = [
        line["input"]["event"]["type"] if line["event"] == "event" else line["event"]
        for line in lines
    ]
    assert told == list(EVENTS["opencode"])
    assert {line["host"] for line in lines} == {"opencode"}
    assert {line["directory"] for line in lines} == {"/project"}
    assert [line["parent"] for line in lines] == ["ses_0"] * len(lines)
    assert {line["version"] for line in lines} == {"1.2.3"}


def test_what_differs_from_what_was_wanted_is_never_written() -> None:
    """The result is read again and compared, whatever edited it."""

    class Careless(Json):
        def append(self, text: str, path: tuple[str, ...], item: Any) -> str:
            return json.dumps({"hooks": {path[1]: [item]}})

    careless = Hooks(item=lambda line: {"command": line}, language=Careless())
    with pytest.raises(Broken, match="unusual form"):
        careless.add("cursor", '{"mine": 1}', ["colibri"])
