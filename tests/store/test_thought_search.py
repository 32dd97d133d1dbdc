"""store/thought_search.py: any of the words, the best first, whatever the log holds."""

from functools import partial

import pytest

from bench import stores
from colibri.store import thought_search, trail
from colibri.store.trail import Filter
from tests.support.ledger_writer import Lab, in_memory
from tests.support.query_plans import pages, plans
from tests.support.thought_corpus import corpus, needles

FOUND_AMONG, ASKED, LEAST = 5, 40, 34


@pytest.fixture(scope="module")
def library(engine: str) -> Lab:
    lab = in_memory()
    lab.start("S-1")
    for text in corpus():
        lab.think("S-1", text)
    return lab


def found(lab: Lab, question: str, most: int = FOUND_AMONG, **wanted: str) -> list[str]:
    thoughts, _ = trail.find(
        lab.db, Filter(**wanted), search=question, order="best", limit=most, offset=0
    )
    return [thought.content for thought in thoughts]


@pytest.mark.parametrize(("text", "question"), needles())
def test_a_question_shares_some_words_with_its_thought_and_not_all(
    text: str, question: str
) -> None:
    """Words as the search takes them, which finds those that begin with one."""
    there = thought_search.words_of(text)
    asked = set(thought_search.words_of(question))
    shared = {word for word in asked if any(other.startswith(word) for other in there)}
    assert shared and shared < asked


def test_questions_find_the_thought_they_ask_about(library: Lab) -> None:
    """Specification 7.11: of forty that share some words, 34 are among the first five."""
    missed = [ask for text, ask in needles() if text not in found(library, ask)]
    assert len(needles()) == ASKED
    assert len(needles()) - len(missed) >= LEAST, missed


WAYS = [
    ("t-0031", "T-0031 failed in VERIFY"),  # an id is a word, in any case
    ("src/feed/atom.py", "The parser in src/feed/atom.py"),  # so is a path
    ("libss", "We pin the base image by digest"),  # and the beginning of a word
    ('"libssl" AND (x OR', "We pin the base image by digest"),  # no syntax of the index's
]


@pytest.mark.parametrize(("question", "beginning"), WAYS)
def test_ids_paths_and_beginnings_are_words(library: Lab, question: str, beginning: str) -> None:
    """Specification 7.11."""
    assert found(library, question)[0].startswith(beginning)


@pytest.mark.parametrize("question", ["", "  ", "…", '"', "zzzzz", "\U0001f426"])
def test_a_question_without_a_word_that_is_there_finds_nothing(library: Lab, question: str) -> None:
    assert found(library, question) == []


def test_what_is_not_in_the_index_yet_is_found_and_what_is_erased_is_not() -> None:
    lab = in_memory()
    lab.start("S-1")
    seqs = [lab.think("S-1", f"the pelican number {number}").seq for number in range(20)]
    assert len(found(lab, "pelican", 50)) == 20
    assert found(lab, "19") == ["the pelican number 19"]
    lab.erase_everywhere(seqs[3])
    lab.erase_everywhere(seqs[19])
    assert len(found(lab, "pelican", 50)) == 18


def test_a_search_can_be_of_a_session_a_task_or_a_type() -> None:
    lab = in_memory()
    task = lab.create().task_id
    for session in ("S-1", "S-2"):
        lab.start(session)
        for number in range(20):
            lab.think(session, f"pelican {number}", type="decision" if number % 2 else "plan")
    lab.think("S-2", "pelican of the task", task=task)
    assert len(found(lab, "pelican", 50, session="S-1")) == 20
    assert len(found(lab, "pelican", 50, session="S-2", type="decision")) == 10
    assert found(lab, "pelican", task=task) == ["pelican of the task"]


def test_pages_and_orders() -> None:
    """Specification 7.10, 7.11."""
    lab = in_memory()
    lab.start("S-1")
    for number in range(30):
        lab.think("S-1", f"pelican {number}")

    def page(order: str, limit: int, offset: int) -> tuple[list[str], int]:
        some, total = trail.find(
            lab.db, Filter(), search="pelican", order=order, limit=limit, offset=offset
        )
        return [one.content for one in some], total

    assert page("oldest", 2, 1) == (["pelican 1", "pelican 2"], 30)
    assert page("newest", 2, 0) == (["pelican 29", "pelican 28"], 30)
    whole, _ = trail.find(lab.db, Filter(), order="newest", limit=2, offset=0)
    assert [one.content for one in whole] == ["pelican 29", "pelican 28"]


MOST_PAGES = 8_000
HOSTILE = {
    "an open quote": '"',
    "quotes": '"""" "" \'\'\' "a" OR "b',
    "operators": "AND OR NOT NEAR ( ) * ^ : + - {text} : x",
    "a near": 'NEAR("pelican" "x", 5)',
    "a column": "text : pelican",
    "a first token": "^pelican + x",
    "only punctuation": "!?.,;:-_/\\()[]{}<>@#$%&*+=|~`^" * 8,
    "ten thousand": "pelican " * 1250,
    "one long word": "p" * 10_000,
    "many words": " ".join(f"word{number}" for number in range(2000)),
    "letters": " ".join("abcdefghijklmnopqrstuvwxyz"),
    "nul": "pelican\x00 OR x",
    "half a pair": "pelican \ud83d",
    "emoji": "\U0001f426 \U0001f468\u200d\U0001f469",
    "Chinese": "\u9e48\u9e55 \u9e48",
    "other digits": "\u0662\u0663 \u00b2 \u2167",
    "folding": "STRA\u1e9eE \u0130stanbul \ufb01le \u03a3\u03a3",
}


@pytest.mark.parametrize("question", HOSTILE.values(), ids=HOSTILE)
def test_no_question_is_an_error_or_reads_much(library: Lab, question: str) -> None:
    assert pages(library.db, lambda: found(library, question, 50)) <= MOST_PAGES


LETTERS = [
    ("pelic", "the pelican flies"),
    ("STRASSE", "in der Strasse"),
    ("Stra\u00dfe", "die stra\u00dfe"),
    ("\u039f\u0394\u039f\u03a3", "\u03b7 \u03bf\u03b4\u03cc\u03c2 \u03bf\u03b4\u03bf\u03c2"),
    ("\u9e48\u9e55", "\u9e48\u9e55\u98de\u8d70\u4e86"),
]


@pytest.mark.parametrize(("question", "text"), LETTERS)
def test_letters_of_any_kind_are_found_in_any_case(question: str, text: str) -> None:
    """In the index, and before they are in it."""
    lab = in_memory()
    lab.start("S-1")
    lab.think("S-1", text)
    assert found(lab, question) == [text]
    for _ in range(thought_search.BATCH):
        lab.think("S-1", "something else")
    assert found(lab, question) == [text]


def test_the_words_that_a_few_thoughts_have_decide(library: Lab) -> None:
    """What nobody wrote, and what everybody does, keeps nothing from being found."""
    asked = "zzqx the of libssl is a"
    assert found(library, asked)[0].startswith("We pin the base image by digest")


QUESTIONS = (
    "the",
    "t",
    "the test shows that it stays as it is",
    "what did the test of the upload say about the archive",
    "owner/queue",
    "parser1234 the",
)


@pytest.fixture(scope="module")
def sizes(engine: str) -> tuple[Lab, Lab]:
    """Trails in whose thoughts a word is common, of the words that the bench uses."""
    small, large = in_memory(), in_memory()
    for lab, count in ((small, 2_000), (large, 6_000)):
        for session in ("S-1", "S-2"):
            lab.start(session)
        for number in range(count):
            lab.think(f"S-{number % 2 + 1}", stores.some_thought(number))
    return small, large


@pytest.mark.parametrize("wanted", [{}, {"session": "S-2"}, {"type": "plan"}])
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_search_reads_no_more_in_a_longer_trail(
    sizes: tuple[Lab, Lab], question: str, wanted: dict[str, str]
) -> None:
    """Counted, where every thought has the words; `scripts/bench recall` has 100,000 of them."""
    small, large = (pages(lab.db, partial(found, lab, question, 10, **wanted)) for lab in sizes)
    assert large <= small * 1.5, (small, large)


@pytest.mark.parametrize("wanted", [{}, {"session": "S-2"}, {"task": "T-1"}, {"type": "plan"}])
def test_nothing_is_sorted_but_what_was_found(
    sizes: tuple[Lab, Lab], wanted: dict[str, str]
) -> None:
    _, lab = sizes
    plan = plans(lab.db, lambda: found(lab, "the test", 10, **wanted))
    assert "TEMP B-TREE" not in plan
    assert "SCAN thoughts\n" not in plan
