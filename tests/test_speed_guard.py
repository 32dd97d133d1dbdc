"""What the speed rests on, counted instead of timed: a busy machine changes none of these numbers.

`scripts/bench` measures; this only notices when a change makes the server do more work. Statements
are what is run today and two more; function calls a quarter more, for they differ between Python
versions. Raise a limit only for something that is worth the time.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench import stores
from bench.client import Line, Server
from bench.workloads.growth import QUESTIONS
from tests.support import client, counting_server
from tests.support.counting_server import Counts
from tests.support.strace import attached, requires_strace

SMALL, LARGE = 450, 5_000  # tasks; the small store can fill every page that is asked for
CALLS = 4

# question -> SQL statements, Python functions; with the calls that prepare the one that is asked
LIMITS: dict[str, tuple[int, int]] = {
    "task_create": (22, 420),
    "task_get": (23, 420),
    "task_update": (19, 480),
    "task_list": (22, 380),
    "task_list by status": (22, 390),
    "task_list by project and assignee": (22, 400),
    "task_list, a page at 90 %": (22, 390),
    "task_list by status, a page at 90 %": (22, 400),
    "task_list, search": (25, 530),
    "task_next_actions": (19, 470),
    "task_next_actions of a project": (19, 430),
    "task_next_actions, claim": (83, 1_790),
    "audit_session_start": (19, 410),
    "audit_session_start with the brief": (51, 1_100),
    "thought_record": (39, 870),
    "thought_record_list": (22, 530),
    "thought_record_list of a session": (22, 430),
    "merkle_finalize": (126, 2_620),
    "merkle_root": (21, 400),
    "audit_verify_chain of a session": (40, 1_000),
    "audit_verify_chain of a task": (78, 2_400),
    "skill_list": (15, 2_230),
    "server_ping": (15, 250),
    "server_health": (20, 310),
}
MOST_FUNCTIONS_TO_START = 6_500
MOST_GROWTH = 1.5
MOST_PAGES_WRITTEN = 15


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Counts, Counts]]:
    """What each question costs on the small and on the large store, per call."""
    small, large = (_ask_all(tmp_path_factory.mktemp("store"), size) for size in (SMALL, LARGE))
    return {name: (small[name], large[name]) for name in QUESTIONS}


def _ask_all(project: Path, size: int) -> dict[str, Counts]:
    stores.tasks(str(project / "data" / "colibri.db"), size)
    costs, turn = {}, 0
    with _server(project) as (server, counts):
        server.greet()
        for name, question in QUESTIONS.items():
            for number in range(2 + CALLS):
                if number == 2:  # the statements are prepared, the modules loaded
                    before = counting_server.read(counts)
                turn += 1
                question.time(server, size, turn)
            spent = counting_server.read(counts).since(before)
            costs[name] = Counts(*(round(value / CALLS) for value in spent))
    return costs


@contextmanager
def _server(project: Path) -> Iterator[tuple[Server, Path]]:
    counts = project / "counts"
    counts.write_bytes(bytes(counting_server.SIZE))
    command = [sys.executable, "-m", "tests.support.counting_server", str(counts)]
    quiet = client.environment(COLIBRI_HEALTH_INTERVAL_MS="1000000")  # no check in between
    with Server(command, project, quiet) as server:
        yield server, counts


def test_every_question_has_its_limits() -> None:
    assert set(LIMITS) == set(QUESTIONS)


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_call_runs_no_more_sql_and_python_than_it_did(
    measured: dict[str, tuple[Counts, Counts]], name: str
) -> None:
    statements, functions = LIMITS[name]
    cost = measured[name][1]
    assert cost.statements <= statements, f"{name}: {cost}"
    assert cost.functions <= functions, f"{name}: {cost}"


@pytest.mark.parametrize("name", sorted(set(QUESTIONS) - {"server_ping", "server_health"}))
def test_a_call_takes_as_many_steps_of_sqlite_on_a_larger_store(
    measured: dict[str, tuple[Counts, Counts]], name: str
) -> None:
    small, large = measured[name]
    assert large.steps <= small.steps * MOST_GROWTH, f"{name}: {small} {large}"


def test_a_start_calls_no_more_functions_than_it_did(tmp_path: Path) -> None:
    """The least of a few: after 100 ms another thread begins, on a busy machine too soon."""
    spent = []
    for number in range(5):
        (project := tmp_path / str(number)).mkdir()
        with _server(project) as (server, counts):
            server.greet()
            server.ask(Line("tools/list"))
            spent.append(counting_server.read(counts).functions)
    assert min(spent) <= MOST_FUNCTIONS_TO_START


@requires_strace
def test_a_change_writes_no_more_pages_than_it_did(tmp_path: Path) -> None:
    """A page costs two writes into the WAL: its header, itself."""
    calls = 40
    with client.Server(tmp_path, client.COLIBRI) as server:
        for number in range(40):
            server.data("task_create", title=f"task {number}")
        with attached(server, "pwrite64") as trace:
            for number in range(calls):
                server.data("task_create", title=f"another {number}")
            written = trace.count("pwrite64")
    assert 1 < written / calls / 2 <= MOST_PAGES_WRITTEN
