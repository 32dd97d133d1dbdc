"""Eight servers on one database at once: nothing forks, nothing is lost, one seal wins."""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from colibri.core import merkle
from colibri.store.sqlite.opening import open_reader
from colibri.store.verify import verify
from tests.support.client import COLIBRI, JSON, Server
from tests.support.ledger_writer import no_pause

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
    """The same session; indexes 0 to n − 1, each naming the one before it."""
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


def test_eight_servers_record_into_their_own_sessions_beside_each_other(
    servers: list[Server],
) -> None:
    """Different sessions; each seals its own, and every root is that of its thoughts."""
    starts = [[{"intent": "mine", "session_id": f"own-{who}"}] for who in range(SERVERS)]
    succeeded(together(servers, "audit_session_start", *starts))
    calls = [thoughts(f"own-{who}", who) for who in range(SERVERS)]
    recorded = succeeded(together(servers, "thought_record", *calls))
    assert Counter(one["session_id"] for one in recorded) == {
        f"own-{who}": THOUGHTS for who in range(SERVERS)
    }
    seals = [[{"session_id": f"own-{who}"}] for who in range(SERVERS)]
    for who, seal in enumerate(succeeded(together(servers, "merkle_finalize", *seals))):
        records = listed(servers[who], f"own-{who}")
        assert [one["index"] for one in records] == list(range(THOUGHTS))
        leaves = [bytes.fromhex(one["hash"]) for one in records]
        root = f"{THOUGHTS}:{merkle.root(leaves).hex()}"
        assert (seal["root"], seal["record_count"]) == (root, THOUGHTS)
    intact(servers)


def test_one_seal_wins_and_the_others_are_told_its_root(servers: list[Server]) -> None:
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


def test_one_of_eight_opens_a_session_of_the_same_name(servers: list[Server]) -> None:
    """Design §7: ERR_SESSION_EXISTS for all the others."""
    start = [{"intent": "first come", "session_id": "wanted"}]
    results = together(servers, "audit_session_start", *[start] * SERVERS)
    refused = [result for result in results if result["isError"]]
    assert len(refused) == SERVERS - 1
    assert {one["structuredContent"]["data"]["error"]["code"] for one in refused} == {
        "ERR_SESSION_EXISTS"
    }
    intact(servers)
