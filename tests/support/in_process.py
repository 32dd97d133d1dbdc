"""Shared by tests of a server in this process: its configuration, and a minimal tool."""

from pathlib import Path
from typing import Any

import msgspec

from colibri import config
from colibri.core.modes import Capability
from colibri.tools.tool import Tool


class Nothing(msgspec.Struct):
    pass


def project(tmp_path: Path, **env: str) -> config.Config:
    return config.load(str(tmp_path), env)


def tool(name: str, handler: Any, lane: Any = "write") -> Tool:
    capability = Capability.CHANGE if lane == "write" else Capability.BROWSE
    return Tool(name=name, input=Nothing, lane=lane, capability=capability, handler=handler)
