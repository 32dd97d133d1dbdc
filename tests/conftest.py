"""What holds for every test."""

import sys

import pytest


@pytest.fixture(autouse=True)
def _within_another_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hints name the program as it was started; a test runner's workers start by `python -c`."""
    monkeypatch.setattr(sys, "argv", ["pytest"])
