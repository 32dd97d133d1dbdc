"""server/wire.py: a wrong value in any field of the protocol, one at a time."""

import json
from collections.abc import Callable
from functools import partial

import pytest

from tests.support.wire_with_notes import (
    ABSENT,
    CAPABILITIES,
    CLIENT_INFO,
    JSON,
    META,
    MODERN,
    VERSION,
    Connection,
    initialize,
    listen,
    new,
    old,
)

SECRET = "hunter2"
SCALARS = (None, True, False, 0, 1, 1.5, "", SECRET)
VALUES: tuple[object, ...] = (*SCALARS, [], [SECRET], {}, {"k": SECRET})
NOT_STRING = tuple(value for value in VALUES if not isinstance(value, str))
NOT_OBJECT = tuple(value for value in VALUES if not isinstance(value, dict))
NOT_ID = tuple(
    value for value in VALUES if isinstance(value, bool) or not isinstance(value, str | int)
)


@pytest.fixture
def connection() -> Connection:
    return Connection()


def code(connection: Connection, message: object) -> tuple[object, int]:
    """The id and the code of the one error that a message gets; it must not repeat values."""
    answer = connection.ask(message)
    assert set(answer) == {"jsonrpc", "id", "error"}
    assert answer["jsonrpc"] == "2.0"
    assert SECRET not in answer["error"]["message"]
    return answer["id"], answer["error"]["code"]


def having(message: JSON, key: str, value: object) -> JSON:
    """A message with another value in it, or without the key."""
    rest = {name: other for name, other in message.items() if name != key}
    return rest if value is ABSENT else {**rest, key: value}


def meta(key: str, value: object) -> JSON:
    """A modern tools/list whose _meta has something else in it."""
    return old("tools/list", {"_meta": {**META, key: value}})


METHODS = ("ping", "tools/list", "tools/call", "no/such")
PING = old("ping", id="i")
# field: the message with a value in it, the wrong values, id and code of the error
WRONG: dict[str, tuple[Callable[[object], JSON], tuple[object, ...], object, int]] = {
    "jsonrpc": (
        lambda value: having(PING, "jsonrpc", value),
        (*VALUES, "1.0", "2", 2, 2.0, ABSENT),
        "i",
        -32600,
    ),
    "id": (lambda value: old("ping", id=value), (*NOT_ID, 1.0), None, -32600),
    "method": (lambda value: having(PING, "method", value), (*NOT_STRING, ABSENT), "i", -32600),
    **{
        f"params of {method}": (partial(old, method, id="i"), NOT_OBJECT, "i", -32602)
        for method in METHODS
    },
    **{
        f"_meta of {method}": (
            lambda value, method=method: old(method, {"_meta": value}, "i"),  # type: ignore[misc]
            NOT_OBJECT,
            "i",
            -32602,
        )
        for method in METHODS
    },
    "version in _meta": (partial(meta, VERSION), NOT_STRING, 1, -32602),
    "capabilities in _meta": (partial(meta, CAPABILITIES), NOT_OBJECT, 1, -32602),
    "client in _meta": (partial(meta, CLIENT_INFO), NOT_OBJECT, 1, -32602),
    "version of initialize": (
        lambda value: old("initialize", having({}, "protocolVersion", value)),
        (*NOT_STRING, ABSENT),
        1,
        -32602,
    ),
    "capabilities of initialize": (lambda v: initialize(capabilities=v), NOT_OBJECT, 1, -32602),
    "client of initialize": (lambda v: initialize(clientInfo=v), NOT_OBJECT, 1, -32602),
    "cursor": (lambda v: old("tools/list", {"cursor": v}), VALUES[1:], 1, -32602),
    "modern cursor": (lambda v: new("tools/list", {"cursor": v}), VALUES[1:], 1, -32602),
    "name of a tool": (
        lambda value: old("tools/call", having({"arguments": {}}, "name", value)),
        (*NOT_STRING, ABSENT),
        1,
        -32602,
    ),
    "what to listen to": (
        lambda value: new("subscriptions/listen", having({}, "notifications", value)),
        (*NOT_OBJECT, ABSENT),
        1,
        -32602,
    ),
}


@pytest.mark.parametrize("field", WRONG)
def test_a_wrong_value_in_a_field_is_refused(connection: Connection, field: str) -> None:
    """Specification 2.12, 2.16: -32600 or -32602, with the id if it is a string or integer."""
    build, values, id, expected = WRONG[field]
    for value in values:
        assert code(connection, build(value)) == (id, expected), value
    assert connection.service.calls == []
    connection.sent.clear()
    connection.wire.close_subscriptions()
    assert connection.sent == []


@pytest.mark.parametrize("message", [*NOT_OBJECT, [], [old("ping")], [old("ping"), 1], [[]]])
def test_a_json_value_that_is_not_an_object_is_an_invalid_request(
    connection: Connection, message: object
) -> None:
    """Specification 2.12: no request, -32600 with id null; a batch too, in every revision."""
    assert code(connection, message) == (None, -32600)


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_batch_is_refused_whole_in_every_revision(connection: Connection, version: str) -> None:
    """Specification 2.12: a known deviation from 2025-03-26."""
    connection.ask(initialize(version))
    answer = connection.ask([old("ping", id=1), old("ping", id=2)])
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)
    assert "a batch" in answer["error"]["message"]


@pytest.mark.parametrize("value", ["", "x", "\U0001f600", 0, -1, 2**53 - 1, -(2**53 - 1)])
def test_an_id_comes_back_as_it_was(connection: Connection, value: object) -> None:
    answer = connection.ask(old("ping", id=value))
    assert answer == {"jsonrpc": "2.0", "id": value, "result": {}}
    assert type(answer["id"]) is type(value)


def test_a_refused_handshake_does_not_count(connection: Connection) -> None:
    """Specification 2.5: a connection that has carried a version and no initialize stays modern."""
    connection.ask(new("server/discover"))
    connection.ask(initialize(7))
    assert code(connection, old("ping")) == (1, -32602)


def test_a_null_cursor_counts_as_no_cursor(connection: Connection) -> None:
    assert "result" in connection.ask(old("tools/list", {"cursor": None}))


NOTIFIED: tuple[object, ...] = (
    *(old("notifications/cancelled", {"requestId": value}) for value in VALUES if value != 1),
    *(old("notifications/cancelled", value) for value in NOT_OBJECT),
    old("notifications/cancelled", {}),
    old("notifications/cancelled"),
    old("notifications/initialized"),
    old("notifications/initialized", [SECRET]),
    old("notifications/no/such", {"_meta": 7}),
    old("ping"),
    old("tools/call", {"name": "one"}),
    new("subscriptions/listen", {"notifications": {}}),
)


@pytest.mark.parametrize("message", NOTIFIED, ids=lambda message: json.dumps(message)[:60])
def test_a_notification_is_never_answered_and_starts_nothing(
    connection: Connection, message: JSON
) -> None:
    """JSON-RPC 2.0 §4.1: not even one that is wrong; a call without an id is not run."""
    connection.say(old("tools/call", {"name": "one"}, 1))
    connection.say(having(message, "id", ABSENT))
    connection.wire.close_subscriptions()
    assert connection.sent == []
    assert len(connection.service.calls) == 1
    assert connection.service.cancelled == []


ERROR = {"code": -32600, "message": "no"}
RESPONSES = (
    *({"jsonrpc": "2.0", "id": id, "result": {}} for id in (1, "x", None)),
    *({"jsonrpc": "2.0", "id": id, "error": ERROR} for id in (1, "x", None)),
    {"jsonrpc": "2.0", "error": ERROR},
)


@pytest.mark.parametrize("message", RESPONSES)
def test_a_response_is_ignored(connection: Connection, message: JSON) -> None:
    """wire.py: answering it could make two servers answer each other without end."""
    connection.say(message)
    assert connection.sent == []


def test_a_message_with_result_and_error_is_not_a_response(connection: Connection) -> None:
    """JSON-RPC 2.0 §5: one of the two."""
    both = {"jsonrpc": "2.0", "id": 4, "result": {}, "error": {}}
    assert code(connection, both) == (4, -32600)


@pytest.mark.parametrize("line", [b"{", b"\xff", b"NaN", b'{"id":1,"id":2}', b"\x0c", b"\x0b"])
def test_text_that_is_not_json_is_a_parse_error_with_id_null(
    connection: Connection, line: bytes
) -> None:
    """Specification 2.11: -32700 with id null."""
    connection.wire.feed(line + b"\n")
    [answer] = connection.sent
    assert (answer["id"], answer["error"]["code"]) == (None, -32700)
    assert answer["error"]["message"].startswith("parse error: ")


def test_after_a_wrong_message_the_next_right_one_is_served(connection: Connection) -> None:
    wrong: tuple[object, ...] = (
        7,
        [],
        meta(VERSION, 1),
        initialize(None),
        old("x", 1),
        listen(None),
    )
    for message in wrong:
        code(connection, message)
    assert "result" in connection.ask(new("tools/list", id=MODERN))
