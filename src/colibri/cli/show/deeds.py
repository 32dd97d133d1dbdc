"""What hosts report, in words: a line for what an agent has done, a cross where it failed."""

from collections.abc import Mapping
from typing import Any

from colibri.cli.terminal import Span, count
from colibri.config import Config
from colibri.hook import lost, spool
from colibri.store.records import Record

_DONE = {
    "edit": "edited",
    "run": "ran",
    "read": "read",
    "fetch": "fetched",
    "mcp": "called",
    "other": "used",
}
_EVENTS = {
    "session.start": "host session began",
    "session.end": "host session ended",
    "prompt": "prompt",
    "stop": "agent stopped",
    "subagent.start": "subagent began",
    "subagent.end": "subagent ended",
    "compact": "context compacted",
    "bind": "host session bound",
}
_ENDS = {"tool.failed": "failed", "tool.denied": "denied"}
_QUIET = ("read", "mcp", "other")  # what changes nothing by itself, or is in the ledger anyway
_UNJUDGED = {
    "rules": "colibri.toml cannot be used",
    "session": "its session is not known",
    "ledger": "the ledger could not be read in time",
    "host": "this host takes no denial",
}
MAX_TEXT = 200
MAX_PATHS = 5

Said = Mapping[str, Any]


def unrecorded(config: Config) -> list[str]:
    """What hooks could not record, and no record tells of yet."""
    facts = []
    if number := lost.count(config):
        facts.append(f"{count(number, 'deed')} could not be kept; the next one will tell of it")
    if size := spool.size(config.db_path):
        waits = f"wait in {config.db_path}-spool for the next hook or server"
        facts.append(f"{count(size, 'byte')} of deeds {waits}")
    return facts


def failed(said: Said) -> bool:
    """Whether a deed did not come to a good end, as far as its host tells."""
    return said["event"] in ("tool.failed", "tool.denied") or said["exit"] not in (None, 0)


def deed(said: Said, text: Record | None = None) -> list[Span]:
    """A deed on one line, with the command or the paths of its text."""
    if said["class"] is None:
        return _event(said)
    bad, begun = failed(said), said["event"] == "tool.begin"
    style = "refused" if bad else "dim" if begun or said["class"] in _QUIET else ""
    mark, what = "✗ " if bad else "", _what(said, text)
    done = "began" if begun else _DONE.get(said["class"], "used")
    shown: list[Span] = [(mark, "refused"), (done, style or "bold"), "  ", (what, style)]
    ended = [_ENDS[said["event"]]] if said["event"] in _ENDS else []
    ended += [f"exit {said['exit']}"] if said["exit"] is not None else []
    if ended:
        shown.append((f"  {', '.join(ended)}", "refused" if bad else "dim"))
    return [*shown, *_marks(said)]


def text(said: Said) -> list[Span]:
    """What a deed.text record says."""
    return [_of_text(said) or "a captured text"]


def _event(said: Said) -> list[Span]:
    shown = _EVENTS.get(said["event"], "event")
    host = " ".join(filter(None, (said["host"], said["host_version"])))
    about = f"  {host}" if said["event"] in ("session.start", "session.end", "bind") else ""
    return [(shown, "bold" if said["event"] == "prompt" else "dim"), (about, "dim"), *_marks(said)]


def _marks(said: Said) -> list[Span]:
    late = [(f"  late: happened at {said['late']}", "dim")] if said["late"] else []
    lost = said["lost"]
    gap = [(f"  {count(lost, 'deed')} before it lost", "refused")] if lost else []
    why = said.get("unjudged")
    passed = (
        [(f"  not judged by the rule for edits: {_UNJUDGED.get(why, why)}", "refused")]
        if why
        else []
    )
    return [*late, *gap, *passed]


def _what(said: Said, text: Record | None) -> str:
    """The command, else the files, else the tool; of an erased text only that it is gone."""
    tool = said["tool"] or "a tool"
    if text is None:
        return tool
    return f"{tool} [{text.state}]" if text.payload is None else _of_text(text.payload) or tool


def _of_text(said: Said) -> str:
    if said["command"]:
        line = " ".join(str(said["command"])[: MAX_TEXT * 4].split())
        return line if len(line) <= MAX_TEXT else f"{line[:MAX_TEXT]}…"
    paths = [path or "a file outside the project" for path in said["paths"]]
    more = [f"{len(paths) - MAX_PATHS} more"] if len(paths) > MAX_PATHS else []
    return ", ".join([*map(str, paths[:MAX_PATHS]), *more])
