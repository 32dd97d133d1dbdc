"""stdout belongs to the protocol: every byte from exec to exit, whatever else is printed.

Two servers: the real one, in an interpreter where every package prints while it is imported; and
one with tools that print in all the ways of tests.support.noisy_server, in every lane.
"""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.support.client import COLIBRI, JSON, environment, execute_raw
from tests.support.noisy_server import NOISE
from torture import ControlFailed, Lab, Trial, Violation

NOISY = (sys.executable, "-m", "tests.support.noisy_server")
# Python runs this first: packages outside the standard library then print when imported.
TALKATIVE = """\
import os, sys
def talk(event, arguments):
    if event == "import" and arguments[0].split(".")[0] in ("apsw", "msgspec", "yaml", "_yaml"):
        print("noise", flush=True)
        os.write(1, b"noise\\n")
sys.addaudithook(talk)
"""
INITIALIZE: JSON = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "torture", "version": "1"},
}
REAL: list[tuple[str, JSON]] = [
    ("task_create", {"title": "quietly"}),
    ("task_list", {}),
    ("skill_list", {}),
    ("task_create", {"title": 7}),
    ("no_such_tool", {}),
]


def _life(project: Path, program: Sequence[str], calls: list[tuple[str, JSON]]) -> Counter[str]:
    """All calls at once, then the end of input; raises Violation."""
    messages: list[JSON] = [{"id": "hello", "method": "initialize", "params": INITIALIZE}]
    for id, (tool, arguments) in enumerate(calls):
        params = {"name": tool, "arguments": arguments}
        messages.append({"id": id, "method": "tools/call", "params": params})
    env = environment()
    done = execute_raw(
        program,
        cwd=project,
        env={**env, "PYTHONPATH": f"{project}:{env['PYTHONPATH']}"},
        input=b"".join(json.dumps({"jsonrpc": "2.0", **one}).encode() + b"\n" for one in messages),
    )
    if done.returncode:
        raise Violation(f"the server ended with {done.returncode}: {done.stderr.decode()[-300:]}")
    _check(done.stdout, [message["id"] for message in messages])
    lines = done.stdout.count(b"\n")
    return Counter({"lines": lines, "noises kept away": done.stderr.count(b"noise")})


def _check(stdout: bytes, ids: list[object]) -> None:
    """Nothing but whole answers, one for each id."""
    if not stdout.endswith(b"\n"):
        raise Violation(f"the last line has no end: {stdout[-80:]!r}")
    answered: list[object] = []
    for line in stdout.split(b"\n")[:-1]:
        try:
            message = json.loads(line)
        except ValueError as problem:
            raise Violation(f"a line that is not JSON: {line[:80]!r}") from problem
        if message.get("jsonrpc") != "2.0" or ("result" in message) == ("error" in message):
            raise Violation(f"a line that is no answer: {line[:80]!r}")
        answered.append(message["id"])
    if sorted(map(str, answered)) != sorted(map(str, ids)):
        raise Violation(f"{len(answered)} answers to {len(ids)} requests")


def _noises(lab: Lab) -> list[tuple[str, JSON]]:
    """Every noise in every lane, in any order."""
    calls: list[tuple[str, JSON]] = [
        (f"noise_{lane}", {"kind": kind}) for kind in NOISE for lane in ("probe", "read", "write")
    ]
    lab.random.shuffle(calls)
    return calls


def control(lab: Lab) -> str:
    """A server that does not redirect stdout."""
    try:
        _life(lab.fresh("leaky"), (*NOISY, "shares-stdout"), _noises(lab))
    except Violation as problem:
        return f"a server that shares stdout is caught ({problem})"
    raise ControlFailed("a server that shares stdout with everybody was not caught")


def run(lab: Lab) -> dict[str, object]:
    """Runs of both servers."""
    seen: Counter[str] = Counter()
    for number in range(lab.count):
        project = lab.fresh(f"real-{number}")
        (project / "sitecustomize.py").write_text(TALKATIVE)
        quiet = _life(project, COLIBRI, REAL)
        loud = _life(lab.fresh(f"noisy-{number}"), NOISY, _noises(lab))
        for counts, least in ((quiet, 6), (loud, len(_noises(lab)))):
            if counts["noises kept away"] < least:
                raise Violation("there was less noise than there must have been")
        seen += quiet + loud
        lab.say(f"{number + 1} of {lab.count} lives")
    return {**seen, "lines that are not JSON-RPC": 0}


TRIAL = Trial(
    name="stdout",
    title=f"{len(NOISE)} kinds of noise on stdout, in imports and in the tools of every lane",
    claim="every line from the first byte to the last is an answer, one for each request",
    unit="lives of 2 servers",
    quick=2,
    full=50,
    control=control,
    run=run,
)
