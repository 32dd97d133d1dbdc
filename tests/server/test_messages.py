"""What the real server sends, judged by the official mcp-types models and by the ledger."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import mcp_types
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped] # it has no types
from mcp_types import methods

from tests.support.client import JSON, Server

HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
VERSIONS = (*HANDSHAKE, MODERN)
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}

# what happens: tool, arguments, outcome and code in the ledger
CALLS: dict[str, tuple[str, object, str, str | None]] = {
    "success": ("note", {"n": 1, "content": 'ä "\\ \U0001f600'}, "ok", None),
    "success without arguments": ("nap_read", None, "ok", None),
    "a probe": ("server_ping", {}, "ok", None),
    "a report": ("server_health", {}, "ok", None),
    "pattern A": ("keep_a", {"key": "k", "then": "refuse"}, "refused", "ERR_TEST"),
    "pattern B": ("keep", {"key": "k", "then": "refuse"}, "refused", "ERR_TEST"),
    "a fault": ("keep", {"key": "k", "then": "fail"}, "error", "HANDLER_ERROR"),
    "a wrong field": ("note", {"n": "seven", "more": 1}, "invalid", "INVALID_PARAMS"),
    "arguments that are no object": ("note", [1], "invalid", "INVALID_PARAMS"),
}
BAD = {
    "unknown tool": ("tools/call", {"name": "no_such_tool"}, -32602),
    "no tool": ("tools/call", {}, -32602),
    "cursor": ("tools/list", {"cursor": "2"}, -32602),
    "unknown method": ("resources/list", {}, -32601),
}


class Talk:
    """A server and the protocol revision that the client uses."""

    def __init__(self, server: Server, version: str) -> None:
        self.server = server
        self.version = version

    def post(self, method: str, params: JSON, id: Any = None) -> Any:
        meta = {"_meta": META} if self.version == MODERN else {}
        return self.server.post(method, {**params, **meta}, id)

    def ask(self, method: str, params: JSON | None = None) -> JSON:
        """The answer, which must be a JSON-RPC message with our id."""
        answer = self.server.answer(self.post(method, params or {}))
        mcp_types.jsonrpc_message_adapter.validate_python(answer, by_name=False)
        return answer

    def result(self, method: str, params: JSON | None = None) -> JSON:
        """The result, which must be one of its method and revision and have no foreign member."""
        result: JSON = self.ask(method, params)["result"]
        methods.parse_server_result(method, self.version, result)
        assert methods.serialize_server_result(method, self.version, result) == result
        return result

    def call(self, name: str) -> JSON:
        tool, arguments, _, _ = CALLS[name]
        return self.result("tools/call", {"name": tool, "arguments": arguments})


@pytest.fixture(params=VERSIONS)
def talk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Talk]:
    version: str = request.param
    with Server(tmp_path, handshake=False) as server:
        if version in HANDSHAKE:
            server.handshake(version)
        yield Talk(server, version)
        assert server.close() == 0


@pytest.fixture
def modern(tmp_path: Path) -> Iterator[Talk]:
    with Server(tmp_path, handshake=False) as server:
        yield Talk(server, MODERN)


class Exit(NamedTuple):
    """An exit record, read as anyone could."""

    seq: int
    leaf: str
    body: JSON


def exits(database: Path) -> list[Exit]:
    db = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        query = (
            "SELECT seq, lower(hex(leaf)), CAST(body AS TEXT) FROM ledger"
            " WHERE kind = 'call.exit' ORDER BY seq"
        )
        return [Exit(seq, leaf, json.loads(body)) for seq, leaf, body in db.execute(query)]
    finally:
        db.close()


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("version", HANDSHAKE)
def test_the_handshake_is_that_of_its_revision(tmp_path: Path, version: str) -> None:
    """Specification 2.2, 2.23: each message we send must parse as the official model."""
    with Server(tmp_path, handshake=False) as server:
        client = {"name": "test", "version": "1"}
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
        result = Talk(server, version).result("initialize", params)
        assert result["protocolVersion"] == version
        assert server.request("ping")["result"] == {}
        methods.validate_server_result("ping", version, {})


def test_discover_is_that_of_2026_07_28(modern: Talk) -> None:
    """Specification 2.3, 2.23."""
    assert modern.result("server/discover")["supportedVersions"] == list(VERSIONS)


def test_the_list_of_tools_is_that_of_the_revision(talk: Talk) -> None:
    """Specification 2.23, 4.9: every schema in it is a JSON schema with an object at its root."""
    tools = talk.result("tools/list")["tools"]
    assert {"server_ping", "server_health", "note"} <= {tool["name"] for tool in tools}
    for tool in tools:
        for schema in (tool["inputSchema"], tool["outputSchema"]):
            Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"


def test_the_results_of_calls_are_those_of_the_revision(talk: Talk) -> None:
    """Specification 2.23, 4.7, 4.13: success, both patterns, INVALID_PARAMS."""
    for name, (_, _, outcome, _) in CALLS.items():
        result = talk.call(name)
        assert result["isError"] is (outcome != "ok"), name
        assert ("resultType" in result) is (talk.version == MODERN), name


@pytest.mark.parametrize("name", BAD)
def test_a_protocol_error_is_an_error_message_with_the_id(talk: Talk, name: str) -> None:
    """Specification 2.16, 2.23: protocol errors as MCP has them."""
    method, params, code = BAD[name]
    answer = talk.ask(method, params)
    message = mcp_types.jsonrpc_message_adapter.validate_python(answer, by_name=False)
    assert isinstance(message, mcp_types.JSONRPCError)
    assert message.error.code == code


def test_a_parse_error_is_an_error_message_without_an_id(talk: Talk) -> None:
    """Specification 2.11: -32700 with id null."""
    talk.server.send(b"{\n")
    answer = talk.server.receive()
    message = mcp_types.jsonrpc_message_adapter.validate_python(answer, by_name=False)
    assert isinstance(message, mcp_types.JSONRPCError)
    assert (message.id, message.error.code) == (None, mcp_types.PARSE_ERROR)


def test_an_unserved_version_is_refused_with_the_official_data(tmp_path: Path) -> None:
    """Specification 2.6: -32022 with supported and requested."""
    with Server(tmp_path, handshake=False) as server:
        meta = {**META, "io.modelcontextprotocol/protocolVersion": "2027-01-01"}
        error = server.request("server/discover", {"_meta": meta})["error"]
        assert error["code"] == mcp_types.UNSUPPORTED_PROTOCOL_VERSION
        data = mcp_types.UnsupportedProtocolVersionErrorData.model_validate(error["data"])
        assert (data.supported, data.requested) == ([MODERN], "2027-01-01")


def test_a_subscription_is_acknowledged_and_ended_in_the_official_form(modern: Talk) -> None:
    """Specification 2.8: acknowledged with an empty subset, its result at shutdown."""
    wanted = {"notifications": {"toolsListChanged": True}}
    id = modern.post("subscriptions/listen", wanted, "s")
    first = modern.server.receive()
    assert first is not None
    parsed = methods.parse_server_notification(first["method"], MODERN, first["params"])
    assert isinstance(parsed, mcp_types.SubscriptionsAcknowledgedNotification)
    assert modern.server.close() == 0
    result = modern.server.answer(id)["result"]
    methods.parse_server_result("subscriptions/listen", MODERN, result)
    assert result["_meta"]["io.modelcontextprotocol/subscriptionId"] == "s"
    assert modern.server.receive() is None


def test_structured_content_fits_the_advertised_output_schema(talk: Talk) -> None:
    """Specification 4.9: also when the call failed; SDK clients check it."""
    tools = {tool["name"]: tool for tool in talk.result("tools/list")["tools"]}
    for name, (tool, _, _, _) in CALLS.items():
        envelope = talk.call(name)["structuredContent"]
        Draft202012Validator(tools[tool]["outputSchema"]).validate(envelope)


def test_the_text_is_the_same_json_as_the_structured_content(talk: Talk) -> None:
    """Specification 4.6: content[0].text the same JSON, and nothing else."""
    for name in CALLS:
        result = talk.call(name)
        [content] = result["content"]
        assert content["type"] == "text"
        assert json.loads(content["text"]) == result["structuredContent"], name


@pytest.mark.parametrize("version", ["2025-11-25", MODERN])
def test_the_receipt_is_the_exit_record_and_the_record_has_the_hash_of_the_text(
    tmp_path: Path, version: str
) -> None:
    """Specification 4.8, 9.4: the exit record's seq and leaf, the hash of the envelope.

    A read's own records are not synced: its receipt is the newest head that is (decision 010).
    """
    with Server(tmp_path, handshake=version in HANDSHAKE) as server:
        talk = Talk(server, version)
        recorded = [name for name, call in CALLS.items() if not call[0].startswith("server_")]
        results = {name: talk.call(name) for name in recorded}
        assert server.close() == 0
        synced: tuple[int, str] | None = None
        for (name, result), (seq, leaf, body) in zip(
            results.items(), exits(server.database), strict=True
        ):
            tool, _, outcome, code = CALLS[name]
            receipt = result["_meta"]["colibri/receipt"]
            if tool != "nap_read":
                synced = seq, leaf
            assert (receipt["seq"], receipt["head"]) == synced
            assert (body["tool"], body["outcome"], body["code"]) == (tool, outcome, code)
            assert body["result_sha256"] == sha256(result["content"][0]["text"])


def test_a_probe_has_no_receipt_but_its_record_has_the_hash_of_the_text(tmp_path: Path) -> None:
    """Specification 3.3: probes are answered first and recorded after, without a receipt."""
    with Server(tmp_path) as server:
        result = server.call("server_ping")
        assert server.close() == 0
        assert "_meta" not in result
        [(_, _, body)] = exits(server.database)
        assert body["result_sha256"] == sha256(result["content"][0]["text"])


def test_an_unknown_tool_is_recorded_and_named(tmp_path: Path) -> None:
    """Specification 2.17, 9.4: a pair of records; no envelope, so no hash."""
    with Server(tmp_path) as server:
        error = server.answer(server.post_call("no_such_tool"))["error"]
        assert server.close() == 0
        assert "no_such_tool" in error["message"]
        [(_, _, body)] = exits(server.database)
        assert (body["outcome"], body["code"]) == ("invalid", "-32602")
        assert body["result_sha256"] is None


def test_all_receipts_of_a_server_name_its_log_and_grow(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        receipts = [server.call("note", n=n)["_meta"]["colibri/receipt"] for n in range(3)]
        assert server.close() == 0
        assert len({receipt["log"] for receipt in receipts}) == 1
        assert receipts[0]["log"].startswith("colibri/")
        places = [receipt["seq"] for receipt in receipts]
        assert places == sorted(set(places))
