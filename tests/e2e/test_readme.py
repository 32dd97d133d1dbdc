"""What a newcomer copies from the README works."""

import json
import re
import shutil
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.support.client import COLIBRI, TESTS, Server, environment, execute, execute_raw
from tests.support.committer import Committer
from tests.support.ledger_writer import LOG

ROOT = TESTS.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_client_configuration_starts_the_server(tmp_path: Path) -> None:
    """README, "Add it to your client": pasted into a client, with the path of the clone."""
    (text,) = blocks("json")
    entry = json.loads(text.replace("/path/to/colibri", str(ROOT)))["mcpServers"]["colibri"]
    server = StdioServerParameters(
        command=entry["command"], args=entry["args"], cwd=tmp_path, env=environment()
    )

    async def session() -> None:
        with anyio.fail_after(60), (tmp_path / "stderr").open("w") as errlog:
            async with Client(stdio_client(server, errlog=errlog)) as client:
                tools = await client.list_tools()
                assert "server_ping" in [tool.name for tool in tools.tools]
                result = await client.call_tool("server_health", {})
                assert isinstance(result.structured_content, dict)
                path = result.structured_content["data"]["db"]["path"]
                assert path == str(tmp_path / "data" / "colibri.db")

    anyio.run(session)


def test_the_commands_to_try_by_hand_answer(tmp_path: Path) -> None:
    """README, "Where it keeps things": the printf line, run from another directory."""
    (script,) = [block for block in blocks("sh") if "printf" in block]
    script = script.replace("scripts/colibri", str(ROOT / "scripts" / "colibri"))
    done = execute_raw(["sh", "-c", script], cwd=tmp_path)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == [1, 2]
    task = answers[1]["result"]["structuredContent"]["data"]
    assert (task["task_id"], task["title"], task["status"]) == ("T-0001", "Try it", "INIT")


def test_the_evidence_is_verified_as_it_says(tmp_path: Path) -> None:
    """README, "Verify without trusting us": with the root and the head that the seal printed."""
    with Server(tmp_path, COLIBRI) as server:
        session = server.data("audit_session_start", intent="try")["session_id"]
        server.data("thought_record", session_id=session, type="plan", content="so")
    (script,) = [block for block in blocks("sh") if "colibri_verify.py" in block]
    known: dict[str, str] = {}
    for line in script.splitlines():
        command = (
            re.sub("^colibri ", f"{ROOT}/scripts/colibri ", line)
            .replace("src/colibri", f"{ROOT}/src/colibri")
            .replace("S-0123456789ab", session)
            .replace("SEQ:HEX", known.get("head", ""))
            .replace("SIZE:HEX", known.get("root", ""))
        )
        done = execute(["sh", "-c", command], cwd=tmp_path)
        assert (line, done.returncode, done.stderr) == (line, 0, "")
        known |= dict(
            re.findall(r"^(root|head) +([0-9]+:[0-9a-f]{64})$", done.stdout, re.MULTILINE)
        )
    assert known.keys() == {"root", "head"}


QUESTIONS = json.loads((TESTS / "data" / "readme_questions.json").read_text("utf-8"))


@pytest.mark.parametrize("asked", QUESTIONS, ids=lambda asked: str(asked["question"]))
def test_it_answers_what_a_newcomer_asks(asked: dict[str, str]) -> None:
    """The questions for fresh readers; the passage with each answer must not get lost."""
    assert asked["from"] in " ".join(README.split())
    assert asked["answer"]


def test_it_begins_with_what_it_is_for_and_a_picture() -> None:
    opening = README.partition("## ")[0]
    assert len(opening.split()) < 120
    (picture,) = re.findall(r"!\[[^]]{20,}\]\(([^)]+)\)", opening)
    assert (ROOT / picture).read_bytes().startswith(b"\x89PNG")
    assert (ROOT / picture).stat().st_size < 200_000


@pytest.mark.skipif(shutil.which("git") is None, reason="it takes git")
def test_a_newcomer_gets_to_a_pushed_witness_that_verify_names(tmp_path: Path) -> None:
    """README, "Keep a witness outside": in a project of theirs that has a remote."""
    ann = Committer(tmp_path)
    ann.remote()
    (script,) = [block for block in blocks("sh") if "witness --push" in block]
    said = {}
    for line in script.splitlines():
        command = f"{ROOT}/scripts/{line}"
        done = execute(["sh", "-c", command], cwd=ann.project, env=ann.environment())
        assert (line, done.returncode, done.stderr) == (line, 0, "")
        said[line.split()[1]] = done.stdout
    commit = ann.refs()[ann.tracking(LOG)]
    promised = re.findall('"(held to record .*)"', script)[0]
    told = promised.replace("1a2b3c4d5e", commit[:10])
    assert told in " ".join(said["verify"].split())
    assert (ann.project / ".git" / "hooks" / "pre-push").exists()
