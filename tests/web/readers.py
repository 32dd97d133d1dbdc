"""A session that readers are asked about, played through real servers: two agents, a second
attempt, refused moves, a decision with alternatives, an erased text, and work of others before it
and meanwhile."""

import sys
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.client import COLIBRI, Server, execute_raw
from tests.support.program import colibri

TO_APPLY = ["GATHER", "ANALYZE", "PLAN", "APPLY"]
SESSION = "fix-receipt-tax"
INTENT = (
    "Receipts still show the old tax rate. Print the 2027 rate, and show that last week's receipts"
    " come out right."
)
DECISION = (
    "Read the rate from the table when the receipt is printed. Rejected: writing 2027's rate into"
    " the code, because it breaks again next year; and a daily cache, because three rates do not"
    " need it."
)
REASON = "a customer's name had slipped in"


class Asked(NamedTuple):
    """The report, and the root that the agent was given."""

    page: Path
    root: str


def play(project: Path) -> Asked:
    with Server(project, COLIBRI) as bea:
        _before(bea)
    with Server(project, COLIBRI) as ada, Server(project, COLIBRI) as bea:
        _start(ada, SESSION, INTENT, "ada")
        _create(ada, "Print last week's receipts again", "T-0002")
        _create(ada, "Tell support what changes")
        _think(ada, "plan", "First the rate itself, then the receipts of last week.")
        _refused(ada, task_id="T-0003", status=TO_APPLY)
        _start(bea, "support-notes", "Answer what support asked for", "bea")
        bea.data("task_update", task_id="T-0004", status="GATHER")
        _refused(ada, task_id="T-0004", status="GATHER")
        secret = _work(ada)
        done = {"type": "decision", "content": "One page in the handbook is enough."}
        bea.data("task_update", task_id="T-0004", status=TO_APPLY[1:], thought=done)
        bea.data("task_update", task_id="T-0004", status=["VERIFY", "DONE"])
        root = ada.data("merkle_finalize", session_id=SESSION)["root"]
    assert colibri(project, "erase", secret, "--reason", REASON, "--yes")[0] == 0
    command = [sys.executable, "-m", "colibri", "report", SESSION, "-o", "report.html"]
    execute_raw(command, cwd=project, check=True)
    return Asked(project / "report.html", root)


def _before(bea: Server) -> None:
    _start(bea, "collect-rates", "Know the tax rates of 2027", "bea")
    _create(bea, "Collect the tax rates of 2027")
    _create(bea, "Print the rate of 2027 on receipts", "T-0001")
    why = {"type": "decision", "content": "Take the rates from the ministry's list."}
    bea.data("task_update", task_id="T-0001", status=TO_APPLY, thought=why)
    bea.data("task_update", task_id="T-0001", status=["VERIFY", "DONE"])
    bea.data("merkle_finalize", session_id="collect-rates")


def _work(ada: Server) -> str:
    """T-0002, done in two attempts, and T-0003, begun; the thought to be erased."""
    why = {"type": "decision", "content": DECISION}
    ada.data("task_update", task_id="T-0002", status=TO_APPLY, thought=why)
    ada.data("task_update", task_id="T-0002", status="VERIFY")
    back = {"type": "reflection", "content": "Refunds come out one cent too low: they round down."}
    ada.data("task_update", task_id="T-0002", status="GATHER", thought=back)
    secret = _think(ada, "analysis", "The refund of Mrs Miller, 18.10, is printed as 18.09.")
    review = "Only negative amounts are wrong: the old code cuts them off instead of rounding."
    _think(ada, "analysis", review, agent_id="carl")
    again = {"type": "decision", "content": "Round refunds like sales: half a cent goes up."}
    ada.data("task_update", task_id="T-0002", status=TO_APPLY[1:], thought=again)
    proof = {"type": "reflection", "content": "All 312 receipts of last week come out right."}
    ada.data("task_update", task_id="T-0002", status=["VERIFY", "DONE"], thought=proof)
    ada.data("task_update", task_id="T-0003", status="GATHER")
    open_end = "The shop's printer is out of paper until Monday, so this stays open."
    _think(ada, "plan", open_end, task_id="T-0003")
    return secret


def _start(server: Server, session: str, intent: str, agent: str) -> None:
    server.data("audit_session_start", session_id=session, intent=intent, agent_id=agent)


def _create(server: Server, title: str, *depends_on: str) -> None:
    server.data("task_create", title=title, depends_on=list(depends_on), project="shop")


def _think(server: Server, type: str, content: str, **more: Any) -> str:
    given = {"task_id": "T-0002", **more}
    id: str = server.data("thought_record", type=type, content=content, **given)["thought_id"]
    return id


def _refused(server: Server, **arguments: Any) -> None:
    assert server.call("task_update", **arguments)["isError"]
