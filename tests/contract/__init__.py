"""Tests of the requirements one by one, and the in-process server that they use."""

import json
import queue
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from colibri.config import Config, load
from colibri.server import (
    AuditSink,
    ToolEnterEvent,
    ToolExitEvent,
    create_server,
    start,
)
from colibri.server.context import register_catalogue
from tests.support import engines
from tests.support.linked import linked

JSON = dict[str, Any]
PATIENCE = 30.0


def configured(project: Path, **env: str) -> Config:
    """The configuration of a server in a directory, on the engine of the test."""
    return load(str(project), {**engines.environment(project), **env})


class Recording(AuditSink):
    """A sink that keeps its events; `fail_enter` and `fail_exit` are raised, if given."""

    def __init__(
        self,
        *,
        fail_enter: BaseException | None = None,
        fail_exit: BaseException | None = None,
    ) -> None:
        self.events: list[ToolEnterEvent | ToolExitEvent] = []
        self._fail_enter = fail_enter
        self._fail_exit = fail_exit

    def enter(self, event: ToolEnterEvent) -> None:
        self.events.append(event)
        if self._fail_enter is not None:
            raise self._fail_enter

    def exit(self, event: ToolExitEvent) -> None:
        self.events.append(event)
        if self._fail_exit is not None:
            raise self._fail_exit

    @property
    def kinds(self) -> list[str]:
        return ["enter" if isinstance(e, ToolEnterEvent) else "exit" for e in self.events]

    def pair(self) -> tuple[ToolEnterEvent, ToolExitEvent]:
        """The events of the only call."""
        enter, end = self.events
        assert isinstance(enter, ToolEnterEvent)
        assert isinstance(end, ToolExitEvent)
        return enter, end


class Linked:
    """A server over `linked`, run on a thread, and its client.

    Tools are registered on `ctx` before the with block, which starts and ends the server. Without
    a configuration it opens no database; `logged` is what its logger was given.
    """

    def __init__(
        self,
        *,
        audit_sink: AuditSink | None = None,
        mode: str | None = "FULL",
        version: str | None = None,
        now_ms: Callable[[], float] | None = None,
        boot_start_ms: float | None = None,
        config: Config | None = None,
    ) -> None:
        transport, self._peer = linked()
        self.logged: list[str] = []
        self.exit_code: int | None = None
        self.ctx = create_server(
            transport=transport,
            audit_sink=audit_sink,
            mode=mode if config is None else None,
            version=version,
            now_ms=now_ms,
            boot_start_ms=boot_start_ms,
            config=config,
            logger=self.logged.append,
            install_handlers=False,
        )
        register_catalogue(self.ctx)
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._may_read = threading.Event()
        self._may_read.set()
        self._last = 0
        self._threads = [
            threading.Thread(target=self._run, daemon=True),
            threading.Thread(target=self._read, daemon=True),
        ]

    def __enter__(self) -> Self:
        start(self.ctx)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._peer.hang_up()
        for thread in self._threads:
            thread.join(PATIENCE)
            assert not thread.is_alive(), self.logged
        self._peer.close()

    def post(self, tool: str, arguments: object = None) -> int:
        """Send a call without waiting; its id."""
        self._last += 1
        params = {"name": tool, "arguments": {} if arguments is None else arguments}
        message = {"jsonrpc": "2.0", "id": self._last, "method": "tools/call", "params": params}
        self._peer.send(json.dumps(message).encode() + b"\n")
        return self._last

    def cancel(self, id: int) -> None:
        method = "notifications/cancelled"
        message = {"jsonrpc": "2.0", "method": method, "params": {"requestId": id}}
        self._peer.send(json.dumps(message).encode() + b"\n")

    def receive(self) -> JSON:
        """The next answer."""
        answer: JSON = json.loads(self._lines.get(timeout=PATIENCE))
        return answer

    def call(self, tool: str, arguments: object = None) -> JSON:
        """Call a tool while no other call is open; the CallToolResult."""
        id = self.post(tool, arguments)
        answer = self.receive()
        assert answer["id"] == id, answer
        result: JSON = answer["result"]
        return result

    def data(self, tool: str, arguments: object = None) -> JSON:
        """Call a tool that must succeed; the data of its envelope."""
        result = self.call(tool, arguments)
        assert result["isError"] is False, result
        data: JSON = result["structuredContent"]["data"]
        return data

    def wait_for_store(self) -> None:
        """Until the database is open, or cannot be opened."""
        assert self.ctx.parts.life.store_ready.wait(PATIENCE)

    def _run(self) -> None:
        self.exit_code = self.ctx.run()

    def pause_reading(self) -> None:
        """Stop reading what the server sends, after one more line."""
        self._may_read.clear()

    def resume_reading(self) -> None:
        self._may_read.set()

    def _read(self) -> None:
        while line := self._peer.receive():
            self._lines.put(line)
            self._may_read.wait()
