"""How this very installation is started, and whether it then answers."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Any, NamedTuple

import colibri
from colibri.config import bare_environment
from colibri.core.errors import ResourceError

DISTRIBUTION = "colibri-mcp"
SCRIPT = "colibri"
PATIENCE = 30.0
_CACHE = re.compile(r"/uv/[a-z]+-v[0-9]+/")

_QUESTIONS: tuple[dict[str, Any], ...] = (
    {"method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}}},
    {"method": "tools/list"},
    {"method": "tools/call", "params": {"name": "task_list", "arguments": {}}},
)


class Answer(NamedTuple):
    """What a server said when it was started; `problem` is "" if all is well."""

    problem: str
    version: str = ""
    tools: int = 0
    milliseconds: int = 0


def command() -> list[str]:
    """What to run, with `serve` behind it; absolute, so that it works from anywhere.

    A clone has scripts/colibri, which also rebuilds its environment; an installed package has the
    script that its installer made; what uvx runs from its cache is fetched again by uvx, in the
    same version and from the same source. -P: a folder named colibri in the user's project is not
    ours.
    """
    for find in (launcher, _console_script):
        script = find()
        if runs_once(script):
            return [shutil.which("uvx") or "uvx", *_fetched()]
        if os.path.isfile(script) and os.access(script, os.X_OK):
            return [_utf8(script)]
    return [_utf8(sys.executable), "-P", "-m", "colibri"]


def runs_once(script: str) -> bool:
    """Whether uv made the script for a single run: cleaning its cache deletes it."""
    return _CACHE.search(script) is not None


def _fetched() -> list[str]:
    """What uvx is to run: what it was given with --from, else this version from the index."""
    from importlib import metadata  # noqa: PLC0415 - 25 ms that other commands need not wait

    try:
        told = metadata.distribution(DISTRIBUTION).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        told = None
    source = _source(json.loads(told)) if told else ""
    return ["--from", _utf8(source), SCRIPT] if source else [f"{DISTRIBUTION}@{colibri.VERSION}"]


def _source(direct: dict[str, Any]) -> str:
    """A directory, a file, an address or a commit, from what an installer notes (PEP 610)."""
    from urllib.parse import unquote, urlsplit  # noqa: PLC0415 - only uvx needs it

    url = str(direct.get("url", ""))
    if vcs := direct.get("vcs_info"):
        url = f"{vcs['vcs']}+{url}@{vcs['commit_id']}"
    elif url.startswith("file:"):
        url = unquote(urlsplit(url).path)
    inside = direct.get("subdirectory")
    return f"{url}#subdirectory={inside}" if inside else url


def clone() -> str:
    """The clone that the package is in; "" if it is in none."""
    above = os.path.dirname(os.path.dirname(package()))
    return above if os.path.isfile(os.path.join(above, "locks", "run.txt")) else ""


def launcher() -> str:
    """scripts/colibri of that clone; "" if there is none."""
    return os.path.join(clone(), "scripts", "colibri") if clone() else ""


def _console_script() -> str:
    """The script that was installed with the package that is running; "" if there is none."""
    from importlib import metadata  # noqa: PLC0415 - 25 ms that other commands need not wait

    try:
        files = metadata.files(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return ""
    paths = {file.as_posix(): os.path.abspath(file.locate()) for file in files}
    own = os.path.dirname(paths.get("colibri/__init__.py", ""))
    if os.path.realpath(own) != os.path.realpath(package()):
        return ""  # what is installed is another copy
    return next((path for name, path in paths.items() if name.endswith("/bin/colibri")), "")


def _utf8(path: str) -> str:
    """The path, which settings files can hold only as UTF-8."""
    if path.encode(errors="replace").decode() != path:
        raise ResourceError(f"{path!a} is not UTF-8", "move Colibri to another directory")
    return path


def package() -> str:
    """Where our modules are."""
    return os.path.dirname(os.path.abspath(colibri.__file__))


def try_out(command: list[str]) -> Answer:
    """Start a server in a temporary directory, ask it three things and let it end."""
    lines = [json.dumps({"jsonrpc": "2.0", "id": n, **q}) for n, q in enumerate(_QUESTIONS)]
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="colibri-doctor-") as project:
        try:
            done = subprocess.run(
                [*command, "serve", "--project", project],
                cwd=project,
                env=bare_environment(),
                input="\n".join(lines) + "\n",
                capture_output=True,
                text=True,
                encoding="utf-8",
                errors="replace",
                timeout=PATIENCE,
                check=False,
            )
        except OSError as problem:
            return Answer(f"it cannot be started: {problem.strerror}")
        except subprocess.TimeoutExpired:
            return Answer(f"it did not answer and end within {PATIENCE:.0f} s")
    return _judge(done, round((time.monotonic() - began) * 1000))


def _judge(done: "subprocess.CompletedProcess[str]", milliseconds: int) -> Answer:
    try:
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        opened, listed, called = (
            line["result"] for line in sorted(lines, key=lambda one: one["id"])
        )
        version, tools = opened["serverInfo"]["version"], len(listed["tools"])
        fine = done.returncode == 0 and called["structuredContent"]["ok"] is True
    except (ValueError, KeyError, TypeError):
        fine = False
    if not fine:
        said = done.stderr.strip().splitlines() or ["nothing"]
        return Answer(f"it ended with exit code {done.returncode} and said: {said[-1]}")
    return Answer("", version, tools, milliseconds)
