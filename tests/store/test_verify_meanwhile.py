"""store/verify.py while somebody erases: an honest log is never called altered."""

from collections.abc import Iterator

import pytest

from colibri.core.ledger import ERASABLE
from colibri.store.verify import verify
from tests.support.ledger_writer import Lab, in_memory, story

SLICE = 9
PAUSES = range(6)  # of the records of the story
RECORDS = 58


@pytest.mark.parametrize("kind", sorted(ERASABLE))
@pytest.mark.parametrize("at", PAUSES)
def test_an_erasure_between_any_two_slices_is_no_damage(kind: str, at: int) -> None:
    """Rows, records and payloads may be read before the erasure or after it."""
    for place in (0, -1):
        lab = in_memory()
        lab.deed(command="first")
        story(lab)
        lab.deed(command="last")
        seq, pauses = lab.seqs(kind)[place], iter(range(100))

        def pause(lab: Lab = lab, seq: int = seq, pauses: Iterator[int] = pauses) -> None:
            if next(pauses) == at:
                lab.erase_everywhere(seq)

        report = verify(lab.db, pause=pause, slice_size=SLICE)
        assert (report.breaks, report.record_count) == ((), RECORDS)
        assert verify(lab.db, pause=lambda: None).breaks == ()
        lab.db.close()
