"""The pages of docs/ that are written by hand: what they quote and link to is there, and works."""

import ast
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from colibri import cli
from colibri.cli.settings.clients import CLIENTS
from colibri.core.states import TRANSITIONS
from colibri.tools.catalogue import CATALOGUE
from tests.support.client import COLIBRI, TESTS, Server, execute
from tests.support.user_home import Home

ROOT = TESTS.parent
DOCS = ROOT / "docs"
PAGES = [
    DOCS / "getting-started.md",
    DOCS / "agents.md",
    DOCS / "troubleshooting.md",
    *(DOCS / "clients" / f"{client}.md" for client in CLIENTS),
]


def blocks(page: Path, *languages: str) -> list[str]:
    """Its code blocks, without the indentation that they have in a list."""
    found = re.findall(
        rf"^( *)```(?:{'|'.join(languages)})\n(.*?)^ *```$",
        page.read_text(encoding="utf-8"),
        re.DOTALL | re.MULTILINE,
    )
    return [re.sub(rf"^{indent}", "", text, flags=re.MULTILINE) for indent, text in found]


@pytest.mark.parametrize(
    "page",
    [
        *PAGES,
        DOCS / "team.md",
        DOCS / "scale.md",
        ROOT / "README.md",
        ROOT / "ARCHITECTURE.md",
        DOCS / "specification.md",
    ],
    ids=lambda page: page.name,
)
def test_every_link_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_getting_started_leads_to_every_page() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", PAGES[0].read_text(encoding="utf-8"))
    assert {str(page.relative_to(DOCS)) for page in PAGES[1:]} <= set(links)


@pytest.mark.parametrize("client", CLIENTS)
def test_the_page_of_a_client_shows_what_setup_prints(
    client: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = DOCS / "clients" / f"{client}.md"
    (snippet,) = blocks(page, "json", "toml")
    (command,) = blocks(page, "sh")
    assert command.startswith(f"colibri setup {client} ")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["setup", client, "--print"]) == 0
    printed = capsys.readouterr().out
    here = snippet.replace("/path/to/colibri", str(ROOT)).replace("/path/to/project", str(tmp_path))
    assert here == printed


def test_the_commands_of_getting_started_work(tmp_path: Path) -> None:
    """One after the other, by a newcomer in a new project."""
    home = Home(tmp_path)
    path = f"{home.path / '.local' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    lines = [line for block in blocks(PAGES[0], "sh") for line in block.splitlines()]
    assert len(lines) == 14
    for line in lines:
        if "export" in line:
            with Server(home.project, COLIBRI) as server:
                server.data("task_create", title="something to export")
        done = execute(
            ["sh", "-c", line.replace("/path/to/colibri", str(ROOT))],
            cwd=home.project,
            env=home.environment(PATH=path),
        )
        assert (line, done.returncode, done.stderr.replace("\n", " ")[:14]) == (
            line,
            0,
            "colibri: hint:" if line.endswith("and where") else "",
        )
    assert json.loads((home.project / ".mcp.json").read_text())["mcpServers"]["colibri"]


def test_the_session_of_agents_md_succeeds_call_by_call(tmp_path: Path) -> None:
    """Whoever follows it to the letter is never refused."""
    calls = [
        json.loads(line)
        for block in blocks(DOCS / "agents.md", "json")
        for line in block.splitlines()
    ]
    with Server(tmp_path, COLIBRI) as server:
        for call in calls:
            data: Any = server.data(call["name"], **call["arguments"])
            if call["name"] == "task_next_actions":
                assert [task["task_id"] for task in data["tasks"]] == ["T-0001"]
            if call["name"] == "thought_record_list":
                assert data["records"][0]["content"].startswith("Three attempts with")
        assert data["record_count"] == 2
        assert server.data("audit_verify_chain")["valid"] is True
        assert server.data("task_get", task_id="T-0001")["status"] == "DONE"
    assert calls[0]["name"] == "audit_session_start"
    assert calls[-1]["name"] == "merkle_finalize"


def test_agents_md_has_the_states_as_they_are() -> None:
    text = (DOCS / "agents.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([A-Z]+) \| ([A-Z, ]+|nothing) \|$", text, re.MULTILINE))
    assert rows == {
        state.value: ", ".join(targets) or "nothing" for state, targets in TRANSITIONS.items()
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_tool_and_code_that_is_named_exists(page: Path, said: list[str]) -> None:
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"\b(?:task|thought|merkle|audit|server|skill)_[a-z_]+\b", text))
    assert named - {tool.name for tool in CATALOGUE} - {"task_id", "server_json"} == set()
    assert set(re.findall(r"\bERR_[A-Z_]+\b", text)) <= set(said)


def templates() -> Iterator[str]:
    """Every text in the source, with … for what is filled in at run time; no docstrings."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        documentation = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Expr):
                documentation.add(node.value)
            elif isinstance(node, ast.JoinedStr):
                parts = (p.value if isinstance(p, ast.Constant) else "…" for p in node.values)
                yield re.sub("…+", "…", "".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and node not in documentation:
                yield str(node.value)
    for name in ("setup", "colibri", "environment.py"):
        yield (ROOT / "scripts" / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def said() -> list[str]:
    return list(templates())


MESSAGES = [
    line for block in blocks(DOCS / "troubleshooting.md", "text") for line in block.splitlines()
]
"""As troubleshooting.md quotes them."""


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_in_troubleshooting_is_one_that_colibri_says(
    message: str, said: list[str]
) -> None:
    """Word for word; only what stands for something else may differ."""
    assert any(message in text for text in said)


def test_there_are_enough_messages_to_be_worth_a_test() -> None:
    assert len(MESSAGES) > 40
    assert all(re.search(r"[a-z]{4}", message) for message in MESSAGES)


@pytest.mark.parametrize("page", ["team.md", "scale.md"])
def test_the_commands_of_a_page_exist(page: str) -> None:
    named = {
        line.split()[1]
        for block in blocks(DOCS / page, "sh")
        for line in block.splitlines()
        if line.startswith("colibri ")
    }
    assert named <= {*cli.COMMANDS, "team"}
