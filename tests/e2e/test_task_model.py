"""Random calls to the real server and to a model of the design: no answer may differ.

scripts/torture model makes many more, and tries servers that have each forgotten a rule.
"""

from pathlib import Path
from random import Random

from tests.support.random_walks import Walk, random_run
from tests.support.task_client import STATES

RUNS = 5


def test_a_second_attempt_answers_as_the_model_does(tmp_path: Path) -> None:
    """Specification 6.4, 6.6: a path that random walks seldom take."""
    id = {"task_id": "T-0001"}
    thought = {"session_id": "S-1", "type": "plan", "content": "so", **id}
    with Walk(tmp_path) as walk:
        walk.compare(0, "task_create", {"title": "twice"})
        walk.compare(0, "audit_session_start", {"intent": "try", "session_id": "S-1"})
        walk.compare(0, "thought_record", thought)
        for status in (*STATES[1:6], *STATES[1:7]):
            walk.compare(0, "task_update", {**id, "status": status})
            walk.compare(0, "task_get", id)
        assert walk.seen["ERR_WRITEBACK_REQUIRED"] == 1
        walk.compare(0, "thought_record", thought)
        walk.compare(0, "task_update", {**id, "status": "DONE"})
        assert walk.model.tasks["T-0001"].attempt == 2
        walk.finish()


def test_random_walks_answer_as_the_model_does(tmp_path: Path) -> None:
    """Specification 5.11, 5.13, 6.7: answers, refusals, totals, order and hashes."""
    chance = Random()  # a difference shows the calls that led to it
    with Walk(tmp_path) as walk:
        try:
            for _ in range(RUNS):
                for step in random_run(chance):
                    walk.take(step)
            walk.finish()
        except AssertionError as problem:
            problem.add_note("\n".join(walk.trace))
            raise
        assert walk.seen.total() >= RUNS * 50
