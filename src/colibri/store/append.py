"""Append: how the functions of the store put a record about their change into the ledger."""

from typing import Protocol

from colibri.core.ledger import Entry


class Append(Protocol):
    """Append a record in the transaction that is open; what it is about goes into the header."""

    def __call__(
        self,
        kind: str,
        payload: dict[str, object],
        *,
        session: str | None = None,
        task: str | None = None,
    ) -> Entry: ...
