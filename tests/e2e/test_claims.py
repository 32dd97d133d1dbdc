"""Many agents on one ledger: only the holder of a task works on it."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.support import ledger_reader
from tests.support.client import COLIBRI, JSON, Server
from tests.support.program import colibri
from tests.verify.conftest import load_verifier, run_node, without_words

AGENTS, KILLED, TASKS = 8, 3, 400
PATIENCE = 240  # seconds, of which it needs a tenth on an idle machine
CLAIM_SECONDS = 8.0  # no live agent is silent for so long, not even on a busy machine


@contextmanager
def agent(
    project: Path, name: str, seconds: float = CLAIM_SECONDS, **start: Any
) -> Iterator[tuple[Server, str]]:
    """A server, and the session that its agent opened or resumed."""
    with Server(project, COLIBRI, COLIBRI_CLAIM_MINUTES=f"{seconds / 60:.6f}") as server:
        start = {"intent": "work", "agent_id": name, "brief": False, **start}
        yield server, server.data("audit_session_start", **start)["session_id"]


def refusal(server: Server, tool: str, **arguments: Any) -> JSON:
    """The error of a refused call; the text of a HANDLER_ERROR begins with the code."""
    content = server.call(tool, **arguments)["structuredContent"]
    error: JSON = content.get("error") or content["data"]["error"]
    if error["code"] == "HANDLER_ERROR":
        return {**error["details"], "code": error["message"].partition(":")[0]}
    return error


def records(project: Path) -> list[JSON]:
    return ledger_reader.records(project / "data" / "colibri.db")


class Worker(threading.Thread):
    """Takes the next task until none is left; dies in the middle of its work, if told to."""

    def __init__(self, project: Path, number: int, dies_after: int | None) -> None:
        super().__init__(daemon=True)
        self.project, self.number, self.dies_after = project, number, dies_after
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            with agent(self.project, f"agent-{self.number}") as (server, _):
                self._work(server)
        except BaseException as problem:
            self.failure = problem

    def _work(self, server: Server) -> None:
        done = 0
        while True:
            queue = server.data("task_next_actions", claim=True)
            if not queue["tasks"]:
                if not queue["held_by_others"]:
                    return
                time.sleep(0.2)
                continue
            (task,) = queue["tasks"]
            path = ["GATHER", "ANALYZE", "PLAN", "APPLY"]
            steps = path[path.index(task["status"]) + 1 :] if task["status"] in path else path
            if task["status"] != "VERIFY" and steps:
                server.data("task_update", task_id=task["task_id"], status=steps)
            if done == self.dies_after:
                server.process.send_signal(signal.SIGKILL)
                server.process.wait()
                return
            thought = {"type": "reflection", "content": f"{task['task_id']} works"}
            steps = ["DONE"] if task["status"] == "VERIFY" else ["VERIFY", "DONE"]
            server.data("task_update", task_id=task["task_id"], status=steps, thought=thought)
            done += 1


@pytest.mark.long
@pytest.mark.timeout(PATIENCE + 60)
def test_eight_agents_do_every_task_once_though_three_die(tmp_path: Path) -> None:
    """Specification 8.3, 8.5: never two live holders, and the tasks of the dead are taken over."""
    _plan(tmp_path)
    _work_together(tmp_path)
    log = records(tmp_path)
    done = [one["task"] for one in log if one["kind"] == "task" and _moves_to(one, "DONE")]
    assert sorted(done) == [f"T-{number + 1:04d}" for number in range(TASKS)]
    taken = [one for one in log if one["kind"] == "task" and "taken" in one["said"]]
    assert len(taken) == KILLED
    for one in taken:
        _assert_silent_before(log, one)
    assert all(
        one["session"] == holder
        for one, holder in _held(log)
        if holder is not None and "taken" not in one["said"]
    )
    assert colibri(tmp_path, "verify")[0] == 0
    _assert_both_verifiers_agree(tmp_path)


def _plan(project: Path) -> None:
    """Create the tasks; each depends on up to two earlier ones."""
    chance = Random(7)
    with agent(project, "planner") as (planner, _):
        for number in range(TASKS):
            some = chance.sample(range(number), min(number, chance.randrange(3)))
            needs = [f"T-{other + 1:04d}" for other in some]
            planner.data("task_create", title=f"piece {number}", depends_on=needs)


def _work_together(project: Path) -> None:
    workers = [
        Worker(project, number, dies_after=5 * (number + 1) if number < KILLED else None)
        for number in range(AGENTS)
    ]
    until = time.monotonic() + PATIENCE
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(until - time.monotonic())
    assert [worker.number for worker in workers if worker.is_alive()] == []
    assert [worker.failure for worker in workers if worker.failure] == []


def _assert_silent_before(log: list[JSON], take_over: JSON) -> None:
    """The loser's last sign of life is the one that is named, and it is old enough."""
    loser, winner = take_over["said"]["set"]["holder"]
    signs = [
        one
        for one in log[: take_over["seq"]]
        if one["kind"] == "call.exit" and one["session"] == loser and one["said"]["outcome"] == "ok"
    ]
    assert (winner, take_over["said"]["taken"]["last"]) == (take_over["session"], signs[-1]["seq"])
    silence = datetime.fromisoformat(take_over["at"]) - datetime.fromisoformat(signs[-1]["at"])
    assert silence >= timedelta(seconds=CLAIM_SECONDS)


def _assert_both_verifiers_agree(project: Path) -> None:
    """On one bundle of the whole log: it is good."""
    bundle = project / "log.json"
    assert colibri(project, "export", "--all", "-o", str(bundle))[0] == 0
    verdict = load_verifier().verify(bundle.read_bytes()).as_json()
    assert (verdict["verdict"], verdict["findings"]) == ("good", [])
    (other,) = run_node("verify", [{"path": str(bundle)}])
    assert without_words(other) == without_words(verdict)


def _moves_to(record: JSON, status: str) -> bool:
    return "status" in record["said"]["set"] and record["said"]["set"]["status"][1] == status


def _held(log: list[JSON]) -> Iterator[tuple[JSON, str | None]]:
    """Each change of a task, and its holder at that time."""
    holders: dict[str, str | None] = {}
    for one in log:
        if one["kind"] == "task":
            yield one, holders.get(one["task"])
            change = one["said"]["set"].get("holder")
            if change:
                holders[one["task"]] = change[1]
            if _moves_to(one, "DONE"):
                holders[one["task"]] = None


def test_an_agent_that_wakes_up_is_refused_until_it_claims_again(tmp_path: Path) -> None:
    """Specification 8.2, 8.6: even after the new holder released it; nothing is written."""
    seconds = 3.0
    with ExitStack() as stack:
        sleeper, mine = stack.enter_context(agent(tmp_path, "sleeper", seconds))
        sleeper.data("task_create", title="contested")
        sleeper.data("task_update", task_id="T-0001", status="GATHER")
        sleeper.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds + 0.5)
        other, theirs = stack.enter_context(agent(tmp_path, "other", seconds))
        other.data("task_update", task_id="T-0001", status="ANALYZE")
        sleeper.process.send_signal(signal.SIGCONT)
        named = {"task_id": "T-0001", "session_id": mine}
        first = refusal(sleeper, "task_update", **named, status="ANALYZE")
        assert (first["code"], first["holder"], first["agent"]) == ("ERR_CLAIMED", theirs, "other")
        other.data("task_update", task_id="T-0001", claim=False)
        for change in ({"status": "PLAN"}, {"title": "mine"}, {"priority": "low"}):
            again = refusal(sleeper, "task_update", **named, **change)
            assert (again["code"], again["lost"]) == ("ERR_CLAIMED", True)
        moved = [one for one in records(tmp_path) if one["kind"] in ("task", "task.text")]
        assert {one["session"] for one in moved[-2:]} == {theirs}
        claimed = sleeper.data("task_update", **named, claim=True, status="PLAN")
        assert (claimed["holder"], claimed["status"]) == (mine, "PLAN")


def test_a_process_whose_session_was_resumed_elsewhere_is_refused(tmp_path: Path) -> None:
    """Specification 7.7: a process that wakes up cannot pass for its successor."""
    with ExitStack() as stack:
        old, session = stack.enter_context(agent(tmp_path, "ada", 3600))
        old.data("task_create", title="moved on")
        old.data("task_update", task_id="T-0001", status="GATHER")
        resumed = {"session_id": session, "resume": True, "intent": None, "agent_id": None}
        new, again = stack.enter_context(agent(tmp_path, "ada", 3600, **resumed))
        assert again == session
        before = len(records(tmp_path))
        for tool, arguments in (
            ("task_update", {"task_id": "T-0001", "status": "ANALYZE"}),
            ("task_create", {"title": "another"}),
            ("task_next_actions", {"claim": True}),
        ):
            told = refusal(old, tool, **arguments, session_id=session)
            assert (told["code"], told["session_id"]) == ("ERR_CLAIMED", session)
        kinds = {one["kind"] for one in records(tmp_path)[before:]}
        assert kinds == {"call.enter", "call.exit"}
        assert new.data("task_update", task_id="T-0001", status="ANALYZE")["holder"] == session


def test_a_reader_keeps_nothing_alive_and_is_credited_with_nothing(tmp_path: Path) -> None:
    """Specification 7.3: a supervisor reads the trail of an agent that died."""
    seconds = 1.0
    with ExitStack() as stack:
        dead, session = stack.enter_context(agent(tmp_path, "dead", seconds))
        dead.data("task_create", title="left behind")
        dead.data("task_update", task_id="T-0001", status="GATHER")
        dead.process.kill()
        watcher, _ = stack.enter_context(agent(tmp_path, "watcher", seconds))
        until = time.monotonic() + seconds + 0.5
        while time.monotonic() < until:
            watcher.data("thought_record_list", session_id=session)
            watcher.data("audit_verify_chain", session_id=session)
            time.sleep(0.1)
        looked = [one for one in records(tmp_path) if one["agent"] == "watcher"]
        assert {one["kind"] for one in looked} == {"call.enter", "call.exit", "session.open"}
        assert not any(one["session"] == session for one in looked)
        assert watcher.data("task_next_actions", claim=True)["tasks"][0]["task_id"] == "T-0001"


KEYED = {
    "task_create": ({"title": "once"}, {"title": "other"}, "task_id"),
    "thought_record": (
        {"type": "plan", "content": "once"},
        {"type": "plan", "content": "other"},
        "thought_id",
    ),
}


def test_the_same_call_sent_by_five_processes_and_killed_is_done_once(tmp_path: Path) -> None:
    """Specification 6.16: fifty times the same key: one task or thought, always the same id."""
    ids: dict[str, list[str]] = {tool: [] for tool in KEYED}
    with agent(tmp_path, "opener", 3600) as (opener, session):
        for _ in range(5):
            with ExitStack() as stack:
                servers = [stack.enter_context(Server(tmp_path, COLIBRI)) for _ in range(5)]
                asked = [
                    (tool, one, one.post_call(tool, **same, key=tool, session_id=session))
                    for one in servers
                    for tool, (same, _, _) in KEYED.items()
                    for _ in range(2)
                ]
                servers[0].process.kill()
                for tool, server, call in asked[2 * len(KEYED) :]:
                    data = server.answer(call)["result"]["structuredContent"]["data"]
                    ids[tool].append(data[KEYED[tool][2]])
        for tool, (same, other, id) in KEYED.items():
            assert len(set(ids[tool])) == 1
            again = opener.data(tool, **same, key=tool)
            assert (again[id], again["repeated"]) == (ids[tool][0], True)
            error = refusal(opener, tool, **other, key=tool)
            assert (error["code"], error["differ"]) == ("ERR_KEY_REUSED", [[*other][-1]])
        assert opener.data("task_list")["total_count"] == 1
        assert opener.data("thought_record_list")["total_count"] == 1
    made = [one["kind"] for one in records(tmp_path) if one["kind"] in ("task.text", "thought")]
    assert sorted(made) == ["task.text", "thought"]
    assert colibri(tmp_path, "verify")[0] == 0
