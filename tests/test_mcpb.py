"""server.json and the MCP bundle: what they say is true, and what is packed starts."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped] # it has no types

from colibri import VERSION
from colibri.config import KNOWN, load
from colibri.tools.catalogue import CATALOGUE
from tests.support.client import TESTS, Server

ROOT = TESTS.parent
SCRIPT = ROOT / "scripts" / "mcpb"
MANIFEST = ROOT / "mcpb" / "manifest.json"
SERVER = ROOT / "server.json"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

# The bundle brings its own package, whose lines are not those to be measured.
OWN = {"PYTHONPATH": "", "COVERAGE_PROCESS_START": ""}

# What is asked of a server that comes as a package, schema of 2025-12-11; and of one that uv runs,
# version 0.4 of the manifest.
SCHEMAS = TESTS / "schemas"


def parsed(path: Path) -> Any:
    return json.loads(path.read_bytes())


@pytest.mark.parametrize(("path", "name"), [(SERVER, "server"), (MANIFEST, "mcpb")])
def test_it_has_the_form_that_is_asked_for(path: Path, name: str) -> None:
    schema = parsed(SCHEMAS / f"{name}.json")
    Draft202012Validator.check_schema(schema)
    assert [error.message for error in Draft202012Validator(schema).iter_errors(parsed(path))] == []


def test_both_have_the_version_of_the_package() -> None:
    server = parsed(SERVER)
    (package,) = server["packages"]
    assert server["version"] == package["version"] == parsed(MANIFEST)["version"] == VERSION


def test_server_json_names_the_package_its_program_and_every_variable(tmp_path: Path) -> None:
    server = parsed(SERVER)
    (package,) = server["packages"]
    assert package["identifier"] == PROJECT["name"]
    assert package["identifier"] in PROJECT["scripts"], "what uvx runs"
    assert [variable["name"] for variable in package["environmentVariables"]] == list(KNOWN)
    defaults = {one["name"]: one.get("default", "") for one in package["environmentVariables"]}
    assert load(str(tmp_path), defaults) == load(str(tmp_path), {})
    for variable in package["environmentVariables"]:
        for choice in variable.get("choices", []):
            load(environ={variable["name"]: choice})  # raises what it does not know


def test_nobody_owns_the_name() -> None:
    """A reverse domain below .local, which nobody can own: a publisher uses their own."""
    assert parsed(SERVER)["name"].startswith("local.")


def test_the_manifest_lists_the_tools_of_the_catalogue() -> None:
    tools = [(tool["name"], tool["description"]) for tool in parsed(MANIFEST)["tools"]]
    assert tools == [(tool.name, tool.title) for tool in CATALOGUE]
    assert parsed(MANIFEST)["compatibility"]["runtimes"]["python"] == PROJECT["requires-python"]


def run(script: Path, *arguments: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, str(script), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_the_script_reports_a_stale_file_and_rewrites_it(tmp_path: Path) -> None:
    """scripts/mcpb --check changes nothing; without it both files are rewritten."""
    assert run(SCRIPT, "--check") == (0, "", "")
    for name in ("scripts/mcpb", "mcpb", "server.json", "src", "pyproject.toml", "LICENSE"):
        source, target = ROOT / name, tmp_path / name
        target.parent.mkdir(exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    version = tmp_path / "src" / "colibri" / "__init__.py"
    version.write_text(version.read_text().replace(f'"{VERSION}"', '"9.9.9"'))
    script = tmp_path / "scripts" / "mcpb"
    stale = (
        "mcpb/manifest.json is stale: run scripts/mcpb\nserver.json is stale: run scripts/mcpb\n"
    )
    assert run(script, "--check") == (1, "", stale)
    assert run(script) == (0, f"{tmp_path / 'dist' / 'colibri-9.9.9.mcpb'}\n", "")
    assert run(script, "--check") == (0, "", "")
    assert parsed(tmp_path / "server.json")["packages"][0]["version"] == "9.9.9"
    assert run(script, "a", "b")[0] == 2


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle as a client unpacks it, with a version that nothing else here has."""
    place = tmp_path_factory.mktemp("bundle")
    assert run(SCRIPT, "--check") == (0, "", ""), "or else packing would write into the clone"
    first, second = place / "a.mcpb", place / "b.mcpb"
    for target in (first, second):
        assert run(SCRIPT, str(target)) == (0, f"{target}\n", "")
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as bundle:
        assert not [name for name in bundle.namelist() if "__pycache__" in name]
        bundle.extractall(place / "unpacked")
    version = place / "unpacked" / "src" / "colibri" / "__init__.py"
    version.write_text(version.read_text().replace(f'"{VERSION}"', '"0.0.0+bundle"'))
    return place / "unpacked"


def test_the_bundle_needs_what_the_package_needs(unpacked: Path) -> None:
    bundled = tomllib.loads((unpacked / "pyproject.toml").read_text())
    for key in ("name", "dependencies", "requires-python"):
        assert bundled["project"][key] == PROJECT[key]
    assert bundled["tool"]["uv"] == {"package": False}
    assert parsed(unpacked / "manifest.json") == parsed(MANIFEST)


def command(unpacked: Path, project: Path) -> list[str]:
    """As the client fills it in."""
    config = parsed(unpacked / "manifest.json")["server"]["mcp_config"]
    filled = {"${__dirname}": str(unpacked), "${user_config.project}": str(project)}
    words = [filled.get(word, word) for word in [config["command"], *config["args"]]]
    assert not re.search(r"\$\{", " ".join(words))
    return words


def test_the_entry_point_of_the_bundle_starts_the_server_that_is_in_it(
    unpacked: Path, tmp_path: Path
) -> None:
    """What uv does after it has made an environment: there is no network here to make one."""
    uv, run, option, directory, entry_point, *arguments = command(unpacked, tmp_path)
    assert (uv, run, option) == ("uv", "run", "--directory")
    assert entry_point == parsed(unpacked / "manifest.json")["server"]["entry_point"]
    program = [sys.executable, str(Path(directory) / entry_point), *arguments]
    with Server(tmp_path, program, handshake=False, **OWN) as server:
        assert server.handshake()["serverInfo"]["version"] == "0.0.0+bundle"
        assert server.data("server_health")["db"]["path"] == str(tmp_path / "data" / "colibri.db")
        assert server.data("task_list")["total_count"] == 0
        assert server.close() == 0


def test_the_command_of_the_bundle_starts_the_server_that_is_in_it(
    unpacked: Path, tmp_path: Path
) -> None:
    """The very command, with this environment in place of the one that uv would fetch."""
    prepared = {"UV_PROJECT_ENVIRONMENT": sys.prefix, "UV_NO_SYNC": "1", "UV_OFFLINE": "1"}
    prepared["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    program = command(unpacked, tmp_path)
    with Server(tmp_path, program, handshake=False, **OWN, **prepared) as server:
        assert server.handshake()["serverInfo"]["version"] == "0.0.0+bundle"
        assert server.close() == 0
