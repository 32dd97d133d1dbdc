"""`colibri setup --guide`: a section about Colibri in the file that agents read first."""

import json
import re
import stat
from pathlib import Path

import pytest

from colibri.cli.settings import guide
from colibri.cli.settings.clients import CLIENTS
from colibri.tools.catalogue import CATALOGUE
from tests.support.terminal import COLIBRI, run_in_terminal
from tests.support.user_home import Home

ADD = ("setup", "claude-code", "--write", "--guide", "add")
REMOVE = ("setup", "claude-code", "--write", "--guide", "remove")
OURS = f"{guide.BEGIN}\n{guide.SECTION}{guide.END}"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def done(home: Home, *arguments: str) -> None:
    code, _, err = home.inside(*arguments)
    assert (code, err) == (0, "")


# What it says.


def test_the_section_is_short_and_names_only_tools_that_exist() -> None:
    assert len(guide.SECTION.split()) < 120
    named = re.findall(r"`((?:audit|task|merkle)_\w+)`", guide.SECTION)
    assert set(named) <= {tool.name for tool in CATALOGUE}
    assert named[0] == "audit_session_start"
    assert named[-1] == "merkle_finalize"


def test_each_client_has_the_file_that_its_agents_read() -> None:
    files = {name: client.guide for name, client in CLIENTS.items()}
    assert files.pop("claude-code") == "CLAUDE.md"
    assert files.pop("gemini") == "GEMINI.md"
    assert set(files.values()) == {"AGENTS.md"}
    assert set(guide.NAMES) == {client.guide for client in CLIENTS.values()}


# Adding and removing.

TEXTS = {
    "none": "",
    "a line": "Be kind.\n",
    "no line break at the end": "Be kind.",
    "blank lines at the end": "Be kind.\n\n\n",
    "Windows": "Be kind.\r\n\r\nBe brief.\r\n",
    "Windows, without a line break at the end": "Be kind.\r\nBe brief.",
    "a byte order mark": "\ufeffBe kind.\n",
    "the marks in a sentence": f"We know `{guide.BEGIN}` and `{guide.END}`.\n",
    "only blank lines": "\n\n",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_it_is_added_once_and_removed_without_a_trace(home: Home, text: str) -> None:
    """Byte for byte."""
    file = home.project / "CLAUDE.md"
    before = text.encode()
    file.write_bytes(before)
    done(home, *ADD)
    added = file.read_bytes()
    line = b"\r\n" if b"\r\n" in before else b"\n"
    ours = OURS.encode().replace(b"\n", line)
    assert added.startswith(before)
    assert added.removeprefix(before).strip() == ours.strip()
    done(home, *ADD)
    assert file.read_bytes() == added, "twice is once"
    done(home, *REMOVE)
    assert file.read_bytes() == before
    done(home, *REMOVE)
    assert file.read_bytes() == before


def test_an_older_section_is_updated_where_it_is(home: Home) -> None:
    """Whatever the older version wrote into its first mark."""
    file = home.project / "CLAUDE.md"
    old = "<!-- colibri: begin -->\nan older text\n<!-- colibri: end -->"
    file.write_text(f"Above.\n{old}\nBelow, without a break")
    done(home, *ADD)
    assert file.read_text() == f"Above.\n{OURS}\nBelow, without a break"
    done(home, *REMOVE)
    assert file.read_text() == "Above.\nBelow, without a break"


def test_text_after_the_section_stays(home: Home) -> None:
    file = home.project / "CLAUDE.md"
    file.write_text("Above.\n")
    done(home, *ADD)
    file.write_text(file.read_text() + "\nBelow.\n")
    done(home, *REMOVE)
    assert file.read_text() == "Above.\n\nBelow.\n"


UNCLEAR = {
    "only the first": guide.BEGIN,
    "only the last": guide.END,
    "the wrong way round": f"{guide.END}\n{guide.BEGIN}",
    "the first twice": f"{guide.BEGIN}\n{OURS}",
    "the last twice": f"{OURS}\n{guide.END}",
    "two sections": f"{OURS}\n{OURS}",
}


@pytest.mark.parametrize("text", UNCLEAR.values(), ids=UNCLEAR)
@pytest.mark.parametrize("command", [ADD, REMOVE], ids=["add", "remove"])
def test_marks_that_are_broken_are_left_to_their_owner(
    home: Home, text: str, command: tuple[str, ...]
) -> None:
    file = home.project / "CLAUDE.md"
    file.write_text(f"Above.\n{text}\nBelow.\n")
    before = file.read_bytes()
    code, out, err = home.inside(*command)
    assert (code, out) == (1, "")
    assert err.startswith(f"colibri: error: {file}: cannot tell where the section about Colibri")
    assert f"hint: delete every line that is {guide.END} or begins with <!-- colibri: b" in err
    assert [one.name for one in home.project.iterdir()] == ["CLAUDE.md"], "nor the settings"
    assert file.read_bytes() == before


# What setup promises for the files of others.


def test_without_write_the_section_is_shown_and_nothing_happens(home: Home) -> None:
    code, out, err = home.run("setup", "claude-code", "--guide", "add")
    assert (code, err) == (
        0,
        "colibri: hint: nothing was written; add --write to make this change\n",
    )
    assert f"+++ {home.project}/CLAUDE.md" in out.splitlines()
    assert "+## Colibri" in out.splitlines()
    assert list(home.project.iterdir()) == []


def test_a_new_file_can_be_read_by_others_and_an_old_one_is_kept(home: Home) -> None:
    file = home.project / "AGENTS.md"
    report = home.report("setup", "generic", "--write", "--guide", "add")
    assert report["guide"] == {
        "file": str(file),
        "action": "create",
        "written": True,
        "backup": None,
        "diff": report["guide"]["diff"],
    }
    assert stat.S_IMODE(file.stat().st_mode) & 0o644 == 0o644
    assert file.read_text() == f"{OURS}\n"
    file.write_text("Be kind.\n")
    file.chmod(0o640)
    report = home.report("setup", "generic", "--write", "--guide", "add")["guide"]
    assert (report["action"], Path(report["backup"]).read_text()) == ("change", "Be kind.\n")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert "+## Colibri\n" in report["diff"]


def test_the_old_file_is_named_where_it_is_kept(home: Home) -> None:
    file = home.project / "CLAUDE.md"
    file.write_text("Be kind.\n")
    code, out, _ = home.run(*ADD)
    (kept,) = home.project.glob("CLAUDE.md.backup-*")
    assert code == 0
    assert out.splitlines()[-2:] == [f"wrote   {file}", f"backup  {kept}"]
    assert home.run(*ADD)[1].splitlines() == [
        f"nothing to do: {home.project}/.mcp.json already starts this Colibri",
        f"nothing to do: {file} is as it should be",
    ]


def test_a_read_only_file_is_left_alone_and_so_are_the_settings(home: Home) -> None:
    file = home.project / "CLAUDE.md"
    file.write_text("Be kind.\n")
    file.chmod(0o444)
    assert home.run(*ADD) == (
        75,
        "",
        f"colibri: error: {file} is read-only\n"
        "colibri: hint: make it writable, or edit it yourself\n",
    )
    assert [one.name for one in home.project.iterdir()] == ["CLAUDE.md"]
    file.chmod(0o644)
    done(home, *ADD)
    file.chmod(0o444)
    done(home, *ADD)  # there is nothing to do


def test_a_link_to_the_one_file_of_the_project_is_followed(home: Home) -> None:
    (home.project / "AGENTS.md").write_text("Be kind.\n")
    link = home.project / "CLAUDE.md"
    link.symlink_to("AGENTS.md")
    report = home.report(*ADD)["guide"]
    assert report["file"] == str(home.project / "AGENTS.md")
    assert link.is_symlink()
    assert (home.project / "AGENTS.md").read_text() == f"Be kind.\n\n{OURS}\n"


@pytest.mark.parametrize("target", ["../elsewhere.md", ".git/config", "docs/AGENTS.md"])
def test_no_other_link_is_followed(home: Home, target: str) -> None:
    real = home.project / target
    real.parent.mkdir(exist_ok=True)
    real.write_text("Mine.\n")
    (home.project / "CLAUDE.md").symlink_to(target)
    code, out, err = home.run(*ADD)
    assert (code, out) == (1, "")
    assert f"{home.project}/CLAUDE.md is a link to {real.resolve()}" in err
    assert real.read_text() == "Mine.\n"
    assert not (home.project / ".mcp.json").exists()


def test_what_is_not_text_or_not_a_file_is_reported(home: Home) -> None:
    file = home.project / "CLAUDE.md"
    file.write_bytes(b"caf\xe9\n")
    code, _, err = home.run(*ADD)
    assert (code, err) == (
        1,
        f"colibri: error: {file}, line 1, column 4: it is not UTF-8: fix it, then try again\n",
    )
    file.unlink()
    file.mkdir()
    code, _, err = home.run(*ADD)
    assert (code, err) == (
        75,
        f"colibri: error: {file} is not a regular file\n"
        "colibri: hint: move it out of the way, or leave out --guide\n",
    )


def test_removing_touches_nothing_but_the_section(home: Home) -> None:
    """Whoever takes it out did not ask for the server."""
    (home.project / "CLAUDE.md").write_text(f"{OURS}\n")
    report = home.report(*REMOVE)
    assert (report.keys(), report["hooks"]) == ({"hooks", "guide"}, None)
    assert (home.project / "CLAUDE.md").read_text() == ""
    assert not (home.project / ".mcp.json").exists()


def test_an_entry_that_is_only_printed_has_no_guide(home: Home) -> None:
    code, out, err = home.run("setup", "codex", "--print", "--guide", "add")
    assert (code, out) == (2, "")
    assert "leave out --guide" in err


# The offer.


@pytest.mark.parametrize(("answer", "is_added"), [("y", True), ("yes", True), ("", False)])
def test_on_a_terminal_it_is_shown_and_asked_for(home: Home, answer: str, is_added: bool) -> None:
    command = [*COLIBRI, "setup", "claude-code", "--write"]
    env = home.environment(NO_COLOR="1")
    code, shown = run_in_terminal(command, cwd=home.project, env=env, typed=f"{answer}\n".encode())
    assert code == 0
    assert "wrote   " in shown
    asked = shown.index("add this section about Colibri, for agents to read first? [y/N]")
    assert shown.index("+## Colibri") < asked
    file = home.project / "CLAUDE.md"
    assert file.exists() == is_added
    assert (f"wrote   {file}" in shown) == is_added


def test_an_offer_is_made_only_where_there_is_something_to_do(home: Home) -> None:
    command = [*COLIBRI, "setup", "claude-code", "--write"]
    env = home.environment(NO_COLOR="1")
    file = home.project / "CLAUDE.md"
    file.write_text(f"{OURS}\n")
    assert "[y/N]" not in run_in_terminal(command, cwd=home.project, env=env)[1]
    file.write_text("<!-- colibri: begin -->\nold\n<!-- colibri: end -->\n")
    _, shown = run_in_terminal(command, cwd=home.project, env=env, typed=b"y\n")
    assert "update this section about Colibri" in shown
    assert file.read_text() == f"{OURS}\n"
    file.write_text(guide.BEGIN)
    assert "[y/N]" not in run_in_terminal(command, cwd=home.project, env=env)[1]
    file.unlink()
    looked = run_in_terminal(command[:-1], cwd=home.project, env=env)[1]
    assert "[y/N]" not in looked, "without --write nothing is asked"
    code, out, err = home.run("setup", "claude-code", "--write")
    assert (code, err, "CLAUDE.md" in out) == (0, "", False), "nor in a pipe"
    assert json.loads((home.project / ".mcp.json").read_text())["mcpServers"]["colibri"]
