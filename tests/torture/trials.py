"""The trials, in the order of the table."""

from tests.torture import (
    Trial,
    backup,
    disk,
    ending,
    faults,
    kill,
    model,
    power,
    servers,
    soak,
    tamper,
    verifiers,
)

TRIALS: tuple[Trial, ...] = (
    kill.TRIAL,
    power.TRIAL,
    faults.TRIAL,
    disk.TRIAL,
    servers.TRIAL,
    ending.TRIAL,
    model.TRIAL,
    tamper.TRIAL,
    verifiers.TRIAL,
    backup.TRIAL,
    soak.TRIAL,
)
