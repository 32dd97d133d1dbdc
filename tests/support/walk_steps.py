"""Chooses a random walk's next call: a number becomes a call that fits the current state."""

from collections.abc import Sequence
from typing import TypeVar

from tests.support.client import JSON
from tests.support.model import Model
from tests.support.task_client import STATES
from tests.support.task_model import moves_from

T = TypeVar("T")

NOBODY = "T-999999999"
NOWHERE = "S-nowhere"
TYPES = ("plan", "analysis", "decision", "reflection")

# kind -> its tool and weight
KINDS: dict[str, tuple[str, int]] = {
    "create": ("task_create", 4),
    "advance": ("task_update", 12),
    "update": ("task_update", 5),
    "retry": ("task_update", 1),
    "wait": ("task_update", 1),
    "claim": ("task_update", 3),
    "get": ("task_get", 3),
    "list": ("task_list", 3),
    "next_actions": ("task_next_actions", 3),
    "take": ("task_next_actions", 3),
    "again": ("task_create", 2),
    "start": ("audit_session_start", 2),
    "resume": ("audit_session_start", 1),
    "think": ("thought_record", 6),
    "think_again": ("thought_record", 2),
    "recall": ("thought_record_list", 3),
    "seal": ("merkle_finalize", 1),
    "root": ("merkle_root", 2),
    "verify": ("audit_verify_chain", 1),
    "skills": ("skill_list", 1),
    "ping": ("server_ping", 1),
    "health": ("server_health", 1),
    "invalid": ("", 2),
}
INVALID: Sequence[tuple[str, JSON]] = (
    ("task_get", {"task_id": "T-1;DROP"}),
    ("task_get", {"task_id": "t-0001"}),
    ("task_get", {}),
    ("task_update", {"task_id": "T-0001"}),
    ("task_update", {"task_id": "T-0001", "expected_version": 1}),
    ("task_update", {"task_id": "T-0001", "status": "READY"}),
    ("task_update", {"task_id": "T-0001", "title": None}),
    ("task_update", {"task_id": "T-0001", "status": []}),
    ("task_update", {"task_id": "T-0001", "status": ["GATHER"] * 9}),
    ("task_update", {"task_id": "T-0001", "status": ["GATHER", "READY"]}),
    ("task_update", {"task_id": "T-0001", "claim": "yes"}),
    ("task_update", {"task_id": "T-0001", "claim": False, "status": "GATHER"}),
    ("task_update", {"task_id": "T-0001", "thought": {"type": "plan"}}),
    ("task_update", {"task_id": "T-0001", "thought": "because"}),
    ("task_update", {"task_id": "T-0001", "session_id": "S-1", "agent_id": "ada"}),
    ("task_create", {"title": "x", "key": ""}),
    ("task_create", {"title": "x", "agent_id": "human:ada"}),
    ("task_create", {"title": ""}),
    ("task_create", {"title": "x", "priority": "urgent"}),
    ("task_list", {"limit": 0}),
    ("task_next_actions", {"limit": 101}),
    ("task_next_actions", {"claim": 1}),
    ("audit_session_start", {"intent": ""}),
    ("audit_session_start", {}),
    ("audit_session_start", {"resume": True}),
    ("audit_session_start", {"intent": "x", "session_id": "../x"}),
    ("thought_record", {"session_id": "S", "type": "guess", "content": "x"}),
    ("thought_record", {"session_id": "S", "type": "plan"}),
    ("thought_record_list", {"offset": -1}),
    ("thought_record_list", {"order": "worst"}),
    ("audit_verify_chain", {"session_id": "S", "task_id": "T-0001"}),
    ("merkle_finalize", {}),
    ("merkle_root", {"session_id": "S", "proof_for": "7"}),
    ("skill_list", {"capability": "fly"}),
)


class Dice:
    """Makes choices from one number."""

    def __init__(self, number: int) -> None:
        self._left = number

    def pick(self, options: Sequence[T]) -> T:
        self._left, at = divmod(self._left, len(options))
        return options[at]

    def one_in(self, count: int) -> bool:
        return self.pick(range(count)) == count - 1


class Choices:
    """One run's own tasks, projects and sessions, in addition to those of earlier runs."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.tag = f"run{len(model.tasks)}.{len(model.sessions)}"
        self.ids: list[str] = []
        self.sessions: list[str] = []
        self.projects = (None, f"{self.tag}-a", f"{self.tag}-b", "shared")

    def call(self, kind: str, dice: Dice) -> tuple[str, JSON]:
        """The tool and its arguments."""
        if kind == "invalid":
            return dice.pick(INVALID)
        if not self.ids and kind in ("advance", "update", "retry", "wait", "claim"):
            kind = "create"
        if not self.sessions and kind in ("think", "think_again", "seal", "root", "resume"):
            kind = "start"
        arguments: JSON = getattr(self, f"_{kind}")(dice)
        return KINDS[kind][0], arguments

    # Who makes the call.

    def _caller(self, dice: Dice) -> JSON:
        """Usually no session: then the server has to find out."""
        named: JSON = {}
        if self.sessions and dice.one_in(3):
            named["session_id"] = self._session(dice)
        if dice.one_in(6):
            named["agent_id"] = dice.pick(("ada", "bob"))
        return named

    def _holder(self, id: str, dice: Dice) -> JSON:
        """Usually the session that holds the task."""
        holder = self.model.tasks[id].holder if id in self.model.tasks else None
        if holder is None or dice.one_in(8):
            return self._caller(dice)
        return {"session_id": holder}

    # Tasks.

    def _id(self, dice: Dice) -> str:
        return NOBODY if dice.one_in(12) or not self.ids else dice.pick(self.ids)

    def _ids(self, dice: Dice) -> list[str]:
        return [self._id(dice) for _ in range(dice.pick((0, 1, 1, 2, 3)))]

    def _title(self, dice: Dice) -> str:
        return f"{dice.pick(('Mend', 'mend', 'STRASSE', 'Straße', 'a'))} {self.tag}"

    def _fields(self, dice: Dice) -> JSON:
        """Some of the fields that both tools take."""
        made: JSON = {
            "description": dice.pick((None, "why", "Why not", "")),
            "project": dice.pick(self.projects),
            "priority": dice.pick(("low", "medium", "high", "critical")),
            "assignee": dice.pick((None, "ada", "bob")),
            "depends_on": self._ids(dice),
        }
        return {name: value for name, value in made.items() if dice.one_in(3)}

    def _create(self, dice: Dice) -> JSON:
        waits = {"depends_on": self._ids(dice)} if dice.one_in(2) else {}
        return {"title": self._title(dice), **waits, **self._fields(dice), **self._caller(dice)}

    def _again(self, dice: Dice) -> JSON:
        """A call that may have been sent before, or mostly."""
        key = f"{self.tag}-{dice.pick('ab')}"
        described = {"description": "other"} if dice.one_in(4) else {}
        return {"title": f"keyed {key}", "key": key, **described, **self._caller(dice)}

    def _update(self, dice: Dice) -> JSON:
        id = self._id(dice)
        changes = self._fields(dice)
        if dice.one_in(3):
            changes["status"] = dice.pick(STATES)
        if dice.one_in(4) or not changes:
            changes["title"] = self._title(dice)
        who = self._holder(id, dice)
        return {"task_id": id, **changes, **who, **self._expected(id, dice)}

    def _claim(self, dice: Dice) -> JSON:
        id = dice.pick(self._furthest()[:3])
        change = {"assignee": dice.pick(("ada", "bob"))} if dice.one_in(3) else {}
        claim = not dice.one_in(3)
        return {"task_id": id, "claim": claim, **change, **self._holder(id, dice)}

    def _advance(self, dice: Dice) -> JSON:
        """Usually one step ahead, so that tasks get far; sometimes back, or cancelled."""
        id = dice.pick(self._furthest()[:3])
        moves = self.model.tasks[id].moves() or ["GATHER"]
        steps = [dice.pick(moves) if dice.one_in(8) else moves[0]]
        for _ in range(dice.pick((0, 0, 1, 2, 3))):
            after = moves_from(steps[-1]) or ["GATHER"]
            steps.append(dice.pick(after) if dice.one_in(8) else after[0])
        thought = {"thought": self._thought(dice)} if dice.one_in(3) else {}
        status = steps if len(steps) > 1 or dice.one_in(4) else steps[0]
        asked = {"task_id": id, "status": status, **thought, **self._holder(id, dice)}
        return {**asked, **self._expected(id, dice)}

    def _thought(self, dice: Dice) -> JSON:
        content = dice.pick(("so", 'a "quoted" word', "two\nlines", "\N{SNOWMAN}", "\\"))
        return {"type": dice.pick(TYPES), "content": content}

    def _retry(self, dice: Dice) -> JSON:
        far = self._furthest()
        ready = [id for id in far if self.model.tasks[id].status == "VERIFY"]
        id = dice.pick(ready or far)
        return {"task_id": id, "status": "GATHER", **self._holder(id, dice)}

    def _wait(self, dice: Dice) -> JSON:
        """Dependencies between tasks, in both directions."""
        id = dice.pick(self.ids)
        return {"task_id": id, "depends_on": [dice.pick(self.ids)], **self._holder(id, dice)}

    def _furthest(self) -> list[str]:
        """The open tasks, later attempts and states first; all tasks if none is open."""
        tasks = [task for id in self.ids if (task := self.model.tasks[id]).moves()]
        tasks.sort(key=lambda task: (task.attempt, STATES.index(task.status)), reverse=True)
        return [task.task_id for task in tasks] or self.ids

    def _expected(self, id: str, dice: Dice) -> JSON:
        if id not in self.model.tasks or not dice.one_in(4):
            return {}
        return {"expected_version": self.model.tasks[id].version + dice.pick((0, 0, 1))}

    def _get(self, dice: Dice) -> JSON:
        return {"task_id": self._id(dice), **self._caller(dice)}

    def _filter(self, dice: Dice) -> JSON:
        return _given(
            project=dice.pick(self.projects), assignee=dice.pick((None, "ada", "bob", "nobody"))
        )

    def _list(self, dice: Dice) -> JSON:
        wanted: JSON = {**self._filter(dice), "limit": dice.pick((500, 1, 3, 50))}
        if dice.one_in(2):
            wanted["status"] = dice.pick(STATES)
        if dice.one_in(2):
            search = dice.pick((self.tag, f"strasse {self.tag}", "WHY", "n", "mend n", ""))
            wanted["search"] = search
        if self.sessions and dice.one_in(4):
            wanted["holder"] = dice.pick(self.sessions)
        return {**wanted, **self._offset(dice, len(self.model.tasks))}

    def _next_actions(self, dice: Dice) -> JSON:
        limit = {"limit": dice.pick((100, 1, 5, 10))}
        return {**self._filter(dice), **limit, **self._caller(dice)}

    def _take(self, dice: Dice) -> JSON:
        wanted = self._filter(dice) if dice.one_in(3) else {}
        return {**wanted, "claim": True, **self._caller(dice)}

    def _offset(self, dice: Dice, most: int) -> JSON:
        return {"offset": dice.pick((0, 1, 2, 5, most))} if dice.one_in(2) else {}

    # The trail.

    def _session(self, dice: Dice) -> str:
        """Usually the newest, so that sessions get long; sometimes any, or an unknown one."""
        if dice.one_in(15):
            return NOWHERE
        return dice.pick(self.sessions) if dice.one_in(3) else self.sessions[-1]

    def _about(self, dice: Dice) -> JSON:
        """Usually the task that needs it next."""
        if not self.ids or dice.one_in(3):
            return {}
        return {"task_id": self._furthest()[0] if dice.one_in(2) else self._id(dice)}

    def _start(self, dice: Dice) -> JSON:
        intent = dice.pick(("try", "für später", 'two\nlines, "quoted"'))
        named = f"{self.tag}-{len(self.sessions)}"
        if self.sessions and dice.one_in(4):
            named = dice.pick(self.sessions)
        chosen = {} if dice.one_in(3) else {"session_id": named}
        told = {} if dice.one_in(3) else {"brief": False}
        agent = _given(agent_id=dice.pick((None, "ada", "eve")))
        return {"intent": intent, **chosen, **told, **agent, **self._about(dice)}

    def _resume(self, dice: Dice) -> JSON:
        return {"session_id": self._session(dice), "resume": True, "brief": dice.one_in(2)}

    def _think(self, dice: Dice) -> JSON:
        named = {} if dice.one_in(3) else {"session_id": self._session(dice)}
        agent = _given(agent_id=dice.pick((None, "ada", "bob")))
        return {**self._thought(dice), **named, **agent, **self._about(dice)}

    def _think_again(self, dice: Dice) -> JSON:
        """A call that may have been sent before, or mostly."""
        key = dice.pick("ab")
        content = "otherwise" if dice.one_in(4) else f"keyed {key}"
        return {"session_id": self._session(dice), "type": "plan", "content": content, "key": key}

    def _recall(self, dice: Dice) -> JSON:
        wanted = _given(type=dice.pick((None, None, *TYPES)), limit=dice.pick((500, 1, 3, None)))
        if self.sessions and dice.one_in(2):
            wanted["session_id"] = self._session(dice)
        if dice.one_in(3):
            wanted["task_id"] = self._id(dice)
        if dice.one_in(4):
            wanted["order"] = dice.pick(("oldest", "newest"))
        if "session_id" in wanted and dice.one_in(3):
            return {**wanted, **self._searched(dice)}
        return {**wanted, **self._offset(dice, len(self.model.thoughts))}

    def _searched(self, dice: Dice) -> JSON:
        """A word or its beginning, in one session: few enough results to list all."""
        word = dice.pick(("so", "quot", "LINES", "keyed", "nowhere"))
        return {"search": word, "order": dice.pick(("oldest", "newest", "best")), "limit": 500}

    def _seal(self, dice: Dice) -> JSON:
        return {"session_id": self._session(dice)}

    def _root(self, dice: Dice) -> JSON:
        """Usually of a sealed session, with the proof of any thought."""
        sealed = [id for id in self.sessions if self.model.sessions[id].root is not None]
        id = dice.pick(sealed) if sealed and not dice.one_in(4) else self._session(dice)
        mine = self.model.sessions[id].thoughts if id in self.model.sessions else []
        others = dice.pick((mine, mine, mine, self.model.thoughts))
        thought = dice.pick(others)["thought_id"] if others else "R-1"
        return {"session_id": id, **({} if dice.one_in(4) else {"proof_for": thought})}

    def _verify(self, dice: Dice) -> JSON:
        scope = dice.pick(("", "session", "task"))
        if scope == "session" and self.sessions:
            return {"session_id": self._session(dice)}
        return {"task_id": self._id(dice)} if scope == "task" else {}

    # Calls that change nothing.

    def _skills(self, dice: Dice) -> JSON:
        return _given(
            search=dice.pick((None, "HOW", "bread why", "colibri", "nothing like it")),
            capability=dice.pick((None, None, "read", "write", "admin")),
        )

    def _ping(self, _: Dice) -> JSON:
        return {}

    def _health(self, _: Dice) -> JSON:
        return {"ignored": True}


def _given(**arguments: object) -> JSON:
    return {name: value for name, value in arguments.items() if value is not None}
