"""What git is configured to do for this user: their settings and the system's, no repository's."""

import os

from colibri.cli import git, process
from colibri.config import bare_environment

_PASSED = ("HOME", "XDG_CONFIG_HOME")


def of_user(work_tree: str) -> dict[str, str]:
    """Every key, with the value that counts; {} if git cannot tell."""
    given = bare_environment()
    passed = {name: given[name] for name in _PASSED if name in given}
    path = process.outside(given.get("PATH", ""), work_tree)
    env = {"LC_ALL": "C", "GIT_DIR": os.devnull, "PATH": path, **passed}
    try:
        program = git.program_in(path, work_tree)
        listed = [program, "config", "--includes", "--null", "--list"]
        return dict(git.parse_settings(git.output(listed, os.sep, env)))
    except git.GitError:
        return {}
