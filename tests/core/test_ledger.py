"""core/ledger.py: the record format."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colibri.core import ledger
from colibri.core.canonical import MAX_INTEGER, dump, encode

LOG = "colibri/" + "0123456789abcdef" * 2
NONCE = bytes(32)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
HASHES = st.binary(min_size=32, max_size=32)


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
    """Specification 9.1, 9.2: the RFC 8785 bytes of an object with exactly these members."""
    words = dict(zip(("log", "at", "kind", "call"), texts, strict=True))
    ids = dict(zip(("session", "task", "agent"), names, strict=True))
    made = ledger.header(seq=seq, payload=payload, prev=prev, **words, **ids)  # type: ignore[arg-type]
    members = {"v": 1, "seq": seq, "payload": payload.hex(), "prev": prev.hex(), **words, **ids}
    assert made == encode(members)


def test_genesis_commitment_and_leaf_hash_what_the_format_says() -> None:
    """Specification 9.1."""
    sha = hashlib.sha256
    assert ledger.genesis(LOG) == sha(b"colibri/ledger/v1\n" + LOG.encode()).digest()
    assert ledger.commitment(NONCE, b"{}") == sha(b"colibri/payload/v1\n" + NONCE + b"{}").digest()
    assert ledger.leaf(b"header") == sha(b"\x00header").digest()


def test_the_texts_among_the_arguments_are_replaced_by_their_hash_and_size() -> None:
    """Specification 9.3: the text itself is in one place only."""
    arguments = {"title": "é", "description": None, "task_id": "T-0001", "depends_on": ["T-0002"]}
    payload = json.loads(ledger.enter_body(server="s", tool="task_update", arguments=arguments))
    digest = {"sha256": hashlib.sha256("é".encode()).hexdigest(), "size": 2}
    assert payload["arguments"] == arguments | {"title": digest}
    assert arguments["title"] == "é"
    other = ledger.enter_body(server="s", tool="ours", arguments={"content": ["é"]})
    assert json.loads(other)["arguments"] == {"content": ledger.digest_of('["é"]')}


@pytest.mark.parametrize("data", [b"", b"{", b"1.5", b"NaN", b"{} {}", b"\xff", b"[" * 5_000])
def test_what_is_not_one_value_without_floats_is_not_loaded(data: bytes) -> None:
    with pytest.raises(ValueError):
        ledger.load(data)
    assert ledger.load(b'{"a":[1,"\\u00e9"]}') == {"a": [1, "é"]}


def test_a_refused_call_is_entered_with_the_size_and_hash_of_its_line() -> None:
    """Specification 4.4: arguments null, size and sha256 those of the request line."""
    payload = json.loads(
        ledger.enter_body(server="s", tool="t", arguments=None, size=3, sha256="ab")
    )
    nobody = {"client": None, "host_session": None, "use": None}
    line = {"size": 3, "sha256": "ab"}
    assert payload == {"server": "s", "tool": "t", "arguments": None, **nobody, **line}


@pytest.mark.parametrize("text", [None, "", "plain", 'é "\\ \x00\x1f\x7f\u2028 \U0001f426'])
@pytest.mark.parametrize("number", [None, 0, 2**53 - 1])
def test_what_is_written_faster_is_what_the_canonical_form_says(
    text: str | None, number: int | None
) -> None:
    """Specification 9.1, of the two records that every call has."""
    named, some = text or "", number or 0
    of_enter = {"client": text, "host_session": text, "use": text, "size": number, "sha256": text}
    enter = ledger.enter_body(server=named, tool=named, arguments={"a": [text, number]}, **of_enter)  # type: ignore[arg-type]
    said = {"server": named, "tool": named, "arguments": {"a": [text, number]}, **of_enter}
    assert enter == ledger.body("call.enter", said)
    of_exit = {"code": text, "result_sha256": text, "repeats": number}
    exit = ledger.exit_body(enter=some, tool=named, outcome="ok", duration_ms=some, **of_exit)  # type: ignore[arg-type]
    said = {"enter": some, "tool": named, "outcome": "ok", "duration_ms": some, **of_exit}
    assert exit == ledger.body("call.exit", said)


@pytest.mark.parametrize("value", [1.5, [2**53], {"é": 1}, b"bytes", [["\ud800"]]])
def test_what_canonical_form_has_no_place_for_is_encoded_only_if_it_was_checked_before(
    value: object,
) -> None:
    """Specification 9.1: a server checks the arguments of a call, a hook checks nothing before."""
    members: dict[str, object] = {"reason": value, "seqs": [1]}
    with pytest.raises(ValueError):
        ledger.body("erasure", members)
    assert (
        ledger.body("erasure", members, lambda said: repr(said).encode()) == repr(members).encode()
    )


@pytest.mark.parametrize("number", [2**53, -(2**53)])
def test_a_number_of_an_altered_row_is_never_encoded(number: int) -> None:
    """Specification 9.1: the record could never be verified, even with the row put right."""
    with pytest.raises(ValueError, match="version is beyond 2\\^53-1: audit_verify_chain"):
        ledger.body("task.text", {"task_id": "T-0001", "version": number, "set": {}}, dump)


@pytest.mark.parametrize("kind", ledger.KINDS)
def test_a_payload_with_other_members_than_its_kinds_is_not_encoded(kind: str) -> None:
    """Specification 9.1: an object with all of these members."""
    members: dict[str, object] = dict.fromkeys(ledger.MEMBERS[kind])
    assert json.loads(ledger.body(kind, members)) == members
    with pytest.raises(ValueError, match=f"a {kind} record has"):
        ledger.body(kind, members | {"more": 1})
    members.popitem()
    with pytest.raises(ValueError, match=f"a {kind} record has"):
        ledger.body(kind, members)
