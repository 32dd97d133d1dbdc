"""The two verifiers as functions, and the vectors."""

import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
VECTORS = ROOT / "tests" / "vectors"
SCRIPT = ROOT / "src" / "colibri_verify.py"
MODULE = ROOT / "src" / "colibri" / "web" / "verify.mjs"

INDEX: list[dict[str, Any]] = json.loads((VECTORS / "index.json").read_text(encoding="utf-8"))

Node = Callable[[str, list[Any]], list[Any]]


def load_verifier() -> ModuleType:
    """The script as a module, from its file: it is not part of the package."""
    spec = importlib.util.spec_from_file_location("colibri_verify", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["colibri_verify"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def python() -> ModuleType:
    return load_verifier()


def find_node() -> str:
    program = shutil.which("node")
    if program is None:
        pytest.skip("node is not installed: the JavaScript verifier was not tested")
    return program


def run_node(job: str, items: list[Any]) -> list[Any]:
    """The answers of the JavaScript verifier; one process for a whole batch."""
    batch = Path(__file__).with_name("batch.mjs")
    done = subprocess.run(
        [find_node(), str(batch), str(MODULE)],
        input=json.dumps({"job": job, "items": items}),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    assert isinstance(answers, list)
    return answers


@pytest.fixture(scope="session")
def node_path() -> str:
    return find_node()


@pytest.fixture(scope="session")
def node(node_path: str) -> Node:
    return run_node


def judge(python: ModuleType, entry: dict[str, Any]) -> dict[str, Any]:
    """The Python verifier's verdict on a vector, as JSON."""
    head = entry["head"] and (entry["head"]["seq"], entry["head"]["leaf"])
    checkpoint = tuple(entry["checkpoint"].values()) if "checkpoint" in entry else None
    data = (VECTORS / entry["file"]).read_bytes()
    verdict = python.verify(data, root=entry["root"], head=head, checkpoint=checkpoint).as_json()
    assert isinstance(verdict, dict)
    return verdict


def without_words(verdict: dict[str, Any]) -> dict[str, Any]:
    """The words of a finding are each verifier's own."""
    findings = [{**finding, "detail": None} for finding in verdict["findings"]]
    return {**verdict, "findings": findings}
