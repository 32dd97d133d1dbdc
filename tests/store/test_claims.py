"""store/claims.py: who holds a task, until when, and who must claim it again."""

from datetime import datetime, timedelta
from functools import partial

import pytest

from colibri.core.errors import Refused
from colibri.store import claims, sessions, tasks
from colibri.store.claims import Asked, Taken
from colibri.store.tasks import Filter, get
from tests.support.ledger_writer import Lab, in_memory
from tests.support.query_plans import plans

MINUTES = 1.5
NINE = partial(tasks.queue, most=9)


@pytest.fixture
def lab() -> Lab:
    """T-0001 is held by S-1, T-0002 by nobody."""
    lab = in_memory()
    lab.create("held")
    lab.create("free")
    for session in ("S-1", "S-2"):
        lab.start(session)
    lab.move("T-0001", "GATHER", session="S-1")
    return lab


def asked(lab: Lab, now: str, *, session: str | None = "S-2", claim: bool | None = True) -> Asked:
    found = None if session is None else sessions.get(lab.db, session)
    return Asked(found, claim, moves=False, agent=None, now=now, minutes=MINUTES)


def later(lab: Lab, delta: timedelta) -> str:
    """So long after the holder's last sign of life."""
    then = datetime.fromisoformat(sessions.last_sign(lab.db, "S-1").at) + delta
    return then.isoformat(timespec="microseconds").replace("+00:00", "Z")


LIMIT, TICK = timedelta(minutes=MINUTES), timedelta(microseconds=1)


@pytest.mark.parametrize(
    "delta", [-timedelta(days=9_000), -TICK, timedelta(0), TICK, LIMIT - TICK], ids=str
)
def test_a_claim_lives_until_its_time_is_over_and_a_future_sign_counts_as_now(
    lab: Lab, delta: timedelta
) -> None:
    """Specification 8.5."""
    now = later(lab, delta)
    with pytest.raises(Refused) as refused:
        claims.settle(lab.db, get(lab.db, "T-0001"), asked(lab, now))
    assert (refused.value.code, refused.value.fields["is_alive"]) == ("ERR_CLAIMED", True)
    queue, others = claims.queue(lab.db, Filter(), NINE, "S-2", now=now, minutes=MINUTES)
    assert ([task.task_id for task in queue], others) == (["T-0002"], 1)


@pytest.mark.parametrize("delta", [LIMIT, LIMIT + TICK, timedelta(days=9_000)], ids=str)
def test_a_dead_claim_is_taken_with_the_last_sign_and_whole_minutes(
    lab: Lab, delta: timedelta
) -> None:
    now = later(lab, delta)
    sign = sessions.last_sign(lab.db, "S-1")
    claim = claims.settle(lab.db, get(lab.db, "T-0001"), asked(lab, now))
    taken = Taken(sign.seq, int(delta.total_seconds() // 60))
    assert (claim.holder, claim.taken, claim.loser) == ("S-2", taken, "S-1")
    queue, others = claims.queue(lab.db, Filter(), NINE, "S-2", now=now, minutes=MINUTES)
    assert ([task.task_id for task in queue], others) == (["T-0001", "T-0002"], 0)


def test_a_refused_call_is_no_sign_of_life(lab: Lab) -> None:
    """Specification 7.6."""
    before = sessions.last_sign(lab.db, "S-1")
    with pytest.raises(Refused):
        lab.update("T-0002", status="DONE", session="S-1")
    assert sessions.last_sign(lab.db, "S-1") == before
    lab.read(session="S-1")
    assert sessions.last_sign(lab.db, "S-1").seq == lab.head().seq


def test_a_person_releases_a_live_claim_and_its_session_must_claim_again(lab: Lab) -> None:
    """Specification 8.7: with a reason, which is a thought of the same call."""
    freed = lab.update("T-0001", claim=False, session="S-2", agent="human:ada", thought="stuck")
    assert freed.holder is None
    with pytest.raises(Refused) as refused:
        lab.update("T-0001", status="ANALYZE", session="S-1")
    assert (refused.value.code, refused.value.fields["lost"]) == ("ERR_CLAIMED", True)
    assert lab.update("T-0001", claim=True, session="S-1").holder == "S-1"
    assert lab.update("T-0001", status="ANALYZE", session="S-1").status == "ANALYZE"
    assert lab.verify().valid


def test_an_agent_releases_nothing_of_another(lab: Lab) -> None:
    with pytest.raises(Refused) as refused:
        lab.update("T-0001", claim=False, session="S-2", agent="ada", thought="stuck")
    assert refused.value.code == "ERR_CLAIMED"


def test_since_is_when_the_claim_began_not_when_the_task_changed_last(lab: Lab) -> None:
    begun = get(lab.db, "T-0001").updated_at
    lab.update("T-0001", status="ANALYZE", session="S-1")
    lab.update("T-0001", priority="high", session="S-1")
    with pytest.raises(Refused) as refused:
        lab.update("T-0001", claim=True, session="S-2")
    assert refused.value.fields["since"] == begun


def test_a_lost_claim_is_found_by_its_key_and_the_last_sign_by_the_index_of_sessions(
    lab: Lab,
) -> None:
    """However many sessions lost a task, and however long the log is."""
    task, now = get(lab.db, "T-0002"), later(lab, TICK)
    own = plans(
        lab.db, lambda: claims.settle(lab.db, task, asked(lab, now, session="S-1", claim=None))
    )
    assert "lost_claims USING PRIMARY KEY (task=? AND session=?)" in own
    sign = plans(lab.db, lambda: sessions.last_sign(lab.db, "S-1"))
    assert "USING INDEX ledger_by_session (session=?)" in sign
    assert "TEMP B-TREE" not in sign


def test_a_late_move_does_not_regain_a_lost_task(lab: Lab) -> None:
    """Specification 8.6: nor from a holder that has died since; the move came too late."""
    lab.update("T-0001", claim=True, session="S-2", minutes=0)
    assert get(lab.db, "T-0001").holder == "S-2"
    with pytest.raises(Refused) as refused:
        lab.update("T-0001", status="ANALYZE", session="S-1", minutes=0)
    assert (refused.value.code, refused.value.fields["lost"]) == ("ERR_CLAIMED", True)
    assert lab.update("T-0001", claim=True, session="S-1", minutes=0).holder == "S-1"
    assert lab.verify().valid
