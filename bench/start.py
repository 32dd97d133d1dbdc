"""Cold start: process start to `tools/list` answered, beside `python -c pass`, in one run.

    python bench/start.py [ROUNDS]

The contestants take turns, so that a slow moment of the machine hits all of them. Bar: the server
takes at most 4 times what `python -c pass` takes (medians).
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

BAR = 4.0
# As scripts/colibri starts it; the installed console script does the same.
PROGRAM = (sys.executable, "-I", "-c", "from colibri.__main__ import main; main()")
_CLIENT = {"name": "bench", "version": "1"}
_INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": _CLIENT}


def bare() -> float:
    """`python -c pass`, start to end."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.perf_counter() - start


def server(method: str, params: dict[str, object] | None = None) -> Callable[[], float]:
    """`colibri serve`, start to the answer to one request after the handshake."""

    def run() -> float:
        with tempfile.TemporaryDirectory() as project:
            start = time.perf_counter()
            process = subprocess.Popen(
                [*PROGRAM, "serve"],
                cwd=project,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            _ask(process, 1, "initialize", _INITIALIZE)
            if method != "initialize":
                _ask(process, 2, method, params)
            taken = time.perf_counter() - start
            process.communicate()
            return taken

    return run


def _ask(
    process: subprocess.Popen[bytes], id: int, method: str, params: dict[str, object] | None
) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}
    process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()
    answer = json.loads(process.stdout.readline())
    assert answer["id"] == id


def main() -> None:
    """Run and print a table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 11
    contestants: dict[str, Callable[[], float]] = {
        "python -c pass": bare,
        "colibri: initialize": server("initialize"),
        "colibri: tools/list": server("tools/list"),
        "colibri: server_ping": server("tools/call", {"name": "server_ping"}),
        "colibri: first recorded call": server("tools/call", {"name": "no_such_tool"}),
    }
    for run in contestants.values():
        run()  # warm the file cache and the byte code
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, run in contestants.items():
            times[name].append(run() * 1000)
    floor = statistics.median(times["python -c pass"])
    print(f"{'median of ' + str(rounds):30} {'ms':>7} {'min':>7} {'max':>7} {'ratio':>6}")
    for name, taken in times.items():
        median = statistics.median(taken)
        row = f"{name:30} {median:7.1f} {min(taken):7.1f} {max(taken):7.1f} {median / floor:6.2f}"
        print(row)
    ratio = statistics.median(times["colibri: tools/list"]) / floor
    print(f"bar: tools/list at most {BAR} times python -c pass: {ratio:.2f}")


if __name__ == "__main__":
    main()
