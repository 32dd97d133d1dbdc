"""Every pair of states, through the real server: exactly the edges of the machine can be taken."""

from collections.abc import Iterator
from itertools import product

import pytest

from tests.support.task_client import STATES, Lab

MOVES: dict[str, list[str]] = {
    "INIT": ["GATHER", "CANCELLED"],
    "GATHER": ["ANALYZE", "CANCELLED"],
    "ANALYZE": ["PLAN", "CANCELLED"],
    "PLAN": ["APPLY", "CANCELLED"],
    "APPLY": ["VERIFY", "CANCELLED"],
    "VERIFY": ["DONE", "GATHER", "CANCELLED"],
    "DONE": [],
    "CANCELLED": [],
}
PAIRS = list(product(STATES, STATES))
LEGAL = [(old, new) for old, new in PAIRS if new in MOVES[old]]
ILLEGAL = [(old, new) for old, new in PAIRS if new not in MOVES[old]]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(tmp_path_factory.mktemp("states")) as server:
        yield server
        assert server.close() == 0


@pytest.mark.parametrize(("old", "new"), LEGAL)
def test_a_legal_move_is_made_and_adds_one_to_the_version(lab: Lab, old: str, new: str) -> None:
    """Design §8: the edges; the retry adds one to attempt, no other move does."""
    id = lab.reach(old)
    before = lab.data("task_get", task_id=id)
    assert before["next_states"] == MOVES[old]
    after = lab.update(id, status=new)
    is_retry = (old, new) == ("VERIFY", "GATHER")
    assert (after["status"], after["version"]) == (new, before["version"] + 1)
    assert after["attempt"] == before["attempt"] + is_retry
    assert after["updated_at"] > before["updated_at"]
    shown = lab.data("task_get", task_id=id)
    assert (shown["status"], shown["next_states"]) == (new, MOVES[new])
    assert {name: shown[name] for name in after} == after


@pytest.mark.parametrize(("old", "new"), ILLEGAL)
def test_an_illegal_move_names_the_legal_ones_and_changes_nothing(
    lab: Lab, old: str, new: str
) -> None:
    """Seed 001 §6.3, design §7: ERR_INVALID_TRANSITION; row, version and records stay."""
    id = lab.reach(old)
    before = lab.kept()
    error = lab.refusal("task_update", task_id=id, status=new, title="another")
    assert error["code"] == "ERR_INVALID_TRANSITION"
    assert error["next_states"] == MOVES[old]
    assert (error["task_id"], error["from"]) == (id, old)
    for state in MOVES[old]:
        assert state in error["message"]
    if not MOVES[old]:
        assert f"{id} is {old}, which is final" in error["message"]
    assert lab.kept() == before


def test_the_64_pairs_are_13_legal_and_51_illegal_ones() -> None:
    """Seven steps and the retry, counted with six ways to CANCELLED."""
    assert (len(PAIRS), len(LEGAL), len(ILLEGAL)) == (64, 13, 51)


def test_a_task_cannot_be_created_in_a_state(lab: Lab) -> None:
    """Design §8: a task is created in INIT, only there."""
    before = lab.kept()
    (issue,) = lab.invalid("task_create", title="x", status="DONE")
    assert issue["path"] == "status"
    assert lab.kept() == before


def test_done_without_a_thought_names_the_tool_that_gives_one(lab: Lab) -> None:
    """Seed 001 §6.3, design §8: ERR_WRITEBACK_REQUIRED names what is missing."""
    id = lab.reach("VERIFY")
    lab.update(id, status="GATHER")
    for status in ("ANALYZE", "PLAN", "APPLY", "VERIFY"):
        lab.update(id, status=status)
    before = lab.kept()
    error = lab.refusal("task_update", task_id=id, status="DONE")
    assert (error["code"], error["attempt"]) == ("ERR_WRITEBACK_REQUIRED", 2)
    assert f"thought_record with task_id {id}" in error["message"]
    assert lab.kept() == before
    lab.think(id)
    assert lab.update(id, status="DONE")["attempt"] == 2


@pytest.mark.parametrize("state", ["APPLY", "VERIFY", "DONE"])
def test_an_open_dependency_blocks_and_is_named(lab: Lab, state: str) -> None:
    """Design §8: entering APPLY, VERIFY or DONE; against the new dependencies of the same call."""
    open = lab.create()
    id = lab.reach(STATES[STATES.index(state) - 1])
    before = lab.kept()
    error = lab.refusal("task_update", task_id=id, status=state, depends_on=[open])
    assert (error["code"], error["blockers"]) == ("ERR_BLOCKED", [open])
    assert f"{open} (INIT)" in error["message"]
    assert lab.kept() == before
    lab.update(open, status="CANCELLED")
    assert lab.update(id, status=state, depends_on=[open])["status"] == state
