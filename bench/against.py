"""`scripts/bench --against DIR`: the same work on this checkout and on another, in turn.

Both are driven from outside, each by its own `scripts/colibri`: their schemas and modules may
differ, their tools may not. All stored data comes from calls, and sizes are those of the files.
A full run is kept in bench/AGAINST.md, one section for each commit that was compared.
"""

import os
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import apsw

from bench import report, workloads
from bench.client import JSON, Line, Server, call, results
from bench.contestants import Contestant, Tools, equal
from bench.machine import machine
from bench.plots import number_
from bench.stats import Rows, Values, percentile, put, quartiles, ratios
from bench.workloads import calls, project, running, start, turns
from bench.workloads.memory import REST, resident

HERE, THERE = "this checkout", "the other"
PAGE = report.KEPT / "AGAINST.md"
ROUND = 64
FRAME, WAL_HEADER = 4096 + 24, 32
MOVES = ("GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY", "DONE")
CONTENT = "Because the tests of part 7 say so; the other way would cost a copy of each row."

BYTES = "bytes per task_create"
PAGES = "pages written per task_create, one after another"
PAGES_IN_ROUNDS = f"pages written per task_create, in rounds of {ROUND}"
VERIFIED, VERIFIED_BY_COMMAND = "whole-log verification, records/s", "the same by `colibri verify`"
LISTED, LISTED_ALL = "task_list of 20, p50, ms", "task_list of 500, p50, ms"
TO_LIST, TO_CHANGE = "start to tools/list, ms", "start to the first durable change, ms"
STARTED, WORKED = "memory after the start, MB", "memory after many calls, MB"


@dataclass(frozen=True)
class Amounts:
    """How much of everything."""

    rounds: int
    calls: int  # whose size is measured
    tasks: int
    stories: int  # each of 138 records, in the log to verify


FULL = Amounts(rounds=15, calls=2_000, tasks=600, stories=360)
QUICK = Amounts(rounds=3, calls=256, tasks=500, stories=10)


@dataclass(frozen=True)
class Bar:
    """A limit for a figure of this checkout as it is, or for its ratio to the other's."""

    limit: float
    at_least: bool = False
    absolute: bool = False
    spread: bool = False  # "no worse": reached if the quartiles include the limit

    def reached(self, ours: Values, theirs: Values) -> bool:
        low, median, high = quartiles(ours if self.absolute else ratios(ours, theirs))
        if self.at_least:
            return (high if self.spread else median) >= self.limit
        return (low if self.spread else median) <= self.limit

    def words(self) -> str:
        sign = "≥" if self.at_least else "≤"
        return f"{sign} {number_(self.limit)}{'' if self.absolute else '×'}"


NO_WORSE = Bar(1.1, spread=True)
NO_FEWER = Bar(1 / 1.1, at_least=True, spread=True)
BARS: dict[str, Bar | None] = {
    BYTES: NO_WORSE,
    PAGES: NO_WORSE,
    PAGES_IN_ROUNDS: NO_WORSE,
    calls.P50: NO_WORSE,
    calls.P99: None,
    calls.CPU: NO_WORSE,
    calls.RATE: NO_FEWER,
    VERIFIED: NO_FEWER,
    VERIFIED_BY_COMMAND: None,
    LISTED: NO_WORSE,
    LISTED_ALL: NO_WORSE,
    TO_LIST: NO_WORSE,
    TO_CHANGE: NO_WORSE,
    STARTED: NO_WORSE,
    WORKED: NO_WORSE,
}

Pair = list[Contestant]


def main(there: Path, names: list[str], *, quick: bool) -> int:
    """Measure and print; keep the results of a full run."""
    pair = [_checkout(HERE, report.ROOT), _checkout(THERE, there.resolve())]
    rows: Rows = {}
    amounts, began = QUICK if quick else FULL, time.monotonic()
    load = os.getloadavg()[0]
    for name in names or WORKLOADS:
        print(f"== {name}", flush=True)
        WORKLOADS[name](amounts, pair, rows)
    found = table(rows)
    print(f"\n{found}")
    if not (quick or names):
        seconds = round(time.monotonic() - began)
        loads = f"load average {load:.1f} before, {os.getloadavg()[0]:.1f} after; {seconds} s"
        old = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
        PAGE.write_text(page(old, _commit(there), _section(found, loads)), encoding="utf-8")
        print(f"\nwritten: {PAGE.relative_to(report.ROOT)}")
    return 0


def _checkout(name: str, root: Path) -> Contestant:
    program = root / "scripts" / "colibri"
    if not program.is_file():
        raise SystemExit(f"bench: error: {root} is no checkout of Colibri: it has no {program}")
    return Contestant(name, (str(program), "serve"), Tools(create=equal))


# The measurements. Each alternates between the two and adds a value per round.


def _size(amounts: Amounts, pair: Pair, rows: Rows) -> None:
    """What calls leave in the file after closing, and how much they write in between."""
    for one in pair:
        with project(one) as folder:
            before = _grown_to(one, folder, amounts.calls)
            grown = _grown_to(one, folder, amounts.calls) - before
            put(rows, one.name, BYTES, grown / amounts.calls)
            put(rows, one.name, PAGES, _pages(one, folder, amounts.calls // 4, 1))
            # The least of three: on a busy machine a late call makes an extra round.
            in_rounds = min(_pages(one, folder, amounts.calls, ROUND) for _ in range(3))
            put(rows, one.name, PAGES_IN_ROUNDS, in_rounds)


def _grown_to(one: Contestant, folder: Path, count: int) -> int:
    """The size of the file after so many more calls, with an empty log."""
    with one.start(folder) as server:
        server.greet()
        calls.in_flight(server, one.create(folder, count), most=1)
    file = _database(folder)
    connection = apsw.Connection(str(file))
    connection.pragma("wal_checkpoint", "TRUNCATE")
    connection.close()
    return file.stat().st_size


def _pages(one: Contestant, folder: Path, count: int, at_once: int) -> float:
    """Frames that a call adds to the write-ahead log when so many calls arrive together."""
    with one.start(folder) as server:
        server.greet()
        calls.sequential(server, one.create(folder, 8))
        with _log_that_only_grows(_database(folder)) as log:
            before, rounds = log.stat().st_size, count // at_once
            for _ in range(rounds):
                calls.in_flight(server, one.create(folder, at_once), most=at_once)
            frames = (log.stat().st_size - before) / FRAME
    return frames / (rounds * at_once)


@contextmanager
def _log_that_only_grows(database: Path) -> Iterator[Path]:
    """A reader holds the first snapshot, so no checkpoint can restart the log."""
    reader = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    reader.execute("BEGIN")
    list(reader.execute("SELECT count(*) FROM sqlite_schema"))
    log = Path(f"{database}-wal")
    if (log.stat().st_size - WAL_HEADER) % FRAME:
        raise AssertionError(f"{log} has no whole frames")
    try:
        yield log
    finally:
        reader.close()


def _database(folder: Path) -> Path:
    (file,) = folder.rglob("*.db")
    return file


def _calls(amounts: Amounts, pair: Pair, rows: Rows) -> None:
    plan = replace(workloads.FULL, rounds=amounts.rounds)
    for name, figures in calls.run(plan, pair).items():
        rows.setdefault(name, {}).update(figures)


def _verify(amounts: Amounts, pair: Pair, rows: Rows) -> None:
    with running(pair) as servers:
        for one in pair:
            _write_stories(servers[one.name][0], amounts.stories)
        for _, one in turns(pair, amounts.rounds):
            server, folder = servers[one.name]
            line, began = call("audit_verify_chain", {}), time.perf_counter()
            answer = server.ask(line)
            taken = time.perf_counter() - began
            verdict = _data(line, answer)
            if not verdict["valid"]:
                raise AssertionError(f"{one.name}: the log does not verify: {verdict}")
            put(rows, one.name, VERIFIED, verdict["record_count"] / taken)
            began = time.perf_counter()
            subprocess.run(
                (one.command[0], "verify"),
                cwd=folder,
                check=True,
                stdin=subprocess.DEVNULL,
                capture_output=True,
            )
            taken = time.perf_counter() - began
            put(rows, one.name, VERIFIED_BY_COMMAND, verdict["record_count"] / taken)


def _write_stories(server: Server, count: int) -> None:
    """Sessions, each with its task from INIT to DONE, 20 thoughts, 25 reads and the seal."""
    for number in range(1, count + 1):
        session, task = f"S-{number:012x}", f"T-{number:04d}"
        thought = {"session_id": session, "type": "analysis", "content": CONTENT}
        about = ("thought_record", {**thought, "task_id": task})
        story: list[tuple[str, JSON]] = [
            ("audit_session_start", {"intent": "bench", "session_id": session}),
            ("task_create", {"title": "mend it", "description": "Look at it first."}),
        ]
        for move in MOVES:
            story += [about] * 3 + [("task_update", {"task_id": task, "status": move})]
        story += [("thought_record", thought)] * 2
        reads: list[tuple[str, JSON]] = [("task_get", {"task_id": task})] * 25
        for part in (story, reads, [("merkle_finalize", {"session_id": session})]):
            calls.in_flight(server, [call(*one) for one in part])


def _data(line: Line, answer: bytes) -> JSON:
    (result,) = results([line], [answer])
    data: JSON = result["structuredContent"]["data"]
    return data


def _list(amounts: Amounts, pair: Pair, rows: Rows) -> None:
    with running(pair) as servers:
        for one in pair:
            calls.in_flight(servers[one.name][0], one.create(Path(), amounts.tasks))
        for _ in range(amounts.rounds):
            taken: dict[tuple[str, str], Values] = defaultdict(list)
            for _, one in turns(pair, 10):
                for metric, limit in ((LISTED, 20), (LISTED_ALL, 500)):
                    lines = [call("task_list", {"limit": limit}) for _ in range(5)]
                    taken[one.name, metric] += calls.sequential(servers[one.name][0], lines)
            for (name, metric), times in taken.items():
                put(rows, name, metric, percentile(times, 50))


def _start(amounts: Amounts, pair: Pair, rows: Rows) -> None:
    for one in pair:  # warms the page cache; not counted
        start.server_start(one)
    for _, one in turns(pair, amounts.rounds * 2):
        _, listed, changed = start.server_start(one)
        put(rows, one.name, TO_LIST, listed)
        put(rows, one.name, TO_CHANGE, changed)


def _memory(amounts: Amounts, pair: Pair, rows: Rows) -> None:
    for _, one in turns(pair, max(3, amounts.rounds // 3)):
        with project(one) as folder, one.start(folder) as server:
            server.greet()
            calls.sequential(server, one.create(folder, 1))
            time.sleep(REST)
            put(rows, one.name, STARTED, resident(server.process.pid))
            calls.in_flight(server, one.create(folder, amounts.calls))
            put(rows, one.name, WORKED, resident(server.process.pid))


WORKLOADS: dict[str, Callable[[Amounts, Pair, Rows], None]] = {
    "size": _size,
    "calls": _calls,
    "verify": _verify,
    "list": _list,
    "start": _start,
    "memory": _memory,
}


# The table.


def table(rows: Rows) -> str:
    lines = [f"| | {THERE} | {HERE} | ratio | bar | |", "|---|---|---|---|---|---|"]
    for metric, bar in BARS.items():
        ours, theirs = rows.get(HERE, {}).get(metric), rows.get(THERE, {}).get(metric)
        if ours and theirs:
            low, median, high = quartiles(ratios(ours, theirs))
            cells = [metric, number_(quartiles(theirs)[1]), number_(quartiles(ours)[1])]
            cells.append(f"{number_(median)}× ({number_(low)}–{number_(high)})")
            cells.append(bar.words() if bar else "")
            cells.append("" if not bar else "reached" if bar.reached(ours, theirs) else "MISSED")
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


INTRODUCTION = """\
# This checkout against others

Made by `scripts/bench --against DIR`; do not edit. Medians; a ratio is taken round by round, both
sides in turn, with its quartiles in brackets. A bar is reached unless the quartiles say otherwise.
"""


def page(old: str, commit: str, section: str) -> str:
    """The page with this section in the place of the one about the same commit, or at its end."""
    _, *parts = old.split("\n## ")
    kept = {part.partition("\n")[0]: part.partition("\n")[2].strip() for part in parts}
    kept[f"Against {commit}"] = section
    return "\n".join((INTRODUCTION, *(f"## {name}\n\n{text}\n" for name, text in kept.items())))


def _section(table: str, loads: str) -> str:
    about, now = machine(), datetime.now(UTC)
    return f"""This checkout was {_commit(report.ROOT)}, on {now:%Y-%m-%d}, on
{about["processor"]}, {about["system"]}; {loads}.

{table}"""


def _commit(root: Path) -> str:
    command = ["git", "-C", str(root), "log", "-1", "--format=%h (%s)"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "not under version control"
