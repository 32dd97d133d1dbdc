"""An honest writer of task records, made from design §8 and §9 alone: what a replay may believe."""

from typing import Any, NamedTuple

JSON = dict[str, Any]

ENDED = ("DONE", "CANCELLED")
STEPS = ("INIT", "GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY", "DONE")
TEXTS = ("title", "description")


class Line(NamedTuple):
    """A record of the log, as far as a replay looks at it, and its payload."""

    seq: int
    kind: str
    task: str | None
    payload: JSON
    call: str
    at: str
    leaf: bytes = b""
    session: str | None = None


class Book:
    """Tasks as `rows`, and the `log` of records that they follow from."""

    def __init__(self) -> None:
        self.rows: dict[str, JSON] = {}
        self.log: list[Line] = []
        self._calls = 0

    def write(self, kind: str, task: str | None, payload: JSON, *, call: str = "") -> Line:
        """Append a record, honest or not; without a call it is of one of its own."""
        if not call:
            self._calls += 1
            call = f"call-{self._calls}"
        at = f"2026-01-01T00:00:00.{int(call.rpartition('-')[2]):06d}Z"
        line = Line(len(self.log) + 1, kind, task, payload, call, at)
        self.log.append(line)
        return line

    def create(self, *depends_on: str, **fields: Any) -> str:
        id = f"T-{len(self.rows) + 1:04d}"
        made = {"status": "INIT", "priority": "medium", "assignee": None, "project": None}
        made |= {"depends_on": list(depends_on), "title": "t", "description": None} | fields
        head = {"task_id": id, "version": 1}
        new = {name: [None, value] for name, value in made.items()}
        text = {name: new.pop(name) for name in TEXTS}
        line = self.write("task", id, {**head, "attempt": 1, "set": new})
        self.write("task.text", id, {**head, "set": text}, call=line.call)
        self.rows[id] = {
            **{"task_id": id, "version": 1, "attempt": 1, "attempt_seq": line.seq},
            **{"created_at": line.at, "updated_at": line.at},
            **made,
        }
        return id

    def change(self, id: str, **fields: Any) -> None:
        """What task_update does when nothing speaks against it and every field is another."""
        row = self.rows[id]
        retry = (row["status"], fields.get("status")) == ("VERIFY", "GATHER")
        row["attempt"] += retry
        row["version"] += 1
        head = {"task_id": id, "version": row["version"]}
        made = {name: [row[name], value] for name, value in fields.items()}
        text = {name: made.pop(name) for name in TEXTS if name in made}
        call = ""
        if made:
            line = self.write("task", id, {**head, "attempt": row["attempt"], "set": made})
            call = line.call
            row["attempt_seq"] = line.seq if retry else row["attempt_seq"]
        if text:
            line = self.write("task.text", id, {**head, "set": text}, call=call)
        row.update(fields, updated_at=line.at)

    def move(self, id: str, *states: str) -> None:
        for status in states:
            self.change(id, status=status)

    def think(self, id: str) -> Line:
        thought = {"thought_id": "R-1", "index": 0, "type": "plan", "content": "-", "prev": "-"}
        return self.write("thought", id, thought)

    def finish(self, id: str) -> None:
        """All the way from INIT to DONE, with evidence."""
        self.think(id)
        self.move(id, *STEPS[1:])

    def open_dependencies(self, id: str) -> list[str]:
        named = self.rows[id]["depends_on"]
        return [other for other in named if self.rows[other]["status"] not in ENDED]

    def leads_to(self, start: str, goal: str) -> bool:
        """Whether goal is start or one of what it waits for, however far."""
        return start == goal or any(
            self.leads_to(other, goal) for other in self.rows[start]["depends_on"]
        )

    def shown(self, id: str) -> JSON:
        """A row of the table."""
        return {**self.rows[id], "open_dependencies": len(self.open_dependencies(id))}
