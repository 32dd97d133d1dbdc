"""Times as people read and write them; records keep UTC."""

import argparse
import re
from datetime import UTC, datetime, time, timedelta

from colibri.cli import terminal

_CLOCK = re.compile(r"[0-9]{2}:[0-9]{2}(:[0-9]{2})?")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
# The age from which a unit is used, and how many seconds it has.
_AGES = ((48 * 3600, 86_400, "days"), (3600, 3600, "h"), (60, 60, "min"), (0, 1, "s"))


def now() -> datetime:
    """The current local time."""
    return datetime.now().astimezone()


def recorded(when: datetime) -> str:
    """A time in the format of records."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def stamp() -> str:
    """The current time, for a file name."""
    return recorded(now()).replace(":", "").replace(".", "")


def shown(at: str) -> str:
    """A stored time: on a terminal short, local and with its age; elsewhere as it is."""
    when = _local(at)
    if when is None or not terminal.is_terminal():
        return at
    return f"{_short(when, now())} ({_age(when, now())})"


def age(at: str) -> int | None:
    """How many seconds ago a stored time was; None if it is not a time."""
    when = _local(at)
    return None if when is None else max(0, int((now() - when).total_seconds()))


def with_age(at: str) -> str:
    """A stored time and how long ago it was, wherever it is shown."""
    when = _local(at)
    if when is None or terminal.is_terminal():
        return shown(at)
    return f"{at} ({_age(when, now())})"


class Days:
    """Times of a list: on a terminal the time of day under the heading of its day."""

    def __init__(self) -> None:
        self._day = ""

    def stamp(self, at: str) -> str:
        """The time before an entry; a new day is printed first."""
        when = _local(at)
        if when is None or not terminal.is_terminal():
            return at
        day = f"{when:%a} {when.day} {when:%b} {when.year}"
        if day != self._day:
            self._day = day
            terminal.heading(day)
        return f"{when:%H:%M:%S}"


def since(text: str) -> int | str:
    """For argparse: a seq, or a time as records have it; a date is its first moment."""
    return _boundary(text, time.min)


def until(text: str) -> int | str:
    """For argparse: the same, but a date is its last moment."""
    return _boundary(text, time.max)


def _local(at: str) -> datetime | None:
    """None if it is not a time: the database may have been tampered with."""
    try:
        return datetime.fromisoformat(at).astimezone()
    except (ValueError, OverflowError):
        return None


def _short(when: datetime, today: datetime) -> str:
    if when.date() == today.date():
        return f"{when:%H:%M:%S}"
    if when.year == today.year:
        return f"{when.day} {when:%b %H:%M}"
    return f"{when.day} {when:%b} {when.year} {when:%H:%M}"


def _age(when: datetime, today: datetime) -> str:
    seconds = max(0, int((today - when).total_seconds()))
    size, unit = next((size, unit) for least, size, unit in _AGES if seconds >= least)
    return f"{seconds // size} {unit} ago"


def _boundary(text: str, of_day: time) -> int | str:
    if re.fullmatch(r"#?[0-9]{1,15}", text):
        return int(text.removeprefix("#"))
    try:
        return recorded(_moment(text, of_day))
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither the seq of a record, such as 120, nor a time, such as"
            " 2026-03-01, 2026-03-01T14:30, 14:30, today, yesterday, 90m, 2h, 3d"
        ) from None


def _moment(text: str, of_day: time) -> datetime:
    """ValueError if it is not a time."""
    today = datetime.now().date()  # noqa: DTZ005 - people mean their own days
    days = {"today": today, "yesterday": today - timedelta(days=1)}
    if text in days:
        return datetime.combine(days[text], of_day)
    if back := re.fullmatch(r"([0-9]{1,9})([smhdw])", text):
        return now() - timedelta(**{_UNITS[back[2]]: int(back[1])})
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return datetime.combine(datetime.fromisoformat(text), of_day)
    return datetime.fromisoformat(f"{today}T{text}" if _CLOCK.fullmatch(text) else text)
