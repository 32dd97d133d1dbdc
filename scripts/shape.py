"""Measures the code: files, functions, import cycles; called by scripts/shape.

    scripts/shape            write the table in ARCHITECTURE.md
    scripts/shape --check    only say whether it is current, and which goals are missed
    scripts/shape DIR        print the figures of another checkout

A function's length is counted from `def` to its last line, nested functions included. An import
counts wherever it is, also in a function; one under TYPE_CHECKING is type-only.
"""

import argparse
import ast
import math
import statistics
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "ARCHITECTURE.md"
BEGIN, END = "<!-- the shape: made by scripts/shape -->", "<!-- end of the shape -->"

Figures = dict[str, int]


@dataclass(frozen=True)
class Row:
    """A line of the table: the value before each fact was stored only once, and the goal."""

    name: str
    before: int
    goal: int | None = None


@dataclass(frozen=True)
class Import:
    """One module imports another."""

    of: str
    by: str
    type_only: bool


ROWS = (
    Row("source files", 108),
    Row("source lines", 17_393, 15_653),
    Row("lines of core, tools and server", 7_485, 5_500),
    Row("test and torture lines", 41_402, 36_226),
    Row("median file, lines", 132),
    Row("largest file of core, tools, server, lines", 413, 320),
    Row("largest file of store, lines", 634, 320),
    Row("largest file of all, lines", 634),
    Row("median function, lines", 7),
    Row("90th percentile of functions, lines", 17),
    Row("longest function, lines", 53, 40),
    Row("modules in the largest import cycle, at run time", 0, 0),
    Row("modules in the largest import cycle, with types", 9, 0),
    Row("importers of apsw outside store/sqlite", 34, 0),
    Row("attributes of ColibriServerContext", 43),
)


def measure(root: Path) -> Figures:
    """The figures of a checkout, by the names of the rows."""
    package = root / "src" / "colibri"
    trees = {file: ast.parse(file.read_bytes()) for file in sorted(package.rglob("*.py"))}
    lines = {file: _lines(file) for file in trees}
    shell = [n for file, n in lines.items() if _part(package, file) in ("core", "tools", "server")]
    store = [n for file, n in lines.items() if _part(package, file) == "store"]
    functions = sorted(_function_lengths(trees.values()))
    imports = [one for file, tree in trees.items() for one in _imports(package, file, tree)]
    tests = [*(root / "tests").rglob("*.py"), *(root / "torture").rglob("*.py")]
    values = (
        len(lines),
        sum(lines.values()),
        sum(shell),
        sum(map(_lines, tests)),
        round(statistics.median(lines.values())),
        max(shell),
        max(store),
        max(lines.values()),
        round(statistics.median(functions)),
        functions[math.ceil(len(functions) * 0.9) - 1],
        functions[-1],
        largest_cycle(one for one in imports if not one.type_only),
        largest_cycle(imports),
        sum(_imports_apsw(tree) for file, tree in trees.items() if "sqlite" not in file.parts),
        sum(map(_attributes, trees.values())),
    )
    return {row.name: value for row, value in zip(ROWS, values, strict=True)}


def _lines(file: Path) -> int:
    return file.read_bytes().count(b"\n")


def _part(package: Path, file: Path) -> str:
    return file.relative_to(package).parts[0]


def _function_lengths(trees: Iterable[ast.Module]) -> Iterator[int]:
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield (node.end_lineno or node.lineno) - node.lineno + 1


def _imports(package: Path, file: Path, tree: ast.Module) -> Iterator[Import]:
    by = _module(package, file)
    for_types = {id(inner) for guard in ast.walk(tree) for inner in _guarded(guard)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [_target(package, node.module or "", alias.name) for alias in node.names]
        else:
            continue
        for name in names:
            if name.partition(".")[0] == package.name and name != by:
                yield Import(name, by, id(node) in for_types)


def _guarded(node: ast.AST) -> Iterator[ast.AST]:
    """Everything under `if TYPE_CHECKING:`."""
    if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
        for statement in node.body:
            yield from ast.walk(statement)


def _module(package: Path, file: Path) -> str:
    parts = file.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _target(package: Path, module: str, name: str) -> str:
    """What `from module import name` imports: a module below it, or the module itself."""
    below = package.parent.joinpath(*module.split("."), name)
    return f"{module}.{name}" if below.is_dir() or below.with_suffix(".py").exists() else module


def largest_cycle(imports: Iterable[Import]) -> int:
    """The size of the largest group of modules that all reach each other; 0 without a cycle."""
    graph: dict[str, set[str]] = {}
    for one in imports:
        graph.setdefault(one.by, set()).add(one.of)
    reach = {module: _reached(graph, module) for module in graph}
    cycles = [sum(module in reach.get(other, ()) for other in reach[module]) for module in graph]
    return max(cycles, default=0)


def _reached(graph: dict[str, set[str]], module: str) -> set[str]:
    found: set[str] = set()
    waiting = list(graph[module])
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += graph.get(one, ())
    return found


def _imports_apsw(tree: ast.Module) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(alias.name == "apsw" for alias in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "apsw":
            return True
    return False


def _attributes(tree: ast.Module) -> int:
    """Attributes of the context: set on self or in the class, without its methods."""
    found: set[str] = set()
    for kind in ast.walk(tree):
        if isinstance(kind, ast.ClassDef) and kind.name == "ColibriServerContext":
            for node in ast.walk(kind):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                    found |= {node.attr} if isinstance(node.value, ast.Name) else set()
            for statement in kind.body:
                targets = statement.targets if isinstance(statement, ast.Assign) else []
                found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return len(found - {"__slots__"})


# The table.


def render(page: str, figures: Figures) -> str:
    """The page with its table rewritten; the text around it stays."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    rows = ["| | before | now | goal |", "|---|---:|---:|---|"]
    for row in ROWS:
        now = figures[row.name]
        goal = "" if row.goal is None else f"at most {row.goal:,}" if row.goal else "none"
        missed = row.goal is not None and now > row.goal
        rows.append(f"| {row.name} | {row.before:,} | {now:,} | {goal}{': missed' * missed} |")
    return f"{before}{BEGIN}\n" + "\n".join(rows) + f"\n{END}{after}"


def missed(figures: Figures) -> list[str]:
    return [
        f"{row.name}: {figures[row.name]:,}, at most {row.goal:,}"
        for row in ROWS
        if row.goal is not None and figures[row.name] > row.goal
    ]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/shape", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("root", nargs="?", type=Path, default=ROOT, metavar="DIR")
    options = parser.parse_args(arguments)
    check, root = options.check, options.root
    figures = measure(root)
    if root != ROOT:
        print("\n".join(f"{figures[row.name]:>7,}  {row.name}" for row in ROWS))
        return 0
    page = PAGE.read_text(encoding="utf-8")
    made = render(page, figures)
    for line in missed(figures):
        print(f"shape: missed: {line}", file=sys.stderr)
    if check and made != page:
        print("shape: error: the table in ARCHITECTURE.md is old; write it with scripts/shape")
        return 1
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
