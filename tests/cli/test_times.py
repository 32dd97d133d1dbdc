"""src/colibri/cli/times.py: times as people read and write them."""

import argparse
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from colibri.cli import terminal as shell
from colibri.cli.show import times


@pytest.fixture(autouse=True)
def _in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell, "is_terminal", lambda: True)
    monkeypatch.setattr(shell, "say", lambda text, _: sys.stdout.write(f"{text}\n"))


def ago(**past: float) -> str:
    return (datetime.now(UTC) - timedelta(**past)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def test_a_pipe_gets_the_stored_time() -> None:
    assert times.shown("2026-03-01T12:00:00.000001Z") == "2026-03-01T12:00:00.000001Z"
    assert times.Days().stamp("2026-03-01T12:00:00.000001Z") == "2026-03-01T12:00:00.000001Z"


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize(
    ("past", "age"),
    [
        ({"seconds": 5}, "5 s ago"),
        ({"minutes": 3}, "3 min ago"),
        ({"hours": 30}, "30 h ago"),
        ({"days": 3}, "3 days ago"),
        ({"days": -3}, "0 s ago"),
    ],
)
def test_a_terminal_gets_the_age(past: dict[str, float], age: str) -> None:
    assert times.shown(ago(**past)).endswith(f"({age})")


@pytest.mark.usefixtures("terminal")
def test_a_terminal_gets_local_time_and_as_much_date_as_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = datetime.fromisoformat("2026-07-01T12:00:00+02:00")
    monkeypatch.setattr(times, "now", lambda: here)
    assert times.shown("2026-07-01T08:30:15.5Z") == "10:30:15 (1 h ago)"
    assert times.shown("2026-06-30T21:30:00Z") == "30 Jun 23:30 (12 h ago)"
    assert times.shown("2025-12-31T23:30:00Z") == "1 Jan 00:30 (181 days ago)"
    assert times.shown("2024-12-31T12:00:00Z") == "31 Dec 2024 13:00 (546 days ago)"


@pytest.mark.usefixtures("terminal")
def test_each_day_of_a_list_has_its_heading(capsys: pytest.CaptureFixture[str]) -> None:
    days = times.Days()
    stamps = [
        days.stamp(at)
        for at in ("2026-03-01T22:59:59Z", "2026-03-01T23:00:00Z", "2026-03-02T01:00:00Z")
    ]
    assert stamps == ["23:59:59", "00:00:00", "02:00:00"]
    assert capsys.readouterr().out == "\nSun 1 Mar 2026\n\nMon 2 Mar 2026\n"


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("at", ["", "yesterday", "9999-12-31T23:59:59Z", "2026-13-01T00:00:00Z"])
def test_what_is_no_time_is_shown_as_it_is(at: str) -> None:
    """Anybody may have written into the database."""
    assert times.shown(at) == at
    assert times.Days().stamp(at) == at


@pytest.mark.parametrize(
    ("text", "since", "until"),
    [
        ("120", 120, 120),
        ("#7", 7, 7),
        ("2026-03-01", "2026-02-28T23:00:00.000000Z", "2026-03-01T22:59:59.999999Z"),
        ("2026-03-01T14:30", "2026-03-01T13:30:00.000000Z", "2026-03-01T13:30:00.000000Z"),
        ("2026-07-01T14:30:01Z", "2026-07-01T14:30:01.000000Z", "2026-07-01T14:30:01.000000Z"),
    ],
)
def test_boundaries_are_seqs_or_times_and_a_date_is_a_whole_day(
    text: str, since: int | str, until: int | str
) -> None:
    assert (times.since(text), times.until(text)) == (since, until)


def test_boundaries_may_be_relative(monkeypatch: pytest.MonkeyPatch) -> None:
    here = datetime.now().astimezone()
    monkeypatch.setattr(times, "now", lambda: here)

    def utc(moment: datetime) -> str:
        return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    units = {"90s": 90, "90m": 5400, "2h": 7200, "3d": 3 * 86400, "1w": 7 * 86400}
    for text, seconds in units.items():
        assert times.since(text) == utc(here - timedelta(seconds=seconds)), text
    midnight = datetime.combine(here.date(), datetime.min.time())
    assert times.since("today") == utc(midnight)
    assert times.since("yesterday") == utc(midnight - timedelta(days=1))
    assert times.until("yesterday") == utc(midnight - timedelta(microseconds=1))
    assert times.since("14:30") == utc(midnight.replace(hour=14, minute=30))


@pytest.mark.parametrize(
    "text", ["", "soon", "2026-02-30", "25:00", "-5", "3y", "999999999w", "0001-01-01x", "1" * 16]
)
def test_what_is_neither_is_refused_with_examples(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=r"neither the seq .* nor a time, such as"):
        times.since(text)
