"""What `colibri doctor` found out about one thing, and what to do about it."""

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple


class Finding(NamedTuple):
    check: str
    status: Literal["ok", "warning", "problem"]
    detail: str
    hint: str = ""


def guarded(
    check: str, findings: Callable[..., Iterable[Finding]], *args: object
) -> Iterator[Finding]:
    """What a check found; if it fails itself, that is a finding too."""
    try:
        yield from findings(*args)
    except Exception as fault:
        yield problem(check, f"could not be checked: {fault}", "fix what the message names")


def ok(check: str, detail: str) -> Finding:
    return Finding(check, "ok", detail)


def warning(check: str, detail: str, hint: str) -> Finding:
    return Finding(check, "warning", detail, hint)


def problem(check: str, detail: str, hint: str) -> Finding:
    return Finding(check, "problem", detail, hint)
