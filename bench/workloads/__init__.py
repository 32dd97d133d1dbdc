"""The workloads: each takes a Plan and returns figures that can be kept as JSON.

Contestants take turns within a round, so that a slow moment of the machine affects all of them. The
order rotates by one each round, so that no contestant always follows the same one.
"""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from bench.client import Server
from bench.contestants import Contestant

T = TypeVar("T")
Servers = dict[str, tuple[Server, Path]]


@dataclass(frozen=True)
class Plan:
    """How much of everything."""

    name: str
    rounds: int
    sequential_calls: int
    inflight_calls: int
    disk_calls: int
    disk_calls_in_flight: int
    memory_calls: int
    rival_tasks: int
    rival_calls: int
    growth_sizes: tuple[int, ...]
    growth_calls: int
    recall_sizes: tuple[tuple[int, int, int], ...]  # tasks, sessions, thoughts
    recall_calls: int
    verify_records: int
    verify_rounds: int
    server_calls: int
    hook_rounds: int


FULL = Plan(
    name="full",
    rounds=11,
    sequential_calls=300,
    inflight_calls=640,
    disk_calls=20,
    disk_calls_in_flight=128,
    memory_calls=10_000,
    rival_tasks=100,
    rival_calls=20,
    growth_sizes=(1_000, 100_000, 1_000_000),
    growth_calls=9,
    recall_sizes=((100, 5, 1_000), (10_000, 500, 100_000)),
    recall_calls=7,
    verify_records=1_000_000,
    verify_rounds=9,
    server_calls=480,
    hook_rounds=21,
)
QUICK = Plan(
    name="quick",
    rounds=3,
    sequential_calls=60,
    inflight_calls=256,
    disk_calls=5,
    disk_calls_in_flight=64,
    memory_calls=500,
    rival_tasks=20,
    rival_calls=5,
    growth_sizes=(1_000, 10_000),
    growth_calls=5,
    recall_sizes=((100, 5, 1_000), (500, 25, 5_000)),
    recall_calls=5,
    verify_records=20_000,
    verify_rounds=3,
    server_calls=160,
    hook_rounds=5,
)


def turns(contestants: Sequence[T], rounds: int) -> Iterator[tuple[int, T]]:
    """Each contestant once per round, with the number of the round."""
    for number in range(rounds):
        first = number % len(contestants)
        yield from ((number, one) for one in (*contestants[first:], *contestants[:first]))
        say(f"round {number + 1} of {rounds}")


@contextmanager
def project(contestant: Contestant) -> Iterator[Path]:
    """A new folder, prepared for this contestant's server."""
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        contestant.prepare(Path(folder))
        yield Path(folder)


@contextmanager
def running(contestants: Sequence[Contestant]) -> Iterator[Servers]:
    """All their servers, after the handshake, each in its own folder."""
    with ExitStack() as stack:
        servers: Servers = {}
        for one in contestants:
            folder = stack.enter_context(project(one))
            server = stack.enter_context(one.start(folder))
            server.greet()
            servers[one.name] = (server, folder)
        yield servers


def say(text: str) -> None:
    """Print progress."""
    if sys.stderr.isatty():
        print(f"\r   {text:<70}", end="\r", file=sys.stderr, flush=True)
