"""store/proofs.py: the seal, the stored tree, and the proofs read from it."""

import json
from typing import Any

import pytest

from colibri.core import merkle
from colibri.core.errors import Refused
from colibri.store import proofs, sessions
from colibri.store.sessions import Session
from tests.support.engines import require_sqlite
from tests.support.ledger_writer import Lab, found, in_memory

SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 13, 33)


@pytest.fixture
def lab() -> Lab:
    return in_memory()


def sealed(lab: Lab, size: int, id: str = "S-1") -> tuple[Session, list[bytes]]:
    """A sealed session, and its leaves."""
    lab.start(id)
    leaves = [bytes.fromhex(lab.think(id).hash) for _ in range(size)]
    return lab.seal(id), leaves


@pytest.mark.parametrize("size", SIZES)
def test_the_seal_is_the_rfc_6962_root_over_the_leaves_of_the_thoughts(lab: Lab, size: int) -> None:
    """Specification 9.9."""
    session, leaves = sealed(lab, size)
    assert session.root == merkle.root(leaves)
    assert session.record_count == size
    assert session.finalized_at is not None
    (body,) = next(lab.db.execute("SELECT body FROM ledger WHERE seq = ?", (session.seal_seq,)))
    thoughts = lab.seqs("thought")
    assert json.loads(str(body, "utf-8")) == {
        "root": merkle.root(leaves).hex(),
        "count": size,
        "first_seq": thoughts[0],
        "last_seq": thoughts[-1],
    }
    assert lab.verify().valid


def test_the_stored_nodes_are_those_of_the_format(lab: Lab) -> None:
    """Specification 9.9: level 0 holds the leaves; a promoted node is stored at every level."""
    _, leaves = sealed(lab, 5)
    rows = list(lab.db.execute("SELECT level, idx, hash FROM merkle_nodes ORDER BY level, idx"))
    node = merkle.node_hash
    pairs = [node(*leaves[0:2]), node(*leaves[2:4])]
    expected = [leaves, [*pairs, leaves[4]], [node(*pairs), leaves[4]]]
    expected.append([node(*expected[2])])
    assert rows == [(n, i, hash) for n, row in enumerate(expected) for i, hash in enumerate(row)]


@pytest.mark.parametrize("size", SIZES)
def test_every_thought_has_a_proof_that_holds(lab: Lab, size: int) -> None:
    """Specification 5.19: proof = {thought_id, index, size, leaf, path}."""
    session, leaves = sealed(lab, size)
    assert session.root is not None
    for index, seq in enumerate(lab.seqs("thought")):
        proof = proofs.prove(lab.db, session, f"R-{seq}")
        path = [bytes.fromhex(hash) for hash in proof.pop("path")]
        leaf = leaves[index].hex()
        assert proof == {"thought_id": f"R-{seq}", "index": index, "size": size, "leaf": leaf}
        assert merkle.check_inclusion(
            leaves[index], index=index, size=size, path=path, root=session.root
        )


def test_an_erased_thought_has_its_proof_all_the_same(lab: Lab) -> None:
    """Specification 9.10: proofs stay valid."""
    session, leaves = sealed(lab, 3)
    seq = lab.seqs("thought")[1]
    before = proofs.prove(lab.db, session, f"R-{seq}")
    lab.erase(seq)
    assert proofs.prove(lab.db, session, f"R-{seq}") == before
    assert lab.verify().valid
    assert len(leaves) == 3


def refusal(action: Any, *arguments: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        action(*arguments)
    return caught.value


def test_nothing_is_sealed_twice_empty_or_unknown(lab: Lab) -> None:
    """Specification 9.9: ERR_SESSION_NOT_FOUND, ERR_ALREADY_FINALIZED, ERR_NO_RECORDS."""
    assert refusal(lab.seal, "S-9").code == "ERR_SESSION_NOT_FOUND"
    lab.start("empty")
    empty = refusal(lab.seal, "empty")
    assert (empty.code, empty.fields) == ("ERR_NO_RECORDS", {"session_id": "empty"})
    assert "thought_record" in empty.message
    session, _ = sealed(lab, 2)
    assert session.root is not None
    again = refusal(lab.seal, "S-1")
    assert again.code == "ERR_ALREADY_FINALIZED"
    assert again.fields["root"] == session.sized_root
    assert lab.seqs("session.seal") == [session.seal_seq]
    assert sessions.get(lab.db, "empty").root is None
    assert lab.verify().valid


def test_an_open_session_has_no_root_and_the_refusal_says_what_to_call(lab: Lab) -> None:
    """Specification 5.19: ERR_NOT_FINALIZED (names merkle_finalize)."""
    lab.start()
    lab.think()
    refused = refusal(proofs.sealed, lab.db, "S-1")
    assert refused.code == "ERR_NOT_FINALIZED"
    assert refused.fields == {"session_id": "S-1", "record_count": 1}
    assert "merkle_finalize" in refused.message
    assert refusal(proofs.sealed, lab.db, "S-9").code == "ERR_SESSION_NOT_FOUND"
    lab.seal()
    assert proofs.sealed(lab.db, "S-1") == sessions.get(lab.db, "S-1")


@pytest.mark.parametrize("thought", ["R-1", "R-99", "R-12", "R-05", "R-0"])
def test_no_proof_is_made_for_what_is_no_thought_of_the_session(lab: Lab, thought: str) -> None:
    """Specification 5.19: ERR_NOT_FOUND; R-12 is another session's, R-05 no id."""
    session, _ = sealed(lab, 1)
    lab.start("S-2")
    other = lab.think("S-2")
    assert (lab.seqs("thought"), other.thought_id) == ([5, 14], "R-14")
    wanted = other.thought_id if thought == "R-12" else thought
    refused = refusal(proofs.prove, lab.db, session, wanted)
    assert (refused.code, refused.fields) == ("ERR_NOT_FOUND", {"thought_id": wanted})


def test_the_database_itself_refuses_to_change_a_tree(lab: Lab) -> None:
    """Specification 9.6: triggers refuse UPDATE and DELETE on merkle_nodes."""
    require_sqlite("zeroblob")
    sealed(lab, 3)
    for sql in ("UPDATE merkle_nodes SET hash = zeroblob(32)", "DELETE FROM merkle_nodes"):
        with pytest.raises(Exception, match="a sealed session is never changed"):
            lab.db.execute(sql)


EDITS = {
    "a hash": "UPDATE merkle_nodes SET hash = zeroblob(32) WHERE level = 1 AND idx = 0",
    "the root": "UPDATE merkle_nodes SET hash = zeroblob(32) WHERE level = 2",
    "a leaf": "UPDATE merkle_nodes SET hash = zeroblob(32) WHERE level = 0 AND idx = 2",
    "a level": "UPDATE merkle_nodes SET level = 9 WHERE level = 2",
    "an idx": "UPDATE merkle_nodes SET idx = 9 WHERE level = 2",
    "a session": "UPDATE merkle_nodes SET session = 'S-9' WHERE level = 2",
    "a node less": "DELETE FROM merkle_nodes WHERE level = 2",
    "no nodes": "DELETE FROM merkle_nodes",
    "a node more": "INSERT INTO merkle_nodes VALUES ('S-1', 3, 0, zeroblob(32))",
    "a node of an open session": "INSERT INTO merkle_nodes VALUES ('S-2', 0, 0, zeroblob(32))",
    "a hash of none": (
        "ALTER TABLE merkle_nodes RENAME TO old;"
        "CREATE TABLE merkle_nodes AS SELECT session, level, idx, iif(level, hash, NULL) AS hash"
        " FROM old"
    ),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
def test_every_edit_of_a_tree_is_an_altered_session(lab: Lab, edit: str) -> None:
    """Flip every byte of every stored node: detection is complete."""
    sealed(lab, 3)
    lab.start("S-2")
    lab.drop_triggers()
    lab.db.execute("PRAGMA foreign_keys = OFF")
    lab.db.execute(edit)
    (broken,) = lab.verify().breaks
    assert (broken.seq, broken.what) == (None, "altered-session")
    assert broken.detail.endswith("its stored tree is not that of its thoughts")
    id = broken.detail.partition(":")[0]
    assert found(lab.verify_session(id)) == [(None, "altered-session")]


def test_a_missing_row_is_an_altered_session(lab: Lab) -> None:
    sealed(lab, 1)
    lab.start("S-2")
    lab.tamper("DELETE FROM sessions WHERE session_id = 'S-2'")
    (broken,) = lab.verify().breaks
    assert (broken.what, broken.detail) == ("altered-session", "S-2: its row is missing")


def test_a_number_that_json_cannot_say_is_no_answer(lab: Lab) -> None:
    """A forger may have put it there."""
    lab.start()
    lab.think()
    lab.seal()
    lab.db.execute("UPDATE sessions SET record_count = ?", (2**53,))
    with pytest.raises(ValueError, match=r"the session S-1 has a number beyond 2\^53-1"):
        proofs.sealed(lab.db, "S-1")
