"""catalogue.json matches the declared tools."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import colibri
from colibri.tools import catalogue
from tests.support.client import COLIBRI, Server, environment, execute
from tests.support.ledger_reader import calls

SOURCE = Path(colibri.__file__).parent


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package, whose catalogue.json a test may damage."""
    package = tmp_path / "lib" / "colibri"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    return package


def run(package: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return execute(
        [sys.executable, "-m", "colibri.tools.catalogue", *options],
        cwd=package.parent,
        env={**environment(), "PYTHONPATH": str(package.parent)},
    )


def test_the_file_is_current() -> None:
    """Specification 5.3: a test fails when it is stale."""
    assert Path(catalogue.PATH).read_text(encoding="utf-8") == catalogue.render()


def test_a_current_file_passes_the_check(copy: Path) -> None:
    """scripts/catalogue --check."""
    done = run(copy, "--check")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_stale_file_fails_the_check_and_is_rewritten_without_it(copy: Path) -> None:
    """scripts/catalogue --check changes nothing; without --check the file is written."""
    file = copy / "tools" / "catalogue.json"
    current = file.read_text(encoding="utf-8")
    stale = current.replace("server_ping", "server_pong")
    file.write_text(stale, encoding="utf-8")
    done = run(copy, "--check")
    assert done.returncode == 1
    assert done.stderr == "catalogue.json is stale: run scripts/catalogue\n"
    assert file.read_text(encoding="utf-8") == stale
    assert run(copy).returncode == 0
    assert file.read_text(encoding="utf-8") == current


FIFTEENTH = """

class Word(Struct, forbid_unknown_fields=True):
    word: Annotated[str, Meta(description="Any word.", max_length=20)]


class Count(Struct):
    letters: int


@tool("letter_count", "Count letters", "How many letters a word has.")
def count_letters(work: Work, args: Word) -> Count:
    return Count(len(args.word))


TOOLS = (*TOOLS, count_letters)
"""


def test_a_fifteenth_tool_is_written_in_one_file(copy: Path, project: Path) -> None:
    """Nothing else is touched by hand: listing, validation, recording and the check follow."""
    before = _files(copy)
    with (copy / "tools" / "tasks.py").open("a", encoding="utf-8") as file:
        file.write(FIFTEENTH)
    assert run(copy).returncode == 0
    changed = {name for name, data in _files(copy).items() if before.get(name) != data}
    assert changed == {"tools/tasks.py", "tools/catalogue.json"}

    lib = os.pathsep.join([str(copy.parent), str(SOURCE.parent)])
    with Server(project, COLIBRI, PYTHONPATH=lib) as server:
        listed = [tool["name"] for tool in server.request("tools/list")["result"]["tools"]]
        assert len(listed) == 15
        assert server.data("letter_count", word="colibri") == {"letters": 7}
        assert server.call("letter_count", word=7)["isError"] is True
        assert server.data("audit_verify_chain")["valid"] is True
        good, bad = calls(server.database, "letter_count")
        assert (good.arguments, good.outcome) == ({"word": "colibri"}, "ok")
        assert bad.outcome != "ok"


def _files(package: Path) -> dict[str, bytes]:
    files = (file for file in package.rglob("*") if file.suffix != ".pyc" and file.is_file())
    return {file.relative_to(package).as_posix(): file.read_bytes() for file in files}


def test_every_tool_says_what_an_agent_needs() -> None:
    """Specification 5.4: a title, a description, annotations."""
    for tool in json.loads(catalogue.render())["tools"]:
        listing = tool["listing"]
        assert listing["title"]
        assert listing["description"].endswith(".")
        hints = listing["annotations"]
        assert hints["openWorldHint"] is False
        if not hints["readOnlyHint"]:  # the other two mean nothing for a tool that only reads
            assert hints["destructiveHint"] is False
            assert hints["idempotentHint"] is False
        assert hints.keys() == {"readOnlyHint", "openWorldHint"} | (
            set() if hints["readOnlyHint"] else {"destructiveHint", "idempotentHint"}
        )
        assert tool["lane"] in ("probe", "read", "write")


def test_the_catalogue_has_no_references_and_no_generated_titles() -> None:
    """Specification 5.5: they only cost an agent tokens; a tool's own title is one level up."""
    for tool in json.loads(catalogue.render())["tools"]:
        for schema in (tool["listing"]["inputSchema"], tool["listing"]["outputSchema"]):
            text = json.dumps(schema)
            assert '"$ref"' not in text
            assert '"$defs"' not in text
            assert '"title": "' not in text


# What an agent reads.


def tokens(text: str) -> int:
    """An estimate of a text's tokens without a tokenizer, too high rather than too low.

    One for each started eight letters of a word (most English words are one), three digits, or
    three bytes of a run of symbols; the blank before a word belongs to it. For the catalogue that
    makes 3.6 characters per token; the usual rule of thumb is four.
    """
    pieces = re.findall(r"[A-Za-z]+|[0-9]+|[^\sA-Za-z0-9]+", text)
    return sum(-(-len(piece.encode()) // (8 if piece.isalpha() else 3)) for piece in pieces)


def test_all_tools_together_cost_an_agent_less_than_3000_tokens() -> None:
    """Specification 5.5: name, description and input schema."""
    listings = [tool["listing"] for tool in json.loads(catalogue.render())["tools"]]
    shown = [
        {key: listing[key] for key in ("name", "description", "inputSchema")}
        for listing in listings
    ]
    assert len(shown) == 14
    text = json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
    assert len(text) / 4 < tokens(text) < 3000


def test_the_instructions_are_short_and_tell_the_order_of_a_session() -> None:
    """Specification 1.1: the agent must succeed on the first try from what it is told."""
    assert len(catalogue.INSTRUCTIONS) < 1400
    names = [tool.name for tool in catalogue.CATALOGUE]
    named = [word for word in re.findall(r"[a-z_]+", catalogue.INSTRUCTIONS) if word in names]
    assert named == [
        "audit_session_start",
        "task_create",
        "task_next_actions",
        "task_update",
        "thought_record",
        "task_update",
        "merkle_finalize",
        "audit_verify_chain",
        "skill_list",
    ]


def test_every_argument_is_described() -> None:
    """Specification 5.4: described fields."""
    for tool in json.loads(catalogue.render())["tools"]:
        for name, field in tool["listing"]["inputSchema"]["properties"].items():
            assert field["description"], (tool["listing"]["name"], name)


def test_the_states_are_listed_in_the_order_of_the_work() -> None:
    tools = {tool["listing"]["name"]: tool for tool in json.loads(catalogue.render())["tools"]}
    status = tools["task_update"]["listing"]["inputSchema"]["properties"]["status"]
    work = ["INIT", "GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY", "DONE", "CANCELLED"]
    one, several = status["anyOf"]
    assert one["enum"] == work
    assert several["items"]["enum"] == work
