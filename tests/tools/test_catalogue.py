"""catalogue.json is what the declared tools say."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import colibri
from colibri.tools import catalogue
from tests.support.client import environment

SOURCE = Path(colibri.__file__).parent


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A package of our own, whose catalogue.json may be spoilt."""
    package = tmp_path / "lib" / "colibri"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    return package


def run(package: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "colibri.tools.catalogue", *options],
        cwd=package.parent,
        env={**environment(), "PYTHONPATH": str(package.parent)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_file_is_current() -> None:
    """Design §3: a test fails when it is stale."""
    assert Path(catalogue.PATH).read_text(encoding="utf-8") == catalogue.render()


def test_a_current_file_passes_the_check(copy: Path) -> None:
    """scripts/catalogue --check."""
    done = run(copy, "--check")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_stale_file_fails_the_check_and_is_mended_without_it(copy: Path) -> None:
    """scripts/catalogue --check changes nothing; without --check the file is written."""
    file = copy / "tools" / "catalogue.json"
    current = file.read_text(encoding="utf-8")
    stale = current.replace("server_ping", "server_pong")
    file.write_text(stale, encoding="utf-8")
    done = run(copy, "--check")
    assert done.returncode == 1
    assert done.stderr == "catalogue.json is stale: run scripts/catalogue\n"
    assert file.read_text(encoding="utf-8") == stale
    assert run(copy).returncode == 0
    assert file.read_text(encoding="utf-8") == current


def test_every_tool_says_what_an_agent_needs() -> None:
    """Design §7: a title, a description, annotations."""
    for tool in json.loads(catalogue.render())["tools"]:
        listing = tool["listing"]
        assert listing["title"]
        assert listing["description"].endswith(".")
        assert listing["annotations"].keys() == {
            "readOnlyHint",
            "destructiveHint",
            "idempotentHint",
            "openWorldHint",
        }
        assert listing["annotations"]["destructiveHint"] is False
        assert listing["annotations"]["openWorldHint"] is False
        assert tool["lane"] in ("probe", "read", "write")


def test_the_catalogue_has_no_references_and_no_generated_titles() -> None:
    """Design §7: they only cost an agent tokens; a tool's own title is one level up."""
    for tool in json.loads(catalogue.render())["tools"]:
        for schema in (tool["listing"]["inputSchema"], tool["listing"]["outputSchema"]):
            text = json.dumps(schema)
            assert '"$ref"' not in text
            assert '"$defs"' not in text
            assert '"title": "' not in text
