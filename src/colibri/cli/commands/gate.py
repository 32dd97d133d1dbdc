"""`colibri gate check`: what the project's rules would refuse now, and why."""

import argparse
import os
from typing import Any

from colibri.cli import lookup, project, terminal
from colibri.config import load
from colibri.core.gates import FILE, Gates
from colibri.core.states import TERMINAL, Status
from colibri.store import gate_file, gates, tasks
from colibri.store.connection import Connection
from colibri.store.tasks import Filter, Task

HELP = "what the rules in colibri.toml would refuse now, and why"

DESCRIPTION = """\
Check the rules in the project's colibri.toml, and say for each task in VERIFY, or for one that you
name, whether it could become DONE now: which command was seen, or what is missing.

Commands are those of the session that holds the task, as its host's hooks reported them.
"""

EPILOG = """\
examples:
  colibri gate check
  colibri gate check T-0001

docs/gates.md explains the rules. Only the rule is checked: a task may also need a reason, or wait
for others. A running server uses the file as it was when the server started.

--json prints file, digest, problem (null if the file is fine), done {command, exit,
after_last_edit}, edit {state} and tasks [{task_id, status, session_id, allowed, evidence, reason,
problem}]; without a rule, done and edit are null and every task is allowed.

Exit codes: 0 nothing would be refused, 1 something would, or the file cannot be used, 73
configuration, 75 resource.
"""

MOST = 500  # tasks that are looked at


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("check",), help="check the rules, and what they refuse")
    parser.add_argument(
        "task",
        metavar="TASK",
        type=lookup.task_id,
        nargs="?",
        help="only this task, in any open state",
    )
    project.options(parser)


def run(options: argparse.Namespace) -> int:
    config = load(options.project)
    rules = gate_file.read(config.project)
    found: list[dict[str, Any]] = []
    if project.home(config).is_there() or options.task is not None:
        with project.reading(options) as (_, reader):
            found = [_judge(reader, rules, task) for task in _tasks(reader, options.task)]
    path = os.path.join(config.project, FILE)
    if options.json:
        terminal.emit({"file": path, **_json(rules), "tasks": found})
    else:
        _show(path, rules, found)
    return int(rules.problem is not None or not all(one["allowed"] for one in found))


def _tasks(db: Connection, id: str | None) -> list[Task]:
    if id is not None:
        task = lookup.task(db, id)
        return [] if task.status in TERMINAL else [task]
    rows, _ = tasks.find(db, Filter(status=Status.VERIFY), search=None, limit=MOST, offset=0)
    return rows


def _judge(db: Connection, rules: Gates, task: Task) -> dict[str, Any]:
    about = {"task_id": task.task_id, "status": task.status, "session_id": task.holder}
    if rules.problem is not None:
        return {**about, **_verdict(None, "unreadable", "the rules cannot be read")}
    if rules.done is None:
        return {**about, **_verdict(None, None, "")}
    judged = gates.judge(db, rules.done, task.holder)
    problem = judged.problem if task.holder else "no session holds it, so no command was seen"
    return {**about, **_verdict(judged.evidence, judged.reason, problem)}


def _verdict(evidence: int | None, reason: str | None, problem: str) -> dict[str, Any]:
    return {
        "allowed": reason is None,
        "evidence": evidence,
        "reason": reason,
        "problem": problem or None,
    }


def _json(rules: Gates) -> dict[str, Any]:
    done, names = rules.done, ("command", "exit", "after_last_edit")
    return {
        "digest": rules.digest,
        "problem": rules.problem,
        "done": done and {name: getattr(done, name) for name in names},
        "edit": rules.edit and {"state": rules.edit},
    }


def _show(path: str, rules: Gates, found: list[dict[str, Any]]) -> None:
    field = terminal.field
    if rules.problem is not None:
        field("problem", (rules.problem, "bad"))
    elif rules.digest is None:
        field("rules", f"none: there is no {path}")
    else:
        field("rules", path, whole=True)
        field("DONE", f"needs {rules.done}" if rules.done else "needs no command")
        field("edits", f"need a task in {rules.edit} or later" if rules.edit else "are free")
    rows = [_row(one) for one in found]
    if rows:
        terminal.table(["TASK", "STATE", "DONE NOW", "WHY"], rows, style_of="STATE")
    else:
        terminal.say("no task is in VERIFY", "dim")


def _row(one: dict[str, Any]) -> tuple[str, str, str, str]:
    why = one["problem"] or (f"record {one['evidence']}" if one["evidence"] else "no rule")
    return one["task_id"], one["status"], "yes" if one["allowed"] else "no", why
