"""store/verify.py while somebody erases: an honest log is never called altered."""

from collections.abc import Iterator

import pytest

from colibri.core.ledger import ERASABLE
from colibri.store import erasure
from colibri.store.ledger import Chain
from colibri.store.sqlite.transaction import Transaction
from colibri.store.verify import verify
from tests.support.ledger_writer import LOG, Lab, in_memory, nonce, story

SLICE = 9
PAUSES = range(6)  # of the 54 records of the story
AT = "2026-01-01T00:00:00.000000Z"
CALL = "00000000-0000-4000-8000-0000000000ee"


def erase(lab: Lab, seq: int) -> None:
    with Transaction(lab.db, durable=False):
        targets = erasure.plan(lab.db, [seq])
        (payload,) = erasure.erase(lab.db, targets, reason="asked for")
        Chain(lab.db, LOG, nonce).append("erasure", payload, at=AT, call=CALL)


@pytest.mark.parametrize("kind", sorted(ERASABLE))
@pytest.mark.parametrize("at", PAUSES)
def test_an_erasure_between_any_two_slices_is_no_damage(kind: str, at: int) -> None:
    """Rows, records and payloads may be read before the erasure or after it."""
    for place in (0, -1):
        lab = story(in_memory())
        seq, pauses = lab.seqs(kind)[place], iter(range(100))

        def pause(lab: Lab = lab, seq: int = seq, pauses: Iterator[int] = pauses) -> None:
            if next(pauses) == at:
                erase(lab, seq)

        report = verify(lab.db, pause=pause, slice_size=SLICE)
        assert (report.breaks, report.record_count) == ((), 54)
        assert verify(lab.db, pause=lambda: None).breaks == ()
        lab.db.close()
