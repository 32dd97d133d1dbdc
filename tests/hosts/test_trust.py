"""Codex runs no hook that its user does not trust, and `colibri doctor` tells which it runs."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.drive import HOSTS, Place, program, run
from tests.hosts.model import say
from tests.hosts.story import Played, ready

pytestmark = pytest.mark.slow

BYPASS = "--dangerously-bypass-hook-trust"


def listed(place: Place) -> list[dict[str, Any]]:
    """The hooks for the project, as Codex itself judges them."""
    with subprocess.Popen(
        [*program("codex"), "app-server"],
        env=place.environment(),
        cwd=place.project,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdin is not None and server.stdout is not None
        name = {"clientInfo": {"name": "test", "version": "1"}}
        cwds = {"cwds": [str(place.project)]}
        for request in (
            {"id": 1, "method": "initialize", "params": name},
            {"method": "initialized"},
            {"id": 2, "method": "hooks/list", "params": cwds},
        ):
            server.stdin.write(json.dumps(request) + "\n")
            server.stdin.flush()
        answers = map(json.loads, server.stdout)
        (found,) = next(one["result"]["data"] for one in answers if one.get("id") == 2)
        server.kill()
    hooks: list[dict[str, Any]] = found["hooks"]
    return hooks


def doctor(place: Place) -> dict[str, str]:
    findings = json.loads(place.colibri("doctor", "--json"))["findings"]
    (found,) = [one for one in findings if one["check"] == "codex" and "hooks" in one["detail"]]
    return dict(found)


def deeds(place: Place) -> int:
    ran = run("codex", [[HOSTS["codex"].tools.run("true")], [say("Done.")]], place)
    assert ran.code == 0, ran.err[-2000:]
    return len(Played("codex", place, ran).records("deed"))


def test_doctor_agrees_with_codex_on_which_hooks_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codex, place = HOSTS["codex"], Place.below(tmp_path)
    asked = codex._replace(
        arguments=lambda *given: [one for one in codex.arguments(*given) if one != BYPASS]
    )
    monkeypatch.setitem(HOSTS, "codex", asked)
    ready(place, "codex")
    place.colibri("add", "something to do")
    assert {one["trustStatus"] for one in listed(place)} == {"untrusted"}
    assert doctor(place)["status"] == "warning"
    assert deeds(place) == 0
    settings = place.home / ".codex" / "config.toml"
    with settings.open("a") as file:  # as /hooks writes it
        for one in listed(place):
            file.write(f'\n[hooks.state."{one["key"]}"]\ntrusted_hash = "{one["currentHash"]}"\n')
    assert {one["trustStatus"] for one in listed(place)} == {"trusted"}
    assert doctor(place)["status"] == "ok"
    assert deeds(place) > 4
    settings.write_text(settings.read_text().replace('hash = "sha256:', 'hash = "sha256:0', 1))
    (modified,) = (one["eventName"] for one in listed(place) if one["trustStatus"] != "trusted")
    assert modified.lower() in doctor(place)["detail"].lower()
