"""store/bundle.py: which records and payloads each kind of bundle holds; docs/formats.md §8."""

import json
from base64 import b64decode
from typing import Any

import pytest

from colibri.core import ledger as record
from colibri.core import merkle
from colibri.core.canonical import encode
from colibri.core.errors import Refused
from colibri.store import bundle, log_tree, trail
from colibri.store.bundle import Contents
from tests.support.ledger_writer import (
    LOG,
    TO_VERIFY,
    ZEROS,
    Call,
    Lab,
    in_memory,
    story,
)
from tests.vectors.builder import bundle_from, text_of

JSON = dict[str, Any]


@pytest.fixture
def lab() -> Lab:
    return story(in_memory())


def written(lab: Lab, contents: Contents) -> JSON:
    text = b"".join(bundle.write(lab.db, contents))
    made = bundle_from(text)
    assert text_of(made) == text
    assert (made["format"], made["log"]) == ("colibri-bundle/2", LOG)
    return made


def of_session(lab: Lab, id: str = "S-1") -> JSON:
    return written(lab, bundle.of_session(lab.db, id))


def headers(made: JSON) -> list[JSON]:
    return [json.loads(b64decode(text, validate=True)) for text in made["headers"]]


def seqs(made: JSON) -> list[int]:
    return [header["seq"] for header in headers(made)]


def disclosed(made: JSON) -> list[int]:
    """The seqs with a payload; each is the one that its header commits to."""
    by_seq = {header["seq"]: header for header in headers(made)}
    for seq, payload in made["payloads"].items():
        nonce, body = b64decode(payload["nonce"]), b64decode(payload["body"])
        assert record.commitment(nonce, body).hex() == by_seq[int(seq)]["payload"]
    return [int(seq) for seq in made["payloads"]]


def has_its_head(made: JSON) -> bool:
    last = b64decode(made["headers"][-1])
    head = {"seq": json.loads(last)["seq"], "leaf": record.leaf(last).hex()}
    return bool(made["head"] == head)


def kinds(lab: Lab, numbers: list[int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for seq in numbers:
        kind = str(lab.db.execute("SELECT kind FROM ledger WHERE seq = ?", (seq,)).get)
        found[kind] = found.get(kind, 0) + 1
    return found


def left(enter: int, tool: str) -> bytes:
    """The payload of an exit."""
    return record.exit_body(
        enter=enter, tool=tool, outcome="ok", code=None, result_sha256=ZEROS, duration_ms=1
    )


def test_a_log_bundle_has_every_record_and_every_payload(lab: Lab) -> None:
    """Formats §8, log bundle: every record from 1 to the head; there are no gaps."""
    made = written(lab, bundle.whole_log(lab.db))
    assert (made["scope"], made["proofs"]) == (None, [])
    assert seqs(made) == disclosed(made) == list(range(1, 55))
    assert has_its_head(made)


def test_an_empty_log_makes_no_bundle() -> None:
    """Formats §9, step 2: a bundle without headers would prove nothing."""
    with pytest.raises(Refused) as caught:
        bundle.whole_log(in_memory().db)
    assert caught.value.code == "ERR_NO_RECORDS"


def test_a_sealed_sessions_stretch_has_no_gap_and_ends_with_the_exit_of_its_seal(lab: Lab) -> None:
    """Formats §8, the stretch; its task's records from their creation are included."""
    made = of_session(lab)
    assert (made["scope"], made["proofs"]) == ({"session": "S-1"}, [])
    assert seqs(made) == list(range(1, 44))
    assert has_its_head(made)


def test_an_open_sessions_stretch_goes_to_the_head(lab: Lab) -> None:
    made = of_session(lab, "S-2")
    assert seqs(made) == list(range(44, 55))  # 44: the enter of the call that opened it
    assert has_its_head(made)
    lab.read()
    assert seqs(of_session(lab, "S-2"))[-1] == 56


def test_only_what_concerns_the_session_is_disclosed(lab: Lab) -> None:
    """Formats §8: of the stretch's other records the header alone is there."""
    first = lab.head().seq + 1
    lab.start("S-3")
    lab.think("S-2", "a secret of another session")
    lab.create("a secret task")
    lab.read("thought_record_list", session="S-3")
    lab.think("S-3")
    lab.seal("S-3")
    lab.read("merkle_root", session="S-3")
    made = of_session(lab, "S-3")
    own = [*range(first, first + 3), *range(first + 10, first + 18)]
    assert disclosed(made) == own
    assert seqs(made) == list(range(first, first + 18))
    assert b"secret" not in b"".join(b64decode(one["body"]) for one in made["payloads"].values())
    assert kinds(lab, own) == {
        "call.enter": 4,
        "session.open": 1,
        "thought": 1,
        "session.seal": 1,
        "call.exit": 4,
    }


def test_a_refused_call_about_a_task_is_disclosed_with_the_session_and_with_the_task(
    lab: Lab,
) -> None:
    """Otherwise nobody could see what an agent tried and was not allowed to do."""
    task = lab.create("mend it").task_id
    lab.start("S-9", task=task)
    with pytest.raises(Refused):
        lab.update(task, status="DONE")
    exit = lab.head().seq
    for contents in (bundle.of_session(lab.db, "S-9"), bundle.of_task(lab.db, task)):
        assert contents.payloads is not None
        assert {exit - 1, exit} <= contents.payloads


def test_the_tasks_of_a_session_come_with_all_that_they_ever_depended_on(lab: Lab) -> None:
    """Formats §8, the tasks: old or new depends_on, and theirs; each from its creation."""
    far = lab.create("far").task_id
    near = lab.create("near", far).task_id
    former = lab.create("former").task_id
    stranger = lab.create("stranger").task_id
    own = lab.create("own", former).task_id
    lab.update(own, depends_on=[near, far])
    lab.update(stranger, title="another title")
    lab.start("S-3")
    lab.think("S-3", task=own)
    lab.seal("S-3")
    lab.update(own, title="after the stretch", depends_on=[stranger])
    made = of_session(lab, "S-3")
    tasks = {header["task"] for header in headers(made) if header["kind"].startswith("task")}
    assert tasks == {far, near, former, own}
    assert disclosed(made) == seqs(made)
    assert kinds(lab, disclosed(made))["task"] == 5
    assert max(disclosed(made)) == seqs(made)[-1] == lab.seqs("session.seal")[-1] + 1
    for header in headers(made):
        calls = [other["kind"] for other in headers(made) if other["call"] == header["call"]]
        assert (calls[0], calls[-1]) == ("call.enter", "call.exit")


def test_a_session_bundle_includes_the_task_it_is_about(lab: Lab) -> None:
    lab.start("S-3", task="T-0001")
    made = of_session(lab, "S-3")
    assert {1, 2, 3, 4} <= set(disclosed(made))
    moves = len(TO_VERIFY) + 1
    assert kinds(lab, disclosed(made))["task"] == 1 + moves


def test_erased_payloads_are_absent_and_the_erasures_are_there(lab: Lab) -> None:
    """Formats §7, §8: the erasures that name any record of the bundle are included."""
    thoughts = lab.seqs("thought", session="S-1")
    opening = lab.seqs("session.open", session="S-1")[0]
    erasures = [lab.erase(thoughts[0]).seq, lab.erase(thoughts[1], opening).seq]
    other = lab.erase(lab.seqs("thought", session="S-2")[0]).seq
    made = of_session(lab)
    gone = {thoughts[0], thoughts[1], opening}
    assert gone <= set(seqs(made))
    assert set(disclosed(made)) & gone == set()
    assert seqs(made)[-2:] == erasures
    assert set(erasures) <= set(disclosed(made))
    assert other not in seqs(made)
    assert has_its_head(made)
    whole = written(lab, bundle.whole_log(lab.db))
    assert len(whole["headers"]) - len(whole["payloads"]) == 4


def test_no_gap_separates_a_session_from_the_later_records_in_its_bundle(lab: Lab) -> None:
    """Formats §8, the tail: the headers alone, up to the last record that is disclosed."""
    lab.read()
    lab.think("S-2", "a secret of another session")
    erasure = lab.erase(lab.seqs("thought", session="S-1")[0]).seq
    lab.read()
    made = of_session(lab)
    assert seqs(made) == list(range(1, erasure + 1))
    assert [seq for seq in disclosed(made) if seq > 43] == [erasure]
    assert has_its_head(made)


def test_a_tail_longer_than_is_worth_its_room_is_left_out(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Formats §8: as a whole; the verdict then names the gap."""
    erasure = lab.erase(lab.seqs("thought", session="S-1")[0]).seq
    monkeypatch.setattr(bundle, "MAX_TAIL", erasure - 43)
    assert seqs(of_session(lab)) == list(range(1, erasure + 1))
    monkeypatch.setattr(bundle, "MAX_TAIL", erasure - 44)
    assert seqs(of_session(lab)) == [*range(1, 44), erasure]


def test_a_call_that_ends_after_the_stretch_comes_with_its_end(lab: Lab) -> None:
    """Formats §8, the calls: those outside the stretch are included."""
    lab.start("S-3")
    lab.think("S-3")
    named: dict[str, str | None] = {"session": "S-3", "task": None, "agent": None}
    with lab.calling("thought_record_list", session="S-3", ends=False) as reading:
        enter = reading.next_seq - 1
    lab.seal("S-3")
    lab.read()
    ending = Call(lab, int(reading.id[-12:], 16), named)
    with lab.db.engine.transaction(lab.db, durable=False):
        ending.append("call.exit", left(enter, "thought_record_list"))
    made = of_session(lab, "S-3")
    found = [header["seq"] for header in headers(made) if header["call"] == reading.id]
    assert found == [enter, lab.head().seq]
    assert {enter, lab.head().seq} <= set(disclosed(made))


def test_an_exit_that_names_another_session_is_included_for_the_verifier(lab: Lab) -> None:
    """Formats §8: the calls are known by their uuid, whatever their records name."""
    lab.start("S-3")
    with lab.calling("thought_record", session="S-3", ends=False) as call:
        enter = call.next_seq - 1
        payload: JSON = {"thought_id": f"R-{enter + 1}", "index": 0, "type": "plan"}
        thought = call.append("thought", {**payload, "content": "-", "prev": ZEROS}).seq
        forged = call.append("call.exit", left(enter, "thought_record"), session="S-2").seq
    assert {enter, thought, forged} <= set(disclosed(of_session(lab, "S-3")))


def of_task(lab: Lab, id: str) -> JSON:
    return written(lab, bundle.of_task(lab.db, id))


def test_a_task_bundle_has_the_task_its_thoughts_and_their_calls_and_nothing_else(
    lab: Lab,
) -> None:
    """Formats §8, task bundle: the sessions of its thoughts with their opening and seal alone."""
    task = lab.create("own").task_id
    lab.create("a secret of another task")
    for session in ("S-3", "S-4", "S-5"):
        lab.start(session, intent="about " + session)
    lab.think("S-3", "a secret about nothing")
    thoughts = [lab.think(session, task=task).seq for session in ("S-4", "S-3", "S-3")]
    lab.think("S-5", "a secret about another", task="T-0001")
    lab.read(session="S-3")
    lab.update(task, title="renamed", status="GATHER")
    lab.seal("S-3")
    made = of_task(lab, task)
    found = headers(made)
    assert made["scope"] == {"task": task}
    assert seqs(made) == disclosed(made)
    assert kinds(lab, seqs(made)) == {
        "call.enter": 8,
        "task": 2,
        "task.text": 2,
        "session.open": 2,
        "thought": 3,
        "session.seal": 1,
        "call.exit": 8,
    }
    assert [header["seq"] for header in found if header["kind"] == "thought"] == thoughts
    assert b"secret" not in b"".join(b64decode(one["body"]) for one in made["payloads"].values())
    for header in found:
        calls = [other["kind"] for other in found if other["call"] == header["call"]]
        assert (calls[0], calls[-1]) == ("call.enter", "call.exit")
    assert has_its_head(made)


def test_a_task_bundle_proves_each_thought_that_a_seal_covers(lab: Lab) -> None:
    """Formats §8: one proof, by ascending seq, for each thought whose session has a seal."""
    for session in ("S-3", "S-4", "S-5"):
        lab.start(session)
    for session in ("S-4", "S-3", "S-5", "S-3", "S-4"):
        lab.think(session)
        lab.think(session, task="T-0001")
    lab.seal("S-4")
    lab.seal("S-3")
    made = of_task(lab, "T-0001")
    sealed = {
        header["session"]: json.loads(b64decode(made["payloads"][str(header["seq"])]["body"]))
        for header in headers(made)
        if header["kind"] == "session.seal"
    }
    assert sealed.keys() == {"S-1", "S-3", "S-4"}
    thoughts = [header for header in headers(made) if header["kind"] == "thought"]
    assert len(thoughts) == 10
    proven = [header for header in thoughts if header["session"] in sealed]
    assert [proof["seq"] for proof in made["proofs"]] == [header["seq"] for header in proven]
    for proof, header in zip(made["proofs"], proven, strict=True):
        body = json.loads(b64decode(made["payloads"][str(header["seq"])]["body"]))
        seal = sealed[header["session"]]
        assert (proof["index"], proof["size"]) == (body["index"], seal["count"])
        assert merkle.check_inclusion(
            record.leaf(encode(header)),
            index=proof["index"],
            size=proof["size"],
            path=[bytes.fromhex(hash) for hash in proof["path"]],
            root=bytes.fromhex(seal["root"]),
        )


def test_a_task_bundle_includes_its_dependencies_without_their_thoughts(
    lab: Lab,
) -> None:
    far = lab.create("far").task_id
    near = lab.create("near", far).task_id
    own = lab.create("own", near).task_id
    lab.update(own, depends_on=[])
    lab.create("dependent", own)
    lab.think("S-2", task=near)
    made = of_task(lab, own)
    assert {header["task"] for header in headers(made) if header["kind"] == "task"} == {
        far,
        near,
        own,
    }
    assert "thought" not in kinds(lab, seqs(made))
    assert made["proofs"] == []


def test_a_task_bundle_includes_the_erasures_of_its_records(lab: Lab) -> None:
    thought = lab.seqs("thought", session="S-1")[0]
    other = lab.erase(lab.seqs("thought", session="S-2")[0]).seq
    erasure = lab.erase(thought).seq
    made = of_task(lab, "T-0001")
    assert (seqs(made)[-1], other in seqs(made)) == (erasure, False)
    assert set(seqs(made)) - set(disclosed(made)) == {thought}
    assert thought in [proof["seq"] for proof in made["proofs"]]


def test_an_unknown_task_is_refused(lab: Lab) -> None:
    with pytest.raises(Refused) as caught:
        bundle.of_task(lab.db, "T-0002")
    assert (caught.value.code, caught.value.fields) == ("ERR_NOT_FOUND", {"task_id": "T-0002"})


def test_a_thought_forged_after_the_seal_is_exported_without_a_proof(lab: Lab) -> None:
    """A5: what is damaged is evidence too; no row of a table says what there is to prove."""
    payload: JSON = {
        "thought_id": "R-55",
        "index": 5,
        "type": "plan",
        "content": "-",
        "prev": ZEROS,
    }
    forged = lab.forge("thought", payload, session="S-1", task="T-0001").seq
    made = of_task(lab, "T-0001")
    assert forged in seqs(made)
    assert [proof["size"] for proof in made["proofs"]] == [5] * 5


def test_a_thoughts_bundle_has_the_thoughts_their_proofs_and_the_seal(lab: Lab) -> None:
    """Formats §8, thoughts bundle: nothing else; one proof for each, by ascending seq."""
    thoughts = lab.seqs("thought", session="S-1")
    wanted = [f"R-{thoughts[3]}", f"R-{thoughts[1]}", f"R-{thoughts[3]}"]
    made = written(lab, bundle.of_thoughts(lab.db, wanted))
    assert made["scope"] == {"thoughts": "S-1"}
    assert seqs(made) == disclosed(made) == [thoughts[1], thoughts[3], 42]
    root = bytes.fromhex(json.loads(b64decode(made["payloads"]["42"]["body"]))["root"])
    for proof, index, header in zip(made["proofs"], (1, 3), made["headers"], strict=False):
        assert (proof["seq"], proof["index"], proof["size"]) == (thoughts[index], index, 5)
        assert merkle.check_inclusion(
            record.leaf(b64decode(header)),
            index=index,
            size=5,
            path=[bytes.fromhex(hash) for hash in proof["path"]],
            root=root,
        )
    erasure = lab.erase(thoughts[1], thoughts[2]).seq
    made = written(lab, bundle.of_thoughts(lab.db, wanted))
    assert seqs(made) == [thoughts[1], thoughts[3], 42, erasure]
    assert disclosed(made) == [thoughts[3], 42, erasure]


REFUSALS = {
    "an unknown thought": (["R-999"], "ERR_NOT_FOUND"),
    "no thought": (["R-1"], "ERR_NOT_FOUND"),
    "thoughts of two sessions": (["R-9", "R-48"], "ERR_NOT_FOUND"),
    "a thought of an open session": (["R-48"], "ERR_NOT_FINALIZED"),
}


@pytest.mark.parametrize(("ids", "code"), REFUSALS.values(), ids=REFUSALS.keys())
def test_thoughts_that_cannot_be_proved_are_refused(lab: Lab, ids: list[str], code: str) -> None:
    assert (lab.seqs("thought", session="S-1")[0], lab.seqs("thought")[-2]) == (9, 48)
    with pytest.raises(Refused) as caught:
        bundle.of_thoughts(lab.db, ids)
    assert caught.value.code == code


def test_an_unknown_session_is_refused(lab: Lab) -> None:
    with pytest.raises(Refused) as caught:
        bundle.of_session(lab.db, "S-9")
    assert caught.value.code == "ERR_SESSION_NOT_FOUND"


def test_a_bundle_comes_piece_by_piece(lab: Lab) -> None:
    """Bounded memory; no piece is larger than one record."""
    for _ in range(200):
        lab.think("S-2", "x" * 1_000)
    pieces = list(bundle.write(lab.db, bundle.whole_log(lab.db)))
    assert len(pieces) > 600
    assert max(map(len, pieces)) < 3_000
    assert json.loads(pieces[-1])["head"]["seq"] == lab.head().seq


@pytest.mark.parametrize("body", [b"{", b"\xff", b"[]", b'{"enter":"x","seqs":"7","set":[]}'])
def test_a_damaged_log_is_still_exported_for_the_verifier_to_judge(lab: Lab, body: bytes) -> None:
    """A5: what is damaged is evidence too."""
    erasure = lab.erase(lab.seqs("thought")[0]).seq
    lab.drop_triggers()
    for seq in (2, 43, erasure):
        lab.db.execute("UPDATE ledger SET body = ? WHERE seq = ?", (body, seq))
    for contents in (bundle.of_session(lab.db, "S-1"), bundle.of_task(lab.db, "T-0001")):
        made = written(lab, contents)
        assert seqs(made)[-1] == 43
        assert b64decode(made["payloads"]["2"]["body"]) == body


def test_a_checkpoint_covers_the_last_record_of_every_kind_of_bundle(lab: Lab) -> None:
    """Specification 9.15: with the proof that leads from its leaf to the root."""
    lab.start("S-9")
    lab.think("S-9")
    lab.seal("S-9")
    lab.think("S-2")
    newest = log_tree.checkpoint(lab.db)
    thought = trail.thought_id(lab.seqs("thought")[-2])
    for contents in (
        bundle.whole_log(lab.db),
        bundle.of_session(lab.db, "S-2"),
        bundle.of_session(lab.db, "S-9"),
        bundle.of_task(lab.db, "T-0001"),
        bundle.of_thoughts(lab.db, [thought]),
    ):
        assert "checkpoint" not in written(lab, contents)
        bundle.cover(lab.db, contents, newest)
        made = written(lab, contents)
        stated, head = made["checkpoint"], made["head"]
        assert (stated["size"], stated["root"]) == (newest.size, newest.root.hex())
        assert merkle.check_inclusion(
            bytes.fromhex(head["leaf"]),
            index=head["seq"] - 1,
            size=stated["size"],
            path=[bytes.fromhex(step) for step in stated["path"]],
            root=newest.root,
        )


def test_a_checkpoint_before_the_end_of_a_bundle_is_left_out(lab: Lab) -> None:
    contents = bundle.of_session(lab.db, "S-1")
    bundle.cover(lab.db, contents, log_tree.checkpoint(lab.db, contents.last - 1))
    assert "checkpoint" not in written(lab, contents)
    bundle.cover(lab.db, contents, log_tree.checkpoint(lab.db, contents.last))
    assert written(lab, contents)["checkpoint"]["size"] == contents.last


def test_a_checkpoint_that_the_log_does_not_have_is_refused(lab: Lab) -> None:
    contents, newest = bundle.of_session(lab.db, "S-1"), log_tree.checkpoint(lab.db)
    with pytest.raises(ValueError, match=f"is not in the checkpoint of {newest.size} records"):
        bundle.cover(lab.db, contents, newest._replace(root=bytes(32)))
    with pytest.raises(ValueError, match="the log ends at record"):
        bundle.cover(lab.db, contents, newest._replace(size=newest.size + 1))
    assert contents.checkpoint is None
