"""core/ledger.py: the record format, and the checker on rows that no database would hold."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colibri.core import ledger
from colibri.core.canonical import MAX_INTEGER, encode
from colibri.core.chain import Checker
from colibri.core.ledger import Entry, Head
from colibri.core.report import Break, OpenCall, Report
from colibri.core.rows import Row

LOG = "colibri/" + "0123456789abcdef" * 2
AT = "2026-01-01T00:00:00.000000Z"
NONCE = bytes(32)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
HASHES = st.binary(min_size=32, max_size=32)


def enter(tool: str = "task_create") -> dict[str, object]:
    return ledger.enter_payload(server="server-1", tool=tool, arguments={})


def leave(seq: object, tool: str = "task_create") -> dict[str, object]:
    payload = ledger.exit_payload(enter=0, tool=tool, outcome="ok", duration_ms=1)
    return payload | {"enter": seq}


def row(
    seq: int,
    prev: bytes,
    kind: str,
    says: object,
    *,
    call: str = "call-1",
    log: str = LOG,
) -> Row:
    """A record that is sound in itself, whatever its payload."""
    body = says if isinstance(says, bytes) else encode(says)
    payload = ledger.commitment(NONCE, body)
    made = Row(seq, AT, kind, call, None, None, None, payload, NONCE, body, leaf=b"", prev=prev)
    return made._replace(leaf=ledger.leaf(made.header(log)))


def chain(*records: tuple[str, object], calls: Mapping[int, str] | None = None) -> list[Row]:
    rows: list[Row] = []
    for seq, (kind, payload) in enumerate(records, start=1):
        prev = rows[-1].leaf if rows else ledger.genesis(LOG)
        rows.append(row(seq, prev, kind, payload, call=(calls or {}).get(seq, "call-1")))
    return rows


def check(rows: list[Row], *, head: Head | None = None) -> Report:
    known = {row.leaf: row.seq for row in rows}
    checker = Checker(LOG, seq_of=known.get, head=head)
    for row in rows:
        if row.kind == "erasure":
            checker.expect_erased(row)
    for row in rows:
        checker.feed(row)
    return checker.finish(rows[-1].seq if rows else 0)


def damage(rows: list[Row]) -> list[tuple[int, str]]:
    return [(found.seq, found.what) for found in check(rows).breaks]


@given(
    seq=st.integers(1, MAX_INTEGER),
    texts=st.tuples(TEXTS, TEXTS, TEXTS, TEXTS),
    names=st.tuples(st.none() | TEXTS, st.none() | TEXTS, st.none() | TEXTS),
    payload=HASHES,
    prev=HASHES,
)
def test_a_header_is_the_canonical_form_of_its_members(
    seq: int,
    texts: tuple[str, str, str, str],
    names: tuple[str | None, str | None, str | None],
    payload: bytes,
    prev: bytes,
) -> None:
    """Design §9: the RFC 8785 bytes of an object with exactly these members."""
    words = dict(zip(("log", "at", "kind", "call"), texts, strict=True))
    ids = dict(zip(("session", "task", "agent"), names, strict=True))
    made = ledger.header(seq=seq, payload=payload, prev=prev, **words, **ids)  # type: ignore[arg-type]
    members = {"v": 1, "seq": seq, "payload": payload.hex(), "prev": prev.hex(), **words, **ids}
    assert made == encode(members)


def test_genesis_commitment_and_leaf_hash_what_the_format_says() -> None:
    """Design §9, the table of the header."""
    sha = hashlib.sha256
    assert ledger.genesis(LOG) == sha(b"colibri/ledger/v1\n" + LOG.encode()).digest()
    assert ledger.commitment(NONCE, b"{}") == sha(b"colibri/payload/v1\n" + NONCE + b"{}").digest()
    assert ledger.leaf(b"header") == sha(b"\x00header").digest()


def test_the_texts_among_the_arguments_are_replaced_by_their_hash_and_size() -> None:
    """Design §9: the text itself is in one place only."""
    arguments = {"title": "é", "description": None, "task_id": "T-0001", "depends_on": ["T-0002"]}
    payload = ledger.enter_payload(server="s", tool="task_update", arguments=arguments)
    digest = {"sha256": hashlib.sha256("é".encode()).hexdigest(), "size": 2}
    assert payload["arguments"] == arguments | {"title": digest}
    assert arguments["title"] == "é"


def test_a_refused_call_is_entered_with_the_size_and_hash_of_its_line() -> None:
    """Design §9: arguments null, size and sha256 those of the request line."""
    payload = ledger.enter_payload(server="s", tool="t", arguments=None, size=3, sha256="ab")
    assert payload == {"server": "s", "tool": "t", "arguments": None, "size": 3, "sha256": "ab"}


@pytest.mark.parametrize("kind", ledger.KINDS)
def test_a_payload_with_other_members_than_its_kinds_is_not_encoded(kind: str) -> None:
    """Design §9: an object with all of these members."""
    members: dict[str, object] = dict.fromkeys(ledger.MEMBERS[kind])
    assert json.loads(ledger.body(kind, members)) == members
    with pytest.raises(ValueError, match=f"a {kind} record has"):
        ledger.body(kind, members | {"more": 1})
    members.popitem()
    with pytest.raises(ValueError, match=f"a {kind} record has"):
        ledger.body(kind, members)


def test_an_empty_log_is_valid_and_says_that_nothing_was_checked() -> None:
    """No plain OK for an empty log."""
    report = check([])
    assert (report.valid, report.record_count, report.head) == (True, 0, None)
    assert report.first_broken_at is None
    assert report.not_checked[0] == "the log holds no records: nothing was checked"


def test_a_sound_log_has_a_head_and_its_open_calls() -> None:
    """Design §9: an enter without an exit is a fact, not a break."""
    rows = chain(
        ("call.enter", enter()),
        ("call.exit", leave(1)),
        ("call.enter", enter("task_get")),
        calls={3: "call-2"},
    )
    report = check(rows)
    assert report.valid
    assert report.head == Head(3, rows[2].leaf)
    assert report.open_calls == (OpenCall(3, "call-2", "task_get", "server-1", AT),)
    assert report.not_checked == (
        "no head from outside: a cut-off tail or a log written anew cannot be seen",
    )


def test_a_head_from_outside_covers_what_came_before_it() -> None:
    rows = chain(("call.enter", enter()), ("call.exit", leave(1)))
    assert check(rows, head=Head(2, rows[1].leaf)).not_checked == ()
    assert check(rows, head=Head(1, rows[0].leaf)).not_checked == (
        "the records after 1 are newer than the head from outside",
    )


BAD_PAIRS = {
    "it closes nothing": [("call.exit", leave(7))],
    "it closes itself": [("call.exit", leave(1))],
    "it closes what is no call": [
        ("session.open", {"session_id": "S", "intent": "", "task_id": None}),
        ("call.exit", leave(1)),
    ],
    "it closes a call for the second time": [
        ("call.enter", enter()),
        ("call.exit", leave(1)),
        ("call.exit", leave(1)),
    ],
    "it is of another tool": [("call.enter", enter()), ("call.exit", leave(1, "task_get"))],
    "its enter is no integer": [("call.enter", enter()), ("call.exit", leave([1]))],
    "a member is missing": [("call.enter", {"server": "s", "tool": "t"})],
    "a member is too many": [("call.enter", enter() | {"more": 1})],
    "its payload is no object": [("thought", b"[1]")],
    "its payload is no JSON": [("thought", b"{")],
    "its payload is no text": [("thought", b"\xff")],
    "its payload is two values": [("thought", b"{}{}")],
    "its payload holds a float": [("erasure", b'{"reason":"","seqs":[1.5]}')],
    "its payload is endlessly deep": [("thought", b"[" * 100_000)],
}


@pytest.mark.parametrize("records", BAD_PAIRS.values(), ids=BAD_PAIRS.keys())
def test_a_record_that_does_not_fit_its_call_or_kind_is_a_bad_pair(
    records: list[tuple[str, object]],
) -> None:
    assert damage(chain(*records)) == [(len(records), "bad pair")]


def test_an_exit_of_another_call_leaves_the_call_open() -> None:
    rows = chain(("call.enter", enter()), ("call.exit", leave(1)), calls={2: "call-2"})
    report = check(rows)
    assert [(found.seq, found.what) for found in report.breaks] == [(2, "bad pair")]
    assert [call.seq for call in report.open_calls] == [1]


def test_an_enter_whose_payload_does_not_fit_is_still_closed_by_its_exit() -> None:
    """One damage, one name: it does not spread to the exit."""
    rows = chain(("call.enter", {"no": "enter"}), ("call.exit", leave(1)))
    report = check(rows)
    assert [(found.seq, found.what) for found in report.breaks] == [(1, "bad pair")]
    assert report.open_calls == ()


def test_a_record_of_no_kind_is_an_altered_record() -> None:
    """Even though its leaf is its hash."""
    forged = row(1, ledger.genesis(LOG), "call.begin", enter())
    assert check([forged]).breaks == (
        Break(1, "altered record", "there is no such kind of record"),
    )


def test_a_record_of_another_log_is_an_altered_record() -> None:
    forged = row(1, ledger.genesis(LOG), "call.enter", enter(), log="colibri/" + "f" * 32)
    assert damage([forged]) == [(1, "altered record")]


def test_a_second_record_with_the_same_number_is_out_of_order() -> None:
    (first,) = chain(("call.enter", enter()))
    assert damage([first, first]) == [(1, "out of order")]


@pytest.mark.parametrize("column", [{"call": 5}, {"agent": b"x"}, {"payload": "x"}])
def test_a_column_of_another_type_is_an_altered_record(column: dict[str, Any]) -> None:
    """Nothing but a verdict leaves the checker, even if someone rebuilt the table."""
    rows = chain(("call.enter", enter()), ("call.exit", leave(1)))
    rows[0] = rows[0]._replace(**column)
    assert damage(rows) == [(1, "altered record")]


def test_an_exit_is_not_blamed_for_an_enter_that_is_lost() -> None:
    rows = chain(
        ("call.enter", enter()),
        ("call.enter", enter()),
        ("call.enter", enter()),
        ("call.exit", leave(1)),
        ("call.exit", leave(3)),
        calls={2: "call-2", 3: "call-3", 5: "call-3"},
    )
    altered = [rows[0], rows[1], rows[2]._replace(agent="eve"), rows[3], rows[4]]
    assert damage(altered) == [(3, "altered record")]
    assert damage([rows[0], rows[3], rows[4]]) == [(2, "missing record")]
    assert damage([rows[1], rows[3], rows[4]]) == [(1, "missing record"), (3, "missing record")]


def test_only_the_first_hundred_breaks_are_listed_and_all_are_counted() -> None:
    """Design §7: breaks (first 100)."""
    rows = [row._replace(at="?") for row in chain(*[("call.enter", enter())] * 150)]
    report = check(rows)
    assert (report.broken_count, len(report.breaks), report.first_broken_at) == (150, 100, 1)


def erased(rows: list[Row], *seqs: int) -> list[Row]:
    return [row._replace(nonce=None, body=None) if row.seq in seqs else row for row in rows]


def erasure(*seqs: object) -> tuple[str, object]:
    return ("erasure", {"seqs": list(seqs), "reason": "asked for"})


def test_an_erased_payload_is_reported_apart() -> None:
    """Design §9: every verifier reports what is erased, never as fine."""
    rows = chain(("call.enter", enter()), ("call.exit", leave(1)), erasure(1))
    report = check(erased(rows, 1))
    assert (report.valid, report.erased) == (True, (1,))
    assert "1 payload is erased and can no longer be read" in report.not_checked


def test_the_payload_of_a_kind_that_cannot_be_erased_is_missing() -> None:
    rows = chain(("call.enter", enter()), ("call.exit", leave(1)), erasure(2))
    assert damage(erased(rows, 2)) == [(2, "missing payload")]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda row: row._replace(agent="eve"),
        lambda row: row._replace(leaf=bytes(32)),
        lambda row: row._replace(body=row.body.replace(b"asked", b"taken")),
        lambda row: row._replace(nonce=None, body=None),
    ],
    ids=["column", "leaf", "body", "no payload"],
)
def test_a_damaged_erasure_excuses_nothing(spoil) -> None:  # type: ignore[no-untyped-def]
    rows = erased(chain(("call.enter", enter()), ("call.exit", leave(1)), erasure(1)), 1)
    assert damage([*rows[:2], spoil(rows[2])])[0] == (1, "missing payload")


@pytest.mark.parametrize("payload", [{"seqs": [[1]], "reason": ""}, {"reason": ""}])
def test_an_erasure_that_names_no_records_excuses_nothing(payload: object) -> None:
    rows = erased(chain(("call.enter", enter()), ("erasure", payload)), 1)
    assert damage(rows)[0] == (1, "missing payload")


@pytest.mark.parametrize(
    "seqs",
    [
        [3],
        [4],
        [1, 4],
        [2, 1],
        [1, 1],
        [0, 1],
        [-1, 1],
        [],
        [True],
        ["1"],
        [[1]],
        "12",
        {},
        1,
        None,
    ],
    ids=str,
)
def test_an_erasure_of_what_are_not_earlier_records_is_a_bad_erasure(seqs: object) -> None:
    """docs/formats.md §3, §7: ascending, without repetition, of earlier records."""
    rows = chain(
        ("call.enter", enter()),
        ("call.exit", leave(1)),
        ("erasure", {"seqs": seqs, "reason": "asked for"}),
    )
    assert (3, "bad erasure") in damage(erased(rows, 1))


@pytest.mark.parametrize("half", [{"nonce": None}, {"body": None}])
def test_half_a_payload_is_an_altered_one_whatever_an_erasure_says(half: dict[str, Any]) -> None:
    """Erased are both: what is left of one could still be told."""
    rows = chain(("call.enter", enter()), ("call.exit", leave(1)), erasure(1))
    assert damage([rows[0]._replace(**half), *rows[1:]]) == [(1, "altered payload")]


def test_an_erasure_does_not_excuse_what_comes_after_it() -> None:
    """docs/formats.md §7: the seqs of earlier records."""
    rows = erased(chain(("call.enter", enter()), erasure(1, 3), ("call.enter", enter())), 1, 3)
    report = check(rows)
    assert [(found.seq, found.what) for found in report.breaks] == [
        (2, "bad erasure"),
        (3, "missing payload"),
    ]
    assert report.erased == (1,)


def test_a_payload_that_an_erasure_names_and_that_is_still_there_is_a_bad_erasure() -> None:
    """docs/formats.md §9, step 8."""
    rows = chain(("call.enter", enter()), ("call.exit", leave(1)), erasure(1))
    report = check(rows)
    assert [(found.seq, found.what) for found in report.breaks] == [(1, "bad erasure")]
    assert report.open_calls == ()


def test_a_check_that_begins_inside_the_log_does_not_miss_what_came_before() -> None:
    rows = chain(("call.enter", enter()), ("call.exit", leave(1)), ("call.enter", enter()))
    checker = Checker(LOG, seq_of=lambda _: None, after=Entry(1, rows[0].leaf))
    checker.feed(rows[1])
    checker.feed(rows[2])
    assert checker.finish(3).valid
