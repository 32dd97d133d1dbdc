"""What `colibri doctor` asks about hooks: are they installed, trusted, and do they report?"""

import os
from collections.abc import Iterator, Mapping
from contextlib import closing

from colibri.cli import files
from colibri.cli.doctor import Finding, codex_trust, ok, plugins, warning
from colibri.cli.settings import launch
from colibri.cli.settings.hooks import HOOKS, is_ours
from colibri.cli.settings.jsonc import Broken
from colibri.cli.show import times
from colibri.cli.show.deeds import unrecorded
from colibri.config import Config
from colibri.core.errors import ResourceError
from colibri.hook.hosts import HOSTS
from colibri.store import deeds
from colibri.store.faults import errors
from colibri.store.homes import home_of

NEVER = "no report yet"


def examine(config: Config) -> Iterator[Finding]:
    """Of each client whose settings have hooks of ours: where, and when one last reported."""
    for fact in unrecorded(config):
        yield warning(fact, f"make sure that {config.ledger_name} can be written", "deeds")
    reported = _reported(config)
    found = [
        one
        for client in HOOKS
        for scope in ("", " --user")
        for one in _scope(client, config.project, scope, reported)
    ]
    found += plugins.examine(config.project, reported)
    yield from found
    known = {one.check for one in found}
    for client, last in reported.items():
        if last != NEVER and client not in known:
            yield ok(f"{last}, by hooks that its settings do not have, such as a plugin's", client)


def _reported(config: Config) -> Mapping[str, str]:
    """When each host last reported; what is wrong with the database is told by other checks."""
    try:
        with closing(home_of(*config.home).open_reader(untouched=True)) as reader:
            newest = deeds.newest(reader)
    except errors(ResourceError):
        newest = {}
    told = {host: f"last report {times.shown(at)}" for host, at in newest.items()}
    return {host: told.get(host, NEVER) for host in (*HOSTS, *newest)}


def _scope(client: str, project: str, scope: str, reported: Mapping[str, str]) -> Iterator[Finding]:
    spec = HOOKS[client]
    if scope and not spec.project_file:
        return  # both scopes are one file
    paths = spec.files(client, project, user=bool(scope))
    try:
        texts = {path: files.read(path).text for path in paths}
        found = [path for path, text in texts.items() if spec.installed(text)]
        command = launch.command()
        current = all(spec.add(client, text, command) == text for text in texts.values())
    except (Broken, ResourceError):
        return  # the check of the client says so
    if not found:
        return
    again = f"colibri setup {client} --hooks --write{scope}"
    where = found[0] if len(found) == 1 else os.path.dirname(found[0])
    last = reported[client]
    if not current:
        yield warning(f"{where}: hooks that this Colibri did not write; {last}", again, client)
    elif client == "codex" and (events := _untrusted(where, texts[where])):
        what = f"hooks that Codex does not trust for {', '.join(events)}"
        yield warning(f"{where}: {what}; {last}", plugins.TRUST, client)
    else:
        yield ok(f"{where}: hooks; {last}", client)


def _untrusted(path: str, text: str) -> list[str]:
    return codex_trust.untrusted(path, HOOKS["codex"].language.load(text)["hooks"], is_ours)
