"""Changed files that no deed explains, as the command finds them in git for a report."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from colibri.cli.why import unexplained
from tests.support.ledger_writer import Lab, opened
from tests.support.sample_project import Printed
from tests.support.worked_repository import Work, git

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="it takes git")

NOTHING = {"files": [], "total": 0, "more": False, "problem": None}


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Work]:
    git(tmp_path, "init", "-q")
    with opened(tmp_path) as db:
        yield Work(tmp_path, Lab(db))


def changes(colibri: Printed, work: Work, *id: str) -> Any:
    """What a report of a project, a session or a task says of them."""
    page = work.folder / "report.html"
    code, _, err = colibri(work.folder, "report", *id, "-o", str(page), "--force")
    assert code == 0, err
    found = re.search(
        '<script type="application/json" id="changes">(.*?)</script>', page.read_text()
    )
    assert found is not None
    return json.loads(found[1])


def test_files_that_git_shows_as_changed_are_explained_or_named(
    work: Work, colibri: Printed
) -> None:
    """Specification 23.9: by commit, or as not committed; the ledger and the page are not named."""
    assert changes(colibri, work) is None  # no host reports edits
    work.edit("a", "one\n")
    work.edit("b", "one\n")
    assert changes(colibri, work) == NOTHING  # there is no commit yet
    commit = work.commit()
    git(work.folder, "rm", "-q", "--cached", "data/colibri.db", "report.html")
    assert {"path": "data/colibri.db", "commit": commit} in changes(colibri, work)["files"]


def test_each_change_that_nobody_reported_is_named_once(work: Work, colibri: Printed) -> None:
    """Specification 23.9: a content that is gone again counts, one that moved does not."""
    (work.folder / ".gitignore").write_text("*.html\ndata/\n")
    work.edit("a", "one\n")
    work.edit("b", "one\n")
    first = work.commit()
    work.write("a", "by hand\n")
    second = work.commit()
    work.edit("a", "two\n")
    git(work.folder, "mv", "b", "moved")
    (work.folder / "link").symlink_to("a")
    work.commit()
    work.write("<new>{evidence}", "by hand\n")
    work.write("moved", "by hand\n")
    git(work.folder, "rm", "-q", "a")
    assert changes(colibri, work) == {
        **NOTHING,
        "files": [
            {"path": ".gitignore", "commit": first},
            {"path": "<new>{evidence}", "commit": None},
            {"path": "a", "commit": second},
            {"path": "moved", "commit": None},
        ],
        "total": 4,
    }


def test_the_time_of_a_session_is_what_its_report_looks_at(work: Work, colibri: Printed) -> None:
    """Specification 23.9: nothing after its seal; of a task nothing at all."""
    work.edit("a", "one\n")
    work.write("b", "by hand\n")
    assert changes(colibri, work, "S-1")["total"] > 0
    assert changes(colibri, work, work.task) is None
    work.decide("that is all")
    work.lab.seal("S-1")
    work.commit()
    assert changes(colibri, work, "S-1") == NOTHING
    assert changes(colibri, work)["total"] > 0


def test_what_is_not_known_is_reported(
    work: Work, colibri: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Specification 23.9: too many commits, more names than are listed, git that fails, no git."""
    work.edit("a", "one\n")
    for number in range(3):
        work.write(f"f{number}", "by hand\n")
        work.commit()
    monkeypatch.setattr(unexplained, "MOST_NAMED", 2)
    found = changes(colibri, work)
    assert (len(found["files"]), found["total"] > 2, found["more"]) == (2, True, False)
    monkeypatch.setattr(unexplained, "MOST_COMMITS", 2)
    assert changes(colibri, work)["more"]
    monkeypatch.setattr(unexplained, "MOST_COMMITS", 3)
    monkeypatch.setattr(unexplained, "MOST_BYTES", 1)
    assert changes(colibri, work)["more"]
    monkeypatch.setitem(os.environ, "PATH", str(work.folder))
    assert changes(colibri, work)["problem"] == "there is no git"
    shutil.rmtree(work.folder / ".git")
    assert changes(colibri, work)["problem"] == unexplained.NO_REPOSITORY


def test_the_commit_at_which_a_shallow_clone_ends_is_no_change_of_all_files(
    work: Work, colibri: Printed, tmp_path: Path
) -> None:
    """Specification 23.9: to git it seems to add every file."""
    (work.folder / ".gitignore").write_text("*.html\ndata/\n")
    for text in ("one\n", "two\n"):
        work.edit("a", text)
        work.commit()
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth", "1", work.folder.as_uri(), str(clone))
    shutil.copytree(work.folder / "data", clone / "data")
    work.folder = clone
    assert changes(colibri, work) == {**NOTHING, "more": True}
