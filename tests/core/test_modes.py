"""core/modes.py: who is admitted when."""

import pytest

from colibri.core.modes import MODE_GRANTS, STATE_GRANTS, Capability, Mode, State

PROBE, BROWSE, INSPECT, VERIFY, CHANGE = Capability


def test_there_are_four_modes() -> None:
    """Specification 10.1: FULL, READONLY, TEST, MINIMAL."""
    assert [mode.value for mode in Mode] == ["FULL", "READONLY", "TEST", "MINIMAL"]


@pytest.mark.parametrize(
    ("mode", "grants"),
    [
        (Mode.FULL, {PROBE, BROWSE, INSPECT, VERIFY, CHANGE}),
        (Mode.READONLY, {PROBE, BROWSE}),
        (Mode.TEST, {PROBE, BROWSE, INSPECT, VERIFY, CHANGE}),
        (Mode.MINIMAL, {PROBE}),
    ],
)
def test_a_mode_grants_its_row(mode: Mode, grants: set[Capability]) -> None:
    """Specification 10.1."""
    assert MODE_GRANTS[mode] == grants


@pytest.mark.parametrize(
    ("state", "grants"),
    [
        (State.NORMAL, {PROBE, BROWSE, INSPECT, VERIFY, CHANGE}),
        (State.SAFE_MODE, {PROBE, BROWSE, VERIFY}),
        (State.DIAGNOSE, {PROBE}),
    ],
)
def test_a_condition_grants_its_row(state: State, grants: set[Capability]) -> None:
    """Specification 12.9: SAFE_MODE admits reading and verification, DIAGNOSE only probes."""
    assert STATE_GRANTS[state] == grants


def test_every_mode_and_condition_has_a_row_that_cannot_be_changed() -> None:
    """A closed set is a table (style S4)."""
    assert MODE_GRANTS.keys() == set(Mode)
    assert STATE_GRANTS.keys() == set(State)
    for grants in (*MODE_GRANTS.values(), *STATE_GRANTS.values()):
        assert isinstance(grants, frozenset)


def test_the_probes_are_always_admitted() -> None:
    """Specification 10.1: every mode admits server_ping."""
    for grants in (*MODE_GRANTS.values(), *STATE_GRANTS.values()):
        assert PROBE in grants


def test_nothing_but_full_and_test_may_change_anything() -> None:
    """Specification 10.1."""
    assert {mode for mode in Mode if CHANGE in MODE_GRANTS[mode]} == {Mode.FULL, Mode.TEST}
    assert {state for state in State if CHANGE in STATE_GRANTS[state]} == {State.NORMAL}


def test_a_mode_is_its_name() -> None:
    """It goes into log lines and answers as it is."""
    assert f"{Mode.READONLY}" == "READONLY"
    assert Mode("TEST") is Mode.TEST
    with pytest.raises(ValueError, match="full"):
        Mode("full")
