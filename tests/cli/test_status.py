"""`colibri status`: the project at a glance."""

import errno
import json
import os
from pathlib import Path

import pytest

from colibri.cli.commands import status
from tests.support import engines
from tests.support.ledger_writer import Lab, opened, story
from tests.support.sample_project import Printed, Shown, Workshop


def facts(text: str) -> dict[str, str]:
    """The values by their labels."""
    found: dict[str, str] = {}
    label = ""
    for line in text.splitlines():
        label = line[:12].strip() or label
        found[label] = f"{found.get(label, '')} {line[12:].strip()}".strip()
    return found


def test_a_project_without_a_ledger_is_no_error(tmp_path: Path, colibri: Printed) -> None:
    engines.require_sqlite("a server has a schema, or says that it has none")
    code, out, err = colibri(tmp_path, "status")
    assert (code, err) == (0, "")
    path = tmp_path / "data" / "colibri.db"
    assert facts(out)["project"] == f"{tmp_path} --project names it"
    assert facts(out)["store"].startswith(f"{path} there is no ledger yet; ")
    assert "colibri setup CLIENT --write" in facts(out)["next"]
    code, out, _ = colibri(tmp_path, "status", "--json")
    assert (code, json.loads(out)) == (
        0,
        {
            "exists": False,
            "project": str(tmp_path),
            "found_by": "--project names it",
            "gates_problem": None,
            "unrecorded": [],
            "path": str(path),
        },
    )
    assert list(tmp_path.iterdir()) == []


def test_a_ledger_without_records_says_so(tmp_path: Path, colibri: Printed) -> None:
    with opened(tmp_path):
        pass
    code, out, _ = colibri(tmp_path, "status")
    assert (code, facts(out)["records"]) == (0, "none yet")
    _, out, _ = colibri(tmp_path, "status", "--json")
    found = json.loads(out)
    assert (found["exists"], found["records"], found["head"]) == (True, 0, None)
    assert (found["last_seal"], found["last_activity"], found["open_calls"]) == (None, None, [])


@pytest.mark.parametrize(
    "command",
    [
        ["status"],
        ["status", "--json"],
        ["verify"],
        ["verify", "--json"],
        ["backup", "copy.db"],
        ["export", "--all", "-o", "log.json"],
        ["report", "S-1", "-o", "page.html"],
    ],
    ids=" ".join,
)
def test_a_head_is_handed_out_only_when_it_is_synced(
    tmp_path: Path, colibri: Printed, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    """docs/decisions/010: records that a power cut may take would make an honest log look cut."""
    engines.require_sqlite("the log of a file")
    sync, synced = os.fsync, []

    def fsync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if path.name.endswith("-wal"):
            synced.append(path)
            raise OSError(errno.EIO, "Input/output error")
        sync(descriptor)

    monkeypatch.chdir(tmp_path)
    with opened(tmp_path) as db:  # its commits are not synced
        story(Lab(db))
        monkeypatch.setattr(os, "fsync", fsync)
        code, out, err = colibri(tmp_path, *command)
    assert (code, out) == (75, "")
    assert "Input/output error" in err
    assert synced == [tmp_path / "data" / "colibri.db-wal"]
    assert [path.name for path in tmp_path.iterdir()] == ["data"], "nothing is left behind"


def test_the_status_has_all_that_matters(workshop: Workshop, colibri: Printed, engine: str) -> None:
    code, out, err = colibri(workshop.path, "status")
    assert (code, err) == (0, "")
    found = facts(out)
    if engine == "sqlite":
        size = workshop.path.joinpath("data/colibri.db").stat().st_size
        assert found["store"].startswith(f"{workshop.path}/data/colibri.db {size / 1024:.1f} KiB, ")
        assert found["store"].endswith("write-ahead log 0 B")
    else:
        assert "_writer" not in found["store"].split()[0], "the user is not a part of the name"
        assert ", primary, on this machine; " in found["store"]
        assert found["store"].endswith("_writer may read, write")
    assert found["records"] == str(workshop.last)
    assert found["head"] == workshop.head, "as --head takes it"
    assert found["activity"].endswith("audit_verify_chain")
    assert found["sessions"].startswith(f"1 open, 1 sealed {workshop.open}  “build it <img ")
    assert "  6 thoughts · 1 task cancelled · opened " in found["sessions"]
    assert found["last seal"].startswith(f"{workshop.sealed}  2 thoughts · 1 task done · ")
    assert found["root"] == workshop.seal["root"]
    assert found["tasks"] == "3, 1 can be worked on now INIT 1  DONE 1  CANCELLED 1"
    assert found["open calls"].startswith(f"1 #{workshop.last}  audit_verify_chain  2026-01-01T")
    assert found["open calls"].endswith("server 00000000")


def test_with_json_the_same_is_one_object(
    workshop: Workshop, colibri: Printed, engine: str
) -> None:
    """The shape that the help describes."""
    code, out, err = colibri(workshop.path, "status", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    seq, leaf = workshop.head.split(":")
    assert found["head"] == {"seq": int(seq), "leaf": leaf}
    if engine == "sqlite":
        assert found["path"] == str(workshop.path / "data" / "colibri.db")
        assert found["bytes"] > found["wal_bytes"] == 0
    else:
        server = found["server"]
        assert server["user"] == f"{server['schema']}_writer"
        assert (server["rights"], server["schema_version"]) == (["read", "write"], 5)
        assert (server["standby"], server["tls"], server["local"]) == (False, None, True)
        assert found["bytes"] > 0
    assert (found["sessions"]["open"], found["sessions"]["sealed"]) == (1, 1)
    (session,) = found["sessions"]["newest_open"]
    assert (session["session_id"], session["root"]) == (workshop.open, None)
    assert session["record_count"] == 6
    assert session["tasks"] == {"created": 0, "done": 0, "cancelled": 1}
    assert found["last_seal"]["tasks"] == {"created": 0, "done": 1, "cancelled": 0}
    assert found["last_seal"]["root"] == workshop.seal["root"]
    assert found["last_seal"]["finalized_at"] == workshop.seal["finalized_at"]
    assert found["tasks"] == {
        "total": 3,
        "ready": 1,
        "states": {
            **dict.fromkeys(("GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY"), 0),
            **{"INIT": 1, "DONE": 1, "CANCELLED": 1},
        },
    }
    (call,) = found["open_calls"]
    assert (call["seq"], call["tool"]) == (workshop.last, "audit_verify_chain")
    assert call["server"].startswith("00000000-")
    assert found["open_calls_after"] == 0
    assert found["log"].startswith("colibri/")
    assert found["last_activity"] == call["at"]


def test_beyond_a_handful_the_rest_is_counted(tmp_path: Path, colibri: Printed) -> None:
    with opened(tmp_path) as db:
        lab = story(Lab(db))
        for number in range(7):
            lab.start(f"more-{number}")
            with lab.calling("task_list", ends=False):
                pass
    _, out, _ = colibri(tmp_path, "status")
    found = facts(out)
    assert "… and 3 more open sessions: colibri sessions --open" in found["sessions"]
    assert "… and 2 more; --json names them" in found["open calls"]
    _, out, _ = colibri(tmp_path, "status", "--json")
    assert len(json.loads(out)["open_calls"]) == 7


def test_only_the_newest_records_are_searched_for_open_calls(
    workshop: Workshop, colibri: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no index of calls, and a status must not read a long log."""
    monkeypatch.setattr(status, "OPEN_CALLS_AMONG", 0)
    _, out, _ = colibri(workshop.path, "status", "--json")
    found = json.loads(out)
    assert (found["open_calls"], found["open_calls_after"]) == ([], workshop.last)


def test_a_terminal_breaks_hashes_by_itself_so_that_they_can_be_copied(
    workshop: Workshop, shown: Shown
) -> None:
    engines.require_sqlite("the address of a server may be longer than a line")
    text = shown(40, "status")
    assert f"head        {workshop.head}\n" in text
    assert f"root        {workshop.seal['root']}\n" in text
    others = [
        line
        for line in text.splitlines()
        if not line.startswith(("head", "root", "log", "project", "store"))
    ]
    assert max(map(len, others)) <= 40
    assert "ago)" in text


def test_sizes_are_readable() -> None:
    sizes = (0, 1023, 1024, 1536 * 1024, 5 * 1024**3, 3 * 1024**4)
    assert [status._bytes(size) for size in sizes] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "1.5 MiB",
        "5.0 GiB",
        "3,072.0 GiB",
    ]


def test_an_erasure_is_named_as_that(tmp_path: Path, colibri: Printed) -> None:
    with opened(tmp_path) as db:
        lab = Lab(db)
        lab.start()
        lab.think()
        lab.erase(*lab.seqs("thought"))
    _, out, _ = colibri(tmp_path, "status")
    assert "erased record 5: “asked for”" in facts(out)["activity"]
    assert "1 thought · opened " in out
