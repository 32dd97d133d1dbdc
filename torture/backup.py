"""`colibri backup` while four servers write, and `colibri restore` of the then older copies."""

import json
from pathlib import Path

from tests.support.busy_servers import (
    Writer,
    acknowledged,
    four_writers,
    plain_copy_lacks_something,
    resting,
    wait_for_calls,
)
from tests.support.client import JSON
from tests.support.ledger_reader import eventually, missing, verified
from tests.support.program import colibri, database_of
from torture import ControlFailed, Lab, Trial, Violation


def _back_up(project: Path, writers: list[Writer], copy: Path) -> int:
    """Make a copy, which must verify and have every call answered before; its record count."""
    wait_for_calls(writers)
    before = acknowledged(writers)
    code, out, err = colibri(project, "backup", copy.name, "--json")
    if code:
        raise Violation(f"a backup failed with {code}: {err}")
    with resting(writers):
        if lost := missing(copy, before):
            raise Violation(f"a copy lacks {len(lost)} of {len(before)} acknowledged calls")
        found, said = verified(copy).record_count, json.loads(out)["records"]
    if found != said:
        raise Violation(f"a copy of {found} records is said to have {said}")
    return found


def _refuse_while_written(project: Path, copy: Path) -> None:
    code, _, err = colibri(project, "restore", copy.name, "--force")
    if (code, "a Colibri server is using" in err) != (75, True):
        raise Violation(f"a restore under running servers ended with {code}: {err}")


def _refuse_older(project: Path, copy: Path, records: int) -> None:
    """It is refused without force, and the refusal says what would be lost."""
    before = verified(database_of(project)).record_count
    code, _, err = colibri(project, "restore", copy.name)
    said = f"the copy is older: it ends at record {records:,}, {before - records:,} records before"
    if code != 1 or said not in err:
        raise Violation(f"restoring an older copy ended with {code}: {err}")
    if verified(database_of(project)).record_count != before:
        raise Violation("a restore that was refused has changed something")


def _notice_the_older(project: Path, copy: Path, last: JSON) -> None:
    """After a forced restore, a head kept elsewhere reveals it; and it can be undone."""
    code, out, err = colibri(project, "restore", copy.name, "--force", "--json")
    if code:
        raise Violation(f"a restore by force ended with {code}: {err}")
    head = f"{last['seq']}:{last['head']}"
    code, shown, _ = colibri(project, "verify", "--head", head)
    if (code, "truncated" in shown) != (1, True):
        raise Violation(f"an older copy in place is not noticed: {code}: {shown}")
    (kept,) = json.loads(out)["kept"]
    if colibri(project, "restore", kept)[0] or colibri(project, "verify", "--head", head)[0]:
        raise Violation("the way back from a restore does not lead to the head that was seen")


def control(lab: Lab) -> str:
    """A plain copy of the file, without its write-ahead log, must be found incomplete."""
    project = lab.fresh("plain")
    with four_writers(project) as writers:
        wait_for_calls(writers)
        try:
            eventually(lambda: plain_copy_lacks_something(project, writers), "a bad plain copy")
        except AssertionError as problem:
            raise ControlFailed("plain copies of a file in use seem to be whole") from problem
    return "a plain copy without its write-ahead log is seen to be torn or to lack a call"


def run(lab: Lab) -> dict[str, object]:
    """Rounds of copies while the servers write; then restore them."""
    project = lab.fresh("project")
    copies: dict[Path, int] = {}
    with four_writers(project) as writers:
        for number in range(lab.count):
            copy = project / f"copy-{number}.db"
            copies[copy] = _back_up(project, writers, copy)
            _refuse_while_written(project, copy)
            lab.say(f"{number + 1} of {lab.count} copies, {copies[copy]:,} records")
        wait_for_calls(writers)
    if failures := [writer.failure for writer in writers if writer.failure]:
        raise Violation(f"a server failed meanwhile: {failures[0]}")
    calls = acknowledged(writers)
    if lost := missing(database_of(project), calls):
        raise Violation(f"{len(lost)} acknowledged calls are lost")
    for copy, records in copies.items():
        _refuse_older(project, copy, records)
    _notice_the_older(project, next(iter(copies)), max(calls, key=lambda one: int(one["seq"])))
    return {
        "acknowledged calls": len(calls),
        "lacking": 0,
        "records of the last copy": max(copies.values()),
        "older copies told and refused": len(copies),
    }


TRIAL = Trial(
    name="backup",
    title="a backup while four servers write as fast as they can, and a restore of each copy",
    claim="every copy verifies and has all calls answered before it; older copies are reported",
    unit="copies",
    quick=2,
    full=20,
    minutes=4,
    control=control,
    run=run,
)
