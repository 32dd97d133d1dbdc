"""What people read about the speed is what was measured: made of the figures again, the same."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench import against, report, stores
from bench.bars import BARS, judge
from bench.report import Figures
from colibri.store.sqlite.opening import open_reader
from colibri.store.verify import verify


@pytest.fixture(scope="module")
def figures() -> Figures:
    found = report.load(report.KEPT)
    assert found is not None
    return found


def test_results_and_prose_are_made_of_the_figures(figures: Figures) -> None:
    assert (report.KEPT / "RESULTS.md").read_text(encoding="utf-8") == report.render(figures)
    prose = report.PROSE.read_text(encoding="utf-8")
    assert report.with_block(prose, figures) == prose


def test_plots_are_made_of_the_figures_and_every_one_is_shown(figures: Figures) -> None:
    page = report.render(figures)
    made = dict(report.pictures(figures))
    kept = {file.stem: file.read_text(encoding="utf-8") for file in _plots()}
    assert kept == made
    for name, picture in made.items():
        ElementTree.fromstring(picture)
        assert f"(plots/{name}.svg)" in page


def _plots() -> list[Path]:
    return sorted((report.KEPT / "plots").glob("*.svg"))


def test_every_bar_was_measured_and_none_is_judged_by_hand(figures: Figures) -> None:
    verdicts = list(judge(figures["workloads"]))
    assert [verdict.bar for verdict in verdicts] == list(BARS)
    for verdict in verdicts:
        assert verdict.reached == verdict.bar.keeps(verdict.median)


def test_prose_outside_the_block_quotes_no_figure(figures: Figures) -> None:
    """A number with a decimal point is a measurement: it belongs into the block, which is dated."""
    prose = report.PROSE.read_text(encoding="utf-8")
    before, rest = prose.split(report.BEGIN)
    outside = before + rest.split(report.END)[1]
    words = [word.strip("().,;:%×") for word in outside.split()]
    assert not [word for word in words if "." in word and word.replace(".", "").isdigit()]


@pytest.mark.parametrize(
    ("bar", "ours", "theirs", "reached"),
    [
        (against.Bar(0.87), [8.7], [10.0], True),
        (against.Bar(0.87), [8.8], [10.0], False),
        (against.Bar(1.35, at_least=True), [13.4], [10.0], False),
        (against.Bar(1_900, absolute=True), [1_900], [1], True),
        (against.Bar(1_900, absolute=True), [1_901], [9_999], False),
        (against.NO_WORSE, [10.9, 11.5, 11.6], [10.0, 10.0, 10.0], True),  # within the spread
        (against.NO_WORSE, [11.1, 11.5, 11.6], [10.0, 10.0, 10.0], False),
        (against.NO_FEWER, [8.8, 8.9, 9.2], [10.0, 10.0, 10.0], True),
        (against.NO_FEWER, [8.8, 8.9, 9.0], [10.0, 10.0, 10.0], False),
    ],
)
def test_a_bar_against_another_checkout(
    bar: against.Bar, ours: list[float], theirs: list[float], reached: bool
) -> None:
    assert bar.reached(ours, theirs) is reached
    page = against.table({against.HERE: {against.BYTES: ours}, against.THERE: {}})
    assert against.BYTES not in page  # one side alone is no comparison


@pytest.mark.parametrize(
    ("build", "size"),
    [
        (stores.tasks, (60,)),
        (stores.log, (200, 20)),
        (stores.log, (200, 20, 3)),
        (stores.project, (30, 5, 100)),
    ],
)
def test_what_is_measured_on_is_an_honest_log(
    tmp_path: Path, build: Callable[..., None], size: tuple[int, ...]
) -> None:
    build(str(tmp_path / "data" / "colibri.db"), *size)
    with closing(open_reader(str(tmp_path / "data" / "colibri.db"))) as db:
        report = verify(db, pause=lambda: None)
    assert report.breaks == ()
    assert report.open_calls == ()


def test_a_comparison_replaces_the_one_with_the_same_commit_and_keeps_the_others() -> None:
    first = against.page("", "1a2b (one)", "| a |\n|---|\n| 1 |")
    both = against.page(first, "3c4d (two)", "| a |\n|---|\n| 2 |")
    assert both.count("\n## Against ") == 2
    again = against.page(both, "1a2b (one)", "| a |\n|---|\n| 3 |")
    assert again == both.replace("| 1 |", "| 3 |")
