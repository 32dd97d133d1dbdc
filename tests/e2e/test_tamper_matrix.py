"""What the server detects by itself, and what only a head or a witness from outside reveals."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from colibri.core import ledger as form
from colibri.core.ledger import Head
from colibri.core.rows import Row
from colibri.store import heads, ledger
from colibri.store.sqlite.connection import Connection
from colibri.store.sqlite.opening import open_reader
from colibri.store.verify import verify
from tests.support.client import COLIBRI, JSON, Server, environment, execute
from tests.support.ledger_writer import Lab, disable_triggers, no_pause, opened

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="it takes git")

Attack = Callable[["Scene"], None]
DATABASE = Path("data") / "colibri.db"


class Scene(NamedTuple):
    """A project whose server is down, an older copy of it, its client's receipts, and what was
    kept elsewhere: heads in the state directory, and a checkpoint at a git remote.
    """

    project: Path
    older: Path
    state: Path
    remote: Path
    receipts: dict[str, JSON]

    @property
    def database(self) -> Path:
        return self.project / DATABASE

    def seq(self, name: str) -> int:
        seq: int = self.receipts[name]["seq"]
        return seq

    def colibri(self, *arguments: str) -> tuple[int, JSON]:
        """A command as its user runs it, who has no state directory: exit code, and its JSON."""
        command = [*COLIBRI[:-1], *arguments, "--json"]
        done = execute(command, cwd=self.project, env=self._environment())
        return done.returncode, json.loads(done.stdout)

    def git(self, *arguments: str) -> None:
        who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        done = execute(["git", *who, *arguments], cwd=self.project, env=self._environment())
        assert done.returncode == 0, done.stderr

    def _environment(self) -> dict[str, str]:
        nowhere = str(self.project / "empty")
        return environment(HOME=nowhere, XDG_STATE_HOME=nowhere, GIT_CONFIG_NOSYSTEM="1")


class Client(Server):
    """A client that keeps the receipt of each call under a name."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene.project, COLIBRI, XDG_STATE_HOME=str(scene.state))
        self._receipts = scene.receipts

    def keep(self, name: str, tool: str, /, **arguments: Any) -> None:
        result = self.call(tool, **arguments)
        assert not result["isError"], result
        self._receipts[name] = result["_meta"]["colibri/receipt"]

    def seal_three_thoughts(self, session: str) -> None:
        self.keep(f"open {session}", "audit_session_start", intent="try", session_id=session)
        for number in range(3):
            thought = {"session_id": session, "type": "plan", "content": f"thought {number}"}
            self.keep(f"{session} {number}", "thought_record", **thought)
        self.keep(f"seal {session}", "merkle_finalize", session_id=session)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """Two sealed sessions, a task, two open sessions, a read; by the real server, in two runs."""
    new = tmp_path_factory.mktemp
    scene = Scene(new("project"), new("older"), new("state"), new("remote"), {})
    with Client(scene) as server:
        server.seal_three_thoughts("first")
        server.keep("task", "task_create", title="mend it")
        assert server.close() == 0
    shutil.copytree(scene.project / "data", scene.older / "data")
    with Client(scene) as server:
        server.seal_three_thoughts("second")
        server.keep("open third", "audit_session_start", intent="go on", session_id="third")
        server.keep("read", "task_list")
        server.keep("last", "audit_session_start", intent="and on", session_id="fourth")
        assert server.close() == 0
    (scene.project / ".gitignore").write_text("data/\nempty/\nstate/\n")
    scene.git("init", "-q", "--bare", str(scene.remote))
    for words in (
        ("init", "-q", "-b", "main"),
        ("add", "."),
        ("commit", "-q", "-m", "first"),
        ("remote", "add", "origin", str(scene.remote)),
    ):
        scene.git(*words)
    code, done = scene.colibri("witness", "--push")
    assert (code, done["pushed"]) == (0, "origin")
    return scene


@pytest.fixture
def scene(original: Scene, tmp_path: Path) -> Scene:
    """The same at a place of its own, and what was kept of it there."""
    for name in ("data", ".git"):
        shutil.copytree(original.project / name, tmp_path / name)
    shutil.copytree(original.state, tmp_path / "state")
    (kept,) = (tmp_path / "state").rglob("*.jsonl")
    kept.write_text(kept.read_text().replace(str(original.project), str(tmp_path)))
    return original._replace(project=tmp_path, state=tmp_path / "state")


@contextmanager
def intruder(scene: Scene) -> Iterator[Connection]:
    """A raw connection, without triggers."""
    db = Connection(str(scene.database))
    disable_triggers(db)
    yield db
    db.close()


def sql(*statements: str) -> Attack:
    """An attack in SQL, without constraints; :name is the seq of a receipt."""

    def attack(scene: Scene) -> None:
        names = {name.replace(" ", "_"): one["seq"] for name, one in scene.receipts.items()}
        with intruder(scene) as db:
            db.execute("PRAGMA ignore_check_constraints = ON")
            for statement in statements:
                db.execute(statement, names)

    return attack


def forged(db: Connection, head: Head, *, at: str, call: str, kind: str, body: bytes) -> None:
    """Write a well-formed record after a head, over any existing one."""
    nonce, seq = bytes(32), head.seq + 1
    payload = form.commitment(nonce, body)
    row = Row(seq, at, kind, call, None, None, None, payload, nonce, body, leaf=b"", prev=head.leaf)
    row = row._replace(leaf=form.leaf(row.header(ledger.log_id(db))))
    db.execute("DELETE FROM ledger WHERE seq = ?", (seq,))
    db.execute("INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)


def reforge_the_last(scene: Scene) -> None:
    """The newest record, rewritten with another content."""
    with intruder(scene) as db:
        row = Row._make(db.execute("SELECT * FROM ledger ORDER BY seq DESC LIMIT 1").get)
        body = (row.body or b"").replace(b'"duration_ms":', b'"duration_ms":9')
        row = row._replace(body=body, payload=form.commitment(row.nonce or b"", body))
        leaf = form.leaf(row.header(ledger.log_id(db)))
        db.execute("DELETE FROM ledger WHERE seq = ?", (row.seq,))
        marks = ", ".join("?" * len(row))
        db.execute(f"INSERT INTO ledger VALUES ({marks})", row._replace(leaf=leaf))


def put_back(scene: Scene) -> None:
    """Replace the database by an old backup."""
    shutil.rmtree(scene.project / "data")
    shutil.copytree(scene.older / "data", scene.project / "data")


def rewrite_everything(scene: Scene) -> None:
    """Another history of the same log, longer than the true one."""
    shutil.rmtree(scene.project / "data")
    log = scene.receipts["last"]["log"]
    with opened(scene.project, log=log) as db:
        lab = Lab(db, log)
        lab.start("first", intent="something nobler")
        for _ in range(40):
            lab.think("first", "I always meant well")
        lab.seal("first")
        assert lab.head().seq > scene.seq("last")


def cut(name: str, *also: str) -> Attack:
    """Remove everything after a receipt, with all rows that would reveal it."""
    after = f"(SELECT seq FROM ledger WHERE seq > :{name})"
    return sql(
        f"DELETE FROM merkle_nodes WHERE session IN"
        f" (SELECT session_id FROM sessions WHERE open_seq > :{name})",
        f"UPDATE thought_counts SET n = n - (SELECT count(*) FROM thoughts WHERE seq > :{name})",
        f"DELETE FROM thoughts WHERE seq IN {after}",
        f"DELETE FROM sessions WHERE open_seq IN {after}",
        f"DELETE FROM ledger WHERE seq > :{name}",
        *also,
    )


# Detected by the server itself: the attack, and the first finding.
SEEN: dict[str, tuple[Attack, str]] = {
    "edit a payload": (
        sql(
            "UPDATE ledger SET body = CAST(replace(CAST(body AS TEXT), 'thought', 'doubts')"
            " AS BLOB) WHERE seq = :second_1 - 1"
        ),
        "altered-payload",
    ),
    "edit any column of a record": (
        sql("UPDATE ledger SET agent = 'bob' WHERE seq = :second_1"),
        "altered-header",
    ),
    "delete in the middle": (
        sql("DELETE FROM ledger WHERE seq = :second_1"),
        "missing-record",
    ),
    "swap in the middle": (
        sql(
            "UPDATE ledger SET seq = 999 WHERE seq = :second_1",
            "UPDATE ledger SET seq = :second_1 WHERE seq = :second_2",
            "UPDATE ledger SET seq = :second_2 WHERE seq = 999",
        ),
        "altered-header",
    ),
    "delete a payload": (
        sql("UPDATE ledger SET nonce = NULL, body = NULL WHERE seq = :second_1"),
        "missing-payload",
    ),
    "put a record before the first": (
        sql(f"INSERT INTO ledger SELECT 0, {', '.join(Row._fields[1:])} FROM ledger WHERE seq = 1"),
        "bad-header",
    ),
    "edit what a tool shows of a session": (
        sql("UPDATE sessions SET intent = 'something nobler' WHERE session_id = 'first'"),
        "altered-session",
    ),
    "replace it with something that is not text": (
        sql("UPDATE sessions SET session_id = CAST(x'ff' AS TEXT) WHERE session_id = 'third'"),
        "altered-session",
    ),
    "edit what a tool shows of a thought": (
        sql("UPDATE thoughts SET type = 'reflection' WHERE seq = :second_1 - 1"),
        "altered-session",
    ),
    "edit what a tool shows of a task": (
        sql("UPDATE tasks SET title = 'something nobler'"),
        "altered-task",
    ),
    "edit a seal's tree": (
        sql("UPDATE merkle_nodes SET hash = zeroblob(32) WHERE session = 'first' AND level = 1"),
        "altered-session",
    ),
    "double the last leaf of a tree": (
        sql(
            "INSERT INTO merkle_nodes SELECT session, level, 3, hash FROM merkle_nodes"
            " WHERE session = 'first' AND level = 0 AND idx = 2"
        ),
        "altered-session",
    ),
    "open a sealed session again": (
        sql(
            "UPDATE sessions SET root = NULL, seal_seq = NULL, finalized_at = NULL"
            " WHERE session_id = 'first'"
        ),
        "altered-session",
    ),
    "cut the tail and forget the rows": (
        sql("DELETE FROM ledger WHERE seq > :task"),
        "altered-session",
    ),
    "claim another log": (
        sql("UPDATE meta SET value = 'colibri/' || hex(zeroblob(16))"),
        "altered-header",
    ),
}

# What the chain cannot detect without an external head, and the finding with one.
UNSEEN: dict[str, tuple[Attack, str]] = {
    "cut the last call off the tail": (cut("read"), "truncated"),
    "cut the tail with the last sealed session": (cut("task"), "truncated"),
    "rewrite the last record": (reforge_the_last, "head-differs"),
    "put an old backup back": (put_back, "truncated"),
    "rewrite everything": (rewrite_everything, "head-differs"),
}


def verdict(scene: Scene, state: Path | None = None) -> JSON:
    """What the server finds, with what a state directory holds; else with an empty one."""
    home = str(state or scene.project / "empty")
    with Server(scene.project, COLIBRI, XDG_STATE_HOME=home) as server:
        found = server.data("audit_verify_chain")
        assert server.close() == 0
    return found


def breaks_with_heads(scene: Scene) -> list[str]:
    """What is found with the heads of the state directory."""
    with closing(open_reader(str(scene.database))) as db:
        log = scene.receipts["last"]["log"]
        kept = heads.read(str(scene.state / "colibri"), log, heads.here(str(scene.database)))
        assert kept.found
        return [broken.what for broken in verify(db, witnesses=kept, pause=no_pause).breaks]


def breaks_with_git(scene: Scene, *, fetched: bool = False) -> list[str]:
    """What `colibri verify` finds with the pushed checkpoint alone: as this repository has it, or
    after all of it was deleted here and fetched again."""
    if fetched:
        shutil.rmtree(scene.project / ".git" / "refs" / "colibri")
        code, found = scene.colibri("witness", "list", "--fetch")
        assert (code, [one["remote"] for one in found["witnesses"]]) == (0, ["origin"])
    code, found = scene.colibri("verify")
    assert (code, found["verdict"]) == ((1, "bad") if found["findings"] else (0, "good"))
    kept = [(one["kind"], one["remote"]) for one in found["witnesses"] or ()]
    assert kept in ([("ref", "origin")], [])
    return [one["code"] for one in found["findings"]]


def noted(found: JSON) -> list[str]:
    """What was not checked, by its codes."""
    return [note["code"] for note in found["not_checked"]]


def breaks_with_head(scene: Scene) -> list[str]:
    last = scene.receipts["last"]
    with closing(open_reader(str(scene.database))) as db:
        head = Head(last["seq"], bytes.fromhex(last["head"]))
        return [broken.what for broken in verify(db, head=head, pause=no_pause).breaks]


def test_an_untouched_log_is_valid_and_says_what_it_cannot_know(scene: Scene) -> None:
    """The harness must be able to pass."""
    assert breaks_with_head(scene) == breaks_with_heads(scene) == breaks_with_git(scene) == []
    assert scene.colibri("verify")[1]["held_to"] == scene.seq("last")
    found = verdict(scene)
    assert (found["valid"], found["breaks"], noted(found)) == (True, [], ["outside-head"])
    assert (found["witnesses"], found["held_to"]) == ([], None)
    assert found["newer"] == found["head"]["seq"]


def test_what_is_newer_than_the_newest_witness_is_counted(scene: Scene) -> None:
    """Specification 24.7: it can be cut off unnoticed, and the verdict says how much that is."""
    held = verdict(scene, scene.state)["held_to"]  # up to the end of the server before
    with Server(scene.project, COLIBRI, XDG_STATE_HOME=str(scene.project / "empty")) as server:
        server.data("task_create", title="seen by no witness")
        assert server.close() == 0
    found = verdict(scene, scene.state)
    assert (found["valid"], found["held_to"]) == (True, held + 2)  # its own call, at its end
    assert found["newer"] == found["head"]["seq"] - found["held_to"] > 0


@pytest.mark.parametrize(("attack", "what"), SEEN.values(), ids=SEEN.keys())
def test_the_server_detects_by_itself(scene: Scene, attack: Attack, what: str) -> None:
    """What the chain, the comparison of columns and the seals catch without help."""
    attack(scene)
    assert what in breaks_with_head(scene)
    assert what in breaks_with_git(scene)
    assert what in breaks_with_heads(scene)
    found = verdict(scene)
    assert found["valid"] is False
    assert found["broken_count"] >= 1
    assert found["breaks"][0]["what"] == what


@pytest.mark.parametrize(("attack", "what"), UNSEEN.values(), ids=UNSEEN.keys())
def test_only_what_was_kept_outside_reveals(scene: Scene, attack: Attack, what: str) -> None:
    """Specification 24.6: missed without a witness, and the answer says so; seen with one."""
    attack(scene)
    assert breaks_with_head(scene)[0] == what
    assert breaks_with_git(scene) == breaks_with_git(scene, fetched=True) == ["diverged"]
    assert set(breaks_with_heads(scene)) == {"diverged"}
    seen = verdict(scene, scene.state)
    assert (seen["valid"], seen["breaks"][0]["what"]) == (False, "diverged")
    found = verdict(scene)
    assert (found["valid"], found["breaks"]) == (True, [])
    assert noted(found) == ["outside-head"]


def test_a_verdict_lists_the_first_hundred_open_calls_and_counts_them_all(scene: Scene) -> None:
    """Specification 5.18, 9.8: reported as open; a truncated list says so."""
    server = "00000000-0000-4000-8000-00000000c01b"
    said = (
        f'{{"arguments":{{}},"client":null,"host_session":null,"server":"{server}",'
        '"sha256":null,"size":null,"tool":"task_get","use":null}'
    )
    at = "2026-01-01T00:00:00.000000Z"
    with intruder(scene) as db:
        for number in range(120):
            head = ledger.head(db)
            assert head is not None
            call = f"00000000-0000-4000-8000-{number:012x}"
            forged(db, head, at=at, call=call, kind="call.enter", body=said.encode())
    found = verdict(scene)
    assert (found["valid"], found["open_call_count"]) == (True, 120)
    first = scene.seq("last") + 1
    assert [call["seq"] for call in found["open_calls"]] == list(range(first, first + 100))
    told = {"seq": first, "tool": "task_get", "server": server, "at": at}
    assert found["open_calls"][0] == {**told, "call": "00000000-0000-4000-8000-000000000000"}
