"""What PostgreSQL's errors mean for a process that uses the database."""

import logging

import psycopg

from colibri.store.faults import Fault

DatabaseError = psycopg.Error  # the base of all database errors
# What psycopg logs has the server's words in it as they came, and would go to stderr.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

# The SQLSTATEs of our own functions:
OTHER_VERSION = "CB001"  # the schema was migrated
OTHER_RECORDS = "CB002"  # a record that this server knows is not there


class OutcomeUnknown(psycopg.OperationalError):
    """A commit was not answered, and whether it took effect cannot be looked up, for any reason."""


# A schema, table, column or function is not there, or its schema may not be used.
GONE = ("3F000", "42P01", "42703", "42883")

# By SQLSTATE, or by its class, the first two characters.
_FAULTS: dict[str, Fault] = {
    "53100": "full",
    "40": "busy",  # serialization failure, deadlock
    "53": "busy",  # no memory or connection left for us
    "55P03": "busy",  # a lock was not available in time
    "57014": "busy",  # a statement took too long
    "08": "unreachable",
    "57P": "unreachable",  # the server shuts down, or does not take connections yet
    "25P03": "unreachable",  # it ended our session, which held a transaction open for too long,
    "25P04": "unreachable",  # or a transaction lasted too long
    "25006": "read-only",  # a standby
    "28": "not allowed",  # wrong password, or no such user
    "42501": "not allowed",
    "58": "io",
    "XX001": "damaged",
    "XX002": "damaged",
    **dict.fromkeys(GONE, "damaged"),
}

# What libpq says if the server does not let us in: such an error comes without its SQLSTATE.
NO_PASSWORD = ("no password supplied", "password authentication failed")
_UNTRUSTED = ("certificate", "SSL")
_BROKEN = ("SSL SYSCALL", "SSL connection has been closed", "unexpected eof")  # under TLS
UNENCRYPTED = "no encryption"
_REFUSED = (
    *_UNTRUSTED,
    *NO_PASSWORD,
    "no pg_hba.conf entry",
    "not permitted to log in",
    "does not exist",
)


def fault(exc: BaseException) -> Fault | None:
    """What an error says about the database, or None if nothing."""
    if not isinstance(exc, DatabaseError):
        return None
    if isinstance(exc, OutcomeUnknown):
        return "unknown"
    state = exc.sqlstate
    if state is None:  # the connection broke: no answer came
        why = str(exc)
        if any(said in why for said in _REFUSED) and not any(said in why for said in _BROKEN):
            return "not allowed"
        return "unreachable" if isinstance(exc, psycopg.OperationalError) else None
    known = (_FAULTS.get(state[:length]) for length in (5, 3, 2))
    return next((found for found in known if found), None)


def tls_hint(why: str) -> str:
    """What to do if a connection was not made because of TLS; nothing if that is not the reason."""
    if UNENCRYPTED in why:
        return "the server takes only encrypted connections: add sslmode=verify-full to the URL"
    if any(said in why for said in _UNTRUSTED) and not any(said in why for said in _BROKEN):
        return (
            "sslrootcert=FILE in the URL names the authority that made the server's certificate,"
            " and the certificate has to be for the name of the host in the URL"
        )
    return ""


def breaks_constraint(exc: BaseException) -> bool:
    """Whether a CHECK, a key or a trigger of the schema refused a change."""
    return isinstance(exc, psycopg.errors.IntegrityError | psycopg.errors.RaiseException)
