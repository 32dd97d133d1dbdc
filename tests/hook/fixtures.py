"""Payloads of the real hosts, and what each of them reports: fixtures/HOST.json.

Recorded with a scripted model; paths are neutral and long strings are cut. `report` was read by
people: null is a payload that is left out on purpose.
"""

import copy
import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "fixtures"
RECORDED = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
ALL = [(host, name) for host, recorded in RECORDED.items() for name in recorded["payloads"]]
KEPT = [(host, name) for host, name in ALL if RECORDED[host]["payloads"][name]["report"]]


def payload(host: str, name: str, **changes: Any) -> dict[str, Any]:
    """A copy of a payload, with some of its members changed."""
    found: dict[str, Any] = copy.deepcopy(RECORDED[host]["payloads"][name]["payload"])
    return {**found, **changes}


def environment(host: str) -> dict[str, str]:
    found: dict[str, str] = RECORDED[host]["environment"]
    return dict(found)


def expected(host: str, name: str) -> dict[str, Any] | None:
    found: dict[str, Any] | None = RECORDED[host]["payloads"][name]["report"]
    return found
