"""Keys: calls that a client may send again, because it does not know whether they arrived.

The first call with a key does its work; any other with the same key changes nothing and is answered
with what the first has made. Owns `call_keys`, which has hashes of the keys: a key itself is in the
arguments of its call, and can be erased with them.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import NamedTuple

from colibri.core.errors import Refused
from colibri.core.ledger import without_texts
from colibri.store.connection import Connection

_NOT_COMPARED = {"key", "session_id", "agent_id"}


class Key(NamedTuple):
    """Counts for one tool and, where there is one, for a session."""

    tool: str
    session: str
    text: str

    @property
    def columns(self) -> tuple[str, str, str]:
        return self.tool, self.session, hash_of(self.text)


class First(NamedTuple):
    """The first call with a key: its enter, and the number or seq of what it made."""

    enter: int
    made: int


def find(
    db: Connection, key: Key, arguments: Mapping[str, object], *, compare: bool
) -> First | None:
    """The first call with a key; ERR_KEY_REUSED if that was given other arguments.

    They cannot be compared where a secret in them was replaced, or where the first are erased.
    """
    row = db.execute(
        "SELECT k.enter, k.made, l.body FROM call_keys AS k JOIN ledger AS l ON l.seq = k.enter"
        " WHERE k.tool = ? AND k.session = ? AND k.key = ?",
        key.columns,
    ).fetchone()
    if row is None:
        return None
    enter, made, body = row
    if compare and body is not None:
        given, before = without_texts(arguments), json.loads(body)["arguments"]
        differ = sorted(
            name
            for name in (given.keys() | before.keys()) - _NOT_COMPARED
            if given.get(name) != before.get(name)
        )
        if differ:
            raise Refused(
                "ERR_KEY_REUSED",
                f"this key was first used with another {', '.join(differ)}, in record {enter}: send"
                " the same arguments again, or use a new key",
                enter=enter,
                differ=differ,
            )
    return First(enter, made)


def keep(db: Connection, key: Key, first: First) -> None:
    """Remember the first call with a key."""
    db.execute(
        "INSERT INTO call_keys (tool, session, key, enter, made) VALUES (?, ?, ?, ?, ?)",
        (*key.columns, *first),
    )


def hash_of(key: str) -> str:
    return sha256(key.encode()).hexdigest()
