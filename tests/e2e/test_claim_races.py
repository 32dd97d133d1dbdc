"""Several processes at the same instant: one of them wins, and the log shows which."""

import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.support.client import COLIBRI, JSON, Server
from tests.support.ledger_reader import records

TASKS = 30
CHANGES = 150


def at_once(*jobs: Callable[[], object]) -> None:
    """Run each in its own thread, all starting at the same moment."""
    ready, failures = threading.Barrier(len(jobs)), []

    def run(job: Callable[[], object]) -> None:
        ready.wait()
        try:
            job()
        except BaseException as problem:
            failures.append(problem)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def start(server: Server, session: str, **more: Any) -> None:
    server.data("audit_session_start", session_id=session, brief=False, **more)


def test_of_two_that_claim_a_task_one_gets_it_and_the_other_learns_who(tmp_path: Path) -> None:
    told: dict[str, list[JSON]] = {"S-0": [], "S-1": []}

    def claim(server: Server, session: str) -> None:
        for number in range(TASKS):
            id = f"T-{number + 1:04d}"
            result = server.call("task_update", task_id=id, claim=True)
            told[session].append(result["structuredContent"]["data"])

    with ExitStack() as stack:
        servers = [stack.enter_context(Server(tmp_path, COLIBRI)) for _ in range(2)]
        for number in range(TASKS):
            servers[0].data("task_create", title=f"task {number}")
        for number, server in enumerate(servers):
            start(server, f"S-{number}", intent="race")
        at_once(*(lambda s=s, n=n: claim(s, f"S-{n}") for n, s in enumerate(servers)))
        for pair in zip(told["S-0"], told["S-1"], strict=True):
            won, lost = sorted(pair, key=lambda one: "error" in one)
            assert (lost["error"]["code"], lost["error"]["holder"]) == (
                "ERR_CLAIMED",
                won["holder"],
            )
        assert servers[0].data("audit_verify_chain")["valid"]


def test_a_resume_ends_the_changes_of_the_process_before_at_one_place(tmp_path: Path) -> None:
    """Specification 7.7: none comes after it in the log, and what was refused wrote nothing."""
    with Server(tmp_path, COLIBRI) as old, Server(tmp_path, COLIBRI) as new:
        old.data("task_create", title="x")
        start(old, "S-1", intent="race")
        results: list[JSON] = []

        def change() -> None:
            ids = [
                old.post_call("task_update", task_id="T-0001", title=f"{n}", session_id="S-1")
                for n in range(CHANGES)
            ]
            results.extend(old.answer(id)["result"] for id in ids)

        def resume() -> None:
            while len(records(old.database)) < CHANGES // 10:
                pass
            start(new, "S-1", resume=True)

        at_once(change, resume)
        refused = [one for one in results if one["isError"]]
        assert {one["structuredContent"]["data"]["error"]["code"] for one in refused} <= {
            "ERR_CLAIMED"
        }
        log = records(old.database)
        resumed = next(one["seq"] for one in log if one["kind"] == "session.resume")
        changes = [one["seq"] for one in log if one["kind"] == "task.text"]
        assert len(changes) == 1 + len(results) - len(refused)
        assert all(seq < resumed for seq in changes)
        new.data("task_update", task_id="T-0001", title="mine", session_id="S-1")
        assert new.data("audit_verify_chain")["valid"]


def test_one_key_sent_by_two_processes_at_once_is_done_once(tmp_path: Path) -> None:
    made: list[JSON] = []
    with Server(tmp_path, COLIBRI) as one, Server(tmp_path, COLIBRI) as other:

        def create(server: Server) -> None:
            made.extend(
                server.data("task_create", title=f"task {number}", key=f"k{number}")
                for number in range(TASKS)
            )

        at_once(lambda: create(one), lambda: create(other))
        assert len(made) == 2 * TASKS
        assert sum(task["repeated"] for task in made) == TASKS
        assert one.data("task_list")["total_count"] == TASKS
        assert len({(task["title"], task["task_id"]) for task in made}) == TASKS
        assert one.data("audit_verify_chain")["valid"]
