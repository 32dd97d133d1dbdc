"""Refusals of the server, as people get them at the terminal.

The facts are those that an agent is told. The advice after them names tools and their arguments;
here it names commands and options instead.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from colibri.cli.complaint import Complaint
from colibri.core.errors import ResourceError

Error = Mapping[str, Any]
_MISUSE = 2
_PASSING = ("UNAVAILABLE", "OVERLOADED", "SHUTTING_DOWN")


class _Advice(NamedTuple):
    """Where the advice for agents begins, and what helps a person; {} are fields of the refusal."""

    begins: str
    hint: str | Callable[[Error], str]


def complaint(error: Error) -> Exception:
    """What a command raises for an error that a tool answered with."""
    code, message = error["code"], error["message"]
    if code in _PASSING:
        return ResourceError(message)
    if code == "INVALID_PARAMS":
        return _invalid(error["details"]["issues"][0])
    if message.startswith("ERR_"):  # under HANDLER_ERROR the code is the first word of the text
        code, _, message = message.partition(": ")
        error = error.get("details", {})
    if code not in _ADVICE:
        return Complaint(message)
    begins, hint = _ADVICE[code]
    fact = re.split(begins, message, maxsplit=1)[0]
    return Complaint(fact, hint.format(**error) if isinstance(hint, str) else hint(error))


def _claimed(error: Error) -> str:
    if "resumed_at" in error:
        return f"only that process can seal it; colibri trail {error['session_id']} shows its work"
    task = error["task_id"]
    if "lost" in error:
        return f"colibri tasks {task} shows it; colibri claim {task} takes it again"
    if error["is_alive"]:
        return f"colibri claim takes another; colibri release {task} --why TEXT frees this one"
    return f"it has given no sign of life: colibri claim {task} takes the task over"


def _transition(error: Error) -> str:
    if not error["next_states"]:
        return "colibri add TITLE plans further work"
    return f"colibri tasks {error['task_id']} shows what each move still needs"


def _gate(error: Error) -> str:
    if error["reason"] in ("unreadable", "not-recorded"):
        return "colibri gate check shows what is wrong with the rules"
    return "--why TEXT sets the rule aside, which the record shows"


_ADVICE = {
    "ERR_ALREADY_FINALIZED": _Advice(
        " and takes nothing more", "colibri trail {session_id} shows it; nothing can be added to it"
    ),
    "ERR_BLOCKED": _Advice(
        "; end them first", "end them first, or change --depends-on with colibri edit {task_id}"
    ),
    "ERR_CLAIMED": _Advice(": (?=read it|take another|its claim|start your)", _claimed),
    "ERR_CYCLE": _Advice(
        "; (?=leave|let it)", "leave one of these out: colibri edit TASK --depends-on TASK"
    ),
    "ERR_GATE": _Advice("$", _gate),
    "ERR_INVALID_TRANSITION": _Advice("; create a new task", _transition),
    "ERR_KEY_REUSED": _Advice(": send", "type the same again, or give another --key"),
    "ERR_NO_RECORDS": _Advice(
        ": record one", "colibri note TEXT records a thought in your own session"
    ),
    "ERR_NOT_FOUND": _Advice(": (?=task_list|create it)", "colibri tasks lists tasks"),
    "ERR_SESSION_NOT_FOUND": _Advice(": open one", "colibri sessions lists sessions"),
    "ERR_WRITEBACK_REQUIRED": _Advice(
        ": give a thought",
        "give --why TEXT with the move, or colibri note TEXT --task {task_id} before it",
    ),
}

# The arguments of tools, as people give them.
_TYPED = {
    "title": "the title",
    "content": "the text",
    "thought.content": "--why",
    "session_id": "the session",
    "project": "--project-name",
}


def _invalid(issue: Error) -> Complaint:
    """A value that no tool takes."""
    path, problem = str(issue["path"]), str(issue["problem"])
    option = f"--{path.partition('[')[0].replace('_', '-')}"
    wrong = problem if problem.startswith(("is ", "holds ", "begins ")) else "does not fit"
    hint = f"it takes {issue['allowed']}".replace("string", "text")
    return Complaint(f"{_TYPED.get(path, option)} {wrong}", hint, _MISUSE)
