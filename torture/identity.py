"""Identity: SQLite's files are deleted, moved, replaced or linked while two servers use them.

Each round does one such thing to one of the three files, at a random moment between the calls of
two servers; the second may start before or after it. Then either everything acknowledged is in the
ledger, or the server that acknowledged it reported what happened to its files, or the next start
refuses to open them.
"""

import shutil
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from colibri.core.errors import ColibriError
from colibri.store.verify import verify
from tests.support.client import COLIBRI, JSON, Server
from tests.support.faulty import program
from tests.support.ledger_reader import missing, reading
from torture import ControlFailed, Lab, Trial, Violation

BELIEVER = program("believes-its-files")
CONTROL_ROUNDS = 60
CALLS = 12
FILES = ("", "-wal", "-shm")
SAID = ("SAFE_MODE integrity", "while the server had it open", "cannot open")


def _move(file: Path) -> None:
    file.rename(file.with_name(f"moved-{file.name}"))


def _replace(file: Path) -> None:
    copy = file.with_name(f"{file.name}.copy")
    shutil.copyfile(file, copy)
    copy.rename(file)


def _leave_a_link(file: Path) -> None:
    away = file.with_name(f"moved-{file.name}")
    file.rename(away)
    file.symlink_to(away.name)


def _move_all(file: Path) -> None:
    """Move the database and the other two, and leave a link to the database."""
    folder = file.parent / "elsewhere"
    folder.mkdir()
    database = file.parent / "colibri.db"
    for end in FILES:
        name = f"{database.name}{end}"
        (file.parent / name).rename(folder / name)
    database.symlink_to(folder / database.name)


ACTS: dict[str, Callable[[Path], None]] = {
    "deleted": Path.unlink,
    "moved": _move,
    "replaced": _replace,
    "linked": lambda file: file.with_name(f"second-{file.name}").hardlink_to(file),
    "link left": _leave_a_link,
    "all moved, link left": _move_all,
}


class Round:
    """Two servers, and one action on their files."""

    def __init__(self, project: Path, program: Sequence[str], random: Random) -> None:
        self.project = project
        self.database = project / "data" / "colibri.db"
        self.act, self.end = random.choice(list(ACTS)), random.choice(FILES)
        self._program = program
        self._random = random
        self.acknowledged: dict[Server, list[JSON]] = {}
        self.lost = 0

    def play(self) -> None:
        """Raises Violation if something acknowledged is lost and no server reports it."""
        moment, second = self._random.randrange(1, CALLS), self._random.randrange(1, CALLS)
        deed = threading.Timer(self._random.uniform(0, 0.02), self._act)
        servers = [self._start()]
        try:
            for number in range(CALLS):
                if number == moment:
                    deed.start()
                if number == second:
                    servers.append(self._start())
                self._call(self._random.choice(servers), f"call {number}")
            self._random.shuffle(servers)
            deed.join()
            for server in servers:
                server.close()
        finally:
            for server in servers:
                server.__exit__(None, None, None)
        self._judge(servers)

    def _act(self) -> None:
        ACTS[self.act](self.database.with_name(f"colibri.db{self.end}"))

    def _start(self) -> Server:
        server = self._server(self._program)
        self.acknowledged[server] = []
        return server

    def _server(self, program: Sequence[str]) -> Server:
        """Started with the database's path: at the default path a link would already be refused."""
        path = str(self.database)
        return Server(self.project, program, COLIBRI_STARTUP_TIMEOUT_MS="300", COLIBRI_DB_PATH=path)

    def _call(self, server: Server, title: str) -> None:
        result = server.call("task_create", title=title)
        if receipt := result.get("_meta", {}).get("colibri/receipt"):
            self.acknowledged[server].append(receipt)

    def _judge(self, servers: list[Server]) -> None:
        refused = self._next_start_refuses()
        for server, receipts in self.acknowledged.items():
            lost = len(receipts) if not self.database.exists() else self._lost(receipts)
            self.lost += lost
            if lost and not refused and not any(words in server.stderr for words in SAID):
                raise Violation(
                    f"{self.database.name}{self.end} {self.act}: {lost} of {len(receipts)}"
                    " acknowledged calls are lost, and nobody said so"
                )
        if not refused and self.database.exists():
            self._verify(any(words in server.stderr for server in servers for words in SAID))

    def _next_start_refuses(self) -> bool:
        with self._server(COLIBRI) as server:
            failed = bool(server.call("task_create", title="the next start")["isError"])
            server.close()
        return failed

    def _lost(self, receipts: list[JSON]) -> int:
        try:
            return len(missing(self.database, receipts))
        except ColibriError:
            return len(receipts)

    def _verify(self, was_said: bool) -> None:
        with reading(self.database) as db:
            report = verify(db, pause=lambda: None)
        if not report.valid and not was_said:
            raise Violation(f"{self.end} {self.act}: the log is broken: {report.breaks[:3]}")


def control(lab: Lab) -> str:
    """Servers that do not check their files must fork the log."""
    for number in range(CONTROL_ROUNDS):
        try:
            played = Round(lab.fresh(f"believer-{number}"), BELIEVER, lab.random)
            played.act, played.end = "deleted", "-shm"  # a random choice would often be harmless
            played.play()
        except Violation as problem:
            return (
                f"servers that believe in their files are caught in round {number + 1} ({problem})"
            )
    raise ControlFailed(f"nothing was lost in {CONTROL_ROUNDS} rounds")


def run(lab: Lab) -> dict[str, object]:
    """Round after round, each on a new project."""
    seen: Counter[str] = Counter()
    for number in range(lab.count):
        project = lab.fresh(f"round-{number}")
        one = Round(project, COLIBRI, lab.random)
        one.play()
        seen["acknowledged calls"] += sum(len(receipts) for receipts in one.acknowledged.values())
        seen["lost with their file, and reported"] += one.lost
        shutil.rmtree(project)
        lab.say(f"{number + 1} of {lab.count} rounds")
    return {**seen, "lost without a word": 0}


TRIAL = Trial(
    name="identity",
    title="the database, its -wal or its -shm deleted, moved, replaced or linked under two servers",
    claim="nothing acknowledged is lost unless a server says what became of its files",
    unit="rounds",
    quick=6,
    full=500,
    minutes=15,
    control=control,
    run=run,
)
