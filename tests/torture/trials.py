"""The trials, in the order of the table."""

from tests.torture import Trial, kill

TRIALS: tuple[Trial, ...] = (kill.TRIAL,)
