"""The session that is played in every real host, and what came of it.

It opens a session of Colibri, claims a task, writes two files, runs a test that fails and one that
passes, commits, finishes the task and seals.
"""

import json
import re
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from tests.hosts.drive import HOSTS, Place, Run, Tools, run
from tests.hosts.model import Request, Turn, say

CLASSES = [*["mcp"] * 4, "edit", "edit", "run", "run", "run", "mcp", "mcp"]
TEST = 'grep -q "$1" a.txt || exit 3\n'
FAILS, PASSES = "sh check.sh beta", "sh check.sh alpha"
COMMIT = "git add a.txt b.txt && git -c user.name=a -c user.email=a@b.c commit -qm 'Two files'"
FILES = {"a.txt": "alpha\n", "b.txt": "beta\n"}


def story(name: str, tools: Tools, project: Path) -> list[Turn]:
    ours = tools.colibri
    plan = {"type": "plan", "content": "Write both, then test."}
    result = {"type": "reflection", "content": "Both are written; the test passes."}
    to_apply, to_done = ["GATHER", "ANALYZE", "PLAN", "APPLY"], ["VERIFY", "DONE"]
    return [
        [ours("audit_session_start", intent="Write two files", agent_id=f"{name}-agent")],
        [ours("task_create", title="Write two files")],
        [ours("task_next_actions", claim=True)],
        [ours("task_update", task_id="T-0001", status=to_apply, thought=plan)],
        *([tools.write(str(project / file), text)] for file, text in FILES.items()),
        [tools.run(FAILS)],
        [tools.run(PASSES)],
        [tools.run(COMMIT)],
        [ours("task_update", task_id="T-0001", status=to_done, thought=result)],
        lambda request: [ours("merkle_finalize", session_id=session_in(request))],
        [say("Done.")],
    ]


def session_in(request: Request) -> str:
    found = re.findall(r"S-[0-9a-f]{12}", request.text)
    assert found, "the model never saw the id of its session"
    return str(found[-1])


class Played(NamedTuple):
    name: str
    place: Place
    ran: Run

    def records(self, kind: str) -> list[dict[str, Any]]:
        lines = self.place.colibri("log", "--json", "--kind", kind).splitlines()
        return [json.loads(line) for line in lines]

    def deeds(self, *events: str) -> list[dict[str, Any]]:
        deeds = (one for one in self.records("deed") if one["payload"])
        return [one for one in deeds if one["payload"]["event"] in events]

    def ends(self) -> list[dict[str, Any]]:
        return self.deeds("tool.end", "tool.failed")

    @property
    def session(self) -> str:
        (one,) = json.loads(self.place.colibri("sessions", "--json"))["sessions"]
        return str(one["session_id"])

    def verdict(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.place.colibri("verify", "--json"))
        return found


def play(name: str, place: Place, *more: str, tools: Tools | None = None, **env: str) -> Played:
    """The whole session; it must succeed."""
    ran = run(name, story(name, tools or HOSTS[name].tools, place.project), place, *more, **env)
    assert ran.code == 0, ran.err[-2000:]
    return Played(name, place, ran)


def ready(place: Place, name: str) -> None:
    """A repository, and the host set up for it."""
    repository(place)
    place.colibri("setup", name, "--hooks", "--write")


def repository(place: Place) -> None:
    subprocess.run(["git", "init", "-q", str(place.project)], check=True, timeout=30)
    (place.project / ".gitignore").write_text("data/\n")
    (place.project / "check.sh").write_text(TEST)
