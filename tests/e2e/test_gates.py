"""Gates through the real server: DONE only after the command that the rule requires was seen."""

import fcntl
import json
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

import pytest

import colibri_verify
from colibri.hook import spool
from colibri.store.deeds import Arrival, Deed
from tests.support import engines
from tests.support.client import COLIBRI, JSON, Server
from tests.support.ledger_reader import reading
from tests.support.ledger_writer import DEED
from tests.support.observed import HOST, edit, observe, run
from tests.support.program import colibri, database_of
from tests.support.task_client import refusal

RULE = '[gate.done]\ncommand = "pytest*"\nexit = 0\nafter_last_edit = true\n'
WHY = {"thought": {"type": "reflection", "content": "it works"}}
BODIES = "SELECT body FROM ledger WHERE kind = ? ORDER BY seq"
LATE = "2026-01-01T00:00:00.000000Z"


@contextmanager
def at_work(project: Path, rule: str | None = RULE) -> Iterator[Server]:
    """An agent with a task in VERIFY, in a session whose host reports deeds."""
    if rule is not None:
        (project / "colibri.toml").write_text(rule, encoding="utf-8")
    with Server(project, COLIBRI, CLAUDE_CODE_SESSION_ID=HOST) as server:
        server.data("audit_session_start", intent="work", brief=False)
        server.data("task_create", title="t")
        steps = ["GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY"]
        server.data("task_update", task_id="T-0001", status=steps)
        yield server


def done(server: Server) -> JSON:
    return server.call("task_update", task_id="T-0001", status="DONE", **WHY)


def refused(server: Server) -> JSON:
    error = refusal(done(server))
    assert error["code"] == "ERR_GATE", error
    assert server.data("task_get", task_id="T-0001")["status"] == "VERIFY"
    return error


def test_done_is_refused_until_the_command_was_seen(tmp_path: Path) -> None:
    """Specification 21.1, 21.2 and 21.9: and task_get says before that what is missing."""
    with at_work(tmp_path) as server:
        error = refused(server)
        assert error["reason"] == "missing"
        assert "`pytest*` with exit code 0" in error["message"]
        assert "no command of this session was seen" in error["message"]
        (action,) = server.data("task_next_actions")["tasks"]
        wanted = action["needs"]["DONE"]
        assert wanted == server.data("task_get", task_id="T-0001")["needs"]["DONE"]
        assert wanted[1].startswith(
            "`pytest*` with exit code 0, begun after the last edit, seen by"
        )
        assert "no command of this session was seen" in wanted[1]
        told = json.loads(colibri(tmp_path, "tasks", "T-0001", "--json")[1])
        assert told["needs"]["DONE"] == wanted
        observe(tmp_path, command="ls", exit=0)
        assert "not among the last 64 commands" in refused(server)["message"]
        seq = run(tmp_path, "pytest -q tests")
        needs = server.data("task_get", task_id="T-0001")["needs"]["DONE"]
        assert needs == ["a thought about this attempt"]
        moved = done(server)
        assert moved["structuredContent"]["data"]["status"] == "DONE"
        report = server.data("audit_verify_chain")
        assert report["valid"], report
    assert f"`pytest*` with exit 0 seen in #{seq}" in colibri(tmp_path, "trail")[1]
    digest = sha256(RULE.encode()).hexdigest()
    with reading(database_of(tmp_path)) as db:
        said = [json.loads(body) for (body,) in db.execute(BODIES, ("task",))]
        (opened,) = [json.loads(body) for (body,) in db.execute(BODIES, ("session.open",))]
    rule = {"command": "pytest*", "exit": 0, "after_last_edit": True}
    assert [one["gate"] for one in said if "gate" in one] == [
        {**rule, "digest": digest, "evidence": [seq]}
    ]
    assert opened["gates"] == digest


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("failed", "ended with exit code 1"),
        ("operator", "it has a shell operator"),
        ("older", "began before the last edit (record {edit})"),
        ("late", "was reported late"),
        ("no-exit", "has no exit code"),
    ],
)
def test_insufficient_evidence_is_refused_with_the_reason(
    tmp_path: Path, reason: str, words: str
) -> None:
    """Specification 21.2 and 21.3: a failed run, one with an operator, one before the last edit, a
    late one, one from a host without exit codes; then the right one passes."""
    with at_work(tmp_path) as server:
        command = "pytest -q || true" if reason == "operator" else "pytest -q"
        exit = {"failed": 1, "no-exit": None}.get(reason, 0)
        seq = run(tmp_path, command, exit, late=LATE if reason == "late" else None)
        edited = edit(tmp_path) if reason == "older" else None
        error = refused(server)
        assert (error["reason"], error["found"], error["last_edit"]) == (reason, seq, edited)
        assert words.format(edit=edited) in error["message"]
        assert f"record {seq}" in error["message"]
        run(tmp_path, "pytest -q")
        assert done(server)["structuredContent"]["data"]["status"] == "DONE"
        assert server.data("audit_verify_chain")["valid"]


@pytest.mark.parametrize(
    "command",
    [
        "pytest; true",
        "pytest & wait",
        "pytest | cat",
        "pytest\ntrue",
        "pytest $(touch x)",
        "pytest `touch x`",
        "pytest > /dev/null",
        "pytest < /dev/null",
        "(pytest)",
        "pytest " + "x" * 4096,
        "pytest --token=[redacted:token]",
    ],
)
def test_a_truncated_command_or_one_with_an_operator_is_not_evidence(
    tmp_path: Path, command: str
) -> None:
    """Specification 21.3."""
    with at_work(tmp_path) as server:
        run(tmp_path, command[:4096])
        assert refused(server)["reason"] in ("operator", "missing")


def test_a_late_edit_counts_and_an_edit_while_the_command_ran_too(tmp_path: Path) -> None:
    """Specification 21.2."""
    with at_work(tmp_path) as server:
        run(tmp_path, "pytest")
        late = edit(tmp_path, late=LATE)
        assert refused(server)["last_edit"] == late
        observe(tmp_path, event="tool.begin", use="u", command="pytest")
        edited = edit(tmp_path)
        observe(tmp_path, use="u", command="pytest", exit=0)
        assert refused(server)["last_edit"] == edited


def test_of_a_host_without_ids_a_command_counts_if_it_ran_alone(tmp_path: Path) -> None:
    """Specification 21.2: a doubtful case never passes."""
    with at_work(tmp_path) as server:
        edit(tmp_path)
        for _ in range(2):
            observe(tmp_path, event="tool.begin", command="pytest")
        observe(tmp_path, command="pytest", exit=0)
        assert refused(server)["reason"] == "unknown-begin"
        observe(tmp_path, event="tool.begin", command="pytest")
        observe(tmp_path, command="pytest", exit=0)
        assert done(server)["structuredContent"]["data"]["status"] == "DONE"
        assert server.data("audit_verify_chain")["valid"]


def test_of_a_host_that_reports_no_begins_it_is_said_that_running_again_is_no_use(
    tmp_path: Path,
) -> None:
    """Specification 21.2: as Copilot CLI with the hooks that `setup` writes."""
    with at_work(tmp_path) as server:
        observe(tmp_path, host="copilot", command="pytest -q", exit=0)
        edited = observe(tmp_path, host="copilot", class_="edit", paths=("a.py",))
        for _ in range(2):
            seq = observe(tmp_path, host="copilot", command="pytest -q", exit=0)
            error = refused(server)
            assert (error["reason"], error["found"], error["last_edit"]) == (
                "no-begin",
                seq,
                edited,
            )
            assert "the hooks of copilot report only how commands end" in error["message"]
            assert "colibri move TASK DONE --why TEXT, or finish it on a host" in error["message"]
        observe(tmp_path, host="copilot", event="tool.begin", command="pytest -q")
        observe(tmp_path, host="copilot", command="pytest -q", exit=0)
        assert done(server)["structuredContent"]["data"]["status"] == "DONE"


def test_without_an_edit_a_begin_is_not_asked_for(tmp_path: Path) -> None:
    """Specification 21.2."""
    with at_work(tmp_path) as server:
        observe(tmp_path, host="copilot", command="pytest -q", exit=0)
        assert done(server)["structuredContent"]["data"]["status"] == "DONE"


def test_commands_of_another_session_or_of_none_prove_nothing(tmp_path: Path) -> None:
    """Specification 21.2."""
    with at_work(tmp_path) as server:
        run(tmp_path, "pytest", host_session="another")
        assert refused(server)["reason"] == "missing"


def test_cancelled_needs_no_command(tmp_path: Path) -> None:
    """Specification 21.1."""
    with at_work(tmp_path) as server:
        moved = server.data("task_update", task_id="T-0001", status="CANCELLED", **WHY)
        assert moved["status"] == "CANCELLED"


def test_without_a_file_there_is_no_gate(tmp_path: Path) -> None:
    """Specification 21.1."""
    with at_work(tmp_path, None) as server:
        assert done(server)["structuredContent"]["data"]["status"] == "DONE"
    with reading(database_of(tmp_path)) as db:
        for kind in ("task", "session.open"):
            assert not [one for (one,) in db.execute(BODIES, (kind,)) if b"gate" in one]


def test_a_person_sets_the_rule_aside_with_a_reason_and_the_record_says_so(tmp_path: Path) -> None:
    """Specification 21.5."""
    (tmp_path / "colibri.toml").write_text(RULE, encoding="utf-8")
    states = ("GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY")
    for command in (
        ("add", "t"),
        ("move", "T-0001", *states),
        ("note", "I looked at it", "--task", "T-0001"),
    ):
        assert colibri(tmp_path, *command)[0] == 0
    code, _, said = colibri(tmp_path, "move", "T-0001", "DONE")
    assert (code, "colibri.toml wants `pytest*`" in said, "--why TEXT" in said) == (1, True, True)
    assert colibri(tmp_path, "move", "T-0001", "DONE", "--why", "seen by hand")[0] == 0
    with reading(database_of(tmp_path)) as db:
        *_, last = [json.loads(body) for (body,) in db.execute(BODIES, ("task",))]
    assert (last["gate"]["waived"], last["gate"]["evidence"]) == (True, [])
    words = "VERIFY → DONE, waived by a person: `pytest*` with exit 0"
    for shown in ("trail --all", "trail T-0001", "log --kind task"):
        assert words in colibri(tmp_path, *shown.split())[1]
    assert colibri(tmp_path, "verify")[0] == 0


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("[gate.done\n", 1, "Expected"),
        ('\n[gate.done]\ncommand = "pytest"\nexitcode = 0\n', 4, "exitcode is not known"),
        ("[gate.done]\nexit = 0\n", 1, "command must be a pattern"),
    ],
)
def test_a_broken_file_lets_no_task_be_done_and_says_where_it_is_broken(
    tmp_path: Path, text: str, line: int, what: str
) -> None:
    """Specification 21.6: at the start, with each refusal."""
    with at_work(tmp_path, text) as server:
        error = refused(server)
        where = f"{tmp_path}/colibri.toml: line {line}: {what}"
        assert where in error["message"]
        assert error["reason"] == "unreadable"
        assert where in server.stderr
        run(tmp_path, "pytest")
        refused(server)
        (tmp_path / "colibri.toml").write_text(RULE, encoding="utf-8")
        refused(server)  # the rules read at the start apply until the end


def spooled(project: Path, **said: object) -> None:
    """A report that a hook could not record and kept for later."""
    deed = Deed(**{**DEED, "host_session": HOST, **said})
    arrival = Arrival(call=str(uuid4()), bind_call=str(uuid4()), at=LATE, late=None, lost=0)
    path = str(database_of(project))
    database_of(project).parent.mkdir(exist_ok=True)  # where a ledger is on a server
    assert spool.put(path, deed, arrival, lambda tries: tries < 100)


def test_what_hooks_could_not_record_is_recorded_before_a_rule_is_judged(tmp_path: Path) -> None:
    """Specification 21.2: a late edit counts, a late run does not."""
    with at_work(tmp_path) as server:
        run(tmp_path, "pytest")
        spooled(tmp_path, class_="edit", paths=("a.py",))
        assert refused(server)["reason"] == "older"
        spooled(tmp_path, command="pytest", exit=0)
        assert refused(server)["reason"] == "late"


def test_while_reports_wait_that_cannot_be_recorded_no_task_is_done(tmp_path: Path) -> None:
    """Specification 21.2: an edit may be among them."""
    with at_work(tmp_path) as server:
        run(tmp_path, "pytest")
        spooled(tmp_path, class_="edit", paths=("a.py",))
        with (tmp_path / "data" / "colibri.db-spool").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            error = refused(server)
            assert error["reason"] == "not-recorded"
            assert "colibri.db-spool" in error["message"]
        assert refused(server)["reason"] == "older"


def test_bundles_carry_the_evidence_and_say_what_they_cannot_show(tmp_path: Path) -> None:
    """Specification 21.4: a task bundle has the deed and its command; an erasure is reported."""
    with at_work(tmp_path) as server:
        edit(tmp_path)
        seq = run(tmp_path, "pytest -q")
        assert done(server)["structuredContent"]["data"]["status"] == "DONE"
        session = server.data("audit_session_start", intent="next", brief=False)["session_id"]
    path = tmp_path / "bundle.colibri.json"

    def verdict(*scope: str) -> JSON:
        path.unlink(missing_ok=True)
        assert colibri(tmp_path, "export", *scope, "-o", str(path))[0] == 0
        found = colibri_verify.verify(path.read_bytes()).as_json()
        assert (found["verdict"], found["findings"]) == ("good", [])
        return {note["code"]: note["detail"] for note in found["not_checked"]}

    assert "gate" not in verdict("--all")
    assert "gate" not in verdict("--session", first_session(tmp_path, but=session))
    assert "1 move" in verdict("--task", "T-0001")["gate"]
    kinds = [json.loads(b64decode(json.loads(line)["header"])) for line in records_of(path)]
    assert [(one["kind"], one["seq"]) for one in kinds if one["kind"].startswith("deed")] == [
        ("deed", seq),
        ("deed.text", seq + 1),
    ]
    may_erase = engines.environment(tmp_path, "eraser")
    asked = ("--reason", "asked", "--yes")
    assert colibri(tmp_path, "erase", str(seq + 1), *asked, **may_erase)[0] == 0
    assert "1 move" in verdict("--all")["gate"]
    code, said, _ = colibri(tmp_path, "verify")
    assert (code, "whose command is erased" in said) == (0, True)


def first_session(project: Path, *, but: str) -> str:
    with reading(database_of(project)) as db:
        return str(db.execute("SELECT session_id FROM sessions WHERE session_id <> ?", (but,)).get)


def records_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()[1:-2]
