"""Shutdown: every way a host may abandon its server, and how soon the server exits.

A server whose parent was killed is found by its pid.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.support.client import COLIBRI, TOOLBOX, Server
from tests.support.ledger_reader import missing
from torture import ControlFailed, Lab, Trial, Violation

IDLE_SECONDS = 2.0
SHORT_CALLS_SECONDS = 5.0
ALWAYS_SECONDS = 31.0
CALLS = 20
HUNG_AT_ONCE = 50
HOST = (
    "import subprocess, sys; child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE);"
    " print(child.pid, file=sys.stderr, flush=True); sys.stdin.read()"
)
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"


def _gone_within(server: Server, seconds: float, what: str) -> float:
    """Wait until it exits; returns how long it took. Raises Violation."""
    began = time.monotonic()
    try:
        server.process.wait(seconds)
    except Exception as problem:
        raise Violation(f"{what}: still there after {seconds:g} s") from problem
    return time.monotonic() - began


def _hang_up(server: Server) -> None:
    server._hang_up()


def _terminate(server: Server) -> None:
    server.process.terminate()


def _idle(project: Path, end: Callable[[Server], None]) -> float:
    with Server(project, COLIBRI) as server:
        server.call("task_create", title="done before the end")
        end(server)
        return _gone_within(server, IDLE_SECONDS, "idle")


def _with_calls(project: Path, end: Callable[[Server], None]) -> float:
    """With calls in flight: each one answered as done is in the ledger."""
    with Server(project, COLIBRI) as server:
        server.call("task_create", title="first")
        for number in range(CALLS):
            server.post_call("task_create", title=f"task {number}")
        end(server)
        took = _gone_within(server, SHORT_CALLS_SECONDS, "short calls in flight")
        results = [message["result"] for message in iter(server.receive, None)]
    if end is _hang_up and len(results) != CALLS:  # a signal may come before a line is read
        raise Violation(f"the end of input left {CALLS - len(results)} calls without an answer")
    receipts = [r["_meta"]["colibri/receipt"] for r in results if not r["isError"]]
    if missing(server.database, receipts):
        raise Violation("a call that was answered at the end is lost")
    return took


def _killed_parent(project: Path, _: Callable[[Server], None]) -> float:
    """The host is killed: its child must see the end of its input."""
    with Server(project, (sys.executable, "-c", HOST, *COLIBRI), handshake=False) as host:
        while not host.stderr.partition("\n")[1]:
            time.sleep(0.01)  # until it reports its child's pid; the trial's own limit bounds this
        child = int(host.stderr.split()[0])
        host.process.kill()
        began = time.monotonic()
        while _alive(child):
            if time.monotonic() - began > IDLE_SECONDS:
                os.kill(child, signal.SIGKILL)
                raise Violation(f"an orphan is still there after {IDLE_SECONDS:g} s")
            time.sleep(0.01)
        return time.monotonic() - began


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _hung(project: Path, end: Callable[[Server], None]) -> float:
    """A call that never comes back."""
    with Server(project, TOOLBOX) as server:
        server.call("note", n=1)
        server.post_call("nap_write", ms=120_000)
        server.call("server_ping")
        end(server)
        return _gone_within(server, ALWAYS_SECONDS, "a call that hangs")


# way of ending -> (the round to run, what ends the server)
WAYS: dict[str, tuple[Callable[[Path, Callable[[Server], None]], float], Callable[[Server], None]]]
WAYS = {
    "idle, input closed": (_idle, _hang_up),
    "idle, SIGTERM": (_idle, _terminate),
    "short calls, input closed": (_with_calls, _hang_up),
    "short calls, SIGTERM": (_with_calls, _terminate),
    "parent killed": (_killed_parent, _hang_up),
}
HUNG = {"hung, input closed": _hang_up, "hung, SIGTERM": _terminate}


def control(lab: Lab) -> str:
    """A program that ignores both must be reported as still running."""
    with Server(lab.fresh("deaf"), (sys.executable, "-c", DEAF), handshake=False) as server:
        time.sleep(0.3)  # until its handler is installed, which nothing reports
        server._hang_up()
        server.process.terminate()
        try:
            _gone_within(server, 1, "deaf")
        except Violation:
            server.process.kill()
            return "a program that heeds neither the end of input nor SIGTERM is caught"
    raise ControlFailed("a program that heeds nothing was counted as gone")


def run(lab: Lab) -> dict[str, object]:
    """Every way, so many rounds each; the hanging ones in parallel, since they only wait."""
    worst: dict[str, object] = {}
    for name, (one_round, end) in WAYS.items():
        times = []
        for number in range(lab.count):
            times.append(one_round(lab.fresh(f"{name}-{number}"), end))
            lab.say(f"{name}: {number + 1} of {lab.count}")
        worst[f"worst, {name}"] = f"{max(times):.2f} s"
    jobs = [(name, lab.fresh(f"{name}-{n}")) for n in range(lab.count) for name in HUNG]
    lab.say(f"a call hangs: {len(jobs)}, {HUNG_AT_ONCE} at a time")
    with ThreadPoolExecutor(HUNG_AT_ONCE) as pool:
        times = list(pool.map(lambda job: _hung(job[1], HUNG[job[0]]), jobs))
    worst["worst, a call hangs"] = f"{max(times):.1f} s"
    return {**worst, "survivors": 0}


TRIAL = Trial(
    name="ending",
    title="the client hangs up, signals, dies, or a call hangs",
    claim="gone within 2 s when idle, 5 s with short calls, 31 s always; no orphan, nothing lost",
    unit="rounds of each of 7 ways",
    quick=1,
    full=100,
    minutes=4,
    alone=True,
    control=control,
    run=run,
)
