"""Nobody but SQLite may open the database: closing such a descriptor drops SQLite's locks.

What a path leads to cannot be seen in the source. So every place that opens a file is listed here
with what it opens, and a new one fails until somebody has asked himself.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "colibri"

# A call of any of these opens a file.
OPENERS = {"open", "fdopen", "read_bytes", "read_text", "write_bytes", "write_text"}
# Modules that open, copy or map files by themselves; and what may be used of them.
MODULES = {"shutil", "zipfile", "tarfile", "mmap", "sqlite3", "fileinput", "linecache"}
HARMLESS = {"shutil.copyfileobj", "shutil.get_terminal_size", "shutil.rmtree", "shutil.which"}

# module and function -> what it opens
LISTED = {
    "cli.__init__._give_up_output": "/dev/null",
    "cli.__init__._print_anywhere": "stdout",
    "cli.commands.demo.forge": "its own bundle",
    "cli.person.at_work": "pipes to the server in this process",
    "cli.files.create": "a new file, O_EXCL: nobody has it open",
    "cli.files.read": "the settings of a client",
    "cli.settings.launch._fetched": "what its installer noted, of the package",
    "cli.settings.hooks._plugin": "the plugin for OpenCode, of the package",
    "cli.commands.report._open": "a browser",
    "cli.show.report_page._read": "pages of the package",
    "cli.show.report_page.log_of": "the last report, before there is a database",
    "cli.commands.why._text": "what it is asked about, before there is a database",
    "cli.commands.verify._checkpoint": "a checkpoint's text, before there is a database",
    "cli.commands.verify._opened": "what is no database, in a process that has none open",
    "cli.commands.witness._add_trailer": "a commit message, after the database was closed",
    "cli.git.mirrored": "a git directory of its own, made a moment before",
    "cli.git._line": "a line of the project's .git",
    "cli.git.newest_bytes": "a log of a git directory",
    "cli.settings.git_hooks._start": "a hook of git, in a process that has no database open",
    "cli.witness.refs._named": "the packed refs of a git directory",
    "cli.witness.signatures._put": "a file of its own folder, made a moment before",
    "core.check.rules._open": "no file: a session, among those that it knows",
    "hook.aside._work": "the null device, in a process that opens no file of ours",
    "hook.files._open": "a file of git's, one that a tool named, before there is a database, or,"
    " for a report, one that changed and is not the database",
    "hook.keep._require_hope": "the database's header, before SQLite has it open",
    "hook.settings._hooks": "the hook settings of a host, before there is a database",
    "hook.spool.open_own": "the spool, or the counter of lost deeds",
    "project._text": "a line of a .git or of a git directory",
    "server.boot.register": "catalogue.json",
    "server.checks.rss_mb": "/proc/self/statm",
    "server.transport.claim_stdout": "/dev/null",
    "store.task_verification._replay_task": "no file: sessions, among the rules",
    "store.postgres.schema._load_migration": "SQL of the package",
    "store.heads._lines": "the heads of a log, in the state directory",
    "store.heads._open": "the same, or a directory there",
    "store.sqlite.backup.copy": "a new file, O_EXCL: nobody has it open",
    "store.sqlite.files.create": "a new file, O_EXCL: nobody has it open",
    "store.sqlite.schema._load_migration": "SQL of the package",
    "store.sqlite.locks.open_lock": "the lock file",
    "store.sqlite.files.sync_directory": "a directory",
    "store.sqlite.files.sync_log": "the -wal, in which SQLite locks nothing",
    "store.sqlite.locks.use": "the lock file",
    "store.gate_file._read": "colibri.toml",
    "store.skills._data": "a skill; not if it is the database under another name",
    "store.skills._opened": "a folder of skills",
    "store.sqlite.place._mounts": "the list of mounts",
    "tools.catalogue.main": "catalogue.json",
}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for file in sorted(SOURCE.rglob("*.py")):
        name = ".".join(file.relative_to(SOURCE).with_suffix("").parts)
        yield name, ast.parse(file.read_text(encoding="utf-8"))


def openings(tree: ast.AST, module: str, function: str = "") -> Iterator[str]:
    """The innermost function around each call that opens a file."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Call) and _name(node.func) in OPENERS:
            yield f"{module}.{function}"
        inner = node.name if isinstance(node, ast.FunctionDef) else function
        yield from openings(node, module, inner)


def _name(called: ast.expr) -> str:
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


def uses(tree: ast.AST) -> Iterator[str]:
    """What is used of MODULES."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in MODULES:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES - {"shutil"})
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in MODULES:
            yield ast.unparse(node)


def test_every_place_that_opens_a_file_is_known_not_to_open_the_database() -> None:
    """Specification 15.2."""
    found = {place for name, tree in modules() for place in openings(tree, name)}
    assert found == set(LISTED)


def test_nothing_that_copies_or_maps_files_is_used() -> None:
    """Specification 15.2: a second SQLite in the process would cancel locks too."""
    assert {use for _, tree in modules() for use in uses(tree)} == HARMLESS


def imports_apsw(tree: ast.AST) -> bool:
    return any(
        (isinstance(node, ast.ImportFrom) and node.module == "apsw")
        or (isinstance(node, ast.Import) and any(alias.name == "apsw" for alias in node.names))
        for node in ast.walk(tree)
    )


def test_sqlite_is_known_in_store_sqlite_alone() -> None:
    """Every other module takes `store.connection.Connection` and asks `store.faults`."""
    knowing = {name for name, tree in modules() if imports_apsw(tree)}
    assert knowing and all(name.startswith("store.sqlite.") for name in knowing)


@pytest.mark.parametrize(
    "line", ["open(p)", "os.open(p, 0)", "Path(p).read_bytes()", "io.open(p)", "x.path.open('rb')"]
)
def test_the_check_sees_an_opening(line: str) -> None:
    assert list(openings(ast.parse(f"def f():\n    {line}"), "m")) == ["m.f"]


@pytest.mark.parametrize(
    ("line", "use"),
    [
        ("import sqlite3", "sqlite3"),
        ("from zipfile import ZipFile", "zipfile.ZipFile"),
        ("shutil.copy(p, q)", "shutil.copy"),
        ("mmap.mmap(f, 0)", "mmap.mmap"),
    ],
)
def test_the_check_sees_a_module(line: str, use: str) -> None:
    assert list(uses(ast.parse(line))) == [use]
