"""Every tool as the store grows: the same calls to servers on small and large stores, in turn.

The answers have the same size on all of them: limits are what the smallest store can fill.

Sizes are in ledger records. audit_verify_chain is measured here for one session or one task; the
verify workload measures it for the whole log, where it reads every record.
"""

import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count as count_from
from pathlib import Path
from typing import Any

from bench import stores
from bench.client import JSON, Server, call, results
from bench.contestants import Contestant
from bench.stats import Rows, percentile, put
from bench.workloads import Plan, say, turns
from bench.workloads.start import server_start

START = "cold start to the first change"


Calls = Callable[[int, int], list[tuple[str, JSON]]]


class Question:
    """Calls of which the last is timed, and calls that clean up after it; `count` is the number of
    tasks, `turn` never repeats.
    """

    def __init__(self, make: Calls, after: Calls = lambda count, turn: []) -> None:
        self.make = make
        self.after = after

    def time(self, server: Server, count: int, turn: int) -> float:
        """Milliseconds."""
        *before, last = self.make(count, turn)
        _ask(server, before)
        line = call(*last)
        start = time.perf_counter()
        answer = server.ask(line)
        taken = time.perf_counter() - start
        results([line], [answer])
        _ask(server, self.after(count, turn))
        return taken * 1000


def _ask(server: Server, calls: list[tuple[str, JSON]]) -> None:
    for line in (call(*one) for one in calls):
        results([line], [server.ask(line)])


def _same(tool: str, **arguments: Any) -> Question:
    return Question(lambda count, turn: [(tool, arguments)])


def _about_task(tool: str, **more: Any) -> Question:
    """About a task in the middle."""
    return Question(lambda count, turn: [(tool, {"task_id": f"T-{count // 2:04d}", **more})])


def _about_session(tool: str, **more: Any) -> Question:
    """About a sealed session in the middle."""

    def make(count: int, turn: int) -> list[tuple[str, JSON]]:
        return [(tool, {"session_id": stores.session_of(_middle(count)), **more})]

    return Question(make)


def _middle(count: int) -> int:
    return count // 2 // stores.SESSION_EVERY * stores.SESSION_EVERY


def _page(**filters: Any) -> Question:
    """The page that begins at nine tenths of the list."""
    return Question(
        lambda count, turn: [("task_list", {**filters, "limit": 20, "offset": count * 9 // 10})]
    )


def _session(turn: int, *, brief: bool = False) -> tuple[str, JSON]:
    return "audit_session_start", {"intent": "grow", "session_id": _own(turn), "brief": brief}


def _seal(turn: int) -> tuple[str, JSON]:
    return "merkle_finalize", {"session_id": _own(turn)}


def _own(turn: int) -> str:
    return f"S-grow{turn}"


def _thought(turn: int) -> tuple[str, JSON]:
    thought = {"session_id": _own(turn), "type": "analysis", "content": stores.CONTENT}
    return "thought_record", thought


QUESTIONS: dict[str, Question] = {
    "task_create": _same("task_create", title="one more", depends_on=["T-0001"]),
    "task_get": _about_task("task_get"),
    "task_update": Question(
        lambda count, turn: [("task_update", {"task_id": "T-0002", "title": f"title {turn}"})]
    ),
    "task_list": _same("task_list"),
    "task_list by status": _same("task_list", status="INIT"),
    "task_list by project and assignee": _same(
        "task_list", project="project-7", assignee="agent-7", limit=4
    ),
    "task_list, a page at 90 %": _page(),
    "task_list by status, a page at 90 %": _page(status="INIT"),
    "task_list, search": Question(
        lambda count, turn: [("task_list", {"search": f"task {count - 17}:"})]
    ),
    "task_next_actions": _same("task_next_actions"),
    "task_next_actions of a project": _same("task_next_actions", project="project-8", limit=4),
    "task_next_actions, claim": Question(
        lambda count, turn: [
            _session(turn),
            ("task_next_actions", {"claim": True, "session_id": _own(turn)}),
        ],
        after=lambda count, turn: [_thought(turn), _seal(turn)],
    ),
    "audit_session_start": Question(lambda count, turn: [_session(turn)]),
    "audit_session_start with the brief": Question(
        lambda count, turn: [_session(turn, brief=True)]
    ),
    "thought_record": Question(lambda count, turn: [_session(turn), _thought(turn)]),
    "thought_record_list": _same("thought_record_list", limit=20),
    "thought_record_list of a session": _about_session("thought_record_list"),
    "merkle_finalize": Question(
        lambda count, turn: [
            _session(turn),
            *(_thought(turn) for _ in range(4)),
            _seal(turn),
        ]
    ),
    "merkle_root": _about_session("merkle_root"),
    "audit_verify_chain of a session": _about_session("audit_verify_chain"),
    "audit_verify_chain of a task": _about_task("audit_verify_chain"),
    "skill_list": _same("skill_list"),
    "server_ping": _same("server_ping"),
    "server_health": _same("server_health"),
}


def run(plan: Plan, contestants: list[Contestant]) -> Rows:
    """Milliseconds; the rows are the questions, the metrics the sizes in records."""
    (colibri,) = contestants
    rows: Rows = {}
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch, ExitStack() as stack:
        running = []
        for records in plan.growth_sizes:
            say(f"a store of {records:,} records")
            folder = Path(scratch, str(records))
            count = round(records / stores.RECORDS_PER_TASK)
            stores.put(stores.tasks, folder, count)
            server = stack.enter_context(colibri.start(folder))
            server.greet()
            running.append((metric(records), server, count, folder))
        _ask_all(plan, rows, running)
        for _, (size, _, _, folder) in turns(running, plan.rounds):
            put(rows, START, size, server_start(colibri, folder)[-1])
    return rows


def _ask_all(plan: Plan, rows: Rows, running: list[tuple[str, Server, int, Path]]) -> None:
    numbers = count_from(1)
    for name, question in QUESTIONS.items():
        for _ in range(2):  # warm the pages that this question needs
            for _, server, count, _ in running:
                question.time(server, count, next(numbers))
        for _ in range(plan.rounds):
            taken: dict[str, list[float]] = defaultdict(list)
            for _, (size, server, count, _) in turns(running, plan.growth_calls):
                taken[size].append(question.time(server, count, next(numbers)))
            for size, times in taken.items():
                put(rows, name, size, percentile(times, 50))


def metric(records: int) -> str:
    return f"{records:,} records, ms"
