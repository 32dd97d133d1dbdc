"""docs/reliability.md is made of docs/reliability.json, which scripts/torture --write keeps."""

import json

from torture.runner import FIGURES, PAGE
from torture.table import render
from torture.trials import TRIALS


def test_the_table_is_that_of_the_figures() -> None:
    kept = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    page = PAGE.read_text()
    assert render(page, TRIALS, kept) == page
