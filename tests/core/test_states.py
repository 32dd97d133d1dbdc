"""core/states.py: the table of moves is the one that the design draws."""

from itertools import product

import pytest

from colibri.core.states import (
    NEEDS_DEPENDENCIES,
    PRIORITIES,
    TERMINAL,
    TRANSITIONS,
    Status,
    is_retry,
)

LEGAL = {
    ("INIT", "GATHER"),
    ("GATHER", "ANALYZE"),
    ("ANALYZE", "PLAN"),
    ("PLAN", "APPLY"),
    ("APPLY", "VERIFY"),
    ("VERIFY", "DONE"),
    ("VERIFY", "GATHER"),
    ("INIT", "CANCELLED"),
    ("GATHER", "CANCELLED"),
    ("ANALYZE", "CANCELLED"),
    ("PLAN", "CANCELLED"),
    ("APPLY", "CANCELLED"),
    ("VERIFY", "CANCELLED"),
}


@pytest.mark.parametrize(("old", "new"), list(product(Status, Status)))
def test_a_pair_of_states_is_in_the_table_exactly_when_the_specification_draws_its_edge(
    old: Status, new: Status
) -> None:
    """Specification 6.1: one step at a time, VERIFY → GATHER, and CANCELLED."""
    assert (new in TRANSITIONS[old]) == ((old.value, new.value) in LEGAL)


def test_the_states_are_listed_in_the_order_of_the_work() -> None:
    """Specification 6.1: `INIT → GATHER → ANALYZE → PLAN → APPLY → VERIFY → DONE`."""
    assert [status.value for status in Status] == [
        *("INIT", "GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY", "DONE"),
        "CANCELLED",
    ]


def test_no_move_is_listed_twice() -> None:
    """The table is what an agent is shown as next_states."""
    for moves in TRANSITIONS.values():
        assert len(set(moves)) == len(moves)


def test_the_terminal_states_are_those_without_a_way_out() -> None:
    """Specification 6.2: DONE and CANCELLED are terminal."""
    assert {"DONE", "CANCELLED"} == TERMINAL
    assert {status for status, moves in TRANSITIONS.items() if not moves} == TERMINAL


def test_three_states_need_every_dependency_ended() -> None:
    """Specification 6.5: entering APPLY, VERIFY or DONE."""
    assert {"APPLY", "VERIFY", "DONE"} == NEEDS_DEPENDENCIES


def test_only_the_way_back_from_verify_begins_a_new_attempt() -> None:
    """Specification 6.4: VERIFY → GATHER is the retry."""
    retries = [pair for pair in product(Status, Status) if is_retry(*pair)]
    assert retries == [(Status.VERIFY, Status.GATHER)]


def test_priorities_rise() -> None:
    """Specification 6.14: low·medium·high·critical."""
    assert PRIORITIES == ("low", "medium", "high", "critical")
