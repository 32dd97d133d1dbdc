"""What rarely happens to a hook: odd files, locks that fail, a package that is not whole."""

import errno
import fcntl
import json
import os
import signal
import sys
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from colibri import __main__ as program
from colibri import hook
from colibri.cli.commands import hook as command
from colibri.core import canonical
from colibri.core.errors import ColibriError
from colibri.hook import clock, deed, files, lost, report, settings, spool
from colibri.server.boot import Parts
from colibri.store.deeds import Arrival, Deed

ARRIVAL = Arrival(call="c", bind_call="b", at="2026-11-17T00:00:00.000000Z", late=None, lost=0)
_EMPTY: dict[str, Any] = dict.fromkeys(Deed.__slots__)
DEED = Deed(**_EMPTY | {"host": "codex", "event": "stop"})
IN_TIME = lambda: True  # noqa: E731
UNREADABLE = Path("/proc/self/mem")  # a regular file whose first byte cannot be read


def ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have os._exit raise, so that a test can go on."""

    def leave(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(os, "_exit", leave)


def test_an_installation_that_is_not_whole_is_reported_and_harms_nobody(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["colibri", "hook"])
    monkeypatch.setattr(os, "isatty", lambda file: False)
    monkeypatch.setitem(sys.modules, "colibri.hook", None)
    with pytest.raises(SystemExit) as caught:
        program.main()
    assert caught.value.code == 0
    assert "the installation is incomplete" in capsys.readouterr().err


def test_the_command_is_the_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook, "main", lambda: sys.exit(0))
    with pytest.raises(SystemExit):
        command.run(Namespace())


def test_an_error_counts_the_report_that_it_was_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended(monkeypatch)
    project: Any = SimpleNamespace(db_path=str(tmp_path / "colibri.db"), state=None)

    def fail(environ: object, time: clock.Clock) -> str:
        time.pending = project
        raise ZeroDivisionError

    monkeypatch.setattr(hook, "_run", fail)
    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    try:
        with pytest.raises(SystemExit):
            hook.main()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in zip(
            (signal.SIGINT, signal.SIGTERM, signal.SIGHUP), before, strict=True
        ):
            signal.signal(number, handler)
    assert lost.count(project) == 1


def test_a_report_is_counted_when_time_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None, one that is on its way, one that is still being read; always the code of a success."""
    ended(monkeypatch)
    project: Any = SimpleNamespace(db_path=str(tmp_path / "colibri.db"), state=None)
    before = signal.getsignal(signal.SIGALRM)
    try:
        time = clock.Clock()
        signal.setitimer(signal.ITIMER_REAL, 0)
        for pending, find, number in ((None, None, 0), (project, None, 1), (None, project, 2)):
            time.pending, time.find = pending, find and (lambda: project)
            with pytest.raises(SystemExit) as caught:
                signal.raise_signal(signal.SIGALRM)
            assert (caught.value.code, lost.count(project)) == (0, number)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_an_answer_that_is_not_json_binds_nothing() -> None:
    told: dict[str, Any] = {name: None for name in report.Report.__slots__}
    told |= {"class_": "mcp", "tool": "mcp__colibri__audit_session_start"}
    assert deed._answer(report.Report(**told | {"output": ["no", {"text": "JSON"}]})) is None
    right = deed._answer(report.Report(**told | {"output": ["no", {"text": "{}"}]}))
    assert right == canonical.sha256(b"{}").hex()


def test_a_work_tree_names_itself_and_no_repository_next_to_the_project(tmp_path: Path) -> None:
    project, other = tmp_path / "project", tmp_path / "other"
    for folder in (project, other):
        (folder / ".git").mkdir(parents=True)
    tree = files.tree_of(str(project), str(project))
    assert tree is not None
    assert tree.inside(".", str(project)) == "."
    assert files.tree_of(str(other), str(project)) is None


@pytest.mark.skipif(not UNREADABLE.exists(), reason="Linux alone has such a file")
def test_a_file_that_cannot_be_read_has_no_digest() -> None:
    assert files.digest(str(UNREADABLE), IN_TIME) == (None, None)
    assert files._read(str(UNREADABLE), 8) == ""


def test_a_file_that_cannot_be_read_in_time_has_no_digest(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("a")
    assert files.digest(str(path), IN_TIME)[1] == 1
    assert files.digest(str(path), lambda: False) == (None, None)


def test_a_branch_without_a_commit_has_none(tmp_path: Path) -> None:
    git = tmp_path / ".git"
    git.mkdir()
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "packed-refs").write_text(f"{'a' * 40} refs/heads/other\n")
    assert files.git_of(str(tmp_path)) == {"branch": "main", "commit": None}
    (git / "HEAD").unlink()
    (git / "HEAD").mkdir()
    assert files.git_of(str(tmp_path)) is None


def test_results_of_another_form_tell_no_exit_code() -> None:
    assert report._gemini_exit("tool.end", {"tool_response": {"llmContent": 3}}) is None
    assert report._cline_exit("tool.end", {"tool_result": {"output": "3"}}) is None


def test_settings_that_are_no_file_count_as_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "hooks.json")
    assert settings._hooks(str(tmp_path / "hooks.json")) == b""
    assert settings._hooks(str(tmp_path / "missing.json")) == b""
    (tmp_path / "settings.json").write_text(json.dumps({"hooks": {"Stop": []}}))
    assert settings._hooks(str(tmp_path / "settings.json")) == b'{"Stop":[]}'


def test_without_locks_nothing_is_spooled_and_nothing_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = str(tmp_path / "colibri.db")

    def fail(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", fail)
    assert not spool.put(database, DEED, ARRIVAL, lambda tries: False)
    project: Any = SimpleNamespace(db_path=database, state=str(tmp_path))
    lost.add(project)
    assert spool.size(database) == lost.count(project) == 0


def test_a_state_directory_that_cannot_be_made_raises_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for state in (None, str(tmp_path / "file")):
        project: Any = SimpleNamespace(db_path=str(tmp_path / "no" / "colibri.db"), state=state)
        lost.add(project)
        assert lost.count(project) == 0


def test_what_was_told_is_taken_from_both_counters(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    project: Any = SimpleNamespace(db_path=str(folder / "colibri.db"), state=str(tmp_path))
    lost.add(project, 3)
    folder.mkdir()
    lost.add(project, 2)
    lost.settle(project, 5, 1)
    assert lost.count(project) == 1
    assert (folder / "colibri.db-lost").read_text() == "000000000000\n"
    lost.settle(project, 0, 1)
    assert lost.count(project) == 2


def test_a_spool_that_is_full_takes_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = str(tmp_path / "colibri.db")
    assert spool.put(database, DEED, ARRIVAL, lambda tries: False)
    monkeypatch.setattr(spool, "LARGEST", spool.size(database) + 10)
    assert not spool.put(database, DEED, ARRIVAL, lambda tries: False)


def test_a_spool_that_cannot_be_taken_in_is_reported_and_stays() -> None:
    said: list[str] = []

    def fail(path: str) -> int:
        raise ColibriError("the database is busy")

    boot = SimpleNamespace(
        journal=SimpleNamespace(recorder=SimpleNamespace(take_in=fail)),
        log=lambda level, text: said.append(f"{level} {text}"),
    )
    Parts._take_in_deeds(boot, "p/colibri.db")  # type: ignore[arg-type]
    assert said == [
        "warn [colibri] the deeds in p/colibri.db-spool still wait: the database is busy"
    ]
