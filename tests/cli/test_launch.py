"""src/colibri/cli/launch.py: the command that starts this very installation."""

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import apsw
import pytest

import colibri
from colibri import VERSION
from colibri.cli.settings import launch
from colibri.core.errors import ResourceError
from tests.support.client import TESTS, Server, execute_raw
from tests.support.user_home import Home

ROOT = TESTS.parent


def test_a_clone_is_started_by_its_script() -> None:
    assert launch.command() == [str(ROOT / "scripts" / "colibri")]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree in an environment of its own, which borrows what it depends on."""
    place = tmp_path_factory.mktemp("installed")
    python = place / "env" / "bin" / "python"
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=60)
    (wheel,) = place.glob("*.whl")
    venv.create(place / "env", symlinks=True)
    uv = shutil.which("uv")  # as scripts/environment.py chooses
    pip = [uv, "pip", "install", "--offline"] if uv else [sys.executable, "-m", "pip"]
    pip += ["--python", str(python)] if uv else ["--python", str(python), "install"]
    subprocess.run([*pip, "--no-deps", wheel], check=True, capture_output=True, timeout=60)
    (packages,) = (place / "env" / "lib").glob("python*/site-packages")
    (packages / "borrowed.pth").write_text(f"{Path(apsw.__file__).parent.parent}\n")
    return place / "env"


def test_an_installed_package_is_started_by_its_console_script(
    installed: Path, tmp_path: Path
) -> None:
    """What pip or uv made; the same when the package is run as a module."""
    home = Home(tmp_path)
    for program in (
        [installed / "bin" / "colibri"],
        [installed / "bin" / "python", "-m", "colibri"],
    ):
        done = execute_raw(
            [*program, "setup", "generic", "--print"],
            cwd=home.project,
            env=home.environment(PYTHONPATH=""),
            check=True,
        )
        entry = json.loads(done.stdout)["mcpServers"]["colibri"]
        assert entry["command"] == str(installed / "bin" / "colibri")
    with Server(tmp_path, [entry["command"], *entry["args"]], PYTHONPATH="") as server:
        assert server.data("server_health")["db"]["path"].startswith(str(home.project))
    assert (installed / "bin" / "colibri-mcp").exists(), "what uvx colibri-mcp runs"


def test_what_uv_keeps_in_its_cache_is_started_by_uvx_in_the_same_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Cleaning the cache deletes the script that runs now."""
    script = tmp_path / "uv" / "archive-v0" / "x1" / "bin" / "colibri"
    monkeypatch.setattr(launch, "launcher", lambda: "")
    monkeypatch.setattr(launch, "_console_script", lambda: str(script))
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    assert launch.command() == ["/bin/uvx", f"colibri-mcp@{VERSION}"]
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert launch.command()[0] == "uvx"


SOURCES = {
    "a directory": ({"url": "file:///my%20clones/colibri", "dir_info": {}}, "/my clones/colibri"),
    "a wheel": (
        {"url": "https://example.org/colibri.whl", "archive_info": {}},
        "https://example.org/colibri.whl",
    ),
    "a commit": (
        {
            "url": "https://example.org/colibri.git",
            "vcs_info": {"vcs": "git", "commit_id": "abc123", "requested_revision": "main"},
            "subdirectory": "server",
        },
        "git+https://example.org/colibri.git@abc123#subdirectory=server",
    ),
}


@pytest.mark.parametrize(("noted", "source"), SOURCES.values(), ids=SOURCES)
def test_uvx_fetches_it_again_from_the_source_that_it_was_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, noted: dict[str, object], source: str
) -> None:
    """The package need not be in an index."""
    folder = tmp_path / "uv" / "archive-v0" / "x1"
    about = folder / f"colibri_mcp-{VERSION}.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Name: colibri-mcp\nVersion: {VERSION}\n")
    (about / "direct_url.json").write_text(json.dumps(noted))
    monkeypatch.setattr(launch, "launcher", lambda: "")
    monkeypatch.setattr(launch, "_console_script", lambda: str(folder / "bin" / "colibri"))
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.syspath_prepend(str(folder))
    assert launch.command() == ["/bin/uvx", "--from", source, "colibri"]


def test_the_script_of_another_copy_is_not_taken_for_ours(
    installed: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (packages,) = (installed / "lib").glob("python*/site-packages")
    monkeypatch.syspath_prepend(str(packages))
    monkeypatch.setattr(colibri, "__file__", str(packages / "colibri" / "__init__.py"))
    assert launch.command() == [str(installed / "bin" / "colibri")]
    monkeypatch.setattr(colibri, "__file__", str(tmp_path / "src" / "colibri" / "__init__.py"))
    assert launch.command() == [sys.executable, "-P", "-m", "colibri"]


def test_without_a_script_the_interpreter_starts_it_whatever_the_project_holds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """-P: the working directory is a project of the user's, and not ours to import from."""
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks" / "run.txt").touch()
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "colibri").write_text("not executable")
    monkeypatch.setattr(colibri, "__file__", str(tmp_path / "src" / "colibri" / "__init__.py"))
    command = launch.command()
    assert command == [sys.executable, "-P", "-m", "colibri"]
    (tmp_path / "colibri.py").write_text("raise SystemExit('of the user')")
    with Server(tmp_path, [*command, "serve"], handshake=False) as server:
        assert server.handshake()["serverInfo"]["version"] == VERSION


def test_a_path_that_no_settings_file_can_hold_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / os.fsdecode(b"\xff")))
    monkeypatch.setattr(colibri, "__file__", str(tmp_path / "src" / "colibri" / "__init__.py"))
    with pytest.raises(ResourceError, match=r"\\udcff' is not UTF-8"):
        launch.command()


def test_a_server_that_answers_is_tried_out_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Neither settings nor a database of the user's have a part in it."""
    monkeypatch.setenv("COLIBRI_DB_PATH", str(tmp_path / "mine.db"))
    monkeypatch.setenv("COLIBRI_MODE", "nonsense")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    answer = launch.try_out(launch.command())
    assert (answer.problem, answer.version) == ("", VERSION)
    assert answer.tools > 10
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        (["/no/such/program"], "it cannot be started: No such file or directory"),
        (["sh", "-c", "echo oh no >&2; exit 3"], "it ended with exit code 3 and said: oh no"),
        (["sh", "-c", "echo '{}'"], "it ended with exit code 0 and said: nothing"),
        (["sh", "-c", "echo hello"], "it ended with exit code 0 and said: nothing"),
        (["sh", "-c", "exec sleep 60"], "it did not answer and end within 0 s"),
    ],
)
def test_each_way_not_to_answer_has_its_message(
    monkeypatch: pytest.MonkeyPatch, program: list[str], problem: str
) -> None:
    if "sleep" in program[-1]:
        monkeypatch.setattr(launch, "PATIENCE", 0.2)
    assert launch.try_out(program).problem == problem
