"""Lanes, through the real server: which calls wait for which, and which never wait."""

import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import apsw
import pytest

from tests.support.client import COLIBRI, Server
from tests.support.faulty import program
from tests.support.ledger_reader import (
    calls,
    create,
    eventually,
    has_entered,
    holding,
    reading,
    verified,
)
from tests.support.patterns import attacks, collected, text_of

SLICE = 10_000
RECORDS = 10 * SLICE
MEDIAN_MS = 100
WORST_MS = 250


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose ledger has RECORDS records, plus those of the tests that use it."""
    project = tmp_path_factory.mktemp("large")
    create(project / "data" / "colibri.db", RECORDS)
    return project


def is_answered(server: Server, id: object) -> bool:
    """Whether the answer has arrived, without waiting for it."""
    return id in server._answers


def ping_until(server: Server, done: Callable[[], bool], most: int = 200) -> list[float]:
    """Ping until done; the milliseconds of each. Never so many that records would be dropped."""
    times: list[float] = []
    while not done() and len(times) < most:
        began = time.perf_counter()
        server.data("server_ping")
        times.append((time.perf_counter() - began) * 1000)
        time.sleep(0.02)  # a pace, so that the pings spread over the whole wait
    return times


def assert_prompt(
    measure: Callable[[], list[float]], label: str, capsys: pytest.CaptureFixture[str]
) -> int:
    """How many pings were sent.

    If one was late, they are sent again: a shared machine may stall once, but a ping that waits
    for something is late every time.
    """
    times = measure()
    again = measure() if max(times) > WORST_MS else []
    with capsys.disabled():
        for some in filter(None, (times, again)):
            print(  # noqa: T201 - figures for the log
                f"\n  {label}: {len(some)} pings, median {statistics.median(some):.1f} ms,"
                f" worst {max(some):.1f} ms"
            )
    judged = again or times
    assert len(judged) >= 5
    assert statistics.median(judged) <= MEDIAN_MS
    assert max(judged) <= WORST_MS
    return len(times) + len(again)


def assert_recorded(database: Path, before: int, pings: int) -> None:
    eventually(lambda: len(calls(database, "server_ping")) - before == pings, "the pings' records")
    assert all(pair.outcome == "ok" for pair in calls(database, "server_ping"))


@pytest.mark.alone
def test_a_ping_does_not_wait_for_a_writing_call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Specification 3.2: the probe lane is the main thread, and has no store."""
    with Server(tmp_path) as server:

        def measure() -> list[float]:
            slow = server.post_call("nap_write", ms=2000)
            return ping_until(server, lambda: is_answered(server, slow))

        pings = assert_prompt(measure, "while nap_write sleeps 2 s", capsys)
        assert_recorded(server.database, 0, pings)


@pytest.mark.alone
def test_a_ping_does_not_wait_for_a_verification(
    large: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Specification 3.2: a ping answers in milliseconds while a million records are verified."""
    with Server(large) as server:
        server.data("note", n=1)  # the database is open and the tools are loaded
        before = len(calls(server.database, "server_ping"))

        def measure() -> list[float]:
            slow = server.post_call("verify")
            times = ping_until(server, lambda: is_answered(server, slow))
            assert server.answer(slow)["result"]["structuredContent"]["data"]["valid"] is True
            return times

        pings = assert_prompt(measure, f"while {RECORDS} records are verified", capsys)
        assert_recorded(server.database, before, pings)


TEXTS, SIZE = 40, 16 * 1024
IN_SKILLS = 5_000  # escaped they may be twelve times as long, and a skill's head has 64 KiB
FROZE = (("-----BEGIN " + "PRIVATE KEY-----", "aa:        "), ("", "a("))  # the server, once


def hurting_texts() -> list[str]:
    """Those that froze it, and some that are made from the grammars of all patterns."""
    every = {text for p in collected() for text in attacks(p.pattern, p.flags)}
    chosen = [*FROZE, *Random(7).sample(sorted(every), TEXTS)]
    return [text_of(before, body, SIZE) for before, body in chosen]


def post_text(server: Server, text: str) -> list[object]:
    """Send a text in every way in which one can arrive."""
    given = {"session_id": "S-1", "type": "plan"}
    return [
        server.post("tools/call", {"name": text, "arguments": {}}),
        server.post(text, {text: text}),
        server.post_call("task_create", title=text[:200], description=text),
        server.post_call("task_create", **{text: [text]}),
        server.post_call("thought_record", content=text, **given),
        server.post_call("thought_record_list", search=text[:256]),
        server.post_call("task_list", search=text[:256]),
        server.post_call("skill_list", search=text[:256]),
    ]


@pytest.mark.alone
def test_a_ping_does_not_wait_for_texts_that_hurt_a_pattern(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Specification 3.2: whatever arrives, in calls, names, keys and skills, is read in slices."""
    texts = hurting_texts()
    for number, text in enumerate(texts):
        folder = tmp_path / ".agents" / "skills" / f"x{number}"
        folder.mkdir(parents=True)
        tools = json.dumps(text[:IN_SKILLS])
        head = f"---\nname: x{number}\ndescription: y\nallowed-tools: {tools}\n---\n"
        (folder / "SKILL.md").write_text(head, encoding="utf-8", errors="replace")
    with Server(tmp_path, COLIBRI) as server:
        server.data("audit_session_start", session_id="S-1", intent="be hurt")
        server.data("skill_list")

        def measure() -> list[float]:
            posted = [id for text in texts for id in post_text(server, text)]
            times = ping_until(server, lambda: all(is_answered(server, id) for id in posted))
            assert all("jsonrpc" in server.answer(id) for id in posted)
            return times

        assert len(server.data("skill_list")["skills"]) == len(texts)
        assert_prompt(measure, f"while {8 * len(texts)} hurting texts arrive", capsys)
        assert server.data("audit_verify_chain")["valid"] is True


@pytest.mark.alone
def test_a_pattern_that_takes_quadratic_time_is_noticed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Negative control of the test before."""
    with Server(tmp_path, program("searches-anew")) as server:
        given = {"session_id": "S-1", "type": "plan", "content": text_of("", "eyJ-", SIZE, "")}
        server.data("audit_session_start", session_id="S-1", intent="be hurt")

        def measure() -> list[float]:
            posted = [server.post_call("thought_record", **given) for _ in range(5)]
            times = ping_until(server, lambda: all(is_answered(server, id) for id in posted))
            assert all("result" in server.answer(id) for id in posted)
            return times

        with pytest.raises(AssertionError):
            assert_prompt(measure, "while a pattern takes quadratic time", capsys)


@pytest.mark.alone
def test_a_ping_does_not_wait_for_another_process_that_holds_the_database(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Specification 3.2, 15.5: the write thread waits up to 10 s, the main thread never."""
    with Server(tmp_path) as server:
        server.data("note", n=1)

        def measure() -> list[float]:
            with holding(server.database):
                until = time.monotonic() + 3
                held = server.post_call("note", n=2)
                times = ping_until(server, lambda: time.monotonic() > until)
                assert not is_answered(server, held)
            assert server.answer(held)["result"]["isError"] is False
            return times

        label = "while another process holds the database for 3 s"
        pings = assert_prompt(measure, label, capsys)
        assert_recorded(server.database, 0, pings)


@pytest.mark.alone
def test_a_reading_call_waits_for_no_more_than_the_round_in_progress(tmp_path: Path) -> None:
    """Specification 3.9: a read's record is committed before the next round.

    A read has two records. So it finishes before the third round after the current one, which on a
    busy machine may be the second of the six.
    """
    with Server(tmp_path) as server:
        server.data("note", n=0)
        naps = [server.post_call("nap_write", ms=400) for _ in range(6)]
        eventually(
            has_entered(server.database, "nap_write", len(naps)), "the round's enter records"
        )
        read = server.post_call("nap_read", ms=0)
        order = [message["id"] for _ in range(7) if (message := server.receive())]

        assert sorted(order) == sorted([*naps, read])
        assert order.index(read) <= 3


def test_calls_of_one_lane_are_run_recorded_and_answered_in_the_order_they_came(
    tmp_path: Path,
) -> None:
    """Specification 3.1: a lane is a FIFO queue; order is kept within a lane."""
    with Server(tmp_path) as server:
        writes, reads = [], []
        for n in range(150):
            writes.append(server.post_call("note", n=n))
            reads.append(server.post_call("nap_read", ms=0))
        order = [message["id"] for _ in range(300) if (message := server.receive())]

        assert [id for id in order if id in set(writes)] == writes
        assert [id for id in order if id in set(reads)] == reads
        notes = calls(server.database, "note")
        assert [pair.arguments["n"] for pair in notes] == list(range(150))
        exits = [pair.exit for pair in notes if pair.exit is not None]
        assert len(exits) == 150
        assert exits == sorted(exits)


def test_a_read_is_recorded_after_the_ping_that_was_answered_before_it(tmp_path: Path) -> None:
    """The ledger shows events in order, and in TEST its ids repeat: README, modes."""
    ids = []
    for run in ("one", "two"):
        project = tmp_path / run
        project.mkdir()
        with Server(project, COLIBRI, COLIBRI_MODE="TEST", COLIBRI_SEED="7") as server:
            for _ in range(50):
                server.data("server_ping")
                server.data("task_list")
        database = project / "data" / "colibri-test.db"
        order = [pair for tool in ("server_ping", "task_list") for pair in calls(database, tool)]
        order.sort(key=lambda pair: pair.seq)
        assert [pair.tool for pair in order] == ["server_ping", "task_list"] * 50
        with reading(database) as db:
            ids.append([id for (id,) in db.execute("SELECT call FROM ledger ORDER BY seq")])
    assert ids[0] == ids[1]


def test_after_a_row_that_cannot_be_read_others_are_seen_as_they_are_now(tmp_path: Path) -> None:
    """A read that failed halfway must not leave the lane with an old snapshot."""
    with Server(tmp_path, COLIBRI) as server:
        server.data("task_create", title="a task")
        _sql(server, "UPDATE tasks SET title = CAST(x'ff41' AS TEXT)")
        assert server.call("task_list")["isError"] is True
        _sql(server, "UPDATE tasks SET title = 'a task'")
        server.data("task_create", title="another")
        assert server.data("task_get", task_id="T-0002")["title"] == "another"
        assert server.data("task_list")["total_count"] == 2


def _sql(server: Server, statement: str) -> None:
    """Run a statement without the server."""
    db = apsw.Connection(str(server.database))
    db.execute(statement)
    db.close()


@pytest.mark.alone
def test_reads_are_served_between_the_slices_of_a_verification(large: Path) -> None:
    """Specification 3.10: between slices the read thread serves waiting calls."""
    with Server(large) as server:
        server.data("note", n=1)
        slow = server.post_call("verify")
        reads = [server.post_call("nap_read", ms=0) for _ in range(3)]
        answers = {message["id"]: message for _ in range(4) if (message := server.receive())}

        assert list(answers) == [*reads, slow]
        assert answers[slow]["result"]["structuredContent"]["data"]["valid"] is True


def test_a_verification_is_not_begun_in_the_middle_of_another(tmp_path: Path) -> None:
    """Specification 3.1, 3.10: the pause between slices serves other tools only."""
    create(tmp_path / "data" / "colibri.db", 3 * SLICE)
    with Server(tmp_path) as server:
        server.data("note", n=1)
        first = server.post_call("verify")
        second = server.post_call("verify")
        later = server.post_call("nap_read", ms=0)
        order = [message["id"] for _ in range(3) if (message := server.receive())]

        assert order.index(first) < order.index(second)
        assert order.index(later) < order.index(second)
        one, two = calls(server.database, "verify")[-2:]
        assert one.exit is not None
        assert one.exit < two.seq


def test_a_call_cancelled_while_it_waits_is_recorded_as_cancelled_and_not_answered(
    tmp_path: Path,
) -> None:
    """Specification 2.15: dropped by a cancellation until its enter record is in a transaction."""
    with Server(tmp_path) as server:
        server.data("note", n=0)  # the database is there, and the next round is the nap's
        running = server.post_call("nap_write", ms=500)
        eventually(has_entered(server.database, "nap_write"), "the nap's enter record")
        waiting = server.post_call("keep", key="cancelled")
        server.notify("notifications/cancelled", {"requestId": waiting})
        after = server.post_call("note", n=1)
        order = [message["id"] for _ in range(2) if (message := server.receive())]

        assert order == [running, after]
        (kept,) = calls(server.database, "keep")
        assert (kept.outcome, kept.code) == ("cancelled", None)
        assert server.data(
            "keep", key="cancelled"
        )  # so the cancelled handler had not written the row
        assert not is_answered(server, waiting)
        verified(server.database)


def test_a_call_cancelled_while_it_runs_finishes_and_answers(tmp_path: Path) -> None:
    """Specification 2.15: a running one finishes and answers."""
    with Server(tmp_path) as server:
        server.data("note", n=0)  # the database is there, and the next round is the nap's
        running = server.post_call("nap_write", ms=300)
        eventually(has_entered(server.database, "nap_write"), "the nap's enter record")
        server.notify("notifications/cancelled", {"requestId": running})

        assert server.answer(running)["result"]["isError"] is False
        (nap,) = calls(server.database, "nap_write")
        assert nap.outcome == "ok"
