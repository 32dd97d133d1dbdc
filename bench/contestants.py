"""The programs that are measured: how each is started, and which of its tools do the same work.

floor    what no server can beat: an interpreter that does nothing, a loop without a server
stacks   what servers are built on, each with the same tool, from stacks/ledger.py
rivals   what a user would pick instead, from npm, unchanged, with their own tools
"""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from bench import install
from bench.client import Line, Server, call

COLIBRI = "Colibri"
BARE = "bare Python loop"
BARE_ROUNDS = "bare loop, Colibri's rows"
MCP = "Python SDK"
FASTMCP = "FastMCP"
TYPESCRIPT = "TypeScript SDK"
ONE_SYNC = ", one sync"  # the suffix of a stack that syncs once per call, as Colibri does
PASS, ZERO = "python -c pass", "node -e 0"
MEMORY, TASKMASTER, BACKLOG, SHRIMP = (
    "server-memory",
    "task-master-ai",
    "backlog.md",
    "mcp-shrimp-task-manager",
)


@dataclass(frozen=True)
class Tools:
    """A server's tools for the same four things; None if it has no such tool."""

    create: Callable[[Path, int], Line]
    list: Callable[[Path], Line] | None = None
    next: Callable[[Path], Line] | None = None


@dataclass(frozen=True)
class Contestant:
    """A server: its command, its tools, and what it needs to run."""

    name: str
    command: tuple[str, ...]
    tools: Tools
    environment: Callable[[Path], dict[str, str]] = lambda folder: {}
    prepare: Callable[[Path], None] = lambda folder: None

    def start(self, folder: Path) -> Server:
        """Start a process in a folder that is already prepared."""
        return Server(self.command, folder, self.environment(folder))

    def create(self, folder: Path, calls: int) -> list[Line]:
        """So many calls that create a task, no two the same."""
        return [self.tools.create(folder, next(_numbers)) for _ in range(calls)]


@dataclass
class Field:
    """The contestants of a run, and those that could not take part, with the reason."""

    present: list[Contestant] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)


def gather(makers: Iterable[Callable[[], Contestant]]) -> Field:
    """Install what is missing; a contestant that cannot be installed is listed with the reason."""
    found = Field()
    for maker in makers:
        try:
            found.present.append(maker())
        except install.Missing as problem:
            found.absent[NAMES[maker]] = str(problem)
    return found


# The product, with the command that scripts/colibri runs last.


def colibri() -> Contestant:
    program = "import sys; from colibri.__main__ import main; sys.exit(main())"
    return Contestant(
        name=COLIBRI,
        command=(str(install.colibri()), "-I", "-c", program, "serve"),
        tools=Tools(
            create=equal,
            list=lambda folder: call("task_list", {"limit": 500}),
            next=lambda folder: call("task_next_actions", {"limit": 1}),
        ),
    )


# The floor and the stacks.


def bare() -> Contestant:
    return _stack(BARE, str(install.colibri()), str(install.STACKS / "bare.py"))


def bare_rounds() -> Contestant:
    """Colibri's own rows, written by a loop that treats all waiting calls as a round."""
    return _stack(BARE_ROUNDS, str(install.colibri()), str(install.STACKS / "bare_rounds.py"))


def mcp() -> Contestant:
    return _stack(MCP, str(install.python("mcp")), str(install.STACKS / "python_sdk.py"))


def fastmcp() -> Contestant:
    script = str(install.STACKS / "fastmcp_server.py")
    return _stack(FASTMCP, str(install.python("fastmcp")), script)


def typescript() -> Contestant:
    script = str(install.copy_script(install.npm("sdk"), "typescript_sdk.mjs"))
    return _stack(TYPESCRIPT, "node", script)


def _stack(name: str, *command: str) -> Contestant:
    return Contestant(name, command, Tools(create=equal))


def equal(folder: Path, number: int) -> Line:
    return call("task_create", {"title": f"Task {number}: mend the {number % 997}"})


def one_sync(contestant: Contestant) -> Contestant:
    """The same stack, but a call's first commit is not synced, as in Colibri."""
    return Contestant(
        contestant.name + ONE_SYNC,
        contestant.command,
        contestant.tools,
        environment=lambda folder: {"BENCH_SYNCS": "1"},
    )


def interpreters() -> dict[str, tuple[str, ...]]:
    """Programs that only start and exit."""
    programs: dict[str, tuple[str, ...]] = {PASS: (str(install.colibri()), "-c", "pass")}
    return programs | ({ZERO: ("node", "-e", "0")} if shutil.which("node") else {})


# The rivals.


def memory() -> Contestant:
    """The reference memory server: entities stand in for tasks; it has no tool for the next one."""

    def create(folder: Path, number: int) -> Line:
        entity = {"name": f"task {number}", "entityType": "task", "observations": [_title(number)]}
        return call("create_entities", {"entities": [entity]})

    return _rival(
        MEMORY,
        "memory",
        "@modelcontextprotocol/server-memory/dist/index.js",
        Tools(create=create, list=lambda folder: call("read_graph", {})),
        environment=lambda folder: {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")},
    )


def taskmaster() -> Contestant:
    """With its standard set of tools: the default one cannot create a task without an LLM."""

    def create(folder: Path, number: int) -> Line:
        given = {"title": _title(number), "description": "Look at it first."}
        return call("add_task", {"projectRoot": str(folder), **given})

    def prepare(folder: Path) -> None:
        (folder / ".taskmaster" / "tasks").mkdir(parents=True)

    return _rival(
        TASKMASTER,
        "taskmaster",
        "task-master-ai/dist/mcp-server.js",
        Tools(
            create=create,
            list=lambda folder: call("get_tasks", {"projectRoot": str(folder)}),
            next=lambda folder: call("next_task", {"projectRoot": str(folder)}),
        ),
        environment=lambda folder: {"TASK_MASTER_TOOLS": "standard"},
        prepare=prepare,
    )


def backlog() -> Contestant:
    """In a git repository, as its own `init` sets it up."""
    packages = install.npm("backlog")
    program = packages / "node_modules/backlog.md/cli.js"

    def prepare(folder: Path) -> None:
        init = ["node", str(program), "init", "bench", "--defaults", "--integration-mode", "mcp"]
        for command in (["git", "init", "--quiet"], init):
            subprocess.run(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=True,
                timeout=60,
            )

    return Contestant(
        BACKLOG,
        ("node", str(program), "mcp", "start"),
        Tools(
            create=lambda folder, number: call("task_create", {"title": _title(number)}),
            list=lambda folder: call("task_list", {}),
            next=lambda folder: call("task_list", {"ready": True, "limit": 1}),
        ),
        prepare=prepare,
    )


def shrimp() -> Contestant:
    """It has no tool for the next task, so that figure is left out."""

    def create(folder: Path, number: int) -> Line:
        task = {
            "name": _title(number),
            "description": "Look at it first, then mend it.",
            "implementationGuide": "Read, change, test.",
            "dependencies": [],
        }
        return call("split_tasks", {"updateMode": "append", "tasksRaw": json.dumps([task])})

    return _rival(
        SHRIMP,
        "shrimp",
        "mcp-shrimp-task-manager/dist/index.js",
        Tools(create=create, list=lambda folder: call("list_tasks", {"status": "all"})),
        environment=lambda folder: {"DATA_DIR": str(folder / "shrimp")},
    )


def _rival(
    name: str,
    package: str,
    script: str,
    tools: Tools,
    environment: Callable[[Path], dict[str, str]],
    prepare: Callable[[Path], None] = lambda folder: None,
) -> Contestant:
    path = install.npm(package) / "node_modules" / script
    return Contestant(name, ("node", str(path)), tools, environment, prepare)


def _title(number: int) -> str:
    return f"Task {number} mend the {number % 997}"


_numbers = count(1)
STACKS = (colibri, bare, mcp, fastmcp, typescript)
RIVALS = (memory, taskmaster, backlog, shrimp)
NAMES: dict[Callable[[], Contestant], str] = {
    colibri: COLIBRI,
    bare: BARE,
    bare_rounds: BARE_ROUNDS,
    mcp: MCP,
    fastmcp: FASTMCP,
    typescript: TYPESCRIPT,
    memory: MEMORY,
    taskmaster: TASKMASTER,
    backlog: BACKLOG,
    shrimp: SHRIMP,
}
