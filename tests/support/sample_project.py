"""A project as agents leave it, made through the real server: good work, refusals, hostile text."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from colibri.store import ledger
from tests.support.client import COLIBRI, JSON, Server
from tests.support.ledger_writer import TO_VERIFY, Lab, opened

Printed = Callable[..., tuple[int, str, str]]  # a command in a pipe: exit code, stdout, stderr
Shown = Callable[..., str]  # a command in a terminal

IMAGE = "<img src=x onerror=alert(1)>"
OVERRIDE = "gnp\u202e.exe"
MARKUP = "[bold red]not markup[/] :smile:"
LONG = "long " + "x" * 65_000 + " end"
WORDS = "wrap these words " * 3_000
ESCAPE = "\x1b[2J\x1b]0;owned\x07"


class Workshop:
    """What the project holds, by name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with Server(path, COLIBRI) as server:
            self._work(server)
        with opened(path) as db:  # not possible with tools: an erasure, a call of a dead server
            lab = Lab(db, ledger.log_id(db))
            lab.erase(self.erased, self.erased - 1)
            with lab.calling("audit_verify_chain", session=self.open, ends=False):
                pass
            self.last = lab.head().seq
            self.head = f"{self.last}:{lab.head().leaf.hex()}"

    def _work(self, server: Server) -> None:
        self.plan = self._task(server, "Draw the plan", project="house", priority="high")
        self.build = self._task(
            server,
            f"Build the house {IMAGE}",
            project="house",
            assignee="ada",
            depends_on=[self.plan],
            description=f"Four walls and a roof.\n\nAlso: {MARKUP} {OVERRIDE}",
        )
        self.paint = self._task(server, "Paint the door", priority="critical", assignee="日本語")
        self.sealed = self._session(server, "draw it first", task_id=self.plan)
        self._think(server, self.sealed, "plan", "North is up.", task_id=self.plan, agent_id="ada")
        for status in (*TO_VERIFY, *TO_VERIFY):  # the second pass is the retry
            server.data("task_update", task_id=self.plan, status=status)
        self.refused = server.call("task_update", task_id=self.plan, status="DONE")
        thought = self._think(
            server,
            self.sealed,
            "reflection",
            "It fits on one page.\nThe stairs are steep, but legal.",
            task_id=self.plan,
            agent_id="ada",
        )
        self.reflection: int = thought["seq"]
        server.data("task_update", task_id=self.plan, status="DONE")
        self.seal = server.data("merkle_finalize", session_id=self.sealed)
        self.open = self._session(server, f"build it {IMAGE} {MARKUP}", task_id=self.build)
        for kind, content in (
            ("analysis", f"{IMAGE} {OVERRIDE} {MARKUP}"),
            ("decision", "14:00:00  plan  R-1\n  a line that looks like ours\n\ttabbed"),
            ("plan", LONG),
            ("analysis", WORDS),
            ("reflection", "a secret that should not have been here"),
        ):
            self._think(server, self.open, kind, content, agent_id="ada", task_id=self.build)
        thoughts = server.data("thought_record_list", session_id=self.open)["records"]
        self.hostile: int = thoughts[0]["seq"]
        self.erased: int = thoughts[-1]["seq"]
        server.data("task_update", task_id=self.build, title="Build the house", assignee=None)
        enough = {"type": "decision", "content": "The door stays as it is."}
        server.data("task_update", task_id=self.paint, status="CANCELLED", thought=enough)
        server.call("thought_record", session_id=self.sealed, type="plan", content="too late")
        server.call("task_update", task_id=self.build, status="APPLY")
        server.call("task_get", task_id=self.build)
        server.call("task_create", title="")
        server.request("tools/call", {"name": f"no_such{ESCAPE}"})
        server.data("server_ping")

    def _task(self, server: Server, title: str, **fields: Any) -> str:
        id: str = server.data("task_create", title=title, **fields)["task_id"]
        return id

    def _session(self, server: Server, intent: str, **fields: Any) -> str:
        id: str = server.data("audit_session_start", intent=intent, **fields)["session_id"]
        return id

    def _think(self, server: Server, session: str, type: str, content: str, **more: Any) -> JSON:
        return server.data("thought_record", session_id=session, type=type, content=content, **more)
