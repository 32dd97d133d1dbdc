"""Bad input through the real process: always an answer, never a crash, and calls still work."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.client import JSON, Server

MIB = 1024 * 1024
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}


def line(message: object, **changes: object) -> bytes:
    changed = {**message, **changes} if isinstance(message, dict) else message
    return json.dumps(changed).encode()


def call(name: object, **more: object) -> bytes:
    return line(CALL, params={"name": name, **more})


# what is wrong: the line, the id and the code of its one answer
REFUSED: dict[str, tuple[bytes, object, int]] = {
    "truncated": (line(PING)[:-1], None, -32700),
    "text": (b"hello", None, -32700),
    "http": (b"GET / HTTP/1.1\r", None, -32700),
    "header": (b"Content-Length: 52\r", None, -32700),
    "null byte": (b"\0", None, -32700),
    "bom": (b"\xef\xbb\xbf" + line(PING), None, -32700),
    "utf-16": (line(PING).decode().encode("utf-16-le").replace(b"\n", b""), None, -32700),
    "latin-1": (b'{"jsonrpc":"2.0","id":"\xe9","method":"ping"}', None, -32700),
    "trailing garbage": (line(PING) + b"}", None, -32700),
    "two values": (line(PING) + line(PING), None, -32700),
    "duplicate key": (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', None, -32700),
    "nan": (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"n":NaN}}', 1, -32700),
    "infinity": (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"n":1e999}}', 1, -32700),
    "large id": (line(PING, id=2**53), None, -32700),
    "lone surrogate": (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', None, -32700),
    "lone surrogate elsewhere": (
        b'{"jsonrpc":"2.0","id":"a","method":"ping","params":{"n":"\\ud800"}}',
        "a",
        -32700,
    ),
    "large integer": (line(PING, id="a", params={"n": 2**53}), "a", -32700),
    "huge integer": (line(PING, id=7, params={"n": 10**4000}), 7, -32700),
    "duplicate key elsewhere": (
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"id":1,"id":2}}',
        1,
        -32700,
    ),
    "no request": (b'{"jsonrpc":"2.0","id":1,"result":NaN}', None, -32700),
    "deep": (line(PING, params={"a": json.loads("[" * 63 + "]" * 63)}), 1, -32700),
    "bomb": (b"[" * 100_000, None, -32700),
    "structure": (b"[" + b"[]," * 200_000 + b"1]", None, -32700),
    "string without an end": (b'"' + b'\\",' * 1_000_000, None, -32700),
    "5 MiB": (b'"' + b"x" * (5 * MIB) + b'"', None, -32700),
    "5 MiB call": (call("note", arguments={"n": 1, "content": "x" * 5 * MIB}), None, -32700),
    "number": (b"7", None, -32600),
    "null": (b"null", None, -32600),
    "string": (b'"ping"', None, -32600),
    "empty batch": (b"[]", None, -32600),
    "batch": (line([PING, PING]), None, -32600),
    "empty object": (b"{}", None, -32600),
    "no version": (b'{"id":1,"method":"ping"}', 1, -32600),
    "old version": (line(PING, jsonrpc="1.0"), 1, -32600),
    "no method": (b'{"jsonrpc":"2.0","id":"x"}', "x", -32600),
    "method number": (line(PING, method=7), 1, -32600),
    "id null": (line(PING, id=None), None, -32600),
    "id fraction": (line(PING, id=1.5), None, -32600),
    "id object": (line(PING, id={}), None, -32600),
    "params array": (line(PING, params=[1]), 1, -32602),
    "params null": (line(PING, params=None), 1, -32602),
    "meta string": (line(PING, params={"_meta": "x"}), 1, -32602),
    "unknown method": (line(PING, method="rpc.discover"), 1, -32601),
    "call without params": (line(CALL), 1, -32602),
    "tool number": (call(7), 1, -32602),
    "tool empty": (call(""), 1, -32602),
    "tool unknown": (call("x" * 10_000 + "\n\0"), 1, -32602),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests of this file."""
    with Server(tmp_path_factory.mktemp("project")) as server:
        yield server
        assert server.close() == 0
        assert "uncaughtException" not in server.stderr


def works(server: Server) -> None:
    """A valid call is served, and no other message has come."""
    id = server.post_call("note", n=1)
    message = server.receive()
    assert message is not None
    assert (message["id"], message["result"]["isError"]) == (id, False)


@pytest.mark.parametrize("what", REFUSED)
def test_a_bad_line_gets_one_error_and_the_next_call_works(server: Server, what: str) -> None:
    """Specification 2.7, 2.11, 2.12, 2.16: -32700, -32600, -32601 and -32602."""
    bad, id, code = REFUSED[what]
    server.send(bad + b"\n")
    answer = server.receive()
    assert answer is not None
    assert (answer["id"], answer["error"]["code"]) == (id, code)
    assert len(json.dumps(answer)) < 2000
    works(server)


@pytest.mark.parametrize("tool", ["note", "nap_read", "server_ping"])
@pytest.mark.parametrize("arguments", [[], [1], "text", 7, 0, 1.5, True, False])
def test_arguments_that_are_not_an_object_get_the_envelope(
    server: Server, tool: str, arguments: object
) -> None:
    """Specification 2.18: through stage 2, in every lane."""
    server.send(call(tool, arguments=arguments) + b"\n")
    answer = server.receive()
    assert answer is not None
    assert answer["result"]["isError"] is True
    error = answer["result"]["structuredContent"]["error"]
    assert error["code"] == "INVALID_PARAMS"
    assert error["message"].startswith("schema validation failed")
    works(server)


@pytest.mark.parametrize("arguments", [{"n": 1.5}, {"n": "7"}, {}, {"n": None}, {"n": 1, "": 1}])
def test_wrong_fields_get_the_envelope_with_every_issue(server: Server, arguments: JSON) -> None:
    """Specification 4.11: every issue with path, what was wrong, what is allowed."""
    error = server.call("note", **arguments)["structuredContent"]["error"]
    assert error["code"] == "INVALID_PARAMS"
    assert all(issue["problem"] and issue["allowed"] for issue in error["details"]["issues"])


def test_a_line_just_under_the_limit_is_read_and_judged(server: Server) -> None:
    """Specification 2.9: a line is at most 4 MiB; its call then goes through stage 2."""
    result = server.call("note", n=1, content="x" * (4 * MIB - 200))
    assert result["structuredContent"]["error"]["code"] == "INVALID_PARAMS"
    works(server)


def test_a_thousand_bad_lines_get_a_thousand_errors(server: Server) -> None:
    """Specification 2.14: one answer per line, however many come at once."""
    server.send(b"".join(b"{%d\n" % number for number in range(1000)))
    for _ in range(1000):
        answer = server.receive()
        assert answer is not None
        assert answer["error"]["code"] == -32700
    works(server)


@pytest.mark.parametrize("quiet", [b"", b"\r", b" \t "])
def test_a_blank_line_is_ignored(server: Server, quiet: bytes) -> None:
    server.send(quiet + b"\n")
    works(server)


def expected(bad: bytes) -> int:
    """How many answers a line must get: one, or none for a notification or response."""
    if not bad.strip(b" \t\r"):
        return 0
    try:
        message = json.loads(bad)
    except (ValueError, RecursionError):
        return 1
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return 1
    if isinstance(message.get("method"), str):
        return int("id" in message)
    return int("method" in message or ("result" in message) == ("error" in message))


def answers(server: Server, bad: bytes) -> list[JSON]:
    """The messages between a line and the answer to a later call in the same lane."""
    server.send(bad + b"\n")
    id = server.post_call("note", n=1)
    got: list[JSON] = []
    while (message := server.receive()) is not None and message.get("id") != id:
        got.append(message)
    assert message is not None, server.stderr
    return got


def test_two_hundred_lines_of_random_bytes_are_all_answered(server: Server) -> None:
    """Specification 2.14: never silence, never a crash."""

    @settings(max_examples=200, derandomize=True, deadline=None, database=None)
    @given(st.binary(min_size=1, max_size=300).map(lambda data: data.replace(b"\n", b"\r")))
    def check(bad: bytes) -> None:
        got = answers(server, bad)
        assert len(got) == expected(bad)
        assert all(message["error"]["code"] in (-32700, -32600) for message in got)

    check()


def test_two_hundred_damaged_requests_are_all_answered(server: Server) -> None:
    """Specification 2.14: also lines that are almost right."""
    whole = line(CALL, id="x", params={"name": "server_ping", "arguments": {}})
    places = st.integers(0, len(whole) - 1)

    @settings(max_examples=200, derandomize=True, deadline=None, database=None)
    @given(places, places, st.binary(max_size=3).map(lambda data: data.replace(b"\n", b" ")))
    def check(begin: int, size: int, inserted: bytes) -> None:
        bad = whole[:begin] + inserted + whole[begin + size % 8 :]
        got = answers(server, bad)
        assert len(got) == expected(bad)
        for message in got:
            assert ("result" in message) != ("error" in message)

    check()


def memory(server: Server, field: str) -> int:
    """A number of /proc/<pid>/status, in bytes."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    found = re.search(rf"^{field}:\s+(\d+) kB$", status, re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_64_mib_without_a_newline_take_no_memory(tmp_path: Path) -> None:
    """Specification 2.9: the rest of a longer line is skipped in constant memory."""
    with Server(tmp_path) as server:
        works(server)
        before = memory(server, "VmRSS")
        for _ in range(64):
            server.send(b"x" * MIB)
        answer = server.receive()
        assert answer is not None
        assert (answer["id"], answer["error"]["code"]) == (None, -32700)
        server.send(b"\n")
        works(server)
        assert memory(server, "VmHWM") - before < 32 * MIB
        assert server.close() == 0


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.parametrize("inner", [b",", b'\\",', b"[],"])
def test_a_line_full_of_commas_takes_little_memory(tmp_path: Path, inner: bytes) -> None:
    """lines.py LIMITS: 4 MiB must not take a hundred times as much memory."""
    with Server(tmp_path) as server:
        works(server)
        before = memory(server, "VmRSS")
        server.send(b'"' + inner * (4 * MIB // len(inner) - 2) + b'"\n')
        answer = server.receive()
        assert answer is not None
        assert answer["error"]["code"] == -32600
        assert memory(server, "VmHWM") - before < 64 * MIB


@pytest.mark.parametrize(
    ("last", "key"), [(line(PING), "result"), (line(PING)[:-1], "error"), (b"\xff", "error")]
)
def test_a_last_line_without_a_newline_is_answered_before_the_end(
    tmp_path: Path, last: bytes, key: str
) -> None:
    """Specification 2.22: end of input is a clean shutdown after every line that was read."""
    with Server(tmp_path) as server:
        server.send(last)
        assert server.close() == 0
        answer = server.receive()
        assert answer is not None
        assert key in answer
        assert server.receive() is None


@pytest.mark.parametrize("first", [b"{\n", b"\xff\n", b"[]\n", line(PING, id=None) + b"\n"])
def test_a_handshake_works_after_a_bad_first_line(tmp_path: Path, first: bytes) -> None:
    with Server(tmp_path, handshake=False) as server:
        server.send(first)
        assert server.handshake()["protocolVersion"] == "2025-11-25"
        works(server)
