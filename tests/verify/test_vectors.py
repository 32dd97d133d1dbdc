"""Both verifiers on every frozen bundle: docs/formats.md is the judge, tests/vectors its cases."""

import hashlib
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.vectors import make
from tests.verify.conftest import INDEX, ROOT, VECTORS, Node, judge, without_words

EXITS = {"good": 0, "bad": 1, "cannot tell": 2}
Entry = dict[str, Any]

each_vector = pytest.mark.parametrize("entry", INDEX, ids=lambda entry: entry["file"])


def check(entry: Entry, verdict: dict[str, Any]) -> None:
    """Compare a verdict with the index."""
    found = verdict["findings"]
    assert EXITS[verdict["verdict"]] == entry["exit"], found
    assert {finding["code"] for finding in found} == ({entry["code"]} - {None}), found
    assert (found[0]["seq"] if found else None) == entry["seq"], found
    if entry["exit"] == 0:
        check_good(entry, verdict)


def check_good(entry: Entry, verdict: dict[str, Any]) -> None:
    notes = [note["code"] for note in verdict["not_checked"]]
    calls = verdict["open_calls"]
    assert verdict["bundle"]["kind"] == entry["kind"]
    assert verdict["lines"] == entry["lines"]
    assert verdict["erased"] == entry["erased"]
    assert (calls and [call["seq"] for call in calls]) == entry["open_calls"]
    assert ("gaps" in notes) == entry["gaps"]
    assert ("erased" in notes) == bool(entry["erased"])
    assert ("outside-head" in notes) == entry.get("outside_head", entry["head"] is None)
    assert entry.get("also_not_checked", "truth") in notes
    assert entry.get("coverage", verdict["coverage"]) == verdict["coverage"]


@each_vector
def test_the_python_verifier_names_the_lie_and_nothing_else(
    python: ModuleType, entry: Entry
) -> None:
    check(entry, judge(python, entry))


@pytest.fixture(scope="module")
def node_verdicts(node: Node) -> dict[str, Any]:
    items = [
        {"path": str(VECTORS / entry["file"])}
        | {name: entry.get(name) for name in ("root", "head", "checkpoint")}
        for entry in INDEX
    ]
    answers = node("verify", items)
    return {entry["file"]: answer for entry, answer in zip(INDEX, answers, strict=True)}


@each_vector
def test_the_javascript_verifier_gives_the_same_verdict(
    python: ModuleType, node_verdicts: dict[str, Any], entry: Entry
) -> None:
    mine, other = judge(python, entry), node_verdicts[entry["file"]]
    check(entry, other)
    assert without_words(mine) == without_words(other)


def test_what_only_a_head_or_root_from_outside_shows_is_not_claimed_without_it(
    python: ModuleType,
) -> None:
    """Formats §11: outside-head and outside-root are what is not checked then."""
    outside = [entry for entry in INDEX if entry["file"].startswith("bad/outside-")]
    assert len(outside) == 3
    for entry in outside:
        alone = judge(python, {**entry, "root": None, "head": None})
        assert alone["verdict"] == "good", entry
        assert "outside-head" in {note["code"] for note in alone["not_checked"]}


def test_every_file_of_the_index_is_there_and_no_other() -> None:
    listed = {entry["file"] for entry in INDEX}
    there = {path.relative_to(VECTORS).as_posix() for path in VECTORS.glob("*/*.json")}
    assert len(listed) == len(INDEX)
    assert there == listed


def test_the_vectors_are_those_that_were_frozen() -> None:
    lines = (VECTORS / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    recorded = {name: sha256 for sha256, name in (line.split("  ", 1) for line in lines)}
    for name, sha256 in recorded.items():
        assert hashlib.sha256((VECTORS / name).read_bytes()).hexdigest() == sha256, name
    assert recorded.keys() == {entry["file"] for entry in INDEX} | {"index.json"}
    whole = "\n".join(sorted(f"{sha256} {name}" for name, sha256 in recorded.items()))
    assert hashlib.sha256(whole.encode()).hexdigest() == FROZEN


# Of all lines of SHA256SUMS: whoever changes a vector has to change this line too, and say why.
FROZEN = "686fad31a7460e88c9f970dad9344849ccb43d811cabd7e8e5ac07551e7e5b62"


@pytest.mark.long
def test_the_generator_still_makes_the_frozen_files(tmp_path: Path) -> None:
    assert make.main([str(tmp_path)]) == 0
    made = (tmp_path / "SHA256SUMS").read_text(encoding="utf-8")
    assert made == (VECTORS / "SHA256SUMS").read_text(encoding="utf-8")


def test_neither_the_generator_nor_the_verifier_imports_the_server() -> None:
    sources = [ROOT / "src" / "colibri_verify.py", *VECTORS.glob("*.py")]
    for path in sources:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"^\s*(from|import) colibri\b", text, re.MULTILINE), path


def test_every_code_of_the_format_has_a_vector_or_is_named_as_impossible(
    python: ModuleType,
) -> None:
    told = {entry["code"] for entry in INDEX} - {None}
    by_other_tests = {"unreadable", "too-large"}
    assert told | by_other_tests == set(python.CODES)


def test_the_documented_codes_are_those_of_both_verifiers(python: ModuleType, node: Node) -> None:
    page = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    section = page.split("## 10 The finding codes")[1].split("A line says")[0]
    rows = [line.split("|") for line in section.splitlines() if line.startswith("| ")][1:]
    lines = {"cannot tell": "unknown", "rules kept": "rules"}
    documented = {
        code: lines.get(line.strip(), line.strip())
        for _, line, codes, _ in rows
        for code in re.findall(r"`([a-z-]+)`", codes)
    }
    assert documented == {code: line for code, (line, _) in python.CODES.items()}
    (words,) = node("words", [None])
    assert words["CODES"] == {code: list(both) for code, both in python.CODES.items()}
    assert words["NOTES"] == python.NOTES


def test_the_documented_notes_are_those_of_the_verifiers(python: ModuleType) -> None:
    page = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    section = page.split("## 11 What is not checked")[1]
    assert set(re.findall(r"^\| `([a-z-]+)` \|", section, re.MULTILINE)) == set(python.NOTES)


def test_at_least_forty_lies_are_tried() -> None:
    assert sum(entry["exit"] == 1 for entry in INDEX) >= 40
    assert json.dumps(INDEX).count('"good/') >= 10
