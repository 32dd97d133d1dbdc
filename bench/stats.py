"""Figures: values per round, their median and spread, and ratios measured side by side."""

import statistics
from collections.abc import Sequence

Values = list[float]
# contestant -> what was measured -> one value per round
Rows = dict[str, dict[str, Values]]


def percentile(values: Sequence[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """First quartile, median, third quartile; for few values, the smallest and the largest."""
    if len(values) < 4:
        return min(values), statistics.median(values), max(values)
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> Values:
    """Round by round, since a slow moment of the machine affects both in the same round.

    If one has fewer rounds, its last ones are missing.
    """
    return [our / their for our, their in zip(ours, theirs, strict=False)]


def put(rows: Rows, contestant: str, metric: str, value: float) -> None:
    """Add a value, rounded to five digits: more is noise."""
    rows.setdefault(contestant, {}).setdefault(metric, []).append(float(f"{value:.5g}"))
