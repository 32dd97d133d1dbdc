"""`colibri backup`: what is in a copy, what it never harms, and four servers that go on writing."""

import json
import re
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from colibri import cli
from colibri.store.sqlite import backup as store
from tests.support.busy_servers import (
    Writer,
    acknowledged,
    four_writers,
    plain_copy_lacks_something,
    wait_for_calls,
)
from tests.support.client import environment, execute_raw
from tests.support.ledger_reader import eventually, missing, verified
from tests.support.ledger_writer import opened
from tests.support.mounts import small_disk
from tests.support.program import colibri, database_of, head_of, inside, tamper
from tests.support.terminal import TYPED, run_in_terminal

Capture = pytest.CaptureFixture[str]

ROUNDS = 2  # more in scripts/torture backup


def files(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_copy_is_verified_and_its_head_reported(project: Path) -> None:
    head = head_of(database_of(project))
    code, out, err = colibri(project, "backup", "copy.db")
    size = (project / "copy.db").stat().st_size
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"wrote copy.db: 54 records, {size:,} bytes, checked",
        f"head   {head}",
        f"keep   this head somewhere else: {TYPED} verify --head compares it with the log",
    ]
    assert files(project) == ["copy.db", "data"], "one file"
    assert stat.S_IMODE((project / "copy.db").stat().st_mode) == 0o600
    assert verified(project / "copy.db").record_count == 54


def test_json_says_the_same_for_programs(project: Path, capsys: Capture) -> None:
    code, out, err = inside(capsys, "backup", "copy.db", "--json")
    seq, leaf = head_of(database_of(project)).split(":")
    assert (code, err) == (0, "")
    assert json.loads(out) == {
        "file": "copy.db",
        "bytes": (project / "copy.db").stat().st_size,
        "replaced": False,
        "log": "colibri/" + "0123456789abcdef" * 2,
        "records": 54,
        "head": {"seq": int(seq), "leaf": leaf},
    }


def test_on_a_terminal_there_is_progress_and_colour(project: Path) -> None:
    impatient = (
        "from colibri.cli.show import progress; progress.EVERY = 0\n"
        "from colibri.store.sqlite import backup; backup.STEP = 10\n"
        "from colibri.__main__ import main; main()"
    )
    code, shown = run_in_terminal(
        [sys.executable, "-c", impatient, "backup", "copy.db"],
        cwd=project,
        env=environment(NO_COLOR=""),
        columns=120,
    )
    assert code == 0
    assert re.search(r"copying \[#{3,5}\.{19,21}\] 10 of \d\d pages, ", shown)
    assert "\x1b[1;38;5;28mwrote copy.db: 54 records" in shown


def test_a_directory_gets_a_file_named_after_the_time(project: Path, capsys: Capture) -> None:
    (project / "copies").mkdir()
    code, out, _ = inside(capsys, "backup", "copies", "--json")
    (name,) = files(project / "copies")
    assert (code, json.loads(out)["file"]) == (0, f"copies/{name}")
    made = time.strptime(name, "colibri-%Y%m%dT%H%M%SZ.db")
    assert abs(time.time() - time.mktime((*made[:8], 0)) + time.timezone) < 60


def test_an_empty_log_has_no_head_to_keep(tmp_path: Path, capsys: Capture) -> None:
    with opened(tmp_path):
        pass
    code, out, _ = inside(capsys, "backup", str(tmp_path / "copy.db"), "--project", str(tmp_path))
    assert (code, out.count("\n")) == (0, 1)
    assert "copy.db: 0 records" in out


def test_what_is_there_is_replaced_only_by_force(project: Path, capsys: Capture) -> None:
    (project / "copy.db").write_text("mine")
    code, out, err = inside(capsys, "backup", "copy.db")
    assert (code, out) == (1, "")
    assert err == (
        "colibri: error: copy.db already exists\ncolibri: hint: name another file, or add --force\n"
    )
    assert (project / "copy.db").read_text() == "mine"
    code, out, _ = inside(capsys, "backup", "copy.db", "--force")
    assert (code, "checked, replacing the old file" in out) == (0, True)
    assert verified(project / "copy.db").record_count == 54


HARMFUL = {
    "the database itself": ("data/colibri.db", "is the database itself"),
    "a link to it": ("link.db", "link.db is a link to "),
    "a second name of it": ("hard.db", "is the database itself"),
    "beside another's log": ("other.db", "there is a file other.db-wal next to other.db"),
    "no such directory": ("nowhere/copy.db", "there is no directory"),
}


@pytest.mark.parametrize(("target", "why"), HARMFUL.values(), ids=HARMFUL.keys())
def test_a_target_that_would_do_harm_is_refused(
    project: Path, capsys: Capture, target: str, why: str
) -> None:
    """Even by force; SQLite would play a foreign log into the copy."""
    (project / "link.db").symlink_to("data/colibri.db")
    (project / "hard.db").hardlink_to(database_of(project))
    (project / "other.db-wal").write_text("")
    before = files(project), files(project / "data"), database_of(project).read_bytes()
    refused = 75 if "nowhere" in target else 1
    assert cli.main(["backup", target, "--force"]) == refused
    assert why in capsys.readouterr().err
    assert before == (files(project), files(project / "data"), database_of(project).read_bytes())


def test_a_log_that_is_not_sound_is_not_copied(project: Path, capsys: Capture) -> None:
    """A good copy is not replaced by a bad one; exit 1."""
    assert inside(capsys, "backup", "copy.db")[0] == 0
    good = (project / "copy.db").read_bytes()
    tamper(database_of(project), "UPDATE ledger SET at = 'then'")
    code, out, err = inside(capsys, "backup", "copy.db", "--force")
    assert (code, out) == (1, "")
    assert "the log is not sound, so no copy was kept: record 1: altered-header: " in err
    assert "; and " in err
    assert "colibri: hint: colibri verify shows the details" in err
    assert (project / "copy.db").read_bytes() == good
    assert files(project) == ["copy.db", "data"]


def test_without_a_database_nothing_is_made(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = inside(capsys, "backup", "copy.db")
    assert (code, files(tmp_path)) == (75, [])
    assert "there is no database at" in err


def test_without_room_nothing_is_left(project: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "64k") as disk:
        code, _, err = colibri(project, "backup", "disk/copy.db")
        assert (code, files(disk)) == (75, [])
    assert "the disk is full\ncolibri: hint: try another place\n" in err


@pytest.mark.parametrize("when", ["copy", "check", "publish"])
def test_an_interrupt_leaves_nothing(
    project: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        assert len(files(project)) == 1 + (when != "copy")
        raise KeyboardInterrupt

    monkeypatch.setattr(store, when, interrupt)
    assert cli.main(["backup", "copy.db"]) == 130
    assert files(project) == ["data"]


@pytest.fixture
def writers(tmp_path: Path) -> Iterator[list[Writer]]:
    with four_writers(tmp_path) as started:
        yield started


@pytest.mark.timeout(90)
def test_under_four_writing_servers_every_copy_is_whole(
    tmp_path: Path, writers: list[Writer]
) -> None:
    """Each ends, verifies, and holds every call that was answered before it began.

    The control is a plain copy of the file without its write-ahead log: the same question finds
    what it lacks, or that it is torn.
    """
    for number in range(ROUNDS):
        wait_for_calls(writers)
        before = acknowledged(writers)
        copy = tmp_path / f"copy-{number}.db"
        code, out, err = colibri(tmp_path, "backup", copy.name, "--json")
        assert (code, err) == (0, "")
        assert missing(copy, before) == []
        assert verified(copy).record_count == json.loads(out)["records"]
        copy.unlink()
    eventually(
        lambda: plain_copy_lacks_something(tmp_path, writers), "a plain copy that lacks a call"
    )
    assert [writer.failure for writer in writers] == [None] * 4


def test_a_real_signal_leaves_nothing(project: Path) -> None:
    """Ctrl-C while pages are copied."""
    program = (
        "import os, signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from colibri.cli.show.progress import Bar\n"
        "Bar.__call__ = lambda *_: os.kill(os.getpid(), signal.SIGINT)\n"
        "from colibri.__main__ import main; main()"
    )
    done = execute_raw([sys.executable, "-c", program, "backup", "copy.db"], cwd=project)
    assert (done.returncode, done.stdout) == (130, b"")
    assert done.stderr == b"colibri: error: interrupted\n"
    assert files(project) == ["data"]
