"""Memory: everything that can wait, driven to its limit, and the server's size then.

A limit only works if it counts everything that is kept.
"""

import json
from pathlib import Path

import pytest

from tests.support.client import JSON, Server
from tests.support.ledger_reader import eventually, holding

MIB = 1024 * 1024
MOST = 220 * MIB  # at rest it is some 30 MiB
PAD = "x" * (4 * MIB - 2000)
WIDE = "\U0001f600" + "x" * (
    4 * MIB - 2000
)  # one such character makes a string take 4 bytes per character
MANY: list[list[int]] = [[] for _ in range(90_000)]
VERSION = "io.modelcontextprotocol/protocolVersion"
MODERN = {VERSION: "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


def call(name: str, arguments: object = None, **more: object) -> JSON:
    return {"name": name, "arguments": arguments or {}, **more}


# what waits: the method, its parameters, how many are sent
WAITING: dict[str, tuple[str, JSON, int]] = {
    "records of probes": ("tools/call", call("server_ping", pad=PAD), 120),
    "records of probes with arguments": ("tools/call", call("server_ping", {"pad": WIDE}), 40),
    "records of refused probes": ("tools/call", call("server_ping", [WIDE]), 40),
    "calls": ("tools/call", call("note", {"n": 1}, pad=PAD), 40),
    "calls with wide text": ("tools/call", call("note", {"n": 1, "content": WIDE}), 40),
    "calls with many values": ("tools/call", call("note", {"n": MANY}), 200),
    "calls of unknown tools": ("tools/call", call(WIDE), 40),
    "reads": ("tools/call", call("nap_read", {"ms": 0, "pad": WIDE}), 40),
    "subscriptions": ("subscriptions/listen", {"notifications": {}, "pad": WIDE}, 30),
    "subscriptions with long ids": ("subscriptions/listen", {"notifications": {}}, 30),
    "lines that are no JSON": ("tools/call", call("note", {"n": 2**60, "pad": WIDE}), 30),
}
OFTEN = {"records of probes", "calls", "calls with many values", "reads", "subscriptions"}


def resident(server: Server) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


@pytest.mark.slow
@pytest.mark.parametrize(
    "what", [one if one in OFTEN else pytest.param(one, marks=pytest.mark.long) for one in WAITING]
)
def test_the_limit_on_what_waits_counts_all_it_keeps(tmp_path: Path, what: str) -> None:
    """Specification 3.3, 3.11: 256 waiting pings of 4 MB used to take 2.3 GB."""
    method, params, count = WAITING[what]
    modern = method.startswith("subscriptions")
    meta = {"_meta": MODERN} if modern else {}
    with Server(tmp_path, COLIBRI_HEALTH_INTERVAL_MS="100") as server:
        server.data("note", n=0)
        with holding(server.database):
            for number in range(count):
                id = f"{number} {PAD}" if "ids" in what else f"w{number}"
                message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params | meta}
                server.send(json.dumps(message, ensure_ascii=False).encode() + b"\n")
            assert server.call("server_ping")["isError"] is False
        assert resident(server) < MOST
        # A slow machine may have put it into SAFE_MODE meanwhile, which ends by itself.
        eventually(lambda: not server.call("note", n=1)["isError"], "a server that takes calls")
        eventually(lambda: is_normal(server), "a server that is well again")


def is_normal(server: Server) -> bool:
    return bool(server.data("server_health")["condition"]["state"] == "NORMAL")


def test_a_page_of_thoughts_ends_where_it_would_get_too_large(tmp_path: Path) -> None:
    """A valid thought_record_list used to answer 250 MiB; next_offset leads to the rest."""
    contents = [chr(0x1F600 + n) * 65_536 for n in range(10)]  # 256 KiB each
    with Server(tmp_path) as server:
        server.data("audit_session_start", session_id="long", intent="fill pages")
        for content in contents:
            server.data("thought_record", session_id="long", type="plan", content=content)
        seen: list[str] = []
        offset, pages = 0, 0
        while offset is not None:
            page = server.data("thought_record_list", limit=500, offset=offset)
            seen += [thought["content"] for thought in page["records"]]
            offset, pages = page["next_offset"], pages + 1
        assert seen == contents
        assert pages == 3  # of four, four and two
