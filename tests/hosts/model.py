"""A model on loopback that plays a script, in the dialects of the real hosts.

The dialects are Anthropic Messages, OpenAI Responses, OpenAI Chat Completions and Gemini.
A script is a list of turns; a turn is a list of parts, or a function that makes one from the
request. Requests without tools (titles, summaries, probes) are asides and use up no turn. The same
server is the host's proxy: it refuses the network and notes what was asked for.
"""

import gzip
import http.server
import itertools
import json
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Self

Part = dict[str, Any]
Event = tuple[str, Any]  # the name of a server-sent event, "" for data alone, and its data

_ids = itertools.count(1)


class Request(NamedTuple):
    """What the host sent."""

    body: dict[str, Any]
    is_aside: bool

    @property
    def text(self) -> str:
        """Everything in it, as one string with real line breaks and quotes."""
        return "\n".join(_strings(self.body))

    @property
    def tools(self) -> list[str]:
        return _tools(self.body)

    @property
    def results(self) -> list[str]:
        """What tools answered so far."""
        return list(_results(self.body))


Turn = list[Part] | Callable[[Request], list[Part]]


def say(text: str) -> Part:
    return {"kind": "say", "text": text}


def call(name: str, /, **arguments: Any) -> Part:
    return {"kind": "call", "name": name, "arguments": arguments, "id": f"call_{next(_ids):04d}"}


def free_call(name: str, text: str) -> Part:
    """A call of a tool that takes any text, such as Codex's apply_patch."""
    return {"kind": "free", "name": name, "text": text, "id": f"call_{next(_ids):04d}"}


class Model:
    def __init__(self, turns: Iterable[Turn]) -> None:
        self.requests: list[Request] = []
        self.outside: list[str] = []
        self._turns = iter(list(turns))
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"model": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, body: dict[str, Any]) -> list[Part]:
        with self._lock:
            request = Request(body, is_aside=not _tools(body))
            self.requests.append(request)
            if request.is_aside:
                return [say("ok")]
            turn = next(self._turns, [say("done")])
            return turn(request) if callable(turn) else turn


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):  # hosts that end drop connections
            super().handle_error(request, client_address)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: Model

    def log_message(self, *_: Any) -> None:
        pass

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        if self.command == "CONNECT" or "://" in self.path:
            self.model.outside.append(self.path)
            self.close_connection = True
            self._send(403, "text/plain", b"loopback only")
            return False
        return True

    def do_HEAD(self) -> None:
        self._send(200, "application/json", b"")

    def do_GET(self) -> None:
        self._json({"object": "list", "data": [], "models": []})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("content-encoding") == "gzip":
            raw = gzip.decompress(raw)
        body = json.loads(raw or b"{}")
        path = self.path.split("?")[0]
        if path.endswith("count_tokens"):
            return self._json({"input_tokens": 10})
        if path.endswith(":countTokens"):
            return self._json({"totalTokens": 10})
        found = [one for suffix, one in _DIALECTS.items() if path.endswith(suffix)]
        if not found:
            return self._send(404, "application/json", b'{"error":{"message":"not in the script"}}')
        whole, stream = found[0]
        turn = self.model.answer(body)
        if body.get("stream") or path.endswith(":streamGenerateContent"):
            return self._send(200, "text/event-stream", _sse(stream(turn, body)))
        return self._json(whole(turn, body))

    def _json(self, value: Any) -> None:
        self._send(200, "application/json", json.dumps(value).encode())

    def _send(self, status: int, kind: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


def _sse(events: Iterable[Event]) -> bytes:
    out = []
    for name, data in events:
        text = data if isinstance(data, str) else json.dumps(data)
        out.append((f"event: {name}\n" if name else "") + f"data: {text}\n\n")
    return "".join(out).encode()


# Anthropic Messages.


def _messages(turn: list[Part], body: dict[str, Any]) -> dict[str, Any]:
    content = [
        {"type": "text", "text": part["text"]}
        if part["kind"] == "say"
        else {
            "type": "tool_use",
            "id": f"toolu_{part['id']}",
            "name": part["name"],
            "input": part["arguments"],
        }
        for part in turn
    ]
    return {
        "id": f"msg_{next(_ids):04d}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model", "scripted"),
        "content": content,
        "stop_reason": "tool_use" if _calls(turn) else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }


def _messages_stream(turn: list[Part], body: dict[str, Any]) -> Iterator[Event]:
    def event(kind: str, **data: Any) -> Event:
        return kind, {"type": kind, **data}

    whole = _messages(turn, body)
    yield event("message_start", message={**whole, "content": [], "stop_reason": None})
    for n, block in enumerate(whole["content"]):
        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            text = json.dumps(block["input"])
            empty, delta = (
                {**block, "input": {}},
                {"type": "input_json_delta", "partial_json": text},
            )
        yield event("content_block_start", index=n, content_block=empty)
        yield event("content_block_delta", index=n, delta=delta)
        yield event("content_block_stop", index=n)
    stop = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield event("message_delta", delta=stop, usage={"output_tokens": 5})
    yield event("message_stop")


# OpenAI Responses.


def _responses(turn: list[Part], body: dict[str, Any]) -> dict[str, Any]:
    output = []
    for part in turn:
        item: dict[str, Any] = {"id": f"item_{next(_ids):04d}", "status": "completed"}
        if part["kind"] == "say":
            text = {"type": "output_text", "text": part["text"], "annotations": []}
            item |= {"type": "message", "role": "assistant", "content": [text]}
        else:
            space, _, name = part["name"].rpartition(".")
            item |= {"call_id": part["id"], "name": name} | ({"namespace": space} if space else {})
            if part["kind"] == "free":
                item |= {"type": "custom_tool_call", "input": part["text"]}
            else:
                arguments = json.dumps(part["arguments"])
                item |= {"type": "function_call", "arguments": arguments}
        output.append(item)
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 15,
    }
    return {
        "id": f"resp_{next(_ids):04d}",
        "object": "response",
        "status": "completed",
        "model": body.get("model", "scripted"),
        "output": output,
        "usage": usage,
    }


def _responses_stream(turn: list[Part], body: dict[str, Any]) -> Iterator[Event]:
    def event(kind: str, **data: Any) -> Event:
        return kind, {"type": kind, **data}

    whole = _responses(turn, body)
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    yield event("response.created", response=begun)
    for n, item in enumerate(whole["output"]):
        in_progress = {**item, "status": "in_progress"}
        yield event("response.output_item.added", output_index=n, item=in_progress)
        yield event("response.output_item.done", output_index=n, item=item)
    yield event("response.completed", response=whole)


# OpenAI Chat Completions.

_CHAT_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def _chat_message(turn: list[Part]) -> tuple[dict[str, Any], str]:
    calls = []
    for n, part in enumerate(_calls(turn)):
        function = {"name": part["name"], "arguments": json.dumps(part["arguments"])}
        calls.append({"index": n, "id": part["id"], "type": "function", "function": function})
    said = "".join(part["text"] for part in turn if part["kind"] == "say")
    message: dict[str, Any] = {"role": "assistant", "content": said}
    return (message | {"tool_calls": calls}, "tool_calls") if calls else (message, "stop")


def _chat_frame(kind: str, body: dict[str, Any]) -> dict[str, Any]:
    name = f"chat_{next(_ids):04d}"
    return {"id": name, "object": kind, "created": 0, "model": body.get("model", "scripted")}


def _chat(turn: list[Part], body: dict[str, Any]) -> dict[str, Any]:
    message, stop = _chat_message(turn)
    choice = {"index": 0, "message": message, "finish_reason": stop}
    return _chat_frame("chat.completion", body) | {"choices": [choice], "usage": _CHAT_USAGE}


def _chat_stream(turn: list[Part], body: dict[str, Any]) -> Iterator[Event]:
    message, stop = _chat_message(turn)
    frame = _chat_frame("chat.completion.chunk", body)
    begun = {"index": 0, "delta": message, "finish_reason": None}
    ended: dict[str, Any] = {"index": 0, "delta": {}, "finish_reason": stop}
    yield "", frame | {"choices": [begun]}
    yield "", frame | {"choices": [ended], "usage": _CHAT_USAGE}
    yield "", "[DONE]"


# Gemini.


def _gemini(turn: list[Part], body: dict[str, Any]) -> dict[str, Any]:
    parts = [
        {"text": part["text"]}
        if part["kind"] == "say"
        else {"functionCall": {"name": part["name"], "args": part["arguments"]}}
        for part in turn
    ]
    content = {"role": "model", "parts": parts}
    return {
        "candidates": [{"index": 0, "content": content, "finishReason": "STOP"}],
        "modelVersion": "scripted",
        "usageMetadata": {
            "promptTokenCount": 10,
            "candidatesTokenCount": 5,
            "totalTokenCount": 15,
        },
    }


def _gemini_stream(turn: list[Part], body: dict[str, Any]) -> Iterator[Event]:
    yield "", _gemini(turn, body)


_Whole = Callable[[list[Part], dict[str, Any]], dict[str, Any]]
_Stream = Callable[[list[Part], dict[str, Any]], Iterator[Event]]
_DIALECTS: dict[str, tuple[_Whole, _Stream]] = {
    "/messages": (_messages, _messages_stream),
    "/responses": (_responses, _responses_stream),
    "/chat/completions": (_chat, _chat_stream),
    ":streamGenerateContent": (_gemini, _gemini_stream),
    ":generateContent": (_gemini, _gemini_stream),
}


# What requests hold.


def _calls(turn: list[Part]) -> list[Part]:
    return [part for part in turn if part["kind"] != "say"]


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _strings(one)


def _tools(body: dict[str, Any]) -> list[str]:
    """The names of the tools that the model may call."""
    declared = list(body.get("tools") or [])
    for item in body.get("input") or []:  # Responses: tools may also be part of the conversation
        if isinstance(item, dict) and item.get("type") == "additional_tools":
            declared += item.get("tools", [])
    names = []
    for tool in declared:
        if tool.get("type") == "namespace":
            names += [f"{tool['name']}.{one.get('name')}" for one in tool.get("tools", [])]
        elif "functionDeclarations" in tool:
            names += [one["name"] for one in tool["functionDeclarations"]]
        else:
            function = tool.get("function", {})
            names.append(tool.get("name") or function.get("name") or tool.get("type", ""))
    return names


def _results(body: dict[str, Any]) -> Iterator[str]:
    for message in body.get("messages") or body.get("input") or body.get("contents") or ():
        if message.get("role") == "tool" or str(message.get("type")).endswith("_call_output"):
            yield json.dumps(message.get("content") or message.get("output"))
        parts = message.get("parts") or message.get("content")
        for part in parts if isinstance(parts, list) else ():
            if part.get("type") == "tool_result":
                yield json.dumps(part["content"])
            elif "functionResponse" in part:
                yield json.dumps(part["functionResponse"]["response"])
