"""core/chain.py: the short way of feed_all finds exactly what feed finds, row by row."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colibri.core import ledger
from colibri.core.canonical import encode
from colibri.core.chain import Checker, Report, Row
from colibri.core.ledger import Entry, Head
from colibri.core.rules import Rules
from tests.support.traillab import LOG, Lab, in_memory, story

Rows = list[Row]
ALL = (
    "SELECT l.*, p.nonce, p.body FROM ledger AS l LEFT JOIN payloads AS p ON p.seq = l.seq"
    " ORDER BY l.seq"
)


def rows_of(lab: Lab) -> Rows:
    return [Row._make(row) for row in lab.db.execute(ALL)]


HONEST = rows_of(story(in_memory()))
COUNT = len(HONEST)


def report(rows: Rows, *, fast: bool, head: Head | None = None) -> tuple[Report, Any, Any]:
    """The verdict, and what the rules know by then."""
    rules, known = Rules(), {row.leaf: row.seq for row in rows}
    checker = Checker(LOG, seq_of=known.get, head=head, rules=rules)
    for row in rows:
        if row.kind == "erasure":
            checker.expect_erased(row)
    if fast:
        checker.feed_all(tuple(row) for row in rows)
    else:
        for row in rows:
            checker.feed(row)
    sessions = {id: one.values for id, one in rules.sessions.sessions.items()}
    tasks = {id: one.values for id, one in rules.tasks.tasks.items()}
    return checker.finish(max([row.seq for row in rows], default=0)), sessions, tasks


def rehashed(rows: Rows, first: int = 0) -> Rows:
    """The same story, made sound from a place on: what the log's own writer could have written."""
    rows = list(rows)
    for at in range(first, len(rows)):
        row = rows[at]
        prev = rows[at - 1].leaf if at else ledger.genesis(LOG)
        payload = ledger.commitment(row.nonce or b"", row.body or b"")
        named = {name: getattr(row, name) for name in ("at", "kind", "call")}
        named |= {name: getattr(row, name) for name in ("session", "task", "agent")}
        header = ledger.header(log=LOG, seq=row.seq, payload=payload, prev=prev, **named)
        rows[at] = row._replace(header=header, leaf=ledger.leaf(header), prev=prev)
    return rows


def same(rows: Rows, head: Head | None = None) -> Report:
    """Both ways agree; the report."""
    slow = report(rows, fast=False, head=head)
    assert report(rows, fast=True, head=head) == slow
    return slow[0]


def test_an_honest_log_is_sound_by_both_ways() -> None:
    found = same(HONEST)
    assert (found.valid, found.record_count) == (True, COUNT)
    assert same(HONEST, Head(20, HONEST[19].leaf)).valid
    assert not same(HONEST, Head(20, HONEST[18].leaf)).valid
    assert not same(HONEST, Head(COUNT + 1, bytes(32))).valid


ENTER = b'{"arguments":%b,"server":"s","sha256":null,"size":null,"tool":"t"}'
EXIT = b'{"code":null,"duration_ms":%b,"enter":1,"outcome":"ok","result_sha256":null,"tool":"t"}'
TAIL = b',\\"server\\":\\"x\\",\\"sha256\\":null,\\"size\\":null,\\"tool\\":\\"u\\"}'

# Payloads that look like an enter or an exit, and what is wrong with them, if anything is.
LOOK_ALIKES: dict[str, tuple[str, bytes, bool]] = {
    "plain": ("call.enter", ENTER % b'{"limit":5,"on":true,"task_id":"T-0001"}', True),
    "no arguments": ("call.enter", ENTER % b"null", True),
    "empty arguments": ("call.enter", ENTER % b"{}", True),
    "a digest": ("call.enter", ENTER % (b'{"c":{"sha256":"%b","size":7}}' % (b"0" * 64)), True),
    "a list": ("call.enter", ENTER % b'{"depends_on":["T-0001"]}', True),
    "a negative": ("call.enter", ENTER % b'{"limit":-5}', True),
    "an escaped tail in a text": ("call.enter", ENTER % (b'{"x":"}%b"}' % TAIL), True),
    "a tail in a key": ("call.enter", ENTER % (b'{"}%b":1}' % TAIL), True),
    "an umlaut": ("call.enter", ENTER % '{"x":"ü"}'.encode(), True),
    "no JSON": ("call.enter", ENTER % b"{]}", False),
    "a bare word": ("call.enter", ENTER % b'{"x":nil}', False),
    "a missing comma": ("call.enter", ENTER % b'{"a":1"b":2}', False),
    "a float": ("call.enter", ENTER % b'{"x":1.5}', False),
    "a leading zero": ("call.enter", ENTER % b'{"x":01}', False),
    "a raw line break": ("call.enter", ENTER % b'{"x":"\n"}', False),
    "no UTF-8": ("call.enter", ENTER % b'{"x":"\xff"}', False),
    "no UTF-8 in the tool": ("call.enter", (ENTER % b"{}").replace(b'"t"', b'"\xff"'), False),
    "a second tail": ("call.enter", ENTER % b'{}},"server":"s","sha256":null,"size":null', False),
    "a member less": ("call.enter", (ENTER % b"{}").replace(b'"size":null,', b""), False),
    "a space at the end": ("call.enter", ENTER % b"{}" + b" ", False),
    "a line break at the end": ("call.enter", ENTER % b"{}" + b"\n", False),
    "a tool that is no text": ("call.enter", (ENTER % b"{}").replace(b'"t"', b"7"), False),
    "a server that is none": ("call.enter", (ENTER % b"{}").replace(b'"s"', b"null"), False),
    "an exit": ("call.exit", EXIT % b"1", True),
    "an exit of no tool": ("call.exit", (EXIT % b"1").replace(b'"t"', b"null"), False),
    "an exit with a zero before": ("call.exit", EXIT % b"01", False),
    "an exit with a code": ("call.exit", (EXIT % b"1").replace(b"null", b'"E"', 1), True),
    "a raw tab in the code": ("call.exit", (EXIT % b"1").replace(b"null", b'"\t"', 1), False),
    "no UTF-8 in the code": ("call.exit", (EXIT % b"1").replace(b"null", b'"\xff"', 1), False),
    "an enter with a zero before": ("call.exit", (EXIT % b"1").replace(b":1,", b":01,"), False),
    "an endless number": ("call.exit", EXIT % (b"1" * 5_000), False),
}


@pytest.mark.parametrize(("kind", "body", "good"), LOOK_ALIKES.values(), ids=LOOK_ALIKES.keys())
def test_a_payload_that_looks_like_a_calls_is_judged_alike_by_both_ways(
    kind: str, body: bytes, good: bool
) -> None:
    """Design §9: a payload is an object with exactly the members of its kind."""
    enter, left = ENTER % b"{}", EXIT % b"1"
    bodies = [body, left] if kind == "call.enter" else [enter, body]
    blank = HONEST[0]._replace(call="c", session=None, task=None, agent=None)
    rows = rehashed(
        [
            blank._replace(seq=1, kind="call.enter", body=bodies[0]),
            blank._replace(seq=2, kind="call.exit", body=bodies[1]),
        ]
    )
    found = same(rows)
    assert found.valid is good, found.breaks
    if kind == "call.enter":
        same(rows[:1])
        assert [call.seq for call in same(rows[:1]).open_calls] == [1]


def test_open_calls_are_told_in_order_with_tool_server_and_time_by_both_ways() -> None:
    """Design §9: reported as open, with its server."""
    lab = in_memory()
    for tool in ("task_get", "täsk_get", "task_list"):
        with lab.calling(tool, ends=False):
            pass
    found = same(rows_of(lab)).open_calls
    assert [(call.seq, call.tool, call.at[-7:]) for call in found] == [
        (1, "task_get", "000001Z"),
        (2, "täsk_get", "000002Z"),
        (3, "task_list", "000003Z"),
    ]
    assert len({call.server for call in found}) == 1


BAD_PAIRS: dict[str, Callable[[Rows], Rows]] = {
    "the exit of another call": lambda rows: [*rows[:3], rows[3]._replace(call="other"), *rows[4:]],
    "the exit of another tool": lambda rows: [
        *rows[:3],
        rows[3]._replace(body=(rows[3].body or b"").replace(b"task_create", b"task_delete")),
        *rows[4:],
    ],
    "an exit of nothing": lambda rows: [
        *rows[:3],
        rows[3]._replace(body=(rows[3].body or b"").replace(b'"enter":1', b'"enter":2')),
        *rows[4:],
    ],
}


@pytest.mark.parametrize("spoil", BAD_PAIRS.values(), ids=BAD_PAIRS.keys())
def test_a_bad_pair_is_found_by_both_ways(spoil: Callable[[Rows], Rows]) -> None:
    assert [(b.seq, b.what) for b in same(rehashed(spoil(HONEST[:5]))).breaks] == [(4, "bad pair")]


ODD = (None, 5, "", "thought", "call.exit", "ü", '"', b"bytes", b"")
BODIES = tuple(body for _, body, _ in LOOK_ALIKES.values())


def put(row: Row, name: str, value: object) -> Row:
    return row._replace(**{name: value})  # type: ignore[arg-type]


def drop(rows: Rows, at: int, _: Any) -> Rows:
    return rows[:at] + rows[at + 1 :]


def double(rows: Rows, at: int, _: Any) -> Rows:
    return [*rows[: at + 1], *rows[at:]]


def swap(rows: Rows, at: int, _: Any) -> Rows:
    one, other = rows[at], rows[at - 1]
    places = (one._replace(seq=other.seq), other._replace(seq=one.seq))
    return [*rows[: at - 1], *places, *rows[at + 1 :]] if at else rows


def flip(rows: Rows, at: int, chance: int) -> Rows:
    name = ("header", "leaf", "prev", "nonce", "body")[chance % 5]
    value = bytearray(getattr(rows[at], name) or b"-")
    value[chance // 5 % len(value)] ^= 1 << chance % 8
    return [*rows[:at], put(rows[at], name, bytes(value)), *rows[at + 1 :]]


def retype(rows: Rows, at: int, chance: int) -> Rows:
    name = ("at", "kind", "call", "session", "task", "agent", "nonce", "body")[chance % 8]
    value = ODD[chance // 8 % len(ODD)]
    if name in ("nonce", "body") and not isinstance(value, bytes):
        value = None  # the query casts these
    return [*rows[:at], put(rows[at], name, value), *rows[at + 1 :]]


def erase(rows: Rows, at: int, chance: int) -> Rows:
    gone = [*rows[:at], rows[at]._replace(nonce=None, body=None), *rows[at + 1 :]]
    seqs = [rows[at].seq] if chance % 2 else []
    last = rows[-1]._replace(seq=rows[-1].seq + 1, kind="erasure", session=None, task=None)
    body = encode({"seqs": seqs, "reason": "asked for"})
    return rehashed([*gone, last._replace(nonce=bytes(32), body=body)], len(gone))


def rewrite(rows: Rows, at: int, chance: int) -> Rows:
    body = BODIES[chance % len(BODIES)]
    return rehashed([*rows[:at], rows[at]._replace(body=body), *rows[at + 1 :]], at)


def rekind(rows: Rows, at: int, chance: int) -> Rows:
    kind = ledger.KINDS[chance % len(ledger.KINDS)]
    return rehashed([*rows[:at], rows[at]._replace(kind=kind), *rows[at + 1 :]], at)


def transplant(rows: Rows, at: int, chance: int) -> Rows:
    return [*rows[:at], rows[chance % len(rows)]._replace(seq=rows[at].seq), *rows[at + 1 :]]


DAMAGES = (drop, double, swap, flip, retype, erase, rewrite, rekind, transplant)


@settings(max_examples=600, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(DAMAGES), st.integers(0, COUNT - 1), st.integers(0, 10_000)),
        max_size=3,
    ),
    st.none() | st.integers(1, COUNT + 2),
)
def test_both_ways_give_the_same_report_of_any_log_with_any_damage(
    damages: list[tuple[Callable[[Rows, int, int], Rows], int, int]], seen: int | None
) -> None:
    """The short way is only a short way: every kind of damage, up to three at once."""
    rows = HONEST
    for inflict, at, chance in damages:
        try:
            rows = inflict(rows, at % len(rows), chance)
        except (TypeError, AttributeError):
            continue  # it cannot be made sound any more after the damage before it
    head = None if seen is None else Head(seen, HONEST[seen % COUNT - 1].leaf)
    found = same(rows, head)
    assert rows != HONEST or found.valid or seen is not None


def test_a_check_from_the_middle_goes_both_ways_too() -> None:
    after = Entry(10, HONEST[9].leaf)
    reports = []
    for fast in (True, False):
        checker = Checker(LOG, seq_of=lambda _: None, after=after)
        if fast:
            checker.feed_all(HONEST[10:])
        else:
            for row in HONEST[10:]:
                checker.feed(row)
        reports.append(checker.finish(COUNT))
    assert reports[0] == reports[1]
    assert (reports[0].valid, reports[0].record_count) == (True, COUNT - 10)
