"""Two thousand thoughts: forty with a question each, among others from the same field.

A question shares some but not all of its words with its thought; many are in other thoughts too.
"""

from pathlib import Path
from random import Random

from tests.support.client import TESTS

NEEDLES = TESTS / "data" / "needles.txt"
SIZE = 2000

PARTS = (
    "the importer", "the checkout", "the scheduler", "the worker", "the search box", "the invoice",
    "the export", "the report", "the map", "the login", "the cache", "the upload", "the parser",
    "the payment", "the migration", "the backup", "the mail queue", "the phone app", "the toolbar",
    "the browser test", "the feed", "the catalogue", "the basket", "the webhook", "the audit",
)  # fmt: skip
FOUND = (
    "is slow on large files", "fails when the network is down", "shows an old value after a change",
    "loses the last line", "waits longer than its timeout", "uses too much memory at night",
    "is called twice", "does not say why it failed", "depends on the order of the tests",
    "keeps a lock too long", "breaks with names that are not ASCII", "opens a connection per row",
    "reads the whole table", "rounds the wrong way", "ignores the time zone",
)  # fmt: skip
DID = (
    "we cache the result for a minute", "we close the connection in every case",
    "we write to a new file and rename it", "we check the input before anything is changed",
    "we ask the database once instead of in a loop", "we log the reason and go on",
    "we retry three times with a growing pause", "we build the index first",
    "we refuse it with a clear message", "we measure it again after the release",
    "we keep the old way behind a flag", "we moved the check in front of the queue",
)  # fmt: skip
WHY = (
    "because two customers met it", "because the other way was twice as slow",
    "since nobody could say what should happen", "as the tests did not notice it",
    "because the partner cannot change their side", "since the page is shown on old phones",
    "because support asked for it", "as the provider gives no other way",
    "because it cost us an hour on Monday", "since the numbers did not add up",
)  # fmt: skip


def needles() -> list[tuple[str, str]]:
    """Thoughts, each with its question."""
    lines = Path(NEEDLES).read_text(encoding="utf-8").splitlines()
    return [(text, ask[2:]) for text, ask in zip(lines[::2], lines[1::2], strict=True)]


def corpus(size: int = SIZE, seed: int = 5) -> list[str]:
    """All thoughts, the forty at random positions among the others."""
    chance = Random(seed)
    pick = chance.choice
    wanted = [text for text, _ in needles()]
    others = [
        f"T-{number % 900 + 1:04d}: {pick(PARTS)} {pick(FOUND)}; {pick(DID)} {pick(WHY)}."
        f" {pick(PARTS).capitalize()} {pick(FOUND)} too, see src/{pick(PARTS)[4:7]}.py."
        for number in range(size - len(wanted))
    ]
    for text in wanted:
        others.insert(chance.randrange(len(others) + 1), text)
    return others
