"""Real hosts, driven without a person: own home, fake key, loopback only, bounded time.

A host is found where scripts/hosts installs it; a test of one that is missing is skipped. What the
model needs goes into the home or the command line, what Colibri needs is written by `colibri setup`
as for any user. Hosts get a bare environment and a proxy that refuses.
"""

import json
import os
import signal
import subprocess
import tempfile
import tomllib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.hosts.model import Model, Part, Request, Turn, call, free_call
from tests.support.client import TESTS, execute

SCRIPT = str(TESTS.parent / "scripts" / "colibri")
KEY = "sk-fake-loopback-only"
PROGRAMS = tomllib.loads((TESTS / "hosts" / "programs.toml").read_text(encoding="utf-8"))["hosts"]
FOLDER = Path(os.environ.get("COLIBRI_HOSTS") or Path.home() / ".cache" / "colibri-hosts")
PATIENCE = 200.0  # for one run, on a busy machine


class Run(NamedTuple):
    """What came of a run: code None if it had to be ended."""

    code: int | None
    out: str
    err: str
    requests: list[Request]
    outside: list[str]

    def sent(self, text: str) -> bool:
        """Whether this reached the model."""
        return any(text in request.text for request in self.requests)

    def results(self) -> list[str]:
        """What tools answered, as the model saw it at the end."""
        return [one for one in self.requests if not one.is_aside][-1].results


class Place(NamedTuple):
    """A user's home and project."""

    home: Path
    project: Path

    @classmethod
    def below(cls, folder: Path) -> "Place":
        place = cls(folder / "home", folder / "project")
        for one in place:
            one.mkdir()
        (place.home / "tmp").mkdir()
        return place

    def environment(self, **more: str) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "TMPDIR": str(self.home / "tmp"),
            "TERM": "dumb",
            "NO_COLOR": "1",
            "LANG": "C.UTF-8",
            "PATH": os.pathsep.join([str(_bin("node")), "/usr/local/bin", "/usr/bin", "/bin"]),
            **more,
        }

    def colibri(self, *arguments: str) -> str:
        """`colibri` as this user runs it; it must succeed."""
        done = execute([SCRIPT, *arguments], cwd=self.project, env=self.environment())
        assert done.returncode == 0, done.stderr
        return done.stdout

    def merge(self, path: str, value: dict[str, Any]) -> None:
        """Members for a JSON file in the home, next to what is there."""
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        old = json.loads(file.read_text()) if file.exists() else {}
        file.write_text(json.dumps({**old, **value}))


class Tools(NamedTuple):
    """What the model calls the host's tools."""

    ours: str  # a tool of Colibri, as a format
    write: Callable[[str, str], Part]  # a new file: its path and its text
    run: Callable[[str], Part]  # a shell command

    def colibri(self, name: str, **arguments: Any) -> Part:
        return call(self.ours.format(name), **arguments)


class Host(NamedTuple):
    tools: Tools
    configure: Callable[[Place, str], None]  # told the model's address
    environment: Callable[[str], dict[str, str]]
    arguments: Callable[[str, str], list[str]]  # the prompt and the address


def run(
    name: str,
    turns: Sequence[Turn],
    place: Place,
    *more: str,
    prompt: str = "Do the work.",
    **env: str,
) -> Run:
    """One run of a host, from the prompt to its end."""
    host = HOSTS[name]
    with Model(turns) as model:
        host.configure(place, model.url)
        proxy = {"HTTPS_PROXY": model.url, "HTTP_PROXY": model.url, "NO_PROXY": "127.0.0.1"}
        given = place.environment(**proxy, **host.environment(model.url), **env)
        command = [*program(name), *host.arguments(prompt, model.url), *more]
        code, out, err = _bounded(command, given, place.project)
        return Run(code, out, err, model.requests, model.outside)


def program(name: str) -> list[str]:
    """What starts a host; the test is skipped if it is not installed."""
    path = _bin(name) / PROGRAMS[name]["program"]
    if not path.exists() or not (_bin("node") / "node").exists():
        pytest.skip(f"{name} is not installed: scripts/hosts install {name}")
    with path.open("rb") as file:
        is_script = file.read(2) == b"#!"
    return [str(_bin("node") / "node"), str(path)] if is_script else [str(path)]


def _bin(name: str) -> Path:
    return FOLDER / name / "node_modules" / ".bin"


def _bounded(command: list[str], env: dict[str, str], project: Path) -> tuple[int | None, str, str]:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            command,
            env=env,
            cwd=project,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        try:
            code: int | None = process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _end(process.pid, env["HOME"])
            process.wait()
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
        return code, texts[0], texts[1]


def _end(group: int, home: str) -> None:
    """What is left of a run: its process group, and daemons with its home that left the group."""
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    mark = f"HOME={home}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # gone meanwhile, or not ours to read
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                os.kill(int(entry.name), signal.SIGKILL)


# The hosts.


def _nothing(place: Place, url: str) -> None:
    pass


def _claude(place: Place, url: str) -> None:
    place.merge(".claude/settings.json", {"enableAllProjectMcpServers": True})


def _codex_arguments(prompt: str, url: str) -> list[str]:
    provider = {
        "name": "scripted",
        "base_url": f"{url}/v1",
        "wire_api": "responses",
        "env_key": "SCRIPTED_KEY",
        "request_max_retries": 0,
        "stream_max_retries": 0,
    }
    settings = {
        "model": "gpt-5.5",  # newer ones write code that calls tools
        "model_provider": "scripted",
        "analytics.enabled": False,
        "check_for_update_on_startup": False,
        **{f"model_providers.scripted.{key}": value for key, value in provider.items()},
    }
    named = [
        word for key, value in settings.items() for word in ("-c", f"{key}={json.dumps(value)}")
    ]
    free = ["--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust"]
    return ["exec", "--json", "--skip-git-repo-check", *free, *named, prompt]


def _patch(path: str, text: str) -> Part:
    body = "".join(f"+{line}\n" for line in text.splitlines())
    return free_call("apply_patch", f"*** Begin Patch\n*** Add File: {path}\n{body}*** End Patch\n")


def _gemini(place: Place, url: str) -> None:
    security = {"auth": {"selectedType": "gemini-api-key"}}
    quiet = {"general": {"enableAutoUpdate": False}, "privacy": {"usageStatisticsEnabled": False}}
    place.merge(".gemini/settings.json", {"security": security, **quiet})


def _qwen(place: Place, url: str) -> None:
    off = ("enableManagedAutoMemory", "enableManagedAutoDream", "enableAutoSkill")
    settings = {
        "security": {"auth": {"selectedType": "openai"}},
        "general": {"enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
        "model": {"name": "scripted"},
        "memory": dict.fromkeys(off, False),  # agents of its own would use up turns
    }
    place.merge(".qwen/settings.json", settings)


def _cline(place: Place, url: str) -> None:
    settings = {
        "provider": "openai-compatible",
        "apiKey": KEY,
        "model": "scripted",
        "baseUrl": f"{url}/v1",
    }
    provider = {
        "updatedAt": "2026-01-01T00:00:00.000Z",
        "tokenSource": "manual",
        "settings": settings,
    }
    providers = {
        "version": 1,
        "lastUsedProvider": "openai-compatible",
        "modes": {},
        "providers": {"openai-compatible": provider},
    }
    place.merge(".cline/data/settings/providers.json", providers)


def _opencode(place: Place, url: str) -> None:
    model = {"name": "scripted", "tool_call": True, "limit": {"context": 200000, "output": 8000}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "scripted",
        "options": {"baseURL": f"{url}/v1", "apiKey": KEY},
        "models": {"scripted": model},
    }
    settings = {
        "autoupdate": False,
        "share": "disabled",
        "model": "scripted/scripted",
        "small_model": "scripted/scripted",
        "permission": "allow",
        "provider": {"scripted": provider},
    }
    place.merge(".config/opencode/opencode.json", settings)


HOSTS = {
    "claude-code": Host(
        Tools(
            "mcp__colibri__{}",
            lambda path, text: call("Write", file_path=path, content=text),
            lambda command: call("Bash", command=command, description="try"),
        ),
        _claude,
        lambda url: {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": KEY,
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "IS_SANDBOX": "1",  # lets root skip permissions
        },
        lambda prompt, _: [
            *("-p", prompt, "--dangerously-skip-permissions", "--output-format", "json")
        ],
    ),
    "codex": Host(
        Tools("mcp__colibri.{}", _patch, lambda command: call("exec_command", cmd=command)),
        _nothing,
        lambda _: {"SCRIPTED_KEY": KEY},
        _codex_arguments,
    ),
    "gemini": Host(
        Tools(
            "mcp_colibri_{}",
            lambda path, text: call("write_file", file_path=path, content=text),
            lambda command: call("run_shell_command", command=command, description="try"),
        ),
        _gemini,
        lambda url: {
            "GEMINI_API_KEY": KEY,
            "GOOGLE_GEMINI_BASE_URL": url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        },
        # with a named model no router asks a side question first
        lambda prompt, _: [
            *("--prompt", prompt, "--model", "gemini-3.1-pro-preview"),
            *("--yolo", "--output-format", "json"),
        ],
    ),
    "copilot": Host(
        Tools(
            "colibri-{}",
            lambda path, text: call("create", path=path, file_text=text),
            lambda command: call("bash", command=command, description="try"),
        ),
        _nothing,
        lambda url: {
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
            "COPILOT_PROVIDER_API_KEY": KEY,
            "COPILOT_MODEL": "gpt-5.1",
            "COPILOT_ALLOW_ALL": "true",  # also trusts the folder
        },
        lambda prompt, _: ["-p", prompt, "--no-auto-update"],
    ),
    "qwen": Host(
        Tools(
            "mcp__colibri__{}",
            lambda path, text: call("write_file", file_path=path, content=text),
            lambda command: call("run_shell_command", command=command, is_background=False),
        ),
        _qwen,
        lambda url: {
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": f"{url}/v1",
            "OPENAI_MODEL": "scripted",
        },
        lambda prompt, _: [prompt, "--yolo", "--auth-type", "openai", "--output-format", "json"],
    ),
    "cline": Host(
        Tools(
            "colibri__{}",
            lambda path, text: call("editor", path=path, new_text=text),
            lambda command: call("run_commands", commands=[command]),
        ),
        _cline,
        lambda _: {},
        lambda prompt, _: [
            *("--json", "--provider", "openai-compatible", "--model", "scripted"),
            *("--auto-approve", "true", prompt),
        ],
    ),
    "opencode": Host(
        Tools(
            "colibri_{}",
            lambda path, text: call("write", filePath=path, content=text),
            lambda command: call("bash", command=command, description="try"),
        ),
        _opencode,
        lambda _: {
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        },
        lambda prompt, _: ["run", prompt, "--format", "json", "--auto"],
    ),
}
