"""`colibri tasks`: the board, and one task with its history."""

import json
from pathlib import Path

import pytest

from tests.support.ledger_writer import TO_VERIFY, Lab, opened
from tests.support.sample_project import IMAGE, MARKUP, Printed, Shown, Workshop


@pytest.fixture
def board(tmp_path: Path) -> Path:
    """Five tasks: two wait, one is in APPLY for the second time."""
    with opened(tmp_path) as db:
        lab = Lab(db)
        lab.create("lay the floor", project="house", assignee="ada")
        lab.create("paint it", "T-0001", project="house", priority="critical")
        lab.create("call the cat", priority="low")
        lab.create("buy paint", "T-0001", "T-0003", description="the Floor's colour")
        lab.create("sweep", project="house", assignee="ada")
        lab.move("T-0001", "GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY")
        lab.move("T-0001", "GATHER", "ANALYZE", "PLAN", "APPLY")
        lab.cancel("T-0003")
    return tmp_path


def test_the_board_groups_tasks_by_state_in_the_order_of_the_work(
    board: Path, colibri: Printed
) -> None:
    code, out, err = colibri(board, "tasks")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "INIT  3",
        "  T-0002  paint it  critical · house · waits for T-0001 (APPLY)",
        "  T-0004  buy paint  medium · waits for T-0001 (APPLY)",
        "  T-0005  sweep  medium · house · ada",
        "",
        "APPLY  1",
        "  T-0001  lay the floor  medium · house · ada · attempt 2",
        "",
        "CANCELLED  1",
        "  T-0003  call the cat  low",
    ]


FILTERS = {
    "status": (["--status", "init", "--status", "APPLY"], ["T-0002", "T-0004", "T-0005", "T-0001"]),
    "project": (["--project-name", "house"], ["T-0002", "T-0005", "T-0001"]),
    "assignee": (["--assignee", "ada"], ["T-0005", "T-0001"]),
    "search": (["--search", "floor COLOUR"], ["T-0004"]),
    "two": (["--assignee", "ada", "--status", "INIT"], ["T-0005"]),
    "the most urgent of each state": (["--limit", "1"], ["T-0002", "T-0001", "T-0003"]),
    "all": (["--limit", "0"], ["T-0002", "T-0004", "T-0005", "T-0001", "T-0003"]),
}


@pytest.mark.parametrize(("options", "ids"), FILTERS.values(), ids=FILTERS)
def test_filters_narrow_the_board(
    board: Path, colibri: Printed, options: list[str], ids: list[str]
) -> None:
    _, out, _ = colibri(board, "tasks", *options)
    assert [line.split()[0] for line in out.splitlines() if line.startswith("  T-")] == ids
    _, out, _ = colibri(board, "tasks", *options, "--json")
    found = json.loads(out)["states"].values()
    assert [task["task_id"] for column in found for task in column["tasks"]] == ids


def test_what_is_left_out_is_counted(board: Path, colibri: Printed) -> None:
    _, out, _ = colibri(board, "tasks", "--limit", "1", "--status", "INIT")
    assert out.splitlines()[0] == "INIT  3"
    assert out.splitlines()[-1] == "  … 2 less urgent; --limit 0 shows all"


def test_of_what_has_ended_the_newest_is_shown(tmp_path: Path, colibri: Printed) -> None:
    with opened(tmp_path) as db:
        lab = Lab(db)
        for title, priority in (("old", "critical"), ("new", "low")):
            lab.cancel(lab.create(title, priority=priority).task_id)
    _, out, _ = colibri(tmp_path, "tasks", "--limit", "1")
    assert out.splitlines() == [
        "CANCELLED  2",
        "  T-0002  new  low",
        "  … 1 older; --limit 0 shows all",
    ]


def test_what_is_ready_is_shown_as_agents_are_given_it(board: Path, colibri: Printed) -> None:
    assert colibri(board, "tasks", "--ready")[1].splitlines() == [
        "T-0001  APPLY  lay the floor  medium · house · ada · attempt 2",
        "T-0005  INIT  sweep  medium · house · ada",
    ]
    code, out, err = colibri(board, "tasks", "--ready", "--limit", "1", "--project-name", "house")
    assert (code, out[:6], "1 more; --limit 0 shows all" in err) == (0, "T-0001", True)
    said = json.loads(colibri(board, "tasks", "--ready", "--json")[1])
    assert (said["total"], [one["task_id"] for one in said["tasks"]]) == (2, ["T-0001", "T-0005"])
    none = colibri(board, "tasks", "--ready", "--assignee", "x")[2]
    assert "no task that matches --assignee x can be worked on now" in none


def test_what_is_mine_is_what_my_sessions_hold(tmp_path: Path, colibri: Printed) -> None:
    for title in ("one", "two", "three"):
        colibri(tmp_path, "add", title)
    assert "you hold no task" in colibri(tmp_path, "tasks", "--mine")[2]
    colibri(tmp_path, "claim", "T-0002")
    out = colibri(tmp_path, "tasks", "--mine")[1]
    assert out.startswith("T-0002  INIT  two  medium · held by S-")
    assert len(out.splitlines()) == 1


def test_ready_and_mine_choose_by_themselves(board: Path, colibri: Printed) -> None:
    code, _, err = colibri(board, "tasks", "--ready", "--status", "INIT")
    assert (code, "do not go together" in err) == (2, True)
    _, out, _ = colibri(board, "tasks", "--limit", "1", "--json")
    found = json.loads(out)
    assert (found["total"], found["states"]["INIT"]["total"]) == (5, 3)
    assert len(found["states"]["INIT"]["tasks"]) == 1


def test_the_json_of_a_board_has_every_state_and_tasks_as_the_tools_have_them(
    board: Path, colibri: Printed
) -> None:
    _, out, _ = colibri(board, "tasks", "--json")
    found = json.loads(out)
    assert list(found["states"]) == [
        "INIT",
        "GATHER",
        "ANALYZE",
        "PLAN",
        "APPLY",
        "VERIFY",
        "DONE",
        "CANCELLED",
    ]
    (task,) = found["states"]["APPLY"]["tasks"]
    assert task.keys() == {
        *("task_id", "title", "description", "project", "priority", "assignee", "holder", "status"),
        *("attempt", "version", "depends_on", "created_at", "updated_at"),
    }


def test_a_filter_that_finds_nothing_is_named(board: Path, colibri: Printed) -> None:
    filters = ["--status", "GATHER", "--project-name", "no one", "--assignee", "x"]
    err = colibri(board, "tasks", *filters)[2]
    assert err == "colibri: no task matches --status GATHER --project-name 'no one' --assignee x\n"
    assert (
        "no task that matches --assignee x;" in colibri(board, "tasks", "--mine", *filters[4:])[2]
    )


def test_an_empty_board_is_an_answer(board: Path, tmp_path: Path, colibri: Printed) -> None:
    assert colibri(board, "tasks", "--search", "nothing like it") == (
        0,
        "",
        "colibri: no task matches --search 'nothing like it'\n",
    )
    empty = tmp_path / "empty"
    empty.mkdir()
    with opened(empty):
        pass
    assert colibri(empty, "tasks") == (
        0,
        "",
        "colibri: there are no tasks yet; colibri add TITLE creates one\n",
    )


def test_one_task_has_its_fields_its_dependencies_and_what_it_needs(
    board: Path, colibri: Printed
) -> None:
    with opened(board) as db:
        Lab(db).move("T-0004", "GATHER", "ANALYZE", "PLAN")
    code, out, err = colibri(board, "tasks", "T-0004")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[:5] == [
        "T-0004      buy paint",
        "status      PLAN  attempt 1",
        "priority    medium",
        "project     -",
        "assignee    -",
    ]
    assert lines[5].startswith("created     2026-01-01T00:00:00.")
    assert lines[6].endswith("  version 4")
    assert lines[7:16] == [
        "depends on  T-0001  APPLY  lay the floor",
        "            T-0003  CANCELLED  call the cat",
        "next        APPLY  needs dependencies that are DONE or CANCELLED: T-0001 (APPLY)",
        "            CANCELLED  needs a thought about this attempt",
        "",
        "description",
        "  the Floor's colour",
        "",
        "history",
    ]
    history = [line.partition("  ")[2] for line in lines[16:]]
    assert [line.partition("  #")[0] for line in history] == [
        "T-0004  created  buy paint  medium · depends on T-0001, T-0003",
        "T-0004  INIT → GATHER",
        "T-0004  GATHER → ANALYZE",
        "T-0004  ANALYZE → PLAN",
    ]


def test_the_holder_of_a_task_is_shown_while_it_matters(tmp_path: Path, colibri: Printed) -> None:
    with opened(tmp_path) as db:
        lab = Lab(db)
        for title in ("mine", "free", "done"):
            lab.create(title)
        lab.start("S-1", agent="ada")
        lab.update("T-0001", claim=True, session="S-1")
        lab.update("T-0003", status=[*TO_VERIFY, "DONE"], session="S-1", thought="it holds")
        lab.start("S-2")
        lab.update("T-0002", claim=True, session="S-2")
        lab.update("T-0002", claim=False, session="S-2")
    _, out, _ = colibri(tmp_path, "tasks")
    assert out.splitlines() == [
        "INIT  2",
        "  T-0001  mine  medium · held by S-1",
        "  T-0002  free  medium",
        "",
        "DONE  1",
        "  T-0003  done  medium",
    ]
    _, out, _ = colibri(tmp_path, "tasks", "T-0001")
    assert "held by     S-1 · ada · last sign of life 2026-01-01T00:00:00.0000" in out
    assert out.splitlines()[-1].split("  ")[1:3] == ["T-0001", "claimed"]
    _, out, _ = colibri(tmp_path, "tasks", "T-0002")
    assert "held by" not in out
    history = [line.split("  ")[2] for line in out.partition("\nhistory\n")[2].splitlines()]
    assert history == ["created", "claimed", "released"]
    _, out, _ = colibri(tmp_path, "tasks", "--json")
    held = [task["holder"] for task in json.loads(out)["states"]["INIT"]["tasks"]]
    assert held == ["S-1", None]


def test_a_task_that_was_taken_over_says_from_whom(tmp_path: Path, colibri: Printed) -> None:
    with opened(tmp_path) as db:
        lab = Lab(db)
        lab.create("mine")
        lab.start("S-1", agent="ada")
        lab.update("T-0001", claim=True, session="S-1")
        lab.start("S-2")
        lab.update("T-0001", status="GATHER", session="S-2", minutes=0)
    _, out, _ = colibri(tmp_path, "tasks", "T-0001")
    taken = "INIT → GATHER, taken over from S-1, silent for 0 minutes"
    assert f"T-0001  {taken}  #" in out
    assert taken in colibri(tmp_path, "log", "--kind", "task")[1]
    assert f"T-0001  {taken}  #" in colibri(tmp_path, "trail", "S-2")[1]


def test_the_json_of_one_task_adds_to_the_task_what_it_needs_and_its_history(
    workshop: Workshop, colibri: Printed
) -> None:
    _, out, _ = colibri(workshop.path, "tasks", workshop.plan, "--json")
    task = json.loads(out)
    assert (task["status"], task["attempt"], task["blockers"]) == ("DONE", 2, [])
    assert (task["next_states"], task["needs"], task["dependencies"]) == ([], {}, [])
    history = task["history"]
    assert [step["outcome"] for step in history].count("refused") == 1
    assert history[0]["tool"] == "task_create"
    assert [record["kind"] for record in history[0]["records"]] == ["task", "task.text"]
    _, out, _ = colibri(workshop.path, "tasks", workshop.build, "--json")
    task = json.loads(out)
    assert task["dependencies"] == [
        {"task_id": workshop.plan, "status": "DONE", "title": "Draw the plan"}
    ]
    assert task["next_states"] == ["GATHER", "CANCELLED"]


def test_history_tells_changes_retries_thoughts_and_refusals_in_order(
    workshop: Workshop, colibri: Printed
) -> None:
    _, out, _ = colibri(workshop.path, "tasks", workshop.plan)
    history = out.partition("\nhistory\n")[2]
    order = (
        f"{workshop.plan}  created  Draw the plan  high · house",
        "session opened",
        "plan  R-",
        "    North is up.",
        "VERIFY → GATHER, attempt 2",
        "✗ task_update status=DONE  refused ERR_WRITEBACK_REQUIRED",
        "reflection  R-",
        "    The stairs are steep, but legal.",
        "VERIFY → DONE",
    )
    places = [history.index(text) for text in order]
    assert places == sorted(places)


def test_an_unknown_task_is_reported_by_its_full_id(workshop: Workshop, colibri: Printed) -> None:
    code, out, err = colibri(workshop.path, "tasks", "t-9")
    assert (code, out) == (1, "")
    error, found = err.splitlines()
    assert error == "colibri: error: there is no task T-0009"
    assert found == "colibri: hint: colibri tasks lists tasks"


def test_stored_markup_is_text_and_narrow_terminals_wrap_it(
    workshop: Workshop, shown: Shown
) -> None:
    text = shown(40, "tasks", workshop.build)
    assert max(map(len, text.splitlines())) <= 40
    words = " ".join(text.split())
    assert f"Also: {MARKUP} gnp\\u202e.exe" in words
    assert f"created Build the house {IMAGE}" in words


def test_the_board_of_a_terminal_wraps_under_its_titles(board: Path, shown: Shown) -> None:
    text = shown(40, "tasks", project=board)
    assert "\n  T-0002  paint it  critical · house ·\n          waits for T-0001 (APPLY)\n" in text
