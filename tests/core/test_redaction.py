"""src/colibri/core/redaction.py: what is found, what never is, and how long it takes."""

import base64
import re
import time
import uuid
from collections.abc import Callable, Iterator
from hashlib import sha1, sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colibri.core import redaction
from colibri.core.redaction import Finding, redact, scrub
from tests.support.made_up_secrets import CORPUS, GITHUB, hexadecimal, mixed, pem

ROOT = Path(__file__).parents[2]
LONGEST = 65_536


@pytest.mark.parametrize(("text", "secret", "kind"), CORPUS.values(), ids=CORPUS)
def test_a_secret_is_replaced_by_its_kind_and_nothing_else_is(
    text: str, secret: str, kind: str
) -> None:
    """Design §6: secrets of known shapes in strings become [redacted:KIND]."""
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


def _examples() -> dict[str, tuple[str, str]]:
    """The shortest token of each row of the table."""
    filling = {"A-Z": "Q2", "a-f": "a1", "A-F": "A1"}
    made = {}
    for kind, starts, follows, least in redaction.TOKENS:
        letters = next((f for c, f in filling.items() if f"[{c}" in follows.decode()), "aZ3")
        for start in starts.decode().split():
            made[start] = (start + (letters * least)[:least], kind)
    return made


@pytest.mark.parametrize(("token", "kind"), _examples().values(), ids=_examples())
def test_each_way_to_begin_is_known_and_must_go_on(token: str, kind: str) -> None:
    assert scrub(f"is {token} it") == f"is [redacted:{kind}] it"
    assert scrub(f"is {token[:-1]} it") == f"is {token[:-1]} it"
    assert scrub(f"is x{token} it") == f"is x{token} it"


HASH = sha256(b"colibri").hexdigest()
HARMLESS = {
    "SHA-256": HASH,
    "SHA-256 in capitals": HASH.upper(),
    "commit": sha1(b"colibri").hexdigest(),
    "UUID": str(uuid.UUID(int=2**127 + 12345)),
    "root": f"root: {HASH}, head 17:{HASH}",
    "log": "colibri/" + HASH[:32],
    "named hashes": f'{{"token": "{HASH}", "SECRET={HASH}": 1}} API_KEY={uuid.UUID(int=7)}',
    "base64": base64.b64encode(bytes(range(256)) * 40).decode(),
    "base64 of JSON": base64.b64encode(b'{"alg":"none","and":"so on and so forth"}').decode(),
    "integrity": "sha512-" + base64.b64encode(bytes(64)).decode(),
    "public key": pem("PUBLIC KEY"),
    "certificate": pem("CERTIFICATE"),
    "a private key that is only spoken of": "look for " + pem("PRIVATE KEY")[:27] + " in the diff",
    "programs": "token = get_token(user1)\npassword=config.password1\nsecret: str = settings.KEY_1",
    "templates": "postgres://u:${PASSWORD1}@h TOKEN=$GITHUB_TOKEN1 API_KEY={{ key1 }} SECRET=<x>",
    "command": "TOKEN=$(gh auth token) make API_KEY=... PASSWORD=*****1",
    "bearer in prose": "send a Bearer token, or Authorization: Bearer <token>",
    "URL": "https://host:8080/@scope/name@1.2.3 and ssh://git@host:22/x and mailto:a@b.c",
    "words": "task-sk-learn risk-adjusted disk-" + "encryption" * 4 + " whisk-",
    "keys": '{"key": "PROJ-12345678", "public_key": "abcdefgh1234", "primary_key": "user_id_12"}',
    "path": "/home/ada/project/src/colibri/server/pipeline.py:120",
    "nothing": "",
}


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS)
def test_what_is_no_secret_is_left_alone(text: str) -> None:
    assert redact(text) == (text, [])


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
    assert found <= {("redaction.py", "url-password")}


def test_a_text_may_hold_several_and_each_kind_is_named_once() -> None:
    two = GITHUB + " " + GITHUB[:-1] + "x " + CORPUS["JWT"][1]
    clean, found = redact({"content": two})
    assert clean == {"content": "[redacted:github-token] [redacted:github-token] [redacted:jwt]"}
    assert found == [Finding("content", "jwt"), Finding("content", "github-token")]


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


def test_half_a_surrogate_pair_stops_nothing() -> None:
    """What an exception says may hold one."""
    assert scrub(f"\ud800 {GITHUB}") == "\ud800 [redacted:github-token]"


def test_a_private_key_that_is_cut_off_is_as_secret() -> None:
    half = pem("PRIVATE KEY")[:200]
    assert scrub(f"{half}\n\nThen I stopped.") == "[redacted:private-key]Then I stopped."


ENDS = (
    ("", "a", " ", "=", '="', " : '"),
    ("a" * 15 + " ", "1" * 7 + ";", "\\n", "%3D", "a: b\n", "a."),
)
PART = LONGEST // 6


def _adversarial() -> Iterator[str]:
    """Texts that begin a shape over and over again, or once, and never end it; for every shape."""
    hints = {shape.hint.decode() for shape in redaction.FRAMES}
    frames = {"://a:", "-----BEGIN PRIVATE KEY-----", "eyJ" + "a" * 20 + ".", 'password": "'}
    frames |= hints | {hint.upper() for hint in hints}
    tokens = {starts.decode().split()[0] for _, starts, *_ in redaction.TOKENS}
    tokens |= {start.decode() for _, start, _ in redaction.SHAPED_TOKENS}
    for start in sorted(frames | tokens):
        for ends in ENDS if start in frames else ENDS[:1]:
            yield "".join(((start + end) * PART)[:PART] for end in ends)
            yield "".join((start + end * PART)[:PART] for end in ends)


def _seconds(work: Callable[[str], object], text: str) -> float:
    start = time.process_time()
    work(text)
    return time.process_time() - start


@pytest.fixture(scope="module")
def much() -> float:
    """Five times what 64 KiB of prose take: a bound that goes with the machine."""
    prose = ("The quick brown fox has no key, token, secret or pass. " * LONGEST)[:LONGEST]
    scrub(prose)
    return 5 * max(_seconds(scrub, prose) for _ in range(5))


def test_no_text_takes_long(much: float) -> None:
    """Linear time: 64 KiB in some milliseconds, whatever they hold."""
    for text in _adversarial():
        assert any(_seconds(scrub, text) < much for _ in range(3)), text[:60]


def test_a_pattern_that_is_not_linear_would_be_noticed(much: float) -> None:
    """Negative control: a part of such a text, and a pattern that reads on from each start."""
    assert _seconds(re.compile(r"eyJ[\w-]{8,}\.").search, ("eyJ" * PART)[:PART]) > much


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
