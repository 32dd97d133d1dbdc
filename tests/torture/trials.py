"""The trials, in the order of the table."""

from tests.torture import Trial, kill, power, servers

TRIALS: tuple[Trial, ...] = (kill.TRIAL, power.TRIAL, servers.TRIAL)
