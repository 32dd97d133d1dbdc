"""server/wire.py: a wrong value in any field of the protocol, one at a time."""

import json
from collections.abc import Callable

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


def without(message: JSON, key: str) -> JSON:
    return {name: value for name, value in message.items() if name != key}


def meta(**changes: object) -> JSON:
    """A modern tools/list whose _meta has something else in it."""
    names = {"version": VERSION, "capabilities": CAPABILITIES, "client": CLIENT_INFO}
    changed = {names[key]: value for key, value in changes.items()}
    return old("tools/list", {"_meta": {**META, **changed}})


@pytest.mark.parametrize("message", [*NOT_OBJECT, [], [old("ping")], [old("ping"), 1], [[]]])
def test_a_json_value_that_is_no_object_is_an_invalid_request(
    connection: Connection, message: object
) -> None:
    """Design §5: no request, -32600 with id null; a batch too, in every revision."""
    assert code(connection, message) == (None, -32600)


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_batch_is_refused_whole_in_every_revision(connection: Connection, version: str) -> None:
    """Design §5: a known deviation from 2025-03-26."""
    connection.ask(initialize(version))
    answer = connection.ask([old("ping", id=1), old("ping", id=2)])
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)
    assert "a batch" in answer["error"]["message"]


@pytest.mark.parametrize("value", [*VALUES, "1.0", "2", 2, 2.0, ABSENT])
def test_jsonrpc_must_be_2_0(connection: Connection, value: object) -> None:
    """JSON-RPC 2.0 §4; design §5: -32600 with its id."""
    message = without(old("ping", id="i"), "jsonrpc")
    if value is not ABSENT:
        message["jsonrpc"] = value
    assert code(connection, message) == ("i", -32600)


@pytest.mark.parametrize("value", [*NOT_ID, 1.0])
def test_an_id_must_be_a_string_or_an_integer(connection: Connection, value: object) -> None:
    """Design §5: -32600, with its id if that is a string or integer, else null."""
    assert code(connection, old("ping", id=value)) == (None, -32600)


@pytest.mark.parametrize("value", ["", "x", "\U0001f600", 0, -1, 2**53 - 1, -(2**53 - 1)])
def test_an_id_comes_back_as_it_was(connection: Connection, value: object) -> None:
    answer = connection.ask(old("ping", id=value))
    assert answer == {"jsonrpc": "2.0", "id": value, "result": {}}
    assert type(answer["id"]) is type(value)


@pytest.mark.parametrize("value", [*NOT_STRING, ABSENT])
def test_a_method_must_be_a_string(connection: Connection, value: object) -> None:
    """JSON-RPC 2.0 §4."""
    message = without(old("ping", id="i"), "method")
    if value is not ABSENT:
        message["method"] = value
    assert code(connection, message) == ("i", -32600)


@pytest.mark.parametrize("method", ["ping", "tools/list", "tools/call", "no/such"])
@pytest.mark.parametrize("value", NOT_OBJECT)
def test_params_must_be_an_object(connection: Connection, method: str, value: object) -> None:
    """MCP: params are named, so an array is wrong too."""
    assert code(connection, old(method, value, "i")) == ("i", -32602)


@pytest.mark.parametrize("method", ["ping", "tools/list", "tools/call", "no/such"])
@pytest.mark.parametrize("value", NOT_OBJECT)
def test_meta_must_be_an_object(connection: Connection, method: str, value: object) -> None:
    assert code(connection, old(method, {"_meta": value}, "i")) == ("i", -32602)


@pytest.mark.parametrize("value", NOT_STRING)
def test_the_version_in_meta_must_be_a_string(connection: Connection, value: object) -> None:
    assert code(connection, meta(version=value)) == (1, -32602)


@pytest.mark.parametrize("value", NOT_OBJECT)
def test_client_capabilities_in_meta_must_be_an_object(
    connection: Connection, value: object
) -> None:
    """Design §5: clientCapabilities required, else -32602."""
    assert code(connection, meta(capabilities=value)) == (1, -32602)


@pytest.mark.parametrize("value", NOT_OBJECT)
def test_client_info_in_meta_must_be_an_object(connection: Connection, value: object) -> None:
    assert code(connection, meta(client=value)) == (1, -32602)


@pytest.mark.parametrize("value", [*NOT_STRING, ABSENT])
def test_initialize_must_name_a_version(connection: Connection, value: object) -> None:
    params = {} if value is ABSENT else {"protocolVersion": value}
    assert code(connection, old("initialize", params)) == (1, -32602)


@pytest.mark.parametrize("field", ["capabilities", "clientInfo"])
@pytest.mark.parametrize("value", NOT_OBJECT)
def test_what_a_client_says_of_itself_must_be_an_object(
    connection: Connection, field: str, value: object
) -> None:
    assert code(connection, initialize(**{field: value})) == (1, -32602)


def test_a_handshake_that_was_refused_is_none(connection: Connection) -> None:
    """Design §5: a connection that has carried a version and no initialize stays modern."""
    connection.ask(new("server/discover"))
    connection.ask(initialize(7))
    assert code(connection, old("ping")) == (1, -32602)


@pytest.mark.parametrize("build", [old, new])
@pytest.mark.parametrize("value", [value for value in VALUES if value is not None])
def test_a_cursor_of_any_kind_is_refused(
    connection: Connection, build: Callable[..., JSON], value: object
) -> None:
    """wire.py ERRORS: -32602, there is one page."""
    assert code(connection, build("tools/list", {"cursor": value})) == (1, -32602)


def test_a_null_cursor_is_none(connection: Connection) -> None:
    assert "result" in connection.ask(old("tools/list", {"cursor": None}))


@pytest.mark.parametrize("value", [*NOT_STRING, ABSENT])
def test_a_call_must_name_its_tool_with_a_string(connection: Connection, value: object) -> None:
    """Design §5: tools/call without a string name: -32602, no record."""
    params = {"arguments": {}} if value is ABSENT else {"name": value, "arguments": {}}
    assert code(connection, old("tools/call", params)) == (1, -32602)
    assert connection.service.calls == []


@pytest.mark.parametrize("value", [*NOT_OBJECT, ABSENT])
def test_a_subscription_must_say_to_what(connection: Connection, value: object) -> None:
    params = {} if value is ABSENT else {"notifications": value}
    assert code(connection, new("subscriptions/listen", params)) == (1, -32602)
    connection.wire.close_subscriptions()
    assert len(connection.sent) == 1


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
    connection.say(without(message, "id"))
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
def test_a_response_is_passed_over(connection: Connection, message: JSON) -> None:
    """wire.py: answering it could make two servers answer each other for ever."""
    connection.say(message)
    assert connection.sent == []


def test_a_message_with_result_and_error_is_no_response(connection: Connection) -> None:
    """JSON-RPC 2.0 §5: one of the two."""
    both = {"jsonrpc": "2.0", "id": 4, "result": {}, "error": {}}
    assert code(connection, both) == (4, -32600)


@pytest.mark.parametrize("line", [b"{", b"\xff", b"NaN", b'{"id":1,"id":2}', b"\x0c", b"\x0b"])
def test_text_that_is_no_json_is_a_parse_error_with_id_null(
    connection: Connection, line: bytes
) -> None:
    """Design §5: -32700 with id null."""
    connection.wire.feed(line + b"\n")
    [answer] = connection.sent
    assert (answer["id"], answer["error"]["code"]) == (None, -32700)
    assert answer["error"]["message"].startswith("parse error: ")


def test_after_a_wrong_message_the_next_right_one_is_served(connection: Connection) -> None:
    wrong: tuple[object, ...] = (
        7,
        [],
        meta(version=1),
        initialize(None),
        old("x", 1),
        listen(None),
    )
    for message in wrong:
        code(connection, message)
    assert "result" in connection.ask(new("tools/list", id=MODERN))
