"""What the structs of all payloads are made of."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct

from colibri.core.canonical import MAX_INTEGER

Natural = Annotated[int, Meta(ge=0, le=MAX_INTEGER)]
Seq = Annotated[int, Meta(ge=1, le=MAX_INTEGER)]
Integer = Annotated[int, Meta(ge=-MAX_INTEGER, le=MAX_INTEGER)]
Name = Annotated[str, Meta(max_length=128)]

# What a payload's header says: seq, session, task.
Header = tuple[int, str | None, str | None]


class Payload(Struct, forbid_unknown_fields=True, gc=False):
    """What a record says."""

    @staticmethod
    def fit(said: Sequence[Any], headers: Iterable[Header]) -> bool:
        """Whether the members of each agree with one another and with its header."""
        return all([one.fits(*header) for one, header in zip(said, headers, strict=True)])
