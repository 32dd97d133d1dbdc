"""No text freezes the server: every pattern and scanner that meets one takes linear time.

The texts are made from each pattern's own grammar, see tests/support/patterns.py.
"""

import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any

import pytest

from colibri.core import redaction
from colibri.core.redaction import scrub
from colibri.core.secret_tokens import REACH
from tests.support.patterns import (
    LADDER,
    LARGE,
    SIZE,
    Pattern,
    attacks,
    collected,
    slow,
    text_of,
    web_patterns,
)
from tests.support.text_readers import READERS, bundle_with, copies
from tests.vectors.builder import b64
from tests.verify.conftest import MODULE

pytestmark = pytest.mark.alone  # it judges times

PATTERNS = {f"{p.where} {p.method} {n}": p for n, p in enumerate(collected())}
WEB = Path(__file__).with_name("support") / "time_patterns.mjs"
VERIFIER = WEB.with_name("time_verifier.mjs")


def _complaints(pattern: Pattern) -> Iterator[str]:
    work = pattern.work()
    texts = attacks(pattern.pattern, pattern.flags)
    found = ((before, body, slow(work, before, body)) for before, body in texts)
    return (f"{before[:40]!r}, then {body[:40]!r}: {why}" for before, body, why in found if why)


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
def test_a_pattern_takes_linear_time(pattern: Pattern) -> None:
    """Also: none is made in a way that `collected` does not know."""
    assert next(_complaints(pattern), None) is None


QUADRATIC = {
    "a tail that is sought from every start": Pattern("", r"eyJ[\w-]{8,}\."),
    "words of a skill as they were": Pattern("", r"[^\s,(]+(?:\([^)]*\))?", method="findall"),
    "texts that are begun at each quote": Pattern("", r'"(?:[^"\\]++|\\.)*+"'),
    "nested repeats": Pattern("", r"(?:a+)+b", method="match"),
    "the lines of a private key as they were": Pattern(
        "",
        rb"-----BEGIN PRIVATE KEY-----(?:\s|\\[nr]){0,8}"
        rb"(?:[A-Za-z-]{2,20}: [^\n\\]{0,200}(?:\s|\\[nr]){1,8}){0,4}[A-Za-z0-9+/]{16,}+",
    ),
}


@pytest.mark.parametrize("pattern", QUADRATIC.values(), ids=QUADRATIC)
def test_a_pattern_that_does_not_is_noticed(pattern: Pattern) -> None:
    """Negative control."""
    assert next(_complaints(pattern), None) is not None


def test_no_pattern_for_secrets_reaches_far() -> None:
    """What makes redaction linear: a bounded match at every start, and bounded pieces."""
    for shape in redaction.SHAPES:
        _, widest = re._parser.parse(shape.pattern).getwidth()  # type: ignore[attr-defined]
        assert widest <= REACH, shape
    assert REACH <= redaction.PIECE


@pytest.mark.parametrize("name", READERS)
def test_a_function_takes_linear_time_for_what_hurts_any_pattern(name: str) -> None:
    """Some of the texts, others with every pattern that is added: scripts/torture text has all."""
    every = sorted({text for p in PATTERNS.values() for text in attacks(p.pattern, p.flags)})
    for before, body in Random(name).sample(every, 10 if copies(name) < 10 else 4):
        why = slow(READERS[name], before, body, copies=copies(name))
        assert why is None, (before, body)


def test_what_froze_the_server_takes_no_time() -> None:
    """427 bytes took 31 s; 16 skills of this kind a minute."""
    for text in ("-----BEGIN " + "PRIVATE KEY-----" + "aa:        " * 36, "a(" * 30_000):
        for work in (scrub, READERS["words of a skill"]):
            assert slow(work, "", text) is None


HELD = 0.1  # seconds of processor time; Python lets others run every 5 ms


@pytest.mark.parametrize("part", ["eyJ-", "\\n", "token=x ", "sk-ant-" + "a1-" * 12])
def test_a_long_text_never_holds_the_interpreter_for_long(part: str) -> None:
    """Another thread gets its turn, again and again, while a long text is looked through."""
    done, longest = Event(), 0.0

    def beat() -> None:
        nonlocal longest
        last = time.process_time()
        while not done.wait(0.001):
            longest = max(longest, time.process_time() - last)
            last = time.process_time()

    other = Thread(target=beat)
    other.start()
    scrub(part * ((1 << 20) // len(part)))
    done.set()
    other.join()
    assert longest < HELD


@pytest.fixture(scope="module")
def node() -> str:
    program = shutil.which("node")
    if program is None:
        pytest.skip("node is not installed: the patterns of the web were not tested")
    return program


def _judged(node: str, items: list[tuple[str, str, str, str]]) -> list[Any]:
    given = json.dumps(items)
    done = subprocess.run([node, str(WEB)], input=given, stdout=-1, encoding="utf-8", check=True)
    answers: list[Any] = json.loads(done.stdout)
    return answers


def test_the_patterns_of_the_web_take_linear_time(node: str) -> None:
    items = [
        (source, flags, before, body)
        for source, flags, alike in web_patterns()
        for before, body in attacks(alike)
    ]
    assert len({source for source, *_ in items}) > 15
    slow_ones = [(item, why) for item, why in zip(items, _judged(node, items), strict=True) if why]
    assert slow_ones == []


def test_a_pattern_of_the_web_that_does_not_is_noticed(node: str) -> None:
    """Negative control."""
    assert ("", "x") in attacks("x[a-z]*y")
    assert _judged(node, [("x[a-z]*y", "", "", "x")]) != [None]


# verify.mjs as a whole: files, and correct bundles, that have what hurts any pattern.


def _files(before: str, body: str) -> Iterator[list[str]]:
    texts = [text_of(before, body, size) for size in (*LADDER, SIZE, LARGE)]
    yield [b64(text.encode("utf-8", "replace")) for text in texts]
    yield [b64(bundle_with(text)) for text in texts]


def _judged_files(node: str, module: Path, items: list[list[str]]) -> list[Any]:
    command = [node, str(VERIFIER), str(module)]
    given = json.dumps(items)
    done = subprocess.run(command, input=given, stdout=-1, encoding="utf-8", check=True)
    answers: list[Any] = json.loads(done.stdout)
    return answers


def test_the_verifier_of_the_web_takes_linear_time_as_a_whole(node: str) -> None:
    of_python = {text for p in PATTERNS.values() for text in attacks(p.pattern, p.flags)}
    of_the_web = {text for _, _, alike in web_patterns() for text in attacks(alike)}
    chosen = [text for one in (of_python, of_the_web) for text in Random(7).sample(sorted(one), 10)]
    items = [files for before, body in chosen for files in _files(before, body)]
    answers = _judged_files(node, MODULE, items)
    assert [(n, why) for n, why in enumerate(answers) if why] == []


def test_a_verifier_of_the_web_that_does_not_is_noticed(node: str, tmp_path: Path) -> None:
    """Negative control: one that also looks for a pattern from every start."""
    module = tmp_path / "verify.mjs"
    text = MODULE.read_text(encoding="utf-8")
    made = text.replace(
        "export function show(text) {", "export function show(text) {\n  text.search(/x[a-z]*y/);"
    )
    assert made != text
    module.write_text(made, encoding="utf-8")
    assert _judged_files(node, module, list(_files("", "x"))) != [None, None]
