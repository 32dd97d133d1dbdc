"""The project that a command looks at: its configuration and its database, read-only."""

import argparse
import shlex
from collections.abc import Iterator
from contextlib import closing, contextmanager

from colibri.cli import terminal
from colibri.config import Config, load
from colibri.core.errors import ResourceError
from colibri.store import ledger, moved
from colibri.store.connection import Connection
from colibri.store.faults import errors, fault
from colibri.store.home import Home
from colibri.store.homes import home_of

DAMAGED = "colibri verify shows what is damaged; restore a backup if you have one"
_HINTS = {
    "unreachable": "try again; colibri doctor shows whether the server can be reached",
    "not allowed": "colibri doctor shows what your role may do there",
}


def options(parser: argparse.ArgumentParser, json: str = "print JSON") -> None:
    """The options that nearly every command has; `json` is the help of --json."""
    parser.add_argument("--json", action="store_true", help=json)
    parser.add_argument("--project", metavar="DIR", help="the project directory")


def again(options: argparse.Namespace) -> str:
    """The option that makes a command in a hint apply to the same project."""
    return f" --project {shlex.quote(options.project)}" if options.project else ""


@contextmanager
def reading(options: argparse.Namespace) -> Iterator[tuple[Config, Connection]]:
    """The database in one read transaction; servers can keep writing meanwhile.

    What it sees is synced first: people are shown heads to keep, which a power cut must not undo.
    """
    with opened(options) as (config, reader), reader:  # one consistent view
        ledger.head(reader)  # the first read fixes what the transaction sees
        reader.engine.sync(reader)
        yield config, reader


@contextmanager
def opened(options: argparse.Namespace) -> Iterator[tuple[Config, Connection]]:
    """The database without a transaction: for reading page by page, or waiting for more."""
    config = load(options.project)
    with closing(home(config).open_reader()) as reader:
        try:
            _tell_moved(reader)
            yield config, reader
        except errors(UnicodeDecodeError) as problem:
            hint = _HINTS.get(fault(problem) or "", DAMAGED)
            raise ResourceError(f"cannot read {config.ledger_name}: {problem}", hint) from problem


def home(config: Config) -> Home:
    """Where the project's ledger is; ResourceError if what its engine needs is not installed."""
    return home_of(*config.home)


def _tell_moved(reader: Connection) -> None:
    """Say so if what is shown goes on elsewhere."""
    mark = moved.mark_of(reader)
    if mark is not None and mark.is_finished:
        terminal.note(f"this ledger was moved to {mark.place}: what is shown here ends with that")
