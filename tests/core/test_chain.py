"""core/chain.py: feed_all finds exactly what feed finds, row by row."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colibri.core import ledger
from colibri.core.canonical import encode
from colibri.core.chain import STRETCH, Checker
from colibri.core.ledger import Entry, Head
from colibri.core.payload import load
from colibri.core.report import Report
from colibri.core.rows import Row
from colibri.core.rules import Rules
from tests.support.ledger_writer import LOG, in_memory, rows_of, story

Rows = list[Row]
HONEST = rows_of(story(in_memory()))
COUNT = len(HONEST)


def report(
    rows: Rows, *, by: int = 0, head: Head | None = None
) -> tuple[Report, dict[str, Any], dict[str, Any], list[Any]]:
    """The verdict, and what the rules know by then; rows are fed one by one, or so many at once."""
    rules, known = Rules(), {row.leaf: row.seq for row in rows}
    thoughts: list[Any] = []
    rules.sessions.rows = thoughts
    checker = Checker(LOG, seq_of=known.get, head=head, rules=rules)
    for row in rows:
        if row.kind == "erasure":
            checker.expect_erased(row)
    if by:
        for at in range(0, len(rows), by):
            checker.feed_all(tuple(row) for row in rows[at : at + by])
    else:
        for row in rows:
            checker.feed(row)
    sessions = {id: one.values for id, one in rules.sessions.sessions.items()}
    tasks = {id: one.values for id, one in rules.tasks.tasks.items()}
    return checker.finish(max([row.seq for row in rows], default=0)), sessions, tasks, thoughts


def rehashed(rows: Rows, first: int = 0) -> Rows:
    """The same story, made sound from a place on: what the log's own writer could have written."""
    rows = list(rows)
    for at in range(first, len(rows)):
        row = rows[at]
        prev = rows[at - 1].leaf if at else ledger.genesis(LOG)
        payload = ledger.commitment(row.nonce or b"", row.body or b"")
        row = row._replace(payload=payload, prev=prev)
        rows[at] = row._replace(leaf=ledger.leaf(row.header(LOG)))
    return rows


def same(rows: Rows, head: Head | None = None, *, by: int = STRETCH) -> Report:
    """Both ways agree; the report."""
    slow = report(rows, head=head)
    assert report(rows, by=by, head=head) == slow
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

PAIR, PAYLOAD = "bad pair", "bad payload"

# Payloads that look like an enter or an exit, and what is wrong with them, if anything is.
LOOK_ALIKES: dict[str, tuple[str, bytes, str | None]] = {
    "plain": ("call.enter", ENTER % b'{"limit":5,"search":null,"task_id":"T-0001"}', None),
    "no arguments": ("call.enter", ENTER % b"null", None),
    "empty arguments": ("call.enter", ENTER % b"{}", None),
    "a digest": (
        "call.enter",
        ENTER % (b'{"content":{"sha256":"%b","size":7}}' % (b"0" * 64)),
        None,
    ),
    "a list": ("call.enter", ENTER % b'{"depends_on":["T-0001"]}', None),
    "a list of numbers": ("call.enter", ENTER % b'{"depends_on":[1]}', None),
    "a negative": ("call.enter", ENTER % b'{"limit":-5}', None),
    "arguments of another tool": ("call.enter", ENTER % b'{"on":true,"x":1}', None),
    "an escaped tail in a text": ("call.enter", ENTER % (b'{"x":"}%b"}' % TAIL), None),
    "a tail in a key": ("call.enter", ENTER % (b'{"}%b":1}' % TAIL), None),
    "an umlaut": ("call.enter", ENTER % '{"x":"ü"}'.encode(), None),
    "no JSON": ("call.enter", ENTER % b"{]}", PAIR),
    "a bare word": ("call.enter", ENTER % b'{"x":nil}', PAIR),
    "a missing comma": ("call.enter", ENTER % b'{"limit":1"offset":2}', PAIR),
    "a comma at the end": ("call.enter", ENTER % b'{"limit":1,}', PAIR),
    "a comma at the beginning": ("call.enter", ENTER % b'{,"limit":1}', PAIR),
    "a float": ("call.enter", ENTER % b'{"limit":1.5}', PAIR),
    "a leading zero": ("call.enter", ENTER % b'{"limit":01}', PAIR),
    "a raw line break": ("call.enter", ENTER % b'{"search":"\n"}', PAIR),
    "no UTF-8": ("call.enter", ENTER % b'{"search":"\xff"}', PAIR),
    "no UTF-8 in the tool": ("call.enter", (ENTER % b"{}").replace(b'"t"', b'"\xff"'), PAIR),
    "a second tail": ("call.enter", ENTER % b'{}},"server":"s","sha256":null,"size":null', PAIR),
    "a member less": ("call.enter", (ENTER % b"{}").replace(b'"size":null,', b""), PAIR),
    "a space at the end": ("call.enter", ENTER % b"{}" + b" ", PAIR),
    "a line break at the end": ("call.enter", ENTER % b"{}" + b"\n", PAIR),
    "a tool that is no text": ("call.enter", (ENTER % b"{}").replace(b'"t"', b"7"), PAIR),
    "a server that is none": ("call.enter", (ENTER % b"{}").replace(b'"s"', b"null"), PAIR),
    "a space": ("call.enter", ENTER % b'{"limit": 5}', PAYLOAD),
    "arguments out of order": ("call.enter", ENTER % b'{"task_id":"T","limit":5}', PAYLOAD),
    "an argument twice": ("call.enter", ENTER % b'{"limit":5,"limit":5}', PAYLOAD),
    "a needless escape": ("call.enter", ENTER % b'{"search":"\\u0041"}', PAYLOAD),
    "half a pair": ("call.enter", ENTER % b'{"search":"\\ud800"}', PAYLOAD),
    "a minus before nothing": ("call.enter", ENTER % b'{"limit":-0}', PAYLOAD),
    "a number too large": ("call.enter", ENTER % (b'{"limit":%b}' % (b"9" * 16)), PAYLOAD),
    "a key in another language": ("call.enter", ENTER % '{"ü":1}'.encode(), PAYLOAD),
    "sixty-five levels": (
        "call.enter",
        ENTER % (b'{"x":%b%b}' % (b"[" * 63, b"]" * 63)),
        PAYLOAD,
    ),
    "members out of order": (
        "call.enter",
        b'{"server":"s","arguments":{},"sha256":null,"size":null,"tool":"t"}',
        PAYLOAD,
    ),
    "a tool twice": ("call.enter", (ENTER % b"{}")[:-1] + b',"tool":"t"}', PAYLOAD),
    "an exit": ("call.exit", EXIT % b"1", None),
    "an exit of no tool": ("call.exit", (EXIT % b"1").replace(b'"t"', b"null"), PAIR),
    "an exit with a zero before": ("call.exit", EXIT % b"01", PAIR),
    "an exit with a code": ("call.exit", (EXIT % b"1").replace(b"null", b'"E"', 1), None),
    "a raw tab in the code": ("call.exit", (EXIT % b"1").replace(b"null", b'"\t"', 1), PAIR),
    "no UTF-8 in the code": ("call.exit", (EXIT % b"1").replace(b"null", b'"\xff"', 1), PAIR),
    "an enter with a zero before": ("call.exit", (EXIT % b"1").replace(b":1,", b":01,"), PAIR),
    "an endless number": ("call.exit", EXIT % (b"1" * 5_000), PAIR),
    "an exit with a space": ("call.exit", (EXIT % b"1").replace(b",", b", ", 1), PAYLOAD),
    "an exit that took less than no time": ("call.exit", EXIT % b"-0", PAYLOAD),
}


@pytest.mark.parametrize(("kind", "body", "what"), LOOK_ALIKES.values(), ids=LOOK_ALIKES.keys())
def test_a_payload_that_looks_like_a_calls_is_judged_alike_by_both_ways(
    kind: str, body: bytes, what: str | None
) -> None:
    """Design §9: the RFC 8785 bytes of an object with exactly the members of its kind."""
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
    place = 1 if kind == "call.enter" else 2
    assert [(one.seq, one.what) for one in found.breaks] == ([(place, what)] if what else [])
    if kind == "call.enter":
        assert [call.seq for call in same(rows[:1]).open_calls] == [1]
        assert found.open_calls == ()


THOUGHT = b'{"content":%b,"index":0,"prev":"%b","thought_id":"R-2","type":"plan"}'
OPENED = b'{"intent":"try","session_id":"S","task_id":null}'
CONTENTS: dict[str, tuple[bytes, str | None]] = {
    "a text": (b'"because"', None),
    "nothing": (b'""', None),
    "another language": ('"für später"'.encode(), None),
    "escapes": (b'"\\"so\\" \\\\ \\n\\t\\r\\b\\f"', None),
    "a control character": (b'"\\u0001"', None),
    "a look-alike of its tail": (b'"a\\",\\"index\\":0"', None),
    "an escape that needs none": (b'"\\u00fc"', PAYLOAD),
    "an escaped slash": (b'"\\/"', PAYLOAD),
    "upper-case digits": (b'"\\u001F"', PAYLOAD),
    "an escape that has a shorter form": (b'"\\u000a"', PAYLOAD),
    "a raw line break": (b'"\n"', PAIR),
    "no UTF-8": (b'"\xff"', PAIR),
    "an unknown escape": (b'"\\x"', PAIR),
    "no text": (b"7", "bad thought"),
    "two contents": (b'"a","content":"b"', PAYLOAD),
}


@pytest.mark.parametrize(("content", "what"), CONTENTS.values(), ids=CONTENTS.keys())
def test_a_thought_is_judged_alike_by_both_ways(content: bytes, what: str | None) -> None:
    """docs/formats.md §1: the escapes of RFC 8785, and no others."""
    blank = HONEST[0]._replace(session="S", task=None, agent=None)
    body = THOUGHT % (content, b"0" * 64)
    rows = rehashed(
        [
            blank._replace(seq=1, kind="session.open", body=OPENED),
            blank._replace(seq=2, kind="thought", body=body),
        ]
    )
    assert [(one.seq, one.what) for one in same(rows).breaks] == ([(2, what)] if what else [])


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
BODIES = tuple(body for _, body, _ in LOOK_ALIKES.values()) + tuple(
    THOUGHT % (content, b"0" * 64) for content, _ in CONTENTS.values()
)


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
    name = ("payload", "leaf", "prev", "nonce", "body")[chance % 5]
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


def pretend(rows: Rows, at: int, chance: int) -> Rows:
    """An erasure of what is still there."""
    erased = erase(rows, at, 1)
    return [*rows, erased[-1]] if rows[at].body is not None else erased


def test_a_payload_that_should_be_gone_is_found_by_both_ways() -> None:
    """docs/formats.md §9, step 8."""
    for at in range(COUNT):
        found = same(pretend(HONEST, at, 1)).breaks
        assert [(one.seq, one.what) for one in found] == [(HONEST[at].seq, "bad erasure")]


def rewrite(rows: Rows, at: int, chance: int) -> Rows:
    body = BODIES[chance % len(BODIES)]
    return rehashed([*rows[:at], rows[at]._replace(body=body), *rows[at + 1 :]], at)


def rekind(rows: Rows, at: int, chance: int) -> Rows:
    kind = ledger.KINDS[chance % len(ledger.KINDS)]
    return rehashed([*rows[:at], rows[at]._replace(kind=kind), *rows[at + 1 :]], at)


def transplant(rows: Rows, at: int, chance: int) -> Rows:
    return [*rows[:at], rows[chance % len(rows)]._replace(seq=rows[at].seq), *rows[at + 1 :]]


VALUES: tuple[Any, ...] = (
    *(None, True, 0, 1, 2, "1", "x", [], {}, "T-0001", "S-2", "0" * 64),
    *({"status": ["INIT", to]} for to in ("GATHER", "DONE", "CANCELLED", "x", ["x"])),
    {"priority": ["medium", "low"]},
    {"depends_on": [[], ["T-0001"]]},
)


def reword(rows: Rows, at: int, chance: int) -> Rows:
    """One member of a payload says something else, and every hash goes along with it."""
    payload = load(rows[at].body or b"")
    name = sorted(payload)[chance % len(payload)]
    body = encode({**payload, name: VALUES[chance // len(payload) % len(VALUES)]})
    return rehashed([*rows[:at], rows[at]._replace(body=body), *rows[at + 1 :]], at)


@pytest.mark.parametrize("kind", ["session.open", "thought", "session.seal", "task", "task.text"])
def test_whatever_a_record_says_it_is_judged_alike_by_both_ways(kind: str) -> None:
    """Every member of every payload that the rules are about, made another in many ways."""
    for at, row in enumerate(HONEST):
        if row.kind == kind:
            for chance in range(len(VALUES) * len(ledger.MEMBERS[kind])):
                same(reword(HONEST, at, chance))


DAMAGES = (reword, pretend, drop, double, swap, flip, retype, erase, rewrite, rekind, transplant)


@settings(max_examples=600, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(DAMAGES), st.integers(0, COUNT - 1), st.integers(0, 10_000)),
        max_size=3,
    ),
    st.none() | st.integers(1, COUNT + 2),
    st.sampled_from((1, 5, 8, STRETCH)),
)
def test_both_ways_give_the_same_report_of_any_log_with_any_damage(
    damages: list[tuple[Callable[[Rows, int, int], Rows], int, int]], seen: int | None, by: int
) -> None:
    """The short way is only a short way: every kind of damage, up to three at once."""
    rows = HONEST
    for inflict, at, chance in damages:
        try:
            rows = inflict(rows, at % len(rows), chance)
        except (TypeError, AttributeError, ValueError):
            continue  # it cannot be made sound any more after the damage before it
    head = None if seen is None else Head(seen, HONEST[seen % COUNT - 1].leaf)
    found = same(rows, head, by=by)
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


@pytest.fixture(scope="module")
def long() -> Rows:
    """A log of more than two stretches."""
    lab = story(in_memory())
    while lab.head().seq < 2 * STRETCH + 20:
        lab.think("S-2", "and on")
    return rows_of(lab)


@pytest.mark.parametrize("at", [0, 1, STRETCH - 1, STRETCH, STRETCH + 1, 2 * STRETCH, -1])
def test_damage_at_the_edge_of_a_stretch_is_found_by_both_ways(long: Rows, at: int) -> None:
    seq = long[at].seq
    spoilt = [*long]
    spoilt[at] = long[at]._replace(agent="eve")
    assert [(one.seq, one.what) for one in same(spoilt).breaks] == [(seq, "altered record")]
    spoilt[at] = long[at]._replace(leaf=bytes(32))
    assert (seq, "altered record") in [(one.seq, one.what) for one in same(spoilt).breaks]
    assert same([row for row in long if row.seq != seq]).valid is (at == -1)
    assert same(long, Head(seq, long[at].leaf)).valid


def test_a_row_that_cannot_be_read_does_not_take_those_before_it_along() -> None:
    """What an iterator has given before it fails is checked."""

    def rows() -> Iterator[Row]:
        yield from HONEST[:20]
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")

    checker = Checker(LOG, seq_of=lambda _: None)
    with pytest.raises(UnicodeDecodeError):
        checker.feed_all(rows())
    assert checker.seq == 20
    assert checker.finish(20).valid
