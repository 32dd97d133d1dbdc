"""`colibri doctor`: is it installed, can it work here, and does a client start it?"""

import argparse
import importlib
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import colibri
from colibri import VERSION
from colibri import project as projects
from colibri.cli import files, program, project, terminal
from colibri.cli.doctor import (
    Finding,
    guarded,
    hooks,
    ok,
    postgres,
    problem,
    storage,
    warning,
    witness,
)
from colibri.cli.settings import launch
from colibri.cli.settings.clients import CLIENTS, NAME
from colibri.cli.settings.jsonc import Broken
from colibri.config import load
from colibri.core.errors import ConfigError, ResourceError
from colibri.store import gate_file
from colibri.store.sqlite.connection import library_version, require_sqlite

HELP = "check the installation, the database and the clients"

DESCRIPTION = """\
Check everything that Colibri needs: the installation, the settings, the project's database and the
settings of MCP clients. It also starts a server in a temporary directory to see that it answers.

For a ledger on PostgreSQL it reports whether the server answers, your role and its rights, how the
connection is encrypted, and whether reports of hooks are still waiting to be recorded.

Nothing is changed.
"""

EPILOG = """\
examples:
  colibri doctor
  colibri doctor --json

Each line is ok, a warning or a problem; warnings and problems say what to do.

--json prints ok (no problems), version and findings [{status, check, detail, hint}].

Exit codes: 0 no problems, though perhaps warnings, 1 at least one problem.
"""

OLDEST_PYTHON = (3, 11)
PACKAGES = {"apsw": "apsw", "msgspec": "msgspec", "PyYAML": "yaml", "rich": "rich"}


def configure(parser: argparse.ArgumentParser) -> None:
    project.options(parser)


def run(options: argparse.Namespace) -> int:
    findings = [one._replace(hint=program.typed(one.hint)) for one in examine(options.project)]
    problems = sum(finding.status == "problem" for finding in findings)
    warnings = sum(finding.status == "warning" for finding in findings)
    if options.json:
        shown = [finding._asdict() for finding in findings]
        terminal.emit({"ok": not problems, "version": VERSION, "findings": shown})
    else:
        rows = [(f.status, f.check, "; ".join(filter(None, f[2:]))) for f in findings]
        terminal.table(["STATUS", "CHECK", "WHAT"], rows, style_of="STATUS")
        terminal.say(_summary(problems, warnings), "bad" if problems else "good")
    return 1 if problems else 0


def _summary(problems: int, warnings: int) -> str:
    if not problems:
        return "fine" if not warnings else f"fine, with {terminal.count(warnings, 'warning')}"
    return terminal.count(problems, "problem") + (
        f", {terminal.count(warnings, 'warning')}" if warnings else ""
    )


def examine(named: str | None) -> Iterator[Finding]:
    """Every finding; a check that fails itself is one too."""
    yield from guarded("python", _python, sys.version_info[:3])
    where = os.path.dirname(os.path.abspath(colibri.__file__))
    yield ok(f"{VERSION} in {where}", "colibri")
    yield from guarded("sqlite", _sqlite, library_version())
    for name, module in PACKAGES.items():
        yield from guarded(name, _package, name, module)
    yield from guarded("server", _server)
    try:
        config = load(named)
    except ConfigError as bad:
        yield from (problem(what, "", "settings") for what in bad.problems)
        yield from guarded("clients", _clients, named or "")
    else:
        yield ok(f"mode {config.mode}", "settings")
        yield ok(f"{config.project}: {config.found_by}", "project")
        yield from storage.examine(config) if config.db_url is None else postgres.examine(config)
        yield from guarded("skills", _skills, config.skills_root)
        yield from guarded("gates", _gates, config.project)
        yield from guarded("clients", _clients, config.project)
        yield from guarded("hooks", hooks.examine, config)
        yield from guarded("witness", witness.examine, config)


def _python(version: tuple[int, ...]) -> Iterator[Finding]:
    shown = f"{'.'.join(map(str, version))} at {sys.executable}"
    if version < OLDEST_PYTHON:
        yield problem(shown, "install Python 3.11 or newer, then Colibri with it")
    else:
        yield ok(shown)


def _sqlite(version: str) -> Iterator[Finding]:
    """Whether this SQLite is safe for a database that several processes share."""
    try:
        require_sqlite(version)
        yield ok(version)
    except ResourceError as old:
        yield problem(old.message, old.hint)


def _package(name: str, module: str) -> Iterator[Finding]:
    from importlib import metadata  # noqa: PLC0415 - 25 ms that other commands need not wait

    try:
        importlib.import_module(module)
        yield ok(metadata.version(name))
    except ImportError as missing:
        yield problem(f"cannot be loaded: {missing}", "install Colibri again")


def _server() -> Iterator[Finding]:
    command = launch.command()
    answer = launch.try_out(command)
    shown = shlex.join([*command, "serve"])
    if answer.problem:
        hint = "run that command and read what it prints on stderr"
        yield problem(f"{shown}: {answer.problem}", hint)
    else:
        took = f"answered with {answer.tools} tools and ended in {answer.milliseconds:,} ms"
        yield ok(f"{shown} {took}")


def _gates(project: str) -> Iterator[Finding]:
    rules = gate_file.read(project)
    if rules.problem is not None:
        yield problem(rules.problem, "until then no task can be DONE; start running servers again")
    elif rules.digest is None:
        yield ok("the project has no rules: there is no colibri.toml")
    else:
        done = f"DONE needs {rules.done}" if rules.done else "DONE needs no command"
        edits = f"edits need a task in {rules.edit} or later" if rules.edit else "edits are free"
        yield ok(f"{done}; {edits}")


def _skills(root: str) -> Iterator[Finding]:
    try:
        with os.scandir(root) as folders:
            count = sum(os.path.isfile(os.path.join(one.path, "SKILL.md")) for one in folders)
        yield ok(f"{terminal.count(count, 'skill')} in {root}")
    except FileNotFoundError:
        yield ok(f"the project has none: there is no {root}; Colibri's own are available")
    except OSError as unreadable:
        hint = "set COLIBRI_SKILLS_ROOT to a folder that you can read"
        yield warning(f"cannot look into {root}: {unreadable.strerror}", hint)


def _clients(named: str) -> Iterator[Finding]:
    directory = os.path.abspath(named)
    found = False
    for key, client in CLIENTS.items():
        for file, scope in client.files(directory):
            try:
                settings = client.language.load(files.read(file).text)
            except (Broken, ResourceError) as unreadable:
                hint = f"fix it: {client.title} cannot read it either"
                yield warning(f"{file}, {unreadable}", hint, key)
                continue
            for name, entry in _entries(settings, client.servers, directory):
                found = True
                again = f"colibri setup {key} --write{' --user' * (scope == 'user')}"
                yield _entry(key, f"{file}: {name}", entry, directory, again)
    if not found:
        hint = f"colibri setup CLIENT --write, where CLIENT is one of {', '.join(CLIENTS)}"
        yield warning("no known client starts Colibri here yet", hint, "clients")


def _entries(settings: Any, key: str, directory: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Servers that are ours, by their name or by their command."""
    for path in ((key,), ("projects", directory, key)):  # the latter is Claude Code's own
        servers = settings
        for step in path:
            servers = servers.get(step) if isinstance(servers, dict) else None
        for name, entry in servers.items() if isinstance(servers, dict) else ():
            if isinstance(entry, dict) and (name == NAME or _program(entry) == "colibri"):
                yield name, entry


def _words(entry: dict[str, Any]) -> list[str]:
    """The program and its arguments; OpenCode keeps them in one list."""
    command, args = entry.get("command", ""), entry.get("args")
    words = command if isinstance(command, list) else [command]
    return [str(word) for word in (*words, *(args if isinstance(args, list) else ()))] or [""]


def _program(entry: dict[str, Any]) -> str:
    return os.path.basename(_words(entry)[0])


def _entry(check: str, where: str, entry: dict[str, Any], directory: str, again: str) -> Finding:
    command = _words(entry)[0]
    if not _runs(command, directory):
        return problem(f"{where} starts {command or 'nothing'}, which cannot be run", again, check)
    if (named := _option(entry)) and "${" not in named and not os.path.isdir(named):
        return problem(f"{where} is for {named}, which is not a directory", again, check)
    here, _ = projects.find(directory)
    if os.path.isabs(named) and os.path.realpath(named) != os.path.realpath(here):
        return warning(f"{where} is for {named}, not for {here}", again, check)
    try:
        load(os.sep, _environment(entry))
    except ConfigError as bad:
        return problem(f"{where}: {bad.message}", "fix its env", check)
    ours = launch.command()
    is_ours = _words(entry)[: len(ours)] == ours
    other = "" if is_ours else ", which is not this installation"
    return ok(f"{where} starts {command}{other}", check)


def _runs(command: str, directory: str) -> bool:
    """Whether there is such a program; what the client has to fill in is left to it."""
    path = os.path.join(directory, command) if os.sep in command else shutil.which(command)
    return "${" in command or (
        path is not None and os.path.isfile(path) and os.access(path, os.X_OK)
    )


def _option(entry: dict[str, Any]) -> str:
    """The value of --project."""
    return next((after for word, after in pairwise(_words(entry)) if word == "--project"), "")


def _environment(entry: dict[str, Any]) -> dict[str, str]:
    env = entry.get("environment", entry.get("env"))  # the former is OpenCode's
    return {key: str(value) for key, value in env.items()} if isinstance(env, dict) else {}
