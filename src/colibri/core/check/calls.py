"""Calls: each enter with the changes that its tool makes and its exit, and those still open.

Memory grows with the calls that are open, and by eight bytes for every other: that is enough to
tell whether two calls have the same id.
"""

from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from hashlib import sha256
from itertools import compress
from typing import Any

from colibri.core.check.kinds import Enter, Exit, text_of_thought
from colibri.core.check.payload import Payload
from colibri.core.check.rows import Columns, Rows
from colibri.core.check.sessions import Caller, Sessions
from colibri.core.check.tasks import UNKNOWN, Tasks
from colibri.core.check.unseen import Unseen
from colibri.core.ledger import TEXT_FIELDS
from colibri.core.report import CALLS, Findings, OpenCall
from colibri.core.rows import Row

# The changes that a tool makes in a call that ended ok, in this order: kinds, how many at least and
# at most. Any other tool makes none.
_MADE_BY: dict[str, Sequence[tuple[tuple[str, ...], int, int]]] = {
    "audit_session_start": ((("session.open", "session.resume"), 1, 1),),
    "thought_record": ((("thought",), 1, 1),),
    "merkle_finalize": ((("session.seal",), 1, 1),),
    "task_create": ((("task",), 1, 1), (("task.text",), 1, 1)),
    "task_update": ((("thought",), 0, 1), (("task",), 0, 8), (("task.text",), 0, 1)),
    "task_next_actions": ((("task",), 0, 1),),
}
# Those of which one suffices: most calls have no more.
_ALONE = frozenset(
    (tool, kind)
    for tool, made in _MADE_BY.items()
    for kinds, _, _ in made
    for kind in kinds
    if all(least == 0 or others is kinds for others, least, _ in made)
)
_NO_TOOL = ""
REPEATED = ("task_create", "thought_record")  # the tools that take a key
# The texts among a tool's arguments, in whose place is a digest.
_TEXTS = {
    "audit_session_start": ("intent",),
    "thought_record": ("content",),
    "task_create": TEXT_FIELDS,
    "task_update": (*TEXT_FIELDS, "content"),
}
_WITH_TEXT = frozenset({"thought", "session.open", "session.resume"})
_BARE = 3  # what is kept of an open call: its enter, what it names, what it says,
_FULL = 13  # and ten changes
_PART = 250_000  # ids that are compared at once

Change = tuple[Row, Any]  # with its payload, or None
Names = tuple[str | None, str | None, str | None]  # session, task, agent
Others = Mapping[str, Callable[[Row, Any], None]]  # by kind

_row: Callable[[tuple[Any, ...]], Row] = partial(tuple.__new__, Row)


class Calls:
    """Shown every record but erasures, in the order of the log.

    A check that does not begin at the start of the log cannot judge calls that were entered before
    it. Where two calls have the same id, which is known only at the end, the log has to be read
    once more with remember=True, and then all ids are kept.
    """

    def __init__(
        self,
        found: Findings,
        tasks: Tasks,
        sessions: Sessions,
        unseen: Unseen,
        *,
        from_start: bool = True,
        remember: bool = False,
    ) -> None:
        self._found = found
        self._tasks = tasks
        self._sessions = sessions
        self._unseen = unseen
        self.firsts: dict[int, str] = {}  # enter and tool of calls that may be repeated
        self._from_start = from_start
        # Of each its row, what it names, what it says, and then its changes
        self._open: dict[str, list[Any]] = {}
        self._hashes = array("q")  # of the ids of all calls; nobody outside can foresee them
        self._keep, self._closed = remember, set[str]()

    def take(self, rows: Rows, c: Columns, said: Sequence[Any], others: Others) -> None:
        """Some records; those that are neither enter nor exit are handed on, as they come."""
        opened, closed, leave, unseen = self._open, self._closed, self._leave, self._unseen
        self._hashes.extend(map(hash, compress(c.calls, map("call.enter".__eq__, c.kinds))))
        names = zip(c.sessions, c.tasks, c.agents, strict=True)
        for row, kind, call, named, one in zip(rows, c.kinds, c.calls, names, said, strict=True):
            if kind == "call.exit":
                leave(row, call, named, one)
            elif kind != "call.enter":
                others[kind](_row(row), one)
            elif call in opened or call in closed:
                self._note(row[0], "bad-pair", "another call has its id")
            else:
                opened[call] = [row, named, one]
                if unseen.is_active and one is not None and one.use is not None:
                    unseen.enter(row, one)

    def change(self, row: Row, said: Payload | None) -> None:
        """A record that a call has made."""
        opened = self._open.get(row[3])
        if opened is None:
            if self._from_start:
                self._note(row.seq, "stray-change", "outside an open call")
            return
        if row[4:7] != opened[1]:
            self._compare_names(opened[1], row)
        if len(opened) < _FULL:
            opened.append((row, said))
        else:
            self._note(row.seq, "stray-change", "no call makes so many")

    def use_id(self, id: str) -> bool:
        """Give an id to what no call has written; False if a call has it, or something else."""
        if id in self._open or id in self._closed:
            return False
        self._hashes.append(hash(id))
        if self._keep:
            self._closed.add(id)
        return True

    def caller(self, row: Row) -> Caller | None:
        """The enter of the call that wrote a record, if that is open."""
        opened = self._open.get(row.call)
        return None if opened is None else Caller(opened[0][0], opened[2])

    def reasons(self, row: Row) -> Sequence[str | None]:
        """The tasks of the thoughts that the call of a record has recorded so far."""
        changes = self._open.get(row.call, ())[3:]
        return [change.task for change, _ in changes if change.kind == "thought"]

    def _leave(self, row: tuple[Any, ...], call: str, named: Names, said: Exit) -> None:
        opened = self._open.pop(call, None)
        if opened is None:
            self._miss_enter(row[0], said)
            return
        if self._keep:
            self._closed.add(call)
        changes: Sequence[Change] = ()
        if len(opened) == _BARE:
            enter, entered, begun = opened
        else:
            enter, entered, begun, *changes = opened
            self._tasks.end_call(changes)
        if named != entered:
            self._compare_names(entered, _row(row))
        is_ok = said.outcome == "ok"
        if said.enter != enter[0] or (begun is not None and begun.tool != said.tool):
            self._note(row[0], "bad-pair", "another enter or tool")
        elif is_ok and said.repeats is None and said.tool in _MADE_BY:
            self._judge_work(row[0], enter, begun, changes, said.tool)
        elif changes or said.repeats is not None:
            self._judge_changes(changes, _NO_TOOL, row[0])
            self._judge_repeat(row[0], said)
        if is_ok and row[4] is not None:
            self._sessions.signs[row[4]] = row[0]
        if self._unseen.is_active and begun is not None:
            self._unseen.exit(row, enter[0], begun, said)

    def _miss_enter(self, seq: int, said: Exit) -> None:
        if self._from_start:
            self._note(seq, "bad-pair", f"record {said.enter} is not its open enter")

    def _judge_work(
        self, exit: int, enter: Any, begun: Enter | None, changes: Sequence[Change], tool: str
    ) -> None:
        """What a call made that ended ok, by a tool that makes changes."""
        if tool in REPEATED and (begun is None or "key" in (begun.arguments or ())):
            self.firsts[enter[0]] = tool
        made = self._judge_changes(changes, tool, exit)
        if made and begun is not None and begun.arguments:
            self._judge_digests(enter, begun, changes)

    def finish(self) -> tuple[OpenCall, ...]:
        """The calls that are still open have changed nothing."""
        still = []
        for enter, _, said, *changes in self._open.values():
            if self._from_start:
                self._judge_changes(changes, _NO_TOOL, None)
            row, tool, server = _row(enter), said and said.tool, said and said.server
            still.append(OpenCall(row.seq, row.call, tool, server, row.at))
        return tuple(still)

    def has_repeated_ids(self) -> bool:
        """Whether two enters seem to have the same id; by parts, so that no set is large."""
        parts, hashes = len(self._hashes) // _PART + 1, self._hashes
        distinct = sum(
            len({one for one in hashes if one % parts == part} if parts > 1 else {*hashes})
            for part in range(parts)
        )
        return distinct < len(hashes)

    def _compare_names(self, entered: Names, row: Row) -> None:
        """All records of a call name the same, unless the call itself has made the name."""
        session, task, agent = entered
        same = row.agent == agent and session in (row.session, None)
        if not same or task not in (row.task, None):
            self._note(row.seq, "bad-pair", "another session, task or agent")

    def _judge_changes(self, changes: Sequence[Change], tool: str, exit: int | None) -> bool:
        """Whether a call has made the changes that its tool makes."""
        if len(changes) == 1 and (tool, changes[0][0][2]) in _ALONE:
            return True
        at, is_missing = _fitting(tuple([row[2] for row, _ in changes]), tool)
        if at == len(changes) and not is_missing:
            return True
        for row, _ in changes[at:]:
            self._note(row.seq, "stray-change", "its call does not make it, or has not ended ok")
        if exit is not None and is_missing and at == len(changes):
            self._note(exit, "missing-change", "its tool makes more")
        return False

    def _judge_repeat(self, seq: int, said: Exit) -> None:
        """Whether the call that this one repeats, if it does, has done the work."""
        if said.repeats is None:
            return
        done = not self._from_start or self.firsts.get(said.repeats) == said.tool
        if said.outcome != "ok" or said.tool not in REPEATED or not done:
            self._note(seq, "bad-repeat", f"record {said.repeats} has not done the work")

    def _judge_digests(self, enter: Any, begun: Enter, changes: Sequence[Change]) -> None:
        """Hold the digest of each text among the arguments against the text that was recorded."""
        arguments = begun.arguments or {}
        for name in _TEXTS.get(begun.tool, ()):
            digest: Any = arguments.get(name)
            if digest is None and name == "content":
                digest = text_of_thought(arguments)
            if digest is None:
                continue
            text = self._recorded(enter[5], name, changes)
            if text is UNKNOWN:
                continue
            data = None if text is None else text.encode()
            told = digest.sha256, digest.size
            if data is None or told != (sha256(data).hexdigest(), len(data)):
                detail = f"{name} is not the one that was recorded"
                self._note(enter[0], "wrong-digest", detail)

    def _recorded(self, task: str | None, name: str, changes: Sequence[Change]) -> Any:
        """A text that a call recorded or left as it was; UNKNOWN if it is erased."""
        if name not in TEXT_FIELDS:  # of such a call the first change is the text's
            row, said = changes[0] if changes else (None, None)
            if row is None or row[2] not in _WITH_TEXT:
                return None
            return getattr(said, name, UNKNOWN)  # who goes on keeps the intent that there was
        for row, said in changes:
            if row.kind == "task.text":
                if said is None:
                    return UNKNOWN
                if name in said.set:
                    return said.set[name][1]
        return self._tasks.text(task, name)

    def _note(self, seq: int, code: str, detail: str) -> None:
        self._found.note(CALLS, seq, code, detail)


@lru_cache(maxsize=1024)
def _fitting(made: tuple[str, ...], tool: str) -> tuple[int, bool]:
    """How many changes of a call, by their kinds, are such as its tool makes; whether one lacks."""
    at, is_missing = 0, False
    for kinds, least, most in _MADE_BY.get(tool, ()):
        end = at
        while end < len(made) and end - at < most and made[end] in kinds:
            end += 1
        is_missing = is_missing or end - at < least
        at = end
    return at, is_missing
