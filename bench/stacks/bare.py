"""The floor: a JSON-RPC loop over stdio with the same tool, and nothing else that a server needs.

No limits, no protocol checks, no threads, no shutdown: only the work itself.
"""

import json
import sys
from typing import Any

from ledger import Ledger

SCHEMA = {
    "type": "object",
    "properties": {"title": {"type": "string", "minLength": 1, "maxLength": 256}},
    "required": ["title"],
}
TOOLS = [{"name": "task_create", "description": "Create a task.", "inputSchema": SCHEMA}]
GREETING = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "bare", "version": "1"},
}

ledger = Ledger()


def call(params: dict[str, Any]) -> dict[str, Any]:
    title = params["arguments"].get("title")
    if not isinstance(title, str) or not 1 <= len(title) <= 256:
        return {
            "content": [{"type": "text", "text": "title: 1 to 256 characters"}],
            "isError": True,
        }
    text = json.dumps(ledger.create(title))
    return {"content": [{"type": "text", "text": text}], "isError": False}


METHODS = {
    "initialize": lambda params: GREETING,
    "tools/list": lambda params: {"tools": TOOLS},
    "tools/call": call,
}

for line in sys.stdin.buffer:
    message = json.loads(line)
    if "id" in message:
        result = METHODS[message["method"]](message.get("params"))
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()
