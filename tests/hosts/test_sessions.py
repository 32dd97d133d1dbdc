"""A session in every real host, set up by `colibri setup --hooks` and played by a scripted model.

It opens a session of Colibri, claims a task, writes two files, runs a test that fails and one that
passes, commits, finishes the task and seals. Then the ledger holds what the agent said, what its
host saw it do, and what ties the two together. Specification 22.4.
"""

import hashlib
import json
import re
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

from tests.hosts.drive import HOSTS, PROGRAMS, Place, Run, Tools, run
from tests.hosts.model import Request, Turn, say
from tests.support.client import TESTS, execute

pytestmark = pytest.mark.slow

# Where a host lists our tools to the model at the start, and where it tells the server who calls.
LISTED = ("gemini", "copilot", "cline", "opencode")
TELLS_SESSION = ("claude-code", "codex", "copilot", "qwen")
TELLS_USE = ("claude-code", "codex")
# What hosts say of the two tests: the exit codes of one that fails and one that passes.
EXITS = {
    "claude-code": [3, 0],
    "codex": [None, None],
    "gemini": [3, None],  # it tells one that is not 0
    "copilot": [3, 0],
    "qwen": [3, 0],
    "cline": [3, None],  # the same
    "opencode": [3, 0],
}
QUICK = ("claude-code", "codex")
CLASSES = [*["mcp"] * 4, "edit", "edit", "run", "run", "run", "mcp", "mcp"]
TEST = 'grep -q "$1" a.txt || exit 3\n'
FAILS, PASSES = "sh check.sh beta", "sh check.sh alpha"
COMMIT = "git add a.txt b.txt && git -c user.name=a -c user.email=a@b.c commit -qm 'Two files'"
FILES = {"a.txt": "alpha\n", "b.txt": "beta\n"}


def story(name: str, tools: Tools, project: Path) -> list[Turn]:
    ours = tools.colibri
    plan = {"type": "plan", "content": "Write both, then test."}
    result = {"type": "reflection", "content": "Both are written; the test passes."}
    to_apply, to_done = ["GATHER", "ANALYZE", "PLAN", "APPLY"], ["VERIFY", "DONE"]
    return [
        [ours("audit_session_start", intent="Write two files", agent_id=f"{name}-agent")],
        [ours("task_create", title="Write two files")],
        [ours("task_next_actions", claim=True)],
        [ours("task_update", task_id="T-0001", status=to_apply, thought=plan)],
        *([tools.write(str(project / file), text)] for file, text in FILES.items()),
        [tools.run(FAILS)],
        [tools.run(PASSES)],
        [tools.run(COMMIT)],
        [ours("task_update", task_id="T-0001", status=to_done, thought=result)],
        lambda request: [ours("merkle_finalize", session_id=session_in(request))],
        [say("Done.")],
    ]


def session_in(request: Request) -> str:
    found = re.findall(r"S-[0-9a-f]{12}", request.text)
    assert found, "the model never saw the id of its session"
    return str(found[-1])


class Played(NamedTuple):
    name: str
    place: Place
    ran: Run

    def records(self, kind: str) -> list[dict[str, Any]]:
        lines = self.place.colibri("log", "--json", "--kind", kind).splitlines()
        return [json.loads(line) for line in lines]

    def deeds(self, *events: str) -> list[dict[str, Any]]:
        deeds = (one for one in self.records("deed") if one["payload"])
        return [one for one in deeds if one["payload"]["event"] in events]

    def ends(self) -> list[dict[str, Any]]:
        return self.deeds("tool.end", "tool.failed")

    @property
    def session(self) -> str:
        (one,) = json.loads(self.place.colibri("sessions", "--json"))["sessions"]
        return str(one["session_id"])


@pytest.fixture(scope="module", params=HOSTS)
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Played:
    name = str(request.param)
    place = Place.below(tmp_path_factory.mktemp(name))
    ready(place, name)
    ran = run(name, story(name, HOSTS[name].tools, place.project), place)
    assert ran.code == 0, ran.err[-2000:]
    return Played(name, place, ran)


def ready(place: Place, name: str) -> None:
    """A repository, and the host set up for it."""
    repository(place)
    place.colibri("setup", name, "--hooks", "--write")


def repository(place: Place) -> None:
    subprocess.run(["git", "init", "-q", str(place.project)], check=True, timeout=30)
    (place.project / ".gitignore").write_text("data/\n")
    (place.project / "check.sh").write_text(TEST)


def test_the_server_is_reached_and_the_model_sees_what_it_needs(played: Played) -> None:
    name, place, ran = played
    tools = next(request.tools for request in ran.requests if not request.is_aside)
    ours = [tool for tool in tools if tool.endswith(("task_create", "merkle_root"))]
    assert bool(ours) == (name in LISTED)
    assert ran.sent("T-0001"), "the id of the new task"
    enters = played.records("call.enter")
    assert len(enters) == CLASSES.count("mcp"), "every call arrived, once"
    for enter in enters:
        assert bool(enter["payload"]["host_session"]) == (name in TELLS_SESSION)
        assert bool(enter["payload"]["use"]) == (name in TELLS_USE)
    assert json.loads(place.colibri("sessions", "--json"))["sealed"] == 1


def test_every_tool_call_is_a_deed_in_order_bound_to_session_and_task(played: Played) -> None:
    ends = played.ends()
    assert [one["payload"]["class"] for one in ends] == CLASSES
    assert {one["payload"]["host"] for one in ends} == {played.name}
    assert len({one["payload"]["host_session"] for one in ends}) == 1
    # The end of the seal's own call comes after the seal, and so belongs to no session.
    assert [one["session"] for one in ends] == [*[played.session] * (len(CLASSES) - 1), None]
    assert "no end reported" not in played.place.colibri("trail"), "also not of that call"
    # The task is held from the claim on, until it is done.
    assert [one["task"] for one in ends[3:9]] == ["T-0001"] * 6


def test_exit_codes_are_what_the_host_tells(played: Played) -> None:
    fails, passes, _ = (one for one in played.ends() if one["payload"]["class"] == "run")
    assert [fails["payload"]["exit"], passes["payload"]["exit"]] == EXITS[played.name]


def test_files_have_the_digests_of_what_is_on_disk(played: Played) -> None:
    edits = [one for one in played.ends() if one["payload"]["class"] == "edit"]
    texts = {one["payload"]["of"]: one["payload"] for one in played.records("deed.text")}
    for edit, (name, text) in zip(edits, FILES.items(), strict=True):
        assert (played.place.project / name).read_text() == text
        digest = hashlib.sha256(text.encode()).hexdigest()
        (file,) = edit["payload"]["files"]
        assert (file["sha256"], file["size"]) == (digest, len(text))
        assert texts[edit["seq"]]["paths"] == [name]
    commands = [
        texts[one["seq"]]["command"] for one in played.ends() if one["payload"]["class"] == "run"
    ]
    assert commands == [FAILS, PASSES, COMMIT]


def test_both_verifiers_find_the_bundle_good(played: Played) -> None:
    place = played.place
    assert json.loads(place.colibri("verify", "--json"))["verdict"] == "good"
    bundle = place.home / "session.colibri.json"
    place.colibri("export", "--session", played.session, "-o", str(bundle))
    entries = [json.loads(line) for line in bundle.read_text().splitlines()]
    headers = [b64decode(one["header"]) for one in entries if "header" in one]
    assert sum(b'"kind":"deed"' in header for header in headers) >= len(CLASSES) - 1
    verifier = str(TESTS.parent / "src" / "colibri_verify.py")
    done = execute([sys.executable, "-I", verifier, bundle])
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    job = json.dumps({"job": "verify", "items": [{"path": str(bundle)}]})
    module = TESTS.parent / "src" / "colibri" / "web" / "verify.mjs"
    done = execute(["node", TESTS / "verify" / "batch.mjs", module], input=job)
    (verdict,) = json.loads(done.stdout)
    assert (verdict["verdict"], verdict["findings"]) == ("good", [])


def test_the_versions_are_those_of_the_documentation() -> None:
    page = (TESTS.parent / "docs" / "hosts.md").read_text(encoding="utf-8")
    for program in PROGRAMS.values():
        assert program["package"].rpartition("@")[2] in page


def test_the_plugin_brings_the_server_the_hooks_and_the_skills(tmp_path: Path) -> None:
    """In Claude Code, with nothing set up."""
    name, place = "claude-code", Place.below(tmp_path)
    repository(place)
    tools = HOSTS[name].tools._replace(ours="mcp__plugin_colibri_colibri__{}")
    plugin = str(TESTS.parent / "plugin")
    ran = run(name, story(name, tools, place.project), place, "--plugin-dir", plugin)
    assert ran.code == 0, ran.err[-2000:]
    assert [one["payload"]["class"] for one in Played(name, place, ran).ends()] == CLASSES
    for skill in (TESTS.parent / ".agents" / "skills").iterdir():
        assert ran.sent(f"colibri:{skill.name}")


# Nothing is harmed.


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", HOSTS)
def test_a_ledger_that_cannot_be_written_changes_nothing(name: str, tmp_path: Path) -> None:
    """The same exit code, and the same answers of tools to the model, as without hooks.

    Specification 22.5.
    """
    seen = {}
    for trouble in ("no hooks", "locked", *(["damaged"] if name in QUICK else [])):
        folder = tmp_path / trouble.replace(" ", "-")
        folder.mkdir()
        place = Place.below(folder)
        ready(place, name)
        place.colibri("add", "something to do")
        with _trouble(trouble, place, name):
            ran = run(name, plain_story(name, place.project), place)
        seen[trouble] = (ran.code, [_neutral(one, place) for one in ran.results()])
    assert seen["no hooks"][0] == 0
    assert len(seen["no hooks"][1]) == len(FILES) + 2
    assert all(one == seen["no hooks"] for one in seen.values())


@contextmanager
def _trouble(what: str, place: Place, name: str) -> Iterator[None]:
    path = place.project / "data" / "colibri.db"
    if what == "no hooks":
        place.colibri("setup", name, "--no-hooks", "--write")
        yield
    elif what == "locked":
        with closing(apsw.Connection(str(path))) as db:
            db.execute("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE")
            yield
    else:
        path.write_bytes(b"This is no database." * 1000)
        yield


def plain_story(name: str, project: Path) -> list[Turn]:
    tools = HOSTS[name].tools
    writes = [[tools.write(str(project / file), text)] for file, text in FILES.items()]
    return [*writes, [tools.run(FAILS)], [tools.run(PASSES)], [say("Done.")]]


def _neutral(text: str, place: Place) -> str:
    """Without what differs from run to run: places, ids and times."""
    text = text.replace(str(place.project), "PROJECT").replace(str(place.home), "HOME")
    return re.sub(r"Chunk ID: \w+|\d+(\.\d+)?", "0", text)
