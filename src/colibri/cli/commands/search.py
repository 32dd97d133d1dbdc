"""`colibri search`: tasks, thoughts and commands that have some words."""

import argparse
import re

from colibri.cli import project, terminal
from colibri.cli.show import times
from colibri.store import deed_list, tasks, trail
from colibri.store.connection import Connection
from colibri.store.deed_list import Command
from colibri.store.tasks import Filter, Task
from colibri.store.thought_search import MOST_RANKED
from colibri.store.trail import Thought

HELP = "find tasks, thoughts and commands by their words"

DESCRIPTION = """\
Find what agents planned, wrote and ran. A task is found if its title or description has all of the
words, a thought if it has any of them, the best first; a word also finds longer ones that begin
with it. A command that hooks reported is found if it has all of the words, the newest first. Case
does not matter. Ids and paths count as words.

colibri tasks TASK shows a task with its history, colibri log NUMBER a thought in full: 17 for R-17.
"""

EPILOG = f"""\
examples:
  colibri search time zone
  colibri search T-0042
  colibri search src/app.py --limit 3 --json

Of thoughts it lists the {MOST_RANKED} best at most, whatever --limit says. What was erased is not
found.

--json prints {{tasks: [Task], task_count, thoughts: [Thought], thought_count, commands: [Command],
command_count}}: those listed, and how many there are. A Task has task_id, status, priority, holder
and title, a Thought seq, session_id, task_id, agent_id, type, created_at and content, a Command
seq, at, session, task, agent, exit, event, command and failed.

Exit codes: 0 shown, even if nothing was found, 73 configuration, 75 resource.
"""

ID = len("T-0001")  # how wide the column of ids is, at least
BEFORE, SHOWN = 40, 160  # characters of a thought before the word that was found, and in all
_WORD = re.compile(r"[^\W_]+")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", metavar="TEXT", nargs="+", help="the words to look for")
    terminal.limit_option(parser, "at most N tasks, thoughts and commands each", 10)
    project.options(parser)


def run(options: argparse.Namespace) -> int:
    question = " ".join(options.words)
    with project.reading(options) as (_, reader):
        found, task_count = _tasks(reader, question, options.limit)
        thoughts, thought_count = trail.find(
            reader,
            trail.Filter(),
            search=question,
            order="best",
            limit=options.limit or MOST_RANKED,
            offset=0,
        )
        commands = [*deed_list.find(reader, options.words)] if _WORD.search(question) else []
        why_not = "" if found or thoughts or commands else _why_nothing(reader, question)
    ran = commands[: options.limit or None]
    if options.json:
        terminal.emit(
            {
                "tasks": [{name: getattr(one, name) for name in TASK} for one in found],
                "task_count": task_count,
                "thoughts": [{name: getattr(one, name) for name in THOUGHT} for one in thoughts],
                "thought_count": thought_count,
                "commands": [one._asdict() for one in ran],
                "command_count": len(commands),
            }
        )
        return 0
    for task in found:
        _show_task(task)
    for thought in thoughts:
        _show_thought(thought, question)
    for command in ran:
        _show_command(command)
    _note_rest(task_count - len(found), thought_count - len(thoughts), len(commands) - len(ran))
    if why_not:
        terminal.note(why_not)
    return 0


TASK = ("task_id", "status", "priority", "holder", "title")
THOUGHT = ("seq", "session_id", "task_id", "agent_id", "type", "created_at", "content")


def _tasks(db: Connection, question: str, limit: int) -> tuple[list[Task], int]:
    if not _WORD.search(question):
        return [], 0
    _, total = tasks.find(db, Filter(), search=question, limit=0, offset=0)
    found, _ = tasks.find(db, Filter(), search=question, limit=limit or total, offset=0)
    return found, total


def _why_nothing(db: Connection, question: str) -> str:
    if not _WORD.search(question):
        return "nothing was found: there is no letter and no digit to look for"
    _, thoughts = trail.find(db, trail.Filter(), limit=0, offset=0)
    _, planned = tasks.find(db, Filter(), search=None, limit=0, offset=0)
    if not thoughts and not planned:
        return "nothing was found: there are no tasks and no thoughts yet"
    none = "no task and no command has all of these words, and no thought has any of them"
    return f"nothing was found: {none}"


def _show_task(task: Task) -> None:
    holder = f" · held by {task.holder}" if task.holder else ""
    terminal.line(
        (f"{task.task_id:<{ID}}", "bold"),
        "  ",
        (task.status, task.status),
        f"  {task.title}  ",
        (f"{task.priority}{holder}", "dim"),
        hang=terminal.hang(max(len(task.task_id), ID) + 2),
    )


def _show_thought(thought: Thought, question: str) -> None:
    place = f"R-{thought.seq}"
    names = (thought.task_id, thought.agent_id, thought.session_id, times.shown(thought.created_at))
    terminal.line(
        (f"{place:<{ID}}", "bold"),
        "  ",
        (thought.type, thought.type),
        f"  “{_passage(thought.content, question)}”  ",
        (" · ".join(filter(None, names)), "dim"),
        hang=terminal.hang(max(len(place), ID) + 2),
    )


def _show_command(found: Command) -> None:
    place = f"#{found.seq}"
    ended = "failed" if found.failed else "ran"
    code = "" if found.exit is None else f", exit {found.exit}"
    names = (found.task, found.agent, found.session, times.shown(found.at))
    terminal.line(
        (f"{place:<{ID}}", "bold"),
        "  ",
        (f"{ended}{code}", "refused" if found.failed else "dim"),
        f"  {' '.join(found.command.split())[:SHOWN]}  ",
        (" · ".join(filter(None, names)), "dim"),
        hang=terminal.hang(max(len(place), ID) + 2),
    )


def _passage(content: str, question: str) -> str:
    """The part of a thought in which the first of the words stands, on one line."""
    text = " ".join(content.split())
    wanted = "|".join(map(re.escape, _WORD.findall(question)))
    found = re.search(wanted, text, re.IGNORECASE)
    start = max(0, found.start() - BEFORE) if found else 0
    end = start + SHOWN
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"


def _note_rest(more_tasks: int, more_thoughts: int, more_commands: int) -> None:
    rest = ((more_tasks, "task"), (more_thoughts, "thought"), (more_commands, "command"))
    if left := " and ".join(terminal.count(number, noun) for number, noun in rest if number):
        terminal.note(f"{left} left out; --limit 0 shows all")
