"""What `colibri doctor` asks about hooks: are they installed, trusted, and do they report?"""

import os
from collections.abc import Iterator, Mapping
from contextlib import closing

from colibri.cli import files
from colibri.cli.doctor import Finding, ok, warning
from colibri.cli.settings import launch
from colibri.cli.settings.clients import CLIENTS
from colibri.cli.settings.hooks import HOOKS
from colibri.cli.settings.jsonc import Broken
from colibri.cli.show import times
from colibri.config import Config
from colibri.core.errors import ResourceError
from colibri.hook.hosts import registered
from colibri.store import deeds
from colibri.store.faults import DatabaseError
from colibri.store.sqlite.opening import open_reader


def examine(config: Config) -> Iterator[Finding]:
    """Of each client whose settings have hooks of ours: where, and when one last reported."""
    newest = _newest(config.db_path)
    for client in HOOKS:
        for scope in ("", " --user"):
            yield from _scope(client, config.project, scope, newest)


def _newest(path: str) -> Mapping[str, str]:
    """When each host last reported; what is wrong with the database is told by other checks."""
    try:
        with closing(open_reader(path, untouched=True)) as reader:
            return deeds.newest(reader)
    except (ResourceError, DatabaseError):
        return {}


def _scope(client: str, project: str, scope: str, newest: Mapping[str, str]) -> Iterator[Finding]:
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
    reported = f"last report {times.shown(newest[client])}" if client in newest else "no report yet"
    if not current:
        yield warning(f"{where}: hooks that this Colibri did not write; {reported}", again, client)
    elif client == "codex" and not _is_trusted(found[0]):
        hint = "start codex, enter /hooks and trust them: it runs none that is not trusted"
        yield warning(f"{where}: hooks that Codex does not trust yet; {reported}", hint, client)
    else:
        yield ok(f"{where}: hooks; {reported}", client)


def _is_trusted(path: str) -> bool:
    """Whether Codex has noted a trust for as many hooks as are ours; only Codex can check it."""
    settings, _ = CLIENTS["codex"].file("", user=True)
    try:
        state = CLIENTS["codex"].language.load(files.read(settings).text)["hooks"]["state"]
        noted = [name for name in state if name.startswith(f"{path}:")]
        trusted = [name for name in noted if state[name].get("trusted_hash")]
    except (Broken, ResourceError, KeyError, TypeError, AttributeError):
        return False
    return len(trusted) >= len(registered("codex"))
