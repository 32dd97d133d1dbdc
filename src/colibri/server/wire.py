"""JSON-RPC 2.0 and MCP over lines of bytes; knows nothing of tools or the database.

Revisions: 2024-11-05, 2025-03-26, 2025-06-18 and 2025-11-25 begin with `initialize`; 2026-07-28 has
no handshake: each request names its version in `_meta`. Which rules apply is decided per request.

ERRORS
    -32700  the line is not acceptable JSON; the id is the request's if it can be read
    -32600  a JSON value that is not a request, such as a batch; an id that is in use or too long
    -32601  a method that the request's revision does not have
    -32602  invalid params; an unknown tool; a cursor (there is only one page)
    -32022  a version in `_meta` that is not served; data has `supported` and `requested`
    -32010  too many open subscriptions

A response is not a request either, but it is ignored: answering it could make two servers answer
each other without end.
"""

from colibri.server import origin
from colibri.server.answers import Fault, Request, dump, error_line, is_id
from colibri.server.lines import Lines, Malformed, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from colibri.server.answers import Answers

    class Service(Protocol):
        """What the wire needs of the server behind it."""

        instructions: str

        def tool_list(self) -> bytes:
            """The JSON array of the tools that can be called."""

        def call(self, request: "Request", name: str, arguments: object) -> None:
            """Take a tools/call; the answer comes later, from any thread."""

        def cancel(self, request: "Request") -> bool:
            """Drop a call that still waits; False if it has begun."""


HANDSHAKE_REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_REVISIONS = ("2026-07-28",)

MAX_SUBSCRIPTIONS = 16
MAX_KEPT_ID = 1024

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
UNSUPPORTED_VERSION = -32022
TOO_MANY_SUBSCRIPTIONS = -32010

_VERSION = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"

# How long a client may cache the description of the server and its tools: both are fixed for the
# life of a process, but the next process may be another version.
_CACHE_HINTS = {"ttlMs": 300_000, "cacheScope": "public"}


class Wire:
    """One connection: its protocol era, and the requests that come in."""

    def __init__(
        self, service: "Service", answers: "Answers", send: "Callable[[bytes], None]"
    ) -> None:
        self._service = service
        self._answers = answers
        self._send = send
        self._lines = Lines()
        self._subscriptions: dict[str | int, Request] = {}
        self._initialized = False
        self._client = origin.NOWHERE  # for calls that say no more than the handshake
        self._spoke_modern = False
        self._closing = False

    def feed(self, chunk: bytes) -> None:
        for line in self._lines.feed(chunk):
            self._handle_line(line)

    def end(self) -> None:
        """The input has ended: text without a final newline counts as a line too."""
        for line in self._lines.end():
            self._handle_line(line)

    def close_subscriptions(self) -> None:
        """Shutdown: end every open subscription with its result, and every later one at once."""
        self._closing = True
        for request in list(self._subscriptions.values()):
            del self._subscriptions[request.id]
            self._result(request, {}, {_SUBSCRIPTION: request.id})

    # Lines and messages.

    def _handle_line(self, line: bytes | Malformed) -> None:
        try:
            if isinstance(line, Malformed):
                raise line
            if line.strip(b" \t\r"):  # blank lines are ignored
                self._handle_message(parse(line), line)
        except Malformed as problem:
            self._send(error_line(problem.id, Fault(PARSE_ERROR, f"parse error: {problem}")))

    def _handle_message(self, message: object, line: bytes) -> None:
        try:
            request = self._classify(message, line)
            if request is not None:
                self._serve(request)
        except Fault as fault:
            id = message.get("id") if isinstance(message, dict) else None
            self._send(error_line(id, fault))

    def _classify(self, message: object, line: bytes) -> Request | None:
        """A request, or None for a notification or response, which is handled here."""
        if not isinstance(message, dict):
            kind = "a batch" if isinstance(message, list) else "this JSON value"
            raise Fault(INVALID_REQUEST, f"{kind} is not a request: send one JSON object per line")
        if message.get("jsonrpc") != "2.0":
            raise Fault(INVALID_REQUEST, 'not a JSON-RPC 2.0 message: "jsonrpc" must be "2.0"')
        if "method" not in message and ("result" in message) != ("error" in message):
            return None
        method = message.get("method")
        if not isinstance(method, str):
            raise Fault(INVALID_REQUEST, '"method" must be a string')
        if "id" not in message:
            self._notification(method, message.get("params"))
            return None
        if not is_id(message["id"]):
            raise Fault(INVALID_REQUEST, '"id" must be a string or an integer')
        return self._request(Request(message["id"], method, line), message)

    def _request(self, request: Request, message: dict[str, object]) -> Request:
        if request.id in self._answers.open or request.id in self._subscriptions:
            raise Fault(INVALID_REQUEST, "this id belongs to a request that is still in progress")
        params = message.get("params", {})
        if not isinstance(params, dict):
            raise Fault(INVALID_PARAMS, '"params" must be an object')
        request.params = params
        request.modern = self._era(params.get("_meta", {}), request.method)
        return request

    def _era(self, meta: object, method: str) -> bool:
        """Whether the rules of 2026-07-28 apply to a request with this `_meta`."""
        if not isinstance(meta, dict):
            raise Fault(INVALID_PARAMS, '"params._meta" must be an object')
        if _VERSION not in meta:
            if self._spoke_modern and not self._initialized and method != "initialize":
                raise Fault(INVALID_PARAMS, f'"params._meta" must name "{_VERSION}"')
            return False
        self._spoke_modern = True
        version = meta[_VERSION]
        if not isinstance(version, str):
            raise Fault(INVALID_PARAMS, f'"{_VERSION}" must be a string')
        if version not in MODERN_REVISIONS:
            data = {"supported": list(MODERN_REVISIONS), "requested": version}
            raise Fault(
                UNSUPPORTED_VERSION,
                f"this protocol version is not served per request: use {MODERN_REVISIONS[0]},"
                " or begin with initialize",
                data,
            )
        if not isinstance(meta.get(_CAPABILITIES), dict):
            raise Fault(INVALID_PARAMS, f'"params._meta" must have "{_CAPABILITIES}", an object')
        if not isinstance(meta.get(origin.CLIENT_INFO, {}), dict):
            raise Fault(INVALID_PARAMS, f'"{origin.CLIENT_INFO}" must be an object')
        return True

    def _notification(self, method: str, params: object) -> None:
        if method != "notifications/cancelled" or not isinstance(params, dict):
            return
        id = params.get("requestId")
        if not is_id(id) or self._subscriptions.pop(id, None) is not None:
            return
        request = self._answers.open.get(id)
        if request is not None and self._service.cancel(request):
            self._answers.close(request)

    # The methods.

    def _serve(self, request: Request) -> None:
        methods = _MODERN_METHODS if request.modern else _HANDSHAKE_METHODS
        serve = methods.get(request.method)
        if serve is None:
            raise Fault(METHOD_NOT_FOUND, _no_such_method(request, methods))
        serve(self, request)

    def _initialize(self, request: Request) -> None:
        version = request.params.get("protocolVersion")
        if not isinstance(version, str):
            raise Fault(INVALID_PARAMS, '"protocolVersion" must be a string')
        for name in ("capabilities", "clientInfo"):
            if not isinstance(request.params.get(name, {}), dict):
                raise Fault(INVALID_PARAMS, f'"{name}" must be an object')
        self._initialized = True
        self._client = origin.of_call(origin.name_of(request.params.get("clientInfo")), None)
        agreed = version if version in HANDSHAKE_REVISIONS else HANDSHAKE_REVISIONS[-1]
        result: dict[str, object] = {
            "protocolVersion": agreed,
            "capabilities": {"tools": {}},
            "serverInfo": self._answers.server_info,
            "instructions": self._service.instructions,
        }
        self._result(request, result)

    def _ping(self, request: Request) -> None:
        self._result(request, {})

    def _discover(self, request: Request) -> None:
        result = {
            "supportedVersions": [*HANDSHAKE_REVISIONS, *MODERN_REVISIONS],
            "capabilities": {"tools": {}},
            "instructions": self._service.instructions,
            **_CACHE_HINTS,
        }
        self._result(request, result)

    def _tools_list(self, request: Request) -> None:
        if request.params.get("cursor") is not None:
            raise Fault(INVALID_PARAMS, "tools/list has one page: ask without cursor")
        members = b'"tools":' + self._service.tool_list()
        if request.modern:
            members += b"," + dump(_CACHE_HINTS)[1:-1]
        self._send(self._answers.result_line(request, [], members))

    def _tools_call(self, request: Request) -> None:
        name = request.params.get("name")
        if not isinstance(name, str):
            raise Fault(INVALID_PARAMS, '"name" must be a string: the name of a tool of tools/list')
        arguments = request.params.get("arguments")
        self._answers.open[request.id] = request
        meta, known = request.params.get("_meta"), self._client
        request.origin = origin.of_call(known.client, meta) if meta else known
        request.params = {}  # the service has what it needs
        self._service.call(request, name, {} if arguments is None else arguments)

    def _listen(self, request: Request) -> None:
        if not isinstance(request.params.get("notifications"), dict):
            raise Fault(INVALID_PARAMS, '"notifications" must be an object')
        if len(self._subscriptions) >= MAX_SUBSCRIPTIONS:
            message = f"{MAX_SUBSCRIPTIONS} subscriptions are open: cancel one of them first"
            raise Fault(TOO_MANY_SUBSCRIPTIONS, message)
        if isinstance(request.id, str) and len(request.id) > MAX_KEPT_ID:
            message = f"the id of a subscription has at most {MAX_KEPT_ID} characters"
            raise Fault(INVALID_REQUEST, message)
        request.line, request.params = b"", {}  # it may stay open for long, and these may be large
        self._subscriptions[request.id] = request
        # Nothing that a client can subscribe to ever changes here, so the granted subset is empty.
        acknowledged = {
            "jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": {"_meta": {_SUBSCRIPTION: request.id}, "notifications": {}},
        }
        self._send(dump(acknowledged) + b"\n")
        if self._closing:
            self.close_subscriptions()

    def _result(
        self, request: Request, result: dict[str, object], meta: dict[str, object] | None = None
    ) -> None:
        members = (dump(result)[1:-1],) if result else ()
        told = [dump(meta)[1:-1]] if meta else []
        self._send(self._answers.result_line(request, told, *members))


_HANDSHAKE_METHODS: "dict[str, Callable[[Wire, Request], None]]" = {
    "initialize": Wire._initialize,
    "ping": Wire._ping,
    "tools/list": Wire._tools_list,
    "tools/call": Wire._tools_call,
}
_MODERN_METHODS: "dict[str, Callable[[Wire, Request], None]]" = {
    "server/discover": Wire._discover,
    "tools/list": Wire._tools_list,
    "tools/call": Wire._tools_call,
    "subscriptions/listen": Wire._listen,
}


def _no_such_method(request: Request, methods: "dict[str, Callable[[Wire, Request], None]]") -> str:
    message = f"no such method; the methods are {', '.join(methods)}"
    if not request.modern and request.method in _MODERN_METHODS:
        message += f'; with "{_VERSION}" in _meta also {request.method}'
    return message
