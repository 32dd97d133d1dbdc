"""A checkpoint in git, the bundles that it covers, and what witnessing leaves in the ledger."""

import json
import shutil
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from colibri.cli.witness import roots
from colibri.core.merkle import PART
from colibri.store import log_tree
from tests.support.committer import Committer
from tests.support.ledger_reader import reading
from tests.support.ledger_writer import Lab, opened
from tests.support.program import database_of

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="it takes git")


@pytest.fixture
def ann(tmp_path: Path) -> Committer:
    return Committer(tmp_path)


def witnessed(ann: Committer) -> str:
    """The checkpoint that a witness has kept, in one line."""
    kept = ann.report("witness")
    return "{log}@{size}:{root}".format(**kept)


def test_a_session_is_compared_with_a_checkpoint_that_was_kept_after_its_seal(
    ann: Committer,
) -> None:
    """Specification 9.15: before there is one, the bundle has none."""
    before = ann.report("export", "--session", "S-1", "-o", "before.json")
    assert before["checkpoint"] is None
    line = witnessed(ann)
    found = ann.report("export", "--session", "S-1", "-o", "session.json")
    assert f"@{found['checkpoint']['size']}:{found['checkpoint']['root']}" in line
    assert found["head"]["seq"] < found["checkpoint"]["size"]
    code, out, err = ann.colibri("verify", "session.json", "--checkpoint", line, "--json")
    notes = {note["code"] for note in json.loads(out)["not_checked"]}
    assert (code, err) == (0, "")
    assert not notes & {"outside-head", "outside-checkpoint"}
    code, out, _ = ann.colibri("verify", "before.json", "--checkpoint", line)
    assert code == 2 and "checkpoint-not-covered" in out
    code, out, _ = ann.colibri("export", "--task", "T-0001", "-o", "task.json")
    assert code == 0 and "covered by the checkpoint of " in out


def test_a_report_has_the_checkpoint_in_its_evidence(ann: Committer) -> None:
    line = witnessed(ann)
    found = ann.report("report", "S-1", "-o", "report.html")
    assert line.endswith(f"@{found['checkpoint']['size']}:{found['checkpoint']['root']}")
    assert found["checkpoint"]["root"].encode() in (ann.project / "report.html").read_bytes()


def test_a_checkpoint_older_than_the_end_of_a_bundle_is_left_out(ann: Committer) -> None:
    witnessed(ann)
    assert ann.report("export", "--all", "-o", "whole.json")["checkpoint"]["size"] == 54
    assert ann.colibri("note", "more")[0] == 0
    assert ann.report("export", "--all", "-o", "longer.json")["checkpoint"] is None


def test_a_checkpoint_that_the_ledger_does_not_have_is_left_out_with_a_warning(
    ann: Committer,
) -> None:
    """An older copy was put back; what is exported is still evidence of what is there."""
    database = database_of(ann.project)
    shutil.copy(database, ann.folder / "older")
    assert ann.colibri("note", "more")[0] == 0
    witnessed(ann)
    for name in ("-wal", "-shm", ".lock"):
        Path(f"{database}{name}").unlink(missing_ok=True)
    shutil.copy(ann.folder / "older", database)
    code, out, err = ann.colibri("export", "--session", "S-1", "-o", "session.json")
    assert code == 0 and "covered by" not in out
    assert "warning: the newest checkpoint in git is left out: the log ends at record 54" in err
    assert "hint: colibri verify compares" in err


def fill(ann: Committer, parts: int) -> int:
    """Records for more than so many parts of the log's tree; the newest record."""
    with opened(ann.project) as db:
        lab = Lab(db)
        while lab.head().seq < parts * PART + 9:
            lab.think("S-2")
        return lab.head().seq


def kept(ann: Committer) -> int:
    with reading(database_of(ann.project)) as db:
        count = db.execute("SELECT count(*) FROM log_tree").get
        assert isinstance(count, int)
        return count


def test_witnessing_keeps_the_roots_that_the_next_checkpoint_needs(ann: Committer) -> None:
    """Specification 9.14: in the ledger, and only what is complete."""
    witnessed(ann)
    assert kept(ann) == 0
    last = fill(ann, 2)
    line = witnessed(ann)
    assert kept(ann) == 2
    with reading(database_of(ann.project)) as db:
        assert not log_tree.is_behind(db)
        assert line.endswith(f"@{last}:{log_tree.checkpoint(db).root.hex()}")
    assert ann.colibri("verify")[0] == 0


def test_a_ledger_that_cannot_be_written_now_is_witnessed_all_the_same(
    ann: Committer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roots, "TRIES", 2)
    last = fill(ann, 1)
    assert ann.report("witness", COLIBRI_MODE="READONLY")["size"] == last
    assert kept(ann) == 0
    assert ann.colibri("note", "more")[0] == 0
    with closing(apsw.Connection(str(database_of(ann.project)))) as other:
        other.execute("BEGIN IMMEDIATE")
        assert ann.report("witness")["size"] > last
    assert kept(ann) == 0
