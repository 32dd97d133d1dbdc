"""`colibri sessions`: all of them, newest first, for people, pipes and programs."""

import json
from pathlib import Path

import pytest

from tests.support.ledger_writer import Lab, opened
from tests.support.sample_project import Printed, Shown, Workshop

KEYS = [
    *("session_id", "intent", "task_id", "started_at", "record_count", "finalized_at", "root"),
    *("agent_id", "client", "tasks"),
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Four sessions: the second and the third are sealed."""
    with opened(tmp_path) as db:
        lab = Lab(db)
        lab.create("a task")
        for number, intent in enumerate(("one", "two\nlines", "three", "four"), start=1):
            lab.start(f"S-{number}", intent=intent, task="T-0001" if number == 2 else None)
            for _ in range(number):
                lab.think(f"S-{number}")
        lab.seal("S-3")
        lab.seal("S-2")
    return tmp_path


def ids(out: str) -> list[str]:
    return [line.split()[0] for line in out.splitlines()[1:]]


def test_a_pipe_gets_a_table_with_everything_in_full(project: Path, colibri: Printed) -> None:
    code, out, err = colibri(project, "sessions")
    assert (code, err) == (0, "")
    found = json.loads(colibri(project, "sessions", "--json")[1])["sessions"]
    heading, *rows = (line.split() for line in out.splitlines())
    assert heading == [
        *("SESSION", "TASK", "AGENT", "THOUGHTS", "CREATED", "DONE", "CANCELLED", "OPENED"),
        *("SEALED", "ROOT", "INTENT"),
    ]
    opened_at = found[0]["started_at"]
    assert rows[0] == ["S-4", "-", "-", "4", "0", "0", "0", opened_at, "open", "-", "four"]
    sealed = found[2]
    assert rows[2] == [
        *("S-2", "T-0001", "-", "2", "0", "0", "0"),
        *(sealed["started_at"], sealed["finalized_at"], sealed["root"]),
        "two\\nlines",
    ]


FILTERS = {
    "all": ([], ["S-4", "S-3", "S-2", "S-1"], ""),
    "open": (["--open"], ["S-4", "S-1"], ""),
    "sealed": (["--sealed"], ["S-3", "S-2"], ""),
    "the newest": (["--limit", "3"], ["S-4", "S-3", "S-2"], "1 older session left out"),
    "the newest that are open": (["--open", "--limit", "1"], ["S-4"], "1 older session left out"),
    "without a limit": (["--limit", "0"], ["S-4", "S-3", "S-2", "S-1"], ""),
}


@pytest.mark.parametrize(("options", "wanted", "note"), FILTERS.values(), ids=FILTERS)
def test_filters_narrow_the_list(
    project: Path, colibri: Printed, options: list[str], wanted: list[str], note: str
) -> None:
    code, out, err = colibri(project, "sessions", *options)
    assert (code, ids(out), note in err, bool(err)) == (0, wanted, True, bool(note))
    code, out, err = colibri(project, "sessions", *options, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert [one["session_id"] for one in found["sessions"]] == wanted
    assert (found["total"], found["open"], found["sealed"]) == (4, 2, 2)
    assert [list(one) for one in found["sessions"]] == [KEYS] * len(wanted)


def test_an_empty_list_says_why(project: Path, tmp_path: Path, colibri: Printed) -> None:
    with opened(tmp_path / "empty"):
        pass
    why = "there are no sessions yet; an agent opens one when it starts to work"
    none = (0, "", f"colibri: {why}\n")
    assert colibri(tmp_path / "empty", "sessions") == none
    with opened(tmp_path / "empty") as db:
        Lab(db).start()
    none = (0, "", "colibri: no session matches\n")
    assert colibri(tmp_path / "empty", "sessions", "--sealed") == none


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_terminal_gets_lines_that_fit(workshop: Workshop, shown: Shown, columns: int) -> None:
    text = shown(columns, "sessions")
    assert max(map(len, text.splitlines())) <= columns
    flat = " ".join(text.split())
    assert f"{workshop.open} open “build it <img src=x" in flat
    did = f"{workshop.plan} · 2 thoughts · 1 task done · opened "
    assert f"{workshop.sealed} sealed “draw it first” {did}" in flat
    root = workshop.seal["root"]
    assert root in (text if columns >= len(root) else text.replace("\n", ""))
    assert text.index(workshop.open) < text.index(workshop.sealed)


def test_a_long_intent_wraps_in_its_column_and_is_whole(tmp_path: Path, shown: Shown) -> None:
    intent = " ".join(f"word{number}" for number in range(40))
    with opened(tmp_path) as db:
        lab = Lab(db)
        for id in ("S-1", "S-long-name"):
            lab.start(id, intent=intent)
            lab.think(id)
        lab.seal("S-1")
    text = shown(80, "sessions", project=tmp_path)
    assert f"“{intent}”" in " ".join(text.split())
    rows = text.splitlines()
    column = rows[0].index("“")
    assert [row.index("“") for row in rows if "“" in row] == [column] * 2
    wrapped = [row for row in rows if row.lstrip().startswith("word")]
    assert {len(row) - len(row.lstrip()) for row in wrapped} == {column}
    assert max(map(len, rows)) <= 80
