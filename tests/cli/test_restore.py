"""`colibri restore`: what it checks, what it asks, what it keeps, and what it refuses."""

import json
import os
import signal
import stat
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from colibri import cli
from colibri.cli.commands import restore as command
from colibri.store import ledger
from colibri.store.sqlite import backup as store
from colibri.store.sqlite.opening import open_writer
from colibri.store.sqlite.schema import load_migrations
from tests.support.client import COLIBRI as SERVE
from tests.support.client import Server, environment, execute_raw
from tests.support.ledger_reader import booted, reading, verified
from tests.support.ledger_writer import Lab, opened
from tests.support.program import colibri, database_of, head_of, inside, tamper, tell_story
from tests.support.terminal import COLIBRI, TYPED, run_in_terminal

Capture = pytest.CaptureFixture[str]
OTHER = "colibri/" + "f" * 32


@pytest.fixture
def project(project: Path, capsys: Capture) -> Path:
    """The same with copy.db, a backup."""
    assert inside(capsys, "backup", "copy.db")[0] == 0
    return project


def go_on(project: Path, *, erase: bool = False) -> str:
    """Five more records, six with an erasure; the head, as a receipt would give it."""
    with opened(project) as db:
        lab = Lab(db)
        lab.think("S-2", "one more")
        lab.read()
        if erase:
            lab.erase(9)
    return head_of(database_of(project))


def records(path: Path) -> int:
    with reading(path) as db:
        newest = ledger.head(db)
    return newest.seq if newest else 0


def data_files(project: Path) -> list[str]:
    return sorted(path.name for path in (project / "data").iterdir())


def kept(project: Path) -> list[Path]:
    return sorted((project / "data").glob("*.before-restore-*"))


def everything(project: Path) -> dict[str, bytes]:
    """All that is stored: without what is there for locking, and empty logs."""
    found = {path.name: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    return {
        name: data for name, data in found.items() if data and not name.endswith(("-shm", ".lock"))
    }


# What is restored.


def test_an_older_copy_is_reported_and_needs_force(project: Path) -> None:
    """It lists what would be lost and changes nothing; with --force it keeps the old one."""
    head = go_on(project)
    before = everything(project)
    code, out, err = colibri(project, "restore", "copy.db")
    assert (code, out) == (1, "")
    assert err == (
        "colibri: error: the copy is older: it ends at record 54, 5 records before the database\n"
        "colibri: hint: 5 records from 2026-01-01T00:00:00.000001Z to 2026-01-01T00:00:00.000002Z"
        " would be lost (2 call.enter, 2 call.exit, 1 thought);"
        " --force restores anyway\n"
    )
    assert everything(project) == before
    code, out, err = colibri(project, "restore", "copy.db", "--force")
    (old,) = kept(project)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"restored {database_of(project)} from copy.db",
        "compared the copy is older: it ends at record 54, 5 records before the database",
        f"head     {head_of(database_of(project))}",
        f"before   {old}",
        f"back     {TYPED} restore {old}",
        "note     receipts and heads after record 54 no longer match this log:"
        f" {TYPED} verify --head reports it",
    ]
    assert (records(database_of(project)), records(old)) == (54, 59)
    assert verified(old).record_count == 59
    code, out, _ = colibri(project, "verify", "--head", head)
    assert (code, "the log was truncated, or rolled back to an older copy" in out) == (1, True)


def test_the_way_back_is_the_same_command(project: Path, capsys: Capture) -> None:
    """What was kept is a copy like any other."""
    go_on(project)
    assert inside(capsys, "restore", "copy.db", "--force")[0] == 0
    (old,) = kept(project)
    code, out, _ = inside(capsys, "restore", str(old))
    assert code == 0
    assert "the copy holds the whole database and 5 records more" in out
    assert "note" not in out
    assert records(database_of(project)) == 59
    assert len(kept(project)) == 2, "two in one second have two names"


def test_over_a_missing_database_it_just_works(project: Path) -> None:
    """A new machine: there is nothing to lose."""
    (project / "new").mkdir()
    code, out, err = colibri(project, "restore", "copy.db", "--project", "new")
    assert (code, err) == (0, "")
    assert "compared there was no database\n" in out
    assert "before" not in out
    assert data_files(project / "new") == ["colibri.db", "colibri.db.lock"]
    assert stat.S_IMODE(database_of(project / "new").stat().st_mode) == 0o600
    with Server(project / "new", SERVE) as server:
        assert server.data("audit_verify_chain")["record_count"] == 54
        assert server.close() == 0


def test_a_restored_log_continues_where_it_ended(project: Path, capsys: Capture) -> None:
    assert inside(capsys, "restore", "copy.db")[0] == 0
    go_on(project)
    assert verified(database_of(project)).record_count == 59


def other_log(project: Path) -> list[str]:
    (project / "other").mkdir()
    with opened(project / "other", log=OTHER) as db:
        Lab(db, OTHER).read()
    return ["other/data/colibri.db"]


def other_way(project: Path) -> list[str]:
    with opened(project) as db:
        Lab(db).read("task_get")
    tell_story(project / "other")
    with opened(project / "other") as db:
        Lab(db).read()
    return ["other/data/colibri.db"]


def damaged(project: Path) -> list[str]:
    with database_of(project).open("r+b") as file:
        file.write(b"\0" * 4_096)
    return ["copy.db"]


def nameless(project: Path) -> list[str]:
    tamper(database_of(project), "DELETE FROM meta")
    return ["copy.db"]


def only_its_log(project: Path) -> list[str]:
    database_of(project).unlink()
    (project / "data" / "colibri.db-wal").write_bytes(b"something")
    return ["copy.db"]


def erased_since(project: Path) -> list[str]:
    go_on(project, erase=True)
    return ["copy.db"]


RISKS: dict[str, tuple[Callable[[Path], list[str]], str]] = {
    "another log: the copy belongs to another log": (other_log, "older receipts"),
    "diverged: the copy and the database diverge after record 54": (other_way, "after record 54"),
    "unknown: the database cannot be read: cannot open": (damaged, "older receipts"),
    "unknown: the database does not say which log it holds": (nameless, "older receipts"),
    "unknown: there is no database at ": (only_its_log, "older receipts"),
    "older: texts erased since then would be readable again": (erased_since, "after record 54"),
}


@pytest.mark.parametrize("told", RISKS)
def test_what_could_be_lost_is_reported_first_and_kept_after(
    project: Path, capsys: Capture, told: str
) -> None:
    (make, gone), (relation, why) = RISKS[told], told.split(": ", 1)
    arguments = make(project)
    before = everything(project)
    code, out, err = inside(capsys, "restore", *arguments, "--json")
    found = json.loads(out)
    assert (code, found["restored"], found["relation"]) == (1, False, relation)
    assert why in err
    assert everything(project) == before
    code, out, _ = inside(capsys, "restore", *arguments, "--force")
    assert code == 0
    assert gone in out
    assert ("back     colibri restore" in out) is (relation != "unknown")
    assert verified(database_of(project)).valid
    old = before.get("colibri.db") or before["colibri.db-wal"]
    assert len(old) in [path.stat().st_size for path in kept(project)]
    assert not (project / "data" / "colibri.db-wal").exists()


def test_json_says_what_was_done(project: Path, capsys: Capture) -> None:
    go_on(project)
    code, out, err = inside(capsys, "restore", "copy.db", "--force", "--json")
    (old,) = kept(project)
    seq, leaf = head_of(database_of(project)).split(":")
    assert (code, err) == (0, "")
    assert json.loads(out) == {
        "restored": True,
        "database": str(database_of(project)),
        "older_schema": False,
        "relation": "older",
        "reason": None,
        "common": 54,
        "lost": 5,
        "gained": 0,
        "kinds": {"call.enter": 2, "call.exit": 2, "thought": 1},
        "since": "2026-01-01T00:00:00.000001Z",
        "until": "2026-01-01T00:00:00.000002Z",
        "head": {"seq": int(seq), "leaf": leaf},
        "kept": [str(old)],
        "accepted": 0,
    }


def test_an_empty_log_can_be_restored(project: Path, capsys: Capture) -> None:
    with opened(project / "empty"):
        pass
    code, out, _ = inside(capsys, "restore", "empty/data/colibri.db", "--force")
    assert (code, "head     none: it is empty" in out) == (0, True)


def test_a_copy_of_an_older_schema_is_restored_and_migrated_by_the_next_start(
    project: Path, capsys: Capture
) -> None:
    """Specification 15.8: schema not newer."""
    old = open_writer(
        str(project / "older.db"),
        lock_timeout=1.0,
        monotonic=time.monotonic,
        sleep=time.sleep,
        stamp="",
        new_log=lambda: OTHER,
        migrations=load_migrations()[:2],
    )
    Lab(old.db, OTHER).create("from before there were sessions")
    old.close()
    code, out, _ = inside(capsys, "restore", "older.db", "--force")
    assert code == 0
    assert "schema   from an older Colibri" in out
    with opened(project) as db:
        assert db.pragma("user_version") == load_migrations()[-1].version
    assert verified(database_of(project)).record_count == 4


# The question.


@pytest.mark.parametrize(("typed", "wanted"), [("yes\n", 0), ("no\n", 1), ("\n", 1), ("\x04", 1)])
def test_on_a_terminal_it_asks(project: Path, typed: str, wanted: int) -> None:
    go_on(project)
    code, shown = run_in_terminal(
        [*COLIBRI, "restore", "copy.db"],
        cwd=project,
        env=environment(NO_COLOR="1"),
        columns=300,
        typed=typed.encode(),
    )
    assert code == wanted
    assert "the copy is older: it ends at record 54, 5 records before the database\n" in shown
    assert "restore anyway? type yes: " in shown
    assert ("nothing was changed" in shown) is (wanted == 1)
    assert records(database_of(project)) == (59 if wanted else 54)


def test_a_terminal_is_not_asked_when_nothing_is_lost(project: Path) -> None:
    before = everything(project)
    code, shown = run_in_terminal(
        [*COLIBRI, "restore", "copy.db"], cwd=project, env=environment(NO_COLOR="1"), columns=300
    )
    assert (code, shown) == (
        0,
        "nothing to do: the copy and the database hold the same records, and"
        f" {database_of(project)} is sound\n",
    )
    assert everything(project) == before


def test_the_same_copy_is_put_in_place_of_what_is_damaged_or_by_force(
    project: Path, capsys: Capture
) -> None:
    """The chain of hashes may be the same where a payload is not."""
    code, out, _ = inside(capsys, "restore", "copy.db", "--json")
    found = json.loads(out)
    assert (code, found["restored"], found["relation"]) == (0, False, "identical")
    tamper(database_of(project), ALTERED)
    code, out, _ = inside(capsys, "restore", "copy.db", "--json")
    found = json.loads(out)
    assert (code, found["restored"], found["relation"]) == (0, True, "identical")
    assert verified(database_of(project)).valid
    code, out, _ = inside(capsys, "restore", "copy.db", "--force")
    assert (code, "compared the copy and the database hold the same records" in out) == (0, True)


# What is refused.


def test_while_a_server_runs_it_is_refused(project: Path) -> None:
    before = database_of(project).read_bytes()
    with Server(project, SERVE) as server:
        booted(server)
        code, out, err = colibri(project, "restore", "copy.db", "--force")
        assert (code, out) == (75, "")
        assert "a Colibri server is using" in err
        assert "colibri: hint: close the clients of this project: their servers end" in err
        assert server.data("server_health")["condition"]["state"] == "NORMAL"
        assert server.close() == 0
    assert kept(project) == []
    assert before[:16] == database_of(project).read_bytes()[:16]
    assert colibri(project, "restore", "copy.db", "--force")[0] == 0


def test_while_somebody_reads_it_is_refused(project: Path, capsys: Capture) -> None:
    """A server in mode READONLY holds no lock of ours, but SQLite's."""
    with opened(project):
        pass
    with closing(store.open_copy(str(database_of(project)))) as reader, reader:
        assert ledger.head(reader) is not None
        code, _, err = inside(capsys, "restore", "copy.db", "--force")
    assert (code, "another program has" in err) == (75, True)
    assert kept(project) == []


def damage_page(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(4_096 * 4)
        file.write(b"\xff" * 4_096)


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100_000])


def overwrite(path: Path) -> None:
    path.write_bytes(b"not a database at all " * 500)


ALTERED = "UPDATE ledger SET body = CAST(replace(body, 'it holds', 'it broke') AS BLOB)"

UNSOUND: dict[str, tuple[Callable[[Path], object], int, str]] = {
    "a damaged page": (damage_page, 1, "copy.db is not sound: "),
    "cut short": (cut_short, 75, "it is not a database, or a damaged one"),
    "an altered thought": (lambda copy: tamper(copy, ALTERED), 1, "record 27: altered-payload"),
    "without its ledger": (
        lambda copy: tamper(copy, "DROP TABLE ledger"),
        1,
        "copy.db is not sound: foreign-schema: ",
    ),
    "overwritten": (overwrite, 75, "it is not a database, or a damaged one"),
    "newer than this Colibri": (
        lambda copy: tamper(copy, "PRAGMA user_version = 99"),
        75,
        "has schema version 99",
    ),
    "missing": (Path.unlink, 75, "there is no database at copy.db"),
}


@pytest.mark.parametrize(("spoil", "wanted", "why"), UNSOUND.values(), ids=UNSOUND.keys())
def test_a_copy_that_is_not_sound_is_refused_and_nothing_changes(
    project: Path, capsys: Capture, spoil: Callable[[Path], object], wanted: int, why: str
) -> None:
    """Not even by force."""
    spoil(project / "copy.db")
    before = everything(project)
    code, out, err = inside(capsys, "restore", "copy.db", "--force")
    assert (code, out) == (wanted, "")
    assert why in err
    assert "colibri: hint: " in err
    assert ("colibri: hint: nothing was changed" in err) is (wanted == 1)
    assert everything(project) == before


def test_the_way_back_is_of_the_same_project(project: Path, capsys: Capture) -> None:
    """Copied into another directory it must not replace the ledger there."""
    _, out, _ = inside(capsys, "restore", "copy.db", "--force", "--project", str(project))
    (old,) = kept(project)
    assert f"back     colibri restore {old} --project {project}\n" in out


def test_the_database_itself_is_no_copy(project: Path, capsys: Capture) -> None:
    (project / "link.db").symlink_to("data/colibri.db")
    (project / "hard.db").hardlink_to(database_of(project))
    for name in ("data/colibri.db", "link.db", "hard.db"):
        code, _, err = inside(capsys, "restore", name)
        assert (code, "is the database itself" in err) == (1, True)


# Being interrupted.


@pytest.mark.parametrize("when", ["copy", "check", "compare", "put"])
def test_an_interrupt_changes_nothing(
    project: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    before = everything(project)
    monkeypatch.setattr(store, when, interrupt)
    assert cli.main(["restore", "copy.db", "--force"]) == 130
    assert capsys.readouterr().err == "colibri: error: interrupted\n"
    assert everything(project) == before


KILLED = """
import os, signal
from colibri.store.sqlite import backup
def killed(*_):
    os.kill(os.getpid(), signal.SIGKILL)
setattr(os, {call!r}, killed)
from colibri.__main__ import main; main()
"""


@pytest.mark.parametrize("call", ["link", "replace"])
def test_killed_at_the_worst_moment_the_old_database_is_in_place(project: Path, call: str) -> None:
    """And the next restore works."""
    go_on(project)
    done = execute_raw(
        [sys.executable, "-c", KILLED.format(call=call), "restore", "copy.db", "--force"],
        cwd=project,
    )
    assert done.returncode == -signal.SIGKILL
    assert verified(database_of(project)).record_count == 59
    assert colibri(project, "restore", "copy.db", "--force")[0] == 0
    assert verified(database_of(project)).record_count == 54


def test_a_name_that_is_taken_is_not_taken_again(project: Path) -> None:
    path = str(database_of(project))
    first = command._aside(path)
    Path(f"{first}-wal").write_text("")
    second = command._aside(path)
    assert second != first
    assert os.path.dirname(second) == os.path.dirname(first)  # noqa: PTH120 - these are texts
