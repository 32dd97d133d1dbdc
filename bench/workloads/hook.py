"""`colibri hook` from start to end, beside an interpreter that only starts and ends.

The ledger is large, and each run reports another tool call of Claude Code. Where the ledger cannot
be written, because a newer Colibri has migrated it, the deed goes to the spool.
"""

import json
import os
import resource
import subprocess
import tempfile
import time
from pathlib import Path

from bench import install, stores
from bench.contestants import PASS, Contestant, interpreters
from bench.stats import Rows, put
from bench.workloads import Plan, start, turns
from colibri.store.sqlite import SCHEMA

CALL, MODULE, BEGIN, SPOOLED = (
    "colibri hook, a tool call",
    "the same, by python -m",
    "colibri hook, a session's start",
    "colibri hook, spooled",
)
ENDED, WORKED = start.ENDED, "processor time"
COMMANDS = 10  # that hosts have reported before, for each session of the ledger
_HEADER_VERSION = 60  # where a database has its schema version


def run(plan: Plan, contestants: list[Contestant]) -> Rows:
    """Milliseconds, and of processor time."""
    rows: Rows = {}
    python = install.colibri()
    with tempfile.TemporaryDirectory(prefix="bench-") as large, _newer() as newer:
        script = [_script(python, Path(large)), "hook"]
        size = plan.verify_records, plan.verify_records // 10, COMMANDS
        stores.put(stores.log, Path(large), *size)
        runs = {
            PASS: (list(interpreters()[PASS]), large, "PostToolUse"),
            CALL: (script, large, "PostToolUse"),
            MODULE: ([str(python), "-m", "colibri", "hook"], large, "PostToolUse"),
            BEGIN: (script, large, "SessionStart"),
            SPOOLED: (script, newer, "PostToolUse"),
        }
        for one in runs.values():
            _timed(*one, "warm")
        for number, name in turns(list(runs), plan.hook_rounds):
            taken, worked = _timed(*runs[name], f"{name} {number}")
            put(rows, name, ENDED, taken)
            put(rows, name, WORKED, worked)
    return rows


def _script(python: Path, folder: Path) -> str:
    """The program as installers make it."""
    path = folder / "colibri"
    lines = (f"#!{python}", "import sys", "from colibri.__main__ import main", "sys.exit(main())")
    path.write_text("\n".join(lines) + "\n")
    path.chmod(0o755)
    return str(path)


def _newer() -> "tempfile.TemporaryDirectory[str]":
    """A project whose ledger has a newer schema."""
    folder = tempfile.TemporaryDirectory(prefix="bench-")
    path = stores.put(stores.log, Path(folder.name), 100, 10)
    with path.open("r+b") as file:
        file.seek(_HEADER_VERSION)
        file.write((SCHEMA + 1).to_bytes(4, "big"))
    return folder


def _timed(command: list[str], project: str, event: str, use: str) -> tuple[float, float]:
    """Milliseconds from start to end, and how many of them a processor worked."""
    report = {
        "hook_event_name": event,
        "session_id": "bench",
        "transcript_path": "/home/user/.claude/projects/bench.jsonl",
        "cwd": project,
        "tool_name": "Bash",
        "tool_use_id": use,
        "tool_input": {"command": "make test", "description": "Run the tests"},
        "tool_response": {"stdout": "ok\n" * 100, "stderr": "", "interrupted": False},
        "duration_ms": 12,
    }
    before, began = _worked(), time.perf_counter()
    subprocess.run(
        command,
        input=json.dumps(report).encode(),
        cwd=project,
        env={**_environment(), "CLAUDE_PROJECT_DIR": project},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    taken = time.perf_counter() - began
    worked = _worked() - before
    return taken * 1000, worked * 1000


def _environment() -> dict[str, str]:
    """Our environment without Python's variables: hosts set none, and its caches are used."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def _worked() -> float:
    """Seconds of processor time of all programs that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
