"""How steps are printed: thoughts, moves, seals, and the calls that wrote nothing.

14:02:11  plan  R-17 · T-0001 · ada
          The text, in full.
14:02:15  T-0001  INIT → GATHER → ANALYZE, claimed  #31
14:02:19  ✗ task_update status=APPLY  refused ERR_BLOCKED  #35 · T-0001
14:02:23  ✗ ran  pytest -q  failed, exit 1  #37
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from colibri.cli import terminal
from colibri.cli.show import deeds, times, words
from colibri.cli.show.words import Spans
from colibri.store.records import Record
from colibri.store.timeline import Step

MARKS = {"ok": "", "open": "… "}  # any other outcome gets a cross
OPEN = ("open: it is running, or its server died", "refused")
NO_END: Spans = [("  no end reported", "refused")]


class Entry(NamedTuple):
    """What is printed for a record, or for a call without any."""

    record: Record
    head: Spans
    text: str = ""  # wrapped, under it
    whole: str = ""  # to be copied in one piece
    subject: str | None = None  # what the head already names


class Printer:
    """Prints steps under the day they belong to, without the names that are obvious."""

    def __init__(self, hidden: Collection[str | None] = ()) -> None:
        self._hidden = hidden
        self._days = times.Days()
        self._server = ""
        self._called: set[str] = set()  # the host's ids of calls that were shown
        self._begun: dict[tuple[Any, ...], Step] = {}
        self._sealed = False

    def show(self, step: Step) -> None:
        """One step, as people read it. A tool call is shown when it has ended, and once: a call of
        ours is in the ledger already."""
        if step.enter and step.enter.payload and step.enter.payload["use"] is not None:
            self._called.add(step.enter.payload["use"])
        self._sealed |= any(record.kind == "session.seal" for record in step.records)
        if not self._waits(step):
            self._show(step)

    def finish(self) -> None:
        """Show the tool calls that began and did not end; the seal's own ends after it."""
        for step in self._begun.values():
            said = step.first.payload or {}
            seals = self._sealed and str(said["tool"]).endswith("merkle_finalize")
            if not seals and said["use"] not in self._called:
                self._show(step, lacks_end=True)

    def _show(self, step: Step, *, lacks_end: bool = False) -> None:
        for entry in _entries(step, lacks_end=lacks_end):
            self._print(entry, self._other_server(step))

    def _waits(self, step: Step) -> bool:
        """Whether a step is a deed that is shown elsewhere."""
        said = step.first.payload if step.first.kind == "deed" else None
        if not said or said["class"] is None:
            return False
        use = tuple(said[name] for name in ("host_session", "host_agent", "use"))
        if not is_begin(step.first):
            self._begun.pop(use, None)
            return said["use"] in self._called
        if said["use"] is not None:
            self._begun[use] = step
        return "unjudged" not in said  # a gap is shown where it is

    def _print(self, entry: Entry, server: Sequence[str]) -> None:
        record = entry.record
        time = self._days.stamp(record.at)
        indent = terminal.hang(len(time) + 2) if terminal.is_terminal() else 4
        place = f"R-{record.seq}" if record.kind == "thought" else f"#{record.seq}"
        said = (*self._hidden, entry.subject)
        named = (name for name in words.names(record) if name not in said)
        about = " · ".join((place, *named, *server))
        terminal.line((time, "dim"), "  ", *entry.head, (f"  {about}", "dim"), hang=indent)
        if entry.text:
            terminal.paragraph(entry.text, indent=indent)
        if entry.whole:
            terminal.line(" " * indent, (entry.whole, "dim"), hang=indent, whole=True)

    def _other_server(self, step: Step) -> list[str]:
        """The process that served the call, if it is not that of the previous step."""
        server: str = step.enter.payload["server"] if step.enter and step.enter.payload else ""
        if server in ("", self._server):
            return []
        self._server = server
        return [f"server {server[:8]}"]


def is_begin(deed: Record) -> bool:
    """Whether a deed is that a tool was called, and not yet that it has ended."""
    return deed.payload is not None and deed.payload["event"] == "tool.begin"


def _entries(step: Step, *, lacks_end: bool) -> Iterator[Entry]:
    changed = [record for record in step.records if record.kind in ("task", "task.text")]
    for record in step.records:
        if record.kind == "deed" and record.payload:
            said = deeds.deed(record.payload, next(iter(step.records[1:]), None))
            yield Entry(record, [*said, *NO_END] if lacks_end else said)
        elif record.kind == "deed.text" and record is not step.first:
            continue
        elif record not in changed:
            yield _entry(record)
        elif record is changed[0]:  # one call's changes to fields and texts are one entry
            yield Entry(record, _change(changed), subject=record.task)
    if not step.records:
        yield Entry(step.first, _call(step))


def _entry(record: Record) -> Entry:
    said = record.payload or {}
    match record.kind if said else "":
        case "thought":
            return Entry(record, [words.kind_of_thought(said)], said["content"])
        case "session.open":
            return Entry(record, [("session opened", "bold")], said["intent"])
        case "session.resume":
            return Entry(record, [("session resumed", "bold")])
        case "session.seal":
            thoughts = terminal.count(said["count"], "thought")
            root = f"root {said['count']}:{said['root']}"
            return Entry(record, [("sealed", "good"), f"  {thoughts}"], whole=root)
    return Entry(record, [(record.kind, "bold"), "  ", *words.summary(record)])


def _change(changed: Sequence[Record]) -> Spans:
    payloads = [record.payload for record in changed if record.payload]
    spans: Spans = [(f"{changed[0].task}", "bold"), "  "]
    if payloads and payloads[0]["version"] == 1:
        fields = {name: new for one in payloads for name, (_, new) in one["set"].items()}
        return [*spans, "created  ", *words.creation(fields)]
    spans += words.changes(*payloads) if payloads else []
    lost = [record for record in changed if not record.payload]
    for record in lost:
        spans += [", ", *words.summary(record)] if payloads else words.summary(record)
    return spans


def _call(step: Step) -> Spans:
    call = words.step_json(step)
    style = "dim" if call["outcome"] == "ok" else "bold"
    ended = words.outcome(call) if call["outcome"] not in ("open", None) else [OPEN]
    if call["repeats"] is not None:
        ended = [(f"repeats the call of #{call['repeats']}, changed nothing", "dim")]
    return [
        (MARKS.get(call["outcome"], "✗ "), "refused"),
        (call["tool"] or step.first.kind, style),
        (words.arguments(call["arguments"]), style),
        "  ",
        *ended,
    ]
