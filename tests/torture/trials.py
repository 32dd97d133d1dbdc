"""The trials, in the order of the table."""

from tests.torture import (
    Trial,
    canary,
    clock,
    crash,
    disk,
    ending,
    faults,
    hostile,
    kill,
    locks,
    power,
    servers,
    stdout,
)

TRIALS: tuple[Trial, ...] = (
    kill.TRIAL,
    power.TRIAL,
    crash.TRIAL,
    faults.TRIAL,
    disk.TRIAL,
    servers.TRIAL,
    canary.TRIAL,
    locks.TRIAL,
    hostile.TRIAL,
    stdout.TRIAL,
    clock.TRIAL,
    ending.TRIAL,
)
