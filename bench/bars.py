"""The bars: limits for the figures, each reached or missed by the median.

A missed bar is not moved; the results report it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.contestants import (
    COLIBRI,
    MCP,
    NAMES,
    ONE_SYNC,
    PASS,
    RIVALS,
    TYPESCRIPT,
)
from bench.stats import Rows, Values, quartiles, ratios
from bench.workloads import (
    calls,
    checkpoint,
    growth,
    hook,
    memory,
    recall,
    rivals,
    servers,
    start,
    verify,
)

Workloads = dict[str, Rows]
# The cases that a bar covers: the name of each, and its value in every round.
Cases = dict[str, Values]


@dataclass(frozen=True)
class Bar:
    """A limit, and where the values come from. Every case must meet it."""

    text: str
    limit: float
    cases: Callable[[Workloads], Cases]
    at_least: bool = False
    unit: str = "×"

    def keeps(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit


@dataclass(frozen=True)
class Verdict:
    """The result for a bar: its worst case, and which cases missed it."""

    bar: Bar
    worst: str
    low: float
    median: float
    high: float
    count: int
    missed: tuple[str, ...]

    @property
    def reached(self) -> bool:
        return not self.missed


def judge(workloads: Workloads) -> Iterator[Verdict]:
    """The verdict on every bar that has measurements."""
    for bar in BARS:
        cases = bar.cases(workloads)
        if not cases:
            continue
        medians = {name: quartiles(values)[1] for name, values in cases.items()}
        worst = (min if bar.at_least else max)(medians, key=lambda name: medians[name])
        missed = tuple(name for name, median in medians.items() if not bar.keeps(median))
        yield Verdict(bar, worst, *quartiles(cases[worst]), len(cases), missed)


def _pair(
    workload: str, ours: tuple[str, str], theirs: tuple[str, str]
) -> Callable[[Workloads], Cases]:
    """One figure against another, round by round."""

    def cases(workloads: Workloads) -> Cases:
        rows = workloads.get(workload, {})
        values = [rows.get(name, {}).get(metric) for name, metric in (ours, theirs)]
        if not values[0] or not values[1]:
            return {}
        return {f"{ours[0]} / {theirs[0]}": ratios(values[0], values[1])}

    return cases


def _against(workload: str, metric: str, other: str) -> Callable[[Workloads], Cases]:
    """Colibri's figure against another contestant's."""
    return _pair(workload, (COLIBRI, metric), (other, metric))


def _plain(workload: str, name: str, metric: str) -> Callable[[Workloads], Cases]:
    """A figure as it is."""

    def cases(workloads: Workloads) -> Cases:
        values = workloads.get(workload, {}).get(name, {}).get(metric)
        return {name: values} if values else {}

    return cases


def _rivals(workloads: Workloads) -> Cases:
    rows = workloads.get("rivals", {})
    ours = rows.get(COLIBRI, {})
    return {
        f"{metric.split(',')[0]} / {rival}": ratios(ours[metric], values)
        for rival in map(NAMES.__getitem__, RIVALS)
        for metric, values in rows.get(rival, {}).items()
        if metric != rivals.NEXT
    }


def _growth(workloads: Workloads) -> Cases:
    """The largest store against the smallest, for every question."""
    return {
        name: ratios(list(sizes.values())[-1], next(iter(sizes.values())))
        for name, sizes in workloads.get("growth", {}).items()
        if name != growth.START
    }


def _searches(workloads: Workloads) -> Cases:
    """The large project against the small one, for every search."""
    return {
        name: ratios(list(sizes.values())[-1], next(iter(sizes.values())))
        for name, sizes in workloads.get("recall", {}).items()
        if name != recall.BRIEF
    }


def _brief(workloads: Workloads) -> Cases:
    """On the large project."""
    sizes = workloads.get("recall", {}).get(recall.BRIEF, {})
    return {recall.BRIEF: list(sizes.values())[-1]} if sizes else {}


_LISTED, _CHANGED = start.STATIONS[1:]
_ALONE, _MANY = servers.name(COLIBRI, 1), servers.name(COLIBRI, servers.SIZES[-1])

_RECORDED = (hook.CALL, hook.MODULE, hook.BEGIN)


def _hooks(*names: str) -> Callable[[Workloads], Cases]:
    """These ways of `colibri hook`, as far as they were measured, against an empty program."""

    def cases(workloads: Workloads) -> Cases:
        pairs = (_pair("hook", (name, hook.ENDED), (PASS, hook.ENDED)) for name in names)
        return {name: values for pair in pairs for name, values in pair(workloads).items()}

    return cases


BARS: tuple[Bar, ...] = (
    Bar(
        "cold start to tools/list, of the TypeScript SDK",
        1 / 4,
        _against("start", _LISTED, TYPESCRIPT),
    ),
    Bar("cold start to tools/list, of the Python SDK", 1 / 12, _against("start", _LISTED, MCP)),
    Bar(
        "cold start to tools/list, of `python -c pass`",
        4,
        _pair("start", (COLIBRI, _LISTED), (PASS, start.ENDED)),
    ),
    Bar("colibri hook from start to end, of `python -c pass`", 5, _hooks(*_RECORDED)),
    Bar("the same, where the deed goes to the spool", 3, _hooks(hook.SPOOLED)),
    Bar(
        "cold start to the first durable change, of the TypeScript SDK",
        1 / 2,
        _against("start", _CHANGED, TYPESCRIPT),
    ),
    Bar(
        "sequential durable call, p50, of the TypeScript SDK",
        0.7,
        _against("calls", calls.P50, TYPESCRIPT),
    ),
    Bar(
        "the same, with one sync per call there too",
        0.7,
        _against("calls", calls.P50, TYPESCRIPT + ONE_SYNC),
    ),
    Bar("sequential durable call, p50, of the Python SDK", 0.3, _against("calls", calls.P50, MCP)),
    Bar(
        "the same, with one sync per call there too",
        0.3,
        _against("calls", calls.P50, MCP + ONE_SYNC),
    ),
    Bar(
        "64 in flight, durable calls per second, of the TypeScript SDK",
        3,
        _against("calls", calls.RATE, TYPESCRIPT),
        at_least=True,
    ),
    Bar(
        "the same, with one sync per call there too",
        3,
        _against("calls", calls.RATE, TYPESCRIPT + ONE_SYNC),
        at_least=True,
    ),
    Bar(
        "memory after the start, of the TypeScript SDK",
        1 / 2,
        _against("memory", memory.STARTED, TYPESCRIPT),
    ),
    Bar("memory growth by the calls", 2, _plain("memory", COLIBRI, memory.GROWN), unit=" MB"),
    Bar("start, list and create, of each server that a user would pick", 1, _rivals),
    Bar("p50 of any tool on the largest store, of the smallest", 2, _growth),
    Bar("a search through 100,000 thoughts, of one through 1,000", 3, _searches),
    Bar("a session started, with its brief, on the large project", 20, _brief, unit=" ms"),
    Bar(
        "whole-log verification, of a bare loop",
        0.6,
        _pair("verify", (verify.WHOLE, verify.RATE), (verify.BARE, verify.RATE)),
        at_least=True,
    ),
    Bar(
        "whole-log verification, of Node's bare loop",
        1,
        _pair("verify", (verify.WHOLE, verify.RATE), (verify.NODE, verify.RATE)),
        at_least=True,
    ),
    Bar(
        "the first checkpoint of a large log, of a bare loop over its leaves",
        1.5,
        _pair(
            "checkpoint", (checkpoint.FIRST, checkpoint.TAKEN), (checkpoint.BARE, checkpoint.TAKEN)
        ),
    ),
    Bar(
        "the next checkpoint, after 100 more records",
        20,
        _plain("checkpoint", checkpoint.NEXT, checkpoint.TAKEN),
        unit=" ms",
    ),
    Bar(
        "16 servers on one file, calls per second, of one server",
        0.5,
        _pair("servers", (_MANY, servers.RATE), (_ALONE, servers.RATE)),
        at_least=True,
    ),
    Bar(
        "16 servers on one file, acknowledged and lost",
        0,
        _plain("servers", _MANY, servers.LOST),
        unit="",
    ),
)
