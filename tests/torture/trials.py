"""The trials, in the order of the table."""

from tests.torture import Trial, disk, ending, faults, kill, power, servers

TRIALS: tuple[Trial, ...] = (
    kill.TRIAL,
    power.TRIAL,
    faults.TRIAL,
    disk.TRIAL,
    servers.TRIAL,
    ending.TRIAL,
)
