"""The clock and the locale: a server whose clock jumps, in odd time zones and without UTF-8.

Order comes from the ledger's sequence numbers, never from a clock. So whatever the clock says,
lists, log and proofs must equal those of a server with a correct clock, except for the times.
"""

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.client import COLIBRI, JSON, Server, environment, execute_raw
from tests.support.ledger_reader import reading
from torture import ControlFailed, Lab, Trial, Violation

MISDATED = (sys.executable, "-m", "tests.support.wrong_clock")
VERIFIER = (sys.executable, "-m", "colibri_verify")
THOUGHTS = 12
TASKS = 6
TITLES = ("plain", "für später", "日本語", "🌊 \u0130\u0131", "e\u0301")
ZONES = ("UTC", "Pacific/Kiritimati", "America/St_Johns", "XYZ-13:37", ":nowhere", "EST5EDT")
LOCALES: tuple[dict[str, str], ...] = (
    {"LC_ALL": "C"},
    {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"LC_ALL": "C.UTF-8"},
    {"LC_ALL": "no_SUCH.locale"},
    {"LC_ALL": "", "LANG": "tr_TR.UTF-8"},
    {"PYTHONIOENCODING": "latin-1", "LC_ALL": "C"},
)
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
ORDER = "SELECT seq, kind, session, task FROM ledger ORDER BY seq"


def _round(project: Path, programs: Sequence[Sequence[str]], env: JSON) -> JSON:
    """Two server runs, one session each; returns the results without the times."""
    for life, program in enumerate(programs):
        with Server(project, program, **env) as server:
            _live(server, f"S-{life}")
            told = {
                "tasks": server.data("task_list")["tasks"],
                "thoughts": server.data("thought_record_list", limit=100)["records"],
                "next": server.data("task_next_actions"),
            }
            if not server.data("audit_verify_chain")["valid"]:
                raise Violation("the chain is broken")
            if code := server.close():
                raise Violation(f"the server ended with {code}")
    _verify_elsewhere(project, env)
    with reading(server.database) as db:
        told["log"] = [list(row) for row in db.execute(ORDER)]
    return {name: _timeless(value) for name, value in told.items()}


def _text(number: int) -> str:
    return f"{TITLES[number % len(TITLES)]} {number}"


def _live(server: Server, session: str) -> None:
    """Every call names its session: which one a call without a name belongs to depends on time."""
    server.data("audit_session_start", session_id=session, intent=TITLES[1])
    for number in range(TASKS):
        server.data("task_create", session_id=session, title=_text(number))
    for number in range(THOUGHTS):
        content = _text(number)
        server.data("thought_record", session_id=session, type="plan", content=content)
    server.data("merkle_finalize", session_id=session)


def _verify_elsewhere(project: Path, env: JSON) -> None:
    """Verify the evidence under another clock, including the proof of a thought."""
    with reading(project / "data" / "colibri.db") as db:
        seq = db.execute("SELECT max(seq) FROM thoughts").get
    command = [sys.executable, "-m", "colibri", "export"]
    for what in (["--all"], ["--session", "S-0"], ["--thought", f"R-{seq}"]):
        _run(project, env, *command, *what, "--force", "-o", "evidence.json")
        _run(project, {}, *VERIFIER, "evidence.json")


def _run(project: Path, env: JSON, *command: str) -> None:
    done = execute_raw(command, cwd=project, env=environment(**env))
    if done.returncode:
        raise Violation(f"{' '.join(command[2:4])}: {(done.stdout + done.stderr)[-300:]!r}")


def _timeless(value: Any) -> Any:
    """A value without times and values derived from them; Violation if a time is malformed."""
    if isinstance(value, list):
        return [_timeless(item) for item in value]
    if not isinstance(value, dict):
        return value
    for name, text in value.items():
        if name.endswith("_at") and text is not None and not TIME.fullmatch(text):
            raise Violation(f"a time is told as {text}")
    hashes = ("hash", "prev_hash")
    kept = {name: item for name, item in value.items() if not name.endswith("_at")}
    return {name: _timeless(item) for name, item in kept.items() if name not in hashes}


def _compare(lab: Lab, name: str, expected: JSON, *faults: str) -> None:
    zone, locale = lab.random.choice(ZONES), lab.random.choice(LOCALES)
    env = {"TZ": zone, **locale, "WRONG_CLOCK": str(lab.random.random())}
    wrong = (*MISDATED, *faults)
    programs = lab.random.choice(((wrong, wrong), (COLIBRI, wrong), (wrong, COLIBRI)))
    got = _round(lab.fresh(name), programs if not faults else (wrong, wrong), env)
    for what, value in expected.items():
        if got[what] != value:
            raise Violation(f"{what} differ with {json.dumps(env)}")


def control(lab: Lab) -> str:
    """A server that sorts by time."""
    expected = _round(lab.fresh("right"), (COLIBRI, COLIBRI), {})
    try:
        _compare(lab, "by-clock", expected, "sorts-by-time")
    except Violation as problem:
        return f"a server that sorts by time is caught ({str(problem).partition(' with')[0]})"
    raise ControlFailed("a server that sorts its thoughts by time was not caught")


def run(lab: Lab) -> dict[str, object]:
    """Rounds, each compared with a server that has a correct clock."""
    expected = _round(lab.fresh("right"), (COLIBRI, COLIBRI), {})
    for number in range(lab.count):
        _compare(lab, f"wrong-{number}", expected)
        lab.say(f"{number + 1} of {lab.count} rounds")
    return {"records": len(expected["log"]) * lab.count, "out of order": 0, "proofs that fail": 0}


TRIAL = Trial(
    name="clock",
    title="a clock that jumps between 1970 and 9998, odd time zones, locales without UTF-8",
    claim="order, lists, log and proofs are those of a server whose clock is right",
    unit="rounds",
    quick=2,
    full=20,
    control=control,
    run=run,
)
