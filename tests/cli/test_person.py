"""People at work: add, edit, claim, release, note, move, seal; each is a call of the server."""

import json
import os
import pwd
import re
import threading
from argparse import Namespace
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from colibri import VERSION
from colibri.cli import person, refusals
from colibri.cli.complaint import Complaint
from colibri.cli.show import times
from colibri.core.errors import ResourceError
from colibri.server import clock
from tests.cli.test_report import evidence
from tests.support import engines, ledger_reader
from tests.support.client import COLIBRI, Server
from tests.support.ledger_reader import holding
from tests.support.sample_project import Printed
from tests.vectors.builder import bundle_from

ME = f"human:{pwd.getpwuid(os.geteuid()).pw_name}"
Typed = Callable[..., Any]


@pytest.fixture
def typed(tmp_path: Path, colibri: Printed) -> Typed:
    """What a command prints with --json; it must end with 0."""

    def run(*arguments: str) -> Any:
        code, out, err = colibri(tmp_path, *arguments, "--json")
        assert (code, err) == (0, ""), (arguments, out, err)
        return json.loads(out)

    return run


def records(project: Path) -> list[dict[str, Any]]:
    return ledger_reader.records(project / "data" / "colibri.db")


def test_a_day_with_the_terminal_alone(tmp_path: Path, colibri: Printed, typed: Typed) -> None:
    """Plan, claim, note, move, close, seal, report: all in one session of one person, verified."""
    typed("add", "lay the floor", "--priority", "high", "--assignee", "ada")
    typed("add", "paint it", "--depends-on", "T-0001")
    claimed = typed("claim")
    assert (claimed["task_id"], claimed["status"]) == ("T-0001", "INIT")
    typed("note", "oak lasts longest", "--task", "T-0001", "--type", "decision")
    moved = typed("move", "T-0001", "gather", "ANALYZE", "PLAN", "APPLY", "--why", "oak it is")
    assert (moved["status"], moved["holder"]) == ("APPLY", claimed["holder"])
    done = typed("move", "T-0001", "VERIFY", "DONE", "--why", "it holds three people")
    assert (done["status"], done["holder"]) == ("DONE", None)
    edited = typed("edit", "T-0002", "--title", "paint it white", "--clear", "depends_on")
    assert (edited["title"], edited["depends_on"]) == ("paint it white", [])
    sealed = typed("seal")
    assert sealed["session_id"] == claimed["holder"]
    assert re.fullmatch(r"[0-9]+:[0-9a-f]{64}", sealed["head"])
    every = records(tmp_path)
    assert {one["agent"] for one in every} == {ME}
    assert {one["session"] for one in every if one["kind"] != "call.enter"} == {claimed["holder"]}
    clients = {one["said"]["client"] for one in every if one["kind"] == "call.enter"}
    assert clients == {f"colibri-cli {VERSION}"}
    thoughts = [one["said"]["type"] for one in every if one["kind"] == "thought"]
    assert thoughts == ["decision", "decision", "reflection"]
    assert colibri(tmp_path, "verify")[0] == 0
    page = tmp_path / "day.html"
    assert colibri(tmp_path, "report", sealed["session_id"], "-o", str(page))[0] == 0
    assert bundle_from(evidence(page.read_text()))["scope"] == {"session": sealed["session_id"]}


def test_the_first_command_makes_the_ledger_and_the_next_day_a_session_of_its_own(
    tmp_path: Path, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = typed("note", "one")["session_id"]
    assert typed("note", "two")["session_id"] == first
    with closing(apsw.Connection(str(tmp_path / "data" / "colibri.db"))) as db:
        intent = db.execute("SELECT intent FROM sessions").get
    assert intent.startswith(f"Terminal work by {ME.removeprefix('human:')}, 20")
    monkeypatch.setattr(times, "now", tomorrow)
    assert typed("note", "three")["session_id"] != first


def test_work_that_goes_on_past_midnight_stays_in_its_session(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = typed("note", "one")["session_id"]
    monkeypatch.setattr(times, "now", tomorrow)
    monkeypatch.setenv("COLIBRI_CLAIM_MINUTES", str(2 * 24 * 60))
    assert typed("note", "two")["session_id"] == first


def tomorrow() -> datetime:
    return datetime.now().astimezone() + timedelta(days=1)


REFUSED = {
    "a task that does not exist": (["move", "T-0099", "GATHER"], "ERR_NOT_FOUND"),
    "a move that the states do not allow": (["move", "T-0001", "DONE"], "ERR_INVALID_TRANSITION"),
    "an end without a reason": (["move", "T-0001", "CANCELLED"], "ERR_WRITEBACK_REQUIRED"),
    "a dependency on itself": (["edit", "T-0001", "--depends-on", "T-0001"], "ERR_CYCLE"),
    "a dependency that is open": (
        ["move", "T-0002", "GATHER", "ANALYZE", "PLAN", "APPLY"],
        "ERR_BLOCKED",
    ),
    "another body with the same key": (["add", "other", "--key", "k"], "ERR_KEY_REUSED"),
    "a session that does not exist": (["seal", "S-none"], "ERR_SESSION_NOT_FOUND"),
    "a dependency that does not exist": (
        ["edit", "T-0001", "--depends-on", "T-99"],
        "ERR_NOT_FOUND",
    ),
    "nothing to seal": (["seal"], "ERR_NO_RECORDS"),
}
TOOL = re.compile("(task|audit|thought|merkle)_[a-z]|session_id|task_id|depends_on|ERR_")


@pytest.mark.parametrize(("command", "code"), REFUSED.values(), ids=REFUSED)
def test_a_person_is_refused_as_an_agent_is_and_gets_advice_for_the_terminal(
    tmp_path: Path, colibri: Printed, typed: Typed, command: list[str], code: str
) -> None:
    typed("add", "one", "--key", "k")
    typed("add", "two", "--depends-on", "T-0001")
    before = len([one for one in records(tmp_path) if one["kind"] not in CALLS])
    exit_code, out, err = colibri(tmp_path, *command, "--json")
    error = json.loads(out)["error"]
    assert (exit_code, error["code"]) == (1, code)
    fact = err.splitlines()[0].removeprefix("colibri: error: ")
    assert error["message"].startswith(fact)
    assert not TOOL.search(err), err
    exits = [one["said"] for one in records(tmp_path) if one["kind"] == "call.exit"]
    assert (exits[-1]["outcome"], exits[-1]["code"]) == ("refused", code)
    assert len([one for one in records(tmp_path) if one["kind"] not in CALLS]) == before


CALLS = ("call.enter", "call.exit")
MISTAKES = {
    "an empty title": (["add", " "], "title"),
    "a title of two lines": (["add", "a\nb"], "title"),
    "a long key": (["note", "x", "--key", "k" * 129], "--key does not fit"),
    "an empty reason": (["move", "T-0001", "GATHER", "--why", ""], "--why does not fit"),
    "a project of two lines": (["add", "x", "--project-name", "a\nb"], "--project-name holds"),
}


@pytest.mark.parametrize(("command", "said"), MISTAKES.values(), ids=MISTAKES)
def test_a_value_that_no_tool_takes_is_named_and_is_misuse(
    tmp_path: Path, colibri: Printed, command: list[str], said: str
) -> None:
    code, out, err = colibri(tmp_path, *command)
    assert (code, out) == (2, "")
    assert said in err
    assert "schema" not in err and "string" not in err


@pytest.mark.parametrize("id", ["T-1", "t-1", "T1", "1", "T-00001"])
def test_an_id_may_be_short(tmp_path: Path, colibri: Printed, typed: Typed, id: str) -> None:
    typed("add", "one")
    assert typed("claim", id)["task_id"] == "T-0001"
    assert typed("add", "two", "--depends-on", id)["depends_on"] == ["T-0001"]
    assert typed("note", "x", "--task", id)["task_id"] == "T-0001"
    assert typed("edit", id, "--priority", "high")["priority"] == "high"
    assert typed("move", id, "GATHER")["status"] == "GATHER"
    assert typed("release", id, "--why", "x")["holder"] is None
    assert typed("tasks", id)["task_id"] == "T-0001"
    assert json.loads(colibri(tmp_path, "trail", id, "--json")[1].splitlines()[0])


@pytest.mark.parametrize("id", ["T-", "T-x", "T-0", "one", "T-00O1", "T-" + "9" * 5_000, "T-1;"])
@pytest.mark.parametrize("command", [["claim"], ["tasks"], ["release", "--why", "x"]])
def test_what_is_no_id_is_answered_with_what_an_id_looks_like(
    tmp_path: Path, colibri: Printed, command: list[str], id: str
) -> None:
    code, out, err = colibri(tmp_path, *command, id)
    assert (code, out) == (2, "")
    assert "is not the id of a task: ids look like T-0001" in err
    assert "colibri tasks lists tasks" in err


def test_edit_says_what_it_lacks_and_what_cannot_be_both(tmp_path: Path, colibri: Printed) -> None:
    assert "name at least one field" in colibri(tmp_path, "edit", "T-0001")[2]
    both = colibri(tmp_path, "edit", "T-0001", "--assignee", "ada", "--clear", "assignee")
    assert (both[0], "both set and cleared" in both[2]) == (2, True)


def test_a_task_that_an_agent_holds_is_refused_and_can_be_released_with_a_reason(
    tmp_path: Path, colibri: Printed, typed: Typed
) -> None:
    """Specification 8.3, 8.7."""
    typed("add", "one")
    with Server(tmp_path, COLIBRI) as server:
        session = server.data("audit_session_start", intent="work", agent_id="robot")["session_id"]
        server.data("task_update", task_id="T-0001", claim=True)
        code, _, err = colibri(tmp_path, "move", "T-0001", "GATHER")
        assert (code, f"held by session {session} (robot)" in err) == (1, True)
        assert "release T-0001 --why TEXT frees this one" in err
        freed = typed("release", "T-0001", "--why", "it loops")
        assert freed["holder"] is None
        refused = server.call("task_update", task_id="T-0001", status="GATHER")
        error = refused["structuredContent"]["data"]["error"]
        assert (error["code"], error["lost"]) == ("ERR_CLAIMED", True)
    last = records(tmp_path)
    reason = next(one for one in reversed(last) if one["kind"] == "thought")
    assert (reason["agent"], reason["said"]["content"]) == (ME, "it loops")
    assert colibri(tmp_path, "verify")[0] == 0


def test_a_task_that_nobody_holds_cannot_be_released_and_nothing_is_recorded(
    tmp_path: Path, colibri: Printed, typed: Typed
) -> None:
    typed("add", "one")
    before = records(tmp_path)
    code, out, err = colibri(tmp_path, "release", "T-1", "--why", "x")
    assert (code, out) == (1, "")
    assert "nobody holds T-0001" in err
    assert records(tmp_path) == before
    assert "there is no task T-0009" in colibri(tmp_path, "release", "T-9", "--why", "x")[2]


def test_a_claim_names_what_the_task_waits_for(
    tmp_path: Path, colibri: Printed, typed: Typed
) -> None:
    typed("add", "one")
    typed("add", "two", "--depends-on", "T-1")
    taken = "T-0002  INIT  two  medium · yours · waits for T-0001 (INIT)\n"
    assert colibri(tmp_path, "claim", "T-2")[1] == taken


def test_an_invalid_call_of_a_person_is_in_the_trail_of_their_session(
    tmp_path: Path, colibri: Printed, typed: Typed
) -> None:
    session = typed("note", "one")["session_id"]
    assert colibri(tmp_path, "add", " ")[0] == 2
    exit = records(tmp_path)[-1]
    assert (exit["session"], exit["agent"], exit["said"]["outcome"]) == (session, ME, "invalid")
    trail = colibri(tmp_path, "trail", session)[1]
    assert "task_create" in trail and "other record" not in trail
    assert colibri(tmp_path, "verify")[0] == 0


def test_a_session_that_another_process_continued_is_no_longer_the_persons(
    tmp_path: Path, colibri: Printed, typed: Typed
) -> None:
    session = typed("note", "one")["session_id"]
    with Server(tmp_path, COLIBRI) as server:
        server.data("audit_session_start", session_id=session, resume=True)
    assert typed("note", "two")["session_id"] != session
    code, _, err = colibri(tmp_path, "seal", session)
    assert (code, "only that process can seal it" in err) == (1, True)


def test_the_hint_of_a_claim_depends_on_its_holder(
    tmp_path: Path, colibri: Printed, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed("add", "one")
    with Server(tmp_path, COLIBRI) as server:
        session = server.data("audit_session_start", intent="work", agent_id="robot")["session_id"]
        server.data("task_update", task_id="T-0001", claim=True)
        server.data("thought_record", type="plan", content="begin")
        monkeypatch.setenv("COLIBRI_CLAIM_MINUTES", "0.0001")
        code, _, err = colibri(tmp_path, "edit", "T-1", "--priority", "low")
        assert (code, "colibri claim T-0001 takes the task over" in err) == (1, True), err
        server.data("merkle_finalize", session_id=session)
    code, _, err = colibri(tmp_path, "seal", session)
    assert (code, f"colibri trail {session} shows it" in err) == (1, True), err


def hint_of(code: str, message: str = "no", **fields: object) -> str:
    told = refusals.complaint({"code": code, "message": message, **fields})
    assert isinstance(told, Complaint)
    return told.hint


def test_a_hint_depends_on_what_can_help() -> None:
    """Specification 21.5, 21.6: a rule that cannot be read cannot be set aside."""
    assert hint_of("ERR_GATE", reason="missing").startswith("--why TEXT sets the rule aside")
    assert hint_of("ERR_GATE", reason="unreadable").startswith("colibri gate check shows")
    ended: dict[str, Any] = {"task_id": "T-0001", "next_states": []}
    assert hint_of("ERR_INVALID_TRANSITION", **ended) == "colibri add TITLE plans further work"
    assert hint_of("HANDLER_ERROR", "division by zero") == ""


def test_a_claim_that_was_lost_must_be_made_again() -> None:
    """Specification 8.7."""
    message = "your claim on T-0001 ended and others may have worked on it: read it with task_get"
    error = {"code": "ERR_CLAIMED", "message": message, "task_id": "T-0001", "lost": True}
    told = refusals.complaint(error)
    assert str(told) == "your claim on T-0001 ended and others may have worked on it"
    assert isinstance(told, Complaint)
    assert told.hint == "colibri tasks T-0001 shows it; colibri claim T-0001 takes it again"


def test_nothing_to_claim_is_reported(tmp_path: Path, colibri: Printed) -> None:
    code, out, err = colibri(tmp_path, "claim")
    assert (code, out) == (1, "")
    assert "no task is free" in err
    assert json.loads(colibri(tmp_path, "claim", "--json")[1]) == {"task": None}


def test_a_claim_may_be_of_one_project(tmp_path: Path, colibri: Printed, typed: Typed) -> None:
    typed("add", "one")
    typed("add", "two", "--project-name", "house")
    assert typed("claim", "--project-name", "house")["task_id"] == "T-0002"
    both = colibri(tmp_path, "claim", "T-0001", "--project-name", "house")
    assert (both[0], "do not go together" in both[2]) == (2, True)


def test_nothing_to_seal_is_reported(tmp_path: Path, colibri: Printed) -> None:
    code, out, err = colibri(tmp_path, "seal")
    assert (code, out) == (1, "")
    assert "you have no open session" in err


def test_another_session_can_be_sealed_by_its_name(tmp_path: Path, typed: Typed) -> None:
    with Server(tmp_path, COLIBRI) as server:
        session = server.data("audit_session_start", intent="work", agent_id="robot")["session_id"]
        server.data("thought_record", type="plan", content="begin")
    assert typed("seal", session)["session_id"] == session
    sealed = records(tmp_path)[-2]
    assert (sealed["kind"], sealed["session"], sealed["agent"]) == ("session.seal", session, ME)


def test_what_is_printed_for_people(tmp_path: Path, colibri: Printed) -> None:
    assert colibri(tmp_path, "add", "one", "--key", "k")[1] == "T-0001  INIT  one  medium\n"
    again = "T-0001  INIT  one  medium · there already\n"
    assert colibri(tmp_path, "add", "one", "--key", "k")[1] == again
    assert colibri(tmp_path, "claim", "T-0001")[1] == "T-0001  INIT  one  medium · yours\n"
    assert colibri(tmp_path, "claim")[1] == "T-0001  INIT  one  medium · yours\n"
    noted = colibri(tmp_path, "note", "x", "--task", "T-0001", "--key", "n")[1]
    assert noted.split()[1:4] == ["analysis", "about", "T-0001"]
    assert colibri(tmp_path, "note", "x", "--task", "T-0001", "--key", "n")[1].endswith(
        ", recorded before\n"
    )
    edited = colibri(tmp_path, "edit", "T-0001", "--priority", "high")[1]
    assert edited == "T-0001  INIT  one  high\n"
    assert colibri(tmp_path, "move", "T-0001", "GATHER")[1] == "T-0001  GATHER  one  high\n"
    freed = colibri(tmp_path, "release", "T-0001", "--why", "y")[1]
    assert freed == "T-0001  GATHER  one  high · free\n"
    sealed = colibri(tmp_path, "seal")[1].splitlines()
    assert [line.split()[0] for line in sealed] == ["sealed", "thoughts", "root", "head"]
    root, head = (line.split()[1] for line in sealed[2:])
    assert colibri(tmp_path, "verify", "--root", root, "--head", head)[0] == 0
    assert colibri(tmp_path, "verify", "--head", head[:-1] + "g")[0] != 0
    session = sealed[0].split()[1]
    made = colibri(tmp_path, "export", "--session", session, "-o", str(tmp_path / "s.json"))
    assert made[0] == 0
    for value, verdict in ((head, 0), (head.partition(":")[0] + ":" + "0" * 64, 1)):
        bundle = str(tmp_path / "s.json")
        assert colibri(tmp_path, "verify", bundle, "--root", root, "--head", value)[0] == verdict


@pytest.mark.parametrize("mode", ["READONLY", "MINIMAL"])
def test_a_mode_that_changes_nothing_is_refused(
    tmp_path: Path, colibri: Printed, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setenv("COLIBRI_MODE", mode)
    code, out, err = colibri(tmp_path, "add", "one")
    assert (code, out) == (73, "")
    assert f"COLIBRI_MODE is {mode}" in err


def test_a_ledger_that_cannot_be_opened_is_a_resource_error(
    tmp_path: Path, colibri: Printed
) -> None:
    engines.require_sqlite("a file that cannot be opened")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "colibri.db").write_bytes(b"no database at all" * 100)
    code, out, err = colibri(tmp_path, "add", "one")
    assert (code, out) == (75, "")
    assert "Traceback" not in err and err.startswith("colibri: error: ")


def test_an_mcp_client_cannot_pass_for_a_person(tmp_path: Path) -> None:
    """Specification 7.13."""
    with Server(tmp_path, COLIBRI) as server:
        answer = server.call("audit_session_start", intent="x", agent_id=ME)["structuredContent"]
    assert answer["error"]["code"] == "INVALID_PARAMS"


def test_a_person_without_an_account_goes_by_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_: int) -> None:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert person.name() == f"human:{os.geteuid()}"


def test_no_thread_is_left_behind(tmp_path: Path, colibri: Printed) -> None:
    before = threading.active_count()
    colibri(tmp_path, "add", "one")
    assert threading.active_count() == before


def test_a_thought_about_no_task_is_refused_with_the_way_to_find_one(
    tmp_path: Path, colibri: Printed
) -> None:
    code, out, err = colibri(tmp_path, "note", "x", "--task", "T-0099")
    assert (code, out) == (1, "")
    assert "error: there is no task T-0099\n" in err
    assert "tasks lists tasks" in err


def test_a_ledger_that_another_process_holds_is_a_resource_error(
    tmp_path: Path, colibri: Printed, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed("add", "one")
    monkeypatch.setattr(clock, "PATIENCE_SECONDS", 0.1)
    with holding(tmp_path / "data" / "colibri.db"):
        code, out, err = colibri(tmp_path, "add", "two")
    assert (code, out) == (75, "")
    assert "another process held the database" in err


def test_what_the_server_does_not_know_is_a_resource_error(tmp_path: Path) -> None:
    options = Namespace(project=str(tmp_path), json=False)
    with person.at_work(options) as me, pytest.raises(ResourceError, match="did not answer"):
        me.request("no/such", {})
