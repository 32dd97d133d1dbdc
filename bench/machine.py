"""Describes what the figures were measured with: the machine, and the versions of everything."""

import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import apsw

from bench import install
from colibri import VERSION


def machine() -> dict[str, str]:
    return {
        "processor": f"{os.cpu_count()} × {_processor()}",
        "system": f"{platform.system()} {platform.release()}",
        "file system": _file_system(),
    }


def _processor() -> str:
    if sys.platform == "darwin":
        return _said("sysctl", "-n", "machdep.cpu.brand_string")
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def _file_system() -> str:
    """The file system of the folder for temporary projects."""
    listed = _said(
        "df", "-P" if sys.platform == "darwin" else "-PT", tempfile.gettempdir()
    ).splitlines()
    return " ".join(listed[-1].split()[: 1 if sys.platform == "darwin" else 2])


def versions() -> dict[str, str]:
    found = {
        "Colibri": VERSION,
        "Python": platform.python_version(),
        "SQLite of Colibri": apsw.sqlite_lib_version(),
        "Node": _said("node", "--version"),
    }
    for requirement in (*install.PYPI.values(), *install.NPM.values()):
        for package in requirement:
            name, _, version = install.version(package).rpartition(" ")
            found[name] = version
    return found


def _said(*command: str) -> str:
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
