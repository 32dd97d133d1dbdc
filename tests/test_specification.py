"""docs/specification.md and the tests that cite it hold each other."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.client import TESTS
from tests.support.specification import PAGE, cited, clauses, numbered

ROOT = TESTS.parent
FOLDERS = ("src", "tests", "torture", "scripts", "bench", "docs", "mcpb", "plugin")
KINDS = {"", ".md", ".mjs", ".py", ".sh", ".sql", ".toml"}

# Clauses that leave everything to another page; tests cite that page as well.
POINTERS = {"9.1": "docs/formats.md"}

# Documents that are not in this repository, and the ways in which they used to be cited.
ELSEWHERE = re.compile(
    r"\b(?:design|seeds?|next|trust|style) (?:00\d|§\d)|\b00[0-4] §\d|\btrust trap\b"
    r"|\b(?:design|next)\.md\b|\bthe seeds\b",
    re.IGNORECASE,
)


def texts() -> Iterator[tuple[str, str]]:
    """Every file that may cite a clause, by its path; but this one, which has wrong ones."""
    found = [ROOT.glob("*.md"), ROOT.glob("*.toml"), *((ROOT / one).rglob("*") for one in FOLDERS)]
    for path in sorted(path for paths in found for path in paths):
        if path.suffix in KINDS and path.is_file() and path != Path(__file__):
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8", errors="replace")


def misnumbered(numbers: list[str]) -> list[str]:
    """Numbers that are not the next: each section counts from 1, the sections from 1 on."""
    wrong, section, last = [], 0, 0
    for number in numbers:
        one, two = map(int, number.split("."))
        if (one, two) not in ((section, last + 1), (section + 1, 1)):
            wrong.append(number)
        section, last = one, two
    return wrong


def gaps(known: set[str], cites: dict[str, list[str]]) -> list[str]:
    """What does not fit between the clauses and the files that cite them."""
    tested = {
        number
        for path, numbers in cites.items()
        if re.search(r"(?:^|/)test_\w+\.py$", path)
        for number in numbers
    }
    return sorted(
        [
            f"{path} cites {number}, which does not exist"
            for path, numbers in cites.items()
            for number in sorted(set(numbers) - known)
        ]
        + [f"no test cites {number}" for number in known - tested - POINTERS.keys()]
    )


def test_the_contents_list_every_section() -> None:
    top, _, _ = (text := PAGE.read_text(encoding="utf-8")).partition("\n## ")
    sections = re.findall(r"^## (\d+ .+)$", text, re.MULTILINE)
    assert re.findall(r"\[(\d+ [^]]+)\]\(#", top) == sections


def test_clauses_are_numbered_in_order_and_none_comes_twice() -> None:
    numbers = [number for number, _ in numbered(PAGE.read_text(encoding="utf-8"))]
    assert len(numbers) > 150
    assert misnumbered(numbers) == []


def test_every_paragraph_is_a_clause_under_the_heading_of_its_section() -> None:
    section = ""
    for block in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        heading, *paragraphs = block.strip().split("\n\n")
        section = heading.split()[0]
        assert all(one.startswith(f"**{section}.") for one in paragraphs), heading
    assert section == "25"


def test_every_number_that_is_cited_exists_and_every_clause_has_a_test() -> None:
    assert gaps(set(clauses()), {path: cited(text) for path, text in texts()}) == []


@pytest.mark.parametrize(("number", "page"), POINTERS.items())
def test_a_clause_that_only_points_names_a_page_that_exists(number: str, page: str) -> None:
    assert f"]({Path(page).name})" in clauses()[number]
    assert (ROOT / page).is_file()


def test_nothing_cites_a_document_that_is_not_here() -> None:
    """A reader could not look it up."""
    assert [
        (path, ELSEWHERE.findall(text)) for path, text in texts() if ELSEWHERE.search(text)
    ] == []


def test_every_file_that_may_cite_is_looked_at() -> None:
    """By git's own list: no folder of sources is forgotten."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    looked = {path for path, _ in texts()}
    sources = {path for path in listed.stdout.splitlines() if path.endswith((".py", ".md"))}
    assert sources - looked - {"tests/test_specification.py"} == set()


@pytest.mark.parametrize(
    ("numbers", "wrong"),
    [
        (["1.1", "1.2", "2.1"], []),
        (["1.1", "1.1"], ["1.1"]),
        (["1.1", "1.3"], ["1.3"]),
        (["1.2"], ["1.2"]),
        (["1.1", "3.1"], ["3.1"]),
        (["1.1", "2.1", "1.2"], ["1.2"]),
    ],
)
def test_a_wrong_number_is_found(numbers: list[str], wrong: list[str]) -> None:
    """The check can fail."""
    assert misnumbered(numbers) == wrong


@pytest.mark.parametrize(
    ("cites", "gap"),
    [
        ({"tests/test_x.py": ["1.1", "1.2"]}, []),
        ({"tests/a/test_x.py": ["1.1"], "src/x.py": ["1.2"]}, ["no test cites 1.2"]),
        (
            {"tests/test_x.py": ["1.1", "1.2", "1.3"]},
            ["tests/test_x.py cites 1.3, which does not exist"],
        ),
        (
            {"tests/test_x.py": ["1.1", "1.2"], "docs/x.md": ["7.7"]},
            ["docs/x.md cites 7.7, which does not exist"],
        ),
    ],
)
def test_a_gap_of_any_kind_is_found(cites: dict[str, list[str]], gap: list[str]) -> None:
    """The check can fail."""
    assert gaps({"1.1", "1.2", "9.1"}, cites) == gap


def test_several_numbers_are_read_also_over_the_end_of_a_line() -> None:
    assert cited("Specification 5.3, 5.7: so. Specification\n    12.1,\n 12.2.") == [
        "5.3", "5.7", "12.1", "12.2",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "Design §8.",
        "(design §14)",
        "Seed 001 §4",
        "seed 002:",
        "Next §3",
        "see design.md",
        "003 §6.1",
    ],
)
def test_a_document_that_is_not_here_is_recognised(text: str) -> None:
    """The check can fail."""
    assert ELSEWHERE.search(text)


@pytest.mark.parametrize("text", ["the next § of it", "--seed 17", "seed 0", "docs/formats.md §9"])
def test_what_only_looks_like_one_is_not(text: str) -> None:
    """And it does not cry wolf."""
    assert not ELSEWHERE.search(text)
