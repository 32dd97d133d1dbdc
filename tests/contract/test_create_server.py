"""create_server makes a server and touches nothing."""

import ast
import inspect
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType

import pytest

import colibri
import colibri.server
from colibri import server
from colibri.server import ColibriServerContext, ColibriToolConfig, create_server
from colibri.tools.system import Nothing
from tests.contract import Linked, Recording, configured
from tests.contract.requirement import requirement
from tests.support.client import environment, execute

SOURCE = Path(colibri.__file__).parent
PUBLIC = {
    "AuditSink",
    "ToolEnterEvent",
    "ToolExitEvent",
    "ColibriToolConfig",
    "ColibriServerContext",
    "create_server",
    "register_colibri_tool",
    "start",
    "stop",
    "create_noop_audit_sink",
    "main",
}
WEB = ("aiohttp", "http", "httpx", "mcp", "socket", "socketserver", "ssl", "starlette", "uvicorn")


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("COLIBRI_", "AMS_", "CLAUDE_")):
            monkeypatch.delenv(name)


def python(program: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a fresh interpreter."""
    return execute([sys.executable, "-c", program], env=environment(**env))


def descriptors() -> list[str]:
    return os.listdir("/dev/fd")  # noqa: PTH208 - a list of names, on Linux and macOS


# The module.


@requirement("000:1:exports")
def test_the_public_names_are_exactly_the_eleven() -> None:
    """Specification 16.1: no more, no fewer."""
    visible = {
        name
        for name, value in vars(server).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert set(server.__all__) == PUBLIC
    assert visible == PUBLIC


@requirement("000:1a:types")
def test_a_tool_config_needs_an_input_schema_and_is_for_the_write_lane() -> None:
    """Specification 16.5: every tool has a schema."""
    for name in sorted(PUBLIC):
        assert isinstance(getattr(server, name), type) == name[0].isupper(), name
    with pytest.raises(TypeError, match="input_schema"):
        ColibriToolConfig()  # type: ignore[call-arg]
    assert ColibriToolConfig(input_schema=Nothing).lane == "write"


@requirement("000:1a:context")
def test_the_context_offers_what_callers_may_use() -> None:
    """Specification 16.4."""
    ctx = create_server()
    assert isinstance(ctx, ColibriServerContext)
    for name in ("register_colibri_tool", "start", "stop", "get_version", "get_mode", "run"):
        assert callable(getattr(ctx, name))
    assert ctx.is_connected() is False


@requirement("000:1b:signatures")
def test_the_functions_take_what_the_contract_says() -> None:
    """Specification 16.2, 16.4."""
    options = inspect.signature(create_server).parameters
    assert list(options) == [
        "audit_sink",
        "transport",
        "version",
        "mode",
        "now_ms",
        "boot_start_ms",
        "logger",
        "config",
        "install_handlers",
    ]
    for option in options.values():
        assert option.kind is option.KEYWORD_ONLY
        assert option.default is not option.empty
    register = inspect.signature(server.register_colibri_tool).parameters
    assert list(register) == ["ctx", "name", "config", "handler"]
    assert list(inspect.signature(server.start).parameters) == ["ctx"]
    assert list(inspect.signature(server.stop).parameters) == ["ctx"]


@requirement("000:1d:main")
def test_importing_the_server_does_not_run_it() -> None:
    """Specification 16.1: tests import the module without a server starting."""
    done = python("import colibri.server, colibri.__main__, colibri.server.context; print('idle')")
    assert (done.stdout, done.stderr, done.returncode) == ("idle\n", "", 0)


# What it returns.


@requirement("000:T-1", "000:3b:defaults", "000:3c:no-sink")
def test_the_defaults_are_the_package_version_and_full_mode() -> None:
    """T-1; Specification 16.2: no option is needed."""
    ctx = create_server()
    assert ctx.get_version() == colibri.VERSION
    assert ctx.get_mode() == "FULL"


@requirement("000:3b:defaults")
def test_the_default_logger_is_stderr_and_the_default_transport_is_stdio() -> None:
    """Specification 16.2, 2.20: stdout belongs to the protocol."""
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    program = "from colibri.server import *; c = create_server(); start(c); exit(c.run())"
    done = execute([sys.executable, "-c", program], input=request + "\n")
    assert json.loads(done.stdout) == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert "[colibri] ready\n" in done.stderr
    assert done.returncode == 0


@requirement("000:T-2")
def test_the_version_can_be_given() -> None:
    """T-2; Specification 16.2."""
    assert create_server(version="9.9.9-test").get_version() == "9.9.9-test"


@requirement("000:T-3")
def test_a_given_mode_bypasses_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """T-3; Specification 16.2: the environment alone would be refused."""
    monkeypatch.setenv("COLIBRI_MODE", "no such mode")
    assert create_server(mode="READONLY").get_mode() == "READONLY"


@requirement("000:T-6")
def test_a_valid_environment_is_read_without_complaint(monkeypatch: pytest.MonkeyPatch) -> None:
    """T-6; Specification 16.2."""
    monkeypatch.setenv("COLIBRI_MODE", "MINIMAL")
    monkeypatch.setenv("COLIBRI_STARTUP_TIMEOUT_MS", "5000")
    assert create_server().get_mode() == "MINIMAL"


@requirement("000:T-26")
def test_a_bad_environment_is_not_swallowed() -> None:
    """T-26; Specification 14.4: AMS_MODE is refused, in a separate process."""
    done = python("from colibri.server import create_server; create_server()", AMS_MODE="FULL")
    assert done.returncode == 1
    assert "ConfigError: AMS_MODE" in done.stderr
    done = python(
        "from colibri.server import create_server; create_server(mode='FULL')", AMS_MODE="FULL"
    )
    assert (done.stderr, done.returncode) == ("", 0)


@requirement("000:T-7")
def test_a_given_sink_gets_the_events_of_calls() -> None:
    """T-7; Specification 17.1: observable by registering a tool and calling it."""
    sink = Recording()
    server = Linked(audit_sink=sink)
    server.ctx.register_colibri_tool("mine", ColibriToolConfig(input_schema=Nothing), lambda _: 1)
    with server:
        server.call("mine")
    assert sink.kinds == ["enter", "exit"]


# What it leaves alone.


class Untouchable:
    """A transport that must not be used yet."""

    unsent = 0
    wake_fd = -1

    def _touched(self, *_args: object, **_options: object) -> None:
        raise AssertionError("the transport was used")

    start = receive = send = wake = close = _touched


@requirement("000:T-4", "000:3c:no-connect")
def test_creating_a_server_does_not_connect(project: Path) -> None:
    """T-4; Specification 16.3: no descriptor, no thread, no database either."""
    config = configured(project)
    before = (descriptors(), threading.active_count())
    ctx = create_server(transport=Untouchable(), config=config)
    assert ctx.is_connected() is False
    assert (descriptors(), threading.active_count()) == before
    assert list(project.iterdir()) == []


@requirement("000:T-5", "000:3c:no-handlers")
def test_creating_a_server_installs_no_handlers() -> None:
    """T-5; Specification 16.3."""
    before = (sys.excepthook, threading.excepthook)
    create_server()
    assert (sys.excepthook, threading.excepthook) == before


@requirement("000:T-24")
def test_creating_a_server_leaves_stdout_alone() -> None:
    """T-24; Specification 16.3: neither the object, nor its write, nor the descriptor."""
    stdout, write, file = sys.stdout, sys.stdout.write, os.fstat(1)
    create_server()
    assert sys.stdout is stdout
    assert sys.stdout.write == write
    assert (os.fstat(1).st_dev, os.fstat(1).st_ino) == (file.st_dev, file.st_ino)


@requirement("000:T-25")
def test_the_server_imports_no_web_module() -> None:
    """T-25; Specification 18.2: checked in the whole import graph, lazy imports included.

    Only the driver of PostgreSQL may load sockets; nothing loads it for a ledger in a file.
    """
    everything = ", ".join(
        ".".join(("colibri", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(
            ".__init__"
        )
        for path in SOURCE.rglob("*.py")
        if path.name != "__main__.py" and not {"cli", "postgres"} & set(path.parts)
    )
    program = f"import sys\nimport {everything}\nprint(*sys.modules)"
    done = python(program, COVERAGE_PROCESS_START="")  # which would load a socket itself
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert "colibri.server.wire" in loaded
    web = {name for name in loaded if name.split(".")[0] in WEB or "websocket" in name}
    assert web == set()


@requirement("000:3c:no-env")
def test_only_the_configuration_reads_the_environment() -> None:
    """Specification 18.1."""
    readers = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Attribute) and node.attr in ("environ", "environb", "getenv"))
        or (isinstance(node, ast.ImportFrom) and node.module == "os")
    }
    assert readers == {"config.py"}
