"""The whole story through the front door: the official client and the real server."""

from pathlib import Path
from typing import Any

import pytest

from colibri.core import merkle
from tests.support.official_client import Caller, run

JSON = dict[str, Any]
REFLECTION = "it holds: no more drips"
TO_VERIFY = ("GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return tmp_path


async def brought_to_verify(agent: Caller, session: str) -> str:
    """A new task in VERIFY, with thoughts on the way that are not about it."""
    task: str = (await agent.data("task_create", title="mend the roof"))["task_id"]
    for status in TO_VERIFY:
        moved = await agent.data("task_update", task_id=task, status=status)
        assert moved["status"] == status
        thought = await agent.data(
            "thought_record", session_id=session, type="plan", content=f"now {status}"
        )
        assert thought["task_id"] is None
    return task


async def done_only_with_evidence(agent: Caller, session: str, task: str) -> JSON:
    """DONE is refused, then reached; the reflection that made the difference."""
    refused = await agent.refusal("task_update", task_id=task, status="DONE")
    assert refused["code"] == "ERR_WRITEBACK_REQUIRED"
    assert task in refused["message"]
    why = {"session_id": session, "task_id": task, "agent_id": "ada", "type": "reflection"}
    reflection: JSON = await agent.data("thought_record", **why, content=REFLECTION)
    assert (reflection["index"], reflection["task_id"]) == (5, task)
    done = await agent.data("task_update", task_id=task, status="DONE")
    assert done["status"] == "DONE"
    return reflection


async def sealed_with_a_proof(agent: Caller, session: str, reflection: JSON) -> str:
    """No root before the seal; then the root, and a proof that holds."""
    early = await agent.refusal("merkle_root", session_id=session)
    assert early["code"] == "ERR_NOT_FINALIZED"
    sealed = await agent.data("merkle_finalize", session_id=session)
    assert (sealed["session_id"], sealed["record_count"]) == (session, 6)
    assert await agent.data("merkle_root", session_id=session) == sealed
    id = reflection["thought_id"]
    proven = await agent.data("merkle_root", session_id=session, proof_for=id)
    proof = proven.pop("proof")
    assert proven == sealed
    assert (proof["thought_id"], proof["leaf"]) == (id, reflection["hash"])
    assert merkle.check_inclusion(
        bytes.fromhex(reflection["hash"]),
        index=5,
        size=sealed["record_count"],
        path=[bytes.fromhex(hash) for hash in proof["path"]],
        root=bytes.fromhex(sealed["root"].split(":")[1]),
    )
    root: str = sealed["root"]
    return root


async def reads_as_it_was_written(agent: Caller, session: str, root: str) -> None:
    """Every thought names the one before it, and their leaves make the root."""
    records = (await agent.data("thought_record_list", session_id=session))["records"]
    contents = [*[f"now {status}" for status in TO_VERIFY], REFLECTION]
    assert [record["content"] for record in records] == contents
    hashes = [record["hash"] for record in records]
    assert [record["prev_hash"] for record in records] == ["0" * 64, *hashes[:-1]]
    assert f"6:{merkle.root([bytes.fromhex(hash) for hash in hashes]).hex()}" == root


async def takes_nothing_more(agent: Caller, session: str, root: str) -> None:
    is_error, late = await agent.envelope(
        "thought_record", session_id=session, type="plan", content="one more thing"
    )
    assert is_error
    assert late["error"]["message"].startswith("ERR_ALREADY_FINALIZED: ")
    again = await agent.refusal("merkle_finalize", session_id=session)
    assert (again["code"], again["root"]) == ("ERR_ALREADY_FINALIZED", root)


async def can_be_verified(agent: Caller, session: str, task: str) -> None:
    whole = await agent.data("audit_verify_chain")
    assert (whole["valid"], whole["breaks"], whole["first_broken_at"]) == (True, [], None)
    assert whole["record_count"] == whole["head"]["seq"]
    assert whole["open_calls"] == []
    one = await agent.data("audit_verify_chain", session_id=session)
    assert one["valid"]
    assert any(note["detail"].startswith("records before") for note in one["not_checked"])
    about = await agent.data("audit_verify_chain", task_id=task)
    assert about["valid"]
    assert 0 < about["record_count"] < whole["record_count"]
    for verdict in (whole, one, about):
        assert "outside-head" in [note["code"] for note in verdict["not_checked"]]


def test_an_agent_records_why_and_seals_it_and_the_seal_holds(project: Path) -> None:
    """Start, task, thoughts, DONE only with evidence, finalize, root, proof, verify."""

    async def story(agent: Caller) -> None:
        started = await agent.data("audit_session_start", intent="mend the roof")
        session: str = started["session_id"]
        assert (started["intent"], session[:2]) == ("mend the roof", "S-")
        task = await brought_to_verify(agent, session)
        reflection = await done_only_with_evidence(agent, session, task)
        root = await sealed_with_a_proof(agent, session, reflection)
        await reads_as_it_was_written(agent, session, root)
        await takes_nothing_more(agent, session, root)
        await can_be_verified(agent, session, task)

    run(project, story)


def test_the_trail_is_read_in_pages_and_by_what_it_is_about(project: Path) -> None:
    """Design §7, thought_record_list: next_offset until there is no more."""

    async def story(agent: Caller) -> None:
        await agent.data("audit_session_start", intent="read", session_id="mine")
        for number in range(5):
            await agent.data(
                "thought_record", session_id="mine", type="analysis", content=str(number)
            )
        seen, offset = [], 0
        while offset is not None:
            page = await agent.data("thought_record_list", limit=2, offset=offset)
            assert page["total_count"] == 5
            seen += [record["content"] for record in page["records"]]
            offset = page["next_offset"]
        assert seen == ["0", "1", "2", "3", "4"]
        none = await agent.data("thought_record_list", type="plan")
        assert none == {"records": [], "total_count": 0, "next_offset": None}
        assert (await agent.data("thought_record_list", offset=9))["next_offset"] is None

    run(project, story)


def test_what_is_refused_names_what_would_be_right(project: Path) -> None:
    """Design §7: the refusals of the trail, each with its code."""

    async def story(agent: Caller) -> None:
        started = {"intent": "try", "session_id": "one"}
        await agent.data("audit_session_start", **started)
        assert (await agent.refusal("audit_session_start", **started))["code"] == (
            "ERR_SESSION_EXISTS"
        )
        nowhere = await agent.refusal("audit_session_start", intent="try", task_id="T-9999")
        assert nowhere["code"] == "ERR_NOT_FOUND"
        assert (await agent.refusal("merkle_finalize", session_id="one"))["code"] == (
            "ERR_NO_RECORDS"
        )
        thought = {"type": "plan", "content": "so"}
        for arguments, code in (
            ({"session_id": "two", **thought}, "ERR_SESSION_NOT_FOUND"),
            ({"session_id": "one", "task_id": "T-9999", **thought}, "ERR_NOT_FOUND"),
        ):
            is_error, content = await agent.envelope("thought_record", **arguments)
            assert is_error
            assert content["error"]["code"] == "HANDLER_ERROR"
            assert content["error"]["message"].startswith(f"{code}: ")
        for arguments, code in (
            ({"session_id": "two"}, "ERR_SESSION_NOT_FOUND"),
            ({"task_id": "T-9999"}, "ERR_NOT_FOUND"),
        ):
            is_error, content = await agent.envelope("audit_verify_chain", **arguments)
            assert is_error
            assert content["error"]["message"].startswith(f"{code}: ")
        await agent.data("thought_record", session_id="one", **thought)
        await agent.data("merkle_finalize", session_id="one")
        missing = await agent.refusal("merkle_root", session_id="one", proof_for="R-1")
        assert missing["code"] == "ERR_NOT_FOUND"
        assert (await agent.data("audit_verify_chain"))["valid"]

    run(project, story)
