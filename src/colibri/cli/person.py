"""A person at work: their calls pass the server's own five stages, in this process.

The agent of these calls is human:NAME, which no MCP client may call itself, and their client is
colibri-cli. They belong to the person's session of the day, which the first of them opens.
"""

import argparse
import json
import os
import pwd
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from itertools import count
from typing import Any, BinaryIO

from colibri import VERSION
from colibri.cli import project, refusals, terminal
from colibri.cli.show import times
from colibri.config import Config, load
from colibri.core.errors import ConfigError, ResourceError
from colibri.core.ledger import HUMAN
from colibri.core.modes import Mode
from colibri.store import sessions
from colibri.store.connection import Connection

CLIENT = "colibri-cli"
PROTOCOL = "2025-11-25"


class Person:
    """The person at the terminal, and the server that runs their calls."""

    def __init__(
        self,
        config: Config,
        requests: BinaryIO,
        answers: BinaryIO,
        *,
        wait: Callable[[], object],
        json: bool,
    ) -> None:
        self.name = str(config.person)
        self._config = config
        self._wait = wait
        self._requests = requests
        self._answers = answers
        self._json = json
        self._numbers = count(1)
        self.head: str | None = None  # of the ledger after the last call, as its receipt says

    def call(
        self, tool: str, arguments: Mapping[str, Any], session: str | None = None
    ) -> dict[str, Any]:
        """What a tool answers, in the person's session or another; its refusals are our errors."""
        return self._call(tool, {**arguments, "session_id": session or self._session()})

    def _session(self) -> str:
        """The person's session; a new one if there is none."""
        if (found := self.open_session()) is not None:
            return found
        today = times.now().date()
        intent = f"Terminal work by {self.name.removeprefix(HUMAN)}, {today}"
        started = self._call("audit_session_start", {"intent": intent, "brief": False})
        return str(started["session_id"])

    def open_session(self) -> str | None:
        """The newest that the person opened, if that was today or they were at work lately."""
        now = times.now()
        with self.looking() as db:
            mine = (one for one in sessions.open_of(db, self.name) if one.resume_seq is None)
            if (session := next(mine, None)) is None:
                return None
            sign = sessions.last_sign(db, session.session_id)
        started = datetime.fromisoformat(session.started_at).astimezone()
        is_alive = sign.minutes_before(now.isoformat()) < self._config.claim_minutes
        return session.session_id if is_alive or started.date() == now.date() else None

    @contextmanager
    def looking(self) -> Iterator[Connection]:
        """The ledger, to look something up before or after a call; nothing of it is recorded."""
        self._wait()  # until the ledger is open, or made
        with closing(project.home(self._config).open_reader()) as db:
            yield db

    def _call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        content: dict[str, Any] = result["structuredContent"]
        error = content.get("error") or content["data"].get("error")
        if error is None:
            if (receipt := result.get("_meta", {}).get("colibri/receipt")) is not None:
                self.head = f"{receipt['seq']}:{receipt['head']}"
            data: dict[str, Any] = content["data"]
            return data
        if self._json:
            terminal.emit({"error": error})
        raise refusals.complaint(error)

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result of a request."""
        message = {"jsonrpc": "2.0", "id": next(self._numbers), "method": method, "params": params}
        self._requests.write(json.dumps(message).encode() + b"\n")
        self._requests.flush()
        answer = json.loads(self._answers.readline() or b'{"error": {"message": "it has ended"}}')
        if "error" in answer:
            raise ResourceError(f"the server did not answer: {answer['error']['message']}")
        result: dict[str, Any] = answer["result"]
        return result


_HELLO = {
    "protocolVersion": PROTOCOL,
    "capabilities": {},
    "clientInfo": {"name": CLIENT, "version": VERSION},
}


@contextmanager
def at_work(options: argparse.Namespace) -> Iterator[Person]:
    """The person at the terminal, with a server of their own for the length of a with block."""
    # Only commands that write load the server.
    from colibri.server import create_server  # noqa: PLC0415
    from colibri.server.context import register_catalogue  # noqa: PLC0415
    from colibri.server.transport import Stream  # noqa: PLC0415

    config = load(options.project, person=name())
    if config.mode in (Mode.READONLY, Mode.MINIMAL):
        raise ConfigError([f"COLIBRI_MODE is {config.mode}, which changes nothing: unset it"])
    (calls_out, calls_in), (answers_out, answers_in) = os.pipe(), os.pipe()
    server = create_server(
        config=config,
        transport=Stream(calls_out, answers_in),
        logger=lambda _: None,  # what goes wrong is in the answers
        install_handlers=False,
    )
    register_catalogue(server)
    server.start()
    serving = threading.Thread(target=server.run, name="colibri-serve")
    serving.start()
    with open(calls_in, "wb") as requests, open(answers_out, "rb") as answers:
        try:
            wait = server.parts.life.store_ready.wait
            me = Person(config, requests, answers, wait=wait, json=options.json)
            me.request("initialize", _HELLO)
            yield me
        finally:
            with suppress(BrokenPipeError):
                requests.close()  # the end of its input is the end of the server
            serving.join()


def name() -> str:
    """The agent name of the account that runs this program, whatever the environment says."""
    try:
        user = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # an account without a name, as in some containers
        user = str(os.geteuid())
    return f"{HUMAN}{user}"
