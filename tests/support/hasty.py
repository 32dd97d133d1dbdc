"""The real server with one fault: a call is answered before its commit.

The negative control of the kill test: a harness that does not catch this one proves
nothing about the real one.
"""

import sys
import time
from collections import deque

from colibri.core.errors import Unavailable
from colibri.server import main
from colibri.server.call import Call
from colibri.server.envelope import UNAVAILABLE
from colibri.server.faults import CommitFailed
from colibri.server.pipeline import Pipeline
from colibri.server.recorder import Recorder


def hasty_round(self: Pipeline, recorder: Recorder, calls: deque[Call]) -> None:
    """Pipeline.round, with the answers inside the transaction. It lives on when that fails."""
    try:
        with recorder.transaction(durable=True) as chain:
            while calls:
                call = calls.popleft()
                outcome = self._run_in_savepoint(call, recorder, chain)
                self.finish(call, outcome, recorder.exit(chain, call, outcome))
            time.sleep(0.01)
    except (Unavailable, CommitFailed) as problem:
        while calls:
            self.turn_away(calls.popleft(), UNAVAILABLE, str(problem))


if __name__ == "__main__":
    Pipeline.round = hasty_round  # type: ignore[method-assign]
    sys.exit(main())
