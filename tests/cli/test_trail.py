"""`colibri trail`: what happened, in order, as it happens."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest

from colibri.store import ledger
from tests.support import engines
from tests.support.client import COLIBRI, PATIENCE, Server, environment
from tests.support.ledger_reader import eventually
from tests.support.ledger_writer import TO_VERIFY, Lab, opened, story
from tests.support.program import INTERRUPTIBLE, UNMEASURED
from tests.support.sample_project import LONG, WORDS, Printed, Shown, Workshop
from tests.support.terminal import run_in_terminal

JSON = dict[str, Any]
STAMP = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z  ")


def steps(text: str) -> list[JSON]:
    return [json.loads(line) for line in text.splitlines()]


def heads(text: str) -> list[str]:
    """The first lines of the steps, without their times."""
    return [STAMP.sub("", line) for line in text.splitlines() if STAMP.match(line)]


def lines_of(step: JSON) -> int:
    """A change is one line, however many steps it took; so is a call that wrote nothing."""
    kinds = [record["kind"].removesuffix(".text") for record in step["records"]]
    return len(kinds) - max(0, kinds.count("task") - 1) or 1


def test_a_session_is_shown_from_its_opening_past_its_seal(
    workshop: Workshop, colibri: Printed
) -> None:
    code, out, err = colibri(workshop.path, "trail", workshop.sealed)
    assert (code, err) == (0, "")
    title, *_ = out.splitlines()
    assert title.startswith(f"{workshop.sealed}  sealed  2 thoughts · 1 task done · opened ")
    told = [re.sub(r"  (#|R-).*", "", line) for line in heads(out)]
    task = workshop.plan
    on = [f"{task}  {before} → {after}" for before, after in pairwise(TO_VERIFY)]
    assert told == [
        "session opened",
        "plan",
        f"{task}  INIT → GATHER, claimed",
        *on,
        f"{task}  VERIFY → GATHER, attempt 2",
        *on,
        "✗ task_update status=DONE  refused ERR_WRITEBACK_REQUIRED",
        "reflection",
        f"{task}  VERIFY → DONE",
        "sealed  2 thoughts",
        "✗ thought_record content=(8 bytes) type=plan  refused ERR_ALREADY_FINALIZED",
    ]
    assert f"    root {workshop.seal['root']}\n" in out
    assert "    It fits on one page.\n    The stairs are steep, but legal.\n" in out


def test_what_else_was_recorded_meanwhile_is_counted(tmp_path: Path, colibri: Printed) -> None:
    """What another process does is not the session's, even to a task that both speak of."""
    with Server(tmp_path, COLIBRI) as server, Server(tmp_path, COLIBRI) as other:
        server.data("audit_session_start", intent="try", session_id="mine")
        assert other.data("task_create", title="nobody says why")["task_id"] == "T-0001"
        think = {"type": "plan", "content": "so", "task_id": "T-0001"}
        server.data("thought_record", session_id="mine", **think)
        other.call("task_update", task_id="T-0001", status="GATHER")
    last = "… {} other records from other work at that time: colibri trail --all --project " + str(
        tmp_path
    )
    _, out, _ = colibri(tmp_path, "trail", "mine")
    assert out.splitlines()[-1] == last.format(7)
    for narrowed in (["--limit", "1"], ["--type", "plan"], ["--json"]):
        assert "other records" not in colibri(tmp_path, "trail", "mine", *narrowed)[1]
    with Server(tmp_path, COLIBRI) as server:
        server.data("merkle_finalize", session_id="mine")
        server.data("task_create", title="after the seal")
        server.call("thought_record", session_id="mine", type="plan", content="too late")
    _, out, _ = colibri(tmp_path, "trail", "mine")
    assert out.splitlines()[-1] == last.format(7)
    with Server(tmp_path, COLIBRI) as server:
        server.data("audit_session_start", intent="on T-0001", session_id="all", task_id="T-0001")
        server.data("task_update", task_id="T-0001", status="ANALYZE")
        server.call("task_update", task_id="T-0001", status="DONE")
        server.data("task_list")
    _, out, _ = colibri(tmp_path, "trail", "all")
    assert "other records" not in out
    assert [line.split("  ")[0] for line in heads(out)[1:]] == [
        "T-0001",
        "✗ task_update status=DONE",
        "task_list",
    ]


def test_without_an_argument_it_is_the_newest_open_session(
    workshop: Workshop, colibri: Printed
) -> None:
    _, out, _ = colibri(workshop.path, "trail")
    assert out.startswith(f"{workshop.open}  open  6 thoughts · 1 task cancelled · ")
    assert heads(out)[-1].startswith("… audit_verify_chain  open: it is running, or its server")
    assert f"thought  [erased]  R-{workshop.erased}" in out
    assert LONG in out
    assert WORDS in out


def test_without_an_open_session_it_is_the_newest(tmp_path: Path, colibri: Printed) -> None:
    with opened(tmp_path) as db:
        lab = story(Lab(db))
        lab.seal("S-2")
    _, out, _ = colibri(tmp_path, "trail")
    assert out.startswith("S-2  sealed  2 thoughts")


def test_without_any_session_it_says_what_to_do(tmp_path: Path, colibri: Printed) -> None:
    with opened(tmp_path) as db:
        Lab(db).create()
    code, out, err = colibri(tmp_path, "trail")
    assert (code, out) == (1, "")
    assert err.startswith(
        "colibri: error: there is no session yet\ncolibri: hint: an agent opens one"
    )
    _, out, _ = colibri(tmp_path, "trail", "--all")
    assert heads(out)[0].startswith("T-0001  created  a task  medium")


def test_a_resumed_session_a_repeated_call_and_an_erased_title_are_shown(
    tmp_path: Path, colibri: Printed
) -> None:
    with Server(tmp_path, COLIBRI) as server:
        server.data("audit_session_start", intent="try", session_id="mine", agent_id="ada")
        for _ in range(2):
            server.data("task_create", title="once", key="k")
        server.data("task_update", task_id="T-0001", status="GATHER", title="a secret")
    with Server(tmp_path, COLIBRI) as server:
        server.data("audit_session_start", session_id="mine", resume=True)
    _, out, _ = colibri(tmp_path, "trail", "mine", "--json")
    first, again = [step for step in steps(out) if step["tool"] == "task_create"]
    assert (again["repeats"], again["records"]) == (first["seq"] - 1, [])
    with opened(tmp_path) as db:
        Lab(db, ledger.log_id(db)).erase(
            *(
                record["seq"]
                for step in steps(out)
                for record in step["records"]
                if "a secret" in str(record["payload"])
            )
        )
    _, out, _ = colibri(tmp_path, "trail", "mine")
    told = [line.split("  #")[0] for line in heads(out)]
    assert told[2].endswith(f"  repeats the call of #{first['seq'] - 1}, changed nothing")
    assert told[3] == "T-0001  INIT → GATHER, claimed, [erased]"
    assert told[4] == "session resumed"
    assert "session.resume  by server " in colibri(tmp_path, "log")[1]


def test_a_task_shows_every_record_that_names_it(workshop: Workshop, colibri: Printed) -> None:
    _, out, _ = colibri(workshop.path, "trail", workshop.paint)
    assert out.splitlines()[0] == f"{workshop.paint}  CANCELLED  Paint the door"
    told = heads(out)
    assert told[0].startswith(f"{workshop.paint}  created  Paint the door  critical · 日本語  #")
    assert re.fullmatch(rf"decision  R-\d+ · {workshop.open}", told[1])
    assert told[2].startswith(f"{workshop.paint}  INIT → CANCELLED, claimed  #")


def test_an_id_of_both_is_the_sessions(tmp_path: Path, colibri: Printed) -> None:
    with opened(tmp_path) as db:
        lab = Lab(db)
        lab.create()
        lab.start("T-0001")
    _, out, _ = colibri(tmp_path, "trail", "T-0001")
    assert out.startswith("T-0001  open  0 thoughts")


def test_everything_shows_also_what_names_nothing(workshop: Workshop, colibri: Printed) -> None:
    _, out, _ = colibri(workshop.path, "trail", "--all")
    told = "\n".join(heads(out))
    assert "✗ task_create  invalid INVALID_PARAMS" in told
    assert "✗ no_such\\x1b[2J\\x1b]0;owned\\x07  invalid -32602" in told
    assert "server_ping  ok, " in told
    assert f"erasure  erased records {workshop.erased - 1}, {workshop.erased}: “asked for”" in told


def test_the_server_is_named_where_it_changes(workshop: Workshop, colibri: Printed) -> None:
    _, out, _ = colibri(workshop.path, "trail", "--all")
    named = [n for n, line in enumerate(heads(out)) if "server " in line]
    assert named == [0, len(heads(out)) - 1]


def test_json_is_one_object_a_line_for_each_call(workshop: Workshop, colibri: Printed) -> None:
    code, out, err = colibri(workshop.path, "trail", "--all", "--json")
    assert (code, err) == (0, "")
    assert out.isascii()
    found = steps(out)
    assert all(
        step.keys()
        == {
            *("seq", "at", "call", "session", "task", "agent", "server", "client", "tool"),
            *("arguments", "outcome", "code", "duration_ms", "repeats", "records"),
        }
        for step in found
    )
    assert [step["seq"] for step in found] == sorted(step["seq"] for step in found)
    outcomes = {step["outcome"] for step in found}
    assert outcomes == {"ok", "refused", "invalid", "open", None}
    refused = next(step for step in found if step["code"] == "ERR_WRITEBACK_REQUIRED")
    assert refused["arguments"] == {"status": "DONE", "task_id": workshop.plan}
    assert (refused["tool"], refused["task"], refused["records"]) == (
        "task_update",
        workshop.plan,
        [],
    )
    thought = next(step for step in found if step["seq"] == workshop.hostile)
    (record,) = thought["records"]
    assert record["payload"]["content"].startswith("<img src=x onerror=alert(1)> gnp\u202e.exe")


@pytest.mark.parametrize("whose", ["sealed", "plan", "all"])
def test_types_and_limits_narrow(workshop: Workshop, colibri: Printed, whose: str) -> None:
    given = ["--all"] if whose == "all" else [getattr(workshop, whose)]
    _, out, _ = colibri(workshop.path, "trail", *given, "--json", "--limit", "2")
    _, whole, _ = colibri(workshop.path, "trail", *given, "--json")
    ended = [step for step in steps(whole) if step["outcome"] != "open"]
    assert [step for step in steps(out) if step["outcome"] != "open"] == ended[-2:]
    types = ("--type", "plan", "--type", "reflection")
    _, out, _ = colibri(workshop.path, "trail", *given, "--json", *types)
    every = [step["records"][0]["payload"]["type"] for step in steps(out)]
    assert set(every) == {"plan", "reflection"}
    _, out, _ = colibri(workshop.path, "trail", *given, "--json", *types, "--limit", "1")
    assert [step["records"][0]["payload"]["type"] for step in steps(out)] == every[-1:]


def test_an_erased_thought_shows_that_its_type_is_unknown(
    workshop: Workshop, colibri: Printed
) -> None:
    _, out, err = colibri(workshop.path, "trail", workshop.open, "--type", "reflection")
    assert f"R-{workshop.erased}" not in out
    assert err == "colibri: 1 thought left out: erased or unreadable, so their type is unknown\n"
    assert colibri(workshop.path, "trail", workshop.open)[2] == ""
    assert colibri(workshop.path, "trail", workshop.sealed, "--type", "plan")[2] == ""


def test_unknown_ids_are_exit_code_1_with_near_ones(workshop: Workshop, colibri: Printed) -> None:
    near = workshop.open[:-1] + "\x1b"
    code, out, err = colibri(workshop.path, "trail", near)
    assert (code, out) == (1, "")
    error, hint = err.splitlines()
    assert error == f"colibri: error: there is no session or task {workshop.open[:-1]}\\x1b"
    assert hint.startswith(f"colibri: hint: did you mean {workshop.open}? colibri sessions lists ")


# What reaches a terminal.


@pytest.mark.parametrize("columns", [40, 120])
def test_hostile_text_stays_within_its_place(
    workshop: Workshop, shown: Shown, colibri: Printed, columns: int
) -> None:
    """One thought looks like a step of its own, others would move the cursor or never end."""
    text = shown(columns, "trail", NO_COLOR="1")
    lines = text.splitlines()
    assert max(map(len, lines)) <= columns
    assert set(text) & set(map(chr, (*range(10), *range(11, 32), *range(127, 160)))) == set()
    assert "\u202e" not in text
    assert "gnp\\u202e.exe" in text
    _, out, _ = colibri(workshop.path, "trail", "--json")
    begun = [line for line in lines if re.match(r"\d\d:\d\d:\d\d  ", line)]
    assert len(begun) == sum(map(lines_of, steps(out)))
    assert "14:00:00  plan  R-1" in text
    assert text.count("wrap") == WORDS.count("wrap")
    assert text.count("x" * 20) > 64_000 // columns


def test_a_terminal_gets_colours_unless_it_wants_none(workshop: Workshop) -> None:
    command = [sys.executable, "-m", "colibri", "trail", workshop.sealed]
    surroundings = environment(**engines.environment(workshop.path))
    found = [
        run_in_terminal(command, cwd=workshop.path, env={**surroundings, "NO_COLOR": value})[1]
        for value in ("", "1")
    ]
    assert "\x1b[38;5;163mVERIFY\x1b[0m → \x1b[38;5;28mDONE\x1b[0m" in found[0]
    assert "\x1b[1;38;5;63mplan" in found[0]
    assert "\x1b" not in found[1], "bold and dim are escapes too"
    assert "VERIFY → DONE" in found[1]


# Live.

Watch = Callable[..., "Watching"]


class Watching:
    """A `--follow` that is running."""

    def __init__(self, project: Path, *arguments: str, **env: str) -> None:
        self.errors = project / f"stderr-{os.urandom(4).hex()}"
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                [*INTERRUPTIBLE, *arguments, "--follow"],
                cwd=project,
                env=environment(**engines.environment(project) | env),
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def line(self) -> str:
        """The next line; pytest's own timeout bounds it."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def said(self) -> str:
        return self.errors.read_text()

    def end(self) -> int:
        assert self.process.stdout is not None
        self.process.stdout.close()
        return self.process.wait(PATIENCE)


@pytest.fixture
def watch() -> Iterator[Watch]:
    started: list[Watching] = []

    def start(project: Path, *arguments: str, **env: str) -> Watching:
        started.append(Watching(project, *arguments, **env))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.end()


def test_a_session_is_followed_until_it_is_sealed(tmp_path: Path, watch: Watch) -> None:
    """Live, through a real server; it waits for a session, and ends by itself with exit code 0."""
    with Server(tmp_path, COLIBRI) as server:
        server.data("server_ping")
        server.data("task_create", title="early")
        seen = watch(tmp_path, "trail", "--json")
        eventually(lambda: "waiting for a session" in seen.said(), "the words about waiting")
        server.data("audit_session_start", intent="live", session_id="L")
        assert json.loads(seen.line())["records"][0]["payload"]["intent"] == "live"
        think = {"session_id": "L", "type": "plan"}
        server.data("thought_record", **think, content="first")
        assert json.loads(seen.line())["records"][0]["payload"]["content"] == "first"
        server.data("task_create", title="late")
        assert json.loads(seen.line())["tool"] == "task_create"
        server.data("thought_record", **think, content="about it", task_id="T-0002")
        assert json.loads(seen.line())["records"][0]["payload"]["content"] == "about it"
        server.call("task_update", task_id="T-0002", status="DONE")
        assert json.loads(seen.line())["code"] == "ERR_INVALID_TRANSITION"
        server.data("merkle_finalize", session_id="L")
        assert json.loads(seen.line())["tool"] == "merkle_finalize"
        assert seen.line() == ""
        assert seen.end() == 0


def test_a_project_can_be_watched_before_its_first_server(tmp_path: Path, watch: Watch) -> None:
    """Specification 22.6, as in README: first the command that watches, then the client."""
    engines.require_sqlite("a ledger that the first server makes")
    seen = watch(tmp_path, "trail", "--json")
    eventually(lambda: "waiting for a server to create " in seen.said(), "the words about waiting")
    with Server(tmp_path, COLIBRI) as server:
        server.data("audit_session_start", intent="live", session_id="L")
        assert json.loads(seen.line())["records"][0]["payload"]["intent"] == "live"
        seen.process.send_signal(signal.SIGINT)
        assert seen.end() == 130


def test_watching_blocks_no_writer_and_ends_with_ctrl_c(
    tmp_path: Path, watch: Watch, engine: str
) -> None:
    """Each look is over before the next: the write-ahead log can be emptied meanwhile."""
    with opened(tmp_path) as db:
        lab = story(Lab(db))
        trail = watch(tmp_path, "trail", "S-2", **UNMEASURED)
        log = watch(tmp_path, "log", "--limit", "1", **UNMEASURED)
        assert trail.line().startswith("S-2  open")
        for _ in range(6):  # three steps with a text each
            trail.line()
        assert "call.exit     task_list" in log.line()
        lab.think("S-2", "news")
        assert "  plan  R-" in trail.line()
        assert trail.line() == "    news\n"
        assert "call.enter    thought_record" in log.line()
        assert "thought       plan “news”" in log.line()
        if engine == "sqlite":
            assert next(db.execute("PRAGMA wal_checkpoint(TRUNCATE)")) == (0, 0, 0)
        for one in (trail, log):
            one.process.send_signal(signal.SIGINT)
        assert [trail.process.wait(PATIENCE), log.process.wait(PATIENCE)] == [130, 130]
        assert trail.said() == ""


def test_a_database_that_is_being_created_is_waited_for(
    tmp_path: Path, colibri: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First there is none, then an empty file, and then the database."""
    engines.require_sqlite("a ledger that the first server makes")
    path, waits = tmp_path / "data" / "colibri.db", count()

    def wait(_: float) -> None:
        match next(waits):
            case 0:
                path.parent.mkdir()
                path.touch()
            case 1:
                with opened(tmp_path) as db:
                    story(Lab(db))
            case _:
                raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", wait)
    code, out, err = colibri(tmp_path, "trail", "S-2", "--follow")
    assert (code, err.count("\n"), next(waits)) == (130, 1, 3)
    assert err.startswith(f"colibri: waiting for a server to create {path}")
    assert out.startswith("S-2  open")


@pytest.mark.parametrize("command", [("trail", "S-2"), ("log", "--limit", "0")])
def test_what_comes_is_shown_until_an_interrupt(
    tmp_path: Path, colibri: Printed, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    """The same within this process: the first wait brings news, the second ends it."""
    engines.require_sqlite("a look again and again")
    with opened(tmp_path) as db:
        lab, waits = story(Lab(db)), count()

        def wait(_: float) -> None:
            if next(waits):
                raise KeyboardInterrupt
            lab.think("S-2", "news")

        monkeypatch.setattr("time.sleep", wait)
        code, out, err = colibri(tmp_path, *command, "--follow")
    assert (code, err) == (130, "")
    assert out.count("news") == 1


def test_a_sealed_session_needs_no_following(workshop: Workshop, colibri: Printed) -> None:
    assert colibri(workshop.path, "trail", workshop.sealed, "--follow")[0] == 0


def test_a_database_that_is_replaced_ends_it(
    tmp_path: Path, colibri: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Following a deleted file would never show anything."""
    engines.require_sqlite("a file in its place")
    with opened(tmp_path) as db:
        story(Lab(db))
    path = tmp_path / "data" / "colibri.db"
    monkeypatch.setattr("time.sleep", lambda _: path.rename(tmp_path / "moved"))
    code, _, err = colibri(tmp_path, "log", "--follow")
    assert code == 75
    assert f"{path} was deleted or replaced\n" in err


@pytest.mark.parametrize("command", ["trail", "log"])
def test_an_interrupt_without_following_is_reported(
    workshop: Workshop, colibri: Printed, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    def interrupt(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(ledger, "last_seq", interrupt)
    code, _, err = colibri(workshop.path, command)
    assert (code, err) == (130, "colibri: error: interrupted\n")
