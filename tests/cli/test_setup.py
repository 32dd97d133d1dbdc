"""`colibri setup`: settings files as clients and their users really write them."""

import difflib
import json
import shutil
import stat
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from colibri import cli
from colibri.cli.commands import setup
from colibri.cli.settings.clients import CLIENTS
from tests.support.client import TESTS, Server
from tests.support.client_settings import (
    ADDED,
    BROKEN,
    CHANGED,
    CLAUDE_CODE,
    CLAUDE_USER,
    CLINE,
    CODEX,
    COPILOT,
    COPILOT_USER,
    CURSOR,
    CURSOR_USER,
    GEMINI,
    GEMINI_USER,
    OPENCODE,
    OPENCODE_USER,
    QWEN,
    QWEN_USER,
    UNUSUAL,
    VSCODE,
    Where,
)
from tests.support.terminal import COLIBRI, run_in_terminal
from tests.support.user_home import Home, plain

SCRIPT = str(TESTS.parent / "scripts" / "colibri")
SERVE = {"command": SCRIPT, "args": ["serve"]}
WORKSPACE = {"command": SCRIPT, "args": ["serve", "--project", "${workspaceFolder}"]}
ENTRIES = {
    "claude-code": SERVE,
    "codex": SERVE,
    "gemini": SERVE,
    "copilot": SERVE,
    "qwen": SERVE,
    "opencode": {"type": "local", "command": [SCRIPT, "serve"]},
    "cursor": WORKSPACE,
    "vscode": {"type": "stdio", **WORKSPACE},
}
Inside = Callable[..., tuple[int, str, str]]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.fixture
def inside(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Inside:
    """The same program in this process: what has its own way through the front door is faster."""
    monkeypatch.chdir(home.project)
    for name, value in home.environment().items():
        monkeypatch.setenv(name, value)

    def run(*arguments: str) -> tuple[int, str, str]:
        try:
            code = cli.main(list(arguments))
        except SystemExit as ending:
            code = int(ending.code or 0)
        return code, *capsys.readouterr()

    return run


def read(client: str, text: str) -> Any:
    """In another way than the program does."""
    return tomllib.loads(text.removeprefix("\ufeff")) if client == "codex" else plain(text)


def place(home: Home, where: Where, text: str) -> Path:
    path = home.path.parent / where.file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode(errors="surrogateescape"))
    return path


def content(path: Path) -> str:
    return path.read_bytes().decode(errors="surrogateescape")


@pytest.mark.parametrize(("where", "before"), ADDED.values(), ids=ADDED)
def test_the_entry_is_added_and_every_other_byte_stays(
    home: Home, inside: Inside, where: Where, before: str
) -> None:
    path = place(home, where, before)
    code, out, err = home.inside("setup", where.client, *where.options, "--write")
    assert (code, err) == (0, "")
    after = content(path)
    servers = read(where.client, after)[CLIENTS[where.client].servers]
    assert servers["colibri"] == ENTRIES[where.client]

    steps = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    assert {tag for tag, *_ in steps} == {"equal", "insert"}
    added = "".join(after[start:end] for tag, _, _, start, end in steps if tag == "insert")
    assert ("\r\n" in before) == ("\r\n" in added)
    assert ("\n" in before) == ("\n" in added)

    (backup,) = path.parent.glob(path.name + ".backup-*")
    assert content(backup) == before
    assert out.splitlines()[:2] == [f"wrote   {path}", f"backup  {backup}"]

    nothing = f"nothing to do: {path} already starts this Colibri\n"
    assert inside("setup", where.client, *where.options, "--write") == (0, nothing, "")
    assert content(path) == after
    assert len(list(path.parent.glob(path.name + ".*"))) == 1


@pytest.mark.parametrize(("where", "before", "after"), CHANGED.values(), ids=CHANGED)
def test_what_is_older_or_empty_is_changed_where_it_must_be(
    home: Home, inside: Inside, where: Where, before: str, after: str
) -> None:
    path = place(home, where, before)
    code, out, err = inside("setup", where.client, "--write", "--json")
    assert (code, err) == (0, "")
    assert content(path) == after.replace('COLIBRI"', f'{SCRIPT}"')
    done = json.loads(out)
    assert (done["action"], done["written"]) == ("change", True)
    assert done["entry"] == ENTRIES[where.client]
    assert content(Path(done["backup"])) == before
    assert inside("setup", where.client, "--write")[1].startswith("nothing to do")


@pytest.mark.parametrize(("where", "text", "what"), BROKEN.values(), ids=BROKEN)
def test_a_file_that_is_broken_is_left_alone_and_its_place_is_named(
    home: Home, inside: Inside, where: Where, text: str, what: str
) -> None:
    path = place(home, where, text)
    code, out, err = inside("setup", where.client, "--write")
    assert (code, out) == (1, "")
    assert err.startswith(f"colibri: error: {path}, {what}")
    assert err.endswith(": fix it, then try again\n")
    assert content(path) == text
    assert [one.name for one in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("text", UNUSUAL.values(), ids=UNUSUAL)
def test_toml_in_a_form_that_is_not_edited_is_left_to_its_owner(
    home: Home, inside: Inside, text: str
) -> None:
    path = place(home, CODEX, text)
    hint = "colibri: hint: colibri setup codex --print prints what to add"
    error = f"{path} lists its servers in an unusual form: add the entry by hand"
    assert inside("setup", "codex", "--write") == (1, "", f"colibri: error: {error}\n{hint}\n")
    assert content(path) == text


DESKTOP = "Library/Application Support" if sys.platform == "darwin" else ".config"
FILES = [
    Where("claude-desktop", (), f"home/{DESKTOP}/Claude/claude_desktop_config.json"),
    Where("generic", ("--file", "mcp.json"), "project/mcp.json"),
    CLAUDE_CODE,
    CURSOR,
    VSCODE,
    CODEX,
    GEMINI,
    COPILOT,
    QWEN,
    CLINE,
    OPENCODE,
]
USER_FILES = [
    Where("vscode", ("--user",), f"home/{DESKTOP}/Code/User/mcp.json"),
    CLAUDE_USER,
    CURSOR_USER,
    GEMINI_USER,
    COPILOT_USER,
    QWEN_USER,
    OPENCODE_USER,
]


@pytest.mark.parametrize("where", FILES, ids=lambda where: where.client)
def test_a_missing_settings_file_is_created_and_starts_the_server(home: Home, where: Where) -> None:
    """As its client would: with its variables filled in, from where the client starts servers."""
    code, out, err = home.inside("setup", where.client, *where.options, "--write")
    path = home.path.parent / where.file
    assert (code, out.splitlines()[0], err) == (0, f"wrote   {path}", "")
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    entry = read(where.client, content(path))[CLIENTS[where.client].servers]["colibri"]
    command = entry["command"]
    words = command if isinstance(command, list) else [command, *entry["args"]]
    program = [word.replace("${workspaceFolder}", str(home.project)) for word in words]
    elsewhere = home.path if "--project" in program else home.project
    with Server(elsewhere, program, handshake=False) as server:
        assert server.handshake()["serverInfo"]["name"] == "colibri"
        database = server.data("server_health")["db"]["path"]
        assert database == str(home.project / "data" / "colibri.db")
        assert server.close() == 0


@pytest.mark.parametrize("where", USER_FILES, ids=lambda where: where.client)
def test_with_user_it_is_the_file_for_all_projects(
    home: Home, inside: Inside, where: Where
) -> None:
    _, out, _ = inside("setup", where.client, *where.options, "--write", "--json")
    path = home.path.parent / where.file
    done = json.loads(out)
    assert (done["file"], done["action"], done["backup"]) == (str(path), "create", None)
    assert content(path) == done["snippet"]
    servers = {"colibri": ENTRIES[where.client]}
    assert read(where.client, content(path)) == {CLIENTS[where.client].servers: servers}


def test_a_remote_server_of_that_name_is_not_turned_into_ours(home: Home, inside: Inside) -> None:
    path = place(home, GEMINI, '{"mcpServers": {"colibri": {"httpUrl": "https://x"}}}')
    before = path.read_bytes()
    code, out, err = inside("setup", "gemini", "--write")
    assert (code, out) == (1, "")
    assert "there is a server colibri that has a URL\ncolibri: hint: choose another name" in err
    assert path.read_bytes() == before
    inside("setup", "gemini", "--write", "--name", "colibri-2")
    assert plain(path.read_text())["mcpServers"].keys() == {"colibri", "colibri-2"}


def test_without_write_the_change_is_shown_and_nothing_happens(home: Home, inside: Inside) -> None:
    path = place(home, *ADDED["other servers"])
    before = path.read_bytes()
    code, out, err = home.run("setup", "claude-code")
    assert (code, err) == (
        0,
        "colibri: hint: nothing was written; add --write to make this change\n",
    )
    assert out.splitlines()[:2] == [f"--- {path}", f"+++ {path}"]
    changed = [line for line in out.splitlines()[2:] if line[0] in "+-"]
    assert changed == [
        "+    },",
        '+    "colibri": {',
        f'+      "command": "{SCRIPT}",',
        '+      "args": ["serve"]',
    ]
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    assert json.loads(inside("setup", "claude-code", "--json")[1])["diff"] == out


def test_on_a_terminal_what_is_added_is_green(home: Home) -> None:
    command = [*COLIBRI, "setup", "claude-code"]
    code, shown = run_in_terminal(
        command, cwd=home.project, env=home.environment(NO_COLOR="", COLUMNS="")
    )
    assert code == 0
    assert '\x1b[38;5;28m+  "mcpServers": {' in shown


def test_no_traceback_comes_through_the_front_door(home: Home) -> None:
    """One of each kind as the shell sees it; the rest is told apart above."""
    path = place(home, *BROKEN["half a file"][:2])
    error = f"{path}, line 3, column 1: expecting property name enclosed in double quotes"
    assert home.run("setup", "claude-code", "--write") == (
        1,
        "",
        f"colibri: error: {error}: fix it, then try again\n",
    )
    path.unlink()
    path.mkdir()
    assert home.run("setup", "claude-code", "--write") == (
        75,
        "",
        f"colibri: error: {path} is not a regular file\ncolibri: hint: name another with --file\n",
    )


def test_print_needs_no_file_and_reads_none(home: Home) -> None:
    place(home, *BROKEN["half a file"][:2])
    assert home.run("setup", "claude-code", "--print")[0] == 0
    done = home.report("setup", "generic")
    assert (done["action"], done["file"], done["scope"], done["diff"]) == (
        "print",
        None,
        None,
        None,
    )


def test_a_named_project_is_written_down_where_the_file_is_not_the_projects(
    home: Home, inside: Inside
) -> None:
    other = home.path / "other"
    other.mkdir()
    pinned = ["serve", "--project", str(other)]
    for options in (
        ["codex"],
        ["claude-code", "--user"],
        ["claude-desktop"],
        ["cline"],
        ["generic"],
    ):
        _, out, _ = inside("setup", *options, "--project", str(other), "--json")
        assert json.loads(out)["entry"]["args"] == pinned
    done = home.report("setup", "claude-code", "--project", str(other), "--write")
    assert done["file"] == str(other / ".mcp.json")
    assert done["entry"]["args"] == ["serve"]


@pytest.mark.parametrize(
    ("client", "variable", "file"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("codex", "CODEX_HOME", "config.toml"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("copilot", "COPILOT_HOME", "mcp-config.json"),
        ("qwen", "QWEN_HOME", "settings.json"),
        ("cline", "CLINE_DIR", "data/settings/cline_mcp_settings.json"),
        ("opencode", "XDG_CONFIG_HOME", "opencode/opencode.json"),
    ],
)
def test_a_client_whose_files_were_moved_is_followed(
    inside: Inside,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    client: str,
    variable: str,
    file: str,
) -> None:
    monkeypatch.setenv(variable, str(tmp_path))
    done = json.loads(inside("setup", client, "--user", "--json")[1])
    assert done["file"] == str(tmp_path / file)


def test_another_file_can_be_named(home: Home) -> None:
    done = home.report("setup", "generic", "--file", "deep/er/mcp.json", "--write")
    assert done["file"] == str(home.project / "deep" / "er" / "mcp.json")
    assert (done["scope"], done["written"]) == ("file", True)
    assert plain(Path(done["file"]).read_text())["mcpServers"]["colibri"] == done["entry"]


def test_a_read_only_file_is_left_alone(home: Home, inside: Inside) -> None:
    path = place(home, *ADDED["no servers yet"])
    path.chmod(0o444)
    before = path.read_bytes()
    assert home.run("setup", "gemini", "--write") == (
        75,
        "",
        f"colibri: error: {path} is read-only\n"
        "colibri: hint: make it writable, or edit it yourself\n",
    )
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    assert inside("setup", "gemini")[0] == 0, "it can still be looked at"


def test_a_link_stays_and_the_file_behind_it_keeps_its_permissions(home: Home) -> None:
    """Settings that are kept in a repository of dotfiles, say."""
    real = home.path / "dotfiles" / "gemini.json"
    real.parent.mkdir()
    real.write_text("{}")
    real.chmod(0o640)
    link = home.path / ".gemini" / "settings.json"
    link.parent.mkdir()
    link.symlink_to("../dotfiles/gemini.json")
    done = home.report("setup", "gemini", "--user", "--write")
    assert done["file"] == str(link)
    assert link.is_symlink()
    assert str(link.readlink()) == "../dotfiles/gemini.json"
    assert plain(real.read_text())["mcpServers"]["colibri"] == SERVE
    assert Path(done["backup"]).parent == real.parent
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (real, Path(done["backup"]))]
    assert modes == [0o640, 0o640]
    told = home.run("setup", "gemini", "--user", "--write", "--name", "again")[1]
    assert told.splitlines()[0] == f"wrote   {link}, a link to {real}"


def test_every_client_is_in_the_help(inside: Inside) -> None:
    code, out, _ = inside("setup", "--help")
    assert code == 0
    assert [name for name in CLIENTS if f"\n  {name} " not in out] == []


def test_what_differs_from_what_was_wanted_is_never_written() -> None:
    """The result is read again and compared, whatever edited it."""

    class Careless:
        def load(self, text: str) -> Any:
            return json.loads(text)

        def put(self, text: str, path: tuple[str, ...], value: Any) -> str:
            return json.dumps({path[0]: {path[1]: value}})

    text = '{"mine": 1}'
    assert setup._changed(Careless(), text, ("mcpServers", "colibri"), SERVE) is None


# What people forget.


def git(home: Home, *arguments: str) -> None:
    command = ["git", "-C", str(home.project), *arguments]
    subprocess.run(command, env=home.environment(), check=True, capture_output=True, timeout=30)


@pytest.mark.skipif(shutil.which("git") is None, reason="it takes git")
def test_git_need_not_know_the_ledger_and_the_line_for_that_can_be_copied(home: Home) -> None:
    git(home, "init")
    assert ".gitignore" not in home.run("setup", "claude-code")[2], "nothing is written yet"
    code, _, err = home.run("setup", "claude-code", "--write")
    hint = "colibri: hint: git would add the ledger to your history; to prevent that: "
    assert (code, err) == (0, f"{hint}echo data/ >> {home.project}/.gitignore\n")
    subprocess.run(["sh", "-c", err.strip().removeprefix(hint)], check=True, timeout=30)
    again = ("--write", "--name", "again")  # a second --write of the same writes nothing
    assert home.run("setup", "claude-code", *again)[2] == ""
    assert home.run("setup", "codex", "--write", COLIBRI_DB_PATH="mine.db")[2] == (
        f"{hint}echo 'mine.db*' >> {home.project}/.gitignore\n"
    )
    assert home.run("setup", "codex", *again, COLIBRI_DB_PATH="/tmp/mine.db")[2] == ""


def test_without_git_nothing_is_reported_about_it(inside: Inside, home: Home) -> None:
    assert inside("setup", "claude-code", "--write")[2] == "", "no repository"
    for folder in ("objects", "refs"):
        (home.project / ".git" / folder).mkdir(parents=True)
    assert inside("setup", "codex", "--write")[2] == "", "a repository that git does not take"
    (home.path / "empty").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(home.path / "empty"))
        assert inside("setup", "cursor", "--write")[2] == "", "no git"


def test_the_clone_of_colibri_is_not_taken_for_a_project(inside: Inside, tmp_path: Path) -> None:
    clone = str(TESTS.parent)
    file = str(tmp_path / "settings.json")
    code, _, err = inside("setup", "generic", "--write", "--file", file, "--project", clone)
    assert code == 0
    assert err.startswith(
        "colibri: hint: this is the clone of Colibri itself: run setup in your own"
    )
