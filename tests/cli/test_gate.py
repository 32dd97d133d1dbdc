"""`colibri gate check`, and what `status` and `doctor` say of a project's rules."""

import json
from pathlib import Path

import pytest

from tests.support import engines
from tests.support.client import COLIBRI, Server
from tests.support.observed import HOST, run
from tests.support.program import colibri

RULE = '[gate.done]\ncommand = "pytest*"\n[gate.edit]\nstate = "APPLY"\n'
STEPS = ("GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Tasks in VERIFY: one of an agent whose host reports, one of nobody; and one that is new."""
    with Server(tmp_path, COLIBRI, CLAUDE_CODE_SESSION_ID=HOST) as server:
        server.data("audit_session_start", intent="work", brief=False)
        for title in ("a", "b", "c"):
            server.data("task_create", title=title)
        for task in ("T-0001", "T-0002"):
            server.data("task_update", task_id=task, status=list(STEPS))
        server.data("task_update", task_id="T-0002", claim=False)
    return tmp_path


def test_it_says_of_each_task_in_verify_whether_it_could_be_done(project: Path) -> None:
    """Specification 21.7."""
    (project / "colibri.toml").write_text(RULE, encoding="utf-8")
    code, out, _ = colibri(project, "gate", "check")
    assert code == 1
    assert "needs `pytest*` with exit code 0, begun after the last edit" in out
    assert "need a task in APPLY or later" in out
    assert "no command of this session was seen" in out
    assert "no session holds it" in out
    assert "T-0003" not in out
    seq = run(project, "pytest -q")
    code, out, _ = colibri(project, "gate", "check", "T-0001")
    assert (code, f"record {seq}" in out) == (0, True)
    code, out, _ = colibri(project, "gate", "check", "--json")
    said = json.loads(out)
    first, second = said["tasks"]
    assert code == 1
    assert said["done"] == {"command": "pytest*", "exit": 0, "after_last_edit": True}
    assert said["edit"] == {"state": "APPLY"}
    assert (first["allowed"], first["evidence"], first["problem"]) == (True, seq, None)
    assert (second["allowed"], second["reason"], second["session_id"]) == (False, "missing", None)
    code, out, _ = colibri(project, "gate", "check", "T-0003", "--json")
    assert (code, json.loads(out)["tasks"][0]["status"]) == (1, "INIT")


def test_without_rules_nothing_is_refused(project: Path) -> None:
    """Specification 21.7."""
    code, out, _ = colibri(project, "gate", "check")
    assert (code, "none: there is no" in out, "no rule" in out) == (0, True, True)
    (project / "colibri.toml").write_text("", encoding="utf-8")
    code, out, _ = colibri(project, "gate", "check")
    assert (code, "needs no command" in out, "are free" in out) == (0, True, True)
    assert colibri(project, "move", "T-0003", "CANCELLED", "--why", "not needed")[0] == 0
    code, out, _ = colibri(project, "gate", "check", "T-0003")
    assert (code, "no task is in VERIFY" in out) == (0, True)


def test_a_project_without_a_ledger_has_only_its_file_checked(tmp_path: Path) -> None:
    """Specification 21.7."""
    engines.require_sqlite("a ledger that the first server makes")
    (tmp_path / "colibri.toml").write_text(RULE, encoding="utf-8")
    assert colibri(tmp_path, "gate", "check")[0] == 0
    assert colibri(tmp_path, "gate", "check", "T-0001")[0] == 75
    assert not (tmp_path / "data").exists()


def test_every_command_that_reads_the_project_reports_a_broken_file(project: Path) -> None:
    """Specification 21.6."""
    (project / "colibri.toml").write_text("[gate.done]\ncomand = 'x'\n", encoding="utf-8")
    where = f"{project}/colibri.toml: line 2: comand is not known"
    code, out, _ = colibri(project, "gate", "check")
    assert (code, "comand is not known" in out, "the rules cannot be read" in out) == (
        1,
        True,
        True,
    )
    assert json.loads(colibri(project, "gate", "check", "--json")[1])["problem"].startswith(where)
    assert json.loads(colibri(project, "status", "--json")[1])["gates_problem"].startswith(where)
    assert "until then no task can be DONE" in colibri(project, "status")[1]
    code, out, _ = colibri(project, "doctor", "--json")
    (gates,) = [one for one in json.loads(out)["findings"] if one["check"] == "gates"]
    assert (code, gates["status"]) == (1, "problem")
    assert gates["detail"].startswith(where)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (RULE, "DONE needs `pytest*` with exit code 0, begun after the last edit; edits need a"),
        ("", "DONE needs no command; edits are free"),
        (None, "the project has no rules"),
    ],
)
def test_doctor_says_which_rules_hold(tmp_path: Path, text: str | None, said: str) -> None:
    """Specification 21.7."""
    if text is not None:
        (tmp_path / "colibri.toml").write_text(text, encoding="utf-8")
    findings = json.loads(colibri(tmp_path, "doctor", "--json")[1])["findings"]
    (gates,) = [one for one in findings if one["check"] == "gates"]
    assert (gates["status"], gates["detail"].startswith(said)) == ("ok", True), gates
