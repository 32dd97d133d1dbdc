"""SECURITY.md is held against what it speaks of."""

import re
import tomllib

from colibri.core import redaction
from tests.e2e.test_tamper_matrix import SEEN, UNSEEN
from tests.support.client import TESTS

ROOT = TESTS.parent
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def test_its_table_is_that_of_the_tamper_matrix() -> None:
    """Each attack that is tested, and what is said of it."""
    expected = [f"| {name} | {what} | {what} |" for name, (_, what) in SEEN.items()]
    expected += [f"| {name} | **not seen** | {what} |" for name, (_, what) in UNSEEN.items()]
    table = TEXT.partition("| attack |")[2].partition("\n\n")[0].splitlines()[2:]
    assert table == expected


def test_it_lists_every_kind_of_secret_that_is_redacted() -> None:
    kinds = {shape.kind for shape in redaction.SHAPES}
    section = TEXT.partition("The kinds are ")[2].partition("\n\n")[0]
    assert set(re.findall(r"`([a-z0-9-]+)`", section)) == kinds


def test_it_names_the_dependencies() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [re.split(r"[><=]", dependency)[0] for dependency in project["dependencies"]]
    assert f"({', '.join(names)})" in TEXT
