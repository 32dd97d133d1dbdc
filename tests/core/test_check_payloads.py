"""core/check: payloads that types alone do not refuse, and calls that make what no tool makes."""

import json
from typing import Any

import pytest

from colibri.core.check import kinds
from colibri.core.check.rows import Columns
from colibri.core.check.rules import Rules
from colibri.core.ledger import digest_of
from colibri.core.report import MAX_LISTED, TASKS, Findings
from colibri.core.rows import Row

SERVER = CALL = "00000000-0000-4000-8000-000000000000"
ENTER: dict[str, Any] = {
    **{"client": "agent 1", "host_session": None, "use": None},
    **{"server": SERVER, "sha256": None, "size": None, "tool": "task_update"},
}
EXIT: dict[str, Any] = {
    **{"code": None, "duration_ms": 1, "enter": 1, "outcome": "ok", "repeats": None},
    **{"result_sha256": None, "tool": "task_update"},
}
AT = "2026-01-01T00:00:00.000000Z"
DIGEST = digest_of("one")
NESTED = {"deep": {"er": [1, {"est": True}]}}


def row(seq: int, kind: str, payload: dict[str, Any], task: str | None = None) -> Row:
    body = json.dumps(payload, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    return Row(seq, AT, kind, CALL, None, task, None, b"", b"", body, b"", b"")


def enter(arguments: dict[str, Any] | None, **others: Any) -> Row:
    return row(1, "call.enter", {**ENTER, "arguments": arguments, **others})


@pytest.mark.parametrize(
    "arguments",
    [
        *({}, {"title": None}, {"title": DIGEST}, NESTED, {"title": DIGEST, **NESTED}),
        *({"thought": None}, {"thought": {"content": DIGEST, "type": "plan"}}),
        {"thought": {"content": DIGEST, "of": NESTED}},
    ],
)
def test_arguments_may_nest_and_a_text_is_a_digest(arguments: dict[str, Any]) -> None:
    assert kinds.read(Columns.of(enter(arguments))) is not None


@pytest.mark.parametrize(
    "bad",
    [
        enter({"title": "one"}),
        enter({"title": "one", **NESTED}),
        enter({"title": {**DIGEST, "more": 1}}),
        enter({"title": {**DIGEST, "sha256": "0"}}),
        enter({"limit": 1.5}),
        enter({"deep": [[2**53]]}),
        enter({"naïve": 1}),
        enter(None),
        enter(None, size=1),
        enter({}, size=1, sha256="0" * 64),
        enter({}, server="nobody"),
        enter({}, client="x" * 129),
        enter({}, host_session=1),
        enter({"thought": {"content": "one", "type": "plan"}}),
        enter({"thought": {"content": {**DIGEST, "type": "plan"}}}),
        row(1, "session.resume", {"server": "nobody"}, None),
        row(1, "call.exit", {**EXIT, "repeats": 0}),
        row(1, "task.text", {"set": {}, "task_id": "T", "version": 1}, "T"),
        row(1, "call.exit", {**EXIT, "code": "ERR"}),
    ],
    ids=lambda bad: bad.body.decode(),
)
def test_what_is_not_made_like_its_kind_is_refused(bad: Row) -> None:
    assert kinds.read(Columns.of(bad)) is None
    good = enter({})
    assert kinds.read(Columns._make(zip(good, bad, strict=True))) is None


def test_one_payload_cannot_pass_for_two() -> None:
    one = enter({})
    assert one.body is not None
    double, none = (one._replace(body=body) for body in (one.body + b"\n" + one.body, b""))
    assert kinds.read(Columns._make(zip(double, none, strict=True))) is None
    assert kinds.read(Columns.of(double)) is None


def broken(*rows: Row) -> list[tuple[int | None, str]]:
    found = Findings()
    columns = Columns._make(zip(*rows, strict=True))
    said = kinds.read(columns)
    assert said is not None
    Rules(found).take(rows, columns, said)
    return [(seq, code) for seq, code, _ in found.listed()[1]]


def texts(seq: int, version: int, **changed: list[str | None]) -> Row:
    return row(seq, "task.text", {"set": changed, "task_id": "T", "version": version}, "T")


def test_a_text_that_a_call_names_and_leaves_is_compared_with_the_current_one() -> None:
    given = {"title": digest_of("two"), "description": digest_of("other")}
    change = texts(2, 1, title=[None, "two"])
    ended = row(3, "call.exit", EXIT)
    assert broken(enter(given), change, ended) == [(2, "bad-creation")]
    given["title"] = digest_of("three")
    assert (1, "wrong-digest") in broken(enter(given), change, ended)


def test_a_call_that_writes_more_than_any_tool_is_reported_at_once() -> None:
    changes = [texts(seq, seq, title=[None, str(seq)]) for seq in range(2, 13)]
    found = broken(enter({}), *changes, row(13, "call.exit", EXIT))
    assert (12, "stray-change") in found


def test_of_many_findings_the_first_are_listed_and_all_are_counted() -> None:
    found = Findings()
    for seq in range(MAX_LISTED + 7):
        found.note(TASKS, seq, "wrong-version")
    count, listed = found.listed()
    assert (count, [one.seq for one in listed]) == (MAX_LISTED + 7, [*range(MAX_LISTED)])
