"""Both engines find the same thoughts in the same order, also of more than are read."""

from random import Random

from colibri.store import thought_search, trail
from colibri.store.trail import Filter
from tests.support import engines
from tests.support.ledger_writer import Lab, in_memory
from tests.support.thought_corpus import corpus, needles

SIZE = 4 * thought_search.MOST_RANKED
RARE = "libssl"
ASKED = ("the of libssl is a", "is", "the cache", "a the timeout test", "t", "src", "in a row")


def test_the_words_of_few_thoughts_decide_and_both_engines_choose_the_same() -> None:
    """Specification 7.11: by the weight of the words, whatever the engine thinks of a text."""
    found = {}
    for name in engines.ENGINES:
        with engines.use(name):
            found[name] = _answers(_library())
    assert found["postgres"] == found["sqlite"]
    first, *_ = found["sqlite"][ASKED[0], ""]
    assert RARE in first
    assert max(map(len, found["sqlite"].values())) >= thought_search.MOST_RANKED


def _library() -> Lab:
    """Thoughts of different lengths that share words; some of them are not indexed yet."""
    lab = in_memory()
    for session in ("S-1", "S-2"):
        lab.start(session)
    texts, chance = corpus(SIZE), Random(3)
    for number, text in enumerate([*texts, *texts[:9]]):
        more = f" {chance.choice(texts)}" * chance.randrange(3)
        lab.think(f"S-{number % 2 + 1}", text + more)
    return lab


def _answers(lab: Lab) -> dict[tuple[str, str], list[str]]:
    questions = [*ASKED, *(ask for _, ask in needles())]
    return {
        (ask, session): [thought.content for thought in _find(lab, ask, session)]
        for ask in questions
        for session in ("", "S-2")
    }


def _find(lab: Lab, ask: str, session: str) -> tuple[trail.Thought, ...]:
    wanted = Filter(session=session) if session else Filter()
    thoughts, _ = trail.find(lab.db, wanted, search=ask, order="best", limit=100, offset=0)
    return tuple(thoughts)
