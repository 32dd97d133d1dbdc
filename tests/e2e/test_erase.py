"""`colibri erase`: next to a running server, judged by the verifiers, at a terminal; refusals."""

import json
import os
import pty
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from colibri import cli
from colibri.cli.commands import erase as command
from colibri.store import ledger, repeats
from colibri.store.erasure import MAX_NAMED
from colibri.store.sqlite import connection
from colibri.store.sqlite.opening import open_reader
from colibri.store.sqlite.task_search import BATCH
from colibri.store.verify import verify
from tests.support.client import COLIBRI, PATIENCE, Server, environment, execute
from tests.support.ledger_reader import holding, reading
from tests.support.ledger_writer import Lab, opened, story
from tests.support.made_up_secrets import GITHUB
from tests.support.terminal import TYPED, run_in_terminal
from tests.verify.conftest import MODULE, load_verifier

JSON = dict[str, Any]
ROOT = Path(__file__).parents[2]
PROGRAM = (sys.executable, "-m", "colibri", "erase")
MARK = "ሀለሐመሠረ"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with the story in its database; 9 is the first thought of S-1."""
    with opened(tmp_path) as db:
        story(Lab(db))
    return tmp_path


def erase(project: Path, *arguments: str, **env: str) -> tuple[int, str, str]:
    """Run it in the project; exit code, stdout, stderr."""
    done = execute([*PROGRAM, *arguments], cwd=project, env=environment(**env))
    return done.returncode, done.stdout, done.stderr


def left(project: Path) -> list[str]:
    """The files of the database that still contain the text."""
    files = (project / "data").glob("*")
    return [path.name for path in files if any(c.encode() in path.read_bytes() for c in MARK)]


# Next to a running server.


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path, COLIBRI) as running:
        yield running


def tell(server: Server) -> dict[str, int]:
    """A sealed session and a task full of the mark; returns the record of each text."""
    task = server.data("task_create", title=MARK, description=MARK * 500)["task_id"]
    session = server.call("audit_session_start", intent=MARK, session_id="S-1", task_id=task)
    thought = {"session_id": "S-1", "type": "plan", "task_id": task, "agent_id": "ada"}
    seq = server.data("thought_record", content=MARK * 5000, **thought)["seq"]
    server.data("thought_record", content="harmless", **thought)
    for _ in range(BATCH):  # fills a batch, so that the search index has it
        server.data("task_create", title="harmless")
    server.data("task_update", task_id=task, title="harmless")
    server.data("merkle_finalize", session_id="S-1")
    opened_at = session["_meta"]["colibri/receipt"]["seq"] - 1
    return {"thought": seq, "session.open": opened_at, "task.text": 3}


def test_the_text_is_gone_while_the_server_runs_on(server: Server) -> None:
    """Specification 9.10: from the file and its write-ahead log; tools show [erased]."""
    seqs = tell(server)
    assert left(server.project) == ["colibri.db-wal"]
    named = [str(seq) for seq in seqs.values()]
    code, out, err = erase(server.project, *named, "--reason", "it was never meant", "--yes")
    assert (code, err) == (0, "")
    assert left(server.project) == []
    assert "no trace is left" in out
    assert server.data("task_get", task_id="T-0001")["title"] == "[erased]"
    thoughts = server.data("thought_record_list")["records"]
    assert [thought["content"] for thought in thoughts] == ["[erased]", "harmless"]
    found = server.data("audit_verify_chain")
    assert (found["valid"], found["breaks"]) == (True, [])
    assert (len(found["erased"]), found["erased_count"]) == (8, 8)
    assert "erased" in [note["code"] for note in found["not_checked"]]
    assert server.data("task_update", task_id="T-0001", title="new")["title"] == "new"
    assert server.data("merkle_root", session_id="S-1", proof_for=f"R-{seqs['thought']}")["proof"]
    assert server.data("audit_verify_chain")["valid"] is True
    assert server.close() == 0


def test_erasing_a_call_also_erases_the_text_that_it_sent(server: Server) -> None:
    """Otherwise it would stay readable in the next record, unnoticed."""
    seqs = tell(server)
    call = seqs["thought"] - 1
    code, out, err = erase(server.project, str(call), "--reason", "a slip", "--yes")
    assert (code, err) == (0, "")
    rows = [line.split(maxsplit=2) for line in out.splitlines()[1:3]]
    assert rows == [
        [str(call), "call.enter", "named"],
        [str(call + 1), "thought", f"written by the call {call}"],
    ]
    assert "erased 2 payloads; record " in out
    thoughts = server.data("thought_record_list")["records"]
    assert [thought["content"] for thought in thoughts] == ["[erased]", "harmless"]


def judged(bundles: list[tuple[Path, JSON]]) -> Iterator[tuple[str, JSON]]:
    """The verdicts of the two verifiers that share no code with the server."""
    python = load_verifier()
    for path, known in bundles:
        head = (known["head"]["seq"], known["head"]["leaf"]) if "head" in known else None
        verdict = python.verify(path.read_bytes(), root=known.get("root"), head=head)
        yield path.name, verdict.as_json()
    if shutil.which("node"):
        items = [{"path": str(path), **known} for path, known in bundles]
        done = subprocess.run(
            ["node", str(ROOT / "tests" / "verify" / "batch.mjs"), str(MODULE)],
            input=json.dumps({"job": "verify", "items": items}).encode(),
            capture_output=True,
            check=True,
        )
        names = [path.name for path, _ in bundles]
        yield from zip(names, json.loads(done.stdout), strict=True)


def test_every_verifier_reports_it_and_the_proofs_hold(server: Server) -> None:
    """Specification 9.10: proofs stay valid, and what is erased is reported."""
    seqs = tell(server)
    root = {"root": server.data("merkle_root", session_id="S-1")["root"]}
    kept = server.call("task_list")["_meta"]["colibri/receipt"]
    named = [str(seq) for seq in seqs.values()]
    code, out, _ = erase(server.project, *named, "--reason", "asked for", "--yes", "--json")
    gone = [one["seq"] for one in json.loads(out)["erased"]]
    assert (code, len(gone)) == (0, 8)
    assert server.close() == 0
    scopes: dict[str, tuple[list[str], JSON, list[int]]] = {
        "log": (["--all"], {"head": {"seq": kept["seq"], "leaf": kept["head"]}}, gone),
        "session": (["--session", "S-1"], root, gone),
        "thought": (["--thought", f"R-{seqs['thought']}"], root, [seqs["thought"]]),
    }
    for name, (what, _, _) in scopes.items():
        assert (
            cli.main(["export", *what, "-o", str(server.project / name), *at(server.project)]) == 0
        )
    bundles = [(server.project / name, known) for name, (_, known, _) in scopes.items()]
    assert not any(c.encode() in path.read_bytes() for path, _ in bundles for c in MARK)
    for name, verdict in judged(bundles):
        assert (verdict["verdict"], verdict["findings"]) == ("good", []), name
        assert verdict["erased"] == scopes[name][2]
        assert "erased" in [one["code"] for one in verdict["not_checked"]]


def test_an_erased_text_is_not_compared_with_its_digest(server: Server) -> None:
    """Formats §5: also if only the text is erased, and not the call that sent it."""
    text = tell(server)["task.text"]
    assert server.close() == 0
    with opened(server.project) as db:
        Lab(db, ledger.log_id(db)).erase(text)
    assert cli.main(["verify", *at(server.project)]) == 1
    with reading(server.database) as db:
        found = verify(db, pause=lambda: None)
    assert {one.what for one in found.breaks} == {"altered-task"}  # the row still has the text


# What it records and prints.


def at(project: Path) -> list[str]:
    return ["--project", str(project)]


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of the commands that run in this process."""
    for name in os.environ:
        if name.startswith(("COLIBRI_", "AMS_", "CLAUDE_")):
            monkeypatch.delenv(name)


Capture = pytest.CaptureFixture[str]


def run(project: Path, *arguments: str) -> int:
    return cli.main(["erase", *arguments, *at(project)])


def record(project: Path, seq: int) -> tuple[JSON, JSON]:
    """The header and the payload of a record."""
    with reading(project / "data" / "colibri.db") as db:
        (row,) = ledger.rows(db, [seq])
        header = row.header(ledger.log_id(db))
    assert row.body is not None
    return json.loads(header), json.loads(row.body)


def test_it_says_what_is_erased_and_where_else_it_may_be(project: Path) -> None:
    backup = project / "data" / "colibri.db.backup-v1-20260101T000000Z"
    backup.touch()
    code, out, err = erase(project, "R-9", "--reason", "asked for", "--yes")
    assert (code, err) == (0, "")
    table, texts, rest = out.splitlines()[:3], out.splitlines()[3:-4], out.splitlines()[-4:]
    assert table == [
        "SEQ  KIND        WHY",
        "8    call.enter  the call that wrote 9",
        "9    thought     named",
    ]
    assert (texts[0], texts[2]) == ("8  call.enter", "9  thought")
    assert rest == [
        "erased 2 payloads; record 55 documents it",
        f"no trace is left in {project}/data/colibri.db and its write-ahead log",
        "not touched: backups, exported bundles, the client's logs, free space on the disk",
        f"not touched: {backup}",
    ]


def test_a_command_is_gone_from_every_report_of_its_tool_call(project: Path) -> None:
    """Specification 9.10: the end is named, and the begin has the same command."""
    with opened(project) as db:
        for event in ("tool.begin", "tool.end"):
            Lab(db).deed(host_session="h", use="u", event=event, command=MARK)
        seq = Lab(db).seqs("deed.text")[-1]
    code, out, err = erase(project, str(seq), "--reason", "asked for", "--yes")
    assert (code, err) == (0, "")
    assert out.splitlines()[1:3] == [
        f"{seq - 2}   deed.text  reported of the same call as {seq}",
        f"{seq}   deed.text  named",
    ]
    assert "no trace is left" in out
    assert left(project) == []


def test_what_other_records_repeat_is_said_before_and_after(project: Path) -> None:
    """Specification 9.10: of a host without ids the begin is not known to be of the same call."""
    with opened(project) as db:
        for event in ("tool.begin", "tool.end"):
            Lab(db).deed(host_session="h", event=event, command=MARK)
        begin, end = Lab(db).seqs("deed.text")
    (project / "data" / "colibri.db-spool").write_text("{}\n")
    code, out, _ = erase(project, str(end), "--reason", "asked for", "--yes")
    assert code == 0
    repeated = f"1 other record repeats one of these texts: {begin}"
    assert f"not erased unless you name them: {repeated}" in out.splitlines()
    assert repeated in out.splitlines()
    assert "no trace is left" not in out
    assert "no trace of these payloads is left" in out
    assert "colibri.db-spool: reports of hooks that are not recorded yet" in out
    assert left(project) == ["colibri.db"]
    code, out, _ = erase(project, str(begin), "--reason", "asked for", "--yes", "--json")
    assert (code, json.loads(out)["repeated"], left(project)) == (0, [], [])


def test_too_many_texts_are_not_looked_for_and_that_is_said(
    project: Path, plain: None, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """Specification 9.10."""
    monkeypatch.setattr(repeats, "MAX_TEXTS", 1)
    assert run(project, "9", "29", "--reason", "asked for", "--yes", "--json") == 0
    assert json.loads(capsys.readouterr().out)["repeated"] is None
    with opened(project) as db:
        Lab(db).deed(command="one thing", paths=["another.py"])
        seq = Lab(db).seqs("deed.text")[-1]
    assert run(project, str(seq), "--reason", "asked for", "--yes") == 0
    out = capsys.readouterr().out
    assert "more than 1 texts: whether other records repeat one is not known" in out
    assert "no trace is left" not in out


def test_the_record_says_what_was_erased_by_whom_and_why(
    project: Path, plain: None, capsys: Capture
) -> None:
    """docs/formats.md §3: seqs and reason; the header's agent is who ran the command."""
    why = f"it held {GITHUB}"
    assert run(project, "9", "27", "--reason", why, "--yes", "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    header, payload = record(project, 55)
    assert payload == {"seqs": [8, 9, 26, 27], "reason": "it held [redacted:github-token]"}
    assert header["agent"] == f"user:{pwd.getpwuid(os.getuid()).pw_name}"
    assert (header["session"], header["task"]) == (None, None)
    assert printed["erased"][1] == {"seq": 9, "kind": "thought", "why": "named"}
    assert printed["erasure"]["seq"] == 55
    assert (printed["gone"], printed["backups"]) == (True, [])


def test_many_texts_take_several_records(tmp_path: Path, plain: None, capsys: Capture) -> None:
    """docs/formats.md §1: verifiers refuse a payload with too many items."""
    with opened(tmp_path) as db:
        lab = Lab(db)
        lab.start()
        thoughts = [lab.think().seq for _ in range(MAX_NAMED // 2 + 1)]
    assert run(tmp_path, *map(str, thoughts), "--reason", "asked for", "--yes") == 0
    last = thoughts[-1] + 3
    assert (
        f"erased 1,002 payloads; records {last - 1} to {last} document it"
        in capsys.readouterr().out
    )
    named = [record(tmp_path, seq)[1]["seqs"] for seq in (last - 1, last)]
    assert [len(seqs) for seqs in named] == [MAX_NAMED, 2]
    assert cli.main(["verify", "--project", str(tmp_path)]) == 0
    bundle = str(tmp_path / "all.json")
    assert cli.main(["export", "--all", "-o", bundle, "--project", str(tmp_path)]) == 0
    assert "judged GOOD" in capsys.readouterr().out


def test_somebody_without_a_name_has_a_number(
    project: Path, plain: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container without a passwd entry for the user."""

    def unknown(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert run(project, "9", "--reason", "asked for", "--yes") == 0
    assert record(project, 55)[0]["agent"] == f"user:{os.getuid()}"


def test_of_a_task_record_it_says_where_the_texts_are(project: Path, plain: None) -> None:
    """Those of the same call, else all of the task; the suggested command works."""
    with opened(project) as db:
        lab = Lab(db)
        lab.create("another")
        lab.update("T-0002", title="again")
        lab.update("T-0002", status="GATHER")
        texts, moves = lab.seqs("task.text")[-2:], lab.seqs("task")[-2:]
    for seq, held in ((moves[0], texts[:1]), (moves[1], texts)):
        code, _, err = erase(project, str(seq), "--reason", "asked for", "--yes")
        numbers = " ".join(map(str, held))
        listed = numbers.replace(" ", ", ")
        assert (code, err.splitlines()[1]) == (
            1,
            f"colibri: hint: title and description are in {listed}:"
            f" {TYPED} erase {numbers} --reason TEXT",
        )
    assert erase(project, *map(str, texts), "--reason", "asked for", "--yes")[0] == 0
    _, _, err = erase(project, str(moves[0]), "--reason", "asked for", "--yes")
    kinds = "--kind task.text --kind thought --kind session.open --kind deed.text"
    assert f"{TYPED} log {kinds} lists" in err


def test_in_mode_test_its_ids_repeat(
    project: Path, plain: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Specification 10.6: TEST derives every id and nonce from the seed."""
    monkeypatch.setenv("COLIBRI_MODE", "TEST")
    calls = []
    for name in ("one", "two"):
        copy = project / f"{name}.db"
        shutil.copy(project / "data" / "colibri.db", copy)
        monkeypatch.setenv("COLIBRI_DB_PATH", str(copy))
        assert run(project, "9", "--reason", "asked for", "--yes") == 0
        with reading(copy) as db:
            calls.append(db.execute("SELECT call, kind FROM ledger WHERE seq = 55").get)
    assert calls[0] == calls[1]
    assert calls[0][1] == "erasure"


# Asking first.


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("yes", 0), ("n", 1), ("", 1)])
def test_at_a_terminal_it_asks_first(project: Path, answer: str, code: int) -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "wb", buffering=0) as keyboard:
        keyboard.write(f"{answer}\n".encode())
        done = subprocess.run(
            [*PROGRAM, "9", "--reason", "asked for"],
            cwd=project,
            env=environment(),
            stdin=theirs,
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE,
            check=False,
        )
        os.close(theirs)
    assert "erase these payloads for good? [y/N] " in done.stderr
    assert done.returncode == code
    with reading(project / "data" / "colibri.db") as db:
        payloads = db.execute("SELECT count(body) FROM ledger WHERE seq IN (8, 9)").get
    assert payloads == (0 if code == 0 else 2)


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_elsewhere_it_does_nothing_without_yes(project: Path, more: list[str]) -> None:
    before = (project / "data" / "colibri.db").read_bytes()
    code, out, err = erase(project, "9", "--reason", "asked for", *more)
    assert (code, bool(out)) == (1, not more), "--json prints only what was erased"
    assert err == "colibri: error: nothing was erased: this cannot be undone; confirm with --yes\n"
    assert (project / "data" / "colibri.db").read_bytes() == before


def test_what_was_not_shown_is_not_erased(
    project: Path, plain: None, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """While the person decides, another record with the text may be written."""

    with opened(project) as db:
        Lab(db).create("another")
        seq = Lab(db).seqs("task.text")[-1]

    def meanwhile(*shown: object) -> None:
        with opened(project) as db:
            Lab(db).update("T-0002", title="again")

    monkeypatch.setattr(command, "_confirm", meanwhile)
    assert run(project, str(seq), "--reason", "asked for") == 1
    assert "a new record repeats one of the texts; run the command again" in capsys.readouterr().err
    assert record(project, seq)[1]["set"]["title"] == [None, "another"]


# Refusals.

REFUSED = {
    "no such record": (["999"], 1, "there is no record 999"),
    "a kind that stays": (["2"], 1, "record 2 is a task, which stays"),
    "zero": (["0"], 1, "there is no record 0"),
}


@pytest.mark.parametrize(("arguments", "code", "message"), REFUSED.values(), ids=REFUSED)
def test_it_refuses_and_says_why(
    project: Path, plain: None, capsys: Capture, arguments: list[str], code: int, message: str
) -> None:
    assert run(project, *arguments, "--reason", "asked for", "--yes") == code
    assert message in capsys.readouterr().err


def test_an_earlier_erasure_is_reported(project: Path, plain: None, capsys: Capture) -> None:
    assert run(project, "9", "--reason", "asked for", "--yes") == 0
    assert run(project, "9", "--reason", "asked for", "--yes") == 1
    assert capsys.readouterr().err == "colibri: error: record 9 is already erased\n"


@pytest.mark.parametrize("mode", ["READONLY", "MINIMAL"])
def test_a_mode_that_changes_nothing_erases_nothing(
    project: Path, plain: None, monkeypatch: pytest.MonkeyPatch, capsys: Capture, mode: str
) -> None:
    monkeypatch.setenv("COLIBRI_MODE", mode)
    assert run(project, "9", "--reason", "asked for", "--yes") == 73
    said = f"colibri: error: COLIBRI_MODE is {mode}, which changes nothing: unset it\n"
    assert capsys.readouterr().err == said


def test_a_missing_database_is_not_created(tmp_path: Path, plain: None, capsys: Capture) -> None:
    assert run(tmp_path, "9", "--reason", "asked for", "--yes") == 75
    assert "there is no database at" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


# When it cannot be done now.


def test_a_writer_that_keeps_the_lock_is_reported(
    project: Path, plain: None, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(connection, "BUSY_TIMEOUT_MS", 50)
    with holding(project / "data" / "colibri.db"):
        assert run(project, "9", "--reason", "asked for", "--yes") == 75
    assert "the erasure failed: database is locked" in capsys.readouterr().err
    assert record(project, 9)[1]["content"] == "first look"


def test_a_database_that_contradicts_itself_is_reported(
    project: Path, plain: None, capsys: Capture
) -> None:
    with opened(project) as db:
        db.execute("DELETE FROM meta")
    assert run(project, "9", "--reason", "asked for", "--yes") == 75
    assert "the erasure failed: the database does not say" in capsys.readouterr().err


def test_old_pages_that_a_reader_holds_are_reported_and_can_be_removed_later(
    project: Path, plain: None, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """The erasure itself is done; only old pages in the write-ahead log are left."""
    monkeypatch.setattr(command, "PATIENCE_MS", 50)
    with opened(project) as db:
        Lab(db).think("S-2", MARK * 100)
        seq = str(Lab(db).seqs("thought")[-1])
        with open_reader(str(project / "data" / "colibri.db")) as reader:
            reader.execute("SELECT count(*) FROM ledger").fetchall()
            assert run(project, seq, "--reason", "asked for", "--yes", "--json") == 75
            printed = capsys.readouterr()
            assert json.loads(printed.out)["gone"] is False
            assert "old pages are left" in printed.err
            assert "another program is still reading the write-ahead log" in printed.err
            assert "then colibri erase --finish" in printed.err
        reader.close()
        assert "colibri.db-wal" in left(project)
        with holding(project / "data" / "colibri.db"):
            assert run(project, "--finish") == 75
        assert "database is locked" in capsys.readouterr().err
        assert run(project, "--finish") == 0
        assert "no old page is left" in capsys.readouterr().out
        assert left(project) == []


def test_a_person_sees_the_text_before_it_is_erased(tmp_path: Path) -> None:
    """The text of the thought and of its call; a long one is cut, with its length."""
    with opened(tmp_path) as db:
        lab = Lab(db)
        lab.start("S-1")
        short = lab.think("S-1", "the password is hunter2").seq
        long = lab.think("S-1", "x" * 5_000).seq
    ask = [
        sys.executable,
        "-m",
        "colibri",
        "erase",
        str(short),
        str(long),
        "--reason",
        "it slipped in",
    ]
    code, shown = run_in_terminal(ask, cwd=tmp_path, env=environment(NO_COLOR="1"), typed=b"n\n")
    before, question, after = shown.partition("erase these payloads for good? [y/N] ")
    assert (code, question != "", "nothing was erased" in after) == (1, True, True)
    assert "    the password is hunter2\n" in before
    assert "xxx… (5,000 characters)" in " ".join(before.split())
    assert record(tmp_path, short)[1]["content"] == "the password is hunter2"
    for more in ([], ["--yes"]):
        out = erase(tmp_path, str(short), "--reason", "it slipped in", *more)[1]
        assert "    the password is hunter2\n" in out, "in a pipe too, and without a question"


def test_of_very_many_texts_the_first_are_shown(
    tmp_path: Path, plain: None, capsys: Capture
) -> None:
    with opened(tmp_path) as db:
        lab = Lab(db)
        lab.start()
        thoughts = [lab.think(content=f"text {number}").seq for number in range(12)]
    assert run(tmp_path, *map(str, thoughts), "--reason", "asked for", "--yes") == 0
    out = capsys.readouterr().out
    assert ("    text 9\n" in out, "    text 10\n" in out) == (True, False)
    assert "… and 4 records more" in out
