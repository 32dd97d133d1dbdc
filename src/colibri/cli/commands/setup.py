"""`colibri setup`: Colibri in the settings of an MCP client, and nothing else there touched."""

import argparse
import os
import re
import sys
from typing import Any, NamedTuple

from colibri.cli import files, ignored, project, terminal
from colibri.cli.complaint import Complaint, Misuse
from colibri.cli.files import Text
from colibri.cli.settings import change as changes
from colibri.cli.settings import guide as guides
from colibri.cli.settings import launch
from colibri.cli.settings.change import PENDING, Change
from colibri.cli.settings.clients import CLIENTS, FIXED, NAME, Language
from colibri.cli.settings.hooks import HOOKS
from colibri.cli.settings.jsonc import Broken
from colibri.cli.witness import setup as git_setup
from colibri.config import Config, load
from colibri.core.errors import ResourceError

HELP = "add Colibri to an MCP client"

DESCRIPTION = """\
Add this Colibri to the settings of an MCP client.

Without --write it only shows what would change, and where. The rest of the file stays exactly as it
is, comments included, and the old version is kept next to it. A link in the project is not
followed: name its target with --file.

--hooks also adds hooks, with which the client tells Colibri what its agent does: the files that it
edits, the commands that it runs. They carry a marker: adding them again updates them, --no-hooks
takes them out, and all other hooks stay as they are.

--guide add also puts a short section into the file that agents read first in the project: CLAUDE.md
for claude-code, GEMINI.md for gemini, AGENTS.md for the others. On a terminal --write asks whether
it should. The section is between two markers: adding it again updates it, --guide remove takes it
out, and the rest of the file stays as it is.

colibri setup git adds hooks to the project's git repository instead: they keep the ledger's
checkpoint in git at each commit, and push it at each push (docs/witnesses.md). A hook that is
already there runs first, and --write --remove puts everything back as it was. The hooks go where
git looks for them. If the repository's own settings name a folder outside it, nothing is written
there unless you name it with --folder DIR.
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
  git             not a client: hooks in the project's repository, or with --user in the one
                  folder that your git settings name for all repositories

hooks:
  claude-code     .claude/settings.local.json in the project, ~/.claude/settings.json with --user
  codex           ~/.codex/hooks.json; Codex runs them once you trust them there: /hooks
  gemini, qwen    the settings file that has the server
  copilot         .github/hooks/colibri.json, or ~/.copilot/hooks/colibri.json with --user
  cline           .clinerules/hooks/, or ~/.cline/hooks/ with --user
  opencode        .opencode/plugins/colibri.js, or in ~/.config/opencode/plugins with --user
  cursor          .cursor/hooks.json, or ~/.cursor/hooks.json with --user; not tested with Cursor

examples:
  colibri setup claude-code            show the change
  colibri setup claude-code --write    make it
  colibri setup claude-code --write --hooks
                                       and record what the agent does
  colibri setup claude-code --write --no-hooks
                                       take the hooks out; nothing else
  colibri setup claude-code --write --guide add
                                       and tell agents about it in CLAUDE.md
  colibri setup claude-code --write --guide remove
                                       take that section out; nothing else
  colibri setup codex --print          print the entry, to paste it yourself
  colibri setup git --write            witness the ledger at each commit and push
  colibri setup git --write --remove   take those hooks out again

Running --write again changes nothing. colibri doctor then tells you whether the client can start
the server.

--json prints client, scope (project, user or file), file, action (create, change, delete, none,
print), written, backup (the old file, or null), diff, entry, snippet (the entry as text), hooks
(null, or a list with file, action, written, backup and diff of each) and guide (null, or the same
of its file); with --no-hooks and --guide remove only hooks and guide. For git it prints folder,
manager (null, husky, lefthook or pre-commit), snippet (null, or what to paste there) and hooks.

Exit codes: 0 shown, written or nothing to do, 1 the file is broken, unusual or behind a link,
73 configuration, 75 the file cannot be read or written.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    known = (*CLIENTS, git_setup.NAME)
    parser.add_argument("client", metavar="CLIENT", choices=known, help=", ".join(known))
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--write", action="store_true", help="make the change")
    what.add_argument("--print", action="store_true", help="print only the entry")
    parser.add_argument(
        "--guide",
        choices=("add", "remove"),
        help="a section about Colibri in the file that agents read first: add or remove",
    )
    parser.add_argument(
        "--hooks",
        action=argparse.BooleanOptionalAction,
        help="hooks that record what the agent does; --no-hooks takes them out",
    )
    parser.add_argument("--remove", action="store_true", help="take out the hooks; only for git")
    parser.add_argument(
        "--folder", metavar="DIR", help="the folder of hooks outside the repository; only for git"
    )
    parser.add_argument("--user", action="store_true", help="for all your projects")
    parser.add_argument("--file", metavar="FILE", help="another settings file")
    parser.add_argument("--name", default=NAME, type=_name, help=f"the server's name ({NAME})")
    project.options(parser)


def _name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", text):
        raise argparse.ArgumentTypeError("a name has only letters, digits, _ and -")
    return text


class Server(NamedTuple):
    """The entry that starts the server, and what is to be done for it."""

    change: Change
    scope: str
    entry: dict[str, Any]
    snippet: str


def run(options: argparse.Namespace) -> int:
    if options.client == git_setup.NAME:
        _refuse_for_git(options)
        return git_setup.run(options)
    _refuse_of_git(options)
    removing = options.guide == "remove" or options.hooks is False
    server = None if removing and not options.hooks else _plan(options)
    _refuse(options, server)
    server, hooks = (server, None) if options.hooks is None else _plan_hooks(options, server)
    guide = _plan_guide(options) if options.guide else None
    settings = [server.change] if server else []
    planned = dict.fromkeys([*settings, *(hooks or []), *([guide] if guide else [])])
    for change in planned:
        if options.write and change.action in PENDING:
            files.refuse_read_only(change.old)
    done = {change: _carry_out(change, options) for change in planned}
    if options.json:
        terminal.emit(_json(options.client, server, hooks, guide, done))
        return 0
    for change, (written, backup) in done.items():
        changes.tell(change, written, backup)
    if server and server.change.file and not (options.print or options.user):
        if options.write and guide is None:
            _offer_guide(options)
        _remind(load(options.project), written=done[server.change][0])
    if not options.write and any(change.action in PENDING for change in planned):
        terminal.note("hint: nothing was written; add --write to make this change")
    return 0


def _refuse_for_git(options: argparse.Namespace) -> None:
    given = {"--print": options.print, "--guide": options.guide, "--file": options.file}
    given |= {"--hooks": options.hooks is not None, "--name": options.name != NAME}
    for name, value in given.items():
        if value:
            raise Misuse(f"{name} is for clients: leave it out for git")


def _refuse_of_git(options: argparse.Namespace) -> None:
    if options.remove:
        raise Misuse("--remove is for git; hooks of a client are taken out with --write --no-hooks")
    if options.folder:
        raise Misuse("--folder is for git; another settings file is named with --file")


def _refuse(options: argparse.Namespace, server: Server | None) -> None:
    if options.print and (options.guide or options.hooks is not None):
        other = "--guide" if options.guide else "--hooks"
        raise Misuse(f"--print prints the entry alone: leave out {other}")
    if options.hooks is not None and options.client not in HOOKS:
        title, known = CLIENTS[options.client].title, ", ".join(HOOKS)
        raise Misuse(f"hooks of {title} are not known; known are those of {known}")
    if options.hooks is not None and options.file:
        raise Misuse("hooks have a file of their own: leave out --file")
    nowhere = server is not None and not server.change.file
    if nowhere and (options.user or (options.write and not options.guide)):
        raise Misuse("generic has no settings file: name one with --file")


def _json(
    client: str,
    server: Server | None,
    hooks: list[Change] | None,
    guide: Change | None,
    done: dict[Change, tuple[bool, str | None]],
) -> dict[str, Any]:
    """Of the server everything; of hooks and the guide what was done to their files."""
    found: dict[str, Any] = {}
    if server is not None:
        found = {"client": client, "scope": server.scope or None}
        found |= changes.report(server.change, *done[server.change])
        found |= {"entry": server.entry, "snippet": server.snippet}
    found["hooks"] = hooks and [changes.report(one, *done[one]) for one in hooks]
    found["guide"] = guide and changes.report(guide, *done[guide])
    return found


def _carry_out(change: Change, options: argparse.Namespace) -> tuple[bool, str | None]:
    """Whether it was written, and the copy of what was there before."""
    if not options.write or change.action not in PENDING:
        return False, None
    return True, changes.carry_out(change)


# The hooks.


def _plan_hooks(
    options: argparse.Namespace, server: Server | None
) -> tuple[Server | None, list[Change]]:
    """What is to be done to each file; where it is that of the server, both are one change."""
    spec, directory = HOOKS[options.client], load(options.project).project
    planned = []
    for file in spec.files(options.client, directory, user=options.user):
        if server is not None and server.change.file == file:
            new = _hooked(options, file, server.change.new)
            then = f"{server.change.then}; {spec.then}"
            both = changes.planned(file, server.change.old, new, then=then)
            server = server._replace(change=both)
            planned.append(both)
        else:
            planned.append(_plan_hook_file(options, file, directory))
    return server, planned


def _plan_hook_file(options: argparse.Namespace, file: str, directory: str) -> Change:
    spec = HOOKS[options.client]
    if not options.user and spec.project_file:
        files.refuse_links(file, directory)
    try:
        old = files.read(file, "move it out of the way")
    except Broken as problem:
        raise Complaint(f"{file}, {problem}: fix it, then try again") from problem
    if old.found and not spec.may_replace(old.text):
        if options.hooks:
            raise Complaint(f"{file} is not Colibri's", "move it out of the way, or use --user")
        return changes.planned(file, old, old.text)
    new = _hooked(options, file, old.text)
    then = spec.then if options.hooks else ""
    return changes.planned(file, old, new, mode=spec.mode, ours=spec.alone, then=then)


def _hooked(options: argparse.Namespace, file: str, text: str) -> str:
    spec = HOOKS[options.client]
    try:
        if options.hooks:
            return spec.add(options.client, text, launch.command())
        return spec.remove(text)
    except Broken as problem:
        raise Complaint(f"{file}, {problem}: fix it, then try again") from problem


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
    return changes.planned(file, old, new)


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
    changes.tell(guide, False, None)
    verb = "update" if guides.has_section(guide.old.text) else "add"
    question = f"{verb} this section about Colibri, for agents to read first? [y/N] "
    print(question, end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        changes.tell(guide, *_carry_out(guide, options))


# The server.


def _plan(options: argparse.Namespace) -> Server:
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
        shown = Change(file, "print", Text(file, "", None), snippet)
        return Server(shown, scope, entry, snippet)
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
    is_so = "already starts this Colibri"
    change = changes.planned(file, old, new, is_so=is_so, then=client.then)
    return Server(change, scope, entry, snippet)


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


def _remind(config: Config, *, written: bool) -> None:
    """What people forget: to be in their own project, and that git need not know the ledger."""
    clone = launch.clone()
    if clone and os.path.samefile(config.project, clone):
        terminal.note(
            "hint: this is the clone of Colibri itself: run setup in your own project, or name it"
            " with --project DIR"
        )
    elif written:
        ignored.remind(config)
