"""What a verification of a log found: what each damage means, and how a verdict is shown.

The same thing has the same code here as in the verdict on a bundle (docs/formats.md §10 and §11).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from colibri.cli import program, terminal
from colibri.cli.show import words
from colibri.core.report import LINE_OF
from colibri.core.witness import Judged, is_held

SHOWN = 20  # findings, calls and erasures that a person is shown
TITLE = 13  # how wide the names of lines are
LINES = {
    "intact": "intact",
    "complete": "complete",
    "sealed": "sealed",
    "rules": "rules kept",
    "rows": "rows",
    "witnessed": "witnessed",
}

# What each finding means to the owner of the log.
MEANINGS = {
    "bad-header": "no Colibri writes such a record",
    "altered-header": "the record was changed after it was written, or belongs to another log",
    "altered-payload": "its content is not the one that was recorded",
    "bad-payload": "the record was written by another program, or rewritten with the log",
    "wrong-order": "records were reordered",
    "broken-link": "it does not follow the record before it: one of the two was replaced",
    "head-differs": "the log was rewritten, or your head belongs to another log",
    "damaged-file": "not all of the database can be read, parts are missing, or an index is wrong",
    "missing-record": "records were removed",
    "missing-payload": "its content was removed, and no erasure says so",
    "truncated": "the log was truncated, or rolled back to an older copy",
    "second-seal": "a session can be sealed only once",
    "thought-after-seal": "nothing can be added to a sealed session",
    "change-after-seal": "nothing can be added to a sealed session",
    "wrong-index": "thoughts of the session were added, removed or reordered",
    "broken-thought-chain": "thoughts of the session were added, removed or reordered",
    "wrong-count": "the seal does not match the session's thoughts",
    "wrong-range": "the seal does not match the session's thoughts",
    "wrong-root": "the seal does not match the session's thoughts",
    "root-differs": "nothing that was checked is sealed under the root that you gave",
    "second-open": "a session can be opened only once",
    "outside-session": "a session did something before it was opened",
    "wrong-server": "a process continued a session after another had resumed it",
    "bad-pair": "the records of a call do not belong together",
    "stray-change": "no successful call made this change",
    "missing-change": "a call succeeded but did not record what it did",
    "bad-repeat": "a call claims to repeat another that did not do its work",
    "wrong-digest": "a call recorded a different text than it was given",
    "bad-creation": "no task begins like this",
    "wrong-version": "changes of the task were added, removed or reordered",
    "wrong-change": "it does not follow from the records of the task before it",
    "change-after-end": "a task was changed after its end",
    "illegal-move": "a task made a move that the state machine does not allow",
    "wrong-attempt": "it does not follow from the records of the task before it",
    "unknown-task": "a task that it names was not created before",
    "dependency-cycle": "a task waits for itself",
    "blocked-move": "a task moved on while one that it depends on was open",
    "missing-evidence": "a task was done or cancelled without a thought about it",
    "wrong-holder": "a task was claimed for another session, or moved without a claim",
    "claimed-change": "a task was changed while another session held it",
    "wrong-takeover": "a task was taken over, but its holder had not been silent as claimed",
    "wrong-gate": "a task was done, but what it names as proof does not satisfy the rule",
    "bad-erasure": "it names something that cannot be erased",
    "erased-payload": "an erasure says that the content is gone",
    "altered-task": "tools show a task differently from its records",
    "altered-session": "tools show a session differently from its records",
    "altered-deed": "tools show a deed differently from its record",
    "altered-tree": "a kept hash of the log's tree is not that of its records",
    "diverged": "the log was truncated, rewritten or replaced by an older copy, or two copies of it"
    " went on; if you know why, colibri heads accept --why TEXT accepts it",
    "foreign-schema": "the database has tables, indexes or triggers that Colibri did not make",
}

# What can be left open.
NOTES = {
    "truth": "whether what was recorded is true, or something was never recorded",
    "clock": "the times, which come from the server's clock; the order is that of the numbers",
    "arguments": "whether a call's answer, and arguments other than texts, fit what it recorded",
    "pages": "pages and indexes that hold no record: colibri backup checks those of a file, and"
    " pg_amcheck those of a server",
    "outside-root": "whether a seal's root is the one that was published",
    "size": "how many thoughts the given root covers: it came without its size",
    "everything": "nothing was checked",
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
        "erased_count": None,
        "open_calls": None,
        "open_call_count": None,
        "coverage": None,
        "unrecorded": [],
        "witnesses": None,
        "held_to": None,
        "newer": None,
        "held": "",
        "remarks": [],
        "findings": [],
        "finding_count": 0,
        "not_checked": [note("everything")],
    }


def finding(seq: int | None, code: str, detail: str) -> dict[str, Any]:
    """One damage, with what it means."""
    return {"code": code, "seq": seq, "detail": detail, "meaning": MEANINGS[code]}


def note(code: str, fact: str = "") -> dict[str, str]:
    """Something that was not checked."""
    return {"code": code, "detail": NOTES[code] + (f": {fact}" if fact else "")}


def lines(found: set[str], judged: Sequence[Judged] | None) -> dict[str, str]:
    """Each "no" for itself; what rests on records that are not sound is not checked."""
    bad = {LINE_OF[code] for code in found}
    spoilt = bad & {"intact", "complete"} or found & {"bad-erasure", "erased-payload"}
    said = {line: "no" if line in bad else "not checked" if spoilt else "yes" for line in LINES}
    return said | {"witnessed": "not checked" if judged is None else is_held(judged)}


def witness(judged: Judged) -> dict[str, Any]:
    """A witness, with what the log makes of it."""
    kept, accepted = judged.witness, judged.accepted
    told = kept._asdict()
    del told["proof"]  # long, and of use only with the tree
    return {
        **told,
        "leaf": kept.leaf and kept.leaf.hex(),
        "root": kept.root and kept.root.hex(),
        "object": kept.object and kept.object.hex(),
        "signature": kept.signature and kept.signature._asdict(),
        "place": kept.place and kept.place._asdict(),
        "result": judged.result,
        "detail": judged.detail,
        "accepted": accepted and {"why": accepted.why, "at": accepted.at},
    }


def show(verdict: dict[str, Any]) -> None:
    """In words, one line for each thing."""
    _say("database", verdict["database"], whole=True)
    _say("log", verdict["log"] or "unknown", whole=True)
    _say("checked", _scope(verdict))
    _say("head", words.head(verdict["head"]), whole=True)
    for line, title in LINES.items():
        _say(title, _state(verdict, line), "refused" if verdict["lines"][line] == "no" else "")
    for remark in verdict["remarks"]:
        _say("", remark)
    _say("erased", _listed(verdict["erased"], verdict["erased_count"], str))
    _say("open calls", _listed(verdict["open_calls"], verdict["open_call_count"], _call))
    from colibri_verify import covered  # noqa: PLC0415 - 15 ms that no other command need wait

    for fact in covered(verdict["coverage"]):
        _say("deeds", fact)
    for fact in verdict["unrecorded"]:
        _say("deeds", fact, "refused")
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


def _state(verdict: dict[str, Any], line: str) -> str:
    """What it is, and for people how far that goes."""
    state: str = verdict["lines"][line]
    head, counts = verdict["head"], verdict["sessions"]
    if head and (line, state) == ("complete", "yes") and verdict["held_to"] is None:
        return f"yes, up to record {head['seq']}; truncation would not show"
    if line == "witnessed" and state in ("yes", "not checked") and verdict["held"]:
        return f"{state}, {verdict['held']}"
    if line != "sealed" or counts is None or state == "none":
        return state
    every = terminal.count(counts["sealed"] + counts["open"], "session")
    shown = f"{counts['sealed']:,} of {every}"
    return shown if state == "open" else f"{state}, {shown}"


def _call(call: dict[str, Any]) -> str:
    return f"{call['seq']} ({call['tool'] or 'unreadable'}, since {call['at']})"


def _listed(items: list[Any] | None, count: int, as_text: Callable[[Any], str]) -> str:
    if items is None:
        return "not checked"
    more = [f"{count - SHOWN:,} more"] if count > SHOWN else []
    return ", ".join([*map(as_text, items[:SHOWN]), *more]) or "none"
