"""`colibri setup git`: hooks that witness the ledger at each commit and push."""

import argparse
import os
import shlex

from colibri import project as projects
from colibri.cli import files, git, ignored, terminal
from colibri.cli.complaint import Complaint
from colibri.cli.git import Repository
from colibri.cli.settings import change as changes
from colibri.cli.settings import git_hooks
from colibri.cli.settings.change import PENDING
from colibri.cli.settings.git_hooks import Hook
from colibri.config import load

NAME = "git"


def run(options: argparse.Namespace) -> int:
    config = load(options.project)
    project = config.project
    try:
        repository = require(project)
        folder = git_hooks.folder(repository)
        manager = git_hooks.manager(repository)
    except git.GitError as problem:
        raise Complaint(f"cannot use the repository of {project}: {problem}") from problem
    into = folder.path
    _refuse_outside(folder, options.folder)
    if options.remove:
        hooks = list(git_hooks.plan_removal(repository, into))
    elif manager:
        hooks = []
    else:
        _refuse_scope(folder, user=options.user)
        here, _ = projects.find(repository.work_tree)
        hooks = list(git_hooks.plan(repository, into, None if here == project else project))
    if any(key.startswith(("include.", "includeif.")) for key, _ in git.settings(repository)):
        terminal.note("files that .git/config includes are not read: do they set core.hooksPath?")
    written = options.write and _carry_out(hooks)
    snippet = git_hooks.snippet(manager) if manager and not options.remove else None
    if options.json:
        _emit(into, manager, snippet, hooks, written)
    else:
        _tell(into, manager, snippet, hooks, written)
    if written and not options.remove:
        ignored.remind(config)
    return 0


def require(project: str) -> Repository:
    """The repository of a project; a Complaint if there is none."""
    found = git.find(project)
    if found is None and (problem := git.problem(project)):
        hint = "if it is its git directory, git config core.worktree PATH tells it so"
        raise Complaint(f"{project} is not in a git repository of yours: {problem}", hint)
    if found is None:
        raise Complaint(
            f"{project} is not in a git repository of yours",
            "run git init there first, or name another project with --project",
        )
    return found


def _refuse_outside(folder: git_hooks.Folder, named: str | None) -> None:
    """A repository alone cannot make us write elsewhere: its user has to name that folder too."""
    if named and os.path.realpath(named) != os.path.realpath(folder.path):
        message = f"git does not look for hooks in {named}: it looks in {folder.path}"
        raise Complaint(message, "leave out --folder, or set core.hooksPath to that folder")
    if folder.is_outside and not named:
        path = shlex.quote(folder.path)
        raise Complaint(
            f"core.hooksPath leads outside this repository, to {folder.path}",
            f"if you want the hooks there, add --folder {path}; if you did not set core.hooksPath,"
            " unset it: git config --unset core.hooksPath",
        )


def _refuse_scope(folder: git_hooks.Folder, *, user: bool) -> None:
    if folder.is_users and not user:
        message = (
            f"your settings of git name one folder of hooks for all repositories: {folder.path}"
        )
        raise Complaint(message, "add --user to put the hooks there, or set core.hooksPath here")
    if user and not folder.is_users:
        raise Complaint(
            "your settings of git name no folder of hooks for all repositories",
            "leave out --user: the hooks are then added to this repository",
        )


def _carry_out(hooks: list[Hook]) -> bool:
    pending = [hook for hook in hooks if hook.change.action in PENDING]
    for hook in pending:
        files.refuse_read_only(hook.change.old)
    for hook in pending:
        git_hooks.carry_out(hook)
    return bool(pending)


def _emit(
    folder: str, manager: str | None, snippet: str | None, hooks: list[Hook], written: bool
) -> None:
    shown = [changes.report(one.change, written, one.before or None) for one in hooks]
    terminal.emit({"folder": folder, "manager": manager, "snippet": snippet, "hooks": shown})


def _tell(
    folder: str, manager: str | None, snippet: str | None, hooks: list[Hook], written: bool
) -> None:
    for hook in hooks:
        change, before = hook
        changes.tell(change, written, None)
        if before and change.action == "create":
            verb = "renamed" if written else "rename "
            terminal.line(f"{verb} {change.file} to {os.path.basename(before)}", whole=True)
        elif before and change.action == "delete":
            verb = "restored" if written else "restore"
            terminal.line(f"{verb} {change.file} as it was before", whole=True)
    if snippet:
        print(snippet, end="")
        terminal.note(f"hint: {manager} writes the hooks of this repository: paste the lines above")
    elif not hooks:
        terminal.line(f"nothing to do: {folder} has no hooks of Colibri", whole=True)
    elif not written and any(hook.change.action in PENDING for hook in hooks):
        terminal.note("hint: nothing was written; add --write to make this change")
