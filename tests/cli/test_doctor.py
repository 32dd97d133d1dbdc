"""`colibri doctor`: what it finds, what it says to do, and that it changes nothing."""

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from colibri.cli import terminal
from colibri.cli.commands import doctor
from colibri.cli.doctor import Finding, storage
from colibri.cli.settings import launch
from colibri.cli.settings.clients import CLIENTS
from colibri.config import load
from colibri.store.sqlite import place
from colibri.store.sqlite.opening import MAKE
from tests.support.client import COLIBRI, TESTS, Server
from tests.support.ledger_reader import create, flip_in_a_record, overwrite_a_page
from tests.support.mounts import read_only, small_disk
from tests.support.program import tamper
from tests.support.terminal import TYPED
from tests.support.user_home import Home

SCRIPT = str(TESTS.parent / "scripts" / "colibri")
INSTALLATION = ["python", "colibri", "sqlite", "apsw", "msgspec", "PyYAML", "rich", "server"]
STORE = ["project", "file system", "disk space", "database", "records", "permissions", "lock"]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def tree(*roots: Path) -> dict[str, tuple[int, bytes]]:
    """Everything there is: when it was changed, and what it holds.

    But for -shm, in which the readers of a database at work leave their marks.
    """
    return {
        str(path): (path.lstat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for root in roots
        for path in sorted([root, *root.rglob("*")])
        if path.suffix != ".db-shm"
    }


def examine(home: Home, path: str | Path = "data/colibri.db", **env: str) -> dict[str, Finding]:
    """What is found about the database, by check; nothing may change by it."""
    config = load(str(home.project), {"COLIBRI_DB_PATH": str(path), **env})
    before = tree(home.project)
    findings = list(storage.examine(config))
    assert tree(home.project) == before
    assert all(finding.hint for finding in findings if finding.status != "ok")
    return {finding.check: finding for finding in findings}


def statuses(findings: dict[str, Finding]) -> set[str]:
    return {finding.status for finding in findings.values()}


def test_a_new_project_is_fine_but_for_a_client(home: Home) -> None:
    before = tree(home.path, home.project)
    code, out, err = home.run("doctor")
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["STATUS", "CHECK", "WHAT"]
    assert [line[1] for line in lines[1:9]] == INSTALLATION
    assert [line[0] for line in lines[1:-2]] == ["ok"] * (len(lines) - 3)
    assert lines[-2][:2] == ["warning", "clients"]
    assert out.splitlines()[-1] == "fine, with 1 warning"
    assert f"{SCRIPT} serve answered with" in out
    assert "none yet at" in out
    assert tree(home.path, home.project) == before


def test_a_project_at_work_is_fine_and_untouched(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once with its server running, once at rest: then not even -wal and -shm appear."""
    assert home.run("setup", "codex", "--write")[0] == 0
    with Server(home.project, COLIBRI) as server:
        server.data("task_create", title="x")
        found = examine(home)
        assert statuses(found) == {"ok"}
        assert found["lock"].detail == "at least one server is using the database"
        (home.project / "link.db").symlink_to("data/colibri.db")
        linked = examine(home, "link.db")
        del linked["disk space"], found["disk space"]  # other programs write meanwhile
        assert linked == found, "SQLite follows a link to where its log is"
        (home.project / "link.db").unlink()
        monkeypatch.setattr(storage, "LARGE_WAL", 1000)
        assert examine(home)["write-ahead log"].status == "warning"
        assert server.data("task_list")["total_count"] == 1
        assert server.close() == 0
    before = tree(home.path, home.project)
    report = home.report("doctor")
    assert tree(home.path, home.project) == before
    assert report["ok"] is True
    assert [one["check"] for one in report["findings"]] == [
        *INSTALLATION,
        "settings",
        *STORE,
        "write-ahead log",
        "skills",
        "gates",
        "codex",
        "witness",
    ]
    assert {one["status"] for one in report["findings"]} == {"ok"}
    details = {one["check"]: one["detail"] for one in report["findings"]}
    assert details["records"] == "6; the newest 6 were checked and are intact"
    assert details["lock"] == "no server is using the database"
    assert details["codex"].endswith(f"config.toml: colibri starts {SCRIPT}")


def test_problems_give_exit_code_1_and_all_are_listed(home: Home) -> None:
    """Settings that no server starts with, and a client whose command is gone."""
    mcp = {"mcpServers": {"colibri": {"command": "/gone/colibri", "args": ["serve"]}}}
    (home.project / ".mcp.json").write_text(json.dumps(mcp))
    code, out, err = home.run("doctor", AMS_MODE="x", COLIBRI_TYPO="y")
    assert (code, err) == (1, "")
    problems = [line for line in out.splitlines() if line.startswith("problem")]
    assert len(problems) == 3
    assert "AMS_MODE belongs to the old AMS runtime: unset it" in problems[0]
    assert "COLIBRI_TYPO is not known: unset it" in problems[1]
    assert f"/gone/colibri, which cannot be run; {TYPED} setup claude-code --write" in problems[2]
    assert out.splitlines()[-1] == "3 problems"


def test_every_status_has_a_colour_of_its_own() -> None:
    colours = [terminal.STYLES[status] for status in ("ok", "warning", "problem")]
    assert len(set(colours)) == 3


def test_an_installation_without_a_package_says_so_instead_of_a_traceback() -> None:
    """As after an upgrade of Python under an environment."""
    without = "import sys; sys.modules['apsw'] = None; from colibri.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", without, "doctor"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 75
    assert done.stderr.startswith("colibri: error: the installation is incomplete: ")


# The database.


def a_directory(path: Path) -> str:
    path.mkdir(parents=True)
    return "is a directory"


def a_text_file(path: Path) -> str:
    path.parent.mkdir()
    path.write_text("somebody's notes\n" * 100)
    path.chmod(0o600)
    return "it is not a database"


def another_program_s(path: Path) -> str:
    path.parent.mkdir()
    tamper(path, "CREATE TABLE songs (title TEXT)")
    return "is the database of another program"


def from_a_newer_version(path: Path) -> str:
    create(path, 10)
    tamper(path, "PRAGMA user_version = 999")
    return "has schema version 999"


def below_a_file(path: Path) -> str:
    path.parent.write_text("data is no directory here")
    return "cannot be created: "


@pytest.mark.parametrize(
    "surrounding", [a_directory, a_text_file, another_program_s, from_a_newer_version, below_a_file]
)
def test_a_database_that_cannot_be_opened_is_a_problem(
    home: Home, surrounding: Callable[[Path], str]
) -> None:
    why = surrounding(home.project / "data" / "colibri.db")
    found = examine(home)
    assert found["database"].status == "problem"
    assert why in found["database"].detail


@pytest.mark.parametrize("damage", [flip_in_a_record, overwrite_a_page])
def test_damage_among_the_newest_records_is_a_problem(
    home: Home, damage: Callable[[Path], None]
) -> None:
    path = home.project / "data" / "colibri.db"
    create(path, 500)
    damage(path)
    found = examine(home)
    assert (found["database"].status, found["records"].status) == ("ok", "problem")
    assert "colibri verify shows what is damaged" in found["records"].hint


def test_an_older_schema_is_a_warning(home: Home) -> None:
    """The next server brings it up to date."""
    path = home.project / "data" / "colibri.db"
    create(path, 10)
    tamper(path, "PRAGMA user_version = 1")
    found = examine(home)
    assert found["database"].status == "warning"
    assert found["database"].hint == MAKE


def test_after_a_kill_the_write_ahead_log_is_explained(home: Home) -> None:
    with Server(home.project, COLIBRI) as server:
        server.data("task_create", title="x")
        server.process.kill()
        assert server.wait() == -signal.SIGKILL
    config = load(str(home.project), {})
    found = {finding.check: finding for finding in storage.examine(config)}
    assert statuses(found) == {"ok"}
    assert "the last server did not end cleanly" in found["write-ahead log"].detail
    assert found["records"].detail.startswith("4; ")


@pytest.mark.parametrize(
    ("file", "directory", "status", "what"),
    [
        (0o600, 0o700, "ok", "600, in a directory with 700"),
        (0o600, 0o755, "ok", "600, in a directory with 755"),
        (0o600, 0o1777, "ok", "600, in a directory with 1777"),
        (0o644, 0o700, "warning", "colibri.db is open to others (644)"),
        (0o600, 0o770, "warning", "others can replace files in"),
    ],
)
def test_permissions_that_let_others_in_are_a_warning(
    home: Home, file: int, directory: int, status: str, what: str
) -> None:
    path = home.project / "data" / "colibri.db"
    create(path, 1)
    path.chmod(file)
    path.parent.chmod(directory)
    found = examine(home)["permissions"]
    assert found.status == status
    assert what in found.detail


def test_where_nothing_can_be_written_full_mode_has_a_problem_and_readonly_has_none(
    home: Home,
) -> None:
    path = home.project / "data" / "colibri.db"
    create(path, 1)
    with read_only(path.parent):
        found = examine(home)
        assert found["permissions"].status == "problem"
        assert found["permissions"].detail == f"{path} is not writable"
        assert statuses(examine(home, COLIBRI_MODE="READONLY")) == {"ok"}
        missing = examine(home, "data/other/x.db")
        assert missing["database"].detail.endswith("data is not writable")


def test_what_it_says_to_type_makes_a_database(home: Home) -> None:
    """The hint of READONLY, copied."""
    (found,) = [
        one
        for one in json.loads(home.run("doctor", "--json", COLIBRI_MODE="READONLY")[1])["findings"]
        if one["check"] == "database"
    ]
    command = found["hint"].partition(" makes ")[0]
    assert command == f"{TYPED} serve </dev/null"
    script = ["sh", "-c", command]
    subprocess.run(script, cwd=home.project, env=home.environment(), check=True, timeout=60)
    assert statuses(examine(home, COLIBRI_MODE="READONLY")) == {"ok"}


def test_modes_that_make_no_database_say_so(home: Home) -> None:
    found = examine(home, COLIBRI_MODE="READONLY")["database"]
    assert (found.status, found.hint) == ("problem", MAKE)
    assert "MINIMAL does not open" in examine(home, COLIBRI_MODE="MINIMAL")["database"].detail


@pytest.mark.parametrize(("size", "status"), [("8m", "problem"), ("64m", "warning")])
def test_little_space_is_reported(home: Home, size: str, status: str) -> None:
    with small_disk(home.project / "data", size):
        found = examine(home)
    assert found["disk space"].status == status
    assert found["file system"].detail.endswith("is on tmpfs")


def test_a_server_that_migrates_is_a_warning(home: Home) -> None:
    path = home.project / "data" / "colibri.db"
    create(path, 1)
    with (path.parent / "colibri.db.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = examine(home)
    assert found["lock"].status == "warning"
    assert "creating or migrating" in found["lock"].detail
    (path.parent / "colibri.db.lock").unlink()
    assert examine(home)["lock"].detail == "no server is using the database"


FILE_SYSTEMS = {
    "ext4": "ok",
    "virtiofs": "problem",  # where a server refuses to start
    "nfs4": "problem",
    "fuse.sshfs": "problem",
}


@pytest.mark.parametrize(("kind", "status"), FILE_SYSTEMS.items())
def test_the_file_system_is_judged_as_a_server_does(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, status: str
) -> None:
    device = home.project.stat().st_dev
    table = tmp_path / "mountinfo"
    table.write_text(f"36 35 {os.major(device)}:{os.minor(device)} / / rw - {kind} srv rw\n")
    monkeypatch.setattr(place, "MOUNTS", str(table))
    found = examine(home)["file system"]
    assert found.status == status
    assert kind in found.detail


def test_an_unnamed_file_system_is_no_problem(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, "MOUNTS", str(tmp_path / "none"))
    assert "does not name" in examine(home)["file system"].detail


# The clients.


@pytest.fixture
def clients(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], list[Finding]]]:
    for name, value in home.environment().items():
        monkeypatch.setenv(name, value)
    yield lambda: list(doctor._clients(str(home.project)))


def entry(command: str = SCRIPT, *args: str, **more: Any) -> dict[str, Any]:
    return {"command": command, "args": ["serve", *args], **more}


@pytest.mark.parametrize(
    ("server", "status", "what"),
    [
        (entry(), "ok", f"colibri starts {SCRIPT}"),
        (entry("/bin/sh"), "ok", "colibri starts /bin/sh, which is not this installation"),
        (entry("sh"), "ok", "colibri starts sh, which is not this installation"),
        (entry("${HOME}/colibri"), "ok", "starts ${HOME}/colibri"),
        (entry("/gone/colibri"), "problem", "starts /gone/colibri, which cannot be run"),
        (entry("no-such-program"), "problem", "starts no-such-program, which cannot be run"),
        (entry("/etc/passwd"), "problem", "starts /etc/passwd, which cannot be run"),
        ({"url": "https://x"}, "problem", "starts nothing, which cannot be run"),
        (entry(SCRIPT, "--project", "/gone"), "problem", "is for /gone, which is not a directory"),
        (entry(SCRIPT, "--project", "/usr"), "warning", "is for /usr, not for "),
        (entry(SCRIPT, "--project", "${workspaceFolder}"), "ok", f"starts {SCRIPT}"),
        ({"command": SCRIPT, "args": "serve", "env": []}, "ok", f"starts {SCRIPT}"),
        (entry(env={"COLIBRI_MOOD": "x"}), "problem", "colibri: COLIBRI_MOOD is not known"),
        (entry(env={"COLIBRI_MODE": "READONLY", "PATH": "/bin"}), "ok", f"starts {SCRIPT}"),
        ({"command": [SCRIPT, "serve"]}, "ok", f"colibri starts {SCRIPT}"),
        ({"command": []}, "problem", "starts nothing, which cannot be run"),
        ({"command": [SCRIPT, "serve", "--project", "/gone"]}, "problem", "is for /gone, which"),
        (entry(environment={"COLIBRI_MOOD": "x"}), "problem", "COLIBRI_MOOD is not known"),
    ],
)
def test_an_entry_is_judged_by_whether_it_can_start(
    home: Home, clients: Callable[[], list[Finding]], server: Any, status: str, what: str
) -> None:
    (home.project / ".mcp.json").write_text(json.dumps({"mcpServers": {"colibri": server}}))
    (found,) = clients()
    assert (found.check, found.status) == ("claude-code", status)
    assert what in found.detail


def test_every_client_and_scope_is_looked_into(
    home: Home, clients: Callable[[], list[Finding]]
) -> None:
    written = set()
    for client in CLIENTS.values():
        for file, _ in client.files(str(home.project)):
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            Path(file).write_text(client.language.put("", (client.servers, "x"), entry()))
            written.add(file)
    found = clients()
    assert {one.detail.partition(": x starts ")[0] for one in found} == written
    assert {one.check for one in found} == set(CLIENTS) - {"generic"}
    assert {one.status for one in found} == {"ok"}


def test_a_server_that_claude_code_keeps_for_one_project_is_found(
    home: Home, clients: Callable[[], list[Finding]]
) -> None:
    """`claude mcp add colibri` writes it there."""
    projects = {
        str(home.project): {"mcpServers": {"colibri": entry(), "other": {"command": "x"}}},
        "/elsewhere": {"mcpServers": {"colibri": entry("/gone")}},
    }
    (home.path / ".claude.json").write_text(json.dumps({"projects": projects}))
    assert [one.status for one in clients()] == ["ok"]


@pytest.mark.parametrize(
    "text",
    ["[]", "null", '{"mcpServers": 3}', '{"mcpServers": {"colibri": 3}}', '{"projects": []}'],
)
def test_settings_of_any_shape_are_looked_through(
    home: Home, clients: Callable[[], list[Finding]], text: str
) -> None:
    (home.project / ".mcp.json").write_text(text)
    (found,) = clients()
    assert (found.check, found.status) == ("clients", "warning")
    assert found.hint.startswith("colibri setup CLIENT --write")


def test_settings_that_the_client_cannot_read_are_a_warning(
    home: Home, clients: Callable[[], list[Finding]]
) -> None:
    (home.project / ".mcp.json").write_text("{")
    (home.path / ".codex").mkdir()
    (home.path / ".codex" / "config.toml").mkdir()
    broken, unreadable, none = clients()
    assert broken.status == unreadable.status == none.status == "warning"
    assert (
        ".mcp.json, line 1, column 2: expecting property name enclosed in double quotes"
        in broken.detail
    )
    assert "is not a regular file" in unreadable.detail


# The rest.


def test_skills_are_counted_where_they_can_be(tmp_path: Path) -> None:
    assert [one.detail for one in doctor._skills(str(tmp_path / "no"))] == [
        f"the project has none: there is no {tmp_path / 'no'}; Colibri's own are available"
    ]
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "SKILL.md").touch()
    (tmp_path / "b").mkdir()
    assert [one.detail for one in doctor._skills(str(tmp_path))] == [f"1 skill in {tmp_path}"]
    (found,) = doctor._skills(str(tmp_path / "a" / "SKILL.md"))
    assert (found.status, "Not a directory" in found.detail) == ("warning", True)


def test_what_is_too_old_or_missing_is_a_problem() -> None:
    assert [one.status for one in doctor._python((3, 10, 12))] == ["problem"]
    assert [one.status for one in doctor._sqlite("3.51.2")] == ["problem"]
    assert [one.status for one in doctor._sqlite("3.51.3")] == ["ok"]
    assert [one.status for one in doctor._package("nope", "no_such_module")] == ["problem"]


def test_a_server_that_does_not_answer_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "command", lambda: ["/no/such/program"])
    (found,) = doctor._server()
    assert found.status == "problem"
    assert found.detail == "/no/such/program serve: it cannot be started: No such file or directory"


def test_a_failure_of_the_check_itself_is_a_finding(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It never raises: the others still say what they found."""

    def fail(*_: object) -> Any:
        raise RuntimeError("the ceiling fell down")

    monkeypatch.setattr(launch, "command", fail)
    monkeypatch.setattr(place, "file_system", fail)
    found = {one.check: one for one in doctor.examine(str(home.project))}
    assert found["server"].detail == "could not be checked: the ceiling fell down"
    assert found["file system"].status == "problem"
    assert (found["python"].status, found["database"].status) == ("ok", "ok")
