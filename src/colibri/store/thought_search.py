"""Finds thoughts that have any of some words, best first.

The index finds thoughts with one of the rarer words; those whose words weigh most together are
kept. If all words are common, it finds the newest thoughts that have them. What was found is read
and ranked by all the words. So the cost of an answer does not grow with the log. Thoughts enter the
index in batches; the few that are not in it yet are read as well. The index is the engine's.

A word is a run of letters and digits, and matches any word that begins with it. Joined words, as in
T-0042 or src/app.py, must occur in a row.
"""

import json
import re
from collections.abc import Iterator, Sequence
from functools import partial
from math import log
from typing import Any, NamedTuple

from colibri.store.connection import Connection, Query

BATCH = 16  # fixed in every file: changing it takes a migration
MOST_TERMS = 32  # of a query
MOST_ENDINGS = 32  # of all its words together: each completion of a word is looked up by itself
COMMON = 1000  # thoughts; a term in more of them is searched only if all terms are that common
MOST_FOUND = 2 * COMMON  # thoughts that the index ranks
MOST_RANKED = 64  # thoughts that are read to be ranked
MOST_NEWEST = 128  # the same, if the index cannot rank them
MOST_READ = 8192  # characters of a thought

_TERM = re.compile(r"\w+(?:[-./:@]\w+)*")
_WORD = re.compile(r"[^\W_]+")
# Okapi BM25: how soon repetitions of a term stop counting, and how much length counts.
_SATURATION, _LENGTH, _USUAL_WORDS = 1.2, 0.5, 60


class _Term(NamedTuple):
    """A part of a query: consecutive words, as in the index, and how many thoughts have them, up to
    COMMON.
    """

    words: str
    phrases: list[str]  # with each completion of the last word that the index has
    thoughts: int

    @property
    def weight(self) -> float:
        return log(1 + COMMON / (self.thoughts + 0.5))


def count(db: Connection) -> int:
    """How many thoughts there are."""
    found: int = db.execute("SELECT coalesce(sum(n), 0) FROM thought_counts").get
    return found


def add(db: Connection, count: int) -> None:
    """Index the thoughts that are not indexed yet, if a new one makes them fill a batch: if there
    are so many now.
    """
    if count % BATCH == 0:
        db.engine.thought_index.add(db, [*_waiting(db)])


def forget(db: Connection, seqs: Sequence[int]) -> None:
    """Remove erased thoughts from the index."""
    db.engine.thought_index.forget(db, seqs)


def indexed(db: Connection) -> Iterator[tuple[int, str]]:
    """Seq and text of every thought that the index has, but for those that were erased."""
    last = db.engine.thought_index.last(db)
    yield from _texts(db, "WHERE t.seq <= ? AND l.body IS NOT NULL ORDER BY t.seq", (last,))


def find(
    db: Connection,
    select: str,
    question: str,
    clause: str,
    values: Sequence[str],
    order: str = "seq",
) -> list[Any]:
    """The rows of thoughts that have any of the words, best first, at most MOST_NEWEST.

    `select` is up to its WHERE; in each of its rows the seq comes first and the body last. The
    clause is an additional condition on `thoughts`, with its values; `order` is the column that
    decides which are the newest.
    """
    where = (clause, values)
    waiting = partial(_rows, db, select, db.engine.thought_index.missing())
    known_terms = partial(_terms, db, question)
    db.look_ahead((waiting, known_terms))
    rows = waiting()
    meets = [partial(_meets, db, row[0], *where) for row in rows]
    db.look_ahead((known_terms, *meets), further=True)
    if not (terms := known_terms()):
        return []
    found = {row[0]: row for row, is_met in zip(rows, meets, strict=True) if is_met()}
    found |= {row[0]: row for row in _best(db, select, terms, *where, order)}
    scores = {seq: _score(_text(row[-1]), terms) for seq, row in found.items()}
    best = sorted((seq for seq in scores if scores[seq]), key=lambda seq: (-scores[seq], -seq))
    return [found[seq] for seq in best]


def _best(
    db: Connection,
    select: str,
    terms: Sequence[_Term],
    clause: str,
    values: Sequence[str],
    order: str,
) -> list[Any]:
    """Those that the index ranks by the rarer words; if there are none, the newest."""
    known = [term for term in terms if term.thoughts]
    ranked, newest = [], _newest(db, known, clause, values, order) if known else []
    if rare := _rarest(known):
        ranked = [_ranked(db, rare, clause, values)]
    db.look_ahead(partial(_rows, db, select, one) for one in (*ranked, *newest))
    rows = [row for one in ranked for row in _rows(db, select, one)]
    return rows or [row for one in newest for row in _rows(db, select, one)]


def _rows(db: Connection, select: str, which: Query) -> list[Any]:
    query, values = which
    return db.execute(f"{select} WHERE t.seq IN ({query})", values).fetchall()


def folded(text: str) -> str:
    """In the case that the index uses: it leaves ß as it is."""
    whole = text.casefold()
    if len(whole) == len(text):
        return whole
    return "".join(c if len(other := c.casefold()) > 1 else other for c in text.lower())


def words_of(text: str) -> list[str]:
    """All words of a text, in order, as the index has them."""
    return _WORD.findall(folded(text))


def _terms(db: Connection, question: str) -> list[_Term]:
    joined = (tuple(_WORD.findall(term)) for term in _TERM.findall(folded(question)))
    distinct = [*dict.fromkeys(words for words in joined if words)][:MOST_TERMS]
    index, most = db.engine.thought_index, max(1, MOST_ENDINGS // max(1, len(distinct)))
    db.look_ahead(partial(index.beginning, db, one[-1], most) for one in distinct)
    completed = [
        [" ".join([*first, word]) for word in index.beginning(db, last, most)]
        for *first, last in distinct
    ]
    db.look_ahead(partial(index.count, db, phrases, COMMON) for phrases in completed if phrases)
    return [
        _Term(f" {' '.join(words)}", found, index.count(db, found, COMMON) if found else 0)
        for words, found in zip(distinct, completed, strict=True)
    ]


def _rarest(terms: Sequence[_Term]) -> list[_Term]:
    """The terms that are not common, rarest first, up to MOST_FOUND thoughts together."""
    rare: list[_Term] = []
    found = 0
    for term in sorted(terms, key=lambda term: term.thoughts):
        found += term.thoughts
        if term.thoughts < COMMON and (found <= MOST_FOUND or not rare):
            rare.append(term)
    return rare


def _ranked(db: Connection, terms: Sequence[_Term], clause: str, values: Sequence[str]) -> Query:
    """The thoughts with the terms that weigh most together, of these the newest.

    In words that both engines know and in whole numbers, so that both choose the same.
    """
    found, given = [], list[object]()
    for term in terms:
        query, phrases = db.engine.thought_index.having(term.phrases)
        found.append(f"SELECT seq, {round(1000 * term.weight)} AS weight FROM ({query}) AS these")
        given += phrases
    meets = f"SELECT 1 FROM thoughts WHERE thoughts.seq = found.seq{clause}"
    where = f" WHERE EXISTS ({meets})" if values else ""
    return (
        f"SELECT seq FROM ({' UNION ALL '.join(found)}) AS found{where}"
        " GROUP BY seq ORDER BY sum(weight) DESC, seq DESC LIMIT ?",
        (*given, *values, MOST_RANKED),
    )


def _newest(
    db: Connection, terms: Sequence[_Term], clause: str, values: Sequence[str], order: str
) -> list[Query]:
    """The newest with all of the words, then the newest with any; given a clause, just the newest
    that meet it.
    """
    if values:
        query = f"SELECT seq FROM thoughts WHERE true{clause} ORDER BY {order} DESC LIMIT ?"
        return [(query, (*values, MOST_NEWEST))]
    index, most = db.engine.thought_index, MOST_NEWEST // 2
    groups = [term.phrases for term in terms]
    any_of_them = [[phrase for group in groups for phrase in group]]
    return [index.newest(groups, most), index.newest(any_of_them, most)]


def _waiting(db: Connection) -> Iterator[tuple[int, str]]:
    """Seq and text of the thoughts that are not in the index yet."""
    last = db.engine.thought_index.last(db)
    yield from _texts(db, "WHERE t.seq > ? ORDER BY t.seq", (last,))


def _texts(db: Connection, which: str, values: Sequence[int]) -> Iterator[tuple[int, str]]:
    query = f"SELECT t.seq, l.body FROM thoughts AS t JOIN ledger AS l ON l.seq = t.seq {which}"
    for seq, body in db.execute(query, values):
        yield seq, _text(body)


def _text(body: bytes | None) -> str:
    text: str = "" if body is None else json.loads(body)["content"]
    return text


def _meets(db: Connection, seq: int, clause: str, values: Sequence[str]) -> bool:
    query = f"SELECT 1 FROM thoughts WHERE seq = ?{clause}"
    return db.execute(query, (seq, *values)).fetchone() is not None


def _score(text: str, terms: Sequence[_Term]) -> float:
    """How well a text matches a query: rare terms count for more than common ones."""
    words = words_of(text[:MOST_READ])
    spread = _SATURATION * (1 - _LENGTH + _LENGTH * len(words) / _USUAL_WORDS)
    score, line = 0.0, f" {' '.join(words)}"
    for term in terms:
        found = line.count(term.words)
        score += term.weight * found / (found + spread)
    return score
