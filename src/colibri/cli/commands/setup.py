"""`colibri setup`: Colibri in the settings of an MCP client, and nothing else there touched."""

import argparse
import difflib
import os
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from colibri.cli import files, git, project, terminal
from colibri.cli.complaint import Complaint, Misuse
from colibri.cli.files import Text
from colibri.cli.settings import guide as guides
from colibri.cli.settings import launch
from colibri.cli.settings.clients import CLIENTS, FIXED, NAME, Language
from colibri.cli.settings.jsonc import Broken
from colibri.cli.show import times
from colibri.config import Config, load
from colibri.core.errors import ResourceError

HELP = "add Colibri to an MCP client"

DESCRIPTION = """\
Add this Colibri to the settings of an MCP client.

Without --write it only shows what would change, and where. The rest of the file stays exactly as it
is, comments included, and the old version is kept next to it. A link in the project is not
followed: name its target with --file.

--guide add also puts a short section into the file that agents read first in the project: CLAUDE.md
for claude-code, GEMINI.md for gemini, AGENTS.md for the others. On a terminal --write asks whether
it should. The section lies between two marks: adding it again updates it, --guide remove takes it
out, and the rest of the file stays as it is.
"""

EPILOG = """\
clients:
  claude-code     .mcp.json in the project, or ~/.claude.json with --user
  claude-desktop  claude_desktop_config.json; the server is for --project or this directory
  cursor          .cursor/mcp.json in the project, or ~/.cursor/mcp.json with --user
  vscode          .vscode/mcp.json in the project, or mcp.json in the user profile with --user
  codex           ~/.codex/config.toml
  gemini          .gemini/settings.json in the project, or ~/.gemini/settings.json with --user
  copilot         .github/mcp.json in the project, or ~/.copilot/mcp-config.json with --user
  qwen            .qwen/settings.json in the project, or ~/.qwen/settings.json with --user
  cline           ~/.cline/data/settings/cline_mcp_settings.json; the server is for --project or
                  this directory
  opencode        opencode.json in the project, or ~/.config/opencode/opencode.json with --user
  generic         prints what most other clients accept

examples:
  colibri setup claude-code            show the change
  colibri setup claude-code --write    make it
  colibri setup claude-code --write --guide add
                                       and tell agents about it in CLAUDE.md
  colibri setup claude-code --write --guide remove
                                       take that section out; nothing else
  colibri setup codex --print          print the entry, to paste it yourself

Running --write again changes nothing. colibri doctor then tells you whether the client can start
the server.

--json prints client, scope (project, user or file), file, action (create, change, none, print),
written, backup (the old file, or null), entry, snippet (the entry as text), diff and guide (null,
or its file, action, written, backup and diff); with --guide remove only guide.

Exit codes: 0 shown, written or nothing to do, 1 the file is broken, unusual or behind a link,
73 configuration, 75 the file cannot be read or written.
"""

Action = Literal["create", "change", "none", "print"]
PENDING = ("create", "change")
_COLOURS = {"+": "added", "-": "removed", "@": "dim"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("client", metavar="CLIENT", choices=CLIENTS, help=", ".join(CLIENTS))
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--write", action="store_true", help="make the change")
    what.add_argument("--print", action="store_true", help="print only the entry")
    parser.add_argument(
        "--guide",
        choices=("add", "remove"),
        help="a section about Colibri in the file that agents read first: add or remove",
    )
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
    """What is to be done to a file; `file` is "" where there is only text to show.

    `client` is "" where it is not a client's settings but the guide.
    """

    client: str
    scope: str
    file: str
    action: Action
    entry: dict[str, Any]
    snippet: str
    old: Text
    new: str


def run(options: argparse.Namespace) -> int:
    settings = None if options.guide == "remove" else _plan(options)
    _refuse(options, settings)
    guide = _plan_guide(options) if options.guide else None
    planned = [one for one in (settings, guide) if one is not None]
    for change in planned:
        if options.write and change.action in PENDING:
            files.refuse_read_only(change.old)
    done = [(change, *_carry_out(change, options)) for change in planned]
    if options.json:
        terminal.emit(_json(done))
        return 0
    for change, written, backup in done:
        _tell(change, written, backup)
    if settings is not None and settings.file and not (options.print or options.user):
        if options.write and guide is None:
            _offer_guide(options)
        _remind(load(options.project), written=done[0][1])
    if not options.write and any(change.action in PENDING for change in planned):
        terminal.note("hint: nothing was written; add --write to make this change")
    return 0


def _refuse(options: argparse.Namespace, settings: Change | None) -> None:
    if options.print and options.guide:
        raise Misuse("--print prints the entry alone: leave out --guide")
    nowhere = settings is not None and not settings.file
    if nowhere and (options.user or (options.write and not options.guide)):
        raise Misuse("generic has no settings file: name one with --file")


def _json(done: list[tuple[Change, bool, str | None]]) -> dict[str, Any]:
    """Of the settings everything; of the guide what became of its file."""
    found: dict[str, Any] = {"guide": None}
    for change, written, backup in done:
        report = _report(change, written, backup)
        if change.client:
            found |= report
        else:
            names = ("file", "action", "written", "backup", "diff")
            found["guide"] = {name: report[name] for name in names}
    return found


def _carry_out(change: Change, options: argparse.Namespace) -> tuple[bool, str | None]:
    """Whether it was written, and the copy of what was there before."""
    if not options.write or change.action not in PENDING:
        return False, None
    return True, files.replace(change.old, change.new, times.stamp())


# The guide.


def _plan_guide(options: argparse.Namespace) -> Change:
    """What is to be done to the file that agents read first."""
    directory = load(options.project).project
    file = guides.path_of(directory, CLIENTS[options.client].guide)
    files.refuse_links(file, directory)
    try:
        old = files.read(file, "move it out of the way, or leave out --guide")
        new = guides.remove(old.text) if options.guide == "remove" else guides.put(old.text)
    except Broken as problem:
        raise Complaint(f"{file}, {problem}: fix it, then try again") from problem
    except guides.Unclear:
        hint = f"delete every line that is {guides.END} or begins with <!-- colibri: begin"
        message = f"{file}: cannot tell where the section about Colibri begins and ends"
        raise Complaint(message, hint) from None
    action: Action = "none" if new == old.text else "change" if old.found else "create"
    return Change("", "project", file, action, {}, "", old, new)


def _offer_guide(options: argparse.Namespace) -> None:
    """On a terminal: show the section, and ask whether it may be added or updated."""
    if not (sys.stdin.isatty() and terminal.is_terminal()):
        return
    try:
        guide = _plan_guide(options)
    except (Complaint, ResourceError):  # it was not asked for
        return
    if guide.action not in PENDING:
        return
    _tell(guide, False, None)
    verb = "update" if guides.has_section(guide.old.text) else "add"
    question = f"{verb} this section about Colibri, for agents to read first? [y/N] "
    print(question, end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        _tell(guide, *_carry_out(guide, options))


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
        is_so = "already starts this Colibri" if change.client else "is as it should be"
        terminal.line(f"nothing to do: {change.file} {is_so}", hang=2)
    elif written:
        real = f", a link to {change.old.path}" if os.path.islink(change.file) else ""
        terminal.line(f"wrote   {change.file}{real}", whole=True)
        if backup:
            terminal.line(f"backup  {backup}", whole=True)
        if change.client:
            terminal.line(f"next    {CLIENTS[change.client].then}", hang=8)
    else:
        for line in _diff(change):
            terminal.say(line, _COLOURS.get(line[:1], ""))


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
