"""Many servers on one file: 1, 4 and 16, each with a client that waits for every answer.

Afterwards the file is checked: every acknowledged task exists once, and the whole log verifies.
"""

import select
import time
from contextlib import ExitStack

from bench.client import JSON, Line, Server, call, results
from bench.contestants import COLIBRI, Contestant
from bench.stats import Rows, put
from bench.workloads import Plan, project, turns
from bench.workloads.calls import sequential

SIZES = (1, 4, 16)
RATE, LOST = "calls/s", "acknowledged and lost"


def run(plan: Plan, contestants: list[Contestant]) -> Rows:
    """Calls per second of all servers together; the rows are named `NAME × SIZE`."""
    rows: Rows = {}
    everyone = [(one, size) for one in contestants for size in SIZES]
    for _, (one, size) in turns(everyone, plan.rounds):
        rate, lost = _together(one, size, plan.server_calls)
        put(rows, name(one.name, size), RATE, rate)
        if lost is not None:
            put(rows, name(one.name, size), LOST, lost)
    return rows


def name(contestant: str, size: int) -> str:
    return f"{contestant} × {size}"


def _together(contestant: Contestant, size: int, calls: int) -> tuple[float, int | None]:
    with project(contestant) as folder, ExitStack() as stack:
        servers = []
        for _ in range(size):
            server = stack.enter_context(contestant.start(folder))
            server.greet()
            sequential(server, contestant.create(folder, 1))
            servers.append(server)
        lines = contestant.create(folder, calls)
        start = time.perf_counter()
        answers = _share(servers, lines)
        taken = time.perf_counter() - start
        acknowledged = results(lines, answers)
        lost = _lost(servers[0], acknowledged) if contestant.name == COLIBRI else None
        return calls / taken, lost


def _share(servers: list[Server], lines: list[Line]) -> list[bytes]:
    """Each server takes the next call when it is free."""
    waiting = list(reversed(lines))
    answers: list[bytes] = []
    for server in servers:
        server.send(waiting.pop().data)
    while len(answers) < len(lines):
        ready, _, _ = select.select(servers, [], [], 120)
        if not ready:
            raise TimeoutError("no server answers any more")
        for server in ready:
            answers += server.take()
            if waiting:
                server.send(waiting.pop().data)
    return answers


def _lost(server: Server, acknowledged: list[JSON]) -> int:
    """The number of acknowledged tasks that are missing; raises if the log does not verify."""
    ids = {answer["structuredContent"]["data"]["task_id"] for answer in acknowledged}
    there: set[str] = set()
    offset: int | None = 0
    while offset is not None:
        page = _data(server, "task_list", {"limit": 500, "offset": offset})
        there |= {task["task_id"] for task in page["tasks"]}
        offset = page["next_offset"]
    verdict = _data(server, "audit_verify_chain", {})
    if not verdict["valid"]:
        raise AssertionError(f"the log does not verify: {verdict}")
    return len(acknowledged) - len(ids & there)


def _data(server: Server, tool: str, arguments: JSON) -> JSON:
    line = call(tool, arguments)
    (result,) = results([line], [server.ask(line)])
    data: JSON = result["structuredContent"]["data"]
    return data
