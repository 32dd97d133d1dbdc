"""`scripts/bench`: measure, judge, write.

A full run is kept in bench/: results.json, RESULTS.md, plots/, and the block of bars in
docs/performance.md; a run of named workloads replaces only those. A quick run goes to bench/.quick
and changes nothing that is kept. With `--against DIR` Colibri is compared only with another
checkout of itself: bench/against.py.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import against, contestants, report
from bench.bars import judge
from bench.contestants import Contestant, Field
from bench.machine import machine, versions
from bench.plots import number_
from bench.stats import Rows
from bench.workloads import (
    FULL,
    QUICK,
    Plan,
    calls,
    checkpoint,
    disks,
    growth,
    hook,
    memory,
    recall,
    rivals,
    servers,
    start,
    verify,
)


def main(arguments: list[str]) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    known = list(against.WORKLOADS if options.against else WORKLOADS)
    if unknown := set(options.workload) - set(known):
        parser.error(f"no workload {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    if options.against:
        return against.main(options.against, options.workload, quick=options.quick)
    folder = report.QUICK if options.quick else report.KEPT
    figures: report.Figures = {"workloads": {}, "runs": {}, "absent": {}}
    if not options.quick:
        figures = report.load(folder) or figures
    if not options.render:
        plan = QUICK if options.quick else FULL
        _measure_all(options.workload or list(WORKLOADS), plan, figures, folder)
    report.write(figures, folder)
    _print_verdicts(figures)
    print(f"\nwritten: {(folder / 'RESULTS.md').relative_to(report.ROOT)}")
    return 0


def _parser() -> argparse.ArgumentParser:
    words = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="scripts/bench", description=words)
    named = f"only these: {', '.join(WORKLOADS)}; of --against: {', '.join(against.WORKLOADS)}"
    parser.add_argument("workload", nargs="*", metavar="WORKLOAD", help=named)
    parser.add_argument("--quick", action="store_true", help="two minutes, to see that all works")
    parser.add_argument(
        "--against", type=Path, metavar="DIR", help="compare with the Colibri of this checkout"
    )
    parser.add_argument(
        "--render", action="store_true", help="measure nothing, only rewrite the results"
    )
    return parser


def _measure_all(names: list[str], plan: Plan, figures: report.Figures, folder: Path) -> None:
    """Run one workload after another; each result is written even if the next one fails."""
    figures |= {"plan": plan.name, "on": f"{datetime.now(UTC):%Y-%m-%d}"}
    figures |= {"machine": machine(), "versions": versions()}
    for name in names:
        _perform(name, plan, figures)
        measured = figures["workloads"]
        figures["workloads"] = {name: measured[name] for name in WORKLOADS if name in measured}
        report.write(figures, folder)


def _perform(name: str, plan: Plan, figures: report.Figures) -> None:
    measure, makers = WORKLOADS[name]
    print(f"== {name}", file=sys.stderr, flush=True)
    field = contestants.gather(makers)
    before, began = os.getloadavg()[0], time.monotonic()
    figures["workloads"][name] = measure(plan, field)
    seconds = round(time.monotonic() - began)
    on = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    figures["runs"][name] = [on, round(before, 1), round(os.getloadavg()[0], 1), seconds]
    figures["absent"].pop(name, None)
    if field.absent:
        figures["absent"][name] = field.absent


def _measure(run: Callable[[Plan, list[Contestant]], Rows]) -> Callable[[Plan, Field], Rows]:
    return lambda plan, field: run(plan, field.present)


def _with_one_sync(plan: Plan, field: Field) -> Rows:
    """The two stacks with a bar also in the variant that syncs as often as Colibri."""
    both = [one for one in field.present if one.name in (contestants.TYPESCRIPT, contestants.MCP)]
    return calls.run(plan, [*field.present, *map(contestants.one_sync, both)])


def _those_that_run(plan: Plan, field: Field) -> Rows:
    """Rivals are foreign programs: one that does not work here is listed with the reason."""
    for one in list(field.present):
        if reason := rivals.why_not(one):
            field.present.remove(one)
            field.absent[one.name] = reason
    return rivals.run(plan, field.present)


def _where_syncs_can_be_delayed(plan: Plan, field: Field) -> Rows:
    if reason := disks.why_not():
        field.absent |= {one.name: reason for one in field.present}
        return {}
    return disks.run(plan, field.present)


def _print_verdicts(figures: report.Figures) -> None:
    print()
    for verdict in judge(figures["workloads"]):
        word = "reached" if verdict.reached else "MISSED "
        sign = "≥" if verdict.bar.at_least else "≤"
        print(
            f"{word} {number_(verdict.median):>7}{verdict.bar.unit:<3}"
            f" ({number_(verdict.low)}–{number_(verdict.high)})"
            f" {sign} {number_(verdict.bar.limit)}  {verdict.bar.text}"
        )
        for case in verdict.missed if verdict.count > 1 else ():
            print(f"{'':20}{case}")


# name -> how it is measured, and which contestants take part
WORKLOADS: dict[str, tuple[Callable[[Plan, Field], Rows], tuple[Callable[[], Contestant], ...]]] = {
    "start": (_measure(start.run), contestants.STACKS),
    "calls": (_with_one_sync, (*contestants.STACKS, contestants.bare_rounds)),
    "disks": (
        _where_syncs_can_be_delayed,
        (contestants.colibri, contestants.mcp, contestants.typescript),
    ),
    "memory": (_measure(memory.run), contestants.STACKS),
    "rivals": (_those_that_run, (contestants.colibri, *contestants.RIVALS)),
    "growth": (_measure(growth.run), (contestants.colibri,)),
    "recall": (_measure(recall.run), (contestants.colibri,)),
    "verify": (_measure(verify.run), (contestants.colibri,)),
    "checkpoint": (_measure(checkpoint.run), (contestants.colibri,)),
    "hook": (_measure(hook.run), (contestants.colibri,)),
    "servers": (_measure(servers.run), (contestants.colibri, contestants.typescript)),
}

if __name__ == "__main__":
    with TemporaryDirectory(prefix="bench-state-") as state:
        os.environ["XDG_STATE_HOME"] = (
            state  # or the user's own heads are read, and ours stay there
        )
        sys.exit(main(sys.argv[1:]))
