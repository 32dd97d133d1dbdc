"""The table of docs/reliability.md, made from docs/reliability.json."""

from collections.abc import Sequence
from typing import Any

from torture import Trial

BEGIN = "<!-- the table: made by scripts/torture --write -->"
END = "<!-- end of the table -->"


def render(page: str, trials: Sequence[Trial], kept: dict[str, Any]) -> str:
    """The page with its table rewritten; the text around it stays."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{_table(trials, kept)}{END}{after}"


def _table(trials: Sequence[Trial], kept: dict[str, Any]) -> str:
    lines = [
        "| what is done | how often | what must hold | what was seen | the control | run |",
        "|---|---|---|---|---|---|",
    ]
    for trial in trials:
        if trial.name in kept:
            lines.append(_row(trial, kept[trial.name]))
        else:
            lines.append(f"| {trial.title} | not yet | {trial.claim} | | | |")
    return "\n".join(lines) + "\n"


def _row(trial: Trial, result: dict[str, Any]) -> str:
    seen = ", ".join(f"{name} {_number(value)}" for name, value in result["figures"].items())
    often = f"{result['count']:,} {trial.unit}"
    run = f"{result['on']}, {result['seconds']} s"
    cells = [trial.title, often, trial.claim, f"held: {seen}", result["control"], run]
    return f"| {' | '.join(cells)} |"


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int | float) else str(value)
