"""Heads outside the ledger, through the front door: kept, compared, and accepted once."""

import json
import os
import resource
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import COLIBRI, Server, environment, execute

JSON = dict[str, Any]


class Project:
    """A project and the state directory of its user; commands run in it as programs."""

    def __init__(self, path: Path, state: Path) -> None:
        self.path, self.state = path, state

    def run(self, *arguments: str, **env: str) -> tuple[int, str, str]:
        env = environment(XDG_STATE_HOME=str(self.state), **env)
        done = execute([*COLIBRI[:-1], *arguments], cwd=self.path, env=env)
        return done.returncode, done.stdout, done.stderr

    def report(self, *arguments: str, code: int = 0, **env: str) -> JSON:
        found, out, err = self.run(*arguments, "--json", **env)
        assert found == code, (out, err)
        return dict(json.loads(out))

    def serve(self, mode: str = "FULL") -> Server:
        state = str(self.state)
        return Server(self.path, COLIBRI, XDG_STATE_HOME=state, COLIBRI_MODE=mode)

    def work(self, session: str) -> None:
        """A server that seals a session and ends."""
        with self.serve() as server:
            server.data("audit_session_start", intent="work", session_id=session)
            server.data("thought_record", type="plan", content="why", session_id=session)
            server.data("merkle_finalize", session_id=session)
            assert server.close() == 0

    @property
    def lines(self) -> list[JSON]:
        files = sorted((self.state / "colibri" / "heads").glob("*.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]

    def copied_to(self, path: Path) -> "Project":
        shutil.copytree(self.path, path)
        return Project(path, self.state)


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """One sealed session."""
    folder = tmp_path_factory.mktemp("heads")
    (folder / "project").mkdir()
    made = Project(folder / "project", folder / "state")
    made.work("first")
    return made


@pytest.fixture
def project(worked: Project, tmp_path: Path) -> Iterator[Project]:
    """The same at its own place, with what was kept of it there."""
    shutil.copytree(worked.path, tmp_path / "project")
    shutil.copytree(worked.state, tmp_path / "state")
    for file in (tmp_path / "state").rglob("*.jsonl"):
        text = file.read_text().replace(str(worked.path), str(tmp_path / "project"))
        file.write_text(text)
    yield Project(tmp_path / "project", tmp_path / "state")


def state_of(found: JSON) -> tuple[str, str, list[str]]:
    codes = [one["code"] for one in found["findings"]]
    return found["verdict"], found["lines"]["witnessed"], codes


def test_a_head_is_kept_after_a_seal_and_at_the_end(tmp_path: Path) -> None:
    """Specification 24.1: even a server that is killed then leaves what it sealed."""
    project = Project(tmp_path, tmp_path / "state")
    with project.serve() as server:
        server.data("audit_session_start", intent="work", session_id="S")
        server.data("thought_record", type="plan", content="why", session_id="S")
        assert project.lines == []
        sealed = server.call("merkle_finalize", session_id="S")["_meta"]["colibri/receipt"]
        server.data("task_list")  # it waits behind the seal, so the head is kept by its answer
        (line,) = project.lines
        assert (line["seq"], line["leaf"]) == (sealed["seq"], sealed["head"])
        assert line["path"] == str(server.database)
        assert line["machine"] == os.uname().nodename
        server.terminate(signal.SIGKILL)
        server.wait()
    with project.serve() as server:
        server.data("task_list")
        assert server.close() == 0
    assert len(project.lines) == 2
    found = project.report("verify")
    assert state_of(found) == ("good", "yes", [])
    assert (found["held_to"], found["newer"]) == (found["head"]["seq"], 0)
    assert found["held_to"] == project.lines[-1]["seq"]


def test_what_reads_or_tests_keeps_no_head(project: Project) -> None:
    """Specification 24.2."""
    before = project.lines
    for arguments in (["verify"], ["heads"], ["status"], ["log"], ["hook"]):
        assert project.run(*arguments)[0] == 0
    for mode in ("READONLY", "MINIMAL", "TEST"):
        with project.serve(mode) as server:
            server.post_call("audit_session_start", intent="work", session_id="S")
            server.data("server_health")
            assert server.close() == 0
    assert project.lines == before
    code, _, err = project.run("heads", COLIBRI_MODE="TEST")
    assert (code, "no heads are kept: COLIBRI_MODE is TEST" in err) == (75, True)
    assert state_of(project.report("verify", COLIBRI_MODE="TEST"))[:2] == ("good", "none")


def test_records_newer_than_any_witness_are_counted(project: Project) -> None:
    """Specification 24.7: a server that was killed kept no head of its last words."""
    held = project.lines[-1]["seq"]
    with project.serve() as server:
        server.data("task_create", title="one")
        server.terminate(signal.SIGKILL)
        server.wait()
    found = project.report("verify")
    newer = found["head"]["seq"] - held
    assert newer > 0
    assert (found["verdict"], found["held_to"], found["newer"]) == ("good", held, newer)
    _, out, _ = project.run("verify")
    told = f"held to record {held:,} by the state directory; {newer} records are newer than any"
    assert f"witnessed    yes, {told} witness" in out
    assert f"outside-head: the {newer} newest records, which no witness has seen" in out
    with project.serve() as server:
        said = server.data("audit_verify_chain")
    assert said["valid"] is True
    assert (said["held_to"], said["newer"]) == (held, said["head"]["seq"] - held)
    assert said["witnesses"][0].startswith(f"held to record {held} by the state directory; ")


def test_a_restore_is_accepted_by_itself_and_named_ever_after(project: Project) -> None:
    """Specification 24.8: and a loss after it is another one."""
    assert project.run("backup", "copy.db")[0] == 0
    project.work("second")
    done = project.report("restore", "copy.db", "--force")
    assert (done["restored"], done["accepted"]) == (True, 1)
    reason = "restored from copy.db, a copy of the database"
    for number in range(2):
        found = project.report("verify")
        assert state_of(found) == ("good", "yes", [])
        (remark,) = found["remarks"]
        assert f"({reason}): the state directory has record" in remark
        project.work(f"after-{number}")
    shutil.copy(project.path / "copy.db", project.path / "data" / "colibri.db")
    for companion in ("colibri.db-wal", "colibri.db-shm"):
        (project.path / "data" / companion).unlink(missing_ok=True)
    assert state_of(project.report("verify", code=1)) == ("bad", "no", ["diverged"])


def test_two_copies_go_on_and_each_accepts_the_other_once(project: Project, tmp_path: Path) -> None:
    """Specification 24.9."""
    copy = project.copied_to(tmp_path / "copy")
    copy.work("there")
    found = project.report("verify", code=1)
    assert state_of(found) == ("bad", "no", ["diverged"])
    assert f"a copy at {copy.path}/data/colibri.db on" in found["findings"][0]["detail"]
    code, out, _ = project.run("heads", "accept", "--why", "the laptop has a copy")
    assert (code, "accepted 1 head" in out) == (0, True)
    copy.work("more-there")
    project.work("more-here")
    found = project.report("verify")
    assert state_of(found) == ("good", "yes", [])
    assert "(the laptop has a copy)" in found["remarks"][0]
    assert state_of(copy.report("verify", code=1)) == ("bad", "no", ["diverged"])
    assert copy.report("heads", "accept", "--why", "this is the laptop")["accepted"] > 0
    assert state_of(copy.report("verify")) == ("good", "yes", [])
    assert state_of(project.report("verify")) == ("good", "yes", [])


def test_a_power_cut_that_takes_unsynced_records_leaves_nothing_to_accept(
    project: Project, tmp_path: Path
) -> None:
    """Specification 24.1: a head names only what survives, so the log is shorter and held."""
    with project.serve() as server:
        server.data("task_create", title="one")
        server.data("audit_session_start", intent="work", session_id="S")
        server.data("thought_record", type="plan", content="why", session_id="S")
        server.data("merkle_finalize", session_id="S")
        for name in ("colibri.db", "colibri.db-wal"):  # what is synced now
            shutil.copy(project.path / "data" / name, tmp_path / name)
        head = project.lines
        server.data("task_list")  # a read is recorded, and not synced
        server.terminate(signal.SIGKILL)
        server.wait()
    (project.path / "data" / "colibri.db-shm").unlink()
    for name in ("colibri.db", "colibri.db-wal"):
        shutil.copy(tmp_path / name, project.path / "data" / name)
    found = project.report("verify")
    assert state_of(found) == ("good", "yes", [])
    assert found["held_to"] >= head[-1]["seq"]


def test_a_server_that_finds_a_shorter_log_says_so_and_goes_on(project: Project) -> None:
    """Specification 24.10: on stderr and in server_health, until it is accepted."""
    shutil.copytree(project.path / "data", project.path / "older")
    project.work("second")
    shutil.rmtree(project.path / "data")
    (project.path / "older").rename(project.path / "data")
    said = "but the log ends at record"
    for mode in ("READONLY", "FULL"):
        with project.serve(mode) as server:
            server.data("task_list")
            health = server.data("server_health")
            assert said in health["condition"]["checks"]["heads"]
            assert health["condition"]["state"] == "NORMAL"
            assert server.close() == 0
            assert said in server.stderr
    code, out, err = project.run("verify")
    assert (code, err) == (1, "")
    assert "witnessed    no" in out
    assert "= the log was truncated, rewritten or replaced by an older copy" in out
    code, out, _ = project.run("heads")
    assert (code, "diverged: the log " in out) == (1, True)
    accepted = project.report("heads", "accept", "--why", "the disk was replaced")
    assert accepted["accepted"] == 1
    with project.serve() as server:
        server.data("task_list")
        assert "heads" not in server.data("server_health")["condition"]["checks"]
        (thought,) = server.data("thought_record_list", search="Accepted")["records"]
    assert thought["content"].endswith(". Reason: the disk was replaced")
    assert thought["thought_id"] == accepted["thought_id"]
    code, out, _ = project.run("heads", "accept", "--why", "again")
    assert (code, "nothing to accept: all hold" in out) == (0, True)


def test_another_log_at_the_same_path_is_named_and_no_fault(project: Project) -> None:
    """Specification 24.11."""
    log = project.lines[0]["log"]
    shutil.rmtree(project.path / "data")
    project.work("again")
    found = project.report("verify")
    assert state_of(found) == ("good", "yes", [])
    (remark,) = found["remarks"]
    assert remark.startswith("another log: the state directory has record")
    assert remark.endswith(f"that is a record of another log, {log}")
    with project.serve() as server:
        assert server.data("audit_verify_chain")["witnesses"][1] == remark


def test_a_directory_that_cannot_be_written_harms_nothing(project: Project) -> None:
    """Specification 24.1, 24.3: the server says so, and nobody can tell what the heads would."""
    heads = project.state / "colibri" / "heads"
    heads.rename(project.state / "real")
    heads.symlink_to(project.state / "real")
    with project.serve() as server:
        server.data("task_create", title="one")
        assert server.close() == 0
        assert f"the head was not kept in {project.state}/colibri: cannot open" in server.stderr
    found = project.report("verify", code=2)
    assert state_of(found) == ("cannot tell", "not checked", [])
    problem = f"cannot open {heads}: it is a link"
    assert found["reason"].endswith(f"the state directory: {problem}")
    notes = [one["detail"] for one in found["not_checked"] if one["code"] == "witness"]
    assert notes == [f"the state directory cannot be read: {problem}"]
    code, out, _ = project.run("heads")
    assert (code, problem in " ".join(out.split())) == (1, True)


def test_forged_lines_are_named_for_what_they_are(project: Project) -> None:
    """Specification 24.5: a size beyond the log, another hash, another log, no head at all."""
    (file,) = (project.state / "colibri" / "heads").iterdir()
    last = project.lines[-1]
    forged = (
        {**last, "seq": last["seq"] + 1000},
        {**last, "leaf": "0b" * 32},
        {**last, "log": "colibri/" + "0" * 32},
    )
    with file.open("a") as more:
        more.write("".join(json.dumps(one) + "\n" for one in forged) + "forged\n")
    found = project.report("verify", code=1)
    results = [(one["result"], one["detail"]) for one in found["witnesses"]][-3:]
    assert results == [
        ("diverged", f"the log ends at record {last['seq']}"),
        ("diverged", "the log has another record there"),
        ("other-log", "that is a record of another log, colibri/" + "0" * 32),
    ]
    assert [one["code"] for one in found["findings"]] == ["diverged", "diverged"]
    notes = [one["detail"] for one in found["not_checked"] if one["code"] == "witness"]
    assert [note.endswith("was skipped: it is not JSON") for note in notes] == [True]


def test_a_copy_of_the_database_is_compared_as_far_as_it_goes(project: Project) -> None:
    """Specification 24.5: a backup is older by nature; that is no fault."""
    assert project.run("backup", "copy.db")[0] == 0
    project.work("second")
    found = project.report("verify", "copy.db")
    assert state_of(found) == ("good", "yes", [])
    assert found["newer"] == 0


def test_a_difference_that_cannot_be_accepted_is_reported_and_the_restore_stays(
    project: Project,
) -> None:
    """Specification 24.8: the copy is in place; until its owner accepts it, it has diverged."""
    assert project.run("backup", "copy.db")[0] == 0
    project.work("second")
    (file,) = (project.state / "colibri" / "heads").iterdir()
    file.write_text("\n" * 4_000_000 + file.read_text())  # larger than the limit below

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, 3_000_000))

    def limited(*arguments: str) -> tuple[int, str]:
        env = environment(XDG_STATE_HOME=str(project.state))
        command = [*COLIBRI[:-1], *arguments]
        done = execute(command, cwd=project.path, env=env, preexec_fn=limit)
        return done.returncode, done.stderr

    why = f"cannot write to {project.state}/colibri: File too large"
    code, err = limited("restore", "copy.db", "--force")
    assert (code, f"the heads kept outside were not accepted: {why}" in err) == (0, True), err
    code, err = limited("heads", "accept", "--why", "I know")
    assert (code, why in err) == (75, True), err
    assert state_of(project.report("verify", code=1)) == ("bad", "no", ["diverged"])


def test_a_server_that_wrote_nothing_or_may_not_write_keeps_no_new_head(project: Project) -> None:
    """Specification 24.1: what was acknowledged before the damage is kept all the same."""
    before = project.lines
    with project.serve() as server:
        server.request("tools/list")
        assert server.close() == 0
    assert project.lines == before
    with project.serve() as server:
        made = server.call("task_create", title="one")["_meta"]["colibri/receipt"]
        database = project.path / "data" / "colibri.db"
        database.rename(database.with_name("moved.db"))
        assert server.call("task_create", title="two")["isError"] is True
        server.close()
    assert [line["seq"] for line in project.lines[len(before) :]] == [made["seq"]]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["accept"], "heads accept and --why TEXT belong together"),
        (["--why", "x"], "heads accept and --why TEXT belong together"),
        (["accept", "--why", " "], "the reason is blank"),
        (["reject", "--why", "x"], "'reject' is not one of accept"),
    ],
)
def test_misuse_is_explained(project: Project, arguments: list[str], said: str) -> None:
    code, _, err = project.run("heads", *arguments)
    assert (code, said in err) == (2, True), err


def test_without_a_home_there_is_no_place_for_heads(project: Project) -> None:
    """Specification 24.2."""
    project.state = Path()
    code, _, err = project.run("heads", HOME="")
    assert (code, "no heads are kept: HOME is not set" in err) == (75, True)


def test_before_the_first_head_there_is_nothing_to_compare(tmp_path: Path) -> None:
    project = Project(tmp_path, tmp_path / "state")
    project.work("first")
    shutil.rmtree(project.state)
    code, out, _ = project.run("heads")
    assert (code, "no heads of this log are kept in" in out) == (0, True)
