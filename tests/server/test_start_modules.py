"""Which modules a server loads before its first answer, which decides how fast it starts:
Specification 11.2.

Two programs, each in a fresh interpreter. `ALONE` has no site-packages and serves a session on the
main thread with nothing else running: the modules in sys.modules at the end were needed for it.
`WHOLE` is `colibri serve`, with a finder that records which thread imported what: the other threads
may load msgspec and apsw, the main thread may not.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.client import Server, environment, execute
from tests.support.ledger_reader import eventually

SLOW = (
    "apsw",
    "asyncio",
    "dataclasses",
    "http",
    "importlib.metadata",
    "logging",
    "msgspec",
    "pathlib",
    "socket",
    "ssl",
    "typing",
    "yaml",
)

ALONE = """
import sys

for name in sys.argv[1:]:
    __import__(name)

from colibri.config import load
from colibri.server import create_server
from colibri.server.context import register_catalogue
from tests.support.linked import linked

transport, peer = linked()
ctx = create_server(config=load(environ={}), transport=transport)
register_catalogue(ctx)
transport.start()
ctx.parts.wire.feed(sys.stdin.buffer.read())
transport.close()
while line := peer.receive():
    print(line.decode())
print(" ".join(sys.modules))
"""

WHOLE = """
import sys, threading

class Watch:
    imported = []

    def find_spec(self, name, path=None, target=None):
        self.imported.append((threading.current_thread().name, name))
        return None

sys.meta_path.insert(0, Watch())
report, *extra = sys.argv[1:]
sys.argv[1:] = ["serve"]
for name in extra:
    __import__(name)
from colibri.__main__ import main

try:
    main()
finally:
    with open(report, "w") as file:
        for thread, name in Watch.imported:
            print(thread, name, file=file)
"""

SESSION: list[tuple[str, dict[str, object]]] = [
    ("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}),
    ("tools/list", {}),
    ("tools/call", {"name": "server_ping", "arguments": {}}),
    ("tools/call", {"name": "server_health"}),
]


def slow(modules: set[str]) -> set[str]:
    """The modules that a start must not load, or parts of them."""
    return {name for name in modules if any(f"{name}.".startswith(f"{bad}.") for bad in SLOW)}


def alone(*extra: str) -> tuple[list[dict[str, object]], set[str]]:
    """The answers of a session, and every module that was loaded by then."""
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        for id, (method, params) in enumerate(SESSION)
    ]
    env = {k: v for k, v in environment().items() if not k.startswith("COVERAGE_")}
    done = execute(
        [sys.executable, "-S", "-c", ALONE, *extra],
        env=env,
        input="\n".join(lines) + "\n",
        check=True,
    )
    *answers, modules = done.stdout.splitlines()
    return [json.loads(answer) for answer in answers], set(modules.split())


def whole(
    project: Path, *extra: str, then: Callable[[Server], object] = bool
) -> dict[str, set[str]]:
    """Thread -> what it imported while `colibri serve` served a session to its end."""
    report = project / "imports.txt"
    program = (sys.executable, "-c", WHOLE, str(report), *extra)
    with Server(project, program, handshake=False, COVERAGE_PROCESS_START="") as server:
        for method, params in SESSION:
            assert "result" in server.request(method, params)
        then(server)
        assert server.close() == 0
    imported: dict[str, set[str]] = {}
    for line in report.read_text(encoding="utf-8").splitlines():
        thread, name = line.split()
        imported.setdefault(thread, set()).add(name)
    return imported


def test_a_session_needs_none_of_the_slow_modules() -> None:
    """Specification 11.2: the handshake, tools/list and the probes, without msgspec or apsw."""
    answers, modules = alone()
    assert [answer["id"] for answer in answers] == list(range(len(SESSION)))
    assert all("result" in answer for answer in answers)
    assert "colibri.server.wire" in modules
    assert slow(modules) == set()


def test_the_main_thread_of_a_whole_server_imports_none_of_them(tmp_path: Path) -> None:
    """Specification 11.2: they are loaded on the write thread, after the first answer has left."""
    imported = whole(tmp_path)
    assert "colibri.server" in imported["MainThread"]
    assert slow(imported.pop("MainThread")) == set()
    others = set().union(*imported.values())
    assert {"apsw", "msgspec"} <= others  # they were loaded, so the finder can see them
    never = {"asyncio", "dataclasses", "http", "importlib.metadata", "socket", "ssl", "yaml"}
    assert {name for name in others if name.split(".")[0] in never} == set()


def test_skills_are_loaded_by_a_thread_that_no_call_waits_for(tmp_path: Path) -> None:
    """Specification 11.2: PyYAML is needed for them, and only where there are any."""
    for name, text in (("good", "---\nname: good\ndescription: x\n---\n"), ("bad", "---\n")):
        folder = tmp_path / ".agents" / "skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(text)

    def counted(server: Server) -> None:
        eventually(lambda: server.data("server_health")["skill_count"] == 1, "the bad one is seen")

    imported = whole(tmp_path, then=counted)
    assert {thread for thread, names in imported.items() if "yaml" in names} == {"colibri-health"}


@pytest.mark.parametrize("module", ["typing", "logging", "dataclasses", "http.client"])
def test_a_slow_module_would_be_noticed(tmp_path: Path, module: str) -> None:
    """Negative control, for both programs."""
    assert module in slow(alone(module)[1])
    assert module in slow(whole(tmp_path, module)["MainThread"])


def test_the_names_are_compared_by_whole_parts() -> None:
    """Negative control: `sslx` is not `ssl`, `http.client` is `http`."""
    assert slow({"sslx", "json", "http.client", "importlib", "typing"}) == {"http.client", "typing"}
