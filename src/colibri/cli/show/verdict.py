"""What a verification of a log found: what each damage means, and how a verdict is shown.

The same thing has the same code here as in the verdict on a bundle (docs/formats.md §10 and §11).
"""

from collections.abc import Callable, Iterable
from typing import Any

from colibri.cli import program, terminal
from colibri.core.report import NO_HEAD

SHOWN = 20  # findings, calls and erasures that a person is shown
TITLE = 13  # how wide the names of lines are
LINES = {
    "intact": "intact",
    "complete": "complete",
    "sealed": "sealed",
    "rules": "rules kept",
    "rows": "rows",
}

# What each kind of damage means, by the line of the verdict that it turns to "no".
MEANINGS: dict[str, dict[str, str]] = {
    "intact": {
        "altered-header": "the record was changed after it was written, or is not of this log",
        "altered-payload": "its content is not the one that was recorded",
        "bad-payload": "it says what was recorded, but is not written as Colibri writes it",
        "wrong-order": "records have changed places",
        "forked": "the log goes on from an earlier record here: there were two histories",
        "broken-link": "it does not follow the record before it: one of the two was exchanged",
        "head-differs": "the log was written anew, or your head is of another log",
        "damaged-file": "SQLite cannot read all of the file, or parts of it are gone",
    },
    "complete": {
        "missing-record": "records were taken out",
        "stray-record": "it stands before the first, where no log has one",
        "missing-payload": "its content was taken out, and no erasure says so",
        "truncated": "the tail was cut off, or an older copy was put back",
    },
    "sealed": {
        "thought-after-seal": "a sealed session takes nothing more",
        "bad-seal": "it is not the seal of its session's thoughts",
        "root-differs": "what was looked at was never sealed under the root that you brought",
    },
    "rules": {
        "bad-pair": "the end of a call does not fit its beginning",
        "bad-erasure": "it names what it cannot have erased, or what is still there",
        "illegal-move": "a task was moved in a way that there is not",
        "blocked-move": "a task went on while one that it depends on was open",
        "missing-evidence": "a task was done without a thought about it",
        "bad-task-record": "it does not follow from the records of the task before it",
        "bad-session-record": "it does not follow from the records of the session before it",
        "bad-thought": "it does not fit its session, or its place in it",
    },
    "rows": {
        "altered-task": "what tools show of a task is not what its records say",
        "altered-session": "what tools show of a session is not what its records say",
    },
}
LINE_OF = {code: line for line, meanings in MEANINGS.items() for code in meanings}

# Damage that a bundle's verdict knows by another name than the check of the log.
_CODES = {
    "altered record": "altered-header",
    "out of order": "wrong-order",
    "replaced": "head-differs",
}

# What can be left open.
NOTES = {
    "truth": "whether what was recorded is true, or something was never recorded",
    "clock": "the times, which are the server's own; the order is the number",
    "arguments": "whether a call's answer, and arguments other than texts, fit what it recorded",
    "pages": "pages and indexes of the file that hold no record: colibri backup looks at all pages",
    "outside-head": "a tail cut off, or a log written anew: that takes a head from outside",
    "outside-root": "whether a seal's root is the one that was published",
    "size": "how many thoughts the root that was given covers: it came without its size",
    "erased": "payloads that can no longer be read",
    "moves": "the moves of tasks: that takes the whole log, or --task",
    "everything": "nothing was checked",
}
# How other texts of a report begin, and their codes; the rest is what damage hides.
_BEGINNINGS = {
    "the records after ": "outside-head",
    "records before ": "scope",
    "records that do not name ": "scope",
    "the log holds no records": "scope",
}


def blank(path: str, session: str | None, task: str | None) -> dict[str, Any]:
    """The verdict on a log before anything was looked at."""
    return {
        "format": "colibri-log-verdict/1",
        "verdict": "cannot tell",
        "reason": None,  # why it cannot be told
        "database": path,
        "log": None,
        "session": session,
        "task": task,
        "records": 0,
        "head": None,
        "lines": dict.fromkeys(LINES, "not checked"),
        "sessions": None,
        "erased": None,
        "open_calls": None,
        "findings": [],
        "finding_count": 0,
        "not_checked": [note("everything")],
    }


def code_of(what: str) -> str:
    """The code of a damage that the check of a log names."""
    return _CODES.get(what, what.replace(" ", "-"))


def finding(seq: int | None, code: str, detail: str) -> dict[str, Any]:
    """One damage, with what it means."""
    return {"code": code, "seq": seq, "detail": detail, "meaning": MEANINGS[LINE_OF[code]][code]}


def note(code: str, fact: str = "") -> dict[str, str]:
    """Something that was not checked."""
    return {"code": code, "detail": NOTES[code] + (f": {fact}" if fact else "")}


def note_on(text: str) -> dict[str, str]:
    """The same, from what the check of a log says."""
    if text == NO_HEAD:
        return note("outside-head")
    codes = [code for beginning, code in _BEGINNINGS.items() if text.startswith(beginning)]
    return {"code": codes[0] if codes else "damaged", "detail": text}


def lines(found: set[str], *, cut: bool) -> dict[str, str]:
    """Each "no" for itself; what rests on damaged records, or may be beyond a list, is unclear."""
    bad = {LINE_OF[code] for code in found}
    unclear = cut or bad & {"intact", "complete"}
    return {line: "no" if line in bad else "unclear" if unclear else "yes" for line in LINES}


def show(verdict: dict[str, Any]) -> None:
    """In words, one line for each thing."""
    _say("database", verdict["database"], whole=True)
    _say("log", verdict["log"] or "unknown", whole=True)
    _say("checked", _scope(verdict))
    _say("head", _head(verdict["head"]), whole=True)
    for line, title in LINES.items():
        _say(title, _state(verdict, line), "refused" if verdict["lines"][line] == "no" else "")
    _say("erased", _listed(verdict["erased"], str))
    _say("open calls", _listed(verdict["open_calls"], _call))
    for one in verdict["not_checked"]:
        _say("not checked", f"{one['code']}: {program.typed(one['detail'])}", "dim")
    _show_findings(verdict["findings"], verdict["finding_count"])
    text = f"{verdict['verdict'].upper()}, findings: {verdict['finding_count']:,}"
    _say("verdict", text, "good" if verdict["verdict"] == "good" else "bad")


def show_rows(rows: Iterable[tuple[str, str]]) -> None:
    """The verdict of the independent verifier, a fact a line, as it writes it."""
    for title, fact in rows:
        _say(title, fact, whole=title in ("log", "head"))


def _say(title: str, text: str, style: str = "", *, whole: bool = False) -> None:
    front = title.ljust(TITLE)
    terminal.line((f"{front}{text}", style), hang=TITLE, whole=whole)


def _show_findings(findings: list[dict[str, Any]], count: int) -> None:
    explained: set[str] = set()
    for one in findings[:SHOWN]:
        place = "" if one["seq"] is None else f" at record {one['seq']}"
        _say("found", f"{one['code']}{place}: {one['detail']}", "refused")
        if one["code"] not in explained:
            _say("", f"= {one['meaning']}")
            explained.add(one["code"])
    if count > SHOWN:
        _say("", f"and {count - SHOWN:,} more")


def _scope(verdict: dict[str, Any]) -> str:
    scope = "the whole log"
    for what in ("session", "task"):
        if verdict[what] is not None:
            scope = f"{what} {verdict[what]}"
    return f"{scope}: {terminal.count(verdict['records'], 'record')}"


def _head(head: dict[str, Any] | None) -> str:
    return "none" if head is None else f"{head['seq']}:{head['leaf']}"


def _state(verdict: dict[str, Any], line: str) -> str:
    """What it is, and for people how far that goes."""
    state: str = verdict["lines"][line]
    head, counts = verdict["head"], verdict["sessions"]
    if head and (line, state) == ("complete", "yes") and _is_unseen(verdict):
        return f"yes, up to record {head['seq']}; a cut-off tail would not show"
    if line != "sealed" or counts is None or state == "none":
        return state
    every = terminal.count(counts["sealed"] + counts["open"], "session")
    shown = f"{counts['sealed']:,} of {every}"
    return shown if state == "open" else f"{state}, {shown}"


def _is_unseen(verdict: dict[str, Any]) -> bool:
    """Whether a tail may be missing: no head from outside says that there is none."""
    return note("outside-head") in verdict["not_checked"]


def _call(call: dict[str, Any]) -> str:
    return f"{call['seq']} ({call['tool'] or 'unreadable'}, since {call['at']})"


def _listed(items: list[Any] | None, as_text: Callable[[Any], str]) -> str:
    if items is None:
        return "not checked"
    more = [f"{len(items) - SHOWN:,} more"] if len(items) > SHOWN else []
    return ", ".join([*map(as_text, items[:SHOWN]), *more]) or "none"
