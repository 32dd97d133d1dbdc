"""Colibri's own skills: the calls in their text are made, exactly as written, to a real server."""

import json
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from colibri.core.skills import between_fences, parse
from tests.support.client import COLIBRI, JSON, TESTS, Server, execute

ROOT = TESTS.parent
SKILLS = {path.parent.name: path for path in (ROOT / "plugin" / "skills").glob("*/SKILL.md")}
PROGRAMS = {
    "colibri": [sys.executable, "-m", "colibri"],
    "python3 colibri_verify.py": [sys.executable, str(ROOT / "src" / "colibri_verify.py")],
}
REFERENCE = (ROOT / "docs" / "tools.md").read_text(encoding="utf-8")
CATALOGUE = (ROOT / "src" / "colibri" / "tools" / "catalogue.json").read_text(encoding="utf-8")
RECEIPT = {"log", "seq", "head"}
each_skill = pytest.mark.parametrize("name", sorted(SKILLS))


def text_of(name: str) -> str:
    return SKILLS[name].read_text(encoding="utf-8")


def blocks(name: str) -> list[tuple[str, str]]:
    """Language and text of every fenced block, in order."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", text_of(name), re.MULTILINE | re.DOTALL)


class Reader:
    """Does what a skill says, block by block; `<x>` is x of an earlier answer."""

    def __init__(self, server: Server, **given: Any) -> None:
        self.server = server
        self.known: dict[str, Any] = given
        self.answers: list[tuple[str, JSON]] = []

    def follow(self, name: str) -> None:
        for language, text in blocks(name):
            if language == "json":
                self._call(json.loads(text))
            else:
                assert language == "sh"
                for line in text.splitlines():
                    self._run(line)

    def _call(self, params: JSON) -> None:
        assert params.keys() == {"name", "arguments"}
        arguments = {key: self._filled(value) for key, value in params["arguments"].items()}
        result = self.server.call(params["name"], **arguments)
        assert result["isError"] is False, result
        data = result["structuredContent"]["data"]
        self.answers.append((params["name"], data))
        self.known |= {key: value for key, value in data.items() if isinstance(value, str | int)}
        if params["name"] == "merkle_finalize":
            self.known |= result["_meta"]["colibri/receipt"]

    def _filled(self, value: Any) -> Any:
        if isinstance(value, str) and (found := re.fullmatch(r"<(\w+)>", value)):
            return self.known[found[1]]
        return value

    def _run(self, line: str) -> None:
        line = re.sub(r"<(\w+)>", lambda found: str(self.known[found[1]]), line)
        (program,) = [known for known in PROGRAMS if line.startswith(f"{known} ")]
        done = execute(
            [*PROGRAMS[program], *shlex.split(line.removeprefix(program))], cwd=self.server.project
        )
        assert done.returncode == 0, done.stdout + done.stderr
        self.answers.append((program, {"stdout": done.stdout}))

    def last(self, tool: str) -> JSON:
        return [data for name, data in self.answers if name == tool][-1]


def follow(project: Path, check: Callable[[Reader], None], *names: str) -> None:
    with Server(project, COLIBRI) as server:
        reader = Reader(server)
        for name in names:
            reader.follow(name)
        check(reader)
        assert server.data("audit_verify_chain")["valid"] is True


def test_working_a_task_ends_in_done(tmp_path: Path) -> None:
    def check(reader: Reader) -> None:
        task = reader.last("task_update")
        assert (task["status"], task["holder"]) == ("DONE", None)
        (held,) = reader.last("task_next_actions")["tasks"]
        assert (held["task_id"], held["holder"]) == ("T-0001", reader.known["session_id"])
        moves = [data["status"] for name, data in reader.answers if name == "task_update"]
        assert moves == ["APPLY", "DONE"]
        assert reader.last("audit_session_start")["resumed"] is True
        assert reader.last("task_get")["status"] == "DONE"
        thoughts = reader.server.data("thought_record_list", task_id="T-0001")["records"]
        assert [thought["agent_id"] for thought in thoughts] == ["agent-1"] * 3

    follow(tmp_path, check, "colibri-tasks")


def test_a_trail_has_a_thought_of_every_type(tmp_path: Path) -> None:
    def check(reader: Reader) -> None:
        records = reader.last("thought_record_list")["records"]
        assert [r["type"] for r in records] == ["plan", "analysis", "decision", "reflection"]
        assert {r["agent_id"] for r in records} == {"agent-1"}
        lists = [data for name, data in reader.answers if name == "thought_record_list"]
        assert "backups would be simpler" in str(lists[0]["records"])

    follow(tmp_path, check, "colibri-trail")


def test_sealed_evidence_is_exported_and_verified(tmp_path: Path) -> None:
    def check(reader: Reader) -> None:
        assert reader.last("audit_verify_chain")["valid"] is True
        assert reader.last("merkle_root")["proof"]["thought_id"] == reader.known["thought_id"]
        verdict = reader.last("python3 colibri_verify.py")["stdout"]
        assert "sealed" in verdict

    follow(tmp_path, check, "colibri-evidence")


def test_evidence_of_others_is_reviewed_from_the_file_and_in_the_project(tmp_path: Path) -> None:
    """The review begins with the result of the hand-over."""

    def check(reader: Reader) -> None:
        assert reader.last("audit_verify_chain")["valid"] is True
        assert reader.last("merkle_root")["root"] == reader.last("merkle_finalize")["root"]
        assert reader.last("thought_record_list")["total_count"] == 1
        assert reader.last("task_list")["total_count"] == 1

    follow(tmp_path, check, "colibri-tasks", "colibri-evidence", "colibri-review")


def test_a_wrong_call_in_a_skill_would_be_noticed(tmp_path: Path) -> None:
    """Negative control."""
    with Server(tmp_path, COLIBRI) as server:
        reader = Reader(server)
        with pytest.raises(AssertionError, match="INVALID_PARAMS"):
            reader._call({"name": "task_create", "arguments": {"titel": "x"}})
        with pytest.raises(KeyError, match="session_id"):
            reader._call({"name": "merkle_finalize", "arguments": {"session_id": "<session_id>"}})
        with pytest.raises(AssertionError, match="there is no session"):
            reader._run("colibri export --session S-000000000000 -o x.colibri.json")


def test_there_is_a_skill_for_each_part_of_the_work() -> None:
    assert sorted(SKILLS) == [
        "colibri-evidence",
        "colibri-review",
        "colibri-tasks",
        "colibri-trail",
    ]


@each_skill
def test_a_skill_is_short_and_says_when_to_use_it(name: str) -> None:
    skill = parse(between_fences(SKILLS[name].read_bytes()), name)
    assert skill.canonical
    assert "Use it " in skill.description
    assert (skill.license, skill.extra) == ("Apache-2.0", {})
    assert skill.capabilities
    assert len(text_of(name)) < 4_000


@each_skill
def test_a_skill_names_only_existing_tools_fields_and_codes(name: str) -> None:
    """In its prose; a wrong name in a block would have failed above."""
    prose = re.sub(r"^```.*?^```$", "", text_of(name), flags=re.MULTILINE | re.DOTALL)
    named = re.findall(r"`(ERR_\w+|[a-z]+(?:_[a-z]+)*)`", prose)
    assert named
    for word in named:
        assert f"`{word}`" in REFERENCE or f'"{word}"' in CATALOGUE or word in RECEIPT, word
