"""`colibri team init`: one ledger on a PostgreSQL server, which the machines of a team share."""

import argparse
import shlex
from contextlib import closing
from typing import Any

from colibri.cli import program, terminal
from colibri.config import load
from colibri.server.ids import Ids
from colibri.store.homes import require_driver

HELP = "share one ledger on a PostgreSQL server"

DESCRIPTION = """\
Prepare a PostgreSQL database (version 14 or newer) for a project's ledger, which agents on many
machines and in CI can then share: make a schema with its tables, and four roles. A schema from an
older Colibri is migrated; one that is current stays as it is, so the command can be repeated.

URL is that of an administrator: a superuser, or a role that may create roles and schemas. The
machines of the team connect with less: the writer adds records and can neither change nor delete
one, the reader reads, the eraser also takes texts out (colibri erase). Nobody logs in as the owner.
The command prints what each machine needs.
"""

EPILOG = """\
examples:
  colibri team init postgresql://postgres@db.example/team
  colibri team init postgresql://postgres@db.example/team --schema website
  colibri team init "postgresql://postgres@db.example/team?sslmode=verify-full" --json

Never put a password into the URL: other users could read it in the list of processes, and it would
be stored in settings. libpq finds passwords in ~/.pgpass, in the file that PGPASSFILE names, in a
service (PGSERVICE) or in PGPASSWORD. Those of the new roles are set with psql, which sends only
their hashes.

One schema holds one project. Its roles are named after it and belong to the whole server, so a
second database of that server needs another name.

--json prints schema, log, version, before (the version that it had; 0: it is new), server, tls,
roles {owner, writer, eraser, reader}, environment {writer, reader, eraser} (the variables to set),
passwords {writer, reader, eraser} (the start of the lines for ~/.pgpass) and warnings.

Exit codes: 0 made, migrated or current, 2 usage, 73 configuration, 75 resource, such as a server
that is not reached, or a right that is missing.
"""

LOGINS = ("writer", "reader", "eraser")
_VERIFIED = ("verify-full", "verify-ca")
_UNENCRYPTED = (
    "this connection is not encrypted: whoever is in between can read and change everything; set up"
    " TLS on the server, and add sslmode=verify-full to each URL"
)
_UNVERIFIED = (
    "no machine checks yet that it talks to the right server: add sslmode=verify-full to each URL,"
    " and sslrootcert=FILE if the server's certificate is from your own CA"
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("init",), help="make or migrate the place")
    parser.add_argument("url", metavar="URL", help="postgresql://ADMIN@HOST:PORT/DATABASE")
    parser.add_argument(
        "--schema", metavar="NAME", help="the name of the project there (default: colibri)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    require_driver()
    schema: str = options.schema or load().db_schema
    made = _make(options.url, schema)
    if options.json:
        terminal.emit(made)
    else:
        _show(made, options.url)
    return 0


def _make(url: str, schema: str) -> dict[str, Any]:
    """Make or migrate it; what is there now, and what machines need."""
    from colibri.store.postgres import team  # noqa: PLC0415 - loads psycopg

    with closing(team.connect(url)) as pg:
        made = team.make(pg, schema, Ids().log())
        is_encrypted, is_local = team.encryption(pg)
        place = team.place_of(pg)
        if is_encrypted and place.get("sslmode") not in _VERIFIED:
            place["sslmode"] = "require"  # a password never goes over a plain connection
        roles = made.roles._asdict()
        urls = {role: team.url_of(place, roles[role]) for role in LOGINS}
        return {
            "schema": schema,
            "log": made.log,
            "version": made.version,
            "before": made.before,
            "server": f"PostgreSQL {pg.info.parameter_status('server_version')}",
            "tls": is_encrypted,
            "roles": roles,
            "environment": {role: _environment(role, urls[role], schema) for role in LOGINS},
            "passwords": {role: team.password_lines(pg, roles[role]) for role in LOGINS},
            "warnings": _warnings(is_encrypted, is_local, place.get("sslmode")),
        }


def _environment(role: str, url: str, schema: str) -> dict[str, str]:
    reads = {"COLIBRI_MODE": "READONLY"} if role == "reader" else {}
    return {"COLIBRI_DB_URL": url, "COLIBRI_DB_SCHEMA": schema, **reads}


def _warnings(is_encrypted: bool, is_local: bool, sslmode: str | None) -> list[str]:
    if not is_encrypted:
        return [] if is_local else [_UNENCRYPTED]
    return [] if sslmode in _VERIFIED else [_UNVERIFIED]


def _show(made: dict[str, Any], url: str) -> None:
    field, roles = terminal.field, made["roles"]
    field("schema", (made["schema"], "bold"), f", {_change(made)}")
    field("log", made["log"], whole=True)
    field("server", f"{made['server']}, {'encrypted' if made['tls'] else 'not encrypted'}")
    _step("1. Set a password for each role, once; psql asks for it:")
    for role in LOGINS:
        _type(f"psql {shlex.quote(url)} -c '\\password {roles[role]}'")
    _step(
        "2. On each machine, put the password of its role where libpq finds it: a line in"
        " ~/.pgpass (chmod 600) or the file that PGPASSFILE names, a service, or PGPASSWORD."
    )
    for role in LOGINS[:2]:
        for line in made["passwords"][role]:
            _type(f"{line}:PASSWORD")
    _step("3. Where agents work, set this for MCP clients, their hooks and your shell:")
    _variables(made, "writer")
    _step("   Where people or CI only read:")
    _variables(made, "reader")
    _step(f"   {roles['eraser']} is only for colibri erase, with a URL like the writer's.")
    _step(program.typed("4. colibri doctor shows on each machine whether it works."))
    for warning in made["warnings"]:
        terminal.note(f"warning: {warning}")


def _change(made: dict[str, Any]) -> str:
    version, before = made["version"], made["before"]
    if not before:
        return f"made with version {version}"
    return f"version {version}, as before" if before == version else f"{before} → {version}"


def _variables(made: dict[str, Any], role: str) -> None:
    for name, value in made["environment"][role].items():
        _type(f"export {name}={shlex.quote(value)}")


def _step(text: str) -> None:
    terminal.line(text, hang=3)


def _type(text: str) -> None:
    """A line to copy, in one piece."""
    terminal.line(f"     {text}", whole=True)
