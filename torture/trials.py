"""The trials, in the order of the table.

A new one is a module of this package that defines `TRIAL`, and a row here; docs/reliability.md
shows it as *not yet* until `scripts/torture --write NAME` has run it at its full count.
"""

from importlib import import_module

from torture import Trial

NAMES = (
    "kill",
    "power",
    "crash",
    "faults",
    "disk",
    "servers",
    "canary",
    "locks",
    "identity",
    "schema",
    "checkpoint",
    "input",
    "text",
    "stdout",
    "clock",
    "ending",
    "model",
    "tamper",
    "verifiers",
    "agreement",
    "backup",
    "team",
    "team_faults",
    "machines",
    "soak",
)

TRIALS: tuple[Trial, ...] = tuple(import_module(f"torture.{name}").TRIAL for name in NAMES)
