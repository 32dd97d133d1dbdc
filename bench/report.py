"""Turns bench/results.json into bench/RESULTS.md, plots and the block in docs/performance.md."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import plots
from bench.bars import Verdict, judge
from bench.contestants import COLIBRI, PASS
from bench.plots import number_
from bench.stats import Rows, Values, quartiles, ratios
from bench.workloads import calls, checkpoint, disks, growth, memory, rivals, servers, start, verify

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "bench"  # where a full run is kept
QUICK = ROOT / "bench" / ".quick"  # a quick run changes nothing that is kept
PROSE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- the bars: made by scripts/bench -->", "<!-- end of the bars -->"

Figures = dict[str, Any]

# workload -> its heading, the text below it, the row that the others are compared with
SECTIONS: dict[str, tuple[str, str, str]] = {
    "start": (
        "Cold start",
        "Milliseconds from the start of the process, in a new folder, files in the page cache.",
        COLIBRI,
    ),
    "calls": (
        "Durable calls",
        "Every call makes a task and two linked records and is synced before it is answered. The"
        " stacks sync both commits; *one sync* are the same stacks syncing only the second, as"
        " Colibri does. Colibri's call also validates against 14 tools' rules, indexes the task for"
        " search and writes four records instead of two. *Colibri's rows* is a loop that writes"
        " these four records and the task's rows in the same rounds, and does nothing else.",
        COLIBRI,
    ),
    "disks": (
        "Durable calls on slower disks",
        "The same calls where every sync takes 1 ms or 5 ms longer, as on most disks; strace delays"
        " it, for all of them alike.",
        COLIBRI,
    ),
    "memory": (
        "Memory and disk",
        "Resident size of the server and its children, and the database after its end. The many"
        " calls are run three times for Colibri and the TypeScript SDK, once for the others.",
        COLIBRI,
    ),
    "rivals": (
        "What a user would pick instead",
        "Their npm packages as they are, their own tools, the same small number of tasks. Only"
        " Colibri syncs what it acknowledges and keeps a ledger of every call, reads included.",
        COLIBRI,
    ),
    "growth": (
        "Every tool as the store grows",
        "Medians over stdio, in ms; the ratio is that of the largest store to the smallest.",
        "",
    ),
    "recall": (
        "Where was I",
        "The brief, at most 4,800 characters, and searches for thoughts of which each answers the"
        " best ten. The large project has 10,000 tasks, 500 open sessions that hold a task each,"
        " and 100,000 thoughts. Medians over stdio, in ms; the ratio is that of the large project"
        " to the small one.",
        "",
    ),
    "verify": (
        "Verification and sealing",
        "A bare loop reads the same rows and computes the same two hashes, and nothing else; the"
        " check also parses, links, replays every rule and compares every row with the log.",
        verify.WHOLE,
    ),
    "checkpoint": (
        "Checkpoints",
        "The root over the leaves of the same log, in ms. A bare loop reads the leaves and hashes"
        " the tree, and nothing else; the first checkpoint also keeps what makes the next one"
        " cheap.",
        checkpoint.FIRST,
    ),
    "hook": (
        "The hook",
        "Milliseconds from the start of `colibri hook` to its end, and of processor time, on a"
        " ledger with as many records as that of the verification, reports of hosts among them.",
        PASS,
    ),
    "servers": (
        "Many servers on one file",
        "Each server has a client that waits for every answer; all of them together, calls per"
        " second. Afterwards every acknowledged task must be there and the log must verify.",
        servers.name(COLIBRI, 1),
    ),
}
# The plots: workload, metric, file, title, subtitle
BARS: tuple[tuple[str, str, str, str, str], ...] = (
    ("start", start.STATIONS[1], "start", "Cold start to tools/list", "ms, less is better"),
    (
        "start",
        start.STATIONS[2],
        "first-change",
        "Cold start to the first change",
        "ms, less is better",
    ),
    ("calls", calls.P50, "sequential", "One durable call after another, p50", "ms, less is better"),
    (
        "calls",
        calls.RATE,
        "in-flight",
        "Durable calls, 64 in flight",
        "calls per second, more is better",
    ),
    (
        "disks",
        disks.p50(1),
        "sequential-slow-disk",
        "One durable call after another, each sync 1 ms later, p50",
        "ms, less is better",
    ),
    (
        "disks",
        disks.rate(1),
        "in-flight-slow-disk",
        "Durable calls, 64 in flight, each sync 1 ms later",
        "calls per second, more is better",
    ),
    ("memory", memory.STARTED, "memory", "Memory after the start", "MB, less is better"),
    ("rivals", rivals.CREATE, "rivals-create", "Create a task, p50", "ms, less is better"),
    ("rivals", rivals.LIST, "rivals-list", "List the tasks, p50", "ms, less is better"),
    (
        "verify",
        verify.RATE,
        "verify",
        "A log of hashes checked",
        "records per second, more is better",
    ),
    (
        "servers",
        servers.RATE,
        "servers",
        "Servers on one file",
        "calls per second of all together, more is better",
    ),
)


def write(figures: Figures, folder: Path) -> None:
    """Write every file that is made from the figures."""
    (folder / "plots").mkdir(parents=True, exist_ok=True)
    text = json.dumps(figures, indent=1, ensure_ascii=False) + "\n"
    (folder / "results.json").write_text(text, encoding="utf-8")
    (folder / "RESULTS.md").write_text(render(figures), encoding="utf-8")
    for name, picture in pictures(figures):
        (folder / "plots" / f"{name}.svg").write_text(picture, encoding="utf-8")
    if folder == KEPT:
        prose = PROSE.read_text(encoding="utf-8")
        PROSE.write_text(with_block(prose, figures), encoding="utf-8")


def load(folder: Path) -> Figures | None:
    """The figures of the last run."""
    file = folder / "results.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None


# RESULTS.md


def render(figures: Figures) -> str:
    """The whole page."""
    parts = [*_head(figures), *_verdicts(figures)]
    for name, rows in figures["workloads"].items():
        title, words, base = SECTIONS[name]
        parts += [f"## {title}", words]
        parts += [_growth(rows)] if name in ("growth", "recall") else [_table(rows, base)]
        if name in figures["absent"]:
            absent = figures["absent"][name]
            parts.append("\n".join(f"- {who}: not here: {why}" for who, why in absent.items()))
        parts += [f"![{plot[3]}](plots/{plot[2]}.svg)" for plot in BARS if plot[0] == name]
        if name == "growth":
            parts.append("![Every tool as the store grows](plots/growth.svg)")
        on, before, after, seconds = figures["runs"][name]
        parts.append(f"{on}; load average {before} before, {after} after; {seconds} s.")
    return "\n\n".join(parts) + "\n"


def _head(figures: Figures) -> Iterator[str]:
    machine, versions = figures["machine"], figures["versions"]
    yield "# Results"
    yield (
        f"Made by `scripts/bench` on {figures['on']}, a {figures['plan']} run; do not edit."
        " Medians, with the first and third quartile in brackets (of fewer than four rounds: least"
        " and greatest). Contestants take turns within a round; a ratio is taken round by round, so"
        " that a slow moment of the machine hits both sides. Absolute numbers are of this machine"
        " only."
    )
    yield "| | |\n|---|---|\n" + "\n".join(
        f"| {name} | {value} |" for name, value in machine.items()
    )
    yield "Versions: " + ", ".join(f"{name} {value}" for name, value in versions.items()) + "."


def _verdicts(figures: Figures) -> Iterator[str]:
    yield "## Bars"
    yield bars_table(figures)


def bars_table(figures: Figures) -> str:
    """A line for every bar."""
    lines = ["| bar | limit | measured | |", "|---|---|---|---|"]
    for verdict in judge(figures["workloads"]):
        lines.append(f"| {' | '.join(_cells(verdict))} |")
    return "\n".join(lines)


def _cells(verdict: Verdict) -> tuple[str, str, str, str]:
    bar = verdict.bar
    limit = f"{'≥' if bar.at_least else '≤'} {number_(bar.limit)}{bar.unit}"
    measured = f"{number_(verdict.median)}{bar.unit} ({_span(verdict.low, verdict.high)})"
    if verdict.count > 1:
        measured += f", worst of {verdict.count}: {verdict.worst}"
    if verdict.count > 1 and verdict.missed:
        return (
            bar.text,
            limit,
            measured,
            f"MISSED by {len(verdict.missed)}: {'; '.join(verdict.missed)}",
        )
    return bar.text, limit, measured, "reached" if verdict.reached else "MISSED"


def _table(rows: Rows, base: str) -> str:
    """Contestants down, figures across, each with its ratio to the base's figure, if it has one."""
    metrics = list(dict.fromkeys(metric for figures in rows.values() for metric in figures))
    lines = [f"| | {' | '.join(metrics)} |", "|---" * (len(metrics) + 1) + "|"]
    for name, figures in rows.items():
        cells = [_cell(figures.get(metric), rows.get(base, {}).get(metric)) for metric in metrics]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(values: Values | None, base: Values | None) -> str:
    if not values:
        return ""
    low, median, high = quartiles(values)
    text = f"{number_(median)} ({_span(low, high)})"
    if base and base is not values and all(base):
        text += f", {number_(quartiles(ratios(values, base))[1])}×"
    return text


def _growth(rows: Rows) -> str:
    sizes = list(next(iter(rows.values())))
    lines = [f"| | {' | '.join(sizes)} | ratio |", "|---" * (len(sizes) + 2) + "|"]
    for name, figures in rows.items():
        low, median, high = quartiles(ratios(figures[sizes[-1]], figures[sizes[0]]))
        cells = [_cell(figures[size], None) for size in sizes]
        ratio = f"{number_(median)} ({_span(low, high)})"
        lines.append(f"| {name} | {' | '.join(cells)} | {ratio} |")
    return "\n".join(lines)


def _span(low: float, high: float) -> str:
    return f"{number_(low)}–{number_(high)}"


# The plots


def pictures(figures: Figures) -> Iterator[tuple[str, str]]:
    """File name and SVG of each plot that has figures."""
    for workload, metric, name, title, subtitle in BARS:
        rows = figures["workloads"].get(workload, {})
        shown = [
            plots.Row(who, *quartiles(values[metric]), ours=who.startswith(COLIBRI))
            for who, values in rows.items()
            if metric in values
        ]
        if name == "start" and PASS in rows:
            floor = {
                who: values[start.ENDED] for who, values in rows.items() if start.ENDED in values
            }
            shown = [plots.Row(who, *quartiles(v), ours=False) for who, v in floor.items()] + shown
        if shown:
            yield name, plots.bars(title, f"{subtitle}; the whisker spans the quartiles", shown)
    if rows := figures["workloads"].get("growth"):
        yield "growth", _growth_plot(rows)


def _growth_plot(rows: Rows) -> str:
    sizes = [int(size.split()[0].replace(",", "")) for size in next(iter(rows.values()))]
    curves: dict[str, Values] = {}
    for name, figures in rows.items():
        if name != growth.START:
            medians = [quartiles(values)[1] for values in figures.values()]
            curves[name] = [median / medians[0] for median in medians]
    bad = {name for name, curve in curves.items() if curve[-1] > 2}
    subtitle = "p50 of each tool over the records in the store, as multiples of the smallest"
    return plots.lines("Every tool as the store grows", subtitle, sizes, curves, bad)


# docs/performance.md


def with_block(prose: str, figures: Figures) -> str:
    """The page with its block rewritten."""
    before, rest = prose.split(BEGIN)
    after = rest.split(END)[1]
    machine = figures["machine"]
    dated = (
        f"Measured on {figures['on']}, a {figures['plan']} run, on {machine['processor']},"
        f" {machine['system']}; [bench/RESULTS.md](../bench/RESULTS.md) has all of it."
    )
    return f"{before}{BEGIN}\n\n{dated}\n\n{bars_table(figures)}\n\n{END}{after}"
