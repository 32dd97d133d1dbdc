"""The roles of a project's schema, and what each may do.

The owner owns everything; nobody logs in as it. The writer appends to the ledger and keeps the
projections, the eraser may also erase, the reader reads.
"""

from typing import Any, NamedTuple

import psycopg
from psycopg import sql

# What the writer may do beside reading. Totals are kept by triggers.
WRITES = {
    "call_keys": "INSERT",
    "deeds": "INSERT",
    "ledger": "INSERT",
    "log_tree": "INSERT",
    "lost_claims": "INSERT, DELETE",
    "merkle_nodes": "INSERT",
    "meta": "INSERT, UPDATE",
    "sessions": "INSERT, UPDATE",
    "task_dependencies": "INSERT, DELETE",
    "task_search": "INSERT, UPDATE",
    "tasks": "INSERT, UPDATE",
    "thought_search": "INSERT",
    "thought_words": "INSERT",
    "thoughts": "INSERT",
}
CALLS = (
    "commitment(bytea, bytea)",
    "current_session(text, text, text, text)",
    "enter_call(text, text, text, text, boolean, text, text, text, double precision, bytea, bytea)",
    "genesis(text)",
    "lock_head(bigint)",
    "record_leaf(text, bigint, text, text, text, text, text, text, bytea, bytea)",
    "take_head(bigint, bigint, bytea)",
    "utc(timestamptz)",
)
# A server that is stopped or cut off must not keep the head from the others.
PATIENCE = {
    "idle_in_transaction_session_timeout": "5s",
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "10s",
}


class Roles(NamedTuple):
    owner: str
    writer: str
    eraser: str
    reader: str


def names(schema: str) -> Roles:
    return Roles(*(f"{schema}_{role}" for role in Roles._fields))


def existing(pg: psycopg.Connection[Any], schema: str) -> list[str]:
    """Which of the roles there are; they belong to the server, not to a database."""
    rows = pg.execute(
        "SELECT rolname FROM pg_roles WHERE rolname = ANY(%s) ORDER BY rolname",
        ([*names(schema)],),
    )
    return [str(name) for (name,) in rows]


def create(pg: psycopg.Connection[Any], schema: str) -> None:
    """Make the roles; who makes them can act as the owner, and nobody else."""
    roles = names(schema)
    _run(pg, "CREATE ROLE {} NOLOGIN", roles.owner)
    for name in roles[1:]:
        _run(pg, "CREATE ROLE {} LOGIN", name)
        _run(pg, "ALTER ROLE {} SET search_path = {}, pg_temp", name, schema)
    for name in (roles.writer, roles.eraser):
        for setting, value in PATIENCE.items():
            _run(pg, f"ALTER ROLE {{}} SET {setting} = '{value}'", name)
    _run(pg, "GRANT {} TO CURRENT_USER", roles.owner)
    _run(pg, "GRANT {} TO {}", roles.writer, roles.eraser)


def grant(pg: psycopg.Connection[Any], schema: str) -> None:
    """Give the roles their rights in the schema in use, and nobody else any; as its owner."""
    _, writer, eraser, reader = names(schema)
    _run(pg, "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {} FROM PUBLIC", schema)
    _run(pg, "GRANT USAGE ON SCHEMA {} TO {}, {}", schema, writer, reader)
    _run(pg, "GRANT SELECT ON ALL TABLES IN SCHEMA {} TO {}, {}", schema, writer, reader)
    for table, rights in WRITES.items():
        _run(pg, f"GRANT {rights} ON {table} TO {{}}", writer)
    _run(pg, "GRANT EXECUTE ON FUNCTION shown(bytea), last_sign(text) TO {}, {}", writer, reader)
    _run(pg, f"GRANT EXECUTE ON FUNCTION {', '.join(CALLS)} TO {{}}", writer)
    _run(pg, "GRANT EXECUTE ON FUNCTION erase(bigint) TO {}", eraser)
    _run(pg, "GRANT DELETE ON thought_search, thought_words TO {}", eraser)


def _run(pg: psycopg.Connection[Any], statement: str, *names: str) -> None:
    """Run a statement of this file with some names in it."""
    pg.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))
