"""Decides which calls to admit: by tool, mode, the server's condition and the calls that wait.

An admitted call goes to its lane; any other is turned away at once.
"""

import json

from colibri.core.modes import MODE_GRANTS
from colibri.server import envelope
from colibri.server.call import Call, UnknownTool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from colibri.core.modes import Mode
    from colibri.server.answers import Request
    from colibri.server.call import Load, Registered
    from colibri.server.health import Health
    from colibri.server.life import Life
    from colibri.server.pipeline import Pipeline

NAME = "{}"  # placeholder for an unknown tool's name until stage 2 has removed secrets from it
MAX_NAME = 4096  # of an unknown tool; a secret cut in two by a shorter limit might go unnoticed


class Admission:
    """The service behind the wire of one server."""

    def __init__(self, mode: "Mode", life: "Life", health: "Health", load: "Load") -> None:
        self.mode = mode
        self.health = health
        self.load = load
        self.tools: dict[str, Registered] = {}
        self.instructions = ""
        self._life = life
        self._listed: bytes | None = None
        self._pipeline: Pipeline
        self._lanes: dict[str, Callable[[Call], None]]

    def attach(self, pipeline: "Pipeline", lanes: "dict[str, Callable[[Call], None]]") -> None:
        """Connect what comes next: the pipeline and the lanes' queues."""
        self._pipeline = pipeline
        self._lanes = lanes

    def admitted(self) -> "list[Registered]":
        """The tools that the mode allows, in order."""
        grants = MODE_GRANTS[self.mode]
        return [tool for tool in self.tools.values() if tool.capability in grants]

    def tool_list(self) -> bytes:
        if self._listed is None:  # the tools cannot change once connected
            listings = [tool.listing for tool in self.admitted()]
            text = json.dumps(listings, ensure_ascii=False, separators=(",", ":"))
            self._listed = text.encode()
        return self._listed

    def call(self, request: "Request", name: str, arguments: object) -> None:
        """Hand a call to its lane, or turn it away."""
        tool = self.tools.get(name)
        if tool is None or tool.capability not in MODE_GRANTS[self.mode]:
            call = Call(request, name[:MAX_NAME], arguments, None)
            call.refusal = UnknownTool(self._unknown(name))
        else:
            call = Call(request, name, arguments, tool)
        request.work = call
        if self._life.stop_reason is not None:
            why = "the server is shutting down"
            self._pipeline.turn_away(call, envelope.SHUTTING_DOWN, why)
        elif call.lane == "probe":
            self._pipeline.probe(call)
        elif tool is not None and (held := self.health.why_not(tool.capability)) is not None:
            self._pipeline.turn_away(call, envelope.UNAVAILABLE, held)
        elif not self.load.accept(call):
            why = "too many calls wait for their answer: wait for some of them, then retry"
            self._pipeline.turn_away(call, envelope.OVERLOADED, why)
        else:
            self._lanes[call.lane](call)
            if not self._life.may_load.is_set():
                self._life.may_load.set()

    def cancel(self, request: "Request") -> bool:
        call = request.work  # None if it has just been answered
        return isinstance(call, Call) and call.cancel()

    def _unknown(self, name: str) -> str:
        """The message for a tool that does not exist or is not available."""
        names = ", ".join(tool.name for tool in self.admitted())
        if name in self.tools:
            return f"the tool {NAME} is not available in mode {self.mode}; available: {names}"
        return f"there is no tool {NAME}; the tools are: {names}"
