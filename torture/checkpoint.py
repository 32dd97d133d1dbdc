"""Checkpoint: EIO whenever the write-ahead log is copied back into the database file.

strace makes every write to the database file fail; writes to its log succeed. The server must
report that and stop writing; afterwards a normal server finds everything that was acknowledged.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

from tests.support.client import COLIBRI, JSON, Server
from tests.support.faulty import program
from tests.support.ledger_reader import condition, missing
from torture import ControlFailed, Lab, Trial, Violation

SILENT = program("hides-checkpoints")
MOST = 200  # calls: the log reaches 1,000 pages long before
LARGE = "because " * 5_000


def needs() -> str:
    """Why it cannot run here, or ""."""
    return "" if shutil.which("strace") else "strace is not installed"


def _try(project: Path, program: Sequence[str]) -> int:
    """How many calls were acknowledged; raises Violation."""
    with Server(project, COLIBRI) as server:
        server.data("audit_session_start", session_id="S-1", intent="be hurt")
        server.close()
    file = str(project / "data" / "colibri.db")
    strace = ["strace", "-f", "-o", str(project / "strace.txt"), "-e", "trace=pwrite64"]
    strace += ["-e", "inject=pwrite64:error=EIO", "-P", file]
    receipts: list[JSON] = []
    with Server(project, [*strace, *program]) as server:
        for _ in range(MOST):
            result = server.call("thought_record", session_id="S-1", type="plan", content=LARGE)
            if result["isError"]:
                break
            receipts.append(result["_meta"]["colibri/receipt"])
        if (state := condition(server)) != ("SAFE_MODE", "io"):
            raise Violation(f"after {len(receipts)} calls the server is {state}")
        server.close()
    with Server(project, COLIBRI) as server:
        server.data("task_create", title="unhurt")
        server.close()
    if lost := missing(server.database, receipts):
        raise Violation(f"{len(lost)} acknowledged calls are lost")
    return len(receipts)


def control(lab: Lab) -> str:
    """A server that hides the failure."""
    try:
        _try(lab.fresh("silent"), SILENT)
    except Violation as problem:
        return f"a server that hides it is caught ({problem})"
    raise ControlFailed("a server that hides that its log cannot be copied back was not caught")


def run(lab: Lab) -> dict[str, object]:
    """Round after round."""
    acknowledged = 0
    for number in range(lab.count):
        acknowledged += _try(lab.fresh(f"project-{number}"), COLIBRI)
        lab.say(f"{number + 1} of {lab.count} rounds")
    return {
        "acknowledged calls": acknowledged,
        "lost": 0,
        "stopped writing and reported why": lab.count,
    }


TRIAL = Trial(
    name="checkpoint",
    title="EIO at every write into the database file, while its write-ahead log grows",
    claim="the server stops writing and says so, and nothing acknowledged is lost",
    unit="rounds",
    quick=1,
    full=50,
    minutes=3,
    control=control,
    run=run,
    needs=needs,
)
