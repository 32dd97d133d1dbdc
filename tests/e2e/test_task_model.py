"""Random calls through the real server against a model of the design: no answer may differ."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from colibri.store.verify import verify
from tests.support.client import JSON
from tests.support.evidence import reading
from tests.support.tasklab import STATES, Lab, issues, refusal
from tests.support.taskmodel import Model, No

RUNS = 200
STEPS = 50
NOBODY = "T-999999999"
KINDS = (
    *("create",) * 3,
    *("advance",) * 12,
    *("update",) * 5,
    *("retry", "wait"),
    *("get", "list", "next_actions") * 2,
    *("think", "invalid"),
)
INVALID: Sequence[tuple[str, JSON]] = (
    ("task_get", {"task_id": "T-1;DROP"}),
    ("task_get", {"task_id": "t-0001"}),
    ("task_get", {}),
    ("task_update", {"task_id": "T-0001"}),
    ("task_update", {"task_id": "T-0001", "expected_version": 1}),
    ("task_update", {"task_id": "T-0001", "status": "READY"}),
    ("task_update", {"task_id": "T-0001", "title": None}),
    ("task_create", {"title": ""}),
    ("task_create", {"title": "x", "priority": "urgent"}),
    ("task_list", {"limit": 0}),
    ("task_next_actions", {"limit": 101}),
)
T = TypeVar("T")
Step = tuple[str, int]


class Dice:
    """Choices out of one number, so that hypothesis has little to draw and can still shrink."""

    def __init__(self, number: int) -> None:
        self._left = number

    def pick(self, options: Sequence[T]) -> T:
        self._left, at = divmod(self._left, len(options))
        return options[at]

    def one_in(self, count: int) -> bool:
        return self.pick(range(count)) == count - 1


class World:
    """One server and the model of all that it holds; a difference makes both begin anew."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self._folders = folders
        self.seen: Counter[str] = Counter()
        self.runs = 0
        self.begin()

    def begin(self) -> None:
        self.lab = Lab(self._folders.mktemp("model"))
        self.model = Model()

    def end(self) -> None:
        self.lab.__exit__(None, None, None)

    def run(self, steps: Sequence[Step]) -> None:
        try:
            run = Run(self)
            for kind, number in steps:
                run.take(kind, Dice(number))
            self.runs += 1
        except BaseException:
            self.end()
            self.begin()
            raise


class Run:
    """Fifty steps with tasks and projects of their own, beside those of the runs before."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.lab, self.model = world.lab, world.model
        self.tag = f"run{len(self.model.tasks)}"
        self.ids: list[str] = []
        self.methods: dict[str, Callable[..., Any]] = {
            "create": self.model.create,
            "update": self.model.update,
            "think": self.model.think,
            "get": self.model.get,
            "list": self.model.find,
            "next_actions": self.model.next_actions,
        }
        self.projects = (None, f"{self.tag}-a", f"{self.tag}-b", "shared")

    def take(self, kind: str, dice: Dice) -> None:
        if kind == "invalid":
            tool, arguments = dice.pick(INVALID)
            issues(self.lab.call(tool, **arguments))
            self.world.seen["INVALID_PARAMS"] += 1
            return
        if not self.ids and kind not in ("get", "list", "next_actions"):
            kind = "create"
        arguments = getattr(self, f"_{kind}")(dice)
        self.compare("update" if kind in ("advance", "retry", "wait") else kind, arguments)

    def compare(self, name: str, arguments: JSON) -> None:
        result = self.lab.call("think" if name == "think" else f"task_{name}", **arguments)
        try:
            expected = self.methods[name](**arguments)
        except No as no:
            self._compare_refusal(refusal(result), no, arguments)
            self.world.seen[no.code] += 1
            return
        assert result["isError"] is False, (result, expected)
        answer = result["structuredContent"]["data"]
        self.world.seen[name] += 1
        if name in ("create", "update"):
            self.model.adopt(answer)
            expected = self.model.tasks[answer["task_id"]].whole()
        if name == "create":
            self.ids.append(answer["task_id"])
        if name != "think":
            assert _shortened(answer, expected) == expected

    def _compare_refusal(self, error: JSON, no: No, arguments: JSON) -> None:
        assert error["code"] == no.code, (error, no.facts)
        assert {name: error[name] for name in no.facts} == no.facts
        if no.code == "ERR_CYCLE":
            first, *way, last = error["cycle"]
            assert first == last == arguments["task_id"]
            before = [arguments["depends_on"], *(self.model.tasks[id].depends_on for id in way)]
            assert all(id in ids for id, ids in zip([*way, last], before, strict=True))

    # Arguments.

    def _id(self, dice: Dice) -> str:
        return NOBODY if dice.one_in(12) or not self.ids else dice.pick(self.ids)

    def _ids(self, dice: Dice) -> list[str]:
        return [self._id(dice) for _ in range(dice.pick((0, 1, 1, 2, 3)))]

    def _title(self, dice: Dice) -> str:
        return f"{dice.pick(('Mend', 'mend', 'STRASSE', 'Straße', 'a'))} {self.tag}"

    def _fields(self, dice: Dice) -> JSON:
        """Any of the fields that both tools take."""
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
        return {"title": self._title(dice), **waits, **self._fields(dice)}

    def _update(self, dice: Dice) -> JSON:
        id = self._id(dice)
        changes = self._fields(dice)
        if dice.one_in(3):
            changes["status"] = dice.pick(STATES)
        if dice.one_in(4) or not changes:
            changes["title"] = self._title(dice)
        return {"task_id": id, **changes, **self._expected(id, dice)}

    def _advance(self, dice: Dice) -> JSON:
        """Mostly straight ahead, so that tasks get far; now and then back or out."""
        id = dice.pick(self._furthest()[:3])
        moves = self.model.tasks[id].moves() or ["GATHER"]
        to = dice.pick(moves) if dice.one_in(8) else moves[0]
        return {"task_id": id, "status": to, **self._expected(id, dice)}

    def _retry(self, dice: Dice) -> JSON:
        far = self._furthest()
        ready = [id for id in far if self.model.tasks[id].status == "VERIFY"]
        return {"task_id": dice.pick(ready or far), "status": "GATHER"}

    def _wait(self, dice: Dice) -> JSON:
        """Dependencies that lead through the tasks in both directions."""
        return {"task_id": dice.pick(self.ids), "depends_on": [dice.pick(self.ids)]}

    def _furthest(self) -> list[str]:
        """The open tasks, those of later attempts and states first; all, if none is open."""
        tasks = [task for id in self.ids if (task := self.model.tasks[id]).moves()]
        tasks.sort(key=lambda task: (task.attempt, STATES.index(task.status)), reverse=True)
        return [task.task_id for task in tasks] or self.ids

    def _expected(self, id: str, dice: Dice) -> JSON:
        if id not in self.model.tasks or not dice.one_in(4):
            return {}
        return {"expected_version": self.model.tasks[id].version + dice.pick((0, 0, 1))}

    def _think(self, dice: Dice) -> JSON:
        return {"task_id": self._id(dice) if dice.one_in(2) else self._furthest()[0]}

    def _get(self, dice: Dice) -> JSON:
        return {"task_id": self._id(dice)}

    def _filter(self, dice: Dice) -> JSON:
        made = {
            "project": dice.pick(self.projects),
            "assignee": dice.pick((None, "ada", "bob", "nobody")),
        }
        return {name: value for name, value in made.items() if value is not None}

    def _list(self, dice: Dice) -> JSON:
        wanted: JSON = {**self._filter(dice), "limit": dice.pick((500, 1, 3, 50))}
        if dice.one_in(2):
            wanted["status"] = dice.pick(STATES)
        if dice.one_in(2):
            search = dice.pick((self.tag, f"strasse {self.tag}", "WHY", "n", "mend n", ""))
            wanted["search"] = search
        if dice.one_in(2):
            wanted["offset"] = dice.pick((0, 1, 2, 5, len(self.model.tasks)))
        return wanted

    def _next_actions(self, dice: Dice) -> JSON:
        return {**self._filter(dice), "limit": dice.pick((100, 1, 5, 10))}


def _shortened(answer: JSON, expected: JSON) -> JSON:
    """The answer with each sentence of `needs` cut down to what the model says it must name."""
    if "tasks" in expected and len(answer["tasks"]) == len(expected["tasks"]):
        pairs = zip(answer["tasks"], expected["tasks"], strict=True)
        return {**answer, "tasks": [_shortened(task, wanted) for task, wanted in pairs]}
    if "needs" not in expected:
        return answer
    return {**answer, "needs": _named(answer["needs"], expected["needs"])}


def _named(needs: dict[str, list[str]], wanted: Any) -> Any:
    same = {state: len(texts) for state, texts in needs.items()} == {
        state: len(names) for state, names in wanted.items()
    }
    said = all(
        name in text
        for state, texts in needs.items()
        for text, names in zip(texts, wanted.get(state, ()), strict=False)
        for name in names
    )
    return wanted if same and said else needs


def test_a_second_attempt_answers_as_the_model_does(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Design §8: evidence counts since the attempt began; a way that chance seldom goes."""
    world = World(tmp_path_factory)
    run = Run(world)
    id = {"task_id": "T-0001"}
    try:
        run.compare("create", {"title": "twice"})
        run.compare("think", id)
        for status in (*STATES[1:6], *STATES[1:7]):
            run.compare("update", {**id, "status": status})
            run.compare("get", id)
        assert world.seen["ERR_WRITEBACK_REQUIRED"] == 1
        run.compare("think", id)
        run.compare("update", {**id, "status": "DONE"})
        assert world.model.tasks["T-0001"].attempt == 2
    finally:
        world.end()


@pytest.mark.slow
@pytest.mark.timeout(420)  # of which shrinking a difference takes most
def test_200_runs_of_50_random_calls_answer_as_the_model_does(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Design §7 and §8: status, version, attempt, refusals, queue order, totals."""
    world = World(tmp_path_factory)

    @settings(
        max_examples=RUNS, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(
        st.lists(
            st.tuples(st.sampled_from(KINDS), st.integers(0, 2**48)),
            min_size=STEPS,
            max_size=STEPS,
        )
    )
    def run(steps: list[Step]) -> None:
        world.run(steps)

    try:
        run()
        assert world.runs >= RUNS
        _assert_all_was_seen(world.seen)
        assert world.lab.close() == 0
        with reading(world.lab.database) as db:
            report = verify(db, pause=lambda: None)
        assert (report.valid, report.breaks) == (True, ())
    finally:
        world.end()


def _assert_all_was_seen(seen: Counter[str]) -> None:
    """A run in which something never happened would prove nothing about it."""
    wanted = {
        *("create", "update", "think", "get", "list", "next_actions", "INVALID_PARAMS"),
        *("ERR_NOT_FOUND", "ERR_VERSION_CONFLICT", "ERR_CYCLE", "ERR_INVALID_TRANSITION"),
        *("ERR_BLOCKED", "ERR_WRITEBACK_REQUIRED"),
    }
    assert wanted <= seen.keys(), seen
