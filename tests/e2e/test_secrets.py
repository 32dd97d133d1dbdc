"""Planted secrets, through every tool and every refusal: none of them is left anywhere.

That covers the server's answers, its stderr, and the raw bytes of each file of the database, while
the server runs and after its end.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import COLIBRI, JSON, Server
from tests.support.ledger_reader import booted, calls, error, verified
from tests.support.made_up_secrets import CORPUS, GITHUB

TEXTS = {name: text for name, (text, _, _) in CORPUS.items()}
LINES = {name: text for name, text in TEXTS.items() if "\n" not in text and len(text) <= 128}
SECRETS = {name: secret for name, (_, secret, _) in CORPUS.items()}
# Each line of a text with several lines counts.
PIECES = {
    f"{name}, line {number}": line.encode()
    for name, secret in SECRETS.items()
    for number, line in enumerate(secret.split("\n"))
    if len(line) >= 8 and not line.startswith("-----")
}
PROSE = "\n".join(TEXTS.values())
REDACTED = "[redacted:github-token]"
HOME_PROGRAM = """
import sys
from msgspec import Struct
from colibri.config import load
from colibri.server import ColibriToolConfig, create_server, register_colibri_tool
from colibri.server.context import register_catalogue
from colibri.server.transport import Stream, claim_stdout

class Anything(Struct):
    what: str

def fail(args):
    raise {"exit": SystemExit, "key": KeyError}.get(args.what, RuntimeError)(sys.argv[1])

ctx = create_server(config=load(), transport=Stream(0, claim_stdout()))
register_catalogue(ctx)
register_colibri_tool(ctx, "fail", ColibriToolConfig(input_schema=Anything), fail)
ctx.start()
sys.exit(ctx.run())
"""


class Watched(Server):
    """A server that keeps every answer."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.heard: list[bytes] = []
        super().__init__(*args, **options)

    def receive(self, timeout: float = 30.0) -> JSON | None:
        message = super().receive(timeout)
        self.heard.append(json.dumps(message, ensure_ascii=False).encode())
        return message

    def everything(self) -> dict[str, bytes]:
        """Everything that this server left behind, by place."""
        files = [path for path in (self.project / "data").glob("*") if path.is_file()]
        found = {path.name: path.read_bytes() for path in files}
        return {**found, "stderr": self.stderr.encode(), "answers": b"\n".join(self.heard)}

    def left(self, pieces: dict[str, bytes]) -> list[tuple[str, str]]:
        where = self.everything()
        return [(name, at) for at, data in where.items() for name, p in pieces.items() if p in data]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Watched]:
    with Watched(tmp_path, COLIBRI) as running:
        yield running


def tell_everything(server: Watched) -> None:
    """Every text of every tool, with every secret that fits into it."""
    session = server.data("audit_session_start", intent="go on")["session_id"]
    for text in TEXTS.values():
        server.data("audit_session_start", intent=text)
        server.data("task_create", title="do it", description=text)
    for text in LINES.values():
        names = {"project": text, "assignee": text}
        server.data("task_create", title=text, **names)
        server.data("task_list", search=text, **names)
        server.data("task_next_actions", **names)
        thought = {"session_id": session, "type": "plan", "content": PROSE}
        server.data("thought_record", **thought, agent_id=text)
    server.data(
        "task_update", task_id="T-0001", title=TEXTS["JWT"], description=TEXTS["private key"]
    )
    for tool in ("task_list", "task_next_actions", "thought_record_list"):
        server.data(tool)
    server.data("task_get", task_id="T-0001")
    server.data("merkle_finalize", session_id=session)


def test_no_text_of_a_tool_carries_a_secret_into_the_ledger(server: Watched) -> None:
    """Specification 4.5: everything after stage 2 sees only [redacted:KIND]."""
    tell_everything(server)
    assert server.left(PIECES) == []
    assert server.close() == 0
    assert server.left(PIECES) == []
    verified(server.database)


def test_a_secret_without_a_shape_is_found_by_this_test(server: Watched) -> None:
    """Negative control: shows where a thought's text is stored and would be found."""
    words = "correct horse battery staple"
    session = server.data("audit_session_start", intent="go on")["session_id"]
    server.data("thought_record", session_id=session, type="plan", content=words)
    server.request("tools/call", {"name": words})
    found = server.left({"words": words.encode()})
    assert {at for _, at in found} == {"answers", "colibri.db-wal"}
    assert server.close() == 0
    found = server.left({"words": words.encode()})
    assert {at for _, at in found} == {"answers", "colibri.db"}


def refused(server: Watched) -> Iterator[tuple[str, JSON]]:
    """Calls with a secret where it does not fit: each field of each tool, in several ways."""
    for tool in server.request("tools/list")["result"]["tools"]:
        for field in (*tool["inputSchema"]["properties"], GITHUB, f"x {LINES['URL']}"):
            for value in (GITHUB, [GITHUB], {GITHUB: GITHUB}, {"a": {GITHUB: [GITHUB]}}, 1.5):
                yield tool["name"], {field: value}
            yield tool["name"], {field: GITHUB + "\x00", "more": GITHUB}
            yield tool["name"], {field: PROSE * 30}


def test_no_refusal_repeats_a_secret(server: Watched) -> None:
    """Issues name paths, never values; even an unknown key may be a secret."""
    count = 0
    for tool, arguments in refused(server):
        result = server.call(tool, **arguments)
        count += result["isError"]
    for value in (GITHUB, [GITHUB], 7):
        server.request("tools/call", {"name": "task_create", "arguments": value})
    for name in (GITHUB, f"x {GITHUB}", GITHUB + "y" * 300, f"{'z' * 100} {GITHUB}", PROSE):
        answer = server.request("tools/call", {"name": name, "arguments": {"a": GITHUB}})
        assert answer["error"]["code"] == -32602
    server.request(GITHUB)
    server.request("tools/call", {"name": [GITHUB]})
    for line in (b'{"jsonrpc": "%b', b'{"id": 1e999, "x": "%b"}', b'{"%b": 1, "%b": 1}'):
        server.send(line.replace(b"%b", GITHUB.encode()) + b"\n")
        assert (server.receive() or {})["error"]["code"] == -32700
    assert count > 200
    assert server.left(PIECES) == []
    assert server.close() == 0
    assert server.left(PIECES) == []
    assert len(calls(server.database, REDACTED)) == 2


def test_the_answer_says_what_was_redacted_and_where(server: Watched) -> None:
    """Specification 4.5: _meta has colibri/redacted: [{path, kind}], next to the receipt."""
    result = server.call("task_create", title=f"use {GITHUB}", project_id=LINES["URL"])
    assert result["_meta"]["colibri/redacted"] == [
        {"path": "title", "kind": "github-token"},
        {"path": "project_id", "kind": "url-password"},
    ]
    assert result["_meta"]["colibri/receipt"]["seq"] > 0
    task = result["structuredContent"]["data"]
    assert task["title"] == f"use {REDACTED}"
    assert task["project"] == "postgres://ada:[redacted:url-password]@db.example/x"
    assert "colibri/redacted" not in server.call("task_get", task_id="T-0001")["_meta"]
    found = server.call("task_list", search=GITHUB)
    assert found["structuredContent"]["data"]["total_count"] == 1
    assert found["_meta"]["colibri/redacted"] == [{"path": "search", "kind": "github-token"}]


def test_an_id_that_is_a_secret_is_refused(server: Watched) -> None:
    """A redacted id would not be an id: the call is refused, and nothing repeats it."""
    result = server.call("audit_session_start", intent="x", session_id=GITHUB)
    problem = error(result)
    assert problem["code"] == "INVALID_PARAMS"
    assert problem["details"]["issues"][0]["path"] == "session_id"
    assert problem["details"]["issues"][0]["problem"].startswith("holds a secret, and with that")
    assert result["_meta"]["colibri/redacted"] == [{"path": "session_id", "kind": "github-token"}]
    assert server.close() == 0
    (call,) = calls(server.database, "audit_session_start")
    assert (call.arguments, call.outcome, call.code) == (None, "invalid", "INVALID_PARAMS")


def test_a_text_that_grows_too_long_when_it_is_redacted_is_refused(server: Watched) -> None:
    """Stored text keeps the limits of its field, but a replacement can make a title longer."""
    url = " http://u:p@h"
    fits = server.data("task_create", title="x" * (256 - len(url) - 30) + url)
    assert fits["title"].endswith("http://u:[redacted:url-password]@h")
    result = server.call("task_create", title="x" * (256 - len(url)) + url)
    issue = error(result)["details"]["issues"][0]
    assert issue["path"] == "title"
    assert "holds a secret" in issue["problem"] and "256" in issue["problem"]
    assert server.left({"the rest": b"x" * 243}) == []


def test_the_trail_on_stderr_has_no_secrets_either(tmp_path: Path) -> None:
    """Specification 10.3: READONLY audits its calls as JSON lines on stderr."""
    with Server(tmp_path, COLIBRI) as first:
        booted(first)
        assert first.close() == 0
    with Watched(tmp_path, COLIBRI, COLIBRI_MODE="READONLY") as server:
        for text in LINES.values():
            server.data("task_list", search=text)
            server.call("task_get", task_id=text)
        assert server.close() == 0
        assert server.left(PIECES) == []
        assert REDACTED in server.stderr


@pytest.mark.parametrize("mode", ["FULL", "TEST"])
def test_a_handlers_exception_is_scrubbed_before_it_is_logged_or_sent(
    tmp_path: Path, mode: str
) -> None:
    """In the answer, in the log, and in the stack that TEST adds: no secret, no home directory."""
    home = tmp_path / "home" / "ada"
    home.mkdir(parents=True)
    raised = f"cannot read {home}/x and {home} with {GITHUB}, but {home}2"
    said = f"cannot read ~/x and ~ with {REDACTED}, but {home}2"
    program = (sys.executable, "-c", HOME_PROGRAM, raised)
    with Watched(tmp_path, program, COLIBRI_MODE=mode, HOME=str(home)) as server:
        for what in ("error", "key", "exit"):
            problem = error(server.call("fail", what=what))
            assert said in problem["message"]
            assert said in problem.get("details", {}).get("stack", said)
            assert ("details" in problem) == (mode == "TEST")
        assert server.stderr.count(said) == 3
        assert server.close() == 0
        assert server.left({"the secret": GITHUB.encode(), "home": f"{home}/".encode()}) == []


def test_a_database_that_cannot_be_opened_is_named_from_home(tmp_path: Path) -> None:
    """UNAVAILABLE says what to do, without the user's name."""
    home = tmp_path / "ada"
    (home / "project" / "data" / "colibri.db").mkdir(parents=True)
    with Watched(home / "project", COLIBRI, HOME=str(home)) as server:
        problem = error(server.call("task_list"))
        assert problem["code"] == "UNAVAILABLE"
        assert "~/project/data/colibri.db is a directory" in problem["message"]
        assert server.close() == 75
        assert "~/project/data/colibri.db is a directory" in server.stderr
        assert server.left({"home": str(home).encode()}) == []
