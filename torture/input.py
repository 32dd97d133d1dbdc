"""Hostile input: to the parser and the validation in this process, and to the real server.

Mutations are blind: made from good lines, a list of tokens and chance. If atheris is installed,
`python -m tests.support.fuzz_target` searches further, guided by coverage.
"""

import json
import queue
import re
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from colibri.server import lines, wire
from tests.support.client import COLIBRI, JSON, Server
from tests.support.faulty import program, take_any_json
from tests.support.fuzz_target import Target
from tests.support.hostile_lines import (
    CALLS,
    MAX_LINE,
    MIB,
    SESSION,
    answers,
    dump,
    mutated,
    request,
)
from torture import ControlFailed, Lab, Trial, Violation

CREDULOUS = program("takes-any-json")
PER_MESSAGE = 50  # inputs to the parser for each message to the server
CONTROL_INPUTS = 2_000
SECONDS = 1.0  # limit for one line
RSS_MIB = 256
STREAM_MIB = 64  # at least; a full run streams 1 GiB
GROWTH_MIB = 32


def _seeds(random: Random) -> list[bytes]:
    return [dump(request(random, number), random) for number in range(200)]


def _parser(random: Random, count: int) -> float:
    """Send so many lines through Wire and validation; returns the slowest time in seconds."""
    target, good, slowest = Target(), _seeds(random), 0.0
    for _ in range(count):
        line = mutated(random.choice(good), random, random.choice(good))
        began = time.perf_counter()
        try:
            target.take(line)
        except Exception as problem:
            raise Violation(f"{type(problem).__name__}: {problem} for {line[:200]!r}") from problem
        slowest = max(slowest, time.perf_counter() - began)
        if slowest > SECONDS:
            raise Violation(f"{slowest:.1f} s for {line[:200]!r}")
        if random.random() < 0.01:
            good[random.randrange(len(good))] = line  # a bad line may be mutated further
            if len(line) > 20_000:
                good = _seeds(random)
    return slowest


class Client:
    """Sends lines to a server; each must get the right answer, once and soon."""

    def __init__(self, server: Server, random: Random) -> None:
        self.server = server
        self.random = random
        self.slowest = 0.0
        self.seen: Counter[str] = Counter()
        self._number = 0

    def send(self, *lines: bytes) -> None:
        """Send lines at once, and a ping; exactly their answers must come. Raises Violation."""
        self._number += 1
        ping = f"ping {self._number}"
        last = json.dumps({"jsonrpc": "2.0", "id": ping, "method": "ping"}).encode()
        wanted = Counter(str(id) for line in (*lines, last) for id in answers(line))
        began = time.perf_counter()
        try:
            self.server.send(b"".join(line + b"\n" for line in (*lines, last)))
            while wanted.total():
                message = self.server.receive(timeout=10 * SECONDS)
                if message is None:
                    raise Violation(f"the server has ended after {lines[0][:200]!r}")
                self._take(message, wanted, lines)
        except (OSError, ValueError) as problem:
            raise Violation(f"{problem} after {lines[0][:200]!r}") from problem
        except queue.Empty as problem:
            raise Violation(f"no answer to {lines[0][:200]!r}: {dict(+wanted)}") from problem
        took = time.perf_counter() - began
        self.slowest = max(self.slowest, took)
        if took > SECONDS:
            raise Violation(f"{took:.1f} s for {len(lines[0])} bytes: {lines[0][:200]!r}")
        self.seen["messages"] += len(lines)

    def _take(self, message: JSON, wanted: Counter[str], lines: Sequence[bytes]) -> None:
        id = str(message.get("id"))
        if wanted[id] <= 0:
            raise Violation(f"an answer too many: {str(message)[:200]} after {lines[0][:200]!r}")
        if ("result" in message) == ("error" in message):
            raise Violation(f"no answer: {str(message)[:200]}")
        wanted[id] -= 1
        if not id.startswith("ping"):
            self.seen["errors" if "error" in message else "results"] += 1

    def one(self) -> None:
        """Send a message of a random kind."""
        self._number += 1
        kind = self.random.random()
        line = dump(request(self.random, self._number), self.random)
        if kind < 0.45:
            self.send(line)
        elif kind < 0.75:
            self.send(mutated(line, self.random, line))
        elif kind < 0.85:
            self.send(self.random.randbytes(self.random.randint(1, 400)).replace(b"\n", b"\r"))
        elif kind < 0.90:
            self._twice()
        elif kind < 0.995:
            self.send(dump(self._odd(), self.random))
        else:
            self.send(self._huge())

    def _twice(self) -> None:
        """Two requests with the same id: both are answered, one perhaps with a refusal."""
        call = {"name": "task_create", "arguments": CALLS["task_create"]}
        message = {"jsonrpc": "2.0", "id": self._number, "method": "tools/call", "params": call}
        self.send(*[json.dumps(message).encode()] * 2)

    def _odd(self) -> Any:
        """Batches, notifications, responses, bare values."""
        message = request(self.random, self._number)
        silent = {name: value for name, value in message.items() if name != "id"}
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
        return self.random.choice(
            (
                [message, message],
                [],
                silent,
                {"jsonrpc": "2.0", "id": self._number, "result": {}},
                {"jsonrpc": "2.0", "id": self._number, "result": {}, "error": {}},
                {**cancel, "params": {"requestId": self.random.choice((1, "x", None, []))}},
                {**message, "id": self.random.choice((None, True, 1.5, [], {}))},
                self.random.choice((7, None, "ping", True)),
            )
        )

    def _huge(self) -> bytes:
        """A line up to the limit or beyond it."""
        size = self.random.choice(
            (MIB, MAX_LINE - 300, MAX_LINE - 1, MAX_LINE, MAX_LINE + 1, 5 * MIB)
        )
        filling = self.random.choice((b"x", b"[", b"[],", b'\\"', b",", b"\xff", b"\\u0041", b"{"))
        head = b'{"jsonrpc":"2.0","id":"huge","method":"tools/call","params":{"name":"task_create",'
        head += b'"arguments":{"title":"'
        self.seen["huge lines"] += 1
        return (head + filling * (size // len(filling)))[: size - 4] + b'"}}}'


def _live(project: Path, program: Sequence[str], lab: Lab, count: int) -> Counter[str]:
    """Send so many messages to one server; raises Violation."""
    with Server(project, program) as server:
        server.call("audit_session_start", session_id=SESSION, intent="hold")
        client = Client(server, lab.random)
        while client.seen["messages"] < count:
            client.one()
            if client.seen["messages"] % 100 == 0:
                lab.say(f"{client.seen['messages']:,} of {count:,} messages")
        client.seen["worst ms"] = round(client.slowest * 1000)
        client.seen["most memory, MiB"] = _peak(server)
        if client.seen["most memory, MiB"] >= RSS_MIB:
            raise Violation(f"the server took {client.seen['most memory, MiB']} MiB")
        if code := server.close():
            raise Violation(f"the server ended with {code}: {server.stderr[-300:]}")
    return client.seen


def _peak(server: Server) -> int:
    """The server's peak memory in MiB; 0 if the system does not report it."""
    status = Path(f"/proc/{server.process.pid}/status")
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
    return int(found[1]) // 1024 if found else 0


def _endless(project: Path, mebibytes: int) -> int:
    """Send a line that does not end; returns the memory it took, in MiB. Raises Violation."""
    with Server(project, COLIBRI) as server:
        server.call("task_list")
        before = _peak(server)
        for _ in range(mebibytes):
            server.send(b"x" * MIB)
        server.send(b"\n")
        message = server.receive()
        if not message or message["error"]["code"] != wire.PARSE_ERROR:
            raise Violation(f"a line of {mebibytes} MiB was answered by {message}")
        server.data("task_list")
        grown = _peak(server) - before
    if grown > GROWTH_MIB:
        raise Violation(f"a line of {mebibytes} MiB took {grown} MiB of memory")
    return grown


def control(lab: Lab) -> str:
    """A server that parses like json.loads, in this process and as a real server."""
    take_any_json()
    try:
        _parser(lab.random, CONTROL_INPUTS)
    except Violation as problem:
        caught = f"json.loads in place of the parser is caught ({str(problem).partition(':')[0]})"
    else:
        raise ControlFailed("a parser that raises anything was not caught")
    finally:
        wire.parse = lines.parse  # type: ignore[attr-defined]
    try:
        _live(lab.fresh("credulous"), CREDULOUS, lab, CONTROL_INPUTS)
    except Violation:
        return f"{caught}, also in a live server"
    raise ControlFailed("a live server that believes json.loads was not caught")


def run(lab: Lab) -> dict[str, object]:
    """The parser, the server, and an endless line."""
    inputs = lab.count * PER_MESSAGE
    lab.say(f"{inputs:,} inputs to the parser")
    slowest = _parser(lab.random, inputs)
    seen = _live(lab.fresh("live"), COLIBRI, lab, lab.count)
    mebibytes = max(STREAM_MIB, 1024 * lab.count // TRIAL.full)
    grown = _endless(lab.fresh("endless"), mebibytes)
    return {
        "inputs to the parser": inputs,
        "worst of them ms": round(slowest * 1000),
        **seen,
        f"MiB of memory for {mebibytes} MiB without a line break": grown,
        "crashes": 0,
        "unanswered": 0,
    }


TRIAL = Trial(
    name="input",
    title="hostile lines: binary, nested, doubled, huge, almost right; 50 more each for the parser",
    claim="one answer for each request within 1 s, no crash, less than 256 MiB",
    unit="live messages",
    quick=600,
    full=20_000,
    minutes=3,
    alone=True,
    control=control,
    run=run,
)
