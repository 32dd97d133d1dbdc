"""The surface, through the real process: tools and modes."""

import json
import os
import re
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec import Struct

import colibri
from colibri.server import ColibriToolConfig, create_server, register_colibri_tool
from colibri.tools import schema
from colibri.tools.catalogue import CATALOGUE
from colibri.tools.tool import Tool, is_struct
from tests.contract import JSON, Linked, Recording, configured
from tests.contract.requirement import requirement
from tests.support import engines
from tests.support.client import COLIBRI, TOOLBOX, Server, environment, execute
from tests.support.ledger_reader import reading

SOURCE = Path(colibri.__file__).parent
PROBES = ["server_ping", "server_health"]
SURFACE = {
    "task_create", "task_get", "task_update", "task_list", "task_next_actions",
    "thought_record", "thought_record_list", "audit_verify_chain",
    "audit_session_start", "merkle_finalize", "merkle_root",
    "skill_list",
    "server_ping", "server_health",
}  # fmt: skip
READONLY = {
    "task_list", "task_get", "skill_list", "server_health", "server_ping", "thought_record_list",
}  # fmt: skip


class Nothing(Struct):
    pass


def names(server: Server) -> list[str]:
    """The tools that a client is offered."""
    return [tool["name"] for tool in server.request("tools/list")["result"]["tools"]]


def query(database: Path, sql: str) -> list[tuple[object, ...]]:
    with reading(database) as db:
        return list(db.execute(sql))


def untouched(server: Server) -> object:
    """What stays as it was where nothing was written: the records, and the bytes of a file."""
    rows = query(server.database, "SELECT seq, leaf FROM ledger ORDER BY seq")
    return rows, server.database.read_bytes() if engines.chosen() == "sqlite" else None


def trail(server: Server) -> list[JSON]:
    """The audit lines on stderr."""
    return [json.loads(line) for line in server.stderr.splitlines() if line.startswith("{")]


# The surface.


@requirement("001:8:14-tools", "001:8:closed-surface")
def test_the_catalogue_has_the_tools_of_the_surface_and_no_other() -> None:
    """Specification 5.1: 14 tools in five domains, and the surface is closed."""
    listed = [tool.name for tool in CATALOGUE]
    assert len(listed) == 14
    assert set(listed) == SURFACE


@requirement("001:8:schemas")
@pytest.mark.parametrize("tool", CATALOGUE, ids=lambda tool: tool.name)
def test_every_tool_has_its_schemas_in_its_own_domain(tool: Tool) -> None:
    """Specification 5.2: next to its handler."""
    for struct in (tool.input, tool.output):
        assert is_struct(struct)
        assert struct is not None
        assert struct.__module__.startswith("colibri.tools.")


@requirement("001:8:listing", "001:8:14-listed")
def test_tools_list_shows_schemas_derived_from_the_structs(tmp_path: Path) -> None:
    """Specification 5.2, 5.3: what a client sees is what the structs say."""
    with Server(tmp_path, COLIBRI) as server:
        tools = server.request("tools/list")["result"]["tools"]
    assert len(tools) == 14
    assert tools == [schema.listing(tool) for tool in CATALOGUE]
    for tool in tools:
        assert tool["description"]
        assert tool["inputSchema"]["type"] == tool["outputSchema"]["type"] == "object"


@requirement("001:8:listing")
def test_the_tools_that_open_the_work_ask_to_be_loaded_at_once(tmp_path: Path) -> None:
    """Specification 5.4: hosts that hide tools behind a search would hide these too."""
    with Server(tmp_path, COLIBRI) as server:
        tools = server.request("tools/list")["result"]["tools"]
    opening = {"audit_session_start", "task_next_actions", "task_update", "thought_record"}
    assert {tool["name"] for tool in tools if "_meta" in tool} == opening
    for tool in tools:
        assert tool.get("_meta", {}) == (
            {"anthropic/alwaysLoad": True} if tool["name"] in opening else {}
        )


@requirement("001:8:five-stages")
def test_a_call_passes_the_five_stages_in_order(project: Path) -> None:
    """Specification 4.1, 4.2: enter is committed before the handler runs, exit after it."""
    database, sink = project / "data" / "colibri.db", Recording()
    during: list[object] = []

    def handler(_args: Nothing) -> str:
        during.append(query(database, "SELECT phase, outcome FROM actions"))
        during.append(list(sink.kinds))
        return "done"

    server = Linked(audit_sink=sink, config=configured(project))
    register_colibri_tool(server.ctx, "look", ColibriToolConfig(input_schema=Nothing), handler)
    with server:
        assert server.call("look", [])["structuredContent"]["error"]["code"] == "INVALID_PARAMS"
        refused = list(during)
        receipt = server.call("look")["_meta"]["colibri/receipt"]
        stages = server.data("server_health")["stages"]
    assert refused == []  # 2 comes before 4
    assert during[0] == [("enter", "running"), ("exit", "invalid"), ("enter", "running")]  # 3
    assert during[1] == ["enter", "exit", "enter"]
    assert receipt["seq"] == 4  # 5, before the answer
    assert stages == ["lane", "validate", "enter", "dispatch", "exit"]


@requirement("001:8:two-records", "001:8:end-to-end-system")
def test_every_call_is_an_enter_and_an_exit_row_with_one_sequence_no(project: Path) -> None:
    """Specification 4.4, 9.7: the good ones, the rejected and the unknown."""
    with Server(project, COLIBRI) as server:
        for name in PROBES:
            assert server.call(name)["structuredContent"]["ok"] is True
        params = {"name": "server_ping", "arguments": "no object"}
        rejected = server.request("tools/call", params)["result"]
        unknown = server.request("tools/call", {"name": "task_destroy"})["error"]
        assert server.close() == 0
    assert rejected["structuredContent"]["error"]["code"] == "INVALID_PARAMS"
    assert unknown["code"] == -32602
    columns = "sequence_no, phase, tool, correlation_id, outcome, result_hash, duration_ms"
    rows = query(server.database, f"SELECT {columns} FROM actions ORDER BY sequence_no, phase")
    assert [row[1] for row in rows] == ["enter", "exit"] * 4
    for enter, end in zip(rows[::2], rows[1::2], strict=True):
        assert (enter[0], enter[2], enter[3]) == (end[0], end[2], end[3])
        assert enter[4:] == ("running", None, None)
    assert [(row[2], row[4]) for row in rows[1::2]] == [
        ("server_ping", "ok"),
        ("server_health", "ok"),
        ("server_ping", "invalid"),
        ("task_destroy", "invalid"),
    ]
    numbers = [row[0] for row in rows[::2]]
    assert all(isinstance(a, int) and isinstance(b, int) and a < b for a, b in pairwise(numbers))
    assert len({row[3] for row in rows}) == 4


# Domain -> its tools in the order of a session, with arguments; <x> is x of an earlier answer.
SESSION: dict[str, list[tuple[str, JSON]]] = {
    "η": [("audit_session_start", {"intent": "mend"})],
    "β": [
        ("task_create", {"title": "mend the roof"}),
        ("task_update", {"task_id": "<task_id>", "status": "GATHER"}),
        ("task_get", {"task_id": "<task_id>"}),
        ("task_list", {"status": "GATHER"}),
        ("task_next_actions", {}),
    ],
    "ζ": [
        ("thought_record", {"session_id": "<session_id>", "type": "plan", "content": "so"}),
        ("thought_record_list", {"session_id": "<session_id>"}),
        ("audit_verify_chain", {}),
    ],
    "η, the seal": [
        ("merkle_finalize", {"session_id": "<session_id>"}),
        ("merkle_root", {"session_id": "<session_id>"}),
    ],
    "ε": [("skill_list", {"search": "colibri"})],
}


@requirement("001:8:end-to-end")
def test_every_tool_of_every_domain_answers_and_rejects_what_does_not_fit(project: Path) -> None:
    """Specification 4.10, 4.11, 5.1: end to end, rejected arguments included."""
    known: JSON = {}
    with Server(project, COLIBRI) as server:
        for tool, arguments in (call for calls in SESSION.values() for call in calls):
            filled = {key: known.get(str(value)[1:-1], value) for key, value in arguments.items()}
            known |= server.data(tool, **filled)
            rejected = server.call(tool, **filled, colour="red")["structuredContent"]
            assert (rejected["ok"], rejected["error"]["code"]) == (False, "INVALID_PARAMS")
    called = {tool for calls in SESSION.values() for tool, _ in calls}
    assert called == SURFACE - set(PROBES)


@requirement("001:8:no-ams")
def test_nothing_depends_on_an_ams_variable_or_on_javascript(tmp_path: Path) -> None:
    """Specification 14.4, 18.2: such a variable is refused."""
    mentions = {
        path.name
        for path in SOURCE.rglob("*")
        if path.suffix != ".pyc" and path.is_file() and b"AMS_" in path.read_bytes()
    }
    assert mentions == {"config.py"}
    assert list(SOURCE.rglob("*.js")) == []
    done = execute(COLIBRI, cwd=tmp_path, env=environment(AMS_MODE="FULL"))
    assert done.returncode == 73
    assert done.stderr.startswith("[colibri] fatal: AMS_MODE ")


# The modes.


@requirement(
    "002:mode:FULL",
    "002:mode:TEST",
    "002:mode:READONLY",
    "002:mode:READONLY-six",
    "002:mode:MINIMAL",
)
@pytest.mark.parametrize(
    ("mode", "admits"),
    [("FULL", SURFACE), ("TEST", SURFACE), ("READONLY", READONLY), ("MINIMAL", set(PROBES))],
)
def test_a_mode_admits_its_row_of_the_table(project: Path, mode: str, admits: set[str]) -> None:
    """Specification 10.1: the tools of the row, in the catalogue's order."""
    with Server(project, COLIBRI, COLIBRI_MODE=mode) as server:
        offered = names(server)
        data = server.data("server_health")
    assert set(offered) == admits
    assert offered == [tool.name for tool in CATALOGUE if tool.name in admits]
    assert data["mode"] == mode
    assert data["tools"] == {"count": len(offered), "names": offered}


@requirement("002:mode:FULL", "002:mode:TEST", "002:mode:READONLY", "002:mode:MINIMAL")
@pytest.mark.parametrize(
    ("mode", "lanes"),
    [
        ("FULL", {"probe", "read", "write"}),
        ("TEST", {"probe", "read", "write"}),
        ("READONLY", {"probe", "read"}),
        ("MINIMAL", {"probe"}),
    ],
)
def test_a_tool_that_is_not_admitted_is_neither_listed_nor_callable(
    project: Path, mode: str, lanes: set[str]
) -> None:
    """Specification 2.17, 10.2: with tools of every lane; -32602 names the tool."""
    lane_of = {"crash": "probe", "nap_read": "read", "nap_write": "write", "note": "write"}
    with Server(project, TOOLBOX) as server:
        server.call("note", n=1)  # there is a database to read
        assert server.close() == 0
    with Server(project, TOOLBOX, COLIBRI_MODE=mode) as server:
        offered = names(server)
        answers = {
            name: server.request("tools/call", {"name": name, "arguments": {"n": 1}})
            for name, lane in lane_of.items()
            if lane != "probe"
        }
    for name, lane in lane_of.items():
        assert (name in offered) == (lane in lanes), name
    for name, answer in answers.items():
        if lane_of[name] in lanes:
            assert answer["result"]["isError"] is False
        else:
            assert answer["error"]["code"] == -32602
            assert f"the tool {name} is not available in mode {mode}" in answer["error"]["message"]


@requirement("002:mode:READONLY", "002:mode:MINIMAL")
@pytest.mark.parametrize("mode", ["READONLY", "MINIMAL"])
def test_a_mode_that_does_not_write_audits_on_stderr(project: Path, mode: str) -> None:
    """Specification 10.3: enter and exit of each call, as JSON lines; the ledger stays."""
    with Server(project, TOOLBOX) as server:
        server.call("note", n=1)
        assert server.close() == 0
    before = untouched(server)
    with Server(project, TOOLBOX, COLIBRI_MODE=mode) as server:
        server.data("server_ping")
        server.request("tools/call", {"name": "note", "arguments": {"n": 2}})
        assert server.close() == 0
        lines = trail(server)
    assert [(line["audit"], line["tool"]) for line in lines] == [
        ("enter", "server_ping"),
        ("exit", "server_ping"),
        ("enter", "note"),
        ("exit", "note"),
    ]
    for enter, end in zip(lines[::2], lines[1::2], strict=True):
        assert enter["call"] == end["call"]
    assert lines[0]["arguments"] == {}
    assert (lines[1]["outcome"], lines[3]["outcome"]) == ("ok", "invalid")
    assert re.fullmatch(r"[0-9a-f]{64}", lines[1]["result_sha256"])
    assert untouched(server) == before


@requirement("002:mode:MINIMAL")
def test_minimal_opens_no_database_and_stays_in_phase1(project: Path) -> None:
    """Specification 10.5."""
    with Server(project, COLIBRI, COLIBRI_MODE="MINIMAL") as server:
        data = server.data("server_health")
        assert server.close() == 0
    assert (data["phase"], data["db"]["status"]) == ("phase1", "not opened in MINIMAL")
    assert not (project / "data").exists()


@requirement("002:mode:READONLY")
def test_readonly_creates_nothing(tmp_path: Path) -> None:
    """Specification 10.4, 11.5: without a database the probes answer and say so.

    Of a file alone: on PostgreSQL no server makes the schema, whatever its mode.
    """
    with Server(tmp_path, TOOLBOX, COLIBRI_MODE="READONLY") as server:
        refused = server.call("nap_read")["structuredContent"]["error"]
        status = server.data("server_health")["db"]["status"]
        assert server.close() == 75
    assert refused["code"] == "UNAVAILABLE"
    assert "there is no database at" in status
    assert not (tmp_path / "data").exists()


@requirement("002:mode:TEST")
def test_test_mode_repeats_itself(project: Path) -> None:
    """Specification 10.6: a deterministic seed, its own database, and no two ids alike."""

    def run(folder: str, seed: str) -> list[tuple[object, ...]]:
        place = project / folder
        place.mkdir(exist_ok=True)
        with Server(place, TOOLBOX, COLIBRI_MODE="TEST", COLIBRI_SEED=seed) as server:
            for n in range(3):
                server.call("note", n=n)
            assert server.close() == 0
        database = place / "data" / "colibri-test.db"
        return query(database, "SELECT call, nonce FROM ledger ORDER BY seq")

    first, again, other = run("a", "1"), run("b", "1"), run("c", "2")
    assert first == again
    assert {row[0] for row in first}.isdisjoint(row[0] for row in other)
    longer = run("a", "1")
    assert len({row[0] for row in longer}) == 6
    assert len({row[1] for row in longer}) == len(longer) == 12


@requirement("002:mode:frozen")
def test_the_mode_does_not_change_in_a_running_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Specification 10.7: restart the server for another mode."""
    for name in list(os.environ):
        if name.startswith(("COLIBRI_", "AMS_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("COLIBRI_MODE", "MINIMAL")
    with Linked(mode=None) as server:
        monkeypatch.setenv("COLIBRI_MODE", "FULL")
        assert server.data("server_ping")["mode"] == "MINIMAL"
    assert create_server().get_mode() == "FULL"
