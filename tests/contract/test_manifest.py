"""Manifest and tests name each other: no clause without a test, no test without a clause."""

import importlib
from types import ModuleType

import pytest

from tests.contract.requirement import FOLDER, manifest, requirement
from tests.support.specification import cited, clauses

FIELDS = {"source", "sentence", "overruled", "later"}


def modules() -> list[ModuleType]:
    """The test modules of this folder except this one."""
    names = sorted(path.stem for path in FOLDER.glob("test_*.py"))
    return [
        importlib.import_module(f"tests.contract.{name}")
        for name in names
        if name != "test_manifest"
    ]


def claims(where: list[ModuleType]) -> dict[str, list[str]]:
    """Test -> the ids it names."""
    return {
        f"{module.__name__}.{name}": [
            id
            for mark in getattr(value, "pytestmark", [])
            if mark.name == "requirement"
            for id in mark.args
        ]
        for module in where
        for name, value in vars(module).items()
        if name.startswith("test_") and callable(value)
    }


def gaps(entries: dict[str, dict[str, str]], named: dict[str, list[str]]) -> list[str]:
    """Differences between a manifest and the tests that name its ids."""
    used = {id for ids in named.values() for id in ids}
    due = {id for id, entry in entries.items() if "later" not in entry}
    return sorted(
        [f"{id} has no test" for id in due - used]
        + [f"{id} is for later and has a test" for id in used & (entries.keys() - due)]
        + [f"{id} is not in the manifest" for id in used - entries.keys()]
        + [f"{test} names no clause" for test, ids in named.items() if not ids]
    )


def test_every_clause_has_a_test_and_every_test_a_clause() -> None:
    """`tests/contract/` maps each requirement to its tests, checked both ways."""
    assert gaps(manifest(), claims(modules())) == []


def test_every_entry_says_what_is_required_and_where_it_is_written() -> None:
    """A stable id, a sentence, and the clauses of the specification that hold it."""
    for id, entry in manifest().items():
        assert {"source", "sentence"} <= entry.keys() <= FIELDS, id
        assert all(entry.values()), id
        assert f"Specification {', '.join(cited(entry['source']))}" == entry["source"], id
        assert set(cited(entry["source"])) <= clauses().keys(), id


def test_the_26_tests_of_the_contract_are_all_in_the_manifest() -> None:
    """T-1 … T-26, which tests name."""
    named = {id for id in manifest() if id.startswith("000:T-")}
    assert named == {f"000:T-{number}" for number in range(1, 27)}


@pytest.mark.parametrize(
    ("entries", "named", "gap"),
    [
        ({"a": {}}, {}, "a has no test"),
        ({"a": {"later": "not yet"}}, {"test_x": ["a"]}, "a is for later and has a test"),
        ({}, {"test_x": ["b"]}, "b is not in the manifest"),
        ({}, {"test_x": []}, "test_x names no clause"),
    ],
)
def test_a_gap_of_any_kind_is_found(
    entries: dict[str, dict[str, str]], named: dict[str, list[str]], gap: str
) -> None:
    """The check can fail: negative controls."""
    assert gaps(entries, named) == [gap]


def test_the_ids_are_read_from_the_marks_of_a_module() -> None:
    """The check can fail: a module with one test, made here."""

    @requirement("x:1", "x:2")
    def test_something() -> None:
        """A test that is inspected, not run."""

    module = ModuleType("made_here")
    module.test_something = test_something  # type: ignore[attr-defined]
    assert claims([module]) == {"made_here.test_something": ["x:1", "x:2"]}
