"""docs/specification.md: its clauses, and the tests that cite them."""

import re

from tests.support.client import TESTS

PAGE = TESTS.parent / "docs" / "specification.md"
_CLAUSE = re.compile(r"^\*\*(\d+\.\d+)\*\* ((?:.+\n)+)", re.MULTILINE)
_CITED = re.compile(r"Specification\s+(\d+\.\d+(?:,\s+\d+\.\d+)*)")


def clauses() -> dict[str, str]:
    """Every clause by its number; the last one if a number occurs twice."""
    return dict(numbered(PAGE.read_text(encoding="utf-8")))


def numbered(page: str) -> list[tuple[str, str]]:
    """The clauses of a page, in order."""
    return _CLAUSE.findall(page)


def cited(text: str) -> list[str]:
    """The numbers that a text cites, in order."""
    return [number for group in _CITED.findall(text) for number in re.findall(r"[\d.]+", group)]
