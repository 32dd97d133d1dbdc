"""Finds thoughts that have any of some words, best first. Owns `thought_search`.

The index finds thoughts with one of the rarer words and ranks them; if all words are common, it
finds the newest thoughts that have them. The best of these are read and ranked by all the words. So
the cost of an answer does not grow with the log. Thoughts enter the index in batches; the few that
are not in it yet are read as well.

A word is a run of letters and digits, and matches any word that begins with it. Joined words, as in
T-0042 or src/app.py, must occur in a row.
"""

import json
import re
from collections.abc import Iterator, Sequence
from math import log
from typing import Any, NamedTuple

from colibri.store.connection import Connection

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
_AFTER = "\x01"  # sorts before any character that can continue a word
# Okapi BM25: how soon repetitions of a term stop counting, and how much length counts.
_SATURATION, _LENGTH, _USUAL_WORDS = 1.2, 0.5, 60


class _Term(NamedTuple):
    """A part of a query: consecutive words, as in the index, and how many thoughts have them, up to
    COMMON.
    """

    words: str
    query: str
    thoughts: int

    @property
    def weight(self) -> float:
        return log(1 + COMMON / (self.thoughts + 0.5))


def add(db: Connection) -> None:
    """Index the thoughts that are not indexed yet, if they fill a batch."""
    count: int = db.execute("SELECT sum(n) FROM thought_counts").get
    if count % BATCH == 0:
        waiting = [*_waiting(db)]
        db.executemany("INSERT INTO thought_search (rowid, text) VALUES (?, ?)", waiting)


def forget(db: Connection, seqs: Sequence[int]) -> None:
    """Remove erased thoughts from the index."""
    db.executemany("DELETE FROM thought_search WHERE rowid = ?", [(seq,) for seq in seqs])
    db.execute("INSERT INTO thought_search (thought_search) VALUES ('optimize')")


def find(
    db: Connection, question: str, clause: str, values: Sequence[str], order: str = "seq"
) -> list[int]:
    """The seqs of thoughts that have any of the words, best first, at most MOST_NEWEST.

    The clause is an additional condition on `thoughts`, with its values; `order` is the column that
    decides which are the newest.
    """
    terms = _terms(db, question)
    if not terms:
        return []
    known = [term for term in terms if term.thoughts]
    rare, where = _rarest(known), (clause, values)
    seqs = (rare and _ranked(db, rare, *where)) or (known and _newest(db, known, *where, order))
    texts = {seq: text for seq, text in _waiting(db) if _meets(db, seq, *where)}
    if seqs:
        texts |= _texts(db, f"WHERE t.seq IN ({', '.join('?' * len(seqs))})", seqs)
    scores = {seq: _score(text, terms) for seq, text in texts.items()}
    return sorted((seq for seq in scores if scores[seq]), key=lambda seq: (-scores[seq], -seq))


def folded(text: str) -> str:
    """In the case that the index uses: it leaves ß as it is."""
    whole = text.casefold()
    if len(whole) == len(text):
        return whole
    return "".join(c if len(other := c.casefold()) > 1 else other for c in text.lower())


def _terms(db: Connection, question: str) -> list[_Term]:
    joined = (tuple(_WORD.findall(term)) for term in _TERM.findall(folded(question)))
    distinct = [*dict.fromkeys(words for words in joined if words)][:MOST_TERMS]
    return [_term(db, words, max(1, MOST_ENDINGS // len(distinct))) for words in distinct]


def _term(db: Connection, words: tuple[str, ...], most: int) -> _Term:
    *first, last = words
    endings = " OR ".join(f'"{" ".join([*first, word])}"' for word in _beginning(db, last, most))
    thoughts: int = 0
    if endings:
        count = "SELECT count(*) FROM (SELECT 1 FROM thought_search WHERE thought_search MATCH ?"
        thoughts = db.execute(f"{count} LIMIT ?)", (endings, COMMON)).get
    return _Term(f" {' '.join(words)}", f"({endings})", thoughts)


def _beginning(db: Connection, start: str, most: int) -> Iterator[str]:
    """The first words of the index that begin so, each looked up from the one before: a prefix
    query would go through all thoughts that have any of them.
    """
    after = start
    for _ in range(most):
        query = "SELECT term FROM thought_words WHERE term >= ? LIMIT 1"
        word: str | None = db.execute(query, (after,)).get
        if word is None or not word.startswith(start):
            return
        yield word
        after = word + _AFTER


def _rarest(terms: Sequence[_Term]) -> list[_Term]:
    """The terms that are not common, rarest first, up to MOST_FOUND thoughts together."""
    rare: list[_Term] = []
    found = 0
    for term in sorted(terms, key=lambda term: term.thoughts):
        found += term.thoughts
        if term.thoughts < COMMON and (found <= MOST_FOUND or not rare):
            rare.append(term)
    return rare


def _ranked(
    db: Connection, terms: Sequence[_Term], clause: str, values: Sequence[str]
) -> list[int]:
    """The thoughts that the index ranks best."""
    join = " JOIN thoughts ON thoughts.seq = thought_search.rowid" if values else ""
    rows: list[Any] = db.execute(
        f"SELECT thought_search.rowid FROM thought_search{join}"
        f" WHERE thought_search MATCH ?{clause} ORDER BY rank LIMIT ?",
        (" OR ".join(term.query for term in terms), *values, MOST_RANKED),
    ).fetchall()
    return [seq for (seq,) in rows]


def _newest(
    db: Connection, terms: Sequence[_Term], clause: str, values: Sequence[str], order: str
) -> list[int]:
    """The newest with all of the words, then the newest with any; given a clause, just the newest
    that meet it.
    """
    if values:
        query = f"SELECT seq FROM thoughts WHERE true{clause} ORDER BY {order} DESC LIMIT ?"
        some: list[Any] = db.execute(query, (*values, MOST_NEWEST)).fetchall()
        return [seq for (seq,) in some]
    seqs: list[int] = []
    for word in (" AND ", " OR "):
        rows: list[Any] = db.execute(
            "SELECT rowid FROM thought_search WHERE thought_search MATCH ?"
            " ORDER BY rowid DESC LIMIT ?",
            (word.join(term.query for term in terms), MOST_NEWEST // 2),
        ).fetchall()
        seqs += [seq for (seq,) in rows]
    return seqs


def _waiting(db: Connection) -> Iterator[tuple[int, str]]:
    """Seq and text of the thoughts that are not in the index yet."""
    query = "SELECT rowid FROM thought_search ORDER BY rowid DESC LIMIT 1"
    last: int | None = db.execute(query).get
    yield from _texts(db, "WHERE t.seq > ? ORDER BY t.seq", (last or 0,))


def _texts(db: Connection, which: str, values: Sequence[int]) -> Iterator[tuple[int, str]]:
    query = f"SELECT t.seq, l.body FROM thoughts AS t JOIN ledger AS l ON l.seq = t.seq {which}"
    for seq, body in db.execute(query, values):
        yield seq, "" if body is None else json.loads(body)["content"]


def _meets(db: Connection, seq: int, clause: str, values: Sequence[str]) -> bool:
    query = f"SELECT 1 FROM thoughts WHERE seq = ?{clause}"
    return db.execute(query, (seq, *values)).fetchone() is not None


def _score(text: str, terms: Sequence[_Term]) -> float:
    """How well a text matches a query: rare terms count for more than common ones."""
    words = _WORD.findall(folded(text[:MOST_READ]))
    spread = _SATURATION * (1 - _LENGTH + _LENGTH * len(words) / _USUAL_WORDS)
    score, line = 0.0, f" {' '.join(words)}"
    for term in terms:
        found = line.count(term.words)
        score += term.weight * found / (found + spread)
    return score
