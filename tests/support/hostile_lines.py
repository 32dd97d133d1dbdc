"""Hostile lines, made from good lines, tokens and chance; and an oracle for the right answers.

The oracle follows only the rules of the wire and shares none of its code.
"""

import json
from random import Random
from typing import Any

MIB = 1024 * 1024
MAX_LINE = 4 * MIB

JSON = dict[str, Any]
SESSION = "S-hostile"
CALLS: dict[str, JSON] = {
    "task_create": {"title": "für später", "priority": "high", "depends_on": ["T-0001"]},
    "task_get": {"task_id": "T-0001"},
    "task_update": {"task_id": "T-0001", "status": "GATHER", "expected_version": 1},
    "task_list": {"search": "a", "limit": 3, "offset": 0},
    "task_next_actions": {"limit": 2},
    "audit_session_start": {"intent": "x", "session_id": SESSION},
    "thought_record": {"session_id": SESSION, "type": "plan", "content": "\u2028 \\ud83c"},
    "thought_record_list": {"session_id": SESSION, "limit": 2},
    "audit_verify_chain": {"session_id": SESSION},
    "merkle_root": {"session_id": SESSION, "proof_for": "R-1"},
    "skill_list": {"search": "a"},
    "server_ping": {},
    "server_health": {},
}
_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
METHODS = ("ping", "tools/list", "initialize", "server/discover", "notifications/x", "", "rpc.x")
TOKENS = (
    *("{", "}", "[", "]", ",", ":", '"', "\\", "\\u", "\\ud800", "\\udc00", "\\u0000", "null"),
    *("true", "NaN", "Infinity", "-Infinity", "1e999", "-0", "1e-400", "9007199254740992", "0x1"),
    *("9" * 5_000, "1.5", "\x00", "\x1b[2J", "\u202e", "\ufeff", "é", "🌊", "\r", "\t", " " * 99),
    *('"id":1', '"id":null', '"method":"ping"', '"jsonrpc":"2.0"', '"params":{}', '"result":1'),
    *("[" * 70, "{" * 70, '{"a":' * 70, "[" * 3_000, "[]," * 50, '"__proto__":1', "../../etc"),
)
STRANGE: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**53 - 1, 1.5, 1e300, "", "x" * 300, "\0", "T-0001\n", [], {}),
    *([[]], {"": ""}, ["T-0001"] * 70, {"a": {"b": {"c": [1, None]}}}, "T-99999999999", "\u202e"),
)


def request(random: Random, id: object) -> JSON:
    """A request as a client might send it, sometimes with something strange in it."""
    message: JSON = {"jsonrpc": "2.0", "id": id, "method": random.choice(METHODS)}
    if random.random() < 0.8:
        tool = random.choice((*CALLS, "no_such_tool"))
        arguments = dict(CALLS.get(tool, {}))
        message["method"] = "tools/call"
        message["params"] = {"name": tool, "arguments": arguments}
        for holder, odds in ((arguments, 0.4), (message["params"], 0.1), (message, 0.1)):
            if random.random() < odds:
                _spoil(holder, random)
    elif random.random() < 0.5:
        message["params"] = random.choice(({}, {"_meta": _META}, {"_meta": 1}, [], None, {"a": 1}))
    return message


def _spoil(holder: JSON, random: Random) -> None:
    names = [name for name in (*holder, "x", "agent_id") if name != "id"]
    name = random.choice(names)
    if name in holder and random.random() < 0.3:
        del holder[name]
    else:
        holder[name] = random.choice(STRANGE)


def dump(message: object, random: Random) -> bytes:
    text = json.dumps(message, ensure_ascii=random.random() < 0.5)
    return text.encode(errors="surrogatepass")


def mutated(line: bytes, random: Random, other: bytes) -> bytes:
    """A line with a few mutations, but never a line break."""
    data = bytearray(line)
    for _ in range(random.choice((1, 1, 2, 4, 8))):
        at = random.randrange(len(data) + 1)
        until = min(len(data), at + random.choice((0, 1, 1, 4, 16, 64)))
        how = random.randrange(6)
        if how == 0:
            data[at:until] = b""
        elif how == 1:
            data[at:until] = random.choice(TOKENS).encode(errors="surrogatepass")
        elif how == 2:
            data[at:until] = random.randbytes(until - at)
        elif how == 3:
            data[at:at] = data[at:until] * random.choice((1, 2, 50))
        elif how == 4:
            begin = random.randrange(len(other) + 1)
            data[at:until] = other[begin : begin + 40]
        elif at < len(data):
            data[at] ^= 1 << random.randrange(8)
    return bytes(data).replace(b"\n", b" ")


class _Refused(ValueError):
    """JSON that the wire does not accept."""


def _pairs(pairs: list[tuple[str, Any]]) -> JSON:
    if len({name for name, _ in pairs}) != len(pairs):
        raise _Refused
    return dict(pairs)


def _whole(digits: str) -> int:
    if len(digits) > 20 or abs(int(digits)) >= 2**53:
        raise _Refused
    return int(digits)


def _real(text: str) -> float:
    if abs(float(text)) == float("inf"):
        raise _Refused
    return float(text)


def _no_constant(name: str) -> float:
    raise _Refused


def strictly(line: bytes) -> Any:
    """The value of a line, or ValueError."""
    if len(line) > MAX_LINE:
        raise _Refused
    try:
        value = json.loads(
            line.decode(),
            object_pairs_hook=_pairs,
            parse_int=_whole,
            parse_float=_real,
            parse_constant=_no_constant,
        )
        json.dumps(value, ensure_ascii=False).encode()  # a UnicodeEncodeError is a ValueError
        if _depth(value) <= 64 and _structure(value) <= 100_000:
            return value
    except RecursionError:
        pass
    raise _Refused


def _depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, inner), default=0) if isinstance(value, dict | list) else 0


def _structure(value: Any) -> int:
    if not isinstance(value, dict | list):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(0, len(value) - 1) + sum(map(_structure, inner))


def answers(line: bytes) -> list[object]:
    """The ids of the answers that a line must get: none, or one."""
    if not line.strip(b" \t\r"):
        return []
    try:
        message = strictly(line)
    except ValueError:
        return [_id_of_refused(line)]
    if not isinstance(message, dict):
        return [None]
    if message.get("jsonrpc") == "2.0" and _is_silent(message):
        return []
    id = message.get("id")
    return [id if isinstance(id, str | int) and not isinstance(id, bool) else None]


def _id_of_refused(line: bytes) -> object:
    """The id in a line that is JSON, but not of the strict kind; None if it is unclear."""
    try:
        pairs = json.loads(line.decode(), object_pairs_hook=list, parse_int=_integer)
        names = [name for name, _ in pairs]
        is_object = line.lstrip(b" \t\r").startswith(b"{")
        if not is_object or len(line) > MAX_LINE:
            return None
        if _structure(json.loads(line.decode(), parse_int=_integer)) > 100_000:
            return None
        (id,) = [value for name, value in pairs if name == "id" and "method" in names]
        str(id).encode()
    except (ValueError, RecursionError, TypeError):
        return None
    is_number = isinstance(id, int) and not isinstance(id, bool) and abs(id) < 2**53
    return id if is_number or isinstance(id, str) else None


def _integer(digits: str) -> int:
    """Python refuses more than 4,300 digits; for an id a few are too many already."""
    return int(digits[:100])


def _is_silent(message: JSON) -> bool:
    """A notification, or a response to no request."""
    if "method" in message:
        return isinstance(message["method"], str) and "id" not in message
    return ("result" in message) != ("error" in message)
