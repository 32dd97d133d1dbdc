"""start, stop and main."""

import re
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import colibri
from colibri.config import load
from colibri.core.errors import ResourceError
from colibri.server import ColibriServerContext, create_server, start, stop
from tests.contract import PATIENCE
from tests.contract.requirement import requirement
from tests.support.client import environment, execute

ENDLESS = """
import sys, threading
from colibri.server import main
from colibri.server.transport import Stream

Stream.start = lambda self: threading.Event().wait()
sys.exit(main())
"""


class Stub:
    """A transport without a peer; `steps` is what was asked of it, in order."""

    unsent = 0
    wake_fd = -1

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.connect = threading.Event()
        self.connect.set()
        self.observe: list[str] | None = None
        self.receiving = threading.Event()
        self._woken = threading.Event()

    def start(self) -> None:
        self.steps.append("start")
        if self.observe is not None:
            self.observe.append("connecting")
        self.connect.wait(PATIENCE)

    def receive(self, timeout: float | None, *, reading: bool) -> bytes | None:
        self.receiving.set()
        woken = self._woken.wait(PATIENCE if timeout is None else timeout)
        assert woken or timeout is not None, "nobody woke the server"
        self._woken.clear()
        return None

    def send(self, lines: bytes) -> None:
        self.steps.append("send")

    def wake(self) -> None:
        self._woken.set()

    def close(self) -> None:
        self.steps.append("close")


@pytest.fixture
def stub() -> Iterator[Stub]:
    """A stub; nobody is left waiting in its start."""
    transport = Stub()
    yield transport
    transport.connect.set()


@pytest.fixture(autouse=True)
def _hooks() -> Iterator[None]:
    """Leave the interpreter's hooks as they were."""
    before = (sys.excepthook, threading.excepthook)
    yield
    sys.excepthook, threading.excepthook = before


def server(stub: Stub, logged: list[str] | None = None, **env: str) -> ColibriServerContext:
    """A server without a client, in MINIMAL so that no database is opened."""
    return create_server(
        transport=stub,
        config=load(environ={"COLIBRI_MODE": "MINIMAL", **env}),
        logger=([] if logged is None else logged).append,
        version="1.2.3",
    )


@requirement("000:T-19", "000:6a:start")
def test_start_returns_when_the_transport_is_connected(stub: Stub) -> None:
    """T-19; Specification 11.1, 16.7: no client has said anything yet."""
    ctx = server(stub)
    start(ctx)
    assert stub.steps == ["start"]
    assert ctx.is_connected() is True
    stop(ctx)
    assert ctx.is_connected() is False


@requirement("000:6a:start")
def test_start_says_why_a_transport_did_not_connect(stub: Stub) -> None:
    """Specification 16.7: it ends when the transport is connected, or not at all."""

    def refuse() -> None:
        raise ConnectionRefusedError("nobody there")

    ctx = server(stub)
    stub.start = refuse  # type: ignore[method-assign]
    with pytest.raises(ConnectionRefusedError, match="nobody there"):
        start(ctx)
    assert ctx.is_connected() is False


@requirement("000:T-20", "000:6b:timeout")
def test_start_gives_up_on_a_transport_that_never_connects(stub: Stub) -> None:
    """T-20; Specification 11.4."""
    logged: list[str] = []
    ctx = server(stub, logged, COLIBRI_STARTUP_TIMEOUT_MS="20")
    stub.connect.clear()
    with pytest.raises(ResourceError, match=r"^startup timeout exceeded$"):
        start(ctx)
    assert ctx.is_connected() is False
    assert "[colibri] ready" not in logged


@requirement("000:6b:timeout")
def test_a_startup_timeout_ends_the_process_with_75() -> None:
    """Specification 11.4."""
    done = execute(
        [sys.executable, "-c", ENDLESS],
        env=environment(COLIBRI_STARTUP_TIMEOUT_MS="20", COLIBRI_MODE="MINIMAL"),
    )
    assert done.returncode == 75
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1] == "[colibri] fatal: startup timeout exceeded"


@requirement("000:T-21", "000:6b:handlers")
def test_start_installs_the_handlers_for_unhandled_errors(stub: Stub) -> None:
    """T-21; Specification 16.8: and the end of the server takes them away again."""
    before = (sys.excepthook, threading.excepthook)
    ctx = server(stub)
    start(ctx)
    assert sys.excepthook is not before[0]
    assert threading.excepthook is not before[1]
    stop(ctx)
    assert (sys.excepthook, threading.excepthook) == before


@requirement("000:T-22")
def test_a_second_start_does_not_install_them_again(stub: Stub) -> None:
    """T-22; Specification 16.8: two servers in one process share the first one's handlers."""
    first, second = server(stub), server(Stub())
    start(first)
    installed = (sys.excepthook, threading.excepthook)
    start(second)
    assert (sys.excepthook, threading.excepthook) == installed
    stop(second)
    assert (sys.excepthook, threading.excepthook) == installed
    stop(first)


@requirement("000:T-21")
def test_start_leaves_the_handlers_alone_when_told_to(stub: Stub) -> None:
    """Specification 16.8: a test runner has its own."""
    before = (sys.excepthook, threading.excepthook)
    ctx = create_server(
        transport=stub, mode="FULL", logger=lambda _line: None, install_handlers=False
    )
    start(ctx)
    assert (sys.excepthook, threading.excepthook) == before
    stop(ctx)


@requirement("000:6b:handlers")
@pytest.mark.parametrize("thread", ["main", "other"])
def test_an_unhandled_error_is_logged_and_shuts_the_server_down(stub: Stub, thread: str) -> None:
    """Specification 3.14: in order, with exit code 1."""
    logged: list[str] = []
    ctx = server(stub, logged)
    start(ctx)
    if thread == "main":
        sys.excepthook(KeyError, KeyError("lost"), None)
    else:
        failing = threading.Thread(target=lambda: dict[str, int]()["lost"])
        failing.start()
        failing.join(PATIENCE)
    assert ctx.run() == 1
    assert any(
        line.startswith("[colibri] uncaughtException: ") and line.endswith("KeyError: 'lost'")
        for line in logged
    )
    assert "[colibri] shutdown 1/6 announce: uncaughtException" in logged
    assert stub.steps[-1] == "close"


@requirement("000:6b:starting", "000:6b:ready")
def test_one_line_before_connecting_and_one_after(stub: Stub) -> None:
    """Specification 11.3."""
    logged: list[str] = []
    stub.observe = logged
    ctx = server(stub, logged)
    start(ctx)
    before_stop = list(logged)
    stop(ctx)
    assert before_stop == [
        "[colibri] starting in mode=MINIMAL version=1.2.3",
        "connecting",
        "[colibri] ready",
    ]


@requirement("000:T-23", "000:6c:stop")
def test_stop_closes_the_transport(stub: Stub) -> None:
    """T-23; Specification 16.9: of a server that nobody runs."""
    ctx = server(stub)
    start(ctx)
    stop(ctx)
    assert stub.steps == ["start", "close"]


@requirement("000:6c:stop")
def test_stop_waits_for_the_thread_that_runs_the_server(stub: Stub) -> None:
    """Specification 16.9: it returns when the transport is closed, whoever closes it."""
    ctx = server(stub)
    start(ctx)
    codes: list[int] = []
    runner = threading.Thread(target=lambda: codes.append(ctx.run()))
    runner.start()
    assert stub.receiving.wait(PATIENCE)
    stop(ctx)
    closed = stub.steps == ["start", "close"]
    runner.join(PATIENCE)
    assert closed
    assert codes == [0]


@requirement("000:6c:stop")
def test_a_server_that_was_never_started_can_be_stopped(stub: Stub) -> None:
    """Specification 16.9: tests use it for teardown."""
    stop(server(stub))
    assert stub.steps == ["close"]


@requirement("000:6d:fatal")
def test_what_main_cannot_handle_is_fatal(tmp_path: Path) -> None:
    """Specification 11.7: an installation with a broken file."""
    package = tmp_path / "lib" / "colibri"
    shutil.copytree(Path(colibri.__file__).parent, package)
    (package / "tools" / "catalogue.json").write_text("{", encoding="utf-8")
    done = execute(
        [sys.executable, "-m", "colibri", "serve"],
        cwd=tmp_path,
        env={**environment(), "PYTHONPATH": str(package.parent)},
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert re.match(r"\[colibri\] fatal: Traceback .*JSONDecodeError: ", done.stderr, re.DOTALL)
