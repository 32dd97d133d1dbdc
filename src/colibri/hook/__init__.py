"""`colibri hook`: what a host reports of its agent's work, put into the ledger as deeds.

A host starts it on its events with JSON on stdin. It must never be in the host's way: it ends with
exit code 0 whatever happens, within 2 seconds (0.7 at the end of a session), and writes nothing to
stdout but what the host's protocol wants. What cannot be recorded goes to the spool; what cannot
even be put there is counted. A project without a ledger is left alone.

It runs on every tool call, so it loads no more than it needs: keep.py only where a ledger is.
"""

import json
import os
import signal
import stat

from colibri import config as configs
from colibri.core.errors import ColibriError
from colibri.hook import hosts
from colibri.hook import report as reports
from colibri.hook.clock import Clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NoReturn

    from colibri.config import Config

MOST_BYTES = 64 * 1024 * 1024
_CHUNK = 1024 * 1024
_EXPECTED = '{"cancel":false}'  # by Cline, whatever happened
# These set CLAUDE_PROJECT_DIR themselves; a host that runs inside them only inherits it.
_NAME_PROJECT = frozenset({"claude-code", "gemini", "copilot", "qwen"})


def main() -> "NoReturn":
    """Run once, and end the process: nothing that Python would tidy up is worth the time."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends in time by itself
    clock = Clock()
    try:
        answer = _run(configs.of_process(), clock)
        os.write(1, answer.encode("utf-8", "replace"))
    except Exception:  # the host must not notice
        clock.count_pending()
    finally:
        os._exit(0)


def _run(environ: "Mapping[str, str]", clock: Clock) -> str:
    """Record what is on stdin; what to answer."""
    clock.find = lambda: _config(environ, None, "")
    try:
        payload = json.loads(_read_all().decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        clock.count_pending()
        return ""
    if not isinstance(payload, dict):
        return ""
    found = reports.read(payload, environ)
    config = None if found is None else _config(environ, found.cwd, found.host)
    clock.find = None
    if found is None or config is None:
        return _EXPECTED if hosts.recognise(payload, environ) is hosts.CLINE else ""
    clock.pending = config
    if found.event == "session.end":
        clock.shorten()
    from colibri.hook import keep  # all that concerns the ledger

    return keep.keep(found, config, environ, clock)


def _read_all() -> bytes:
    """All of stdin, so that the host can write it; but no more than MOST_BYTES are kept."""
    chunks, size = [], 0
    while chunk := os.read(0, _CHUNK):
        size += len(chunk)
        if size <= MOST_BYTES:
            chunks.append(chunk)
    return b"".join(chunks) if size <= MOST_BYTES else b""


def _config(environ: "Mapping[str, str]", cwd: str | None, host: str) -> "Config | None":
    """The configuration of the project, if it has a ledger that may be written."""
    env = dict(environ)
    if cwd is not None and (host not in _NAME_PROJECT or not env.get("CLAUDE_PROJECT_DIR")):
        env["CLAUDE_PROJECT_DIR"] = cwd
    try:
        config = configs.load(environ=env)
    except (ColibriError, OSError, ValueError):
        return None
    path = os.path.realpath(config.db_path)
    is_file = _may_be_file(path) or _may_be_file(f"{path}.lock")
    may_be_there = config.db_url is not None or is_file
    return config if may_be_there and config.mode in ("FULL", "TEST") else None


def _may_be_file(path: str) -> bool:
    """Whether a file is there, or it cannot be told because the directory may not be searched."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except PermissionError:
        return True
    except OSError:
        return False
