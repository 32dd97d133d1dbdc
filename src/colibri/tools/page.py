"""Pages of lists: where one begins, and where the next one does."""

from typing import Annotated

from msgspec import Meta

# Of text on one page of what may be long; other rows are small enough for the largest limit.
MAX_PAGE_BYTES = 1024 * 1024

Offset = Annotated[
    int,
    Meta(ge=0, le=2**53 - 1, description="how many to skip: the next_offset of the page before"),
]


def next_offset(offset: int, shown: int, total: int) -> int | None:
    """Where the next page begins; None if there is none."""
    after = offset + shown
    return after if shown and after < total else None
