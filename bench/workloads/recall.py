"""The brief of a new session, and search over thoughts, on a small and on a large project.

Every call goes to both servers in turn. The brief is timed as the whole call that starts a session,
over stdio, synced; the words of some searches are in nearly every thought.
"""

import tempfile
from contextlib import ExitStack
from pathlib import Path

from bench import stores
from bench.client import JSON, Server, call, results
from bench.contestants import Contestant
from bench.stats import Rows, percentile, put
from bench.workloads import Plan, say, turns
from bench.workloads.calls import sequential

BRIEF = "a session started, with its brief"
MOST_CHARACTERS = 4800
SEARCHES = {
    "search, a rare word": "parser1234",
    "search, an id": "T-0042",
    "search, a path": "src/archive/cache",
    "search, words of a question": "what did the test of the upload say about the archive",
    "search, a word of every thought": "the",
    "search, words of nearly every thought": "the test shows that it stays as it is",
    "search, a single letter": "t",
}


def run(plan: Plan, contestants: list[Contestant]) -> Rows:
    """Milliseconds; the rows are the questions, the metrics the sizes of the projects."""
    (colibri,) = contestants
    rows: Rows = {}
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch, ExitStack() as stack:
        running = []
        for size in plan.recall_sizes:
            tasks, sessions, thoughts = size
            say(f"a project of {tasks:,} tasks, {sessions:,} sessions and {thoughts:,} thoughts")
            folder = Path(scratch, str(thoughts))
            stores.put(stores.project, folder, *size)
            server = stack.enter_context(colibri.start(folder))
            server.greet()
            running.append((f"{thoughts:,} thoughts, ms", server))
        for name in (BRIEF, *SEARCHES):
            for _, server in running:
                _ask(server, name, 2)
            for _, (size_name, server) in turns(running, plan.rounds):
                put(rows, name, size_name, percentile(_ask(server, name, plan.recall_calls), 50))
    return rows


def _ask(server: Server, name: str, count: int) -> list[float]:
    """Milliseconds of each call."""
    if name == BRIEF:
        lines = [call("audit_session_start", {"intent": "look around"}) for _ in range(count)]
        _check(server)
    else:
        asked: JSON = {"search": SEARCHES[name], "limit": 10}
        lines = [call("thought_record_list", asked) for _ in range(count)]
    return sequential(server, lines)


def _check(server: Server) -> None:
    line = call("audit_session_start", {"intent": "look around"})
    (answer,) = results([line], [server.ask(line)])
    brief = answer["structuredContent"]["data"]["brief"]
    if not 0 < len(brief) <= MOST_CHARACTERS:
        raise AssertionError(f"the brief has {len(brief)} characters")
