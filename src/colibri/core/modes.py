"""Runtime modes, capabilities, and the tables of which tools may run when.

A tool needs one capability. The mode, fixed at start, grants a set of them; a condition found by
the health checks (SAFE_MODE, DIAGNOSE) narrows the set while it lasts.
"""

from enum import StrEnum


class Mode(StrEnum):
    """Chosen by COLIBRI_MODE at start; never changes in a running process."""

    FULL = "FULL"
    READONLY = "READONLY"
    TEST = "TEST"
    MINIMAL = "MINIMAL"


class Capability(StrEnum):
    """What a tool needs in order to be admitted."""

    PROBE = "probe"  # say that the server is alive
    BROWSE = "browse"  # read stored data: the tools of READONLY
    INSPECT = "inspect"  # read derived data: next actions, roots and proofs
    VERIFY = "verify"  # recompute the evidence
    CHANGE = "change"  # write


class State(StrEnum):
    """The server's state according to the health checks."""

    NORMAL = "NORMAL"
    SAFE_MODE = "SAFE_MODE"
    DIAGNOSE = "DIAGNOSE"


_ALL = frozenset(Capability)

MODE_GRANTS: dict[Mode, frozenset[Capability]] = {
    Mode.FULL: _ALL,
    Mode.READONLY: frozenset({Capability.PROBE, Capability.BROWSE}),
    Mode.TEST: _ALL,
    Mode.MINIMAL: frozenset({Capability.PROBE}),
}

STATE_GRANTS: dict[State, frozenset[Capability]] = {
    State.NORMAL: _ALL,
    State.SAFE_MODE: frozenset({Capability.PROBE, Capability.BROWSE, Capability.VERIFY}),
    State.DIAGNOSE: frozenset({Capability.PROBE}),
}
