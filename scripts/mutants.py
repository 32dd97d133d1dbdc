"""Mutation testing: breaks the source in one small place at a time; called by scripts/mutants.

    scripts/mutants            12 each of core, store and server; half an hour or less
    scripts/mutants --list     only name them
    scripts/mutants WORD…      only those whose name has one of these words

Each mutant runs in a copy of the tree, where a test must fail: first the tests that own the file,
mostly found by its name, then those of its layer. That test must pass without the mutant and fail
again with it. The choice depends only on the seed and the changed text, not on changes elsewhere.
"""

import argparse
import ast
import copy
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "colibri"
SEED, PER_LAYER, PER_FILE, WORKERS = "1", 12, 2, 2
PATIENCE = 900  # seconds for one run of tests; a run that does not end counts as passed
# The tests to run, one group after another, if the tests that own a file pass.
LAYERS = {
    "core": ["tests/core", "tests/verify", "tests/store"],
    "store": ["tests/store", "tests/tools", "tests/e2e", "tests/cli"],
    "server": ["tests/server", "tests/contract", "tests/test_main.py", "tests/e2e"],
}
# Files whose tests have a different name.
OWNERS = {
    "core/check": "verify/test_three_verifiers.py",
    "core/escapes.py": "core/test_redaction.py",
    "core/report.py": "store/test_verify.py",
    "core/secret_frames.py": "core/test_redaction.py",
    "core/secret_tokens.py": "core/test_redaction.py",
    "core/secret_values.py": "core/test_redaction.py",
    "server/admission.py": "contract/test_surface.py",
    "server/boot.py": "contract/test_boot.py",
    "server/checks.py": "e2e/test_health_loop.py",
    "server/lanes.py": "e2e/test_lanes.py",
    "server/recorder.py": "e2e/test_replaced_database.py",
    "server/shutdown.py": "e2e/test_shutdown.py",
    "store/append.py": "store/test_ledger.py",
    "store/records.py": "store/test_timeline.py",
    "store/task_rows.py": "store/test_verify.py",
    "store/sqlite/task_search.py": "store/test_tasks.py",
}
# Mutants without a visible effect: the beginning of their name, and why.
EQUIVALENT: dict[str, str] = {
    "core/check/calls.py Calls.change: 7 -> 8": "a shortcut: names that are not equal at once are"
    " compared one by one",
    "core/check/tasks.py Task.__init__: 1 -> 2": "the first record of a task states its attempt;"
    " one that does not is a bad creation, and named as that",
}

FLIPS: dict[type[ast.cmpop], ast.cmpop] = {
    ast.Lt: ast.LtE(),
    ast.LtE: ast.Lt(),
    ast.Gt: ast.GtE(),
    ast.GtE: ast.Gt(),
    ast.Eq: ast.NotEq(),
    ast.NotEq: ast.Eq(),
    ast.Is: ast.IsNot(),
    ast.IsNot: ast.Is(),
    ast.In: ast.NotIn(),
    ast.NotIn: ast.In(),
}


@dataclass(frozen=True)
class Mutant:
    """The bytes from start to end of a file, replaced."""

    file: str  # below src/colibri
    name: str
    start: int
    end: int
    text: str

    def rank(self) -> bytes:
        return sha256(f"{SEED} {self.name}".encode()).digest()

    def write(self, tree: Path) -> None:
        data = (PACKAGE / self.file).read_bytes()
        changed = data[: self.start] + self.text.encode() + data[self.end :]
        (tree / "src" / "colibri" / self.file).write_bytes(changed)


def chosen() -> list[Mutant]:
    """The lowest ranks of each layer: at most one per function, few per file."""
    found: list[Mutant] = []
    for layer in LAYERS:
        files = sorted((PACKAGE / layer).rglob("*.py"))
        ranked = sorted((one for file in files for one in candidates(file)), key=Mutant.rank)
        functions: set[str] = set()
        per_file: Counter[str] = Counter()
        for one in ranked:
            function = one.name.partition(": ")[0]
            if (
                len(functions) < PER_LAYER
                and function not in functions
                and per_file[one.file] < PER_FILE
                and not one.name.startswith(tuple(EQUIVALENT))
            ):
                functions.add(function)
                per_file[one.file] += 1
                found.append(one)
    return found


def candidates(file: Path) -> Iterator[Mutant]:
    """All mutants of a file."""
    data, path = file.read_bytes(), file.relative_to(PACKAGE).as_posix()
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    seen: dict[str, int] = {}
    for where, node in _nodes(ast.parse(data), ""):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        for changed in _changes(node):
            text = ast.unparse(changed)
            name = f"{path} {where}: {' '.join(ast.unparse(node).split())} -> {text}"
            seen[name] = seen.get(name, 0) + 1
            name += f" ({seen[name]})" * (seen[name] > 1)
            yield Mutant(path, name, start, end, text if text == "pass" else f"({text})")


def _nodes(node: ast.AST, where: str) -> Iterator[tuple[str, ast.expr | ast.stmt]]:
    """The nodes that run when a function runs, with that function's name."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            inside = where
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                inside = f"{where}.{child.name}".lstrip(".")
            elif isinstance(child, ast.JoinedStr) or _is_words(child):
                continue
            elif where and isinstance(child, ast.expr | ast.stmt):
                yield where, child
            if isinstance(child, ast.AST):
                yield from _nodes(child, inside)


def _is_words(node: object) -> bool:
    """Docstrings, log lines and asserts, which tests need not cover."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).rpartition(".")[2] in ("log", "warn")
    return isinstance(node, ast.Assert | ast.Import | ast.ImportFrom)


def _changes(node: ast.expr | ast.stmt) -> Iterator[ast.AST]:
    other = copy.deepcopy(node)
    match other:
        case ast.Compare(ops=[op]) if type(op) in FLIPS:
            other.ops = [FLIPS[type(op)]]
        case ast.BoolOp(op=op):
            other.op = ast.Or() if isinstance(op, ast.And) else ast.And()
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            other = operand
        case ast.BinOp(op=ast.Add() | ast.Sub() as op) if not _joins_text(other):
            other.op = ast.Sub() if isinstance(op, ast.Add) else ast.Add()
        case ast.Constant(value=bool() as value):
            other.value = not value
        case ast.Constant(value=int() as value):
            other.value = value + 1
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise():
            other = ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            other = ast.Pass()
        case _:
            return
    yield other


def _joins_text(node: ast.BinOp) -> bool:
    """Subtracting texts always raises: even a poor test would notice."""
    return any(
        isinstance(side, ast.JoinedStr)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
        for side in ast.walk(node)
    )


# Running the tests.


class Trees:
    """Copies of the tree, one for each worker and one that stays unchanged."""

    def __init__(self, scratch: Path) -> None:
        self.whole = self._copy(scratch / "whole")
        self._free: SimpleQueue[Path] = SimpleQueue()
        self._unsound: set[str] = set()  # tests that fail without a mutant too
        for number in range(WORKERS):
            self._free.put(self._copy(scratch / str(number)))

    def _copy(self, tree: Path) -> Path:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        )
        for name in filter(None, listed.stdout.split("\0")):
            if (ROOT / name).is_file():
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, tree / name)
        for environment in (".venv", ".venv-client-1x"):
            (tree / environment).symlink_to(ROOT / environment)
        return tree

    def hunt(self, mutant: Mutant) -> str:
        """The test that noticed it; empty if none did."""
        tree = self._free.get()
        mutant.write(tree)
        try:
            for tests in owners(mutant.file):
                if noticed := self._noticed(tree, tests):
                    return noticed
            return ""
        finally:
            shutil.copy2(PACKAGE / mutant.file, tree / "src" / "colibri" / mutant.file)
            self._free.put(tree)

    def _noticed(self, tree: Path, tests: list[str]) -> str:
        while True:
            output, timed_out = pytest(tree, tests, self._unsound)
            if timed_out:  # a hanging test is ended by its own time limit and fails
                return ""
            failed = _failed(output)
            for test in failed:
                if not _fails(self.whole, test) and _fails(tree, test):
                    return test
            if not failed:
                return ""
            self._unsound.update(failed)  # the machine or the copy is to blame, not the mutant


def _failed(output: str) -> list[str]:
    found: list[str] = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.MULTILINE)
    return found


def _fails(tree: Path, test: str) -> bool:
    output, timed_out = pytest(tree, [test])
    if "ERROR: not found" in output:  # pytest cannot select this name: run the whole function
        output, timed_out = pytest(tree, [test.partition("[")[0]])
    return timed_out or bool(_failed(output))


def owners(file: str) -> Iterator[list[str]]:
    """The tests that must notice: those that own the file, then those of its layer."""
    layer, tests = file.partition("/")[0], ROOT / "tests"
    own = sorted((tests / layer).rglob(f"test_{Path(file).stem}*.py"))
    other = OWNERS.get(file) or OWNERS.get(Path(file).parent.as_posix())
    if other:
        own.append(tests / other)
    elif file.startswith("store/sqlite/") and not own:
        own.append(tests / "store" / "test_db.py")
    if own:
        yield [test.relative_to(ROOT).as_posix() for test in own]
    yield from ([test] for test in LAYERS[layer])


def pytest(tree: Path, tests: list[str], without: Iterable[str] = ()) -> tuple[str, bool]:
    """The output of a run that stops at the first failure, and whether it timed out."""
    options = [
        "-x",
        "-q",
        "--no-header",
        "--tb=no",
        "--timeout=60",
        "-p",
        "no:cacheprovider",
        "-m",
        "not alone",
    ]
    try:
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                *options,
                *tests,
                *(f"--deselect={x}" for x in without),
            ],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            start_new_session=True,  # a test may signal its whole process group
            timeout=PATIENCE,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return "", True
    return done.stdout, False


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="scripts/mutants")
    parser.add_argument("--list", action="store_true", help="only name them")
    parser.add_argument("word", nargs="*", help="only those whose name has one of these")
    options = parser.parse_args(arguments)
    mutants = chosen()
    if options.word:
        mutants = [one for one in mutants if any(word in one.name for word in options.word)]
    if options.list:
        print("\n".join(one.name for one in mutants))
        return 0
    began, survivors = time.monotonic(), 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        trees = Trees(Path(scratch))
        with ThreadPoolExecutor(WORKERS) as pool:
            hunts = {pool.submit(trees.hunt, one): one for one in mutants}
            for done in as_completed(hunts):
                noticed = done.result()
                survivors += not noticed
                print(f"{'killed  ' if noticed else 'SURVIVED'} {hunts[done].name}", flush=True)
                print(f"         {noticed or 'nothing noticed it'}", flush=True)
    minutes = (time.monotonic() - began) / 60
    print(f"{len(mutants) - survivors} of {len(mutants)} killed, {minutes:.0f} minutes")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
