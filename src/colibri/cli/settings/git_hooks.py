"""Hooks of git that witness the ledger: where they go, what they run, how they are taken out again.

git runs one file for each event. Where somebody else's is there already, it is renamed to
EVENT.before-colibri, and ours runs it first: with its arguments and its input, and with its exit
code if it fails. Taking ours out renames it back. husky, lefthook and pre-commit write hook files
themselves and would overwrite ours: for them there are lines to paste into their settings.

The repository's own core.hooksPath may name a folder anywhere. Outside the work tree and the git
directory nothing is written because of it: the user has to name that folder too (--folder).
"""

import os
import shlex
import shutil
from collections.abc import Iterator
from typing import NamedTuple

from colibri.cli import files, git
from colibri.cli.complaint import Complaint
from colibri.cli.files import Text
from colibri.cli.git import Repository
from colibri.cli.settings import change as changes
from colibri.cli.settings import launch
from colibri.cli.settings.change import Change
from colibri.cli.user_settings import of_user

OWNER = "# colibri setup git writes, updates and removes this file"
MADE = "# and the folder, which was not there before"
BEFORE = ".before-colibri"
MODE = 0o755
_KNOWN_BYTES = 4096  # of a file, in which our mark would be

# What each event runs.
EVENTS = {
    "commit-msg": 'witness --hook trailer "$1"',
    "post-commit": "witness --hook",
    "pre-push": 'witness --push "$1" --hook',
}

_SCRIPT = """\
#!/bin/sh
{owner}
before="$(dirname "$0")/{event}{before}"
if [ -x "$before" ]; then
  "$before" "$@" || exit
fi
command -v {program} >/dev/null || exit 0
{command} </dev/null || :
"""

_HUSKY = """\
# run these; husky then runs one more line at each event
{lines}"""

_LEFTHOOK = """\
# in lefthook.yml
commit-msg:
  commands:
    colibri:
      run: {colibri} witness --hook trailer {{1}} || true
post-commit:
  commands:
    colibri:
      run: {colibri} witness --hook || true
pre-push:
  commands:
    colibri:
      run: {colibri} witness --push {{1}} --hook || true
"""

_PRE_COMMIT = """\
# in .pre-commit-config.yaml, under repos; then:
# pre-commit install -t commit-msg -t post-commit -t pre-push
  - repo: local
    hooks:
      - id: colibri-trailer
        name: the ledger's checkpoint in the commit message
        language: system
        entry: {colibri} witness --hook trailer
        stages: [commit-msg]
      - id: colibri-witness
        name: the ledger's checkpoint in git
        language: system
        entry: {colibri} witness --hook
        always_run: true
        pass_filenames: false
        stages: [post-commit]
      - id: colibri-push
        name: the ledger's checkpoint at the remote
        language: system
        entry: sh -c '{colibri} witness --push "$PRE_COMMIT_REMOTE_NAME" --hook'
        always_run: true
        pass_filenames: false
        stages: [pre-push]
"""

# The files at the top of a work tree by which a program that manages hooks is known.
MANAGERS = {
    "husky": (".husky",),
    "lefthook": tuple(
        f"{dot}lefthook.{kind}" for dot in ("", ".") for kind in ("yml", "yaml", "toml", "json")
    ),
    "pre-commit": (".pre-commit-config.yaml", ".pre-commit-config.yml"),
}


class Folder(NamedTuple):
    """Where git looks for hooks.

    `is_users` if the user's own settings say so, for all repositories; `is_outside` if the
    repository leads there and it is in neither its work tree nor its git directory.
    """

    path: str
    is_users: bool
    is_outside: bool


class Hook(NamedTuple):
    """The change of one hook; `before` is where another's hook goes or is, "" without one."""

    change: Change
    before: str


def folder(repository: Repository) -> Folder:
    """Where git looks for hooks in this repository; a Complaint if nowhere."""
    named = dict(git.settings(repository)).get("core.hookspath")
    users = of_user(repository.work_tree).get("core.hookspath")
    chosen = named if named is not None else users
    if chosen is None:
        return Folder(os.path.join(repository.common, "hooks"), False, False)
    path = os.path.join(repository.work_tree, os.path.expanduser(chosen))
    if not chosen or (os.path.exists(path) and not os.path.isdir(path)):
        hint = "change that setting, or unset it: git config --unset core.hooksPath"
        message = f"git runs no hooks here: core.hooksPath is {chosen or 'empty'}"
        raise Complaint(f"{message}, which is not a directory", hint)
    # A relative path in the user's settings means a folder of each repository, which may be a link.
    by_user = named is None and os.path.isabs(os.path.expanduser(chosen))
    real = os.path.realpath(path)
    outside = not by_user and not _is_inside(real, repository)
    if not outside:
        files.refuse_links(os.path.normpath(path), repository.work_tree)
    return Folder(os.path.normpath(path) if by_user else real, named is None, outside)


def _is_inside(path: str, repository: Repository) -> bool:
    roots = map(os.path.realpath, (repository.work_tree, repository.common))
    return any(f"{path}{os.sep}".startswith(f"{root}{os.sep}") for root in roots)


def manager(repository: Repository) -> str | None:
    """The program that writes this repository's hooks, if a known one does."""
    for name, marks in MANAGERS.items():
        if any(os.path.lexists(os.path.join(repository.work_tree, mark)) for mark in marks):
            return name
    return None


def snippet(name: str) -> str:
    """What its users paste, so that it runs ours too."""
    colibri = "colibri" if shutil.which("colibri") else shlex.join(launch.command())
    if name == "husky":
        lines = (
            f"echo {shlex.quote(f'{colibri} {run} || :')} >> .husky/{event}"
            for event, run in EVENTS.items()
        )
        return _HUSKY.format(lines="".join(f"{line}\n" for line in lines))
    return {"lefthook": _LEFTHOOK, "pre-commit": _PRE_COMMIT}[name].format(colibri=colibri)


def plan(repository: Repository, into: str, project: str | None) -> Iterator[Hook]:
    """What is to be done so that every event runs ours; `project` only if it is not found there."""
    made = not os.path.isdir(into)
    for event in EVENTS:
        file = _checked(repository, into, event)
        before = f"{file}{BEFORE}"
        new = _script(event, project, made=made or MADE in _start(file))
        if is_ours(file):
            change = changes.planned(file, files.read(file), new, mode=MODE, ours=True)
            yield Hook(change, before if os.path.lexists(before) else "")
            continue
        if os.path.lexists(file) and os.path.lexists(before):
            hint = f"delete the one that you do not need, {file} or {before}"
            raise Complaint(f"{file} is not Colibri's, and {before} is there too", hint)
        change = changes.planned(file, Text(file, "", None), new, mode=MODE, ours=True)
        yield Hook(change, before if os.path.lexists(file) else "")


def plan_removal(repository: Repository, into: str) -> Iterator[Hook]:
    """What is to be done so that everything is as it was."""
    for event in EVENTS:
        file = _checked(repository, into, event)
        if is_ours(file):
            before = f"{file}{BEFORE}"
            change = changes.planned(file, files.read(file), "", ours=True)
            yield Hook(change, before if os.path.lexists(before) else "")


def carry_out(hook: Hook) -> None:
    """Make a change; another's hook moves out of the way first, or back at the end."""
    change, before = hook
    moves = bool(before) and change.action == "create"
    if moves:
        os.rename(change.file, before)
    try:
        changes.carry_out(change)
    except BaseException:
        if moves:
            os.rename(before, change.file)
        raise
    if change.action == "delete":
        if before:
            os.rename(before, change.file)
        above = os.path.dirname(change.file)
        if MADE in change.old.text and not os.listdir(above):
            os.rmdir(above)


def is_ours(file: str) -> bool:
    return OWNER in _start(file)


def _start(file: str) -> str:
    """The first bytes of a regular file; "" of anything else, a link included."""
    if os.path.islink(file) or not os.path.isfile(file):
        return ""
    with open(file, "rb") as opened:
        return opened.read(_KNOWN_BYTES).decode(errors="replace")


def _checked(repository: Repository, into: str, event: str) -> str:
    """The file of an event, if no link leads to its folder."""
    file = os.path.join(into, event)
    files.refuse_links(into, repository.work_tree)
    if os.path.isdir(file):
        raise Complaint(f"{file} is a directory", "move it out of the way")
    return file


def _script(event: str, project: str | None, *, made: bool) -> str:
    words = launch.command()
    named = f" --project {shlex.quote(project)}" if project else ""
    return _SCRIPT.format(
        owner=f"{OWNER}\n{MADE}" if made else OWNER,
        event=event,
        before=BEFORE,
        program=shlex.quote(words[0]),
        command=f"{shlex.join(words)} {EVENTS[event]}{named}",
    )
