"""@requirement: which requirements of the manifest a test proves."""

import tomllib
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent


def requirement(*ids: str) -> pytest.MarkDecorator:
    """Mark a test with the ids of the requirements that it proves."""
    return pytest.mark.requirement(*ids)


def manifest() -> dict[str, dict[str, str]]:
    """Every requirement by its id."""
    entries: dict[str, dict[str, str]] = tomllib.loads(
        (FOLDER / "manifest.toml").read_text(encoding="utf-8")
    )
    return entries
