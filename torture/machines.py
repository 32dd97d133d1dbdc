"""Agents on three machines work on one plan over PostgreSQL; one machine is cut off and comes back.

Each agent takes what `task_next_actions` with `claim: true` gives it, whatever happens to its
calls. Who held what, and when, is read from the ledger.
"""

import json
import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

from tests.support import cluster, network
from tests.support.client import COLIBRI, JSON, Server, environment
from tests.support.client import execute as run_program
from tests.support.cluster import Cluster, execute, make_schema, verified, wait
from tests.support.faulty import program
from tests.support.network import Machine, machines
from tests.support.terminal import COLIBRI as COMMAND
from torture import ControlFailed, Lab, Trial, Violation
from torture.team import Way, all_at_once
from torture.verifiers import node

SCHEMA = "machines"
MACHINES, AGENTS = 3, 8
MANY = 200  # tasks, with which the trial is the full one
CLAIM_SECONDS = 3.0
CUT, QUICK_CUT = 12.0, 4.5  # seconds: longer than a claim lives, and one longer than a connection
TRIP_MS = 1.0
PATIENCE = 240.0  # for the whole plan
STATES = ("INIT", "GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY", "DONE")
THOUGHT = {"type": "reflection", "content": "it is done"}
VERIFIER = Path(__file__).parents[1] / "src" / "colibri_verify.py"


def needs() -> str:
    """Why it cannot run here, or ""."""
    return cluster.needs() or network.needs() or ("" if shutil.which("node") else "no node")


class Agent:
    """Works until it is told to stop; what fails is left, and the next task asked for."""

    def __init__(self, server: Server, machine: Machine, chance: Random) -> None:
        self.server = server
        self.machine = machine
        self.holds = False
        self.refusals: Counter[str] = Counter()
        self._chance = chance

    def begin(self) -> None:
        self.server.handshake()
        opened = self.server.data("audit_session_start", intent="work on the plan", brief=False)
        self._mine = {"session_id": opened["session_id"]}  # named: it may be silent for long

    def work(self, stop: threading.Event) -> None:
        while not stop.is_set():
            found = self._call("task_next_actions", claim=True)
            if not found or not found["tasks"]:
                wait(0.1)
                continue
            self.holds = True
            (task,) = found["tasks"]
            self._finish(task)
            self.holds = False

    def _finish(self, task: JSON) -> None:
        """In two moves, with a moment of work before each."""
        left = STATES[STATES.index(task["status"]) + 1 :]
        first = left[: len(left) // 2]
        for step, more in ((first, {}), (left[len(first) :], {"thought": THOUGHT})):
            wait(self._chance.uniform(0.0, 0.1))
            if step and not self._call(
                "task_update", task_id=task["task_id"], status=[*step], **more
            ):
                return

    def _call(self, tool: str, **arguments: Any) -> JSON | None:
        id = self.server.post_call(tool, **self._mine, **arguments)
        result = self.server.answer(id, PATIENCE)["result"]
        content: JSON = result["structuredContent"]
        if not result["isError"] and "error" not in content["data"]:
            data: JSON = content["data"]
            return data
        problem = content.get("error") or content["data"]["error"]
        self.refusals[problem["code"]] += 1
        return None


class Plan:
    """The tasks, the database they are in, and the agents at work."""

    def __init__(self, lab: Lab, name: str, database: Cluster, command: Sequence[str]) -> None:
        self.lab = lab
        self.place = lab.fresh(name)
        self.database = database
        self.agents: list[Agent] = []
        self._command = command
        make_schema(database, SCHEMA)

    def start(self, hosts: list[Machine], port: int, stack: ExitStack) -> None:
        for number in range(AGENTS):
            machine = hosts[number % MACHINES]
            project = self.place / f"agent-{number}"
            project.mkdir()
            surroundings: dict[str, Any] = self.surroundings(machine.hub, port)
            server = Server(
                project, machine.command(self._command), handshake=False, **surroundings
            )
            stack.enter_context(server)
            self.agents.append(Agent(server, machine, self.lab.random))
        all_at_once([agent.begin for agent in self.agents])

    def surroundings(self, host: str, port: int) -> dict[str, str]:
        return {
            "COLIBRI_DB_URL": f"postgresql://{SCHEMA}_writer@{host}:{port}/postgres",
            "COLIBRI_DB_SCHEMA": SCHEMA,
            "COLIBRI_CLAIM_MINUTES": str(CLAIM_SECONDS / 60),
            "COLIBRI_HEALTH_INTERVAL_MS": "1000000",
            "COLIBRI_STARTUP_TIMEOUT_MS": "60000",
            "XDG_STATE_HOME": str(self.place / "state"),
        }

    def make(self, tasks: int) -> None:
        """Each waits for up to two of the ten before it."""
        server, chance = self.agents[0].server, self.lab.random
        for number in range(1, tasks + 1):
            before = range(max(1, number - 10), number)
            needed = chance.sample(before, k=min(len(before), chance.randrange(3)))
            ids = [f"T-{one:04d}" for one in sorted(needed)]
            server.data("task_create", title=f"task {number}", depends_on=ids)

    def work(self, tasks: int, cut: float) -> None:
        """Until every task is done; in between, one machine is without a network for a while."""
        stop = threading.Event()
        jobs = [lambda one=agent: one.work(stop) for agent in self.agents]
        thread = threading.Thread(target=self._watch, args=(stop, tasks, cut))
        thread.start()
        try:
            all_at_once(jobs)
        finally:
            stop.set()
            thread.join()
        if (done := self.done()) != tasks:
            raise Violation(f"{done} of {tasks} tasks were done within {PATIENCE:.0f} s")

    def _watch(self, stop: threading.Event, tasks: int, cut: float) -> None:
        end = time.monotonic() + PATIENCE
        machine = self.agents[0].machine
        away = [agent for agent in self.agents if agent.machine is machine]
        while (
            cut
            and not stop.is_set()
            and not (self.done() >= tasks // 5 and any(agent.holds for agent in away))
        ):
            wait(0.005)
        if cut:
            machine.cut()
            wait(cut)
            machine.restore()
        while self.done() < tasks and time.monotonic() < end:
            self.lab.say(f"{self.done()} of {tasks} tasks")
            wait(0.2)
        stop.set()

    def done(self) -> int:
        rows = execute(self.database, f"SELECT count(*) FROM {SCHEMA}.tasks WHERE status = 'DONE'")
        return int(rows[0][0])


class Holders:
    """Who holds what, as the ledger tells it, record by record."""

    def __init__(self) -> None:
        self.take_overs = 0
        self.done: Counter[str] = Counter()
        self._holder: dict[str, str | None] = {}
        self._sign: dict[str, datetime] = {}

    def live(self, session: str | None, at: datetime) -> None:
        """A sign of life: a session begins, or a call of it was not refused."""
        if session is not None:
            self._sign[session] = at

    def change(self, seq: int, at: datetime, session: str | None, task: str, change: JSON) -> None:
        holder = self._holder.get(task)
        if holder is not None and session != holder:
            idle = (at - self._sign[holder]).total_seconds()
            if idle < CLAIM_SECONDS:
                raise Violation(
                    f"record {seq}: {session} changes {task}, which {holder} holds,"
                    f" silent for {idle:.3f} s"
                )
            self.take_overs += 1
        if "holder" in change:
            self._holder[task] = change["holder"][1]
        if "status" in change and change["status"][1] == "DONE":
            self.done[task] += 1
            self._holder[task] = None


def check(plan: Plan, tasks: int) -> Holders:
    """Every task done once, and never held by two live sessions; the log verifies."""
    holders = Holders()
    for seq, at, kind, session, task, body in execute(
        plan.database,
        f"SELECT seq, at, kind, session, task, body FROM {SCHEMA}.ledger ORDER BY seq",
    ):
        when, said = datetime.fromisoformat(at), json.loads(body)
        if kind == "task":
            holders.change(seq, when, session, task, said["set"])
        elif kind == "session.open" or said.get("outcome") == "ok":
            holders.live(session, when)
    if len(holders.done) != tasks or set(holders.done.values()) != {1}:
        raise Violation(f"{len(holders.done)} of {tasks} tasks done, as often as {holders.done}")
    report = verified(plan.database, SCHEMA)
    if not report.valid:
        raise Violation(f"the log is broken: {report.breaks[:3]}")
    return holders


def judge(plan: Plan, port: int) -> int:
    """The report is made, and both verifiers find the bundle good; its records."""
    project = plan.agents[0].server.project
    surroundings = plan.surroundings(plan.agents[0].machine.hub, port)

    def colibri(*words: str) -> str:
        done = run_program([*COMMAND, *words], cwd=project, env=environment(**surroundings))
        if done.returncode:
            raise Violation(f"colibri {words[0]} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    bundle, page = project / "all.colibri.jsonl", project / "report.html"
    colibri("report", "-o", str(page))
    if "</html>" not in page.read_text():
        raise Violation("the report is no page")
    colibri("export", "--all", "-o", str(bundle))
    by_hand = run_program([sys.executable, str(VERIFIER), str(bundle), "--json"], cwd=project)
    (by_node,) = node("verify", [{"path": str(bundle)}])
    for verdict in (json.loads(by_hand.stdout), by_node):
        if verdict["verdict"] != "good":
            raise Violation(f"a verifier finds the bundle {verdict['verdict']}: {verdict}")
    return bundle.read_bytes().count(b"\n")


def _play(lab: Lab, name: str, command: Sequence[str], tasks: int, cut: float) -> dict[str, object]:
    with (
        Cluster().make() as database,
        machines(MACHINES) as hosts,
        Way(database, [machine.hub for machine in hosts]) as way,
        ExitStack() as stack,
    ):
        plan = Plan(lab, name, database, command)
        plan.start(hosts, way.port, stack)
        plan.make(tasks)
        way.lengthen(TRIP_MS)
        began = time.monotonic()
        plan.work(tasks, cut)
        seconds = time.monotonic() - began
        holders = check(plan, tasks)
        if cut and not holders.take_overs:
            raise Violation("nothing was taken over from the machine that was cut off")
        refusals = sum((agent.refusals for agent in plan.agents), Counter[str]())
        return {
            "agents": AGENTS,
            "seconds without a network, of one machine": cut,
            "seconds for the plan": round(seconds),
            "done twice": 0,
            "two live holders": 0,
            "take-overs": holders.take_overs,
            **{f"refused {code}": count for code, count in sorted(refusals.items())},
            "lines of the bundle, good for both verifiers": judge(plan, way.port),
        }


def control(lab: Lab) -> str:
    """Servers that share what others hold must be caught."""
    try:
        _play(lab, "sharing", program("shares-tasks"), tasks=10, cut=0.0)
    except Violation as problem:
        return f"servers that take what others hold are caught ({str(problem)[:120]})"
    raise ControlFailed("servers that take what others hold were not caught")


def run(lab: Lab) -> dict[str, object]:
    """One plan."""
    return _play(lab, "plan", COLIBRI, lab.count, CUT if lab.count >= MANY else QUICK_CUT)


TRIAL = Trial(
    name="machines",
    title="8 agents on 3 machines work on one plan with dependencies over PostgreSQL, by claims;"
    " one machine is cut off for longer than a claim lives, and comes back",
    claim="every task is done once, none has two live holders, the report is made and both"
    " verifiers find the bundle good",
    unit="tasks",
    quick=20,
    full=MANY,
    minutes=3,
    control=control,
    run=run,
    needs=needs,
)
