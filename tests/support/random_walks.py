"""Random walks through all fourteen tools, on the real server and the model in parallel.

A step is a kind, a client and a number; these and the state of the walk determine the call, so a
walk can be repeated and shortened as a list. After each step the answer must match the model's.
Two clients share the project; either may be restarted or killed between two steps.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from colibri.core.ledger import Head
from colibri.store.verify import verify
from colibri.tools.catalogue import CATALOGUE
from tests.support.client import COLIBRI, JSON, Server
from tests.support.ledger_reader import reading
from tests.support.model import MADE_SESSION, Model
from tests.support.task_client import issues, refusal
from tests.support.task_model import No
from tests.support.walk_steps import KINDS, Choices, Dice

STEPS = 50  # in a run
MOST_BRIEF = 4800
BREAKS = 0.2  # of the runs have a restart or a kill in them
SECOND = 0.25  # of the steps are the second client's
FAIL_AS_A = {"thought_record", "thought_record_list", "audit_verify_chain", "skill_list"}
PROBES = {"server_ping", "server_health"}
READS = {tool.name for tool in CATALOGUE if tool.lane == "read"}
SKILLS: tuple[JSON, ...] = (
    {"name": "colibri-house", "description": "How this house works.", "capabilities": ["read"]},
    {"name": "baking", "description": "Bread, and why it rises.", "capabilities": ["write"]},
    {"name": "alarm", "description": "What to do when it rings.", "capabilities": []},
)


class Step(NamedTuple):
    kind: str
    who: int = 0
    number: int = 0


def random_run(chance: Random) -> Iterator[Step]:
    """The steps of a run."""
    kinds = [kind for kind, (_, often) in KINDS.items() for _ in range(often)]
    break_at = chance.randrange(STEPS) if chance.random() < BREAKS else None
    yield Step("begin")
    for number in range(STEPS):
        kind = chance.choice(("restart", "kill") if number == break_at else kinds)
        yield Step(kind, int(chance.random() < SECOND), chance.getrandbits(64))


class Walk:
    """A project, its clients, and the model of its contents."""

    def __init__(self, project: Path, program: Sequence[str] = COLIBRI) -> None:
        self.project = project
        self.model = Model()
        self.choices = Choices(self.model)
        self.seen: Counter[str] = Counter()
        self.trace: list[str] = []  # for people
        self._program = program
        self._clients: dict[int, Server] = {}
        self._started: Counter[int] = Counter()
        self._owners: list[tuple[str, str | None, str | None]] = []
        self._last: JSON = {}  # the newest receipt
        self._write_skills()

    def __enter__(self) -> "Walk":
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients.values():
            with suppress(OSError):
                client.__exit__(None, None, None)

    def take(self, step: Step) -> None:
        """Raises AssertionError if the server differs from the model."""
        acts = {"begin": self._begin, "restart": self.restart, "kill": self._kill}
        if step.kind in acts:
            acts[step.kind](step.who)
            self.seen[step.kind] += 1
        else:
            tool, arguments = self.choices.call(step.kind, Dice(step.number))
            self.compare(step.who, tool, arguments, fits=step.kind != "invalid")

    def finish(self) -> int:
        """Stop both clients and verify the log with the last receipt; returns its record count."""
        for who in list(self._clients):
            self.restart(who)
        if not self._last:
            return 0  # no call is certain to be recorded
        with reading(self.project / "data" / "colibri.db") as db:
            seen = Head(self._last["seq"], bytes.fromhex(self._last["head"]))
            report = verify(db, head=seen, pause=lambda: None)
            rows = db.execute(
                "SELECT session, agent, body FROM ledger WHERE kind = 'call.enter' ORDER BY seq"
            )
            entered = [(json.loads(body)["tool"], *owner) for *owner, body in rows]
        assert [one for one in entered if one[0] not in PROBES] == self._owners
        assert report.valid, report.breaks[:3]
        assert report.open_calls == ()
        self.model.ledger.check_late(report.record_count - self.model.ledger.seq)
        return report.record_count

    def _begin(self, _: int) -> None:
        self.choices = Choices(self.model)

    def restart(self, who: int) -> None:
        """Stop the client; it starts again with its next step."""
        self.trace.append(f"client {who}: restart")
        code = self._client(who).close()
        assert code == 0, f"a server whose input ended has exit code {code}"
        self._clients.pop(who).__exit__(None, None, None)

    def _kill(self, who: int) -> None:
        self.trace.append(f"client {who}: kill -9")
        self._client(who).process.kill()
        self._clients.pop(who).__exit__(None, None, None)

    # Calling and comparing.

    def compare(self, who: int, tool: str, arguments: JSON, *, fits: bool = True) -> None:
        """Make a call and compare its answer with the model's, or check that stage 2 refuses it."""
        if tool == "skill_list" and not self.model.packaged:
            self.model.packaged = self._call(who, tool, {})["structuredContent"]["data"]["packaged"]
            self.model.ledger.extend_unseen(2, None)
        result = self._call(who, tool, arguments, fits=fits)
        self.model.records = 0
        if fits:
            self._compare_answer(tool, arguments, result)
        else:
            issues(result)
            self.seen["INVALID_PARAMS"] += 1
        self._extend(tool, arguments if fits else {}, result, fits=fits)
        if self.model.unseen is not None:
            self._learn_thought(who, self.model.unseen)

    def _learn_thought(self, who: int, expected: JSON) -> None:
        """Read a thought that was passed with a move: only the trail has its id and hash."""
        seq, self.model.unseen = self._last["seq"] - self.model.records, None
        newest = {"session_id": expected["session_id"], "order": "newest", "limit": 1}
        (answer,) = self._call(who, "thought_record_list", newest)["structuredContent"]["data"][
            "records"
        ]
        assert expected.items() <= answer.items(), f"{answer} instead of {expected}"
        self.model.adopt_thought(answer, seq)
        self.model.ledger.extend_unseen(2, None)
        self.seen["with a thought"] += 1

    def _compare_answer(self, tool: str, arguments: JSON, result: JSON) -> None:
        content = result["structuredContent"]
        try:
            expected = self._expected(tool, arguments, content)
        except No as no:
            _compare_refusal(tool, result, no)
            if no.code == "ERR_CYCLE":
                self._check_cycle(refusal(result)["cycle"], arguments)
            self.seen[no.code] += 1
            return
        assert result["isError"] is False, f"{content} instead of {expected}"
        answer = content["data"]
        self._adopt(tool, answer)
        if tool in ("task_create", "task_update"):
            expected = {**expected, **self.model.tasks[answer["task_id"]].whole()}
        elif tool == "task_next_actions" and arguments.get("claim"):
            for task in expected["tasks"]:
                task["updated_at"] = self.model.tasks[task["task_id"]].updated_at
        elif tool == "merkle_finalize":
            expected = self.model.sessions[answer["session_id"]].seal()
        if arguments.get("search") and arguments.get("order") == "best":
            answer = _in_order_of(answer, expected)
        shown = _shortened(tool, answer, expected)
        assert shown == expected, f"{shown} instead of {expected}"
        self.seen[tool] += 1
        self._note_ways(arguments, expected)

    def _note_ways(self, arguments: JSON, answer: JSON) -> None:
        ways = {
            "repeated": answer.get("repeated"),
            "resumed": answer.get("resumed"),
            "several sessions": answer.get("note"),
            "claimed": arguments.get("claim") and self.model.records,
            "released": arguments.get("claim") is False and self.model.records,
            "several steps": isinstance(arguments.get("status"), list),
        }
        self.seen.update(name for name, happened in ways.items() if happened)

    def _expected(self, tool: str, arguments: JSON, content: JSON) -> JSON:
        model = self.model
        methods: dict[str, Callable[..., JSON]] = {
            "task_create": model.create,
            "task_update": model.update,
            "task_get": model.get,
            "task_list": model.find,
            "task_next_actions": model.next_actions,
            "audit_session_start": model.start,
            "thought_record": model.think_in,
            "thought_record_list": model.recall,
            "merkle_finalize": model.seal,
            "merkle_root": model.root,
            "skill_list": model.find_skills,
            "server_ping": model.ping,
            "server_health": lambda **_: model.health(),
        }
        if tool == "audit_verify_chain":
            return self._verdict(content.get("data"), arguments)
        return methods[tool](**arguments)

    def _verdict(self, answer: JSON | None, arguments: JSON) -> JSON:
        """The record before the call's enter is known, except for late records of probes."""
        known, late = self.model.ledger.seq, self.model.ledger.late
        places = range(known + 2 * late, known - 1, -2)
        verdicts = [self.model.verify(at, **arguments) for at in places]
        if answer is None:
            return verdicts[0]
        self.model.ledger.check_head(answer["head"])
        return next((one for one in verdicts if one.items() <= answer.items()), verdicts[0])

    def _adopt(self, tool: str, answer: JSON) -> None:
        """Copy values from the answer that only the server can know."""
        if tool in ("task_create", "task_update"):
            self.model.adopt(answer)
        if tool == "task_next_actions":
            for task in answer["tasks"]:
                self.model.adopt(task)
        if tool == "task_create" and not answer["repeated"]:
            self.choices.ids.append(answer["task_id"])
        elif tool == "audit_session_start":
            self.model.adopt_session(answer, self._last)
            if not answer["resumed"]:
                self.choices.sessions.append(answer["session_id"])
        elif tool == "thought_record" and not answer["repeated"]:
            self.model.adopt_thought(answer, self._last["seq"] - 1)
        elif tool == "merkle_finalize":
            self.model.adopt_seal(answer, self._last)

    def _check_cycle(self, cycle: list[str], arguments: JSON) -> None:
        first, *way, last = cycle
        assert first == last == arguments["task_id"]
        before = [arguments["depends_on"], *(self.model.tasks[id].depends_on for id in way)]
        assert all(id in ids for id, ids in zip([*way, last], before, strict=True))

    def _extend(self, tool: str, arguments: JSON, result: JSON, *, fits: bool) -> None:
        """Count the new records of the ledger, and note which task they name."""
        log, records = self.model.ledger, self.model.records
        if tool in PROBES:
            log.late += 1
            return
        looks = tool == "task_next_actions" and not arguments.get("claim") and fits
        if tool in READS or looks:  # neither is synced
            log.extend_unseen(2, self._last or None)
        else:
            log.extend(2 + records, self._last)
        log.name(arguments.get("task_id"), 2 + records)
        if tool == "task_create" and records:
            log.name(self.choices.ids[-1], 1 + records)  # the enter record cannot name the new task
        elif tool == "task_next_actions" and records:
            log.name(result["structuredContent"]["data"]["tasks"][0]["task_id"], 1 + records)

    def _call(self, who: int, tool: str, arguments: JSON, *, fits: bool = True) -> JSON:
        client = self._client(who)
        self.model.server = f"{who}.{self._started[who]}"
        if tool not in PROBES:  # these are recorded at an unknown time
            self._owners.append((tool, *self.model.owner(tool, arguments if fits else {})))
        self.trace.append(f"client {who}: {tool} {json.dumps(arguments, ensure_ascii=False)}")
        result = client.call(tool, **arguments)
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        receipt = result.get("_meta", {}).get("colibri/receipt")
        reads = tool in READS or tool == "task_next_actions"
        assert reads or (receipt is None) == (tool in PROBES), result
        if receipt is not None:
            assert receipt["log"] == self._last.get("log", receipt["log"])
            self._last = receipt
        return result

    def _client(self, who: int) -> Server:
        if who not in self._clients:
            self._started[who] += 1
            # No heads are kept: when they are is a question of time, which the model does not know.
            nowhere = {"HOME": "", "XDG_STATE_HOME": ""}
            self._clients[who] = Server(self.project, self._program, handshake=True, **nowhere)
        return self._clients[who]

    def _write_skills(self) -> None:
        root = self.project / ".agents" / "skills"
        for skill in SKILLS:
            head = "".join(f"{name}: {json.dumps(value)}\n" for name, value in skill.items())
            (root / skill["name"]).mkdir(parents=True)
            (root / skill["name"] / "SKILL.md").write_text(f"---\n{head}---\n")
        (root / "broken").mkdir()
        (root / "broken" / "SKILL.md").write_text("no skill")
        self.model.skills = list(SKILLS)


def _compare_refusal(tool: str, result: JSON, no: No) -> None:
    assert result["isError"], f"{result['structuredContent']} instead of {no.code}"
    if tool in FAIL_AS_A:
        error = result["structuredContent"].get("error", {})
        said = error.get("message", "").partition(":")[0]
        assert error.get("code") == "HANDLER_ERROR", f"{error} instead of {no.code}"
        facts = error.get("details", {})
    else:
        facts = refusal(result)
        said = facts["code"]
    assert said == no.code, f"{said} instead of {no.code}"
    assert {name: facts[name] for name in no.facts} == no.facts, (facts, no.facts)


# Answers, reduced to what the model predicts.


def _shortened(tool: str, answer: JSON, expected: JSON) -> JSON:
    if tool in ("task_get", "task_next_actions"):
        return _with_named_needs(answer, expected)
    if tool == "skill_list":
        names = {part: [one["name"] for one in answer[part]] for part in ("skills", "packaged")}
        return {**names, "skipped": len(answer["skipped"])}
    if tool == "server_ping":
        return {"mode": answer["mode"]}
    if tool == "server_health":
        return {
            "status": answer["status"],
            "mode": answer["mode"],
            "state": answer["condition"]["state"],
            "tools": answer["tools"]["count"],
            "dropped": sum(answer["dropped"].values()),
        }
    if tool == "audit_session_start":
        assert len(answer["brief"] or "") <= MOST_BRIEF
        answer = {**answer, "brief": bool(answer["brief"]), "note": bool(answer["note"])}
        if expected["session_id"] is None:
            assert MADE_SESSION.fullmatch(answer["session_id"])
            answer["session_id"] = None
    if tool in ("audit_session_start", "thought_record", "audit_verify_chain"):
        return {name: answer[name] for name in expected}
    return answer


def _in_order_of(answer: JSON, expected: JSON) -> JSON:
    """The model does not predict the ranking: put the thoughts into the server's order."""
    places = {thought["seq"]: place for place, thought in enumerate(expected["records"])}
    found = sorted(answer["records"], key=lambda thought: places.get(thought["seq"], -1))
    return {**answer, "records": found}


def _with_named_needs(answer: JSON, expected: JSON) -> JSON:
    """Each sentence of `needs` reduced to the names that the model requires in it."""
    if "tasks" in expected and len(answer["tasks"]) == len(expected["tasks"]):
        pairs = zip(answer["tasks"], expected["tasks"], strict=True)
        return {**answer, "tasks": [_with_named_needs(task, wanted) for task, wanted in pairs]}
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
