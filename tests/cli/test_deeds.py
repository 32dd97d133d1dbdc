"""How people see what hosts report: in the trail, the log, the counts, the search and the brief."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from colibri.store import deed_list
from tests.support.ledger_writer import Lab, disable_triggers, opened
from tests.support.sample_project import Printed

HOST: dict[str, Any] = {"host_session": "h-1"}
NOTHING: dict[str, Any] = {**HOST, "class_": None}


@pytest.fixture
def worked(tmp_path: Path) -> Path:
    """A session whose host reports what its agent does."""
    with opened(tmp_path) as db:
        lab = Lab(db)
        task = lab.create("fix it").task_id
        lab.client = "h-1"
        lab.deed(**NOTHING, event="session.start", host_version="2.1")
        lab.start("S-1", agent="ada")
        lab.update(task, status="GATHER", session="S-1", agent="ada")
        lab.deed(**NOTHING, event="prompt")
        lab.deed(**HOST, event="tool.begin", use="u-1", tool="Edit", class_="edit")
        lab.deed(**HOST, use="u-1", tool="Edit", class_="edit", paths=["src/a.py", None])
        lab.deed(**HOST, event="tool.failed", use="u-2", exit=1, command="pytest -q\n  --lf")
        lab.deed(**HOST, use="u-3", exit=0, command="pytest -q")
        lab.use = "u-4"
        lab.think("S-1", "it works", task=task, agent="ada")
        lab.deed(**HOST, event="tool.begin", use="u-4", tool="thought_record", class_="mcp")
        lab.deed(**HOST, use="u-4", tool="thought_record", class_="mcp")
        lab.deed(**HOST, event="tool.denied", use="u-5", command="rm -rf /", lost=2)
        lab.deed(**HOST, event="tool.begin", use="u-6", command="sleep 100")
        lab.deed(**HOST, event="tool.begin", command="no id")
        late = "2026-01-01T00:00:00.000000Z"
        many = [f"src/{name}.py" for name in "abcdefg"]
        lab.deed(**HOST, use="u-7", tool="Read", class_="read", paths=many, late=late)
        lab.deed(**HOST, use="u-8", tool="Grep", class_="other")
        lab.deed(**HOST, use="u-9", class_="run", tool=None, text="captured")
        lab.deed(**NOTHING, event="stop")
    return tmp_path


def heads(out: str) -> list[str]:
    """Each line without its time, its place and what follows."""
    stamp = re.compile(r"^\S+Z  ")
    lines = [stamp.sub("", line) for line in out.splitlines() if stamp.match(line)]
    return [re.sub(r"  (#|R-)\d.*", "", line) for line in lines]


def test_the_trail_has_a_line_for_each_thing_done(worked: Path, colibri: Printed) -> None:
    """Specification 19.8: what failed has a cross; a call of ours is not told twice."""
    code, out, _ = colibri(worked, "trail")
    assert code == 0
    assert heads(out) == [
        "session opened",
        "T-0001  INIT → GATHER, claimed",
        "prompt",
        "edited  src/a.py, a file outside the project",
        "✗ ran  pytest -q --lf  failed, exit 1",
        "ran  pytest -q  exit 0",
        "plan",
        "✗ ran  rm -rf /  denied  2 deeds before it lost",
        "read  src/a.py, src/b.py, src/c.py, src/d.py, src/e.py, 2 more"
        "  late: happened at 2026-01-01T00:00:00.000000Z",
        "used  Grep",
        "ran  a tool",
        "agent stopped",
        "began  sleep 100  no end reported",
    ]


def test_an_edit_that_no_rule_could_judge_is_a_line_of_its_own(
    tmp_path: Path, colibri: Printed
) -> None:
    """Specification 21.8: also if its end is reported, and in the log."""
    with opened(tmp_path) as db:
        lab = Lab(db)
        lab.start("S-1", agent="ada")
        edit: dict[str, Any] = {**HOST, "tool": "Edit", "class_": "edit", "paths": ["a.py"]}
        lab.deed(**edit, event="tool.begin", use="u-1", unjudged="session")
        lab.deed(**edit, use="u-1")
        lab.deed(**edit, event="tool.begin", unjudged="rules")
    why = "not judged by the rule for edits"
    _, out, _ = colibri(tmp_path, "trail", "--all")
    assert [line for line in heads(out) if "a.py" in line] == [
        f"began  a.py  {why}: its session is not known",
        "edited  a.py",
        f"began  a.py  {why}: colibri.toml cannot be used",
    ]
    assert colibri(tmp_path, "log", "--kind", "deed")[1].count(why) == 2
    assert "2 edits not judged by the rule for edits" in colibri(tmp_path, "verify")[1]


def test_the_newest_steps_of_a_trail_are_whole(worked: Path, colibri: Printed) -> None:
    """Specification 19.8: a deed and its text are one step, wherever the list begins."""
    _, out, _ = colibri(worked, "trail", "--json")
    steps = [json.loads(line) for line in out.splitlines()]
    assert all(step["records"][0]["kind"] != "deed.text" for step in steps if step["records"])
    for number in range(1, len(steps)):
        _, out, _ = colibri(worked, "trail", "--json", "--limit", str(number))
        assert [json.loads(line) for line in out.splitlines()] == steps[-number:]


def test_the_text_of_a_deed_is_erased_and_the_trail_says_so(
    worked: Path, colibri: Printed, engine: str
) -> None:
    """Specification 19.1: the deed names where its text is."""
    _, out, _ = colibri(worked, "log", "--kind", "deed.text", "--json")
    seq = next(one["seq"] for one in map(json.loads, out.splitlines()) if "--lf" in str(one))
    code, _, err = colibri(worked, "erase", str(seq - 1), "--reason", "a secret", "--yes")
    assert code == 1 and f"command and paths are in {seq}: " in err
    assert colibri(worked, "erase", str(seq), "--reason", "a secret", "--yes")[0] == 0
    _, out, _ = colibri(worked, "trail")
    assert "✗ ran  a tool [erased]  failed, exit 1" in heads(out)
    assert "--lf" not in colibri(worked, "search", "pytest")[1]
    if engine == "sqlite":
        assert b"--lf" not in (worked / "data" / "colibri.db").read_bytes()
    assert colibri(worked, "verify")[0] == 0


def test_the_log_has_deeds_and_their_texts(worked: Path, colibri: Printed) -> None:
    """Specification 19.8."""
    _, out, _ = colibri(worked, "log", "--kind", "deed", "--kind", "deed.text")
    told = [re.split(r"\s{2,}", line.strip(), maxsplit=3)[2:] for line in out.splitlines()]
    assert told[0] == ["deed", "host session began  claude-code 2.1"]
    assert [line for kind, line in told if line.startswith("began  Edit")]
    assert [line for kind, line in told if kind == "deed.text"][-1].startswith("a captured text")
    code, out, _ = colibri(worked, "log", "5")
    assert code == 0 and "no call wrote this" in out


def test_deeds_are_counted(worked: Path, colibri: Printed) -> None:
    """Specification 19.8: in all, and of each agent."""
    _, out, _ = colibri(worked, "status", "--json")
    assert json.loads(out)["deeds"] == {"total": 15, "failed": 2}
    assert "deeds       15, 2 failed\n" in colibri(worked, "status")[1]
    _, out, _ = colibri(worked, "agents", "--json")
    counted = {one["name"]: (one["deeds"], one["failed"]) for one in json.loads(out)}
    assert counted == {"ada": (14, 2), None: (1, 0)}


def test_commands_are_found_by_their_words(worked: Path, colibri: Printed) -> None:
    """Specification 19.8: all of the words, the newest first."""
    _, out, _ = colibri(worked, "search", "PYTEST", "q", "--json")
    found = json.loads(out)
    assert (found["command_count"], len(found["commands"])) == (2, 2)
    first = found["commands"][0]
    assert (first["command"], first["exit"], first["failed"]) == ("pytest -q", 0, False)
    _, out, err = colibri(worked, "search", "pytest", "--limit", "1")
    assert re.match(r"#\d+ +ran, exit 0  pytest -q  T-0001 · ada · S-1 · ", out)
    assert "1 command left out" in err
    assert "nothing was found" in colibri(worked, "search", "pytest", "nose")[2]


def test_a_search_reads_only_the_texts_that_can_have_the_words(
    worked: Path, colibri: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Specification 19.8: in a large log most commands are skipped; odd letters are not."""
    with opened(worked) as db:
        Lab(db).deed(**HOST, use="u-10", command='Say "\u212aelvin", ma\u017fk')
        Lab(db).deed(**HOST, use="u-11", command='ECHO "a\\tb"\ttwice')
    read: list[bytes] = []

    def load(body: bytes) -> Any:
        read.append(body)
        return json.loads(body)

    monkeypatch.setattr(deed_list, "load", load)
    for word, texts in (("sleep", 1), ("KELVIN", 1), ("mask", 1), ('"a\\tb"', 1), ("\ttwice", 1)):
        read.clear()
        _, out, _ = colibri(worked, "search", word, "--json")
        assert json.loads(out)["command_count"] == (word != "sleep")  # which has not ended
        assert len(read) <= 1 + texts, word


def test_the_brief_has_the_commands_whose_last_run_failed(worked: Path, colibri: Printed) -> None:
    """Specification 19.8: not one that was denied, or has passed since."""
    _, out, _ = colibri(worked, "brief")
    part = out.partition("commands whose last run failed:\n")[2].splitlines()
    assert len(part) == 1 and re.match(r"- record \d+, exit 1 in S-1, 2026-\S+: \"pytest", part[0])
    with opened(worked) as db:
        Lab(db).deed(**HOST, exit=0, command="pytest -q\n  --lf")
    assert "commands whose" not in colibri(worked, "brief")[1]


def test_a_damaged_text_stops_no_list(worked: Path, colibri: Printed) -> None:
    """Specification 19.8: verification names it, everything else goes on."""
    with opened(worked) as db:
        disable_triggers(db)
        for damage in (b"x", b"[]", b'{"command":7}'):
            db.execute(
                "UPDATE ledger SET body = ? WHERE seq = (SELECT max(seq) FROM ledger"
                " WHERE kind = 'deed.text' AND instr(body, CAST('pytest' AS BLOB)))",
                (damage,),
            )
    assert json.loads(colibri(worked, "search", "pytest", "--json")[1])["command_count"] == 0
    assert colibri(worked, "brief")[0] == colibri(worked, "trail")[0] == 0
    assert "[unreadable]" in colibri(worked, "trail")[1]
