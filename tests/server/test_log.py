"""src/colibri/server/log.py: what is removed from a text before it is logged."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from colibri.server import log
from tests.support.made_up_secrets import GITHUB


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """The home directory is looked up once in the life of a process."""
    log._homes.cache_clear()
    yield
    log._homes.cache_clear()


SHORTENED = {
    "/home/ada/x": "~/x",
    "in /home/ada: /home/ada, '/home/ada'": "in ~: ~, '~'",
    "/home/ada2 /home/ada-x /home/ada.old": "/home/ada2 /home/ada-x /home/ada.old",
    "/srv/home/ada/x": "/srv/home/ada/x",
    "file:///home/ada/x": "file://~/x",
    "nothing": "nothing",
}


@pytest.mark.parametrize(("text", "shown"), SHORTENED.items())
def test_the_home_directory_is_a_tilde_and_nothing_else_is(
    monkeypatch: pytest.MonkeyPatch, text: str, shown: str
) -> None:
    monkeypatch.setenv("HOME", "/home/ada/")
    assert log.hide_home(text) == shown


@pytest.mark.parametrize("home", ["/", "", "nowhere"])
def test_a_home_that_is_the_root_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    """A container may have / for a home; then every path begins with it."""
    monkeypatch.setenv("HOME", home)
    assert log.hide_home("/nowhere/x and nowhere/y") == "/nowhere/x and nowhere/y"


def test_both_names_of_a_home_behind_a_link_are_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.setenv("HOME", str(tmp_path / "link"))
    assert log.hide_home(f"{tmp_path}/real/x {tmp_path}/link/y") == "~/x ~/y"


def test_an_exception_is_described_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(Path(__file__).parents[2]))
    try:
        raise KeyError(GITHUB)
    except KeyError as problem:
        described = log.describe(problem)
    assert described.endswith("KeyError: '[redacted:github-token]'")
    assert 'File "~/tests/server/test_log.py"' in described
