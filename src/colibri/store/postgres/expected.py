"""The schema that a ledger on PostgreSQL must have, and how another one differs.

A trigger that is disabled, or a function that was replaced, guards nothing any more. So what the
migrations say is compared with what PostgreSQL's catalogue says. Versions of PostgreSQL word
expressions differently; therefore our triggers have no condition, and what they do is the text of a
function, which the catalogue keeps as it was given. Of views only the names are compared: no
verification reads one.
"""

import re
from collections.abc import Iterator
from typing import Any

from colibri.store.connection import Connection
from colibri.store.postgres.roles import WRITES
from colibri.store.postgres.schema import load_migrations

MAX_NAME = 100

Objects = dict[tuple[str, str], str]

_COMMENT = re.compile(r"--[^\n]*")
# These are matched at the start of a statement: what `CREATE` begins.
_FUNCTION = re.compile(r"\AFUNCTION (\w+)\(([^$]*?)AS \$\$(.*?)\$\$;", re.DOTALL)
_BEFORE_PARENTHESIS = re.compile(r"(?<!\s)\s++([()])")
_SETTING = re.compile(r"SET (\w+) = (\w+)")
_TABLE = re.compile(r"\ATABLE (\w+) \((.*?)\n\);", re.DOTALL)
_COLUMN = re.compile(r'^ +(\w+) +(bigint|bytea|tsvector|text COLLATE "C")(.*)$', re.MULTILINE)
_NAMED = re.compile(r"CREATE (VIEW|INDEX|UNIQUE INDEX) (\w+)(?:\s+ON (\w+))?")
_TRIGGER = re.compile(
    r"\ATRIGGER (\w+) (BEFORE|AFTER) ([A-Z]++(?: OR [A-Z]++)*+) ON (\w++)[\w\s]*?"
    r"FOR EACH (ROW|STATEMENT) EXECUTE FUNCTION (\w+)\(\);"
)
# The words of a trigger, as the bits of pg_trigger.tgtype.
_BITS = {"ROW": 1, "BEFORE": 2, "INSERT": 4, "DELETE": 8, "UPDATE": 16, "TRUNCATE": 32}
_CONSTRAINTS = {"CHECK": "c", "REFERENCES": "f", "PRIMARY KEY": "p", "UNIQUE": "u"}

_FOUND = """
WITH here AS (SELECT oid, nspowner FROM pg_namespace WHERE nspname = current_schema()),
    tables AS (SELECT c.* FROM pg_class AS c JOIN here ON c.relnamespace = here.oid)
SELECT 'schema', current_schema()::text, pg_get_userbyid(nspowner)::text FROM here
UNION ALL
SELECT CASE relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' ELSE 'relation' END, relname,
    CASE WHEN relowner = nspowner AND (relkind = 'v' OR relkind = 'r' AND relpersistence = 'p'
        AND NOT relrowsecurity AND NOT relhassubclass
        AND NOT EXISTS (SELECT 1 FROM pg_inherits WHERE inhrelid = tables.oid))
        THEN '' ELSE 'unusual' END
FROM tables, here WHERE relkind NOT IN ('i', 'I')
UNION ALL
SELECT 'column', relname || '.' || attname, format_type(atttypid, atttypmod)
    || CASE WHEN attcollation > 0 THEN ' COLLATE ' || attcollation::regcollation ELSE '' END
    || CASE WHEN attnotnull THEN ' NOT NULL' ELSE '' END
    || CASE WHEN attgenerated <> '' THEN ' GENERATED' WHEN atthasdef THEN ' DEFAULT' ELSE '' END
FROM tables JOIN pg_attribute ON attrelid = tables.oid AND attnum > 0 AND NOT attisdropped
WHERE relkind = 'r'
UNION ALL
SELECT 'table', relname || '''s constraints', string_agg(contype::text, '' ORDER BY contype::text)
FROM tables JOIN pg_constraint ON conrelid = tables.oid AND contype::text IN ('c', 'f', 'p', 'u')
    AND convalidated GROUP BY relname
UNION ALL
SELECT 'index', i.relname, t.relname || CASE WHEN indisunique THEN ' UNIQUE' ELSE '' END
    || CASE WHEN indisvalid THEN '' ELSE ' invalid' END
FROM pg_index JOIN tables AS i ON i.oid = indexrelid JOIN pg_class AS t ON t.oid = indrelid
WHERE NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = indexrelid AND contype::text <> 'f')
UNION ALL
SELECT 'trigger', tgname, concat_ws(' ', relname, tgtype, tgfoid::regproc,
    CASE WHEN tgdeferrable THEN 'deferrable' END,
    CASE WHEN tgenabled <> 'O' THEN 'disabled' END,
    CASE WHEN tgqual IS NOT NULL OR cardinality(tgattr::int[]) > 0 THEN 'conditional' END)
FROM tables JOIN pg_trigger ON tgrelid = tables.oid JOIN pg_proc ON pg_proc.oid = tgfoid
WHERE NOT tgisinternal OR tgenabled <> 'O' OR pronamespace <> 'pg_catalog'::regnamespace
UNION ALL
SELECT 'function', proname, concat_ws(' ', pg_get_function_arguments(pg_proc.oid) || ')',
    CASE WHEN 'o' <> ALL (coalesce(proargmodes, '{}'))
        THEN 'RETURNS ' || pg_get_function_result(pg_proc.oid) END,
    'LANGUAGE ' || lanname,
    CASE provolatile WHEN 's' THEN 'STABLE' WHEN 'i' THEN 'IMMUTABLE' END,
    CASE WHEN proisstrict THEN 'STRICT' END,
    CASE WHEN prosecdef THEN 'SECURITY DEFINER' END,
    CASE WHEN proowner <> nspowner THEN 'foreign' END,
    CASE WHEN 'search_path=' || quote_ident(current_schema()) || ', pg_temp' = ANY (proconfig)
        THEN NULL ELSE 'elsewhere' END,
    (SELECT string_agg(setting, ' ') FROM unnest(proconfig) AS setting
        WHERE setting NOT LIKE 'search_path=%'), prosrc)
FROM pg_proc JOIN here ON pronamespace = here.oid JOIN pg_language ON pg_language.oid = prolang
UNION ALL
SELECT 'rule', rulename, '' FROM tables JOIN pg_rewrite ON ev_class = tables.oid
WHERE rulename <> '_RETURN'
UNION ALL
SELECT 'operator', oprname, '' FROM pg_operator JOIN here ON oprnamespace = here.oid
UNION ALL
SELECT 'type', typname, '' FROM pg_type JOIN here ON typnamespace = here.oid
WHERE typrelid = 0 AND typcategory <> 'A'
UNION ALL
SELECT 'collation', collname, '' FROM pg_collation JOIN here ON collnamespace = here.oid
UNION ALL
SELECT 'right', privilege_type || ' ON ' || name || ' TO '
    || CASE grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(grantee) END,
    CASE WHEN is_grantable THEN 'for others too' ELSE '' END
FROM here, (SELECT relname AS name, relacl AS rights FROM tables
    UNION ALL SELECT relname || '.' || attname, attacl
        FROM tables JOIN pg_attribute ON attrelid = tables.oid
    UNION ALL SELECT nspname, nspacl FROM pg_namespace JOIN here USING (oid)
    UNION ALL SELECT proname, coalesce(proacl, acldefault('f', proowner))
        FROM pg_proc JOIN here ON pronamespace = here.oid WHERE prosecdef
) AS given, aclexplode(rights)
WHERE grantee <> nspowner AND privilege_type IN
    ('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER', 'CREATE', 'EXECUTE')
UNION ALL
SELECT 'right', 'to act as ' || other.rolname || ' TO ' || role.rolname, ''
FROM pg_roles AS role, pg_roles AS other
WHERE role.rolname = ANY (ARRAY[current_schema() || '_writer', current_schema() || '_eraser',
        current_schema() || '_reader'])
    AND other.rolname = ANY (ARRAY[current_schema() || '_owner', current_schema() || '_writer',
        current_schema() || '_eraser'])
    AND role.oid <> other.oid AND pg_has_role(role.oid, other.oid, 'MEMBER')
UNION ALL
SELECT 'setting', 'session_replication_role', '' WHERE EXISTS (
    SELECT 1 FROM pg_db_role_setting, unnest(setconfig) AS setting
    WHERE setting ~ '^session_replication_role=(replica|local)')
    OR (SELECT reset_val FROM pg_settings WHERE name = 'session_replication_role') <> 'origin'
"""


def foreign(db: Connection) -> list[str]:
    """What was added to, changed in or removed from the schema in use; nothing if it is ours."""
    rows = db.execute(_FOUND).fetchall()
    schema = next(name for kind, name, _ in rows if kind == "schema")
    found: Objects = {}
    for kind, name, definition in rows:
        # A second function of the same name differs from the one that we made.
        found[kind, name] = found.get((kind, name), "") + definition
    return [*_compare(found, _wanted(schema))]


def _wanted(schema: object) -> Objects:
    wanted: Objects = {("schema", str(schema)): f"{schema}_owner"}
    for right in ("DELETE ON thought_search", "DELETE ON thought_words", "EXECUTE ON erase"):
        wanted["right", f"{right} TO {schema}_eraser"] = ""
    wanted["right", f"to act as {schema}_writer TO {schema}_eraser"] = ""
    for step in load_migrations():
        sql = _COMMENT.sub("", step.sql)
        wanted.update(_functions(step.sql))
        wanted.update(_tables(sql))
        wanted.update(_triggers(sql))
        for kind, name, table in _NAMED.findall(sql):
            unique = " UNIQUE" if kind == "UNIQUE INDEX" else ""
            wanted[kind.split()[-1].lower(), name] = f"{table}{unique}"
    for table, rights in WRITES.items():
        for right in rights.split(", "):
            wanted["right", f"{right} ON {table} TO {schema}_writer"] = ""
    return wanted


def _functions(sql: str) -> Iterator[tuple[tuple[str, str], str]]:
    for name, declared, text in _created(_FUNCTION, sql):
        head, *settings = declared.split("SET search_path")
        marks = " ".join(_BEFORE_PARENTHESIS.sub(r"\1", head).split()) + " "
        marks += "elsewhere " * (not settings)
        marks += "".join(f"{setting}={value} " for setting, value in _SETTING.findall(declared))
        yield ("function", name), marks + text


def _tables(sql: str) -> Iterator[tuple[tuple[str, str], str]]:
    for table, body in _created(_TABLE, sql):
        yield ("table", table), ""
        for name, kind, more in _COLUMN.findall(body):
            is_needed = "NOT NULL" in more or "PRIMARY KEY" in more
            marks = " NOT NULL" * is_needed + " GENERATED" * ("GENERATED" in more)
            yield ("column", f"{table}.{name}"), kind + marks
        kinds = (sign * body.count(word) for word, sign in _CONSTRAINTS.items())
        yield ("table", f"{table}'s constraints"), "".join(kinds)


def _triggers(sql: str) -> Iterator[tuple[tuple[str, str], str]]:
    for name, when, events, table, each, function in _created(_TRIGGER, sql):
        bits = sum(_BITS.get(word, 0) for word in (when, each, *events.split(" OR ")))
        yield ("trigger", name), f"{table} {bits} {function}"


def _created(pattern: re.Pattern[str], sql: str) -> Iterator[tuple[Any, ...]]:
    """The parts of each statement that the pattern knows."""
    found = map(pattern.match, sql.split("\nCREATE "))
    return (one.groups() for one in found if one)


def _compare(found: Objects, wanted: Objects) -> Iterator[str]:
    for key in sorted(found.keys() | wanted.keys()):
        kind, name = key[0], repr(key[1])[1:-1][:MAX_NAME]
        if key not in wanted:
            yield f"the {kind} {name} was added"
        elif key not in found:
            yield f"the {kind} {name} is missing"
        elif found[key] != wanted[key]:
            yield f"the {kind} {name} is defined differently"
