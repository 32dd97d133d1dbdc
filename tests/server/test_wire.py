"""server/wire.py: the methods of both eras, and which era a request belongs to."""

import json
from typing import Any

import pytest

from colibri.server.wire import HANDSHAKE_REVISIONS
from tests.support.wire_with_notes import (
    ABSENT,
    CAPABILITIES,
    HINTS,
    INFO,
    JSON,
    META,
    MODERN,
    SERVER_INFO,
    VERSION,
    Connection,
    initialize,
    new,
    old,
)


@pytest.fixture
def connection() -> Connection:
    return Connection()


@pytest.mark.parametrize("version", HANDSHAKE_REVISIONS)
def test_initialize_agrees_to_each_revision_that_has_it(
    connection: Connection, version: str
) -> None:
    """Specification 2.2: the four revisions that begin with initialize all work."""
    assert connection.ask(initialize(version)) == {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {
            "protocolVersion": version,
            "capabilities": {"tools": {}},
            "serverInfo": INFO,
            "instructions": "do well",
        },
    }


@pytest.mark.parametrize("version", ["1999-01-01", "", MODERN, "2099-01-01"])
def test_initialize_with_an_unknown_version_answers_2025_11_25(
    connection: Connection, version: str
) -> None:
    """Specification 2.2: an unknown version answers 2025-11-25; 2026-07-28 has no initialize."""
    assert connection.ask(initialize(version))["result"]["protocolVersion"] == "2025-11-25"


def test_a_handshake_may_leave_out_capabilities_and_client_info(connection: Connection) -> None:
    answer = connection.ask(old("initialize", {"protocolVersion": "2025-11-25"}))
    assert answer["result"]["protocolVersion"] == "2025-11-25"


def test_discover_lists_every_revision_and_names_the_server(connection: Connection) -> None:
    """Specification 2.3, 2.4: resultType, server identity in _meta, ttlMs and cacheScope."""
    assert connection.ask(new("server/discover"))["result"] == {
        "supportedVersions": [*HANDSHAKE_REVISIONS, MODERN],
        "capabilities": {"tools": {}},
        "instructions": "do well",
        **HINTS,
        "resultType": "complete",
        "_meta": {SERVER_INFO: INFO},
    }


def test_ping_answers_an_empty_result_before_and_after_the_handshake(
    connection: Connection,
) -> None:
    """Specification 2.5, 2.7: on every other connection a request is served as 2025-11-25."""
    assert connection.ask(old("ping"))["result"] == {}
    connection.ask(initialize())
    assert connection.ask(old("ping", {}))["result"] == {}


def test_tools_list_is_the_services_list_and_a_modern_one_says_how_long_it_keeps(
    connection: Connection,
) -> None:
    """Specification 2.4: ttlMs and cacheScope on server/discover and tools/list only."""
    tools = [{"name": "one"}]
    modern = {**HINTS, "resultType": "complete", "_meta": {SERVER_INFO: INFO}}
    assert connection.ask(new("tools/list"))["result"] == {"tools": tools, **modern}
    connection.ask(initialize())
    assert connection.ask(old("tools/list"))["result"] == {"tools": tools}


@pytest.mark.parametrize("build", [old, new])
@pytest.mark.parametrize(
    ("given", "taken"),
    [
        (ABSENT, {}),
        (None, {}),
        ({"a": 1}, {"a": 1}),
        ([], []),
        ([1], [1]),
        ("x", "x"),
        (0, 0),
        (False, False),
        (1.5, 1.5),
    ],
)
def test_a_call_is_handed_over_with_its_arguments(
    connection: Connection, build: Any, given: object, taken: object
) -> None:
    """Specification 2.18: absent or null is {}; any other non-object goes through stage 2."""
    params: JSON = {"name": "one"} if given is ABSENT else {"name": "one", "arguments": given}
    message = build("tools/call", params, "c")
    connection.say(message)
    [(request, name, arguments)] = connection.service.calls
    assert (name, arguments) == ("one", taken)
    assert type(arguments) is type(taken)
    assert (request.id, request.line) == ("c", json.dumps(message).encode())
    assert connection.sent == []


def test_an_answer_has_the_members_it_was_given(connection: Connection) -> None:
    connection.say(old("tools/call", {"name": "one"}, "c"))
    request = connection.service.calls[0][0]
    connection.answer(request, {"colibri/receipt": 7}, b'"isError":false')
    result = {"isError": False, "_meta": {"colibri/receipt": 7}}
    assert connection.sent == [{"jsonrpc": "2.0", "id": "c", "result": result}]


def test_a_modern_answer_adds_result_type_and_identity_but_no_cache_hint(
    connection: Connection,
) -> None:
    """Specification 2.3, 2.4: resultType on results; ttlMs and cacheScope not on calls."""
    connection.say(new("tools/call", {"name": "one"}))
    request = connection.service.calls[0][0]
    connection.answer(request, {"colibri/receipt": 7}, b'"isError":true')
    assert connection.sent[0]["result"] == {
        "isError": True,
        "resultType": "complete",
        "_meta": {"colibri/receipt": 7, SERVER_INFO: INFO},
    }


MODERN_METHODS = "server/discover, tools/list, tools/call, subscriptions/listen"


@pytest.mark.parametrize(
    ("build", "method", "words"),
    [
        *((new, one, MODERN_METHODS) for one in ("initialize", "ping", "logging/setLevel")),
        *((old, one, VERSION) for one in ("server/discover", "subscriptions/listen")),
        *((old, one, "tools/call") for one in ("", "tools", "resources/list", "tasks/get")),
    ],
)
def test_a_method_of_another_revision_is_not_found_and_the_error_lists_the_methods(
    connection: Connection, build: Any, method: str, words: str
) -> None:
    """Specification 2.7, 4.17: also for removed methods; the message says what would be right."""
    error = connection.ask(build(method, {"notifications": {}}))["error"]
    assert error["code"] == -32601
    assert words in error["message"]


@pytest.mark.parametrize("version", ["2025-11-25", "2027-01-01", ""])
def test_a_version_in_meta_that_is_not_served_is_refused_with_the_ones_that_are(
    connection: Connection, version: str
) -> None:
    """Specification 2.6: unknown version -32022 with supported and requested."""
    meta = {**META, VERSION: version}
    error = connection.ask(old("server/discover", {"_meta": meta}))["error"]
    assert error["code"] == -32022
    assert error["data"] == {"supported": [MODERN], "requested": version}


def test_a_modern_request_must_name_the_clients_capabilities(connection: Connection) -> None:
    """Specification 2.6: clientCapabilities required, else -32602."""
    error = connection.ask(old("tools/list", {"_meta": {VERSION: MODERN}}))["error"]
    assert error["code"] == -32602
    assert CAPABILITIES in error["message"]


def test_a_modern_request_need_not_name_the_client(connection: Connection) -> None:
    meta = {VERSION: MODERN, CAPABILITIES: {}}
    assert "result" in connection.ask(old("tools/list", {"_meta": meta}))


def test_after_a_modern_request_one_without_a_version_is_refused(connection: Connection) -> None:
    """Specification 2.5: a connection that has carried a version in _meta and no initialize."""
    connection.ask(new("server/discover"))
    error = connection.ask(old("ping"))["error"]
    assert error["code"] == -32602
    assert VERSION in error["message"]


def test_even_a_refused_version_makes_a_connection_modern(
    connection: Connection,
) -> None:
    """Specification 2.5: carried is carried."""
    connection.ask(old("tools/list", {"_meta": {**META, VERSION: "2027-01-01"}}))
    assert connection.ask(old("tools/list"))["error"]["code"] == -32602


def test_after_discover_a_client_may_still_begin_with_initialize(connection: Connection) -> None:
    """Specification 2.5: the rule is for connections without initialize; mcp 2.x falls back so."""
    connection.ask(new("server/discover"))
    assert "result" in connection.ask(initialize())
    assert connection.ask(old("ping"))["result"] == {}


def test_the_era_is_decided_per_request(connection: Connection) -> None:
    """Specification 2.5: both eras on one connection."""
    connection.ask(initialize())
    assert "resultType" in connection.ask(new("tools/list"))["result"]
    assert "resultType" not in connection.ask(old("tools/list"))["result"]


def test_bytes_may_come_one_by_one_and_the_last_line_without_a_newline(
    connection: Connection,
) -> None:
    """Specification 2.1, 2.22: end of input comes after every accepted call."""
    first = json.dumps(old("ping", id=1)).encode() + b"\r\n\n \t\r\n"
    for byte in first + json.dumps(old("ping", id=2)).encode():
        connection.wire.feed(bytes([byte]))
    assert [message["id"] for message in connection.sent] == [1]
    connection.wire.end()
    assert [message["id"] for message in connection.sent] == [1, 2]
