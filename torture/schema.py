"""Schema: each object of the database dropped or redefined, or another object added.

A running server stops writing and names the change, `audit_verify_chain` finds it, and no server
opens the file afterwards.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.store.test_schema import CHANGES, intrude
from tests.support.client import COLIBRI, Server
from tests.support.faulty import program
from torture import ControlFailed, Lab, Trial, Violation

BELIEVER = program("believes-the-schema")


def _try(project: Path, program: Sequence[str], change: str) -> None:
    """Raises Violation if the change is not noticed at once, or not at the next start."""
    with Server(project, program) as server:
        server.data("task_create", title="before")
        intrude(str(server.database), CHANGES[change])
        if not server.call("task_create", title="after")["isError"]:
            raise Violation(f"{change}: a running server writes on")
        verdict = server.call("audit_verify_chain")
        if not verdict["isError"] and verdict["structuredContent"]["data"]["valid"]:
            raise Violation(f"{change}: verified as good")
        server.close()
    with Server(project, program) as server:
        if not server.call("task_list")["isError"]:
            raise Violation(f"{change}: the next start opens the file")
        server.close()


def control(lab: Lab) -> str:
    """A server that compares nothing."""
    try:
        _try(lab.fresh("believer"), BELIEVER, "a trigger")
    except Violation as problem:
        return f"a server that believes any schema is caught ({problem})"
    raise ControlFailed("a server that believes any schema was not caught")


def run(lab: Lab) -> dict[str, object]:
    """One change after the other, each on a new project."""
    names = sorted(CHANGES)
    lab.random.shuffle(names)
    seen: Counter[str] = Counter()
    for number in range(lab.count):
        change = names[number % len(names)]
        _try(lab.fresh(f"project-{number}"), COLIBRI, change)
        seen[change] += 1
        lab.say(f"{number + 1} of {lab.count} changes")
    return {"different changes": len(seen), "not found": 0}


TRIAL = Trial(
    name="schema",
    title="each table, index, trigger and view dropped or defined differently, and others added",
    claim="a running server stops and says so, every verification finds it, no start opens it",
    unit="changes",
    quick=4,
    full=len(CHANGES),
    minutes=3,
    control=control,
    run=run,
)
