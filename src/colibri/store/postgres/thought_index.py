"""Which thoughts have which words. Owns `thought_search` and `thought_words`.

A phrase is some words in a row, as the index has them: folded, with a space between two. Words are
cut and folded here, as those of a question are: PostgreSQL's own parser knows none of our rules.
"""

from collections.abc import Iterator, Sequence

from colibri.store.connection import Connection, Query
from colibri.store.thought_search import words_of

_MOST_PLACES = 16_383  # that a tsvector knows
_LONGEST = 2_000  # bytes of a word that it takes


def add(db: Connection, texts: Sequence[tuple[int, str]]) -> None:
    """Index some thoughts: seq and text of each."""
    cut = [(seq, _kept(text)) for seq, text in texts]
    for word in sorted({word for _, words in cut for word in words}):
        db.execute("INSERT INTO thought_words (word) VALUES (?) ON CONFLICT DO NOTHING", (word,))
    db.executemany(
        "INSERT INTO thought_search (seq, words) VALUES (?, CAST(? AS tsvector))",
        [(seq, _vector(words)) for seq, words in cut],
    )


def vector(text: str) -> str:
    """The words of a text, as `thought_search` takes them."""
    return _vector(_kept(text))


def forget(db: Connection, seqs: Sequence[int]) -> None:
    """Remove some thoughts, and the words that only they had."""
    rows = [(seq,) for seq in seqs]
    query = "SELECT unnest(tsvector_to_array(words)) FROM thought_search WHERE seq = ?"
    words = {word for row in rows for (word,) in db.execute(query, row)}
    db.executemany("DELETE FROM thought_search WHERE seq = ?", rows)
    db.executemany(
        "DELETE FROM thought_words WHERE word = ? AND NOT EXISTS"
        " (SELECT 1 FROM thought_search WHERE words @@ CAST(quote_literal(word) AS tsquery))",
        [(word,) for word in words],
    )


def last(db: Connection) -> int:
    """The newest thought in the index; 0 if there is none."""
    seq: int = db.execute("SELECT coalesce(max(seq), 0) FROM thought_search").get
    return seq


def beginning(db: Connection, start: str, most: int) -> list[str]:
    """The first words that begin so, at most so many."""
    rows = db.execute(
        "SELECT word FROM thought_words WHERE word >= ? ORDER BY word LIMIT ?", (start, most)
    )
    return [word for (word,) in rows if word.startswith(start)]


def count(db: Connection, phrases: Sequence[str], most: int) -> int:
    """How many thoughts have one of some phrases, up to a number."""
    found: int = db.execute(
        "SELECT count(*) FROM (SELECT 1 FROM thought_search WHERE words @@ CAST(? AS tsquery)"
        " LIMIT ?) AS found",
        (_any(phrases), most),
    ).get
    return found


def missing() -> Query:
    """The thoughts that are not in the index yet: all after the newest one in it."""
    newest = "SELECT coalesce(max(seq), 0) FROM thought_search"
    return f"SELECT seq FROM thoughts WHERE seq > ({newest})", ()


def having(phrases: Sequence[str]) -> Query:
    """The seqs of the thoughts that have one of some phrases, each once."""
    return "SELECT seq FROM thought_search WHERE words @@ CAST(? AS tsquery)", (_any(phrases),)


def newest(phrases: Sequence[Sequence[str]], most: int) -> Query:
    """The newest thoughts that have one phrase of each group."""
    return (
        "SELECT seq FROM thought_search WHERE words @@ CAST(? AS tsquery)"
        " ORDER BY seq DESC LIMIT ?",
        (" & ".join(f"({_any(group)})" for group in phrases), most),
    )


# Thoughts enter the index in order, a batch at a time; an erased one may have been removed.
_ALTERED = """
    SELECT seq FROM thoughts AS t
    WHERE seq < (SELECT max(seq) FROM thought_search)
        AND NOT EXISTS (SELECT 1 FROM thought_search AS s WHERE s.seq = t.seq)
        AND (SELECT body FROM ledger AS l WHERE l.seq = t.seq) IS NOT NULL
    UNION ALL
    SELECT seq FROM thought_search AS s
    WHERE NOT EXISTS (SELECT 1 FROM thoughts AS t WHERE t.seq = s.seq)
"""


def altered(db: Connection) -> Iterator[int]:
    """The seqs of thoughts that only one of the ledger and the index has."""
    for (seq,) in db.execute(_ALTERED):
        yield seq


def has_other_words(db: Connection) -> bool:
    """Whether its list of words is not that of the words of its thoughts."""
    return bool(db.execute(_OTHER_WORDS).get)


_OTHER_WORDS = """
    SELECT EXISTS (
        SELECT 1 FROM ts_stat('SELECT words FROM thought_search') AS used
        FULL JOIN thought_words AS kept ON kept.word = used.word COLLATE "C"
        WHERE used.word IS NULL OR kept.word IS NULL)
"""


def _kept(text: str) -> list[str]:
    return [word for word in words_of(text) if len(word.encode()) <= _LONGEST]


def _vector(words: Sequence[str]) -> str:
    """A text as PostgreSQL takes it: its words, letters and digits, with their places."""
    places: dict[str, list[int]] = {}
    for place, word in enumerate(words[:_MOST_PLACES], 1):
        places.setdefault(word, []).append(place)
    return " ".join(f"'{word}':{','.join(map(str, at))}" for word, at in places.items())


def _any(phrases: Sequence[str]) -> str:
    """A query for one of some phrases."""
    return " | ".join(
        "(" + " <-> ".join(f"'{word}'" for word in phrase.split(" ")) + ")" for phrase in phrases
    )
