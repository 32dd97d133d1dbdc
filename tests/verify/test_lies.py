"""The real server's own bundle with one lie in it: both verifiers find it, and name it."""

import json
import subprocess
import sys
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.support.client import COLIBRI, PATIENCE, Server, environment
from tests.support.lies import (
    ASIDE,
    JSON,
    LIES,
    SESSION,
    Entry,
    Exports,
    Forgery,
    Told,
    flipped,
    header_at,
    leaf_of,
    leave_out,
    lie,
    of_session,
    place_of,
    tell_each,
)
from tests.vectors.builder import ZEROS, b64, bundle_from, canonical, seals, text_of
from tests.verify.conftest import SCRIPT, Node

DEPENDENCY, TASK = "T-0001", "T-0002"
FAR_REACHING = {
    "the bundle is said to be of another session",
    "the dependency is still open",  # every later move is blocked
    "an older call has lost its beginning",
    "the opening of its session is left out of a task",  # it has two thoughts there
}
UNCLEAR = {"unknown-version", "malformed-bundle", "empty-bundle", "head-not-covered"}


# Lies that leave everything else as it was


@lie("wrong-head")
def the_last_header_is_changed(of: Exports) -> Told:
    last = header_at(of.session, -1)
    of.session["headers"][-1] = b64(canonical({**last, "agent": "eve"}))
    return Told(of.session, last["seq"])


@lie("wrong-order")
def two_headers_are_swapped(of: Exports) -> Told:
    headers, (place, seq) = of.session["headers"], of_session(of.session, "thought")
    headers[place], headers[place + 1] = headers[place + 1], headers[place]
    return Told(of.session, seq)


@lie("missing-record")
def a_thought_is_left_out(of: Exports) -> Told:
    place, seq = of_session(of.session, "thought", 1)
    del of.session["headers"][place], of.session["payloads"][str(seq)]
    return Told(of.session, seq)


@lie("missing-payload")
def a_payload_is_left_out(of: Exports) -> Told:
    _, seq = of_session(of.session, "thought", 1)
    del of.session["payloads"][str(seq)]
    return Told(of.session, seq)


@lie("stray-payload")
def a_payload_of_another_session_is_added(of: Exports) -> Told:
    seq = header_at(of.session, place_of(of.session, "thought", session=ASIDE))["seq"]
    of.session["payloads"][str(seq)] = of.log["payloads"][str(seq)]
    return Told(of.session, seq)


@lie("stray-record")
def a_record_before_the_session_is_added(of: Exports) -> Told:
    seqs = [header_at(of.session, place)["seq"] for place in range(10)]
    gap = next(seq for seq in range(1, 11) if seq not in seqs)
    of.session["headers"].insert(gap - 1, of.log["headers"][gap - 1])
    return Told(of.session, gap)


@lie("foreign-record")
def a_record_of_another_log_is_put_in(of: Exports) -> Told:
    place, seq = of_session(of.session, "thought", 1)
    of.session["headers"][place] = of.other["headers"][place]
    return Told(of.session, seq)


@lie("missing-payload", "stray-payload", "stray-record")
def the_bundle_is_said_to_be_of_another_session(of: Exports) -> Told:
    of.session["scope"] = {"session": ASIDE}
    return Told(of.session, 1)


@lie("missing-proof")
def a_proof_is_left_out(of: Exports) -> Told:
    gone = of.thoughts["proofs"].pop()
    return Told(of.thoughts, gone["seq"])


# Lies about the bundle of a task


@lie("missing-evidence")
def the_evidence_is_left_out_of_a_task(of: Exports) -> Told:
    done = Forgery(of.task).move(TASK, "DONE").header["seq"]
    leave_out(of.task, place_of(of.task, "thought", -1))
    return Told(of.task, done)


@lie("missing-record")
def a_move_is_left_out_of_a_task(of: Exports) -> Told:
    moved, after = (Forgery(of.task).move(TASK, status).header for status in ("PLAN", "APPLY"))
    leave_out(of.task, place_of(of.task, "task", seq=moved["seq"]))
    return Told(of.task, after["seq"])


@lie("unknown-task")
def the_dependency_is_left_out_of_a_task(of: Exports) -> Told:
    places = [place_of(of.task, "task", number, task=DEPENDENCY) for number in (0, 1)]
    created = header_at(of.task, place_of(of.task, "task", task=TASK))["seq"]
    leave_out(of.task, *places)
    return Told(of.task, created)


@lie("missing-record")
def the_opening_of_its_session_is_left_out_of_a_task(of: Exports) -> Told:
    thought = header_at(of.task, place_of(of.task, "thought"))["seq"]
    leave_out(of.task, place_of(of.task, "session.open"))
    return Told(of.task, thought)


@lie("missing-proof")
def a_proof_is_left_out_of_a_task(of: Exports) -> Told:
    gone = of.task["proofs"].pop(0)
    return Told(of.task, gone["seq"])


@lie("missing-payload")
def a_payload_is_left_out_of_a_task(of: Exports) -> Told:
    seq = header_at(of.task, place_of(of.task, "task.text"))["seq"]
    del of.task["payloads"][str(seq)]
    return Told(of.task, seq)


@lie("stray-record")
def a_record_of_another_session_is_added_to_a_task(of: Exports) -> Told:
    seqs = [header_at(of.task, place)["seq"] for place in range(len(of.task["headers"]))]
    gap = next(seq for seq in range(1, seqs[-1]) if seq not in seqs)
    of.task["headers"].insert(gap - 1, of.log["headers"][gap - 1])
    return Told(of.task, gap)


# What only a reader with a root or head from elsewhere can see


def cut(bundle: JSON, records: int) -> Told:
    """Without its last records; the reader knows the head that it had."""
    head, headers = bundle["head"], bundle["headers"][:-records]
    last = leaf_of(b64decode(headers[-1]))
    bundle["headers"], seq = headers, json.loads(b64decode(headers[-1]))["seq"]
    bundle["payloads"] = {key: it for key, it in bundle["payloads"].items() if int(key) <= seq}
    bundle["head"] = {"seq": seq, "leaf": last}
    return Told(bundle, seq + 1, None, head)


@lie("truncated")
def the_end_of_the_log_is_cut_off(of: Exports) -> Told:
    return cut(of.log, 3)


@lie("truncated")
def the_seal_is_cut_off(of: Exports) -> Told:
    return cut(of.session, 3)


@lie("root-differs")
def another_root_was_published(of: Exports) -> Told:
    return Told(of.session, seals(of.session)[0], root=f"1:{ZEROS}")


@lie("head-differs")
def another_head_was_seen(of: Exports) -> Told:
    head = of.session["head"]
    return Told(of.session, head["seq"], head={**head, "leaf": flipped(head["leaf"])})


@lie("head-not-covered")
def a_head_was_seen_that_a_sealed_session_does_not_reach(of: Exports) -> Told:
    return Told(of.session, of.log["head"]["seq"], head=of.log["head"])


@lie("head-differs")
def the_log_is_written_anew_without_a_flaw(of: Exports) -> Told:
    head = of.log["head"]
    return Told(rewritten(of.log).made(), head["seq"], head=head)


# Lies whose teller wrote the chain anew from there on


def rewritten(bundle: JSON) -> Forgery:
    """Nothing is wrong with it, but every link, thought and root is another."""
    forgery = Forgery(bundle)
    for entry in forgery.entries:
        entry.names = {"at": "2020-02-02T02:02:02.000000Z"}
    return forgery


def record(kind: str, number: int = 0, **members: Any) -> Callable[[Forgery], Entry]:
    return lambda forgery: forgery.find(kind, number, **members)


def move(task: str, status: str, number: int = 0) -> Callable[[Forgery], Entry]:
    return lambda forgery: forgery.move(task, status, number)


def claim(bundle: JSON, how: tuple[Callable[[Forgery], Entry], JSON]) -> int:
    """A record whose payload says something else; all else follows from it."""
    find, claims = how
    forgery = Forgery(bundle)
    entry = find(forgery)
    entry.claims = claims
    bundle |= forgery.made()
    return int(entry.header["seq"])


THOUGHT, SEAL = record("thought", 2, session=SESSION), record("session.seal", session=SESSION)
EXIT = record("call.exit", 3, session=SESSION)
CREATED = {"assignee": [None, None], "depends_on": [None, []], "priority": [None, "low"]}
CREATED |= {"project": [None, None], "status": [None, "GATHER"]}
CLAIMS: JSON = {
    "a thought's index": ((THOUGHT, {"index": 1}), "wrong-index"),
    "a thought's predecessor": ((THOUGHT, {"prev": ZEROS}), "broken-thought-chain"),
    "a thought's id": ((THOUGHT, {"thought_id": "R-1"}), "bad-payload"),
    "a thought's type": ((THOUGHT, {"type": "hunch"}), "bad-payload"),
    "an unknown member": ((THOUGHT, {"note": "true"}), "bad-payload"),
    "the seal's count": ((SEAL, {"count": 2}), "wrong-count"),
    "the seal's root": ((SEAL, {"root": ZEROS}), "wrong-root"),
    "the seal's first": ((SEAL, {"first_seq": 1}), "wrong-range"),
    "the seal's last": ((SEAL, {"last_seq": 1}), "wrong-range"),
    "an exit's enter": ((EXIT, {"enter": 1}), "bad-pair"),
    "an exit's tool": ((EXIT, {"tool": "task_list"}), "bad-pair"),
    "a version": ((move(TASK, "ANALYZE"), {"version": 9}), "wrong-version"),
    "an attempt": ((move(TASK, "GATHER", 1), {"attempt": 1}), "wrong-attempt"),
    "an old status": (
        (move(TASK, "PLAN"), {"set": {"status": ["GATHER", "PLAN"]}}),
        "wrong-change",
    ),
    "a state too far": (
        (move(TASK, "DONE"), {"set": {"status": ["VERIFY", "APPLY"]}}),
        "illegal-move",
    ),
    "a state from nowhere": (
        (move(DEPENDENCY, "CANCELLED"), {"set": {"status": ["INIT", "DONE"]}}),
        "illegal-move",
    ),
    "a first state": ((move(DEPENDENCY, "INIT"), {"set": CREATED}), "illegal-move"),
    "a first version": ((move(DEPENDENCY, "INIT"), {"attempt": 2}), "bad-creation"),
    "a session that names another": (
        (record("session.open", session=SESSION), {"session_id": ASIDE}),
        "bad-payload",
    ),
}
tell_each("session", "it says", CLAIMS, claim)
tell_each("log", "the log says", CLAIMS, claim)


def forged(*codes: str, bundle: str = "session") -> Callable[[Callable[[Forgery], Entry]], None]:
    """A lie told among the records, then hashed; it names the record where it shows."""

    def known(tell: Callable[[Forgery], Entry]) -> None:
        def told(of: Exports) -> Told:
            forgery = Forgery(getattr(of, bundle))
            at = tell(forgery)
            return Told(forgery.made(), at.header["seq"])

        told.__name__ = tell.__name__
        lie(*codes)(told)

    return known


@forged("broken-link")
def a_record_follows_another_than_the_one_before_it(f: Forgery) -> Entry:
    entry = THOUGHT(f)
    entry.names = {"prev": f.find("thought", session=SESSION).header["prev"]}
    return entry


@forged("bad-proof", bundle="thoughts")
def a_proven_thought_says_something_else(f: Forgery) -> Entry:
    entry = f.find("thought")
    entry.claims = {"content": "I never said so"}
    return entry


@forged("missing-evidence")
def the_reflection_never_was(f: Forgery) -> Entry:
    f.drop(*f.call(f.find("thought", -1, session=SESSION)))
    return f.move(TASK, "DONE")


@forged("missing-evidence")
def the_reflection_was_about_no_task(f: Forgery) -> Entry:
    for entry in f.call(f.find("thought", -1, session=SESSION)):
        entry.names = {"task": None}
    return f.move(TASK, "DONE")


@forged("illegal-move")
def a_state_is_left_out(f: Forgery) -> Entry:
    f.drop(*f.call(f.move(TASK, "ANALYZE")))
    return f.move(TASK, "PLAN")


@forged("blocked-move")
def the_dependency_is_still_open(f: Forgery) -> Entry:
    f.drop(*f.call(f.move(DEPENDENCY, "CANCELLED")))
    return f.move(TASK, "APPLY")


@forged("dependency-cycle")
def the_dependency_needs_the_task(f: Forgery) -> Entry:
    cancelled = f.move(DEPENDENCY, "CANCELLED")
    copy = f.repeat(cancelled, before=f.call(cancelled)[0])
    copy.claims = {"set": {"depends_on": [[], [TASK]]}}
    return copy


@forged("unknown-task", bundle="log")
def the_dependency_never_was(f: Forgery) -> Entry:
    f.drop(*f.call(f.move(DEPENDENCY, "CANCELLED")), *f.call(f.move(DEPENDENCY, "INIT")))
    return f.move(TASK, "INIT")


@forged("change-after-end")
def a_task_is_changed_after_its_end(f: Forgery) -> Entry:
    copy = f.repeat(f.move(TASK, "DONE"), before=f.call(SEAL(f))[0])
    copy.claims = {"set": {"priority": ["medium", "high"]}}
    return copy


@forged("thought-after-seal")
def a_thought_comes_after_the_seal(f: Forgery) -> Entry:
    return f.repeat(THOUGHT(f))


@forged("second-seal", bundle="log")
def the_session_is_sealed_twice(f: Forgery) -> Entry:
    return f.repeat(SEAL(f))


@forged("second-open", bundle="log")
def the_session_is_opened_twice(f: Forgery) -> Entry:
    return f.repeat(f.find("session.open", session=SESSION), before=f.call(THOUGHT(f))[0])


@forged("outside-session", bundle="log")
def a_thought_comes_before_the_session(f: Forgery) -> Entry:
    return f.repeat(THOUGHT(f), before=f.call(f.find("session.open", session=SESSION))[0])


@forged("missing-change")
def an_exit_comes_without_its_thought(f: Forgery) -> Entry:
    thought, leave = f.call(THOUGHT(f))[1:]
    f.drop(thought)
    return leave


@forged("wrong-digest")
def a_thought_is_another_than_its_call_was_given(f: Forgery) -> Entry:
    THOUGHT(f).claims = {"content": "I never said so"}
    return f.call(THOUGHT(f))[0]


@forged("wrong-digest")
def a_task_has_another_title_than_its_call_was_given(f: Forgery) -> Entry:
    text = f.find("task.text", task=TASK)
    assert text.body is not None
    text.claims = {"set": {**text.body["set"], "title": [None, "raze the roof"]}}
    return f.call(text)[0]


@forged("stray-change")
def a_thought_comes_without_its_exit(f: Forgery) -> Entry:
    thought, leave = f.call(THOUGHT(f))[1:]
    f.drop(leave)
    return thought


@forged("stray-change")
def a_refused_call_has_changed_something(f: Forgery) -> Entry:
    thought, leave = f.call(THOUGHT(f))[1:]
    leave.claims = {"outcome": "refused", "code": "ERR_NOT_FOUND"}
    return thought


@forged("bad-pair")
def a_thought_is_of_another_agent_than_its_call(f: Forgery) -> Entry:
    THOUGHT(f).names = {"agent": "eve"}
    return THOUGHT(f)


@forged("missing-record")
def an_older_call_has_lost_its_beginning(f: Forgery) -> Entry:
    enter, created = f.call(f.move(TASK, "INIT"))[:2]
    created.step += enter.step
    f.drop(enter)
    return created


def said_to_be_erased(f: Forgery, erased: Entry) -> Entry:
    """The erasure, at the end; it keeps what it erases."""
    body = {"seqs": [erased.header["seq"]], "reason": None}
    f.entries.append(Entry({**f.entries[-1].header, "kind": "erasure"}, 1, body=body))
    return f.entries[-1]


@forged("bad-erasure", bundle="log")
def the_seal_is_said_to_be_erased(f: Forgery) -> Entry:
    return said_to_be_erased(f, SEAL(f))


@forged("erased-payload", bundle="log")
def a_thought_that_is_there_is_said_to_be_erased(f: Forgery) -> Entry:
    said_to_be_erased(f, THOUGHT(f))
    return THOUGHT(f)


# The story, the exports and the verdicts


def moved(server: Server, *states: str) -> None:
    """The task from state to state, each with a thought that is about no task."""
    thinking = {"session_id": SESSION, "type": "plan"}
    for status in states:
        assert server.data("task_update", task_id=TASK, status=status)["status"] == status
        server.data("thought_record", **thinking, content=f"now {status}")


def refusal(server: Server, tool: str, **arguments: Any) -> str:
    result = server.call(tool, **arguments)
    assert result["isError"]
    return json.dumps(result["structuredContent"])


def play(project: Path) -> tuple[JSON, list[str]]:
    """The story; the seal with its receipt, and two thoughts."""
    thinking, done = {"session_id": SESSION}, {"task_id": TASK, "status": "DONE"}
    aside = {"session_id": ASIDE}
    with Server(project, COLIBRI) as server:
        server.data("task_create", title="order slates")
        server.data("task_create", title="mend the roof", depends_on=[DEPENDENCY])
        server.data("task_list")
        server.data("audit_session_start", **thinking, intent="mend the roof", task_id=TASK)
        server.data("audit_session_start", **aside, intent="something else")
        moved(server, "GATHER", "ANALYZE", "PLAN")
        blocked = refusal(server, "task_update", task_id=TASK, status="APPLY")
        assert DEPENDENCY in blocked
        server.data("task_update", task_id=DEPENDENCY, status="CANCELLED")
        moved(server, "APPLY", "VERIFY")
        server.data("thought_record", **aside, type="plan", content="of no concern")
        assert "ERR_WRITEBACK_REQUIRED" in refusal(server, "task_update", **done)
        about = {**thinking, "task_id": TASK, "agent_id": "ada"}
        first = server.data("thought_record", **about, type="analysis", content="it still drips")
        moved(server, "GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY")
        assert "ERR_WRITEBACK_REQUIRED" in refusal(server, "task_update", **done)
        last = server.data("thought_record", **about, type="reflection", content="it holds")
        assert server.data("task_update", **done)["attempt"] == 2
        assert "ERR_INVALID_TRANSITION" in refusal(server, "task_update", **done)
        sealed = server.call("merkle_finalize", **thinking)
        server.data("merkle_finalize", **aside)
        assert server.close() == 0
    facts = {**sealed["structuredContent"]["data"], **sealed["_meta"]["colibri/receipt"]}
    return facts, [first["thought_id"], last["thought_id"]]


SCOPES = ("session", "log", "thoughts", "task")
Story = tuple[dict[str, Path], JSON]


def export(project: Path, thoughts: list[str]) -> None:
    wanted = {"session": ["--session", SESSION], "log": ["--all"], "thoughts": ["--thought"]}
    wanted["thoughts"] += thoughts
    wanted["task"] = ["--task", TASK]
    for scope, arguments in wanted.items():
        subprocess.run(
            [sys.executable, "-m", "colibri", "export", *arguments, "-o", scope],
            cwd=project,
            env=environment(),
            capture_output=True,
            timeout=PATIENCE,
            check=True,
        )


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """The exported files by scope, and what merkle_finalize answered."""
    here, there = tmp_path_factory.mktemp("here"), tmp_path_factory.mktemp("there")
    for project in (there, here):
        facts, thoughts = play(project)
        export(project, thoughts)
    files = {scope: here / scope for scope in SCOPES}
    return files | {"other": there / "session"}, facts


@pytest.fixture(scope="module")
def told(story: Story) -> dict[str, Told]:
    """Every lie, each in bundles of its own."""
    texts = {scope: path.read_bytes() for scope, path in story[0].items()}
    return {
        name: tell(Exports(**{scope: bundle_from(text) for scope, text in texts.items()}))
        for name, (tell, _) in LIES.items()
    }


def judged(python: ModuleType, told: Told) -> JSON:
    head = told.head and (told.head["seq"], told.head["leaf"])
    data = text_of(told.bundle)
    verdict: JSON = python.verify(data, root=told.root, head=head).as_json()
    return verdict


def item_of(told: Told) -> JSON:
    data = b64(text_of(told.bundle))
    return {"base64": data, "root": told.root, "head": told.head}


@pytest.fixture(scope="module")
def node_verdicts(node: Node, told: dict[str, Told]) -> dict[str, JSON]:
    answers = node("verify", [item_of(it) for it in told.values()])
    return dict(zip(told, answers, strict=True))


def check(verdict: JSON, name: str, at: int | None) -> None:
    """The lie's codes and no other, at its record and, but for a few lies, at no other."""
    found, codes = verdict["findings"], LIES[name][1]
    seen = {finding["code"] for finding in found}
    is_cut = verdict["finding_count"] > len(found)  # only the first 100 are listed
    assert seen == codes or (is_cut and seen < codes), found
    assert verdict["verdict"] == ("cannot tell" if codes <= UNCLEAR else "bad")
    seqs = {finding["seq"] for finding in found}
    assert at in seqs, found
    assert (len(seqs) > 1) == (name in FAR_REACHING), found


each_lie = pytest.mark.parametrize("name", LIES)


@each_lie
def test_the_python_verifier_names_the_lie_and_nothing_else(
    python: ModuleType, told: dict[str, Told], name: str
) -> None:
    check(judged(python, told[name]), name, told[name].at)


@each_lie
def test_the_javascript_verifier_gives_the_same_verdict(
    python: ModuleType, told: dict[str, Told], node_verdicts: dict[str, JSON], name: str
) -> None:
    mine, other = judged(python, told[name]), node_verdicts[name]
    check(other, name, told[name].at)
    for finding in mine["findings"] + other["findings"]:
        del finding["detail"]  # the words are each verifier's own
    assert mine == other


def test_what_only_an_outside_head_or_root_shows_is_not_claimed_without_it(
    python: ModuleType, told: dict[str, Told]
) -> None:
    """Formats §11: outside-head and outside-root are what is not checked then."""
    names = [name for name, it in told.items() if it.root or it.head]
    assert len(names) == 6
    for name in names:
        alone = judged(python, Told(told[name].bundle, None))
        assert alone["verdict"] == "good", name
        assert "outside-head" in {note["code"] for note in alone["not_checked"]}


@pytest.mark.parametrize("scope", SCOPES)
def test_what_the_product_exports_is_good_and_fits_what_its_answers_said(
    python: ModuleType, node: Node, story: Story, scope: str
) -> None:
    """With nothing known, and with the root and the head; the last also by the command."""
    files, facts = story
    bundle = bundle_from(files[scope].read_bytes())
    head = {"seq": facts["seq"], "leaf": facts["head"]} if scope == "session" else bundle["head"]
    known = Told(bundle, None, facts["root"], head)
    tellings = (Told(bundle, None), known)
    others = node("verify", [item_of(told) for told in tellings])
    for told, other in zip(tellings, others, strict=True):
        for verdict in (judged(python, told), other):
            assert (verdict["verdict"], verdict["findings"]) == ("good", [])
            notes = {note["code"] for note in verdict["not_checked"]}
            assert notes.isdisjoint({"outside-head", "outside-root"}) == (told is known)
    outside = ["--root", facts["root"], "--head", f"{head['seq']}:{head['leaf']}"]
    command = [sys.executable, str(SCRIPT), str(files[scope]), *outside]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("scope", ["session", "log"])
def test_a_chain_written_anew_without_a_lie_is_good(
    python: ModuleType, node: Node, story: Story, scope: str
) -> None:
    """The control: a forged lie is found for its own sake, not for how it was forged."""
    bundle = bundle_from(story[0][scope].read_bytes())
    assert Forgery(bundle).made() == bundle
    anew = rewritten(bundle).made()
    changed = [a != b for a, b in zip(anew["headers"], bundle["headers"], strict=True)]
    assert all(changed) and seals(anew) == seals(bundle)
    told = Told(anew, None)
    for verdict in (judged(python, told), *node("verify", [item_of(told)])):
        assert (verdict["verdict"], verdict["findings"]) == ("good", [])


def test_the_story_holds_all_that_the_lies_are_about(story: Story) -> None:
    """Gaps, headers without a payload, and a proof whose steps can be swapped."""
    session, thoughts = (bundle_from(story[0][scope].read_bytes()) for scope in SCOPES[:3:2])
    assert len(session["payloads"]) < len(session["headers"]) < session["head"]["seq"]
    assert [len(proof["path"]) for proof in thoughts["proofs"]] == [4, 3]


def test_every_code_that_a_bundle_can_show_is_shown(python: ModuleType) -> None:
    told = {code for _, codes in LIES.values() for code in codes}
    assert told | {"unreadable", "too-large"} == set(python.CODES)
    assert len(LIES) >= 100
