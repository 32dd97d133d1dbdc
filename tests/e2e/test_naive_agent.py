"""An agent that knows nothing: not the tools, not the states, not the rules.

It knows only `initialize` and `tools/list`, makes one mistake after the other, and corrects each by
reading the error's text, as READINGS defines. A message that it cannot read, or that does not help,
fails the test: the message is at fault.
"""

import json
import re
import time
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import COLIBRI, JSON, Server

PATIENCE = 12
Reading = Callable[["Agent", str, JSON, re.Match[str]], str | None]


class Agent:
    """Calls tools until they do what it wants; `lessons` is what it read meanwhile."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.instructions: str = server.handshake()["instructions"]
        self.tools = {
            tool["name"]: tool for tool in server.request("tools/list")["result"]["tools"]
        }
        self.known: JSON = {}
        self._lessons: list[str] = []

    def wants(self, tool: str, /, **arguments: Any) -> JSON:
        """Call a tool; when it is refused, read why, correct the call and try again."""
        told: set[str] = set()
        for _ in range(PATIENCE):
            data, message = self._call(tool, arguments)
            if message is None:
                self.known |= {key: value for key, value in data.items() if isinstance(value, str)}
                return data
            assert message not in told, f"what it says does not help: {message}"
            told.add(message)
            tool = self._correct(tool, arguments, message)
        raise AssertionError(f"{tool} never succeeded: {told}")

    def lessons(self) -> list[str]:
        """What was read since the last call of this method."""
        lessons, self._lessons = self._lessons, []
        return lessons

    def _call(self, tool: str, arguments: JSON) -> tuple[JSON, str | None]:
        """The data, or the text that says why the call failed."""
        answer = self.server.request("tools/call", {"name": tool, "arguments": arguments})
        if "error" in answer:
            return {}, str(answer["error"]["message"])
        text = json.loads(answer["result"]["content"][0]["text"])
        problem = text.get("error") or text["data"].get("error")
        assert answer["result"]["isError"] is (problem is not None)
        return text.get("data", {}), problem and problem["message"]

    def _correct(self, tool: str, arguments: JSON, message: str) -> str:
        """Apply everything that the message says; returns the tool to call next."""
        understood = False
        for lesson, (pattern, reading) in READINGS.items():
            for found in re.finditer(pattern, message):
                self._lessons.append(lesson)
                tool = reading(self, tool, arguments, found) or tool
                understood = True
        assert understood, f"nothing in this says what to do: {message}"
        return tool

    def invents(self, field: str, allowed: str) -> Any:
        """A value for a field whose limits alone are known."""
        if allowed == "boolean":
            return True
        if allowed.startswith("one of "):
            return allowed.removeprefix("one of ").split(", ")[0]
        example = re.search(r"such as (\S+)", allowed)
        return example[1] if example else f"whatever {field} may be"


# What a message says -> how to react. The function gets the tool, its arguments (which it corrects)
# and the match of the pattern; it returns the tool to call next, if that is another.


def take_the_nearest_tool(agent: Agent, tool: str, arguments: JSON, found: re.Match[str]) -> str:
    nearest: str = get_close_matches(tool, found["names"].split(", "), n=1, cutoff=0)[0]
    return nearest


def rename(agent: Agent, tool: str, arguments: JSON, found: re.Match[str]) -> None:
    arguments[found["right"]] = arguments.pop(found["wrong"])


def leave_out(agent: Agent, tool: str, arguments: JSON, found: re.Match[str]) -> None:
    del arguments[found["field"]]


def inside(arguments: JSON, path: str) -> tuple[JSON, str]:
    """The object that a field is in, and its name there."""
    *outer, field = path.split(".")
    for name in outer:
        arguments = arguments[name]
    return arguments, field


def fill_in(agent: Agent, tool: str, arguments: JSON, found: re.Match[str]) -> None:
    where, field = inside(arguments, found["field"])
    invented = agent.invents(field, found["allowed"])
    where.setdefault(field, agent.known.get(field, invented))  # it may only have been misspelt


def choose(agent: Agent, tool: str, arguments: JSON, found: re.Match[str]) -> None:
    where, field = inside(arguments, found["field"])
    where[field] = found["values"].split(", ")[-1]


def replace_it(agent: Agent, tool: str, arguments: JSON, found: re.Match[str]) -> None:
    arguments[found["field"]] = agent.invents(found["field"], found["allowed"])


def make_it_an_object(agent: Agent, tool: str, arguments: JSON, found: re.Match[str]) -> None:
    arguments[found["field"]] = {found["last"]: arguments[found["field"]]}


def make_it_a_number(agent: Agent, tool: str, arguments: JSON, found: re.Match[str]) -> None:
    arguments[found["field"]] = int(arguments[found["field"]])


def stay_within(agent: Agent, tool: str, arguments: JSON, found: re.Match[str]) -> None:
    arguments[found["field"]] = int(found["most"])


def cut(agent: Agent, tool: str, arguments: JSON, found: re.Match[str]) -> None:
    arguments[found["field"]] = arguments[found["field"]][: int(found["most"])]


def remove_the_character(agent: Agent, tool: str, arguments: JSON, found: re.Match[str]) -> None:
    character = chr(int(found["code"], 16))
    arguments[found["field"]] = arguments[found["field"]].replace(character, "")


def write_it_like_the_example(
    agent: Agent, tool: str, arguments: JSON, found: re.Match[str]
) -> None:
    letters, digits = found["example"].split("-")
    arguments[found["field"]] = f"{letters}-{int(arguments[found['field']]):0{len(digits)}d}"


def give_one_of(agent: Agent, tool: str, arguments: JSON, found: re.Match[str]) -> None:
    field = sorted(found["fields"].split(", "))[0]
    arguments[field] = agent.invents(field, "string")


def make_the_legal_move_first(
    agent: Agent, tool: str, arguments: JSON, found: re.Match[str]
) -> None:
    step = found["states"].split(" or ")[0]
    agent.wants(tool, task_id=arguments["task_id"], status=step)


def put_the_step_between(agent: Agent, tool: str, arguments: JSON, found: re.Match[str]) -> None:
    steps = arguments["status"]
    steps.insert(steps.index(found["after"]) + 1, found["states"].split(" or ")[0])


def finish_the_others_first(agent: Agent, tool: str, arguments: JSON, found: re.Match[str]) -> None:
    for task in re.findall(r"T-\d+", found["tasks"]):
        agent.wants(tool, task_id=task, status="DONE")


def record_one_in_it(agent: Agent, tool: str, arguments: JSON, found: re.Match[str]) -> None:
    agent.wants(found["tool"], session_id=found["session"])


def give_it_with_the_move(agent: Agent, tool: str, arguments: JSON, found: re.Match[str]) -> None:
    arguments[found["field"]] = {}


def take_another_task(agent: Agent, tool: str, arguments: JSON, found: re.Match[str]) -> None:
    (task,) = agent.wants(found["tool"], **{found["field"]: True})["tasks"]
    arguments["task_id"] = task["task_id"]


def claim_it_again(agent: Agent, tool: str, arguments: JSON, found: re.Match[str]) -> None:
    agent.wants(found["tool"], task_id=arguments["task_id"])
    arguments[found["field"]] = True


def work_in_its_own_session(agent: Agent, tool: str, arguments: JSON, found: re.Match[str]) -> None:
    agent.known.pop("session_id", None)
    arguments["session_id"] = agent.wants(found["tool"])["session_id"]


def use_what_it_answers(agent: Agent, tool: str, arguments: JSON, found: re.Match[str]) -> None:
    arguments["session_id"] = agent.wants(found["tool"])["session_id"]


def seal_it_first(agent: Agent, tool: str, arguments: JSON, found: re.Match[str]) -> None:
    agent.wants(found["tool"], session_id=arguments["session_id"])


def take_an_existing_one(agent: Agent, tool: str, arguments: JSON, found: re.Match[str]) -> None:
    session = found.groupdict().get("session")
    listed = agent.wants(found["tool"], **({"session_id": session} if session else {}))
    (rows,) = [value for value in listed.values() if isinstance(value, list)]
    wrong = next(key for key, value in arguments.items() if value == found["id"])
    id = "thought_id" if found["id"].startswith("R-") else "task_id"
    arguments[wrong] = rows[0][id]


def read_it_again(agent: Agent, tool: str, arguments: JSON, found: re.Match[str]) -> None:
    task = agent.wants(found["tool"], task_id=arguments["task_id"])
    assert task["version"] == int(found["version"])
    arguments["expected_version"] = task["version"]


def depend_on_less(agent: Agent, tool: str, arguments: JSON, found: re.Match[str]) -> None:
    arguments["depends_on"].remove(found["task"])


def take_another_id(agent: Agent, tool: str, arguments: JSON, found: re.Match[str]) -> None:
    arguments[found["field"]] += "-2"


def plan_it_again(agent: Agent, tool: str, arguments: JSON, found: re.Match[str]) -> str:
    arguments.clear()
    return "task_create"


READINGS: dict[str, tuple[str, Reading]] = {
    "no such tool": (r"there is no tool .*; the tools are: (?P<names>.*)", take_the_nearest_tool),
    "misspelt field": (
        r"(?P<wrong>\w+): is not a known field; did you mean (?P<right>\w+)\?",
        rename,
    ),
    "unknown field": (r"(?P<field>\w+): is not a known field \(", leave_out),
    "missing field": (
        r"(?P<field>[\w.]+): is required[\w ]* \(allowed: (?P<allowed>[^)]*)\)",
        fill_in,
    ),
    "no such value": (
        r"(?P<field>[\w.]+): is not one of the allowed values"
        r" \(allowed: one of (?P<values>[^)]*)\)",
        choose,
    ),
    "text for a number": (r"(?P<field>\w+): expected int, got str", make_it_a_number),
    "text for yes or no": (
        r"(?P<field>\w+): expected bool, got str \(allowed: (?P<allowed>boolean)\)",
        replace_it,
    ),
    "text for an object": (
        r"(?P<field>\w+): expected object, got str \(allowed: object, with \w+ and (?P<last>\w+)\)",
        make_it_an_object,
    ),
    "too much": (r"(?P<field>\w+): expected int <= (?P<most>\d+)", stay_within),
    "too long": (r"(?P<field>\w+): expected str of length <= (?P<most>\d+)", cut),
    "control character": (
        r"(?P<field>\w+): holds the control character U\+(?P<code>[0-9A-F]{4})",
        remove_the_character,
    ),
    "wrong form": (
        r"(?P<field>\w+): is not of the right form \(allowed: string, such as (?P<example>T-\d+)\)",
        write_it_like_the_example,
    ),
    "said twice": (r"(?P<field>\w+): is another name of \w+", leave_out),
    "not both": (r"give \w+ or (?P<field>\w+), not both", leave_out),
    "nothing to do": (r"give at least one of (?P<fields>[\w, ]+)", give_one_of),
    "illegal move": (
        r" is [A-Z]+: it can move to (?P<states>[A-Z]+(?: or [A-Z]+)*)",
        make_the_legal_move_first,
    ),
    "illegal step": (
        r" would be (?P<after>[A-Z]+): it can move to (?P<states>[A-Z]+(?: or [A-Z]+)*)",
        put_the_step_between,
    ),
    "blocked": (
        r"before these are DONE or CANCELLED: (?P<tasks>T-.*); end them first",
        finish_the_others_first,
    ),
    "no evidence": (
        r"give a (?P<field>thought) with the move",
        give_it_with_the_move,
    ),
    "held by another": (
        r"is held by session .* take another with (?P<tool>\w+) and (?P<field>\w+): true",
        take_another_task,
    ),
    "lost": (
        r"read it with (?P<tool>\w+), then claim it again with (?P<field>\w+): true",
        claim_it_again,
    ),
    "no session": (
        r"you need a session to .*: open one with (?P<tool>\w+), or",
        work_in_its_own_session,
    ),
    "gone on elsewhere": (
        r"start your own session with (?P<tool>\w+), or take this one back",
        work_in_its_own_session,
    ),
    "used key": (r"or use a new (?P<field>key)", take_another_id),
    "final": (r"is final: .* create a new task", plan_it_again),
    "old version": (
        r"is at version (?P<version>\d+), not \d+: .*read it again with (?P<tool>\w+)",
        read_it_again,
    ),
    "circle": (
        r"would wait for itself: .*; leave (?P<task>T-\d+) out of its depends_on",
        depend_on_less,
    ),
    "no such session": (r"open one with (?P<tool>\w+) and use its session_id", use_what_it_answers),
    "session exists": (r"start one with another (?P<field>\w+)", take_another_id),
    "sealed": (r"start a new one with (?P<tool>\w+)", use_what_it_answers),
    "not sealed": (r"call (?P<tool>\w+) to seal it", seal_it_first),
    "nothing to seal": (
        r"the session (?P<session>\S+) has no .*: record one with (?P<tool>\w+) first",
        record_one_in_it,
    ),
    "no such task": (
        r"there is no task (?P<id>T-\d+): (?P<tool>\w+) shows",
        take_an_existing_one,
    ),
    "no such thought": (
        r"there is no thought (?P<id>R-\d+) in the session (?P<session>\S+): (?P<tool>\w+) shows",
        take_an_existing_one,
    ),
}


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    with Server(tmp_path, COLIBRI, handshake=False) as server:
        yield Agent(server)


def test_an_agent_that_knows_nothing_ends_with_verified_evidence(agent: Agent) -> None:
    """Specification 1.1: succeed from the descriptions, recover from every error by reading it."""
    roof = agent.wants("create_task", titel="Mend the roof", colour="red", priority="urgent")
    assert agent.lessons() == [
        "no such tool",
        "misspelt field",
        "unknown field",
        "missing field",
        "no such value",
    ]
    assert (roof["title"], roof["priority"]) == ("Mend the roof", "critical")
    ladder = agent.wants("task_create", title="Fetch \x1b the ladder" + "!" * 300)
    assert agent.lessons() == ["too long", "control character"]
    agent.wants("task_update", task_id="1", depends_on=[ladder["task_id"]])
    assert agent.lessons() == ["wrong form"]
    agent.known.clear()

    done = agent.wants("task_update", task_id=roof["task_id"], status="DONE")
    assert done["status"] == "DONE"
    assert agent.lessons() == [
        *["illegal move"] * 4,  # GATHER, ANALYZE, PLAN, and APPLY, which is
        "blocked",  # so the ladder comes first
        *["illegal move"] * 5,  # from INIT to VERIFY; DONE needs
        "no evidence",  # a thought, which needs
        *["missing field"] * 2,  # type and content; to record it takes
        "no session",  # which needs
        "missing field",  # an intent; the ladder is DONE, and the roof in APPLY
        "illegal move",  # then in VERIFY; its own
        "no evidence",  # needs the same
        *["missing field"] * 2,
    ]
    session = agent.known["session_id"]

    sealed = agent.wants("merkle_root", session_id=session)
    assert agent.lessons() == ["not sealed"]
    assert sealed["record_count"] == 2
    verdict = agent.wants("audit_verify_chain", session_id=session, task_id=roof["task_id"])
    assert agent.lessons() == ["not both"]
    assert (verdict["valid"], verdict["breaks"]) == (True, [])
    for task in (roof, ladder):
        assert agent.wants("task_get", task_id=task["task_id"])["status"] == "DONE"
        about = agent.wants("thought_record_list", task_id=task["task_id"])
        assert about["total_count"] == 1
    assert agent.wants("audit_verify_chain")["valid"] is True


def test_every_other_mistake_is_corrected_from_its_message(agent: Agent) -> None:
    first = agent.wants("task_create", title="first")
    agent.wants("task_create", title="second", depends_on=[first["task_id"]])
    third = agent.wants("task_create", title="third", depends_on=["T-0002"])
    assert agent.lessons() == []

    agent.wants("task_update", task_id=first["task_id"], depends_on=["T-0002", "T-0003"])
    assert agent.lessons() == ["circle", "circle"]
    agent.wants("task_update", task_id=third["task_id"])
    assert agent.lessons() == ["nothing to do"]
    claimed = agent.wants("task_update", task_id="T-0003", assignee="me", expected_version=1)
    assert agent.lessons() == ["old version"]
    assert claimed["assignee"] == "me"
    assert agent.wants("task_get", task_id="T-0099")["task_id"] == "T-0001"
    assert agent.lessons() == ["no such task"]
    agent.wants("task_get", task_id="T-0001", id="T-0001")
    assert agent.lessons() == ["said twice"]
    agent.wants("task_list", limit="9999")
    assert agent.lessons() == ["text for a number", "too much"]

    agent.wants("task_update", task_id="T-0001", status="CANCELLED")
    anew = agent.wants("task_update", task_id="T-0001", title="once more")
    assert agent.lessons() == [
        *("no evidence", *["missing field"] * 2, "no session", "missing field"),
        *("final", "missing field"),
    ]
    assert anew["task_id"] == "T-0004"

    agent.wants("audit_session_start", intent="try", session_id="mine")
    again = agent.wants("audit_session_start", intent="try", session_id="mine")
    assert agent.lessons() == ["session exists"]
    agent.wants("merkle_finalize", session_id=again["session_id"])
    assert agent.lessons() == ["nothing to seal", "missing field", "missing field"]
    agent.wants("thought_record", session_id=again["session_id"], type="plan", content="late")
    assert agent.lessons() == ["sealed", "missing field"]
    agent.wants("thought_record", session_id="S-none", type="plan", content="where?")
    assert agent.lessons() == ["no such session", "missing field"]
    agent.wants("merkle_root", session_id=again["session_id"], proof_for="R-1")
    assert agent.lessons() == ["no such thought"]
    assert agent.wants("audit_verify_chain")["valid"] is True


def test_the_three_calls_are_found_from_the_messages(agent: Agent, tmp_path: Path) -> None:
    """A task claimed, moved in steps with a thought and ended; keys, others' claims, resuming."""
    roof = agent.wants("task_create", title="Mend the roof", key="once")
    assert agent.wants("task_create", title="Mend the roof", key="once") == {
        **roof,
        "repeated": True,
    }
    assert agent.wants("task_create", title="Fetch the ladder", key="once")["task_id"] == "T-0002"
    assert agent.lessons() == ["used key"]

    (mine,) = agent.wants("task_next_actions", claim="yes")["tasks"]
    assert agent.lessons() == ["text for yes or no", "no session", "missing field"]
    session = agent.known["session_id"]
    assert (mine["task_id"], mine["holder"]) == (roof["task_id"], session)
    steps = ["GATHER", "APPLY"]
    begun = agent.wants("task_update", task_id="T-0001", status=steps, thought="slates, not tin")
    assert agent.lessons() == ["text for an object", "missing field", *["illegal step"] * 2]
    assert begun["status"] == "APPLY"

    with Server(tmp_path, COLIBRI, handshake=False) as server:
        other = Agent(server)
        taken = other.wants("task_update", task_id="T-0001", status="GATHER")
        assert other.lessons() == ["held by another", "no session", "missing field"]
        assert (taken["task_id"], taken["status"]) == ("T-0002", "GATHER")
        other.wants("task_update", task_id="T-0002", status="CANCELLED")
        assert other.lessons() == ["no evidence", *["missing field"] * 2]

    with Server(tmp_path, COLIBRI, handshake=False) as server:
        later = Agent(server)
        later.known["session_id"] = session
        resumed = later.wants("audit_session_start", resume=True)
        assert later.lessons() == ["missing field"]
        assert (resumed["session_id"], resumed["resumed"]) == (session, True)
        assert f"tasks that your session holds:\n- {roof['task_id']} APPLY" in resumed["brief"]
        done = later.wants("task_update", task_id="T-0001", status=["VERIFY", "DONE"])
        assert (done["status"], later.lessons()) == ("DONE", [])
        agent.wants("thought_record", type="plan", content="late", session_id=session)
        assert agent.lessons() == ["gone on elsewhere", "missing field"]
        assert later.wants("audit_verify_chain")["valid"] is True


def test_a_claim_that_was_lost_is_found_again_from_the_messages(tmp_path: Path) -> None:
    short = {"COLIBRI_CLAIM_MINUTES": "0.03"}
    with (
        Server(tmp_path, COLIBRI, handshake=False, **short) as one,
        Server(tmp_path, COLIBRI, handshake=False, **short) as two,
    ):
        sleeper, other = Agent(one), Agent(two)
        sleeper.wants("task_create", title="roof")
        sleeper.wants("audit_session_start", intent="sleep", session_id="sleeper")
        sleeper.wants("task_next_actions", claim=True, session_id="sleeper")
        time.sleep(2)
        other.wants("audit_session_start", intent="work", session_id="other")
        (taken,) = other.wants("task_next_actions", claim=True, session_id="other")["tasks"]
        assert taken["holder"] == "other"
        other.wants("task_update", task_id="T-0001", claim=False, session_id="other")
        again = sleeper.wants(
            "task_update", task_id="T-0001", status="GATHER", session_id="sleeper"
        )
        assert sleeper.lessons() == ["lost"]
        assert (again["status"], again["holder"]) == ("GATHER", "sleeper")


def test_every_reading_is_put_to_use() -> None:
    """A reading that no mistake needs would prove nothing."""
    source = Path(__file__).read_text(encoding="utf-8").partition("@pytest.fixture")[2]
    assert [lesson for lesson in READINGS if f'"{lesson}"' not in source] == []


def test_a_message_that_does_not_help_would_be_noticed(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control."""
    with pytest.raises(AssertionError, match="nothing in this says what to do"):
        agent._correct("task_get", {}, "something went wrong")
    nothing_done: Reading = lambda agent, tool, arguments, found: tool  # noqa: E731
    monkeypatch.setitem(READINGS, "no such task", ("there is no task", nothing_done))
    with pytest.raises(AssertionError, match="what it says does not help"):
        agent.wants("task_get", task_id="T-0001")


def test_the_handshake_tells_the_order_of_the_work(agent: Agent) -> None:
    """An agent that follows the instructions makes no mistake at all."""
    named = [word for word in re.findall(r"[a-z_]+", agent.instructions) if word in agent.tools]
    assert named[:7] == [
        "audit_session_start",
        "task_create",
        "task_next_actions",
        "task_update",
        "thought_record",
        "task_update",
        "merkle_finalize",
    ]
    begin, end = map(json.loads, re.findall(r"status (\[.*?\])", agent.instructions))
    session = agent.wants("audit_session_start", intent="mend", agent_id="me")["session_id"]
    agent.wants("task_create", title="mend the roof")
    (task,) = agent.wants("task_next_actions", claim=True)["tasks"]
    about = {"task_id": task["task_id"]}
    agent.wants("task_update", **about, status=begin, thought={"type": "plan", "content": "so"})
    agent.wants("thought_record", **about, type="analysis", content="a slate is broken")
    reason = {"type": "reflection", "content": "it is dry"}
    assert agent.wants("task_update", **about, status=end, thought=reason)["status"] == "DONE"
    assert agent.wants("merkle_finalize", session_id=session)["record_count"] == 3
    assert agent.lessons() == []
