"""A session as agents have them, through the real server: tasks, a retry, refusals, a seal."""

from typing import Any, NamedTuple

from tests.support.client import Server

JSON = dict[str, Any]
TO_VERIFY = ("GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY")
INTENT = (
    "Customers report invoices that are off by a cent. Find the cause, fix it, and show that it is"
    " fixed."
)


class Told(NamedTuple):
    """What somebody keeps who was there."""

    session: str
    tasks: tuple[str, ...]
    root: str
    head: str  # of the call that sealed it, as SEQ:HEX


class Agent:
    """One that gives its name and records why."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.session = ""

    def task(self, title: str, *depends_on: str, **fields: Any) -> str:
        given = {"title": title, "depends_on": list(depends_on), "project": "billing", **fields}
        task: str = self._server.data("task_create", **given)["task_id"]
        return task

    def start(self, task: str) -> None:
        started = self._server.data("audit_session_start", intent=INTENT, task_id=task)
        self.session = started["session_id"]

    def think(self, type: str, task: str, content: str) -> None:
        about = {"session_id": self.session, "task_id": task, "agent_id": "ada"}
        self._server.data("thought_record", type=type, content=content, **about)

    def move(self, task: str, *states: str) -> None:
        for status in states:
            self._server.data("task_update", task_id=task, status=status)

    def is_refused(self, tool: str, **arguments: Any) -> None:
        assert self._server.call(tool, **arguments)["isError"]

    def look(self) -> None:
        self._server.data("thought_record_list", session_id=self.session)

    def seal(self) -> tuple[str, str]:
        """The root, and the head as the answer's receipt has it."""
        result = self._server.call("merkle_finalize", session_id=self.session)
        receipt = result["_meta"]["colibri/receipt"]
        root: str = result["structuredContent"]["data"]["root"]
        return root, f"{receipt['seq']}:{receipt['head']}"


def play(server: Server) -> Told:
    """Two tasks done, one of them in a second attempt, and a third begun; the first was planned
    before the session."""
    agent = Agent(server)
    cause = agent.task("Find out why invoices are rounded twice", assignee="ada", priority="high")
    agent.start(cause)
    fix = agent.task("Round once, at the end", cause)
    tell = agent.task("Tell the customers concerned", fix)
    agent.think("plan", cause, "Reproduce one of the reported invoices first.")
    agent.move(cause, "GATHER", "ANALYZE")
    agent.think(
        "analysis",
        cause,
        "Invoice 1043 has three lines of 0.335. Each line is rounded when it is stored (0.34), and"
        " the sum is rounded again when it is printed: 1.02 instead of 1.01.",
    )
    agent.is_refused("merkle_root", session_id=agent.session)
    agent.move(cause, "PLAN", "APPLY", "VERIFY")
    agent.think("decision", cause, "The rounding per line in invoice.total() is the cause.")
    agent.move(cause, "DONE")
    agent.move(fix, *TO_VERIFY)
    agent.is_refused("task_update", task_id=fix, status="DONE")
    agent.think("reflection", fix, "This broke credit notes: negative amounts round down.")
    agent.move(fix, *TO_VERIFY)
    agent.look()
    agent.think("decision", fix, "Sums are exact fractions, rounded once, half to even.")
    agent.is_refused(
        "thought_record", session_id=agent.session, task_id="T-9999", type="plan", content="so"
    )
    agent.think("reflection", fix, "All 212 invoices of last month come out as on paper.")
    agent.move(fix, "DONE")
    agent.move(tell, "GATHER")
    agent.think("plan", tell, "The letter needs a person’s approval, so this stays open.")
    return Told(agent.session, (cause, fix, tell), *agent.seal())
