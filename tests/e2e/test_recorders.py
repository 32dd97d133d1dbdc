"""Eight servers on one database at once: nothing forks, nothing is lost, one seal wins."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from colibri.store.sqlite.opening import open_reader
from colibri.store.verify import verify
from tests.support.client import COLIBRI, JSON, Server
from tests.support.ledger_writer import no_pause
from tests.support.task_client import refusal

SERVERS, THOUGHTS = 8, 25


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[list[Server]]:
    with ExitStack() as stack:
        yield [stack.enter_context(Server(tmp_path, COLIBRI)) for _ in range(SERVERS)]


def together(servers: list[Server], tool: str, *calls: list[JSON]) -> list[JSON]:
    """Every server's calls of a tool, all sent before the first answer is read; the results."""
    sent = [
        (server, server.post_call(tool, **arguments))
        for server, own in zip(servers, calls, strict=True)
        for arguments in own
    ]
    return [server.answer(id)["result"] for server, id in sent]


def thoughts(session: str, who: int) -> list[JSON]:
    return [
        {"session_id": session, "type": "plan", "content": f"{who}/{n}", "agent_id": f"agent-{who}"}
        for n in range(THOUGHTS)
    ]


def succeeded(results: list[JSON]) -> list[JSON]:
    assert [result for result in results if result["isError"]] == []
    return [result["structuredContent"]["data"] for result in results]


def intact(servers: list[Server]) -> None:
    """No gap, no fork, no open call; by a server and by the store."""
    verdict = servers[0].data("audit_verify_chain")
    assert verdict["valid"], verdict
    for server in servers:
        assert server.close() == 0
    with closing(open_reader(str(servers[0].database))) as db:
        report = verify(db, pause=no_pause)
        seqs = [seq for (seq,) in db.execute("SELECT seq FROM ledger ORDER BY seq")]
    assert (report.valid, report.open_calls) == (True, ())
    assert seqs == list(range(1, len(seqs) + 1))


def listed(server: Server, session: str) -> list[JSON]:
    page = server.data("thought_record_list", session_id=session, limit=500)
    records: list[JSON] = page["records"]
    assert page["total_count"] == len(records)
    return records


def test_eight_servers_record_into_one_session_and_no_thought_is_lost(
    servers: list[Server],
) -> None:
    """All in one session: indexes 0 to n − 1, each naming the previous one."""
    servers[0].data("audit_session_start", intent="together", session_id="all")
    calls = [thoughts("all", who) for who in range(SERVERS)]
    recorded = succeeded(together(servers, "thought_record", *calls))
    assert sorted(one["index"] for one in recorded) == list(range(SERVERS * THOUGHTS))
    records = listed(servers[1], "all")
    assert [one["index"] for one in records] == list(range(SERVERS * THOUGHTS))
    assert [one["prev_hash"] for one in records[1:]] == [one["hash"] for one in records[:-1]]
    assert {one["thought_id"]: one["hash"] for one in records} == {
        one["thought_id"]: one["hash"] for one in recorded
    }
    for who in range(SERVERS):
        own = [one["content"] for one in records if one["agent_id"] == f"agent-{who}"]
        assert own == [f"{who}/{n}" for n in range(THOUGHTS)]  # in the order they were sent
    intact(servers)


def test_one_seal_wins_and_the_others_get_its_root(servers: list[Server]) -> None:
    """The others get ERR_ALREADY_FINALIZED with the root; no thought comes after it."""
    servers[0].data("audit_session_start", intent="race", session_id="race")
    succeeded([servers[0].call("thought_record", session_id="race", type="plan", content="go")])
    sent = []
    for who, server in enumerate(servers):
        for arguments in thoughts("race", who)[:5]:
            sent.append((server, server.post_call("thought_record", **arguments)))
        sent.append((server, server.post_call("merkle_finalize", session_id="race")))
        sent.append((server, server.post_call("thought_record", **thoughts("race", who)[5])))
    results = [server.answer(id)["result"]["structuredContent"] for server, id in sent]
    seals = results[5::7]
    (won,) = (one["data"] for one in seals if "root" in one["data"])
    lost = [one["data"]["error"] for one in seals if "error" in one["data"]]
    assert len(lost) == SERVERS - 1
    assert {(one["code"], one["root"]) for one in lost} == {("ERR_ALREADY_FINALIZED", won["root"])}
    kept = [one["data"] for one in results if one["ok"] and "thought_id" in one["data"]]
    late = [one["error"]["message"] for one in results if not one["ok"]]
    assert len(kept) + 1 == won["record_count"]
    assert len(kept) + len(late) == SERVERS * 6
    assert all(message.startswith("ERR_ALREADY_FINALIZED: ") for message in late)
    assert [one["index"] for one in listed(servers[2], "race")] == list(range(len(kept) + 1))
    intact(servers)


def test_of_eight_servers_that_claim_a_task_exactly_one_wins(servers: list[Server]) -> None:
    """Specification 6.13: expected_version; ERR_VERSION_CONFLICT has the current version."""
    ids = [servers[0].data("task_create", title="one")["task_id"] for _ in range(THOUGHTS)]
    claim: JSON = {"status": "GATHER", "expected_version": 1}
    claims = [
        [{"task_id": id, "assignee": f"agent-{who}", **claim} for id in ids]
        for who in range(SERVERS)
    ]
    results = together(servers, "task_update", *claims)
    for number, id in enumerate(ids):
        answers = results[number::THOUGHTS]
        (winner,) = [who for who, answer in enumerate(answers) if not answer["isError"]]
        for error in (refusal(answer) for answer in answers if answer["isError"]):
            assert (error["code"], error["current_version"]) == ("ERR_VERSION_CONFLICT", 2)
            assert f"{id} is at version 2, not 1" in error["message"]
        task = servers[-1].data("task_get", task_id=id)
        assert (task["assignee"], task["version"]) == (f"agent-{winner}", 2)
    intact(servers)
