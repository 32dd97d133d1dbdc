"""The trials, in the order of the table."""

from tests.torture import Trial, disk, ending, kill, power, servers

TRIALS: tuple[Trial, ...] = (
    kill.TRIAL,
    power.TRIAL,
    disk.TRIAL,
    servers.TRIAL,
    ending.TRIAL,
)
