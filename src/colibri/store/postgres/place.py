"""What a connection tells about its server, who it is there, and what of the ledger is on disk."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql

from colibri.store.postgres.roles import names

# A read-only transaction may do this. One that has written nothing would not wait for the disk.
_FLUSH = (
    b"BEGIN; SET LOCAL synchronous_commit = on;"
    b" SELECT pg_logical_emit_message(true, 'colibri', ''); COMMIT"
)
# With a synchronous standby, what is on our disk may still get lost.
_IS_SAFE = """
SELECT pg_is_in_recovery() OR current_setting('synchronous_standby_names') = ''
    AND pg_current_wal_insert_lsn() <= pg_current_wal_flush_lsn()
"""
_FACTS = """
SELECT current_setting('server_version'), current_user, current_schema(),
    (SELECT value FROM meta WHERE key = 'schema'), pg_is_in_recovery(),
    (SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid()), 
    coalesce(inet_client_addr() <<= '127.0.0.0/8' OR inet_client_addr() = '::1', true),
    has_table_privilege('ledger', 'SELECT'),
    has_table_privilege('ledger', 'INSERT')
        AND has_function_privilege('take_head(bigint, bigint, bytea)', 'EXECUTE'),
    has_function_privilege('erase(bigint)', 'EXECUTE'),
    pg_has_role((SELECT nspowner FROM pg_namespace WHERE nspname = current_schema()), 'MEMBER'),
    (SELECT sum(pg_total_relation_size(oid)) FROM pg_class
        WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r')
"""
_RIGHTS = ("read", "write", "erase", "administer")  # in the order of the columns above
_MAY_ERASE = "SELECT has_function_privilege('erase(bigint)', 'EXECUTE'), current_schema()"


def sync(db: Any) -> None:
    """Wait until all that was committed before is on disk, and on a synchronous standby.

    Servers commit before that, so that nobody waits for a disk while they hold the lock. A standby
    has only what is on the disk of its primary.
    """
    if not db.execute(_IS_SAFE).get:  # we may be in a transaction, so another connection does it
        with _another(db) as pg:
            pg.execute(_FLUSH)


@contextmanager
def listening(db: Any) -> Iterator[Callable[[float], object] | None]:
    """Gives a function that waits for the next notification, for so many seconds at most; None on a
    standby, which passes none on.
    """
    is_standby, schema = db.execute("SELECT pg_is_in_recovery(), current_schema()").get
    if is_standby:
        yield None
        return
    with _another(db) as pg:
        pg.execute(sql.SQL("LISTEN {}").format(sql.Identifier(schema)))
        yield lambda seconds: [*pg.notifies(timeout=seconds, stop_after=1)]


def _another(db: Any) -> psycopg.Connection[Any]:
    """A second connection to the same place, by the same settings."""
    return psycopg.connect(db.pg.info.dsn, autocommit=True)


def facts(db: Any) -> dict[str, Any]:
    """The server, who we are there and what we may do, and how large the ledger is."""
    row: Any = db.execute(_FACTS).get
    version, user, schema, schema_version, is_standby, tls, is_local, *may, size = row
    rights = [name for name, has in zip(_RIGHTS, may, strict=True) if has]
    server = {
        "version": f"PostgreSQL {version}",
        "user": user,
        "rights": rights,
        "schema": schema,
        "schema_version": int(schema_version),
        "standby": is_standby,
        "tls": tls,
        "sslmode": db.pg.info.get_parameters().get("sslmode", "prefer"),
        "local": is_local,
    }
    return {"bytes": size, "server": server}


def lacks_to_erase(db: Any) -> str:
    """The eraser's name, if we may not act as it."""
    may, schema = db.execute(_MAY_ERASE).get
    return "" if may else names(schema).eraser
