"""Runtime modes, capabilities, and the tables of what is admitted when.

A tool needs one capability. The mode, frozen at start, grants a set of them; a condition that the
health checks find (SAFE_MODE, DIAGNOSE) narrows it for as long as it lasts.
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

    PROBE = "probe"  # say that the server is there
    BROWSE = "browse"  # read what is stored: READONLY's tools
    INSPECT = "inspect"  # read what follows from it: next actions, roots and proofs
    VERIFY = "verify"  # recompute the evidence
    CHANGE = "change"  # write


class State(StrEnum):
    """What the health checks think of the server."""

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
