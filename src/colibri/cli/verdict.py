"""What a verification of a log found: what each damage means, and how the verdict is shown."""

from collections.abc import Callable
from typing import Any

from colibri.cli import terminal

SHOWN = 20  # findings, calls and erasures that a person is shown
LINES = {"intact": "intact", "rules": "rules kept", "seals": "seals", "rows": "rows"}

# What each kind of damage means, by the line of the verdict that it turns to "no".
MEANINGS: dict[str, dict[str, str]] = {
    "intact": {
        "altered record": "the record was changed after it was written, or is not of this log",
        "altered payload": "its content is not the one that was recorded",
        "altered column": "a copy of its fields, by which it is found, was changed",
        "missing record": "records were taken out",
        "missing payload": "its content was taken out, and no erasure says so",
        "stray payload": "it belongs to no record, and the log cannot grow past it",
        "bad payload": "it says what was recorded, but is not written as Colibri writes it",
        "out of order": "records have changed places",
        "forked": "the log goes on from an earlier record here: there were two histories",
        "broken link": "it does not follow the record before it: one of the two was exchanged",
        "truncated": "the tail was cut off, or an older copy was put back",
        "replaced": "the log was written anew, or your head is of another log",
        "damaged file": "SQLite cannot read all of the file, or parts of it are gone",
    },
    "rules": {
        "bad pair": "the end of a call does not fit its beginning",
        "bad erasure": "it names what it cannot have erased, or what is still there",
        "illegal move": "a task was moved in a way that there is not",
        "blocked move": "a task went on while one that it depends on was open",
        "missing evidence": "a task was done without a thought about it",
        "bad task record": "it does not follow from the records of the task before it",
        "bad session record": "it does not follow from the records of the session before it",
        "bad thought": "it does not fit its session, or its place in it",
    },
    "seals": {
        "thought after seal": "a sealed session takes nothing more",
        "bad seal": "it is not the seal of its session's thoughts",
        "other root": "what was looked at was never sealed under the root that you brought",
    },
    "rows": {
        "altered task": "what tools show of a task is not what its records say",
        "altered session": "what tools show of a session is not what its records say",
    },
}
LINE_OF = {what: line for line, meanings in MEANINGS.items() for what in meanings}


def finding(seq: int | None, what: str, detail: str) -> dict[str, Any]:
    """One damage, with what it means."""
    return {"seq": seq, "what": what, "detail": detail, "meaning": MEANINGS[LINE_OF[what]][what]}


def lines(found: set[str], *, cut: bool) -> dict[str, str]:
    """Each "no" for itself; what rests on damaged records, or may be beyond a list, is unclear."""
    bad = {LINE_OF[what] for what in found}
    unclear = cut or "intact" in bad
    return {line: "no" if line in bad else "unclear" if unclear else "yes" for line in LINES}


def show(verdict: dict[str, Any]) -> None:
    """In words, one line for each thing."""
    for title, text in (
        ("database", verdict["database"]),
        ("log", verdict["log"] or "unknown"),
        ("checked", _scope(verdict)),
        ("head", _head(verdict["head"])),
    ):
        _say(title, text)
    for line, title in LINES.items():
        _say(title, _state(verdict, line), "refused" if verdict["lines"][line] == "no" else "")
    _say("erased", _listed(verdict["erased"], str))
    _say("open calls", _listed(verdict["open_calls"], _call))
    for text in verdict["not_checked"]:
        _say("not checked", text, "dim")
    _show_findings(verdict["findings"], verdict["finding_count"])
    text = f"{verdict['verdict'].upper()}, findings: {verdict['finding_count']:,}"
    _say("verdict", text, "good" if verdict["verdict"] == "good" else "bad")


def _say(title: str, text: str, style: str = "") -> None:
    terminal.say(f"{title:<12} {text}", style)


def _show_findings(findings: list[dict[str, Any]], count: int) -> None:
    explained: set[str] = set()
    for one in findings[:SHOWN]:
        place = "" if one["seq"] is None else f"record {one['seq']}: "
        _say("found", f"{place}{one['what']}: {one['detail']}", "refused")
        if one["what"] not in explained:
            _say("", f"= {one['meaning']}")
            explained.add(one["what"])
    if count > SHOWN:
        _say("", f"and {count - SHOWN:,} more")


def _scope(verdict: dict[str, Any]) -> str:
    scope = "the whole log"
    for what in ("session", "task"):
        if verdict[what] is not None:
            scope = f"{what} {verdict[what]}"
    return f"{scope}: {verdict['records']:,} records"


def _head(head: dict[str, Any] | None) -> str:
    return "none" if head is None else f"{head['seq']}:{head['leaf']}"


def _state(verdict: dict[str, Any], line: str) -> str:
    state: str = verdict["lines"][line]
    counts = verdict["sessions"]
    if line != "seals" or counts is None:
        return state
    return f"{state}, sessions sealed: {counts['sealed']:,}, open: {counts['open']:,}"


def _call(call: dict[str, Any]) -> str:
    return f"{call['seq']} ({call['tool'] or 'unreadable'}, since {call['at']})"


def _listed(items: list[Any] | None, as_text: Callable[[Any], str]) -> str:
    if items is None:
        return "not checked"
    more = [f"{len(items) - SHOWN:,} more"] if len(items) > SHOWN else []
    return ", ".join([*map(as_text, items[:SHOWN]), *more]) or "none"
