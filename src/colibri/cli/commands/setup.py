"""`colibri setup`: Colibri in the settings of an MCP client, and nothing else there touched."""

import argparse
import difflib
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from colibri.cli import files, git, project, terminal
from colibri.cli.complaint import Complaint, Misuse
from colibri.cli.files import Text
from colibri.cli.settings import launch
from colibri.cli.settings.clients import CLIENTS, FIXED, NAME, Language
from colibri.cli.settings.jsonc import Broken
from colibri.cli.show import times
from colibri.config import Config, load

HELP = "add Colibri to an MCP client"

DESCRIPTION = """\
Add this Colibri to the settings of an MCP client.

Without --write it only shows what would change, and where. The rest of the file stays exactly as it
is, comments included, and the old version is kept next to it. A link in the project is not
followed: name its target with --file.
"""

EPILOG = """\
clients:
  claude-code     .mcp.json in the project, or ~/.claude.json with --user
  claude-desktop  claude_desktop_config.json; the server is for --project or this directory
  cursor          .cursor/mcp.json in the project, or ~/.cursor/mcp.json with --user
  vscode          .vscode/mcp.json in the project, or mcp.json in the user profile with --user
  codex           ~/.codex/config.toml
  gemini          .gemini/settings.json in the project, or ~/.gemini/settings.json with --user
  generic         prints what most other clients accept

examples:
  colibri setup claude-code            show the change
  colibri setup claude-code --write    make it
  colibri setup codex --print          print the entry, to paste it yourself

Running --write again changes nothing. colibri doctor then tells you whether the client can start
the server.

--json prints client, scope (project, user or file), file, action (create, change, none, print),
written, backup (the old file, or null), entry, snippet (the entry as text) and diff.

Exit codes: 0 shown, written or nothing to do, 1 the file is broken, unusual or behind a link,
73 configuration, 75 the file cannot be read or written.
"""

Action = Literal["create", "change", "none", "print"]
_COLOURS = {"+": "added", "-": "removed", "@": "dim"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("client", metavar="CLIENT", choices=CLIENTS, help=", ".join(CLIENTS))
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--write", action="store_true", help="make the change")
    what.add_argument("--print", action="store_true", help="print only the entry")
    parser.add_argument("--user", action="store_true", help="for all your projects")
    parser.add_argument("--file", metavar="FILE", help="another settings file")
    parser.add_argument("--name", default=NAME, type=_name, help=f"the server's name ({NAME})")
    project.options(parser)


def _name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", text):
        raise argparse.ArgumentTypeError("a name has only letters, digits, _ and -")
    return text


@dataclass(frozen=True, slots=True)
class Change:
    """What is to be done to a settings file; `file` is "" where there is only text to show."""

    client: str
    scope: str
    file: str
    action: Action
    entry: dict[str, Any]
    snippet: str
    old: Text
    new: str


def run(options: argparse.Namespace) -> int:
    change = _plan(options)
    if not change.file and (options.write or options.user):
        raise Misuse("generic has no settings file: name one with --file")
    written = options.write and change.action != "none"
    backup = files.replace(change.old, change.new, times.stamp()) if written else None
    if options.json:
        terminal.emit(_report(change, written, backup))
    else:
        _tell(change, written, backup)
        if change.action != "print" and not options.user:
            _remind(load(options.project), written=written)
    return 0


def _plan(options: argparse.Namespace) -> Change:
    client = CLIENTS[options.client]
    directory = load(options.project).project
    file, scope = client.file(directory, user=options.user)
    if options.file:
        file, scope = os.path.abspath(options.file), "file"
    # A user-wide entry is for whatever project the client is in, unless one is named.
    fixed = client.told == FIXED or (scope != "project" and options.project is not None)
    entry = client.entry(launch.command(), directory if fixed else client.told)
    path = (client.servers, options.name)
    snippet = client.language.put("", path, entry)
    if not file or options.print:
        nothing = Text(file, "", None)
        return Change(options.client, scope, file, "print", entry, snippet, nothing, snippet)
    if scope != "user":
        files.refuse_links(file, directory)
    try:
        old = files.read(file)
        new = _changed(client.language, old.text, path, entry)
    except Broken as problem:
        raise Complaint(f"{file}, {problem}: fix it, then try again") from problem
    if new is None:
        message = f"{file} lists its servers in an unusual form: add the entry by hand"
        hint = f"colibri setup {options.client} --print prints what to add"
        raise Complaint(message, hint)
    action: Action = "none" if new == old.text else "change" if old.found else "create"
    return Change(options.client, scope, file, action, entry, snippet, old, new)


def _changed(
    language: Language, text: str, path: tuple[str, str], entry: dict[str, Any]
) -> str | None:
    """The text with the entry; None where it would not say what it should.

    Of an entry that is there already only what differs is set: its env, say, is its owner's.
    """
    before = _object(language.load(text))
    servers = _object(before.get(path[0]))
    present = servers.get(path[1])
    if not isinstance(present, dict):
        new = language.put(text, path, entry)
        wanted = entry
    else:
        _refuse_remote(present, path[1])
        wanted = {**present, **entry}
        new = text
        for key, value in entry.items():
            if present.get(key) != value:
                new = language.put(new, (*path, key), value)
    try:
        after = language.load(new)
    except Broken:
        return None
    return new if after == {**before, path[0]: {**servers, path[1]: wanted}} else None


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _refuse_remote(present: dict[str, Any], name: str) -> None:
    """With both a command and a URL it would be neither a local nor a remote server."""
    if any(key.lower().endswith("url") for key in present):
        raise Complaint(f"there is a server {name} that has a URL", "choose another name: --name")


def _report(change: Change, written: bool, backup: str | None) -> dict[str, Any]:
    return {
        "client": change.client,
        "scope": change.scope or None,
        "file": change.file or None,
        "action": change.action,
        "written": written,
        "backup": backup,
        "entry": change.entry,
        "snippet": change.snippet,
        "diff": None
        if change.action == "print"
        else "".join(f"{line}\n" for line in _diff(change)),
    }


def _tell(change: Change, written: bool, backup: str | None) -> None:
    if change.action == "print":
        print(change.snippet, end="")
    elif change.action == "none":
        terminal.line(f"nothing to do: {change.file} already starts this Colibri", hang=2)
    elif written:
        real = f", a link to {change.old.path}" if os.path.islink(change.file) else ""
        terminal.line(f"wrote   {change.file}{real}", whole=True)
        if backup:
            terminal.line(f"backup  {backup}", whole=True)
        terminal.line(f"next    {CLIENTS[change.client].then}", hang=8)
    else:
        for line in _diff(change):
            terminal.say(line, _COLOURS.get(line[:1], ""))
        terminal.note("hint: nothing was written; add --write to make this change")


def _remind(config: Config, *, written: bool) -> None:
    """What people forget: to be in their own project, and that git need not know the ledger."""
    clone = launch.clone()
    if clone and os.path.samefile(config.project, clone):
        terminal.note(
            "hint: this is the clone of Colibri itself: run setup in your own project, or name it"
            " with --project DIR"
        )
    elif written and (line := _unignored(config)):
        file = shlex.quote(os.path.join(config.project, ".gitignore"))
        terminal.note(
            "hint: git would add the ledger to your history; to prevent that:"
            f" echo {shlex.quote(line)} >> {file}"
        )


def _unignored(config: Config) -> str:
    """The line for .gitignore that is missing; "" if none is, or git cannot tell."""
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


def _diff(change: Change) -> Iterator[str]:
    old = change.file if change.old.found else os.devnull
    return difflib.unified_diff(
        _lines(change.old.text), _lines(change.new), old, change.file, lineterm=""
    )


def _lines(text: str) -> list[str]:
    """As they are shown: how they end is kept, but not worth a line of a diff."""
    lines = text.replace("\r\n", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]
