"""What the report derives from a bundle, under Node, compared with what Python reads from it."""

import json
import re
import shutil
import subprocess
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.naive_tree import NaiveTree
from tests.vectors import builder

JSON = dict[str, Any]
ROOT = Path(__file__).resolve().parents[2]
GOOD = sorted((ROOT / "tests" / "vectors" / "good").iterdir())
STORY = ROOT / "tests" / "vectors" / "good" / "log-two-tasks-retry-dependency.colibri.json"
SESSION = ROOT / "tests" / "vectors" / "good" / "session-with-tasks.colibri.json"
FORMATS = (ROOT / "docs" / "formats.md").read_text("utf-8")

Node = Callable[[str, list[Any]], list[Any]]


@pytest.fixture(scope="module")
def node() -> Node:
    """node(job, items): one process for a whole batch."""
    program = shutil.which("node")
    if program is None:
        pytest.skip("node is not installed: the report's derivations were not tested")

    def run(job: str, items: list[Any]) -> list[Any]:
        script = str(Path(__file__).with_name("derive.mjs"))
        question = json.dumps({"job": job, "items": items})
        done = subprocess.run(
            [program, script], input=question, capture_output=True, encoding="utf-8", check=False
        )
        assert done.returncode == 0, done.stderr
        answers: list[Any] = json.loads(done.stdout)
        return answers

    return run


@pytest.fixture(scope="module")
def models(node: Node) -> list[tuple[JSON, JSON]]:
    """Each good vector, and what was derived from it."""
    derived = node("derive", [str(path) for path in GOOD])
    return list(
        zip([builder.bundle_from(path.read_bytes()) for path in GOOD], derived, strict=True)
    )


def bodies(bundle: JSON) -> dict[int, JSON]:
    """Seq → the payload, of those that are there."""
    items = bundle["payloads"].items()
    return {int(seq): json.loads(b64decode(item["body"])) for seq, item in items}


def test_every_record_is_in_exactly_one_entry_and_every_gap_is_shown(
    models: list[tuple[JSON, JSON]],
) -> None:
    for bundle, model in models:
        there = [header["seq"] for header in builder.headers(bundle)]
        told = sorted(seq for entry in model["entries"] for seq in entry["records"])
        assert told == there
        gaps = [entry for entry in model["entries"] if entry["type"] == "gap"]
        missing = {seq for gap in gaps for seq in range(gap["first"], gap["last"] + 1)}
        assert missing == set(range(1, there[-1])) - set(there)


def test_entries_come_in_the_order_in_which_they_took_effect(
    models: list[tuple[JSON, JSON]],
) -> None:
    for _, model in models:
        seqs = [entry["seq"] for entry in model["entries"]]
        assert seqs == sorted(seqs)


def test_an_entry_is_what_its_records_say(models: list[tuple[JSON, JSON]]) -> None:
    """Thoughts, changes, calls and refusals, each counted from the payloads alone."""
    for bundle, model in models:
        headers = {header["seq"]: header for header in builder.headers(bundle)}
        payloads = bodies(bundle)
        if not any(header["kind"] == "call.enter" for header in headers.values()):
            continue  # single thoughts have no calls around them
        types = [entry["type"] for entry in model["entries"]]
        exits = [body for seq, body in payloads.items() if headers[seq]["kind"] == "call.exit"]
        refused = [body for body in exits if body["outcome"] != "ok"]
        shown = {entry["seq"] for entry in model["entries"] if entry["type"] == "thought"}
        thoughts = {seq for seq, header in headers.items() if header["kind"] == "thought"}
        assert types.count("refused") == len(refused)
        assert shown == {seq for seq in thoughts if seq in payloads or seq in _erased(payloads)}
        changes = [seq for seq in payloads if headers[seq]["kind"] == "task"]
        created = [seq for seq in changes if payloads[seq]["version"] == 1]
        moved = {seq for seq in changes if "status" in payloads[seq]["set"]} - {*created}
        explained = {headers[seq]["call"] for seq in shown}  # those moves are under a thought
        assert types.count("creation") == len(created)
        assert types.count("move") == len({headers[seq]["call"] for seq in moved} - explained)


def _erased(payloads: dict[int, JSON]) -> set[int]:
    return {seq for body in payloads.values() for seq in body.get("seqs", ())}


def test_tasks_end_as_their_records_leave_them(models: list[tuple[JSON, JSON]]) -> None:
    seen = 0
    for bundle, model in models:
        wanted: dict[str, JSON] = {}
        for _, body in sorted(bodies(bundle).items()):
            if "set" in body:
                task = wanted.setdefault(body["task_id"], {})
                task |= {name: now for name, (_, now) in body["set"].items()}
                task["attempt"] = body.get("attempt", task.get("attempt", 1))
        assert [task["id"] for task in model["tasks"]] == sorted(wanted)
        sealed = {session["id"] for session in model["sessions"] if session["seal"]}
        for task in wanted.values():  # a claim ends with its task, and with its session
            if task.get("status") in {"DONE", "CANCELLED"} or task.get("holder") in sealed:
                task["holder"] = None
        for task in model["tasks"]:
            assert {name: task[name] for name in wanted[task["id"]]} == wanted[task["id"]]
            seen += 1
    assert seen > 10


def test_the_story_is_derived_as_it_was_played(node: Node) -> None:
    """tests/vectors/honest.py, story(): two tasks, a retry, two sessions, refusals."""
    (model,) = node("derive", [str(STORY)])
    first, second = model["tasks"]
    assert (first["title"], first["assignee"], first["attempt"]) == ("a better title", "ada", 2)
    assert (second["depends_on"], second["status"]) == (["T-0001"], "DONE")
    retried = [step["status"] for step in first["path"]]
    forward = ["GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY"]
    assert retried == ["INIT", *forward, *forward, "DONE"]
    assert [(session["id"], session["seal"] is None) for session in model["sessions"]] == [
        ("other", True),
        ("S-0123456789ab", False),
    ]
    refused = [entry for entry in model["entries"] if entry["type"] == "refused"]
    assert [(entry["tool"], entry["outcome"], entry["code"]) for entry in refused] == [
        ("task_update", "refused", "ERR_WRITEBACK_REQUIRED"),
        ("merkle_root", "refused", "ERR_NOT_FINALIZED"),
        ("no_such_tool", "invalid", "-32602"),
    ]
    assert refused[0]["met"] == {
        "status": "VERIFY",
        "attempt": 1,
        "waiting": [],
        "holder": None,
    }
    assert "no thought about the task had been recorded" in refused[0]["reason"]
    assert refused[1]["title"] == "Tried to ask for the seal"
    assert {agent["name"] for agent in model["agents"]} == {"agent-7", None}


def test_a_session_bundle_discloses_only_the_position_of_other_work(node: Node) -> None:
    (model,) = node("derive", [str(SESSION)])
    hidden = [entry for entry in model["entries"] if entry["type"] == "hidden"]
    assert {entry["task"] for entry in hidden} == {None, "T-0001", "T-0002"}
    assert all(entry["tool"] is None for entry in hidden)
    # The other session's thoughts are of no concern, though their headers are here.
    assert [session["id"] for session in model["sessions"]] == ["S-0123456789ab"]


def test_a_search_finds_what_payloads_and_headers_say(node: Node) -> None:
    path = str(STORY)
    better, refused, agent, nothing = node(
        "search",
        [[path, "a better title"], [path, "err_writeback"], [path, "agent-7"], [path, "zebra"]],
    )
    assert (len(better), len(refused), nothing) == (1, 1, [])
    assert len(agent) == 5


def test_a_head_covers_what_is_linked_to_it_and_leaves_the_rest(node: Node) -> None:
    """docs/formats.md §11: a header beyond a gap is linked to nothing."""
    given, wanted = [], []
    for path in GOOD:
        seqs = [header["seq"] for header in builder.headers(builder.bundle_from(path.read_bytes()))]
        for head in (seqs[0], seqs[len(seqs) // 2], seqs[-1]):
            given.append([str(path), {"root": None, "head": {"seq": head}}])
            wanted.append(_split(seqs, [head]))
    assert [_both(found) for found in node("coverage", given)] == wanted


def test_a_root_covers_its_thoughts_and_what_is_linked_before_them(node: Node) -> None:
    given, wanted = [], []
    for path in GOOD:
        bundle = builder.bundle_from(path.read_bytes())
        headers, payloads = builder.headers(bundle), bodies(bundle)
        session = {header["seq"]: header["session"] for header in headers}
        for seal in builder.seals(bundle):
            thoughts = [h["seq"] for h in headers if h["kind"] == "thought"]
            sealed = [seq for seq in thoughts if session[seq] == session[seal]]
            given.append([str(path), {"root": payloads[seal]["root"], "head": None}])
            wanted.append(_split(list(session), sealed))
    assert len(given) > 10
    assert [_both(found) for found in node("coverage", given)] == wanted


def _split(seqs: list[int], ends: list[int]) -> tuple[list[int], list[int]]:
    """From each of the ends down to the next gap; and the others."""
    covered: set[int] = set()
    for end in ends:
        seq = end
        while seq in seqs and seq not in covered:
            covered.add(seq)
            seq -= 1
    return sorted(covered), [seq for seq in seqs if seq not in covered]


def _both(found: JSON) -> tuple[list[int], list[int]]:
    covered, left = (
        [seq for first, last in found[name] for seq in range(first, last + 1)]
        for name in ("covered", "left")
    )
    return covered, left


def test_ranges_of_records_are_worded_briefly(node: Node) -> None:
    many = [[number, number + 1] for number in range(10, 70, 10)]
    assert node("stretches", [[[7, 7]], [[1, 4], [9, 9]], many]) == [
        "record 7",
        "records 1 to 4 and 9",
        "records 10 to 11, 20 to 21, 30 to 31, 40 to 41 and 2 other stretches",
    ]


def test_the_ways_to_the_root_are_those_of_the_format(node: Node) -> None:
    """docs/formats.md §4, for every leaf of every tree up to 40, by its definition."""
    cases = [[size, index] for size in range(1, 41) for index in range(size)]
    for (size, index), parts in zip(cases, node("path", cases), strict=True):
        leaves = [bytes([number]) for number in range(size)]
        wanted = NaiveTree(leaves).inclusion(index)
        assert [builder.merkle(leaves[first:last]) for first, last in parts] == wanted


def test_the_root_is_computed_from_all_thoughts_or_from_their_proofs(node: Node) -> None:
    found = node("roots", [str(path) for path in GOOD])
    seals = 0
    for path, roots in zip(GOOD, found, strict=True):
        bundle = builder.bundle_from(path.read_bytes())
        payloads = bodies(bundle)
        seals_here = [payloads[seq]["root"] for seq in builder.seals(bundle)]
        assert set(roots.values()) <= set(seals_here)
        assert len(roots) == len(seals_here) - len(_of_holders(bundle))
        seals += len(roots)
    assert seals > 10


def _of_holders(bundle: JSON) -> list[int]:
    """The seals of sessions that only held a task: their thoughts are not here."""
    headers = {header["seq"]: header for header in builder.headers(bundle)}
    thought = [one["session"] for one in headers.values() if one["kind"] == "thought"]
    return [seq for seq in builder.seals(bundle) if headers[seq]["session"] not in thought]


def test_a_tree_of_any_size_is_shown_in_few_lines_that_cover_it(node: Node) -> None:
    cases = [[size, 0, size] for size in (*range(1, 70), 1_000, 10_000, 1_000_000)]
    cases += [[10_000, 4096, 4112], [10_000, 9999, 10_000], [33, 32, 33]]
    for (size, first, last), lines in zip(cases, node("outline", cases), strict=True):
        assert [line[0] for line in lines] == [0, *[line[1] for line in lines[:-1]]]
        assert lines[-1][1] == size
        assert len(lines) <= 32
        if size <= 32:
            assert len(lines) == size
        if last - first == 1:
            assert [first, last] in lines


def test_what_is_around_a_leaf_holds_it_and_is_small(node: Node) -> None:
    cases = [[10_000, index] for index in (0, 1, 4095, 4096, 8191, 8192, 9998, 9999)] + [[1, 0]]
    for (_, index), part in zip(cases, node("around", cases), strict=True):
        assert part["first"] <= index < part["last"] <= part["first"] + 8


def test_a_task_stands_in_the_column_after_all_that_it_waits_for(node: Node) -> None:
    given = {"a": [], "b": ["a"], "c": ["a", "b"], "d": ["elsewhere"], "x": ["y"], "y": ["x"]}
    (places,) = node("place", [given])
    columns = {task: column for task, (column, _) in places}
    assert columns["a"] < columns["b"] < columns["c"]
    assert columns["d"] == 0
    assert len({tuple(at) for _, at in places}) == len(given)  # a cycle, too, has its places


def test_a_root_and_a_head_are_recognised_among_other_input(node: Node) -> None:
    leaf = "0a" * 32
    texts = [leaf, f" {leaf.upper()} ", f"17:{leaf}", "", f"017:{leaf}", f"{leaf}0", "0x12", "17:"]
    receipts = [f'{{"log": "c", "seq": 17, "{name}": "{leaf}"}}' for name in ("head", "leaf")]
    root, upper, head, nothing, *wrong = node("outside", texts)
    assert node("outside", [*receipts, f'{{"root": "{leaf}"}}']) == [head, head, root]
    assert set(node("outside", ["{}", "[]", "null", "17", '{"seq": 17}'])) == {"undefined"}
    assert root == upper == {"root": leaf, "head": None}
    assert head == {"root": None, "head": {"seq": 17, "leaf": leaf}}
    assert nothing == "null"
    assert set(wrong) == {"undefined"}


def test_every_code_of_the_format_has_its_words(node: Node) -> None:
    """docs/formats.md §10 and §11."""
    (codes,) = node("codes", [None])
    table = FORMATS.split("## 10")[1].split("## 11")
    found = re.findall(r"`([a-z-]+)`", table[0].split("A line says")[0].split("|---|---|")[1])
    assert sorted(codes[0]) == sorted(found)
    assert codes[1] == re.findall(r"^\| `([a-z-]+)`", table[1], re.MULTILINE)


def test_a_finding_names_its_record(node: Node) -> None:
    findings = [
        {"code": "altered-payload", "seq": 7, "detail": "x"},
        {"code": "missing-record", "seq": None, "detail": "the opening is not there"},
        {"code": "malformed-bundle", "seq": None, "detail": "x"},
        {"code": "new-in-a-later-version", "seq": 3, "detail": "something else"},
    ]
    assert node("finding", findings) == [
        "Record 7 has content that was altered: it is not what was recorded",
        "The evidence: the opening is not there",
        "The evidence is not in the format of a bundle",
        "Record 3: something else",
    ]


def test_what_is_invisible_is_written_out_and_nothing_is_cut_in_half(node: Node) -> None:
    texts = [["a\u202eb", 300], ["a\nb\t c", 300], ["🐦" * 10, 5], ["\u200b" * 100, 12]]
    assert node("plain", texts) == ["aU+202Eb", "a b  c", "🐦🐦…", "U+200B U+200…"]


def test_a_time_is_shown_once(node: Node) -> None:
    noon, later, tomorrow = (
        f"2026-03-{at}.000005Z" for at in ("01T12:00:00", "01T12:00:07", "02T09:00:00")
    )
    assert node("span", [[noon, noon], [noon, later], [noon, tomorrow]]) == [
        "1 March 2026, 12:00:00 UTC",
        "1 March 2026, 12:00:00 to 12:00:07 UTC",
        "1 March 2026, 12:00:00 to 2 March 2026, 09:00:00 UTC",
    ]
