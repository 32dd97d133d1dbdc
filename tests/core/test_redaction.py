"""src/colibri/core/redaction.py: what is found, what never is, and how long it takes."""

import base64
import time
import uuid
from hashlib import sha1, sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colibri.core import escapes, redaction
from colibri.core.redaction import Finding, redact, scrub
from colibri.core.secret_tokens import TOKENS
from tests.support.made_up_secrets import CORPUS, GITHUB, hexadecimal, mixed, pem
from tests.support.secret_shapes import SHAPES, left
from tests.support.secret_surroundings import ALIKE, SURROUNDINGS

ROOT = Path(__file__).parents[2]
LONGEST = 65_536


@pytest.mark.parametrize(("text", "secret", "kind"), CORPUS.values(), ids=CORPUS)
def test_a_secret_is_replaced_by_its_kind_and_nothing_else_is(
    text: str, secret: str, kind: str
) -> None:
    """Specification 4.5: secrets of known shapes in strings become [redacted:KIND]."""
    clean, found = redact(text)
    assert clean == text.replace(secret, f"[redacted:{kind}]")
    assert found == [Finding("", kind)]


@pytest.mark.parametrize(("text", "secret", "kind"), CORPUS.values(), ids=CORPUS)
def test_what_was_redacted_is_not_redacted_again(text: str, secret: str, kind: str) -> None:
    clean, _ = redact(text)
    assert redact(clean) == (clean, [])


@pytest.mark.parametrize(("text", "secret", "kind"), CORPUS.values(), ids=CORPUS)
def test_a_secret_is_found_amid_other_text_of_any_script(text: str, secret: str, kind: str) -> None:
    clean = scrub(f"naïve 日本語 🐦\n{text}\n{'and so on ' * 50}")
    assert secret not in clean
    assert clean.startswith("naïve 日本語 🐦\n")


@pytest.mark.parametrize("name", SURROUNDINGS)
def test_every_shape_is_found_in_these_surroundings_and_only_once(name: str) -> None:
    """Kinds by their own makers' formats, wherever they stand."""
    for shape, (text, secret, kind) in SHAPES.items():
        clean, found = redact(SURROUNDINGS[name](text))
        assert left(clean, secret) == [], shape
        assert kind in [finding.kind for finding in found], shape
        assert redact(clean) == (clean, []), shape


@pytest.mark.parametrize("name", SURROUNDINGS)
def test_what_is_no_secret_is_left_alone_in_these_surroundings(name: str) -> None:
    for text in map(SURROUNDINGS[name], ALIKE):
        assert redact(text) == (text, [])


def test_the_corpus_is_as_large_as_documented() -> None:
    assert len(SHAPES) > 400
    assert len(SURROUNDINGS) > 20
    assert len(ALIKE) > 150
    assert {kind for _, _, kind in SHAPES.values()} >= {
        shape.kind for shape in redaction.SHAPES if shape.kind not in RARE
    }


RARE = {"n8n-key"}  # a JWT behind a name


@pytest.mark.parametrize(
    "joint", ["-", "_", "--", ".", "/", ":", "=", "%3D", "\\n", "\x1b[1m", "("]
)
def test_a_token_is_known_directly_after(joint: str) -> None:
    """`agent-ghp_…`, `old_sk-ant-…`: in an agent's id, a project, an assignee."""
    for shape, (text, secret, _) in SHAPES.items():
        if text == secret and "\n" not in text:
            clean, found = redact(f"agent{joint}{text} it")
            assert left(clean, secret) == [] and found, shape


def _shortest() -> dict[str, tuple[str, str]]:
    """The shortest token of each row of the table."""
    filling = {"[A-Z0": "Q2", "[a-z": "a1", "[a-f": "a1", "[a-fA": "a1", "[A-F": "A1"}
    made = {}
    for kind, starts, follows, least in TOKENS:
        letters = next((f for c, f in filling.items() if follows.decode().startswith(c)), "aZ3")
        for start in starts.decode().split():
            made[start] = (start + (letters * least)[:least], kind)
    return made


@pytest.mark.parametrize(("token", "kind"), _shortest().values(), ids=_shortest())
def test_each_way_to_begin_is_known_and_must_go_on(token: str, kind: str) -> None:
    assert scrub(f"is {token} it") == f"is [redacted:{kind}] it"
    assert scrub(f"is {token[:-1]} it") == f"is {token[:-1]} it"
    assert scrub(f"is x{token} it") == f"is x{token} it"


def test_a_short_beginning_in_long_base64_is_none() -> None:
    """Four characters such as -hf_ are there by chance."""
    token = "hf_" + mixed(34)
    assert scrub(f"agent-{token}") == "agent-[redacted:huggingface-token]"
    assert scrub(f"{mixed(64)}-{token}") == f"{mixed(64)}-{token}"


@given(st.binary(max_size=4096))
def test_hashes_and_base64_of_anything_are_left_alone(data: bytes) -> None:
    texts = (
        data.hex(),
        base64.b64encode(data).decode(),
        base64.urlsafe_b64encode(data).decode(),
        base64.b32encode(data).decode(),
        sha256(data).hexdigest(),
        sha1(data).hexdigest(),
        str(uuid.UUID(bytes=sha256(data).digest()[:16])),
    )
    assert redact(list(texts)) == (list(texts), [])


def test_a_million_characters_of_documents_and_programs_hold_no_secret() -> None:
    """The repository itself: prose, code, JSON, thousands of hashes, and one example of a URL."""
    found, size = set(), 0
    for folder, ending in (("src", "py"), ("docs", "md"), ("tests/vectors", "json")):
        for path in sorted((ROOT / folder).rglob(f"*.{ending}")):
            text = path.read_text(encoding="utf-8", errors="replace")[:LONGEST]
            size += len(text)
            found |= {(path.name, kind) for _, kind in redact(text)[1]}
    assert size > 1_000_000
    assert found == set()


def test_a_text_may_hold_several_and_each_kind_is_named_once() -> None:
    two = GITHUB + " " + GITHUB[:-1] + "x " + CORPUS["JWT"][1]
    clean, found = redact({"content": two})
    assert clean == {"content": "[redacted:github-token] [redacted:github-token] [redacted:jwt]"}
    assert found == [Finding("content", "github-token"), Finding("content", "jwt")]


def test_it_looks_into_lists_and_objects_and_says_where() -> None:
    value = {"a": [1, None, True, {"b": [GITHUB]}], "c": "plain", "d": 1.5}
    clean, found = redact(value)
    assert clean == {
        "a": [1, None, True, {"b": ["[redacted:github-token]"]}],
        "c": "plain",
        "d": 1.5,
    }
    assert found == [Finding("a[3].b[0]", "github-token")]


def test_keys_are_texts_too_and_none_takes_the_place_of_another() -> None:
    other = GITHUB[:-1] + "x"
    clean, found = redact({"env": {GITHUB: 1, other: 2, "plain": 3}})
    assert clean == {
        "env": {"[redacted:github-token]": 1, "[redacted:github-token]+": 2, "plain": 3}
    }
    assert found == [
        Finding("env.[redacted:github-token]", "github-token"),
        Finding("env.[redacted:github-token]+", "github-token"),
    ]


def test_a_secret_is_found_where_two_pieces_meet_and_however_long_it_is() -> None:
    """Longer texts are looked through in pieces, and nothing is skipped."""
    token = "sk-ant-" + "a1-" * 20 + "z"
    for before in range(redaction.PIECE - 70, redaction.PIECE + 2):
        assert scrub(f"{'x' * before} {token} y").endswith("x [redacted:anthropic-key] y")
    long = "sk-ant-" + "a1-" * (1 << 19)
    assert scrub(f"is {long} it, and {token}") == (
        "is [redacted:anthropic-key] it, and [redacted:anthropic-key]"
    )


def test_an_escape_that_two_pieces_would_share_is_read_whole() -> None:
    """Escaped texts are read in pieces as well; none ends within an escape."""
    escaped = f"\\u{ord(GITHUB[0]):04x}{GITHUB[1:]}"
    for before in range(escapes._PIECE - 8, escapes._PIECE + 2):
        text = f"{'x' * before} {escaped} it"
        assert scrub(text).endswith("x [redacted:github-token] it"), before


def test_half_a_surrogate_pair_stops_nothing() -> None:
    """What an exception says may hold one."""
    assert scrub(f"\ud800 {GITHUB}") == "\ud800 [redacted:github-token]"


def test_a_truncated_private_key_is_still_a_secret() -> None:
    half = pem("PRIVATE KEY")[:200]
    assert scrub(f"{half}\n\nThen I stopped.") == "[redacted:private-key]\n\nThen I stopped."
    begin, _, body = half.partition("\n")
    headed = f"{begin}\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123\n\n{body}"
    assert scrub(f"{headed}\nThen I stopped.") == "[redacted:private-key]\nThen I stopped."
    text = f"{begin}\nNote: one\nNote: two\nNote: it is not here"
    assert scrub(text) == text


def test_an_ordinary_text_costs_next_to_nothing() -> None:
    """A title takes some microseconds; a millisecond would be felt."""
    title = "Let the login page of the shop say what went wrong"
    start = time.process_time()
    for _ in range(1000):
        redact({"title": title, "priority": "high", "depends_on": []})
    assert time.process_time() - start < 0.2


def test_the_helpers_make_what_they_say() -> None:
    """Negative control: without the shape the same characters are left alone."""
    for text in (mixed(300), hexadecimal(64), mixed(40)):
        assert scrub(text) == text
