"""docs/tools.md is what the tools declare and what a real server answers."""

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from colibri.tools.catalogue import CATALOGUE
from tests.support.client import TESTS, execute

ROOT = TESTS.parent
REFERENCE = ROOT / "docs" / "tools.md"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return execute([sys.executable, str(ROOT / "scripts" / "reference.py"), *arguments])


@pytest.fixture(scope="module")
def reference() -> str:
    return REFERENCE.read_text(encoding="utf-8")


def test_the_reference_is_current() -> None:
    """Specification 18.3: generated documents are rebuilt by a script and diffed in the tests."""
    done = run("--check")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_stale_reference_fails_the_check_and_is_rewritten_without_it(
    tmp_path: Path, reference: str
) -> None:
    """scripts/reference --check changes nothing; without --check the file is written."""
    file = tmp_path / "tools.md"
    stale = reference.replace("ERR_CYCLE", "ERR_CIRCLE")
    file.write_text(stale, encoding="utf-8")
    done = run("--check", str(file))
    assert (done.returncode, done.stderr) == (1, "tools.md is stale: run scripts/reference\n")
    assert file.read_text(encoding="utf-8") == stale
    assert run(str(file)).returncode == 0
    assert file.read_text(encoding="utf-8") == reference


def test_every_tool_has_its_section_with_every_argument(reference: str) -> None:
    """Specification 5.1: the tools, in the order of the catalogue."""
    sections = re.findall(r"^## (\w+)$", reference, re.MULTILINE)
    assert sections == [tool.name for tool in CATALOGUE]
    for tool in CATALOGUE:
        text = reference.partition(f"## {tool.name}\n")[2].partition("\n## ")[0]
        assert tool.title in text
        assert tool.description in text
        listed = re.findall(r"^\| `(\w+)` \| .* \| .* \| .* \|$", text, re.MULTILINE)
        assert listed == list(tool.input.__struct_fields__)


def test_every_tool_has_the_fields_of_its_answer(reference: str) -> None:
    """Whoever writes a client need not guess; one that answers as another does names it."""
    fields: dict[str, list[str]] = {}
    for tool in CATALOGUE:
        text = reference.partition(f"## {tool.name}\n")[2].partition("\n## ")[0]
        rows = re.findall(r"^\| `([a-z_0-9.[\]]+)` \| [^|]+ \|$", text, re.MULTILINE)
        same = re.search(r"^It answers with what `(\w+)` does\.$", text, re.MULTILINE)
        fields[tool.name] = fields[same[1]] if same else rows
        assert tool.output is not None
        top = [name for name in fields[tool.name] if "." not in name]
        assert top == list(tool.output.__struct_fields__)
    assert {"tasks[].task_id", "next_offset"} <= set(fields["task_list"])
    assert {"proof.path", "root"} <= set(fields["merkle_root"])
    assert "head.leaf" in fields["audit_verify_chain"], "also within what may be null"


def test_no_cell_of_a_table_is_empty(reference: str) -> None:
    assert not re.search(r"^\|(?:.*\|)? *\|(?:.*\|)?$", reference, re.MULTILINE)


def test_the_refusals_that_are_listed_are_those_that_the_store_can_raise(reference: str) -> None:
    """Specification 5.1: the column of refusals."""
    source = (ROOT / "src" / "colibri" / "store").glob("*.py")
    tools = [file for file in source if file.stem != "erasure"]  # which is a command's
    raised = {code for file in tools for code in _codes(file.read_text(encoding="utf-8"))}
    listed = re.findall(r"^\| `(ERR_\w+)` \|", reference, re.MULTILINE)
    assert set(listed) == raised


def _codes(text: str) -> list[str]:
    return re.findall(r'"(ERR_\w+)"', text)


class Mistake(NamedTuple):
    """A row of the tables of mistakes."""

    tool: str
    arguments: str
    code: str
    answer: str

    @property
    def fields(self) -> set[str]:
        """The arguments that the answer finds fault with; `[]` marks an item of a list."""
        if self.code != "INVALID_PARAMS":
            return set()
        found = re.findall(r"(?:failed:|\);) (\w+(?:\[\d+\])?)(?:\.\w+)?: ", self.answer)
        return {re.sub(r"\d+", "", name) for name in found}


@pytest.fixture(scope="module")
def mistakes(reference: str) -> list[Mistake]:
    found = []
    for part in reference.split("\n### ")[1:]:
        tool, *lines = part.splitlines()
        for line in lines[3:]:
            _, arguments, code, answer = line.strip("| ").split(" | ")
            name = re.match(r"ERR_\w+", answer) or re.search(r"\w+", code)
            assert name is not None
            found.append(Mistake(tool, arguments, name[0], answer))
    return found


@pytest.mark.parametrize("tool", [tool.name for tool in CATALOGUE])
def test_every_refusal_of_a_tool_is_shown(
    reference: str, mistakes: list[Mistake], tool: str
) -> None:
    """Each with a call that gets it, and what comes back."""
    text = reference.partition(f"## {tool}\n")[2].partition("\n## ")[0]
    declared = set(re.findall(r"^\| `(ERR_\w+)` \|", text, re.MULTILINE))
    shown = {one.code for one in mistakes if one.tool == tool}
    assert declared == {code for code in shown if code.startswith("ERR_")}


NEW = {"key", "holder", "search", "order", "resume", "brief", "claim", "thought"}


@pytest.mark.parametrize(
    ("tool", "field"),
    [
        (tool.name, field)
        for tool in CATALOGUE
        for field in tool.input.__struct_fields__
        if field in NEW
    ],
)
def test_a_wrong_value_of_a_field_is_shown(mistakes: list[Mistake], tool: str, field: str) -> None:
    assert any(field in one.fields for one in mistakes if one.tool == tool)


@pytest.mark.parametrize("field", ["session_id", "agent_id", "status", "status[]"])
def test_a_wrong_value_of_what_several_tools_have_is_shown_once(
    mistakes: list[Mistake], field: str
) -> None:
    assert any(field in one.fields for one in mistakes)


def test_the_three_ways_to_be_without_a_claim_are_shown(mistakes: list[Mistake]) -> None:
    """Specification 7.7, 8.3, 8.6: another holds the task, you lost it, your session moved on."""
    told = [one for one in mistakes if one.code == "ERR_CLAIMED"]
    for member in ('"holder": ', '"lost": true', '"resumed_at": '):
        assert any(member in one.answer for one in told if one.tool == "task_update")
    assert {one.tool for one in told if '"resumed_at": ' in one.answer} == {
        one.tool for one in told
    }
    alone = [one for one in mistakes if one.arguments == '`{"resume": true}`']
    assert [one.fields for one in alone] == [{"session_id"}]


def test_it_says_nothing_about_when_or_where_it_was_made(reference: str) -> None:
    """Deterministic: no times, no paths, no hashes."""
    assert not re.search(r"\d\d:\d\d|20\d\d-\d\d|/tmp|[0-9a-f]{32}", reference)
