"""Random walks over all fourteen tools, every answer compared with a model of the design.

Everything goes through the real server over stdio. A walk is many runs of 50 steps on one project;
a difference is reproduced on a new project and then reduced to as few steps as possible.
"""

import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

from tests.support import faulty
from tests.support.client import COLIBRI
from tests.support.random_walks import Step, Walk, random_run
from torture import ControlFailed, Lab, Trial, Violation

RUNS_PER_WALK = 20
AT_ONCE = 4
CONTROL_WALKS = 10
ENOUGH = 200  # runs: with fewer, some event may not happen by chance
SHRINKING_SECONDS = 120.0
MUST_HAPPEN = {
    *("task_create", "task_update", "task_get", "task_list", "task_next_actions"),
    *("audit_session_start", "thought_record", "thought_record_list", "audit_verify_chain"),
    *("merkle_finalize", "merkle_root", "skill_list", "server_ping", "server_health"),
    *("ERR_NOT_FOUND", "ERR_VERSION_CONFLICT", "ERR_CYCLE", "ERR_INVALID_TRANSITION"),
    *("ERR_BLOCKED", "ERR_WRITEBACK_REQUIRED", "ERR_SESSION_NOT_FOUND", "ERR_SESSION_EXISTS"),
    *("ERR_ALREADY_FINALIZED", "ERR_NO_RECORDS", "ERR_NOT_FINALIZED", "INVALID_PARAMS"),
    *("ERR_CLAIMED", "ERR_KEY_REUSED", "claimed", "released", "several steps", "with a thought"),
    *("repeated", "resumed", "several sessions", "restart", "kill"),
}


class Different(AssertionError):
    """The server differs from the model after these steps."""

    def __init__(self, what: str, steps: list[Step], trace: list[str]) -> None:
        super().__init__(what)
        self.steps = steps
        self.trace = trace


def random_walk(chance: Random, runs: int = RUNS_PER_WALK) -> list[Step]:
    return [step for _ in range(runs) for step in random_run(chance)]


def walk(project: Path, program: Sequence[str], steps: Sequence[Step]) -> tuple[Counter[str], int]:
    """Take the steps on a new project; counts what happened, and the records written."""
    with Walk(project, program) as world:
        taken = 0
        try:
            for taken, step in enumerate(steps, 1):  # noqa: B007 - it is used when one fails
                world.take(step)
            return world.seen, world.finish()
        except (AssertionError, LookupError) as problem:  # LookupError: an answer of the wrong form
            raise Different(repr(problem), list(steps[:taken]), world.trace) from problem


def shrunk(lab: Lab, program: Sequence[str], found: Different) -> Different:
    """The same or another difference in fewer steps: leaves out halves, quarters, …"""
    until = time.monotonic() + SHRINKING_SECONDS
    size = len(found.steps) // 2
    tries = 0
    while size and time.monotonic() < until:
        at = 0
        while at < len(found.steps) and time.monotonic() < until:
            tries += 1
            lab.say(f"shrinking: {len(found.steps)} steps, try {tries}")
            try:
                steps = found.steps[:at] + found.steps[at + size :]
                walk(lab.fresh(f"shrinking-{tries}"), program, steps)
                at += size
            except Different as shorter:
                found = shorter
        size //= 2
    return found


def control(lab: Lab) -> str:
    """Servers that forget a rule must be caught, for that rule; the real one must not."""
    for number, rule in enumerate(faulty.FORGOTTEN_RULES):
        for attempt in range(CONTROL_WALKS):  # not every walk reaches a case where the rule matters
            try:
                place = lab.fresh(f"lenient-{number}-{attempt}")
                walk(place, faulty.program(rule), random_walk(lab.random))
            except Different as found:
                walk(lab.fresh(f"real-{number}"), COLIBRI, found.steps)
                break
        else:
            raise ControlFailed(f"nobody noticed that {faulty.FAULTS[rule].what}")
    forgotten = [faulty.FAULTS[rule].what for rule in faulty.FORGOTTEN_RULES]
    return f"servers that have each forgotten a rule are caught: {'; '.join(forgotten)}"


def one_walk(lab: Lab, seed: int, runs: int) -> tuple[Counter[str], int]:
    return walk(lab.fresh(f"walk-{seed}"), COLIBRI, random_walk(Random(seed), runs))


def run(lab: Lab) -> dict[str, object]:
    """Walks of so many runs each, some in parallel, since most of the time is waiting."""
    seen: Counter[str] = Counter()
    records = done = 0
    sizes = [min(RUNS_PER_WALK, lab.count - at) for at in range(0, lab.count, RUNS_PER_WALK)]
    seeds = lab.random.sample(range(2**32), len(sizes))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        walks = [pool.submit(one_walk, lab, *job) for job in zip(seeds, sizes, strict=True)]
        for seed, size, walking in zip(seeds, sizes, walks, strict=True):
            try:
                happened, made = walking.result()
            except Different as found:
                pool.shutdown(cancel_futures=True)
                least = shrunk(lab, COLIBRI, found)
                calls = "\n     ".join(least.trace)
                raise Violation(f"walk {seed}: {least}\n   after\n     {calls}") from None
            seen += happened
            records += made
            done += size
            lab.say(f"{done:,} of {lab.count:,} runs, {records:,} records")
    if lab.count >= ENOUGH and (never := MUST_HAPPEN - seen.keys()):
        raise ControlFailed(
            f"never happened, so nothing is known of it: {', '.join(sorted(never))}"
        )
    refused = sum(count for what, count in seen.items() if what.startswith(("ERR_", "INVALID")))
    return {
        "steps": sum(seen.values()) - seen["begin"],
        "of them refused": refused,
        "kills": seen["kill"],
        "restarts": seen["restart"],
        "records verified": records,
        "differences": 0,
    }


TRIAL = Trial(
    name="model",
    title="random runs of 50 steps over all 14 tools by two clients, with restarts and kills,"
    " beside a model of the design in plain Python",
    claim="every answer, refusal, total, order and hash is the model's, after every step",
    unit="runs",
    quick=60,
    full=5_000,
    minutes=10,
    control=control,
    run=run,
)
