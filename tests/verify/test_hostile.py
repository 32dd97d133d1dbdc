"""Hostile bundles: whatever the bytes, a verdict of 1 or 2, no traceback, and soon."""

import base64
import copy
import json
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.ignorable import ignorable
from tests.vectors.builder import (
    Log,
    Object,
    b64,
    bundle_from,
    canonical,
    log_bundle,
    session_bundle,
    sha,
    text_of,
    uuid,
)
from tests.vectors.honest import S, finished, small
from tests.verify.conftest import MODULE, VECTORS, Node, load_verifier

verifier = load_verifier()
quick = settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))

GAPS = "session-call-ends-after-it"  # a session bundle that cannot pass for a whole log
GOOD = {
    name: bundle_from((VECTORS / "good" / f"{name}.colibri.json").read_bytes())
    for name in ("log", "session", "thoughts-of-3", GAPS)
}
OTHERS: tuple[Any, ...] = (None, True, 0, -1, 1.5, 2**53, "", "x", [], {}, [[]], {"a": 1})


def exit_code(data: bytes) -> int:
    code = verifier.verify(data).exit_code
    assert isinstance(code, int)
    return code


# Wrong types at every place of every line


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value inside a value, itself included."""
    yield path
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from places(item, (*path, key))


def with_other(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    if not path:
        return other
    changed = copy.copy(value)
    changed[path[0]] = with_other(value[path[0]], path[1:], other)
    return changed


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def is_same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and a == b


def swaps(text: bytes) -> Iterator[bytes]:
    """A file in one line of which something has another type, or one line is another."""
    lines = [json.loads(line) for line in text.splitlines()]
    for number, line in enumerate(lines):
        for path in places(line):
            for other in OTHERS:
                if not is_same(at(line, path), other):
                    changed = [*lines[:number], with_other(line, path, other), *lines[number + 1 :]]
                    yield b"".join(canonical(one) + b"\n" for one in changed)


@pytest.mark.parametrize("name", ["log", "thoughts-of-3", GAPS])
def test_another_type_at_any_place_of_a_bundle_is_never_good(name: str) -> None:
    found = [exit_code(data) for data in swaps(text_of(GOOD[name]))]
    assert set(found) <= {1, 2} and len(found) > 400


def test_both_verifiers_say_the_same_of_every_wrong_type(node: Node) -> None:
    texts = [*swaps(text_of(GOOD["thoughts-of-3"]))]
    answers = node("verify", [{"base64": b64(text)} for text in texts])
    for text, answer in zip(texts, answers, strict=True):
        mine = verifier.verify(text).as_json()
        assert codes(answer) == codes(mine), text
        assert answer["verdict"] == mine["verdict"]


def codes(verdict: Object) -> list[tuple[str, int | None]]:
    return [(finding["code"], finding["seq"]) for finding in verdict["findings"]]


def one_of_each() -> Log:
    log = finished()
    log.seal(S)
    log.erase(log.drafts[23])
    return log


def bodies_with_other_types() -> Iterator[bytes]:
    """A log with a value of another type in one payload, hashed again."""
    seen = set()
    for number, draft in enumerate(one_of_each().drafts):
        if draft.kind in seen:
            continue
        seen.add(draft.kind)
        plain = {name: None if callable(value) else value for name, value in draft.body.items()}
        for path in places(plain):
            for other in OTHERS if path else ():
                if not is_same(at(plain, path), other):
                    log = one_of_each()
                    body = log.drafts[number].body
                    body[path[0]] = with_other(body[path[0]], path[1:], other)
                    yield text_of(log_bundle(log))


def test_another_type_inside_any_payload_never_raises() -> None:
    """Some of these are legal (another reason, say); none may end in a traceback."""
    found = [exit_code(data) for data in bodies_with_other_types()]
    assert len(found) > 300
    assert found.count(1) > 0.8 * len(found)


# Any bytes at all


@quick
@given(st.binary(max_size=300))
def test_random_bytes_cannot_be_judged(data: bytes) -> None:
    assert exit_code(data) == 2


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=12,
)


@quick
@given(json_values)
def test_random_json_cannot_be_judged(value: object) -> None:
    assert exit_code(json.dumps(value).encode()) == 2


@quick
@given(
    value=json_values,
    seq=st.integers(0, 16),
    name=st.sampled_from(sorted(verifier.members("header"))),
)
def test_a_random_value_in_a_header_is_never_good(value: object, seq: int, name: str) -> None:
    bundle = copy.deepcopy(GOOD["log"])
    header = json.loads(base64.b64decode(bundle["headers"][seq]))
    if is_same(header[name], value):
        return
    try:
        bundle["headers"][seq] = b64(canonical({**header, name: value}))
    except UnicodeEncodeError:
        return
    assert exit_code(text_of(bundle)) == 1


@quick
@given(data=st.data())
def test_a_flipped_byte_of_a_bundle_is_never_good_with_its_head_known(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["log", "session", "thoughts-of-3"]))
    text = bytearray(text_of(GOOD[name]))
    head = GOOD[name]["head"]
    where = data.draw(st.integers(0, len(text) - 1))
    text[where] ^= 1 << data.draw(st.integers(0, 7))
    verdict = verifier.verify(bytes(text), head=(head["seq"], head["leaf"]))
    assert verdict.exit_code in (1, 2), text[max(0, where - 20) : where + 20]


# Large, deep, twice; without end

FIRST = text_of(GOOD["log"]).splitlines(keepends=True)[0]
LINE, ZEROS = b'{"header":"QUFB"}\n', b"0" * 64


def odd_texts() -> list[bytes]:
    return [
        b"[" * 1_000_000,
        b'{"a":' * 1_000_000,
        b"[" * 500 + b"]" * 500 + b"\n",
        b'{"format":"colibri-bundle/2","headers":' + b"[" * 200_000,
        b" " * 10_000_000,
        b'"' + b"\\n" * 5_000_000 + b'"\n',
        b"9" * 5_000_000 + b"\n",
        b"-" * 1000,
        b"\n" * 5_000_000,
        b"\xff\xfe" + "{}".encode("utf-16-le"),
        b'{"a":1,"a":1}\n',
        b'{"__proto__":{"format":"colibri-bundle/2"}}\n',
        FIRST + b"{}\n" * 1_000_000,
        FIRST + b"[" + b"{}," * 5_000_000 + b"{}]\n",
        FIRST + b'{"index":' + b"[" * 1_000_000 + b"\n",
        FIRST + b'{"head":{"leaf":"' + ZEROS + b'","seq":' + b"9" * 1_000_000 + b"}}\n",
        FIRST + b'{"header":"' + b"QUFB" * 5_000_000 + b'"}\n',
        FIRST + b'{"header":"' + b"?" * 1_000_000 + b'"}\n',
        FIRST + b'"' * 1_000_000 + b"\n",
    ]


def test_deep_long_and_odd_texts_are_refused_alike_in_both(node: Node) -> None:
    for data in odd_texts():
        started = time.process_time()
        mine = verifier.verify(data).as_json()
        assert time.process_time() - started < 20
        assert mine["verdict"] == "cannot tell"
        (answer,) = node("verify", [{"base64": b64(data)}])
        assert codes(answer) == codes(mine), data[:100]


@pytest.mark.parametrize("seq", [2**53 - 1, 2**53, 10**30])
def test_huge_seqs_take_no_room(seq: int, node: Node) -> None:
    log = small()
    log.erase(log.drafts[7])
    log.drafts[-1].body["seqs"] = [8, seq]
    data = text_of(log_bundle(log))
    (answer,) = node("verify", [{"base64": b64(data)}])
    assert codes(answer) == codes(verifier.verify(data).as_json())
    assert answer["verdict"] == "bad"


def payload(body: bytes) -> bytes:
    """A log of one record, with this payload, that is right but for what is in it."""
    log = Log()
    log.enter("server_ping")
    made = log.make()
    nonce = made.payloads[0][0]
    header = {**made.headers[0], "payload": sha(b"colibri/payload/v1\n", nonce, body).hex()}
    head = {"seq": 1, "leaf": sha(b"\0", canonical(header)).hex()}
    secret = {"nonce": b64(nonce), "body": b64(body)}
    bundle = {**log_bundle(log), "headers": [b64(canonical(header))], "head": head}
    return text_of({**bundle, "payloads": {"1": secret}})


ENTER = b'{"arguments":{"a":[%b]},"client":null,"host_session":null,"server":"' + uuid("s").encode()
ENTER += b'","sha256":null,"size":null,"tool":"t","use":null}'
ITEMS: dict[str, tuple[Callable[[], bytes], str | None]] = {
    "as many items as are allowed": (lambda: ENTER % (b"{}," * 199_989 + b"{}"), None),
    "an item too many": (lambda: ENTER % (b"{}," * 199_991 + b"{}"), "bad-payload"),
    "commas in a text": (lambda: ENTER % (b'"' + b"[,{" * 1_000_000 + b'"'), None),
    "12 MB of small objects": (lambda: ENTER % (b"{}," * 4_000_000 + b"{}"), "bad-payload"),
    "nested deeply": (lambda: ENTER % (b"[" * 1_000_000 + b"]" * 1_000_000), "bad-payload"),
}


@pytest.mark.parametrize("name", ITEMS)
def test_a_payload_has_so_many_items_and_no_more(name: str, node: Node) -> None:
    body, code = ITEMS[name]
    data = payload(body())
    (answer,) = node("verify", [{"base64": b64(data)}])
    assert codes(answer) == codes(verifier.verify(data).as_json()) == ([(code, 1)] if code else [])


MEASURED = """
import re, runpy, sys
sys.argv = ["x", sys.argv[1]]
try:
    runpy.run_path({script!r}, run_name="__main__")
except SystemExit as end:
    code = end.code
print(code, *re.findall("VmHWM:\\s*([0-9]+)", open("/proc/self/status").read()), file=sys.stderr)
"""
Pieces = list[tuple[bytes, int]]
HOSTILE: dict[str, tuple[Callable[[], Pieces], int]] = {
    "small objects": (lambda: [(FIRST, 1), (b"[" + b"{}," * 5_000_000, 12), (b"{}]\n", 1)], 2),
    "a line that never ends": (
        lambda: [(FIRST, 1), (b'{"header":"', 1), (b"QUFB" * 250_000, 200)],
        2,
    ),
    "empty lines": (lambda: [(FIRST, 1), (b"\n" * 1_000_000, 100)], 2),
    "headers that are none": (lambda: [(FIRST, 1), (LINE * 1000, 100)], 2),
    "headers that are none, with an end": (
        lambda: [(FIRST, 1), (LINE * 1000, 100), (b'{"head":{"leaf":"%b","seq":1}}\n' % ZEROS, 1)],
        1,
    ),
    "small objects in a payload": (lambda: [(payload(ENTER % (b"{}," * 3_900_000 + b"{}")), 1)], 1),
    "members in a payload": (lambda: [(payload(ENTER % (b'{"a":{}},' * 99_990 + b"{}")), 1)], 0),
    "a text as long as can be": (
        lambda: [(payload(b'{"a":"' + "🐦".encode() + b"a" * 6_000_000 + b'"}'), 1)],
        1,
    ),
}


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has no /proc")
@pytest.mark.parametrize("name", HOSTILE)
def test_no_file_takes_more_memory_than_is_promised(
    name: str, tmp_path: Path, node_path: str
) -> None:
    """256 MB, in both; the first of these took 1.7 GB."""
    pieces, wanted = HOSTILE[name]
    path = tmp_path / "hostile"
    with path.open("wb") as file:
        for piece, times in pieces():
            for _ in range(times):
                file.write(piece)
    code = MEASURED.format(script=str(verifier.__file__))
    batch = str(Path(__file__).with_name("measure.mjs"))
    for command in ([sys.executable, "-c", code], [node_path, batch]):
        done = subprocess.run([*command, str(path)], capture_output=True, check=False, timeout=120)
        exited, kib = map(int, done.stderr.split()[-2:])
        assert exited == wanted, done.stderr
        assert kib < 256_000, command


def test_what_comes_through_a_pipe_can_be_read_twice() -> None:
    text = text_of(GOOD[GAPS])
    shell = ["sh", "-c", 'cat | "$0" "$1" /dev/stdin', sys.executable, str(verifier.__file__)]
    done = subprocess.run(shell, input=text, capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")


# As many dependencies as there can be, and as many gaps


def test_dependencies_take_no_quadratic_time(node: Node) -> None:
    """2,130 tasks with 100 dependencies each, which once was too complex."""
    log = Log()
    names = [f"T-{number:04}" for number in range(2_130)]
    for name in names:
        log.create(name)
    for place, name in enumerate(names[1:], 1):
        log.update(name, depends_on=names[max(0, place - 100) : place])
    data = text_of(log_bundle(log))
    started = time.process_time()
    assert exit_code(data) == 0
    assert time.process_time() - started < 20
    (answer,) = node("verify", [{"base64": b64(data)}])
    assert answer["verdict"] == "good"


def test_a_way_back_is_found_however_long_it_is(node: Node) -> None:
    """Through a task that was cancelled, too; and alike where both ends are beyond all bounds."""
    log = Log()
    for number in range(60):
        log.create(f"T-{number:04}", [f"T-{number - 1:04}"] if number else [])
    log.start(S)
    log.think(S, task="T-0030")
    log.walk("T-0030", "CANCELLED")
    log.update("T-0000", depends_on=["T-0059"])
    wide = Log()
    names = [f"T-{number:04}" for number in range(240)]
    for place, name in enumerate(names):
        wide.create(name, names[max(0, place % 120 - 60) : place % 120])
        if place >= 120:
            wide.update(name, depends_on=names[max(120, place - 60) : place])
    wide.update(names[119], depends_on=[*names[90:119]])
    wide.update(names[0], depends_on=[names[239]])
    texts = [text_of(log_bundle(one)) for one in (log, wide)]
    answers = node("verify", [{"base64": b64(text)} for text in texts])
    for text, answer in zip(texts, answers, strict=True):
        assert codes(answer) == codes(verifier.verify(text).as_json())
    assert [code for code, _ in codes(answers[0])] == ["dependency-cycle"]


def test_many_gaps_and_many_moves_take_no_quadratic_time() -> None:
    """A session bundle of which every second header is missing before the stretch."""
    log = Log()
    for number in range(400):
        log.create(f"T-{number:04}")
        log.ping()
    log.start(S)
    for number in range(400):
        log.think(S, "plan", f"T-{number:04}")
    tasks = [f"T-{number:04}" for number in range(400)]
    data = text_of(session_bundle(log, S, tasks))
    started = time.process_time()
    assert exit_code(data) == 0
    assert time.process_time() - started < 20


# Texts that are shown

EVIL = "ping\x1b[31m\x07\x7f\x9b\u202eabc\u200b\u2066\ufeff\u2028\nend"


def with_an_open_call(tool: str) -> bytes:
    log = small()
    log.enter(tool)
    return text_of(log_bundle(log))


def test_control_and_bidi_characters_never_reach_the_terminal(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], python: ModuleType
) -> None:
    path = tmp_path / "evil.colibri.json"
    path.write_bytes(with_an_open_call(EVIL))
    for options in ([], ["--json"]):
        assert python.main([str(path), *options]) == 0
        text = capsysbinary.readouterr().out.decode()
        assert "ping" in text and "end" in text
        kinds = {unicodedata.category(character) for character in text.replace("\n", "")}
        assert not kinds & {"Cc", "Cf", "Zl", "Zp", "Cs"}


def test_both_verifiers_show_such_a_text_alike(node: Node) -> None:
    texts = [EVIL, "é ü", "x" * 500, "🐦" * 101, ""]
    assert node("show", texts) == [verifier.show(text) for text in texts]


def test_every_view_spells_out_characters_that_a_display_may_ignore(node: Node) -> None:
    """Variation selectors, fillers, tags: both verifiers, and the report."""
    texts = [f"a{character}b" for character in ignorable()]
    spelt = [f"a\\u{{{ord(character):x}}}b" for character in ignorable()]
    assert node("show", texts) == [verifier.show(text) for text in texts] == spelt
    program = "import {plain} from 'DOM'; import {readFileSync} from 'fs';" + (
        "console.log(JSON.stringify(JSON.parse(readFileSync(0)).map((text) => plain(text))))"
    )
    dom = (MODULE.parent / "report" / "dom.mjs").as_uri()
    done = subprocess.run(
        ["node", "--input-type=module", "-e", program.replace("DOM", dom)],
        input=json.dumps(texts),
        stdout=subprocess.PIPE,
        encoding="utf-8",
        check=True,
    )
    assert json.loads(done.stdout) == [f"aU+{ord(c):04X}b" for c in ignorable()]


def test_a_path_or_address_in_a_bundle_is_only_text(node: Node) -> None:
    """Nothing in a bundle names a file to open; a tool's name least of all."""
    data = with_an_open_call("../../../../etc/passwd")
    (answer,) = node("verify", [{"base64": b64(data)}])
    assert answer == verifier.verify(data).as_json()
    assert answer["open_calls"][0]["tool"] == "../../../../etc/passwd"
