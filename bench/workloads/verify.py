"""Verification of a whole log against bare loops over the same rows; sealing; pings meanwhile.

The loops and the check run in separate processes. Finally a server checks the log for a client that
pings it meanwhile, and seals a session of a tenth of the records.
"""

import json
import subprocess
import tempfile
import time
from pathlib import Path

from bench import install, stores
from bench.client import JSON, Line, Server, call, results
from bench.contestants import Contestant
from bench.stacks.check import ROWS
from bench.stats import Rows, percentile, put
from bench.workloads import Plan, turns

WHOLE, BARE, NODE, SERVER = "Colibri", "bare Python loop", "bare Node loop", "Colibri, over MCP"
RATE, PEAK = "records/s", "peak, MB"
PING, LONGEST = "ping meanwhile, ms", "longest ping, ms"
SEAL = "seal of a tenth of the log, s"
SERVER_ROUNDS = 3
PING_EVERY = 0.005


def run(plan: Plan, contestants: list[Contestant]) -> Rows:
    """Records per second and peak memory; the other figures only for the server."""
    (colibri,) = contestants
    rows: Rows = {}
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        path = stores.put(stores.log, Path(scratch), plan.verify_records, plan.verify_records // 10)
        commands = _commands(str(path))
        for _, name in turns(list(commands), plan.verify_rounds):
            done = subprocess.run(commands[name], check=True, capture_output=True, timeout=600)
            count, seconds, peak = json.loads(done.stdout)
            put(rows, name, RATE, count / seconds)
            put(rows, name, PEAK, peak)
        with colibri.start(Path(scratch)) as server:
            server.greet()
            for _ in range(SERVER_ROUNDS):
                _pinged(server, rows)
            _seal(server, rows)
    return rows


def _commands(path: str) -> dict[str, list[str]]:
    python, check = str(install.colibri()), str(install.STACKS / "check.py")
    commands = {
        BARE: [python, check, "bare", path],
        WHOLE: [python, check, "whole", path],
    }
    try:
        script = str(install.copy_script(install.npm("sdk"), "hashes.mjs"))
        commands[NODE] = ["node", script, path, ROWS]
    except install.Missing:
        pass  # the results list it as absent
    return commands


def _pinged(server: Server, rows: Rows) -> None:
    """The whole check over MCP; every ping must be answered before it."""
    check, start = call("audit_verify_chain", {}), time.perf_counter()
    server.send(check.data)
    answer, pings = None, []
    while answer is None:
        ping, sent = call("server_ping", {}), time.perf_counter()
        server.send(ping.data)
        answer = _answers(server, ping, check)
        pings.append((time.perf_counter() - sent) * 1000)
        time.sleep(PING_EVERY)
    taken = time.perf_counter() - start
    put(rows, SERVER, PING, percentile(pings, 50))
    put(rows, SERVER, LONGEST, max(pings))
    verdict = _data(check, answer)
    if not verdict["valid"]:
        raise AssertionError(f"the log does not verify: {verdict}")
    put(rows, SERVER, RATE, verdict["record_count"] / taken)


def _answers(server: Server, ping: Line, check: Line) -> bytes | None:
    """Read until the ping is answered; the answer to the check, if it came before."""
    found = None
    while True:
        line = server.next_line()
        if ping.answered_by(line):
            return found
        if check.answered_by(line):
            found = line


def _seal(server: Server, rows: Rows) -> None:
    line, start = call("merkle_finalize", {"session_id": stores.LARGE}), time.perf_counter()
    answer = server.ask(line)
    put(rows, SERVER, SEAL, time.perf_counter() - start)
    _data(line, answer)


def _data(line: Line, answer: bytes) -> JSON:
    (result,) = results([line], [answer])
    data: JSON = result["structuredContent"]["data"]
    return data
