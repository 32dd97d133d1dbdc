"""`colibri log`: the records as they are."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.engines import tamper
from tests.support.ledger_writer import Lab, disable_triggers, opened, story
from tests.support.sample_project import Printed, Shown, Workshop

JSON = dict[str, Any]


def records(text: str) -> list[JSON]:
    return [json.loads(line) for line in text.splitlines()]


def test_every_record_is_a_line_with_its_place_time_kind_and_gist(
    workshop: Workshop, colibri: Printed
) -> None:
    code, out, err = colibri(workshop.path, "log", "--limit", "0")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert [int(line.split()[0]) for line in lines] == list(range(1, workshop.last + 1))
    assert lines[0].endswith(
        "Z  call.enter    task_create priority=high project=house title=(13 bytes)"
    )
    gists = {
        "task          status INIT, ": False,
        f"task          INIT → GATHER, claimed  {workshop.sealed} · T-0001": True,
        f"task          VERIFY → GATHER, attempt 2  {workshop.sealed} · T-0001": True,
        "task.text     title “Build the house <img ": True,
        "session.open  “draw it first”": True,
        "thought       plan “North is up.”": True,
        f"session.seal  2 thoughts, root {workshop.seal['root'][:18]}…": True,
        "call.exit     task_update refused ERR_WRITEBACK_REQUIRED": True,
        "call.exit     task_create invalid INVALID_PARAMS": True,
        "call.enter    no_such\\x1b[2J\\x1b]0;owned\\x07": True,
        "thought       [erased]": True,
        f"erasure       erased records {workshop.erased - 1}, {workshop.erased}: “asked for”": True,
    }
    assert {gist: gist in out for gist in gists} == gists


FILTERS: dict[str, tuple[list[str], Any]] = {
    "kind": (
        ["--kind", "thought", "--kind", "erasure"],
        lambda r: r["kind"] in ("thought", "erasure"),
    ),
    "tool": (["--tool", "task_get"], lambda r: (r["payload"] or {}).get("tool") == "task_get"),
    "session": (["--session", "{sealed}"], lambda r: r["session"] == "{sealed}"),
    "task": (["--task", "T-0003"], lambda r: r["task"] == "T-0003"),
    "agent": (["--agent", "ada"], lambda r: r["agent"] == "ada"),
    "seqs": (["--since", "10", "--until", "#20"], lambda r: 10 <= r["seq"] <= 20),
    "times": (["--until", "2026-01-02"], lambda r: r["at"] < "2026-01-03"),
    "both": (["--since", "10", "--until", "2026-01-02"], lambda r: r["at"] < "2026-01-03"),
}


@pytest.mark.parametrize("name", FILTERS)
def test_filters_narrow(workshop: Workshop, colibri: Printed, name: str) -> None:
    options, passes = FILTERS[name]
    given = [option.replace("{sealed}", workshop.sealed) for option in options]
    _, out, _ = colibri(workshop.path, "log", "--limit", "0", "--json")
    every = records(out)
    _, out, err = colibri(workshop.path, "log", *given, "--limit", "0", "--json")
    if name == "session":
        expected = [one for one in every if one["session"] == workshop.sealed]
    else:
        expected = [one for one in every if passes(one)]
    assert expected
    assert records(out) == expected
    assert err == ""


def test_the_newest_fifty_are_shown_and_the_rest_counted(
    workshop: Workshop, colibri: Printed
) -> None:
    code, out, err = colibri(workshop.path, "log", "--json")
    assert code == 0
    last = workshop.last
    assert [one["seq"] for one in records(out)] == list(range(last - 49, last + 1))
    assert err == "colibri: older records are not shown: --limit 50; --limit 0 shows all\n"
    _, out, _ = colibri(workshop.path, "log", "--json", "--limit", "3", "--reverse")
    assert [one["seq"] for one in records(out)] == [last, last - 1, last - 2]


def test_payloads_are_shown_under_their_records(workshop: Workshop, colibri: Printed) -> None:
    seq = str(workshop.reflection)
    _, out, _ = colibri(workshop.path, "log", "--since", seq, "--until", seq, "--payload")
    _, *payload = out.splitlines()
    assert all(line.startswith(" " * 40) for line in payload)
    assert json.loads("\n".join(payload))["content"] == (
        "It fits on one page.\nThe stairs are steep, but legal."
    )
    seq = str(workshop.erased)
    _, out, _ = colibri(workshop.path, "log", "--since", seq, "--until", seq, "--payload")
    assert out.splitlines()[1].strip() == "[erased]"


def test_json_says_what_became_of_a_payload(workshop: Workshop, colibri: Printed) -> None:
    _, out, _ = colibri(workshop.path, "log", "--kind", "thought", "--json")
    states = {one["seq"]: (one["payload_state"], one["payload"]) for one in records(out)}
    assert states[workshop.erased] == ("erased", None)
    assert states[workshop.reflection][0] == "kept"
    assert records(out)[0].keys() == {
        *("seq", "at", "kind", "call", "session", "task", "agent", "leaf", "prev"),
        *("payload", "payload_state"),
    }


def test_one_record_is_shown_in_full(workshop: Workshop, colibri: Printed) -> None:
    seq = workshop.reflection
    code, out, err = colibri(workshop.path, "log", str(seq))
    assert (code, err) == (0, "")
    _, as_json, _ = colibri(workshop.path, "log", str(seq), "--json")
    one = json.loads(as_json)
    for line in (
        f"record      {seq} of {workshop.last}",
        "kind        thought",
        f"at          {one['at']}",
        f"session     {workshop.sealed}",
        f"task        {workshop.plan}",
        "agent       ada",
        f"call        {one['call']}",
        f"enter       #{seq - 1}  thought_record content=(53 bytes) type=reflection",
        f"leaf        {one['leaf']}",
        f"prev        {one['prev']}",
        f"nonce       {one['nonce']}",
        "check       intact",
        f"  {one['header']}",
    ):
        assert line in out.splitlines(), line
    assert f"exit        #{seq + 1}  thought_record ok, " in out
    assert json.loads(out.partition("\npayload\n")[2]) == one["payload"]
    assert (one["enter"], one["exit"], one["breaks"]) == (seq - 1, seq + 1, [])
    assert json.loads(one["header"])["seq"] == seq


def test_of_a_pair_only_the_other_is_named(workshop: Workshop, colibri: Printed) -> None:
    _, out, _ = colibri(workshop.path, "log", str(workshop.reflection + 1))
    assert "\nexit " not in out
    assert f"\nenter       #{workshop.reflection - 1}  " in out
    _, out, _ = colibri(workshop.path, "log", str(workshop.last))
    assert "\nexit        none: the call has not ended, or no call wrote this\n" in out


def test_an_erased_record_is_intact_without_its_payload(
    workshop: Workshop, colibri: Printed
) -> None:
    _, out, _ = colibri(workshop.path, "log", str(workshop.erased))
    assert "\ncheck       intact\n" in out
    assert "\nnonce       -\n" in out
    assert out.endswith("\npayload\n  [erased]\n")
    _, out, _ = colibri(workshop.path, "log", str(workshop.erased), "--json")
    assert (json.loads(out)["nonce"], json.loads(out)["breaks"]) == (None, [])


@pytest.fixture
def damaged(tmp_path: Path) -> tuple[Path, int]:
    """A project in which somebody changed what a thought says, and who an agent was."""
    with opened(tmp_path) as db:
        lab = story(Lab(db))
        seq = lab.seqs("thought")[0]
        body = b'{"content":"other","index":"x","prev":1,"thought_id":null,"type":"plan"}'
        tamper(db, "UPDATE ledger SET body = ? WHERE seq = ?", (body, seq))
        tamper(db, "UPDATE ledger SET body = ? WHERE seq = ?", (b"\xff{", seq + 1))
        tamper(db, "UPDATE ledger SET agent = 'eve' WHERE seq = ?", (seq + 2,))
    return tmp_path, seq


def test_damage_is_shown_and_causes_no_error(damaged: tuple[Path, int], colibri: Printed) -> None:
    project, seq = damaged
    code, out, _ = colibri(project, "log", str(seq))
    assert code == 0
    assert "\ncheck       altered-payload: " in out
    _, out, _ = colibri(project, "log", str(seq), "--json")
    assert [one["what"] for one in json.loads(out)["breaks"]] == ["altered-payload"]
    _, out, _ = colibri(project, "log", str(seq + 1), "--payload")
    assert "[unreadable: not in the form of its kind]" in out
    _, out, _ = colibri(project, "log", str(seq + 2))
    assert "\ncheck       altered-header: " in out
    for command in ("log", "trail", "status", "tasks"):
        assert colibri(project, command)[0] == 0


def test_odd_payloads_are_still_shown(tmp_path: Path, colibri: Printed) -> None:
    """Sound in form, but no tool would write them."""
    with opened(tmp_path) as db:
        lab = Lab(db)
        lab.create()
        change = {"task_id": "T-0001", "version": 2, "attempt": 1}
        for fields in (
            {"colour": [None, {"a": 1}], "status": [1, None]},
            {"depends_on": [["T-1", 2], []], "assignee": [[], 7]},
        ):
            lab.forge("task", {**change, "set": fields}, task="T-0001")
        taken: JSON = {**change, "set": {"holder": ["S-1", "S-2"]}}
        lab.forge("task", {**taken, "taken": {}}, task="T-0001")
        lab.forge("task", {**taken, "taken": {"minutes": "long"}}, task="T-0001")
        lab.forge("task", {**taken, "taken": [1]}, task="T-0001")
        done: JSON = {**change, "set": {"status": ["VERIFY", "DONE"]}}
        bad: list[Any] = [[], {}, {"command": 1, "evidence": []}, {"command": "", "evidence": None}]
        for gate in bad:
            lab.forge("task", {**done, "gate": gate}, task="T-0001")
        lab.forge(
            "task", {**done, "gate": {"command": "x", "evidence": [None, "y"]}}, task="T-0001"
        )
        texts = {"title": ["a", None], "description": ["old", 12]}
        lab.forge("task.text", {"task_id": "T-0001", "version": 2, "set": texts}, task="T-0001")
        lab.forge("erasure", {"seqs": ["x", None], "reason": "why\nnot"})
    code, out, _ = colibri(tmp_path, "log")
    assert code == 0
    for gist in (
        "1 → None, colour {'a': 1}",
        "assignee none → 7, depends on T-1, 2 → none",
        "task          taken over from S-1, silent for 0 minutes",
        "VERIFY → DONE, `x` with exit None seen in #None, #y",
        "title “a” → none, description a text of 3 characters → a text of 2 characters",
        "erased records x, None: “why not”",
    ):
        assert gist in out
    assert out.count("task          [unreadable: not in the form of its kind]") == 6
    assert colibri(tmp_path, "trail", "T-0001")[0] == 0


def test_a_database_that_cannot_be_read_is_a_resource_problem(
    tmp_path: Path, colibri: Printed
) -> None:
    """A text column that holds no text."""
    with opened(tmp_path) as db:
        lab = story(Lab(db))
        disable_triggers(db)
        db.execute("UPDATE ledger SET session = CAST(x'ff' AS TEXT) WHERE seq = 5")
        assert lab.head().seq
    code, _, err = colibri(tmp_path, "log", "--limit", "0")
    assert code == 75
    assert err.startswith(f"colibri: error: cannot read {tmp_path}/data/colibri.db: ")
    assert "colibri verify" in err


def test_unknown_places_and_ids_are_exit_code_1(workshop: Workshop, colibri: Printed) -> None:
    last = workshop.last
    code, out, err = colibri(workshop.path, "log", str(last + 1))
    assert (code, out) == (1, "")
    assert err.splitlines() == [
        f"colibri: error: there is no record {last + 1}",
        f"colibri: hint: the log has records 1 to {last}",
    ]
    near = workshop.sealed[:-1] + "x"
    code, _, err = colibri(workshop.path, "log", "--session", near)
    assert code == 1
    assert f"there is no session {near}\ncolibri: hint: did you mean {workshop.sealed}?" in err
    code, _, err = colibri(workshop.path, "log", "--task", "T-0099")
    assert code == 1
    assert "there is no task T-0099" in err


def test_an_empty_log_has_no_records(tmp_path: Path, colibri: Printed) -> None:
    with opened(tmp_path):
        pass
    assert colibri(tmp_path, "log") == (0, "", "colibri: no record matches\n")
    code, _, err = colibri(tmp_path, "log", "1")
    assert (code, err.splitlines()[1]) == (1, "colibri: hint: the log is still empty")


def test_an_id_that_exists_but_passes_no_other_filter_is_an_answer(
    workshop: Workshop, colibri: Printed
) -> None:
    given = ("--session", workshop.sealed, "--task", workshop.plan, "--tool", "no_such_tool")
    assert colibri(workshop.path, "log", *given) == (0, "", "colibri: no record matches\n")


def test_a_record_is_found_by_each_of_its_names(workshop: Workshop, colibri: Printed) -> None:
    named = [colibri(workshop.path, "log", name) for name in ("9", "#9", "R-9")]
    assert named[0][0] == 0
    assert named == [named[0]] * 3
    _, _, err = colibri(workshop.path, "log", workshop.plan)
    hint = "colibri log lists records; colibri trail ID shows a session or a task"
    assert err.splitlines()[1:] == [f"colibri: hint: {hint}"]


@pytest.mark.parametrize("columns", [40, 120])
def test_a_terminal_gets_days_and_lines_that_fit(
    workshop: Workshop, shown: Shown, columns: int
) -> None:
    text = shown(columns, "log", "--limit", "0", "--payload")
    lines = text.splitlines()
    assert max(map(len, lines)) <= columns
    assert "Thu 1 Jan 2026" in lines
    if columns == 40:
        under = " " * (len(str(workshop.last)) + 2)
        assert f"{workshop.last}  00:00:00  call.enter\n{under}audit_verify_chain" in text
    assert f"{workshop.last}  00:00:00  call.enter" in text
    assert set(text) & set(map(chr, (*range(10), *range(11, 32), *range(127, 160)))) == set()
    assert "\u202e" not in text


def test_reading_holds_no_lock_that_writers_wait_for(tmp_path: Path, colibri: Printed) -> None:
    """Servers write meanwhile: nothing but reading happens, and no file is left behind."""
    with opened(tmp_path) as db:
        lab = story(Lab(db))
        with db.engine.transaction(db, durable=False):
            assert colibri(tmp_path, "log")[0] == 0
            assert colibri(tmp_path, "status")[0] == 0
        lab.read()
