"""Small and read-only file systems; tests are skipped if they may not mount."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(at: Path, size: str = "8m") -> Iterator[Path]:
    """A tmpfs of this size."""
    with _mounted(at, ["-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs"]):
        yield at


@contextmanager
def read_only(directory: Path) -> Iterator[None]:
    """Make a directory read-only, even for root."""
    with _mounted(directory, ["--bind", str(directory)]):
        _run("mount", "-o", "remount,bind,ro", str(directory))
        yield


@contextmanager
def immutable(directory: Path) -> Iterator[None]:
    """Make a directory immutable; files in it can still be written."""
    _run("chattr", "+i", str(directory))
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", str(directory)], check=True)


@contextmanager
def _mounted(at: Path, options: list[str]) -> Iterator[None]:
    at.mkdir(exist_ok=True)
    _run("mount", *options, str(at))
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(at)], check=True)


def _run(*command: str) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip(f"there is no {command[0]} here")
    except subprocess.CalledProcessError as problem:
        pytest.skip(f"{' '.join(command)} is not possible here: {problem.stderr.strip()}")
