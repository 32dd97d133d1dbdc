"""A log written by real servers: sessions of two processes that claim tasks, take them over, resume
in the other process, seal, and repeat calls; and the same log as drafts, ready to be forged.
"""

import base64
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from time import sleep
from typing import Any

from tests.support.client import COLIBRI, Server
from tests.support.program import colibri
from tests.vectors.builder import (
    ZEROS,
    Draft,
    Late,
    Log,
    Made,
    Object,
    bundle_from,
    headers,
    merkle,
)

MINUTES = "0.0003"  # 18 ms, after which a claim expires
STATES = ("INIT", "GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY", "DONE")
SESSIONS = ("S-0", "S-1", "S-2")


def write_log(project: Path, chance: Random, calls: int) -> Object:
    """The bundle of a log of so many calls, including refusals."""
    with ExitStack() as stack:
        started = (Server(project, COLIBRI, COLIBRI_CLAIM_MINUTES=MINUTES) for _ in range(2))
        servers = [stack.enter_context(server) for server in started]
        _write(servers, chance, calls)
        for server in servers:
            server.close()
    return exported(project, "--all")


def _write(servers: list[Server], chance: Random, calls: int) -> None:
    goes_on = dict(zip(SESSIONS, (*servers, servers[0]), strict=True))
    for session, server in goes_on.items():
        server.data("audit_session_start", session_id=session, intent="work", agent_id=session)
    for _ in range(3):
        servers[0].data("task_create", title="a task")
    _do_all_that_is_new(goes_on)
    for number in range(calls):
        tool, arguments = chance.choice(WAYS)(chance)
        if number in (calls // 2, calls - 3):
            tool, arguments = "merkle_finalize", {"session_id": SESSIONS[number == calls // 2]}
        server, is_odd = goes_on[arguments["session_id"]], chance.random() < 0.15
        if "resume" in arguments or is_odd:
            server = chance.choice(servers)
        done = server.call(tool, **arguments)
        if "resume" in arguments and not done["isError"]:
            goes_on[arguments["session_id"]] = server
        if chance.random() < 0.3:
            sleep(0.02)


def _do_all_that_is_new(goes_on: dict[str, Server]) -> None:
    """Make sure that a log has each of these at least once."""
    for session in SESSIONS[:2]:
        goes_on[session].data("task_update", task_id="T-0001", session_id=session, claim=True)
        sleep(0.05)
    for _ in range(2):
        goes_on["S-2"].data("task_create", title="sent twice", key="z")
    resumed = {"session_id": "S-2", "resume": True, "brief": False}
    goes_on["S-2"].data("audit_session_start", **resumed)


def exported(project: Path, *scope: str) -> Object:
    code, out, err = colibri(project, "export", *scope, "-o", "-")
    assert code == 0, err
    return bundle_from(out.encode())


def _mine(chance: Random) -> Object:
    return {"session_id": chance.choice(SESSIONS)}


def _task(chance: Random) -> Object:
    return {"task_id": f"T-000{chance.randrange(1, 5)}", **_mine(chance)}


def _thought(chance: Random) -> Object:
    return {"type": "decision", "content": chance.choice(["so", "für später", "as\nsaid"])}


def _key(chance: Random) -> Object:
    return {"key": chance.choice("abc")} if chance.random() < 0.6 else {}


def _steps(chance: Random) -> Object:
    first = chance.choice([1, 1, 1, 2, 3, 4, 5])
    return {"status": [*STATES[first : first + chance.randrange(1, 6)]]}


Call = tuple[str, Object]


def _work(chance: Random) -> Call:
    thought = {"thought": _thought(chance)} if chance.random() < 0.6 else {}
    return "task_update", {**_task(chance), **_steps(chance), **thought}


def _claim(chance: Random) -> Call:
    return "task_update", {**_task(chance), "claim": chance.random() < 0.8}


def _edit(chance: Random) -> Call:
    what = chance.choice([{"priority": "high"}, {"title": "another"}, {"status": "CANCELLED"}])
    return "task_update", {**_task(chance), **what}


def _next(chance: Random) -> Call:
    return "task_next_actions", {**_mine(chance), "claim": chance.random() < 0.8}


def _create(chance: Random) -> Call:
    return "task_create", {"title": "a task", **_key(chance), **_mine(chance)}


def _think(chance: Random) -> Call:
    return "thought_record", {**_thought(chance), **_task(chance), **_key(chance)}


def _intent(chance: Random) -> Object:
    return {"intent": "go on"} if chance.random() < 0.5 else {}


def _resume(chance: Random) -> Call:
    return "audit_session_start", {
        **_mine(chance),
        "resume": True,
        "brief": False,
        **_intent(chance),
    }


OFTEN = {_work: 5, _claim: 4, _next: 2, _create: 2, _think: 3, _resume: 1, _edit: 1}
WAYS = [way for way, often in OFTEN.items() for _ in range(often)]


def drafts_of(bundle: Object) -> Log:
    """The log before it was hashed; hashes of other records are recomputed."""
    log = Log()
    for header in headers(bundle):
        payload = base64.b64decode(bundle["payloads"][str(header["seq"])]["body"])
        names = (header["session"], header["task"], header["agent"])
        draft = Draft(header["kind"], header["call"], json.loads(payload), *names)
        draft.body |= dict(_hashes(draft))
        log.drafts.append(draft)
    return log


def _hashes(draft: Draft) -> Iterator[tuple[str, Late]]:
    def leaves(made: Made) -> list[bytes]:
        return [made.leaves[place] for place in made.thoughts(draft.session or "")]

    if draft.kind == "thought":
        yield "prev", lambda made: leaves(made)[-1].hex() if leaves(made) else ZEROS
    if draft.kind == "session.seal":
        yield "root", lambda made: merkle(leaves(made)).hex()


def counted(log: Log) -> dict[str, Any]:
    """Counts of the claims, take-overs, resumptions and repeats in a log."""
    tasks = [one.body for one in log.drafts if one.kind == "task"]
    return {
        "claims": sum("holder" in body["set"] for body in tasks),
        "take-overs": sum("taken" in body for body in tasks),
        "resumptions": sum(one.kind == "session.resume" for one in log.drafts),
        "repeats": sum(one.body.get("repeats") is not None for one in log.drafts),
    }
