"""`scripts/torture`: run trials, each after its control; keep the figures of full runs.

docs/reliability.json holds the latest full run of each trial; the table in docs/reliability.md is
made from it.
"""

import argparse
import io
import json
import multiprocessing
import platform
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import redirect_stdout
from datetime import UTC, datetime
from pathlib import Path

import apsw

from colibri import VERSION
from torture import ControlFailed, Lab, Trial, Violation
from torture.table import render
from torture.trials import TRIALS

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs" / "reliability.json"
PAGE = ROOT / "docs" / "reliability.md"

Result = dict[str, object]


def main(arguments: list[str]) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.list:
        for trial in TRIALS:
            print(
                f"{trial.name:<12} {trial.quick:>7,} {trial.full:>9,} {trial.unit}: {trial.title}"
            )
        return 0
    if unknown := set(options.trial) - set(_names()):
        parser.error(f"no trial {', '.join(sorted(unknown))}; there are {', '.join(_names())}")
    chosen = [trial for trial in TRIALS if trial.name in (options.trial or _names())]
    perform = _together if options.together > 1 else _one_by_one
    results = {}
    for name, result in perform(chosen, options):
        results[name] = result
        if options.write and result["result"] == "held":
            _keep({name: result})
    bad = [name for name, result in results.items() if result["result"] == "failed"]
    skipped = sum(result["result"] == "skipped" for result in results.values())
    print(f"{len(results) - len(bad) - skipped} passed, {len(bad)} failed, {skipped} skipped")
    return 1 if bad else 0


def _names() -> list[str]:
    return [trial.name for trial in TRIALS]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/torture", description=__doc__.splitlines()[0])
    parser.add_argument("trial", nargs="*", metavar="TRIAL", help="only these")
    parser.add_argument("--quick", action="store_true", help="the small counts: minutes")
    parser.add_argument("--count", type=int, help="this many instead")
    parser.add_argument("--seed", type=int, help="repeat a run from its printed seed")
    parser.add_argument(
        "--together", type=int, default=1, metavar="N", help="so many at a time, where times allow"
    )
    parser.add_argument("--write", action="store_true", help="put the figures into docs/")
    parser.add_argument("--list", action="store_true", help="name the trials and their counts")
    return parser


def _one_by_one(
    trials: Iterable[Trial], options: argparse.Namespace
) -> Iterator[tuple[str, Result]]:
    for trial in trials:
        yield trial.name, _perform(trial, options)


def _together(trials: Iterable[Trial], options: argparse.Namespace) -> Iterator[tuple[str, Result]]:
    """Run each in a separate process, the longest first. Those that judge times run one by one,
    while only the longest trial runs. What a trial prints is shown when it ends.
    """
    spawn = multiprocessing.get_context("spawn")
    first, *others = sorted(trials, key=lambda trial: (trial.alone, -trial.minutes))
    with ProcessPoolExecutor(options.together, mp_context=spawn, max_tasks_per_child=1) as pool:
        running = [pool.submit(_perform_aside, first.name, options)]
        yield from _one_by_one((trial for trial in others if trial.alone), options)
        running += [
            pool.submit(_perform_aside, trial.name, options) for trial in others if not trial.alone
        ]
        for done in as_completed(running):
            name, result, printed = done.result()
            print(printed, end="", flush=True)
            yield name, result


def _perform_aside(name: str, options: argparse.Namespace) -> tuple[str, Result, str]:
    (trial,) = (trial for trial in TRIALS if trial.name == name)
    with redirect_stdout(io.StringIO()) as printed:
        result = _perform(trial, options)
    return name, result, printed.getvalue()


def _perform(trial: Trial, options: argparse.Namespace) -> Result:
    """Run the control, then the trial; returns the result."""
    count = options.count or (trial.quick if options.quick else trial.full)
    seed = random.randrange(2**32) if options.seed is None else options.seed
    print(f"== {trial.name}: {trial.title}", flush=True)
    if reason := trial.needs():
        print(f"   skipped: {reason}")
        return {"result": "skipped", "reason": reason}
    began = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="colibri-") as scratch:
            caught = trial.control(_lab(scratch, "control", seed, count))
            print(f"   control: {caught}", flush=True)
            figures = trial.run(_lab(scratch, "trial", seed, count))
    except (Violation, ControlFailed, Exception) as problem:
        if not isinstance(problem, (Violation, ControlFailed)):
            traceback.print_exc()
        print(f"   FAILED: {type(problem).__name__}: {problem}")
        print(f"   again:  scripts/torture {trial.name} --seed {seed} --count {count}", flush=True)
        return {"result": "failed"}
    seconds = round(time.monotonic() - began)
    print(f"   held: {_in_words(count, trial.unit, figures)}; {seconds} s, seed {seed}", flush=True)
    return {
        "result": "held",
        "count": count,
        "figures": figures,
        "control": caught,
        "seconds": seconds,
        "seed": seed,
        "on": f"{datetime.now(UTC):%Y-%m-%d}",
        "version": VERSION,
        "machine": f"{platform.system()} {platform.release()}, Python {platform.python_version()},"
        f" SQLite {apsw.sqlite_lib_version()}",
    }


def _lab(scratch: str, name: str, seed: int, count: int) -> Lab:
    directory = Path(scratch, name)
    directory.mkdir()
    return Lab(directory=directory, seed=seed, count=count, say=_progress)


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r   {text:<76}", end="\r", file=sys.stderr, flush=True)


def _in_words(count: int, unit: str, figures: dict[str, object]) -> str:
    return ", ".join([f"{count:,} {unit}", *(f"{name} {value}" for name, value in figures.items())])


def _keep(results: dict[str, Result]) -> None:
    kept = (json.loads(FIGURES.read_text()) if FIGURES.exists() else {}) | results
    FIGURES.write_text(json.dumps({name: kept[name] for name in sorted(kept)}, indent=1) + "\n")
    PAGE.write_text(render(PAGE.read_text(), TRIALS, kept))
