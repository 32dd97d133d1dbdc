"""PostgreSQL killed, cut off, full, replaced or forbidding it, each with calls in flight.

Every task that a client asks for has its own title. What each was told is compared with what the
database has: nothing that was acknowledged is missing, nothing is there twice, and nothing that was
refused.
"""

import os
import queue
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from tests.support import cluster, network
from tests.support.client import COLIBRI, Server, environment
from tests.support.client import execute as run_program
from tests.support.cluster import Cluster, execute, make_schema, wait
from tests.support.far import Far
from tests.support.faulty import program
from tests.support.ledger_reader import condition, eventually
from tests.support.network import Machine, machines
from tests.support.terminal import COLIBRI as COMMAND
from tests.support.told import (
    QUIET,
    Told,
    break_in_flight,
    come_late,
    lose_answers,
    stop_with_lock,
)
from torture import ControlFailed, Lab, Trial, Violation, disk

SERVERS = 2
MANY = 50  # rounds of each, with which the trial is the full one
LONGEST, SHORT = 30.0, 6.0  # seconds without a network: of every tenth round, and of the others
STOPPED = 12.0  # seconds within which a stopped server is given up by the others
CONTROL_ROUNDS = 20


def needs() -> str:
    """Why it cannot run here, or ""."""
    return cluster.needs() or network.needs() or disk.needs()


class Place(NamedTuple):
    """Where a server of a scene runs, and its way to the database."""

    project: Path
    far: Far
    host: str
    machine: Machine | None


class Scene:
    """Two servers on one schema, each with its own way to the database. When a round has ended,
    both have to write again by themselves.
    """

    def __init__(self, lab: Lab, name: str, database: Cluster, chance: Random) -> None:
        self.directory = lab.fresh(name)
        self.schema = name.replace("-", "_")
        self.chance = chance
        self.database = database
        self.told = Told(database, make_schema(database, self.schema))
        self.servers: list[Server] = []
        self.places: list[Place] = []
        self.number = 0
        self.held_up = 0  # calls of a machine that has its network, while another has none

    def move_to(self, database: Cluster) -> None:
        """What was the standby is the primary now."""
        self.database = self.told.database = database
        for place in self.places:
            place.far.target = database.socket
            place.far.drop()

    @contextmanager
    def open(self, program: Any = COLIBRI, hosts: list[Machine] | None = None) -> Iterator["Scene"]:
        with ExitStack() as stack:
            for number in range(SERVERS):
                machine = hosts[number] if hosts else None
                host = machine.hub if machine else "127.0.0.1"
                far = stack.enter_context(Far(self.database.socket, hosts=(host,)))
                project = self.directory / str(number)
                project.mkdir()
                self.places.append(Place(project, far, host, machine))
            self.servers = [self._start(place, program) for place in self.places]
            try:
                yield self
            finally:
                for server in self.servers:
                    server.__exit__(None, None, None)

    def restart(self, number: int) -> Server:
        """A new server in the place of one that has ended, or is ended now."""
        self.servers[number].__exit__(None, None, None)
        self.servers[number] = self._start(self.places[number], COLIBRI)
        return self.servers[number]

    def _start(self, place: Place, program: Any) -> Server:
        command = place.machine.command(program) if place.machine else program
        surroundings: dict[str, Any] = QUIET | self.surroundings(place)
        return Server(place.project, command, **surroundings)

    def surroundings(self, place: Place) -> dict[str, str]:
        return {
            "COLIBRI_DB_URL": place.far.url(f"{self.schema}_writer", host=place.host),
            "COLIBRI_DB_SCHEMA": self.schema,
            "XDG_STATE_HOME": str(place.project / "state"),
        }

    def post(self, count: int = 5) -> list[tuple[Server, dict[Any, str]]]:
        """Calls in flight on every server."""
        return [(server, self.told.post(server, count)) for server in self.servers]

    def collect(self, posted: list[tuple[Server, dict[Any, str]]]) -> None:
        for server, ids in posted:
            self.told.collect(server, ids)

    def goes_on(self) -> None:
        """Every server writes again."""
        for server in self.servers:
            self.told.call_until_done(server)

    def refusal(self, server: Server, *words: str) -> None:
        """A call is refused with these words."""
        why = self.told.call(server)
        require(all(word in why for word in words), f"{words} expected, said was: {why!r}")


def require(holds: object, what: str) -> None:
    if not holds:
        raise Violation(what)


# The faults. Each is one round.


def database_killed(scene: Scene) -> None:
    posted = scene.post()
    wait(scene.chance.uniform(0, 0.06))
    scene.database.kill()
    wait(scene.chance.choice((0, 0, 1.0)))
    scene.database.start()
    scene.collect(posted)


def connection_broken(scene: Scene) -> None:
    posted = scene.told.post(scene.servers[1])
    break_in_flight(
        scene.told, scene.servers[0], scene.places[0].far, scene.chance.uniform(0, 0.06)
    )
    scene.told.collect(scene.servers[1], posted)


def answers_lost(scene: Scene) -> None:
    done = lose_answers(scene.told, scene.servers[0], scene.places[0].far, scene.number % 4)
    require(done, "what was committed and not answered was not found")


def questions_late(scene: Scene) -> None:
    """What was sent before the connection broke arrives when the outcome is looked up already."""
    come_late(
        scene.told,
        scene.servers[0],
        scene.places[0].far,
        scene.chance.randrange(3),
        scene.chance.uniform(0.3, 1.5),
    )


def server_stopped(scene: Scene) -> None:
    """While it holds the lock of the head."""
    holder, other = scene.servers
    scene.places[0].far.delay = 0.03  # each way: so long it is held
    posted = stop_with_lock(scene.told, holder)
    begun = time.monotonic()
    require(not scene.told.call(other), "another server was refused")
    took = time.monotonic() - begun
    holder.process.send_signal(signal.SIGCONT)
    require(took < STOPPED, f"a stopped server stopped another for {took:.0f} s")
    scene.told.collect(holder, posted)
    scene.places[0].far.delay = 0.0


def server_killed(scene: Scene) -> None:
    posted = scene.post()
    wait(scene.chance.uniform(0, 0.06))
    dead, ids = posted[0]
    dead.process.kill()
    scene.told.collect_of_dead(dead, ids)
    scene.collect(posted[1:])
    scene.restart(0)


def network_cut(scene: Scene) -> None:
    """One machine's cable is pulled out. If it held the lock, the other machine waits for that to
    end; if that takes too long, it is told to retry, and so it does. This is counted.
    """
    machine = scene.places[0].machine
    assert machine is not None
    seconds = scene.chance.uniform(1.0, SHORT)
    if scene.number % 10 == 9:
        seconds = LONGEST
    posted = scene.post()
    wait(scene.chance.uniform(0, 0.03))
    machine.cut()
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            why = scene.told.call(scene.servers[1])
            require(not why or "retry" in why, f"the other machine was refused: {why}")
            scene.held_up += bool(why)
            wait(0.2)
    finally:
        machine.restore()
    scene.collect(posted)


def standby_without_tail(scene: Scene) -> None:
    """It is promoted; whoever knew what it lacks must say so, and write nothing on top."""
    told, (one, other) = scene.told, scene.servers
    with _standby(scene) as standby:
        scene.goes_on()
        _caught_up(scene.database)
        with _sender_stopped(scene.database):
            known = {*told.done}
            scene.goes_on()
            _seal(one)
            scene.collect(scene.post(2))
            scene.database.kill()
        standby.promote()
        tail = [title for title in told.done if title not in known]
        old = scene.database
        scene.move_to(standby)
        for server in (one, other):
            scene.refusal(server, "is missing or differs", "restart to continue")
            state = condition(server)
            require(state == ("SAFE_MODE", "integrity"), f"it is {state}")
        told.forget(tail)
        _told_by_the_state_directory(scene)
        for number in range(SERVERS):
            scene.restart(number)
        _replace(scene, old, standby)


def _seal(server: Server) -> None:
    """So that the head is kept in the state directory."""
    session = server.data("audit_session_start", intent="seal", brief=False)["session_id"]
    server.data("thought_record", type="plan", content="to be sealed", session_id=session)
    server.data("merkle_finalize", session_id=session)
    heads = server.project / "state"
    eventually(lambda: [*heads.rglob("*.jsonl")], "a head in the state directory")


def _told_by_the_state_directory(scene: Scene) -> None:
    place = scene.places[0]
    done = run_program(
        [*COMMAND, "verify"], cwd=place.project, env=environment(**scene.surroundings(place))
    )
    require(done.returncode == 1, f"verify ended with {done.returncode}: {done.stdout[-500:]}")
    require("heads accept" in done.stdout + done.stderr, f"verify said: {done.stdout[-500:]}")
    shutil.rmtree(place.project / "state")  # what was lost is known


def synchronous_standby(scene: Scene) -> None:
    """It lacks nothing that was acknowledged."""
    with _standby(scene) as standby:
        scene.database.wait_synchronous()
        posted = scene.post()
        wait(scene.chance.uniform(0, 0.06))
        old = scene.database
        old.kill()
        standby.promote()
        scene.move_to(standby)
        scene.collect(posted)
        _replace(scene, old, standby)


@contextmanager
def _standby(scene: Scene) -> Iterator[Cluster]:
    """A standby of the scene's database, which ends if it was not promoted."""
    standby = Cluster()
    try:
        yield standby.copy(scene.database)
    except BaseException:
        standby.__exit__(None, None, None)
        raise


def _replace(scene: Scene, old: Cluster, new: Cluster) -> None:
    """The cluster that the lane ends is the new one; the old one is removed."""
    old.swap(new)
    new.__exit__(None, None, None)
    scene.database = scene.told.database = old


def _caught_up(primary: Cluster) -> None:
    query = "SELECT bool_and(replay_lsn >= pg_current_wal_lsn()) FROM pg_stat_replication"
    eventually(lambda: execute(primary, query) == [(True,)], "the standby has everything")


@contextmanager
def _sender_stopped(primary: Cluster) -> Iterator[None]:
    """Nothing is sent to the standby; the primary dies with it."""
    senders = primary.children("walsender")
    require(senders, "there is no standby")
    for pid in senders:
        os.kill(pid, signal.SIGSTOP)
    yield


def disk_full(scene: Scene) -> None:
    filled = disk.Small(scene.database.directory).fill()
    words = scene.chance.randbytes(3500).hex()
    server = scene.servers[scene.number % SERVERS]
    why = ""
    for _ in range(1_000):
        if why := scene.told.call(server, description=words):
            break
    said = "the disk is full" in why or "cannot be reached" in why or "broke" in why
    require(said, f"on a full disk: {why!r}")
    posted = scene.post(2)
    wait(scene.chance.uniform(0, 0.1))
    filled.unlink()
    if not scene.database.is_running:
        scene.database.start()
    scene.collect(posted)


# How a right is taken, and granted again.
DENIALS = (
    (["REVOKE INSERT ON {0}.ledger FROM {0}_writer"], "GRANT INSERT ON {0}.ledger TO {0}_writer"),
    (["REVOKE INSERT ON {0}.tasks FROM {0}_writer"], "GRANT INSERT ON {0}.tasks TO {0}_writer"),
    (
        [
            "ALTER ROLE {0}_writer NOLOGIN",
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{0}_writer'",
        ],
        "ALTER ROLE {0}_writer LOGIN",
    ),
)


def rights_taken(scene: Scene) -> None:
    denied, allowed = DENIALS[scene.number % len(DENIALS)]
    posted = scene.post(3)
    for statement in denied:  # each takes effect before the next: or who is sent away comes back
        execute(scene.database, statement.format(scene.schema))
    scene.collect(posted)
    why = "denied" if "REVOKE" in denied[0] else "log in"
    for server in scene.servers:
        scene.refusal(server, why, "nothing was changed")
    execute(scene.database, allowed.format(scene.schema))


def schema_closed(scene: Scene) -> None:
    """The role may not use it any more: its tables cannot be told from tables that are gone."""
    posted = scene.post(3)
    execute(scene.database, f"REVOKE USAGE ON SCHEMA {scene.schema} FROM {scene.schema}_writer")
    scene.collect(posted)
    for server in scene.servers:
        scene.refusal(server, "may not use the schema any more; check both, then restart")
    execute(scene.database, f"GRANT USAGE ON SCHEMA {scene.schema} TO {scene.schema}_writer")
    for number in range(SERVERS):
        scene.restart(number)


def schema_migrated(scene: Scene) -> None:
    """By a newer version; then what it did is taken back, so that the next round can begin."""
    from colibri.store.postgres import SCHEMA

    posted = scene.post(3)
    _set_version(scene, SCHEMA, SCHEMA + 1)
    scene.collect(posted)
    for number, server in enumerate(scene.servers):
        scene.refusal(server, f"version {SCHEMA + 1}", "use the newer Colibri that migrated it")
        require(condition(server) == ("SAFE_MODE", "integrity"), "it goes on")
        scene.refusal(scene.restart(number), "newer schema")
    _set_version(scene, SCHEMA + 1, SCHEMA)
    for number in range(SERVERS):
        scene.restart(number)


def _set_version(scene: Scene, old: int, new: int) -> None:
    execute(
        scene.database,
        f"BEGIN; SELECT {scene.schema}.lock_head({old});"
        f" UPDATE {scene.schema}.meta SET value = '{new}' WHERE key = 'schema'; COMMIT",
    )


# The trial: three lanes at a time, since most rounds wait for something.


def _on_one_database(*faults: Callable[[Scene], None]) -> Callable[["Rounds"], None]:
    def lane(rounds: "Rounds") -> None:
        with Cluster().make() as database:
            for fault in faults:
                with Scene(rounds.lab, _name(fault), database, rounds.chance).open() as scene:
                    rounds.play(fault, scene)

    return lane


def _on_machines(rounds: "Rounds") -> None:
    with Cluster().make() as database, machines(SERVERS) as hosts:
        scene = Scene(rounds.lab, _name(network_cut), database, rounds.chance)
        with scene.open(hosts=hosts):
            rounds.play(network_cut, scene)


def _on_small_disks(rounds: "Rounds") -> None:
    """One with everything, where PostgreSQL ends, and one without its write-ahead log."""
    for elsewhere in (False, True):
        at = Path(tempfile.mkdtemp(prefix="colibri-disk-"))
        with disk.Small(at, "80m"), Cluster(at, wal_elsewhere=elsewhere) as database:
            name = f"disk-{elsewhere}".lower()
            with Scene(rounds.lab, name, database.make(), rounds.chance).open() as scene:
                rounds.play(disk_full, scene, half=True)
        shutil.rmtree(at, ignore_errors=True)


LANES: tuple[Callable[["Rounds"], None], ...] = (
    _on_one_database(database_killed, standby_without_tail, synchronous_standby),
    _on_one_database(server_stopped, server_killed, rights_taken, schema_closed, schema_migrated),
    _on_machines,
    _on_one_database(connection_broken, answers_lost, questions_late),
    _on_small_disks,
)
AT_ONCE = 3  # lanes


def _name(fault: Callable[..., object]) -> str:
    return fault.__name__.replace("_", "-")


class Rounds:
    """How often each fault is tried, and what was seen."""

    def __init__(self, lab: Lab, lane: int) -> None:
        self.lab = lab
        self.chance = Random(f"{lab.seed} {lane}")
        self.figures: dict[str, int] = {}

    def play(self, fault: Callable[[Scene], None], scene: Scene, *, half: bool = False) -> None:
        """The rounds of a fault, with a check after each; raises Violation."""
        count = -(-self.lab.count // 2) if half else self.lab.count
        scene.goes_on()
        for scene.number in range(count):
            try:
                fault(scene)
                scene.told.check()
                scene.goes_on()
            except (AssertionError, Exception) as problem:
                what = f"{type(problem).__name__}: {problem}"
                raise Violation(f"{_name(fault)}, round {scene.number + 1}: {what}") from problem
            self.lab.say(f"{_name(fault)}: {scene.number + 1} of {count}")
        told = scene.told
        self._add(_name(fault).replace("-", " "), count)
        self._add("acknowledged calls", len(told.done))
        self._add("refused", len(told.refused))
        self._add("of them held up by a machine without a network", scene.held_up)
        self._add("outcome unknown", len(told.unknown))
        self._add("records verified", told.verify())

    def _add(self, name: str, count: int) -> None:
        self.figures[name] = self.figures.get(name, 0) + count


def _in_lanes(lab: Lab) -> list[Rounds]:
    waiting = [*enumerate(LANES)]
    done: list[Rounds] = []
    problems: list[BaseException] = []

    def work() -> None:
        while waiting and not problems:
            number, lane = waiting.pop(0)
            done.append(Rounds(lab, number))
            try:
                lane(done[-1])
            except BaseException as problem:
                problems.append(problem)

    threads = [threading.Thread(target=work) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
    return done


def control(lab: Lab) -> str:
    """A server that answers early must lose a call, and one that never looks up must be wrong."""
    with Cluster().make() as database:
        early = _caught(lab, database, "answers-early", database_killed)
        blind = _caught(lab, database, "never-looks-up", answers_lost)
    return f"a server that answers before it commits is caught ({early}), and one that does not \
look up whether a commit took effect ({blind})"


def _caught(lab: Lab, database: Cluster, name: str, fault: Callable[[Scene], None]) -> str:
    with Scene(lab, name, database, lab.random).open(program(name)) as scene:
        scene.told.patience = 20.0
        for scene.number in range(CONTROL_ROUNDS):
            try:
                fault(scene)
                scene.told.check()
            except queue.Empty:
                return f"round {scene.number + 1}: a call is never answered"
            except AssertionError as problem:
                return f"round {scene.number + 1}: {str(problem)[:60]}"
    raise ControlFailed(f"{name} was not caught in {CONTROL_ROUNDS} rounds")


def run(lab: Lab) -> dict[str, object]:
    """Every fault."""
    sums: dict[str, int] = {}
    for rounds in _in_lanes(lab):
        for name, count in rounds.figures.items():
            sums[name] = sums.get(name, 0) + count
    cuts = {"longest cut s": LONGEST} if lab.count >= 10 else {}
    return {**sums, **cuts, "lost": 0, "done twice": 0}


TRIAL = Trial(
    name="team-faults",
    title="PostgreSQL killed, its connections broken at any moment, a server stopped with the lock"
    " or killed, the network cut, a standby promoted, disk full, rights taken, schema migrated",
    claim="nothing acknowledged is lost, nothing done twice, nothing done that was refused; each"
    " refusal says why",
    unit="rounds of each",
    quick=1,
    full=MANY,
    minutes=15,
    control=control,
    run=run,
    needs=needs,
)
