"""The real server with a wrong clock that jumps, also backwards.

WRONG_CLOCK seeds the jumps. It also takes the name of a fault of tests.support.faulty.
"""

import os
import sys
import time
from datetime import UTC, datetime
from random import Random

from colibri.server import main
from tests.support.faulty import FAULTS

HOUR = 3_600
# Wrong times after a dead battery, daylight saving, a 32-bit overflow and a typing error.
DATES = [
    int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())
    for text in (
        "1970-01-01T00:00:00",
        "2024-02-29T23:59:59",
        "2025-10-26T00:59:59",
        "2038-01-19T03:14:07",
        "2106-02-07T06:28:15",
        "2262-04-11T23:47:16",
        "9998-12-31T23:59:59",
    )
]


class Clock:
    """Advances by milliseconds, and jumps at about every fifth reading."""

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)
        self._now = 1_767_225_600 * 10**9

    def __call__(self) -> int:
        chance = self._random.random()
        if chance < 0.1:
            self._now = max(0, self._now - HOUR * 10**9)
        elif chance < 0.2:
            self._now = self._random.choice(DATES) * 10**9
        self._now += self._random.randrange(10**7)
        return self._now


if __name__ == "__main__":
    time.time_ns = Clock(os.environ["WRONG_CLOCK"])
    if sys.argv[1:]:
        FAULTS[sys.argv[1]].install()
    sys.exit(main())
