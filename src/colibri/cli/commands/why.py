"""`colibri why`: from a line of a file to the commit, the deeds, the task and the decisions."""

import argparse
import os
import re
import stat
from collections.abc import Iterator, Sequence
from typing import Any

from colibri.cli import git, project, terminal
from colibri.cli.complaint import Complaint, Misuse
from colibri.cli.git import GitError, Repository
from colibri.cli.show import times
from colibri.cli.terminal import Span
from colibri.cli.why import explain
from colibri.cli.why.explain import Explained
from colibri.config import load
from colibri.hook import files
from colibri.store import tasks, trail
from colibri.store.connection import Connection

HELP = "why a line is there: its commit, deeds, task and decisions"

DESCRIPTION = """\
Show why a file, or some lines of it, are as they are: the commit (git blame), the deeds that left
the file with exactly the content it has in that commit, and their task, session and decisions, each
with the number of its record. Deeds are what hooks report: colibri setup CLIENT --hooks.

Without a line it tells the story of the whole file, the newest version first, under earlier names
too. It compares contents, so a rebase or a rename does not matter, unless others changed the same
file meanwhile: then it names the deeds that left some of its lines.
"""

EPILOG = """\
examples:
  colibri why src/app.py:42
  colibri why src/app.py:40-55 --json
  colibri why src/app.py              every version of the file

If several tasks edited the file for one commit, all of them are named: a deed tells what the file
held, not who wrote which line. If no deed left the content of a commit, it says so, and names the
deeds that left some of its lines or edited the file shortly before: the change may come from a
person, a formatter, a merge, a rebase or a host without hooks. What is not certain is marked as
such. At most 3 decisions of each task are listed, the newest of those made before the commit.
colibri log NUMBER shows a record in full.

PATH is relative to the current directory. The file must be in the project, or in another work tree
of its repository. git runs without the settings of the repository, for 10 seconds at most.

--json prints path, lines [first, last] (null for a whole file) and versions [{commit, path, author,
authored_at, subject, lines [[first, last]], state (explained, likely, unexplained; unchanged:
renamed only; cut: a shallow clone ends there, so it may be older), certain (that all deeds are a
part of it), shared (several tasks), tasks [{task_id, title, status}], deeds [{seq, at, session,
task, agent, host, tree, path, sha256, before (the same when the edit began), left_content}],
decisions [{seq, created_at, session_id, task_id, agent_id, content}]}]; what is not committed has
no commit, author, authored_at and subject.

Exit codes: 0 shown, even if no deed explains it, 1 no such file or line, not a text, outside the
project, or no repository, 73 configuration, 75 resource.
"""

DECISION = ("seq", "created_at", "session_id", "task_id", "agent_id", "content")
MOST_DECISIONS = 3
SHOWN = 300  # characters of a decision
ID = len("T-0001")
_PLACE = re.compile(r"(.+):([0-9]{1,9})(?:-([0-9]{1,9}))?", re.DOTALL)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="PATH, PATH:LINE or PATH:FIRST-LAST")
    terminal.limit_option(parser, "only the newest N versions of a whole file", 0)
    project.options(parser)


def run(options: argparse.Namespace) -> int:
    path, span = _place(options.file)
    config = load(options.project)
    repository = _repository(path, config.project)
    text = _text(path)  # before the database is opened: nobody else may close a file of it
    lines = None if span is None else _lines(path, text, span)
    name = os.path.relpath(path, repository.work_tree)
    with project.reading(options) as (_, reader):
        try:
            found = explain.file(reader, config.project, repository, name, text, lines)
        except GitError as problem:
            raise Complaint(f"cannot read the history of {path}: {problem}", code=75) from problem
        shown = found[: options.limit or None]
        told = [_told(reader, one) for one in shown]
    if options.json:
        span_shown = lines and [lines.start, lines.stop - 1]
        terminal.emit({"path": name, "lines": span_shown, "versions": told})
        return 0
    for number, one in enumerate(told):
        if number:
            print()
        _show(name, one)
    if left := len(found) - len(shown):
        terminal.note(f"{terminal.count(left, 'older version')} left out; --limit 0 shows all")
    return 0


# What was asked for.


def _place(text: str) -> tuple[str, range | None]:
    """The file, its folder resolved but the file itself not, and the lines."""
    path, span = text, None
    if (found := _PLACE.fullmatch(text)) and not os.path.lexists(text):
        path, first, last = found[1], int(found[2]), int(found[3] or found[2])
        span = range(first, last + 1)
        if not 0 < first <= last:
            raise Misuse(f"{text[len(path) + 1 :]} is no line or range of lines, such as 7 or 7-9")
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name), span


def _repository(path: str, top: str) -> Repository:
    """The repository of a file of the project."""
    top = os.path.realpath(top)
    found, own = git.find(os.path.dirname(path)), git.find(top)
    is_inside = path.startswith(os.path.join(top, ""))
    if not is_inside and (found is None or own is None or found.common != own.common):
        hint = "colibri why --project DIR looks at another project"
        raise Complaint(f"{path} is outside the project {top}", hint)
    if found is None:
        hint = "colibri why needs git: it begins with the commit that a line is from"
        raise Complaint(f"{path} is in no git repository that belongs to you", hint)
    return found


def _text(path: str) -> bytes:
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        raise Complaint(
            f"there is no file {path}", "the path is relative to where you are"
        ) from None
    if not stat.S_ISREG(mode):
        raise Complaint(f"{path} is not a regular file")
    with open(path, "rb") as file:
        text = file.read(files.LARGEST + 1)
    if len(text) > files.LARGEST:
        raise Complaint(f"{path} is larger than {files.LARGEST >> 20} MiB, which hooks do not read")
    if b"\0" in text:
        raise Complaint(f"{path} is a binary file: it has no lines")
    return text


def _lines(path: str, text: bytes, span: range) -> range:
    count = text.count(b"\n") + (not text.endswith(b"\n") and bool(text))
    if span.stop - 1 > count:
        raise Complaint(f"{path} has {terminal.count(count, 'line')}, so it has no line {span[-1]}")
    return span


# How it is told.


def _told(db: Connection, found: Explained) -> dict[str, Any]:
    version, edits = found.version, found.edits
    left = edits[-1].sha256 if found.state == "explained" else None
    whose = dict.fromkeys((edit.session, edit.task) for edit in edits)
    reasons = {
        thought.seq: thought
        for session, task in whose
        for thought in trail.decisions(
            db, session=session, task=task, before=found.until, most=MOST_DECISIONS
        )
    }
    known = dict.fromkeys(task for _, task in whose if task is not None)
    at = None if version.time is None else explain.recorded_time(version.time)
    return {
        "commit": version.commit,
        "path": version.path,
        "author": version.author,
        "authored_at": None if at == explain.LATER else at,
        "subject": version.subject,
        "lines": [[one.start, one.stop - 1] for one in version.lines],
        "state": found.state,
        "certain": found.certain,
        "shared": len({task for _, task in whose}) > 1,
        "tasks": [_picked(tasks.get(db, id), "task_id", "title", "status") for id in known],
        "deeds": [
            {**edit._asdict(), "left_content": left is not None and edit.sha256 == left}
            for edit in edits
        ],
        "decisions": [
            _picked(thought, *DECISION) for _, thought in sorted(reasons.items(), reverse=True)
        ],
    }


def _picked(value: object, *names: str) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}


def _show(name: str, told: dict[str, Any]) -> None:
    spans = ",".join(str(a) if a == b else f"{a}-{b}" for a, b in told["lines"])
    place = f"{name}:{spans}" if spans else name
    if told["commit"] is None:
        terminal.line((place, "bold"), "  not committed", hang=2)
    else:
        at = told["authored_at"] and times.shown(told["authored_at"])
        renamed = None if told["path"] == name else f"as {told['path']}"
        by = (_names((told["author"], at, renamed)), "dim")
        older = " or older" if told["state"] == "cut" else ""
        head = (f"  commit {told['commit'][:12]}{older}  {told['subject']}  ", by)
        terminal.line((place, "bold"), *head, hang=2)
    terminal.line(
        ("  " + _verdict(told), "" if told["state"] == "explained" else "refused"), hang=2
    )
    for task in told["tasks"]:
        _entry(task["task_id"], (task["status"], task["status"]), f"  {task['title']}")
    for deed in told["deeds"]:
        _entry(f"#{deed['seq']}", *_deed(deed))
    for one in told["decisions"]:
        text = " ".join(one["content"].split())
        shown = f"  “{text[:SHOWN]}{'…' if len(text) > SHOWN else ''}”  "
        who = (one["task_id"], one["agent_id"], one["session_id"], times.shown(one["created_at"]))
        _entry(f"R-{one['seq']}", ("decision", "decision"), shown, (_names(who), "dim"))


def _verdict(told: dict[str, Any]) -> str:
    if told["state"] == "unchanged":
        return "renamed, or its mode changed; its content did not"
    if told["state"] in ("cut", "unexplained"):
        what, rest = {
            "cut": (
                "the history of this clone is cut off at that commit, so it may be older than that;"
                " git fetch --unshallow brings the rest",
                "these edited it up to then",
            ),
            "unexplained": (
                "no deed explains it: none left the file with this content",
                "these edited it before",
            ),
        }[told["state"]]
        return f"{what}; {rest}:" if told["deeds"] else what
    if told["state"] == "likely":
        return (
            "likely these: they left another version with lines that it adds; a rebase, a merge or"
            " somebody changed the file afterwards, so which lines are theirs is not certain:"
        )
    if told["shared"] and not told["certain"]:
        return (
            "several tasks edited the file since the version before; its lines cannot be split"
            " between them, and whether it has something of each is not certain:"
        )
    if told["shared"]:
        return "several tasks edited the file for it; its lines cannot be split between them:"
    return "explained by:" if told["tasks"] else "explained by deeds without a task:"


def _deed(deed: dict[str, Any]) -> Iterator[Span]:
    left = ", left this content" if deed["left_content"] else ""
    tree = "" if deed["tree"] == "." else f" in the work tree {deed['tree']}"
    yield f"edited{left}{tree}  "
    who = (deed["task"], deed["agent"], deed["session"] or "no session", deed["host"])
    yield _names((*who, times.shown(deed["at"]))), "dim"


def _names(known: Sequence[str | None]) -> str:
    return " · ".join(filter(None, known))


def _entry(id: str, *spans: Span) -> None:
    terminal.line(f"    {id:<{ID}}  ", *spans, hang=terminal.hang(ID + 6))
