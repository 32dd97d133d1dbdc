"""Runs a PostgreSQL server for as long as somebody holds a connection to it: see postgres.py.

    python postgres_keeper.py PROGRAMS USER NOTE

PROGRAMS is where PostgreSQL's programs are, USER the name they run under ('' for this one).
Standard input is the first of those connections. The directory and the port are written into the
file NOTE and to standard output when the server is ready. Standard library only.
"""

import contextlib
import os
import pwd
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SUPERUSER = "admin"
SECONDS = 60  # that a start may take on a loaded machine
# Sorted by a language, so that a text that is not compared by its bytes is found out.
LANGUAGES = (
    ("--locale=C", "--locale-provider=icu", "--icu-locale=en-US"),
    ("--locale=en_US.UTF-8",),
    ("--locale=C",),
)
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "shared_buffers": "32MB",
    "logging_collector": "off",
}


def main(programs: str, user: str, note: str) -> None:
    directory = Path(tempfile.mkdtemp(prefix="colibri-postgres-"))
    server = None
    try:
        if user:
            shutil.chown(directory, user)
        started = starting(directory, user)
        initialize(Path(programs), directory, started)
        port = free_port()
        server = start(Path(programs), directory, port, started)
        with listen(directory) as door:
            Path(note).write_text(f"{directory} {port}", encoding="utf-8")
            sys.stdout.write(f"{directory} {port}\n")
            sys.stdout.flush()
            wait_for_the_last(door)
    finally:
        for left in (Path(note), Path(note).with_suffix(".lock")):
            left.unlink(missing_ok=True)
        if server is not None:
            stop(server)
        shutil.rmtree(directory, ignore_errors=True)


def starting(directory: Path, user: str) -> dict[str, Any]:
    """How PostgreSQL's programs are started, as a user, in a directory."""
    if not user:
        return {"cwd": directory}
    group = pwd.getpwnam(user).pw_gid
    return {"cwd": directory, "user": user, "group": group, "extra_groups": []}


def initialize(programs: Path, directory: Path, started: dict[str, Any], *more: str) -> None:
    command = [
        str(programs / "initdb"),
        "--pgdata",
        str(directory / "data"),
        "--encoding=UTF8",
        "--no-sync",
        *more,
    ]
    command += [f"--username={SUPERUSER}", "--auth-local=trust", "--auth-host=scram-sha-256"]
    for language in LANGUAGES:
        made = subprocess.run(
            [*command, *language], **started, check=False, capture_output=True, text=True
        )
        if not made.returncode:
            return
    raise SystemExit(f"initdb: {made.stderr.strip()}")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def start(
    programs: Path, directory: Path, port: int, started: dict[str, Any], **more: str
) -> "subprocess.Popen[bytes]":
    command = [str(programs / "postgres"), "-D", str(directory / "data"), "-k", str(directory)]
    command += [
        "-p",
        str(port),
        *(f"--{name}={value}" for name, value in (SETTINGS | more).items()),
    ]
    with (directory / "log").open("ab") as log:
        server = subprocess.Popen(
            command, **started, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    state = directory / "data" / "postmaster.pid"
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and server.poll() is None:
        with contextlib.suppress(FileNotFoundError):
            if state.read_text(encoding="ascii").rstrip().endswith(("ready", "standby")):
                return server
        time.sleep(0.02)
    stop(server)
    raise SystemExit(f"postgres: {(directory / 'log').read_text(errors='replace')}")


def listen(directory: Path) -> socket.socket:
    door = socket.socket(socket.AF_UNIX)
    door.bind(str(directory / "keeper"))
    door.listen()
    return door


def wait_for_the_last(door: socket.socket) -> None:
    """Until standard input and every connection have ended."""
    with selectors.DefaultSelector() as held:
        held.register(sys.stdin, selectors.EVENT_READ)
        held.register(door, selectors.EVENT_READ)
        while len(held.get_map()) > 1:
            for key, _ in held.select():
                if key.fileobj is door:
                    held.register(door.accept()[0], selectors.EVENT_READ)
                elif not os.read(key.fd, 1):
                    held.unregister(key.fileobj)


def stop(server: "subprocess.Popen[bytes]") -> None:
    for sign in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        server.send_signal(sign)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(10)
            return


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    main(*sys.argv[1:])
