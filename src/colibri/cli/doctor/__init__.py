"""What `colibri doctor` found out about one thing, and what to do about it."""

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

from colibri.store import ledger, record_check
from colibri.store.connection import Connection

NEWEST = 1000  # records that are checked


class Finding(NamedTuple):
    check: str  # "" until guarded() says which check it is of
    status: Literal["ok", "warning", "problem"]
    detail: str
    hint: str = ""


def guarded(
    check: str, findings: Callable[..., Iterable[Finding]], *args: object
) -> Iterator[Finding]:
    """What a check found; if it fails itself, that is a finding too."""
    try:
        for one in findings(*args):
            yield one if one.check else one._replace(check=check)
    except Exception as fault:
        yield problem(f"could not be checked: {fault}", "fix what the message names", check)


def newest_records(reader: Connection) -> tuple[list[str], str]:
    """What is wrong with the newest records, and what to say if nothing is."""
    last = ledger.last_seq(reader)
    first = max(1, last - NEWEST + 1)
    found = [
        f"record {broken.seq}: {broken.what}: {broken.detail}"
        for broken in record_check.check_range(reader, first, last)
    ]
    checked = f"the newest {last - first + 1:,} were checked and are intact"
    return found, f"{last:,}; {checked}"


def ok(detail: str, check: str = "") -> Finding:
    return Finding(check, "ok", detail)


def warning(detail: str, hint: str, check: str = "") -> Finding:
    return Finding(check, "warning", detail, hint)


def problem(detail: str, hint: str, check: str = "") -> Finding:
    return Finding(check, "problem", detail, hint)
