"""src/colibri/cli/program.py: commands in hints can be copied, however it was started."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from colibri.cli import program
from tests.support.client import TESTS, environment, execute_raw

SCRIPT = TESTS.parent / "scripts" / "colibri"


def hint(command: list[str], cwd: Path, **env: str) -> str:
    """How a hint calls the program, when it is started so."""
    done = execute_raw([*command, "xyzzy"], cwd=cwd, env=environment(**env))
    assert done.returncode == 2
    line = done.stderr.decode().splitlines()[-1]
    return line.removeprefix("colibri: hint: ").removesuffix(" --help lists them")


def bin_directory(path: Path) -> Path:
    """A directory with a link to the program, as people put one on their PATH."""
    path.mkdir(parents=True)
    (path / "colibri").symlink_to(SCRIPT)
    return path


def test_a_clone_is_called_by_the_path_of_its_script(tmp_path: Path) -> None:
    assert hint([str(SCRIPT)], tmp_path) == str(SCRIPT)
    assert hint(["scripts/colibri"], TESTS.parent) == "scripts/colibri"


def test_what_is_on_the_path_is_called_by_its_name(tmp_path: Path) -> None:
    path = f"{bin_directory(tmp_path / 'bin')}{os.pathsep}{os.environ['PATH']}"
    assert hint(["colibri"], tmp_path, PATH=path) == "colibri"
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(sys.executable, other / "colibri")  # what is found first is something else
    path = f"{other}{os.pathsep}{path}"
    assert hint([str(SCRIPT)], tmp_path, PATH=path) == str(SCRIPT)


def test_a_module_is_called_as_it_was(tmp_path: Path) -> None:
    assert hint([sys.executable, "-m", "colibri"], tmp_path) == f"{sys.executable} -m colibri"
    (tmp_path / "py").symlink_to(sys.executable)
    command = ["./py", "-P", "-m", "colibri"]
    packages = os.pathsep.join(path for path in sys.path if path)
    assert hint(command, tmp_path, PYTHONPATH=packages) == "./py -P -m colibri"


STARTED = {
    "by uvx": ("/home/me/.cache/uv/archive-v0/x1/bin/colibri-mcp", "uvx colibri-mcp"),
    "by uvx --from": ("/home/me/.cache/uv/archive-v0/x1/bin/colibri", "uvx colibri-mcp"),
    "in a path with a blank": ("/my tools/bin/colibri", "'/my tools/bin/colibri'"),
    "in an environment here": ("{here}/.venv/bin/colibri", ".venv/bin/colibri"),
    "as it was typed": ("../bin/colibri", "../bin/colibri"),
    "within another program": ("/usr/bin/pytest", "colibri"),
}


@pytest.mark.parametrize(("started", "wanted"), STARTED.values(), ids=STARTED)
def test_a_script_of_an_installer_is_called_by_what_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: str, wanted: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [started.format(here=tmp_path), "status"])
    assert program.name() == wanted
    assert program.typed("colibri log shows it; /x/colibri log, data/colibri.db not") == (
        f"{wanted} log shows it; /x/colibri log, data/colibri.db not"
    )


def test_outside_a_clone_a_program_of_no_name_is_just_colibri(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("colibri.__file__", str(tmp_path / "lib" / "colibri" / "__init__.py"))
    monkeypatch.setattr(sys, "argv", ["-c"])
    assert program.name() == "colibri"
