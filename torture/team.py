"""Servers on machines of their own, some way from one PostgreSQL, all claiming and moving tasks."""

import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from operator import sub
from pathlib import Path
from typing import Any

from tests.support import cluster, network
from tests.support.client import COLIBRI, JSON, Server
from tests.support.cluster import Cluster, execute, make_schema, missing, verified
from tests.support.network import machines
from tests.support.postgres_keeper import SUPERUSER
from torture import ControlFailed, Lab, Trial, Violation

SCHEMA = "team"
SERVERS, FEW = 32, 4
FEWER = (8, 1)  # of them, at the distance of most databases: how fast is one log, and one server?
ROUNDS = 7  # of these: a machine that shares its processors with others is not always as fast
NEAR = 1.0  # milliseconds there and back
TRIPS = 25  # by which such a distance is measured
DISTANCES = (0.2, 1.0, 20.0)  # milliseconds there and back
MANY = 200  # calls of each server, with which the trial is the full one
STEPS = (["GATHER", "ANALYZE"], ["PLAN", "APPLY"], ["VERIFY", "DONE"])
CALLS = 1 + len(STEPS)  # for each task: one claims it, the others move it
PATIENCE = 120.0  # for an answer while all of them start on a loaded machine
UNLOCKED = (
    f"CREATE OR REPLACE FUNCTION {SCHEMA}.lock_head(known bigint) RETURNS void LANGUAGE sql"
    f" SET search_path = {SCHEMA}, pg_temp AS $$ SELECT $$"
)
EXITS = f"""SELECT count(*) FROM {SCHEMA}.ledger WHERE kind = 'call.exit'
    AND convert_from(body, 'UTF8') LIKE '%"outcome":"ok"%'
    AND (convert_from(body, 'UTF8') LIKE '%"tool":"task_update"%'
        OR convert_from(body, 'UTF8') LIKE '%"tool":"task_next_actions"%')"""


def needs() -> str:
    """Why it cannot run here, or ""."""
    return cluster.needs() or network.needs()


class Agent:
    """A server and what its client was told."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.receipts: list[JSON] = []
        self.times: list[float] = []
        self.tasks: list[str] = []

    def begin(self) -> None:
        self._answer(self.server.post("initialize", INITIALIZE))
        self.server.notify("notifications/initialized")
        self.call("audit_session_start", intent="work", brief=False)

    def plan(self, tasks: int) -> None:
        """Create tasks, all calls in flight at once."""
        ids = [self.server.post_call("task_create", title=f"task {n}") for n in range(tasks)]
        for id in ids:
            self._data(self._answer(id)["result"])

    def work(self, tasks: int) -> None:
        """Claim and finish as many, one call after the other."""
        for _ in range(tasks):
            (task,) = self._timed("task_next_actions", claim=True)["tasks"]
            self.tasks.append(task["task_id"])
            for number, step in enumerate(STEPS):
                told = {"thought": THOUGHT} if number == len(STEPS) - 1 else {}
                self._timed("task_update", task_id=task["task_id"], status=step, **told)

    def call(self, tool: str, **arguments: Any) -> JSON:
        return self._data(self._answer(self.server.post_call(tool, **arguments))["result"])

    def _timed(self, tool: str, **arguments: Any) -> JSON:
        began = time.perf_counter()
        data = self.call(tool, **arguments)
        self.times.append(time.perf_counter() - began)
        return data

    def _answer(self, id: Any) -> JSON:
        return self.server.answer(id, PATIENCE)

    def _data(self, result: JSON) -> JSON:
        if result["isError"]:
            raise Violation(f"a call failed: {str(result['structuredContent'])[:300]}")
        self.receipts.append(result["_meta"]["colibri/receipt"])
        data: JSON = result["structuredContent"]["data"]
        return data

    @property
    def memory(self) -> int:
        """The most that it has used, in MiB."""
        status = Path(f"/proc/{self.server.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) // 1024


THOUGHT = {"type": "reflection", "content": "it is done"}
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "torture", "version": "1"},
}


class Way:
    """The proxy between the machines and the database, in a process of its own."""

    def __init__(self, database: Cluster, hosts: Sequence[str]) -> None:
        command = [sys.executable, "-m", "tests.support.far", database.socket, "0", *hosts]
        self._direct = database.url(SUPERUSER)
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.hosts = hosts
        self.port = int(self._said())

    def __enter__(self) -> "Way":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def lengthen(self, trip_ms: float) -> None:
        """Let a trip take so long: what the proxy takes on top is measured and taken off."""
        self._delay(trip_ms)
        if trip_ms:
            through = f"postgresql://{SUPERUSER}@{self.hosts[0]}:{self.port}/postgres"
            takes = _trip_ms(through) - _trip_ms(self._direct)
            self._delay(max(0.0, 2 * trip_ms - takes))

    def _delay(self, trip_ms: float) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{trip_ms}\n")
        self._process.stdin.flush()
        self._said()

    def _said(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


def _trip_ms(url: str) -> float:
    """What the shortest question takes, there and back: the median of some."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as asking:
        times = []
        for _ in range(TRIPS):
            began = time.perf_counter()
            asking.execute("SELECT 1")
            times.append(time.perf_counter() - began)
    return statistics.median(times) * 1000


def all_at_once(jobs: Sequence[Callable[[], object]]) -> None:
    """Run each in its own thread; raises the first problem as a Violation."""
    problems: list[BaseException] = []

    def run(job: Callable[[], object]) -> None:
        try:
            job()
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise Violation(f"{type(problems[0]).__name__}: {problems[0]}") from problems[0]


@contextmanager
def team(lab: Lab, name: str, servers: int) -> Iterator[tuple[Cluster, Way, list[Agent]]]:
    """A database, machines, and a server that has begun a session on each."""
    place = lab.fresh(name)
    with (
        Cluster(as_installed=True).make() as database,
        machines(servers) as hosts,
        Way(database, [machine.hub for machine in hosts]) as way,
        ExitStack() as stack,
    ):
        make_schema(database, SCHEMA)
        agents: list[Agent] = []
        for number, machine in enumerate(hosts):
            command = machine.command(COLIBRI)
            server = _start(place / str(number), command, machine.hub, way.port)
            agents.append(Agent(stack.enter_context(server)))
            if number % 8 == 7 or machine is hosts[-1]:  # more at once would only wait longer
                all_at_once([one.begin for one in agents[number // 8 * 8 :]])
        yield database, way, agents


def _start(project: Path, command: Sequence[str], host: str, port: int) -> Server:
    project.mkdir()
    return Server(
        project,
        command,
        handshake=False,
        COLIBRI_DB_URL=f"postgresql://{SCHEMA}_writer@{host}:{port}/postgres",
        COLIBRI_DB_SCHEMA=SCHEMA,
        COLIBRI_HEALTH_INTERVAL_MS="1000000",  # a loaded machine is not what is tried here
        COLIBRI_STARTUP_TIMEOUT_MS="60000",
        XDG_STATE_HOME=str(project / "state"),
    )


def work(
    agents: list[Agent], way: Way, distance: float, calls: int, who: str = ""
) -> dict[str, float]:
    """All of them, at one distance; returns figures, which say who worked."""
    tasks = max(1, calls // CALLS)
    way.lengthen(0)
    all_at_once([lambda one=agent: one.plan(tasks) for agent in agents])  # type: ignore[misc]
    way.lengthen(distance)
    for agent in agents:
        agent.times.clear()
    began = time.perf_counter()
    all_at_once([lambda one=agent: one.work(tasks) for agent in agents])  # type: ignore[misc]
    seconds = time.perf_counter() - began
    way.lengthen(0)
    times = sorted(one for agent in agents for one in agent.times)
    at = f"{who}at {distance:g} ms"
    return {
        f"{at}: calls a second": round(len(times) / seconds),
        f"{at}: p50 ms": round(times[len(times) // 2] * 1000, 1),
        f"{at}: p99 ms": round(times[len(times) * 99 // 100] * 1000),
    }


def work_in_rounds(agents: list[Agent], way: Way, calls: int, who: str) -> dict[str, float]:
    """The same at the distance of most databases, in rounds: medians, and the speed of the best."""
    rounds = [work(agents, way, NEAR, calls, who) for _ in range(ROUNDS)]
    speed = next(iter(rounds[0]))
    figures = {name: statistics.median(one[name] for one in rounds) for name in rounds[0]}
    return figures | {f"{speed}, best of {ROUNDS}": max(one[speed] for one in rounds)}


def processors() -> tuple[int, int]:
    """For how many ticks they have worked so far, and for how many other machines had them."""
    user, nice, system, _, _, interrupts, soft, steal = map(
        int, Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:9]
    )
    return user + nice + system + interrupts + soft, steal


def first_change(project: Path, way: Way) -> float:
    """Milliseconds from the start of another server to the answer to its first change."""
    way.lengthen(NEAR)
    began = time.perf_counter()
    with _start(project, COLIBRI, way.hosts[0], way.port) as server:
        agent = Agent(server)
        agent.begin()
        took = (time.perf_counter() - began) * 1000
    way.lengthen(0)
    return took


def check(database: Cluster, agents: list[Agent]) -> int:
    """One chain; nothing lost, nothing done twice. Returns the number of records."""
    receipts = [one for agent in agents for one in agent.receipts]
    if lost := missing(database, SCHEMA, receipts):
        raise Violation(f"{len(lost)} of {len(receipts)} acknowledged calls are lost")
    tasks = [task for agent in agents for task in agent.tasks]
    if len({*tasks}) != len(tasks):
        raise Violation(f"{len(tasks) - len({*tasks})} tasks were claimed twice")
    ((done,),) = execute(database, f"SELECT count(*) FROM {SCHEMA}.tasks WHERE status = 'DONE'")
    ((exits,),) = execute(database, EXITS)
    if (done, exits) != (len(tasks), CALLS * len(tasks)):
        raise Violation(
            f"{len(tasks)} tasks in {CALLS * len(tasks)} calls: {done} done in {exits} in the log"
        )
    report = verified(database, SCHEMA)
    if not report.valid or report.open_calls:
        raise Violation(f"the log is broken: {report.breaks[:3]} {report.open_calls[:3]}")
    return report.record_count


def control(lab: Lab) -> str:
    """A database whose lock locks nothing must fail calls."""
    with team(lab, "unlocked", FEW) as (database, way, agents):
        execute(database, UNLOCKED)
        try:
            work(agents, way, 1.0, 40)
            check(database, agents)
        except Violation as problem:
            return f"a lock that locks nothing is caught: {' '.join(str(problem).split())[:100]}…"
    raise ControlFailed("a lock that locks nothing was not caught")


def run(lab: Lab) -> dict[str, object]:
    """At each distance, with the same servers."""
    is_full = lab.count >= MANY
    figures: dict[str, float] = {}
    before = processors()
    with team(lab, "team", SERVERS if is_full else FEW) as (database, way, agents):
        for distance in DISTANCES if is_full else DISTANCES[1:2]:
            lab.say(f"{len(agents)} servers, {distance:g} ms from their database")
            figures |= work(agents, way, distance, lab.count)
        for some in FEWER if is_full else FEWER[1:]:
            lab.say(f"{some} of them, {NEAR:g} ms from their database")
            figures |= work_in_rounds(agents[:some], way, lab.count, f"{some} of them ")
        starts = [first_change(lab.fresh(f"start{n}") / "project", way) for n in range(3)]
        figures["first change after the start, at 1 ms: ms"] = round(min(starts))
        worked, taken = map(sub, processors(), before)
        records = check(database, agents)
        return {
            "servers": len(agents),
            "acknowledged calls": sum(len(agent.receipts) for agent in agents),
            "lost": 0,
            "done twice": 0,
            "records verified": records,
            **figures,
            "most memory of a server, MiB": max(agent.memory for agent in agents),
            "of the processor time it needed, taken by other machines: %": round(
                100 * taken / (worked + taken)
            ),
            "load before": round(os.getloadavg()[2], 1),
        }


TRIAL = Trial(
    name="team",
    title="32 servers on machines of their own claim and move tasks at once, 0.2, 1 and 20 ms from"
    " one PostgreSQL",
    claim="one chain that verifies, nothing acknowledged is lost, nothing done twice",
    unit="claims and moves of each server, at each distance",
    quick=12,
    full=MANY,
    minutes=8,
    alone=True,
    control=control,
    run=run,
    needs=needs,
)
