"""The project that a command looks at: its configuration and its database, read-only."""

import argparse
import shlex
from collections.abc import Iterator
from contextlib import closing, contextmanager

from colibri.config import Config, load
from colibri.core.errors import ResourceError
from colibri.store import ledger
from colibri.store.connection import Connection
from colibri.store.faults import DatabaseError
from colibri.store.sqlite.files import sync_log
from colibri.store.sqlite.opening import open_reader


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
        sync_log(config.db_path)
        yield config, reader


@contextmanager
def opened(options: argparse.Namespace) -> Iterator[tuple[Config, Connection]]:
    """The database without a transaction: for reading page by page, or waiting for more."""
    config = load(options.project)
    with closing(open_reader(config.db_path)) as reader:
        try:
            yield config, reader
        except (DatabaseError, UnicodeDecodeError) as problem:
            hint = "colibri verify shows what is damaged; restore a backup if you have one"
            raise ResourceError(f"cannot read {config.db_path}: {problem}", hint) from problem
