"""Finds the home of a project's ledger: a file, or a schema on PostgreSQL.

Only the engine that is asked for is loaded.
"""

from colibri.core.errors import ResourceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from colibri.store.home import Home


def home_of(path: str, url: str | None, schema: str, name: str) -> "Home":
    """The home at a path or, if there is a URL, in a schema of its database, known by a name."""
    if url is None:
        from colibri.store.sqlite.home import Home as InFile  # noqa: PLC0415 - loads apsw

        return InFile(path)
    require_driver()
    from colibri.store.postgres.home import Home as OnServer  # noqa: PLC0415 - loads psycopg

    return OnServer(url, name, schema)


def require_driver() -> None:
    """ResourceError if what speaks to PostgreSQL is not installed."""
    try:
        __import__("colibri.store.postgres.faults")  # loads psycopg
    except ImportError as missing:
        raise ResourceError(
            f"a ledger on PostgreSQL needs psycopg, which cannot be loaded: {missing}",
            "pip install 'colibri-mcp[postgres]' installs it",
        ) from missing
