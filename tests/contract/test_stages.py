"""The five stages, from a client's request to its answer."""

import itertools
import json
import threading
from pathlib import Path

import pytest
from msgspec import Struct

from colibri.server import (
    ColibriToolConfig,
    ToolEnterEvent,
    ToolExitEvent,
    create_noop_audit_sink,
    register_colibri_tool,
)
from colibri.tools.tool import Lane
from tests.contract import PATIENCE, Linked, Recording, configured
from tests.contract.requirement import requirement
from tests.support.ledger_reader import reading

SECRET = "sk-never-repeat-this"


class Required(Struct):
    required: str


class Then(Struct):
    then: str = "return"


class Odd(BaseException):
    """What no `except Exception` catches."""


def act(args: Then) -> object:
    """Return or raise, as asked."""
    match args.then:
        case "raise":
            raise LookupError("the handler's own words")
        case "raise odd":
            raise Odd("not an Exception")
    return {"did": args.then}


def server_with_act(
    sink: Recording | None = None, mode: str = "FULL", lane: Lane = "write"
) -> Linked:
    server = Linked(audit_sink=sink, mode=mode)
    register_colibri_tool(server.ctx, "act", ColibriToolConfig(input_schema=Then, lane=lane), act)
    return server


def rows(database: Path) -> list[tuple[object, ...]]:
    """The actions of a ledger: phase, tool, outcome, code, in order."""
    query = "SELECT phase, tool, outcome FROM actions ORDER BY sequence_no, phase"
    with reading(database) as db:
        return list(db.execute(query))


# server_ping.


@requirement("000:T-12", "000:T-13", "000:7a:name", "000:7b:input", "000:7c:output")
def test_ping_answers_with_version_mode_and_uptime() -> None:
    """T-12, T-13; Specification 12.1."""
    with Linked(version="1.2.3", mode="TEST") as server:
        result = server.call("server_ping")
        schema = server.ctx.parts.admission.tools["server_ping"].listing["inputSchema"]
    envelope = result["structuredContent"]
    assert result["isError"] is False
    assert json.loads(result["content"][0]["text"]) == envelope
    assert envelope.keys() == {"ok", "data"}
    assert envelope["ok"] is True
    assert envelope["data"].keys() == {"version", "mode", "uptime_ms"}
    assert envelope["data"]["version"] == "1.2.3"
    assert envelope["data"]["mode"] == "TEST"
    assert type(envelope["data"]["uptime_ms"]) is int
    assert envelope["data"]["uptime_ms"] >= 0
    assert schema == {"type": "object", "properties": {}, "required": []}


@requirement("000:7d:handler", "000:T-13")
@pytest.mark.parametrize(("now", "uptime"), [(107.9, 7), (100.0, 0), (99.0, 0)])
def test_uptime_is_the_whole_milliseconds_since_boot(now: float, uptime: int) -> None:
    """Specification 12.1: rounded down, and never negative if the clock went back."""
    with Linked(now_ms=lambda: now, boot_start_ms=100.0) as server:
        assert server.data("server_ping")["uptime_ms"] == uptime


@requirement("000:7e:fast")
def test_ping_waits_for_no_other_lane() -> None:
    """Specification 3.2: it answers while both lanes are in the middle of a call."""
    server, release = Linked(), threading.Event()
    lanes: tuple[Lane, ...] = ("read", "write")
    for lane in lanes:
        config = ColibriToolConfig(input_schema=Then, lane=lane)
        register_colibri_tool(server.ctx, f"hold_{lane}", config, lambda _: release.wait(PATIENCE))
    with server:
        server.post("hold_read")
        server.post("hold_write")
        assert server.data("server_ping")["mode"] == "FULL"
        release.set()
        answers = [server.receive()["result"]["structuredContent"]["data"] for _ in range(2)]
    assert answers == [True, True]


# What a sink sees.


@requirement("000:T-14", "000:5a:correlation-id", "000:5a:timestamp", "000:5:sink")
def test_a_call_is_one_enter_and_one_exit() -> None:
    """T-14; Specification 17.1, 17.4: the clock at entry, and what has passed since."""
    sink, ticks = Recording(), itertools.count(1000.25, 1.5)
    with Linked(audit_sink=sink, now_ms=lambda: next(ticks), boot_start_ms=0.0) as server:
        server.call("server_ping")
    enter, end = sink.pair()
    assert enter.tool == end.tool == "server_ping"
    assert enter.correlation_id == end.correlation_id
    assert len(enter.correlation_id) == 36
    assert (enter.correlation_id[14], enter.correlation_id[19] in "89ab") == ("4", True)
    assert enter.timestamp >= 1000.25
    assert (enter.timestamp - 1000.25) % 1.5 == 0
    assert end.duration_ms > 0
    assert type(end.duration_ms) is int


@requirement("000:5a:correlation-id")
def test_every_call_has_its_own_correlation_id() -> None:
    """Specification 17.3: it is the join key."""
    sink = Recording()
    with server_with_act(sink) as server:
        for tool in ("act", "server_ping", "act"):
            server.call(tool)
    assert len(sink.events) == 6
    assert len({event.correlation_id for event in sink.events}) == 3


@requirement("000:T-15", "000:5a:args")
@pytest.mark.parametrize("lane", ["probe", "read", "write"])
def test_on_success_exit_has_the_handlers_value_and_no_error(lane: Lane) -> None:
    """T-15; Specification 17.5: the value, not the envelope."""
    sink = Recording()
    with server_with_act(sink, lane=lane) as server:
        server.call("act", {"then": "return", "unknown": 1})
    enter, end = sink.pair()
    assert enter.args == Then(then="return")
    assert end.result == {"did": "return"}
    assert end.error is None


@requirement("000:T-16", "000:4d:4")
@pytest.mark.parametrize("lane", ["probe", "read", "write"])
def test_when_the_handler_raises_exit_has_what_it_raised(lane: Lane) -> None:
    """T-16; Specification 4.14, 17.5: the client gets the message and no stack."""
    sink = Recording()
    with server_with_act(sink, lane=lane) as server:
        result = server.call("act", {"then": "raise"})
    error = sink.pair()[1].error
    assert isinstance(error, LookupError)
    assert error.args == ("the handler's own words",)
    assert sink.pair()[1].result is None
    assert result["isError"] is True
    assert result["structuredContent"] == {
        "ok": False,
        "error": {"code": "HANDLER_ERROR", "message": "the handler's own words"},
    }
    assert any("act failed: Traceback" in line for line in server.logged)


@requirement("000:4d:4")
def test_in_test_mode_a_failure_shows_its_stack() -> None:
    """Specification 4.14: in TEST only."""
    with server_with_act(mode="TEST") as server:
        error = server.call("act", {"then": "raise"})["structuredContent"]["error"]
    assert "in act" in error["details"]["stack"]


@requirement("000:5a:error")
def test_a_base_exception_that_is_raised_is_wrapped_in_an_exception() -> None:
    """Specification 17.5: a sink can treat error as an Exception."""
    sink = Recording()
    with server_with_act(sink) as server:
        result = server.call("act", {"then": "raise odd"})
    error = sink.pair()[1].error
    assert isinstance(error, Exception)
    assert str(error) == "Odd: not an Exception"
    assert result["structuredContent"]["error"]["code"] == "HANDLER_ERROR"


@requirement("000:T-17")
def test_two_pings_at_once_are_two_pairs_one_after_the_other() -> None:
    """T-17; Specification 17.1."""
    sink = Recording()
    with Linked(audit_sink=sink) as server:
        server.post("server_ping")
        server.post("server_ping")
        server.receive()
        server.receive()
    assert sink.kinds == ["enter", "exit", "enter", "exit"]
    ids = [event.correlation_id for event in sink.events]
    assert (ids[0], ids[2]) == (ids[1], ids[3])


@requirement("000:T-17")
@pytest.mark.parametrize("lane", ["read", "write"])
def test_a_tool_never_overlaps_itself(lane: Lane) -> None:
    """T-17; Specification 3.1: while the first call runs, the second has not entered."""
    sink, running, release = Recording(), threading.Event(), threading.Event()

    def hold(_args: Then) -> bool:
        running.set()
        return release.wait(PATIENCE)

    server = Linked(audit_sink=sink)
    config = ColibriToolConfig(input_schema=Then, lane=lane)
    register_colibri_tool(server.ctx, "hold", config, hold)
    with server:
        server.post("hold")
        server.post("hold")
        assert running.wait(PATIENCE)
        server.post("server_ping")  # its answer shows that the line before it was read
        assert server.receive()["id"] == 3
        held = [event.tool for event in sink.events if event.tool == "hold"]
        release.set()
        answers = [server.receive()["id"] for _ in range(2)]
    assert held == ["hold"]
    assert answers == [1, 2]
    assert [e for e, s in zip(sink.kinds, sink.events, strict=True) if s.tool == "hold"] == [
        "enter",
        "exit",
        "enter",
        "exit",
    ]


@requirement("000:T-17")
def test_calls_that_wait_together_reach_a_sink_one_after_the_other(project: Path) -> None:
    """T-17; Specification 3.5, 17.1: also where the ledger takes them in one round."""
    sink, release = Recording(), threading.Event()
    server = Linked(audit_sink=sink, config=configured(project))
    for name, handler in (("act", act), ("hold", lambda _: release.wait(PATIENCE))):
        register_colibri_tool(server.ctx, name, ColibriToolConfig(input_schema=Then), handler)
    with server:
        for name in ("hold", "act", "act", "server_ping"):
            server.post(name)
        assert server.receive()["id"] == 4  # the three before it have been read
        release.set()
        assert [server.receive()["id"] for _ in range(3)] == [1, 2, 3]
    told = [(event.tool, event.correlation_id) for event in sink.events if event.tool == "act"]
    assert len(told) == 4
    assert (told[0], told[2]) == (told[1], told[3])


# What each stage does when it fails.


@requirement("000:4d:1")
def test_a_lane_is_free_again_after_a_call_that_raised() -> None:
    """Specification 3.1, 3.7: the lock cannot fail and is always released."""
    with server_with_act() as server:
        assert server.call("act", {"then": "raise"})["isError"] is True
        assert server.call("act", {"then": "raise odd"})["isError"] is True
        assert server.data("act") == {"did": "return"}


@requirement("000:T-18", "000:4d:2")
@pytest.mark.parametrize("lane", ["read", "write"])
def test_arguments_that_do_not_fit_are_refused_and_audited(lane: Lane) -> None:
    """T-18; Specification 4.4, 4.11, 17.4: by digest, never by value."""
    sink, ran = Recording(), threading.Event()
    server = Linked(audit_sink=sink)
    config = ColibriToolConfig(input_schema=Required, lane=lane)
    register_colibri_tool(server.ctx, "strict", config, lambda _: ran.set())
    with server:
        missing = server.call("strict", {})
        wrong = server.call("strict", {"required": [SECRET]})
    for result in (missing, wrong):
        error = result["structuredContent"]["error"]
        assert result["isError"] is True
        assert result["structuredContent"]["ok"] is False
        assert error["code"] == "INVALID_PARAMS"
        assert error["message"].startswith("schema validation failed")
        assert [issue["path"] for issue in error["details"]["issues"]] == ["required"]
    assert not ran.is_set()
    assert sink.kinds == ["enter", "exit"] * 2
    enter, end = sink.events[2:]
    assert isinstance(enter, ToolEnterEvent)
    assert isinstance(enter.args, dict)
    assert enter.args.keys() == {"size", "sha256"}
    assert isinstance(end, ToolExitEvent)
    assert end.error is not None
    assert end.result is None
    assert SECRET not in repr((wrong, sink.events, server.logged))


@requirement("000:4d:3")
@pytest.mark.parametrize("lane", ["probe", "read", "write"])
def test_a_sink_that_refuses_to_enter_stops_the_call(lane: Lane) -> None:
    """Specification 17.6: no handler, exit records the sink's error."""
    problem = OSError("the trail is full")
    sink, ran = Recording(fail_enter=problem), threading.Event()
    server = Linked(audit_sink=sink)
    config = ColibriToolConfig(input_schema=Then, lane=lane)
    register_colibri_tool(server.ctx, "never", config, lambda _: ran.set())
    with server:
        result = server.call("never")
    error = result["structuredContent"]["error"]
    assert result["isError"] is True
    assert error["code"] == "AUDIT_ENTER_FAILED"
    assert "the trail is full" in error["message"]
    assert not ran.is_set()
    assert sink.pair()[1].error is problem
    assert sink.pair()[1].result is None


@requirement("000:4d:3")
def test_a_call_that_a_sink_stopped_has_both_its_records_in_the_ledger(project: Path) -> None:
    """Specification 17.6: the ledger gets its exit record."""
    config = configured(project)
    server = Linked(audit_sink=Recording(fail_enter=OSError("no")), config=config)
    register_colibri_tool(server.ctx, "act", ColibriToolConfig(input_schema=Then), act)
    with server:
        assert server.call("act")["structuredContent"]["error"]["code"] == "AUDIT_ENTER_FAILED"
    assert rows(project / "data" / "colibri.db") == [
        ("enter", "act", "running"),
        ("exit", "act", "error"),
    ]


@requirement("000:4d:5")
@pytest.mark.parametrize("lane", ["probe", "read", "write"])
def test_a_sink_that_fails_on_exit_changes_no_answer(lane: Lane) -> None:
    """Specification 17.7: it is logged; success stays success, an error the same error."""
    with server_with_act(Recording(fail_exit=OSError("lost")), lane=lane) as server:
        good = server.call("act")
        bad = server.call("act", {"then": "raise"})
    assert good["structuredContent"] == {"ok": True, "data": {"did": "return"}}
    assert bad["structuredContent"]["error"]["message"] == "the handler's own words"
    line = "[colibri] audit-exit sink failed: lost"
    assert [text for text in server.logged if "sink" in text] == [line, line]


@requirement("000:4d:codes")
def test_only_an_unknown_tool_is_a_protocol_error() -> None:
    """Specification 2.17, 4.7: other failures are results with isError."""
    with server_with_act() as server:
        failed = server.call("act", {"then": "raise"})
        server.post("no_such_tool")
        unknown = server.receive()
    assert failed["isError"] is True
    assert unknown["error"]["code"] == -32602
    assert "no_such_tool" in unknown["error"]["message"]
    assert "result" not in unknown


# The events themselves.


@requirement("000:5:enter-event", "000:5:exit-event")
@pytest.mark.parametrize(
    ("event", "fields"),
    [
        (ToolEnterEvent, {"tool", "args", "timestamp", "correlation_id"}),
        (ToolExitEvent, {"tool", "correlation_id", "duration_ms", "result", "error"}),
    ],
)
def test_an_event_has_exactly_its_fields_and_is_frozen(event: type, fields: set[str]) -> None:
    """Specification 17.2: frozen when it is made."""
    made = event(**dict.fromkeys(fields))
    assert set(event.__slots__) == fields  # type: ignore[attr-defined]
    for name in fields:
        with pytest.raises(AttributeError, match="frozen"):
            setattr(made, name, "changed")
    with pytest.raises(AttributeError, match="frozen"):
        made.more = 1
    with pytest.raises(TypeError, match="unknown"):
        event(**dict.fromkeys(fields | {"more"}))


@requirement("000:5b:noop")
def test_the_noop_sink_does_nothing_and_cannot_be_changed() -> None:
    """Specification 17.8."""
    sink = create_noop_audit_sink()
    event = ToolEnterEvent(tool="t", args={}, timestamp=0.0, correlation_id="")
    sink.enter(event)
    sink.exit(ToolExitEvent(tool="t", correlation_id="", duration_ms=0, result=None, error=None))
    with pytest.raises(AttributeError):
        sink.enter = print  # type: ignore[method-assign, assignment]
