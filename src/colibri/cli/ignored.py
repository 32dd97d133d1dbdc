"""Whether git ignores the ledger: people forget that their history should not hold it."""

import os
import shlex

from colibri.cli import git, terminal
from colibri.config import Config


def remind(config: Config) -> None:
    """Say which line .gitignore lacks; nothing if it lacks none, or git cannot tell."""
    if line := _missing(config):
        file = shlex.quote(os.path.join(config.project, ".gitignore"))
        terminal.note(
            "hint: git would add the ledger to your history; to prevent that:"
            f" echo {shlex.quote(line)} >> {file}"
        )


def _missing(config: Config) -> str:
    inside = os.path.relpath(config.db_path, config.project)
    try:
        repository = git.find(config.project)
        if repository is None or inside.startswith(os.pardir):
            return ""
        if git.is_ignored(repository, os.path.realpath(config.db_path)):
            return ""
    except (git.GitError, OSError):
        return ""
    folder = os.path.dirname(inside)
    return f"{folder}/" if folder else f"{inside}*"
