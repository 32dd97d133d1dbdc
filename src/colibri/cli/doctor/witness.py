"""What `colibri doctor` asks about witnesses: is there one, how old, and do hooks keep more?"""

import os
import shlex
from collections.abc import Iterator
from contextlib import closing

from colibri import project as projects
from colibri.cli import git, program, witnesses
from colibri.cli.complaint import Complaint
from colibri.cli.doctor import Finding, ok, warning
from colibri.cli.settings import git_hooks
from colibri.config import Config
from colibri.core.errors import ResourceError
from colibri.store import ledger
from colibri.store.faults import errors
from colibri.store.homes import home_of


def examine(config: Config) -> Iterator[Finding]:
    """The newest witness of the ledger; what is wrong with the database is told by other checks."""
    try:
        with closing(home_of(*config.home).open_reader(untouched=True)) as reader:
            newest, records = witnesses.newest(config, reader), ledger.last_seq(reader)
    except errors(ResourceError):
        return
    told = witnesses.told(newest, records)
    if newest is not None and newest.size > records:
        yield warning(told, program.typed("colibri verify"))
    else:
        yield ok(told)
    repository = git.find(config.project)
    if repository is not None:
        yield from _hooks(repository, config.project)


def _hooks(repository: git.Repository, project: str) -> Iterator[Finding]:
    try:
        folder, _, outside = git_hooks.folder(repository)
        found = [one for one in git_hooks.EVENTS if git_hooks.is_ours(os.path.join(folder, one))]
        if not found:
            return
        here, _ = projects.find(repository.work_tree)
        hooks = git_hooks.plan(repository, folder, None if here == project else project)
        current = all(hook.change.action == "none" for hook in hooks)
    except (Complaint, git.GitError):
        return
    if current:
        yield ok(f"{folder}: hooks that keep a witness at each commit and push")
    else:
        named = f" --folder {shlex.quote(folder)}" if outside else ""
        hint = f"colibri setup git --write{named}"
        yield warning(f"{folder}: some hooks are missing, or not of this Colibri", hint)
