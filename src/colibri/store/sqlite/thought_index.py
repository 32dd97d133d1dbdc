"""Which thoughts have which words. Owns `thought_search`, whose rows are seqs of thoughts.

A phrase is some words in a row, as the index has them: folded, with a space between two.
"""

from collections.abc import Iterator, Sequence

from colibri.store.connection import Connection, Query

_AFTER = "\x01"  # sorts before any character that can continue a word


def add(db: Connection, texts: Sequence[tuple[int, str]]) -> None:
    """Index some thoughts: seq and text of each."""
    db.executemany("INSERT INTO thought_search (rowid, text) VALUES (?, ?)", texts)


def forget(db: Connection, seqs: Sequence[int]) -> None:
    """Remove some thoughts, and what is left of those removed before."""
    db.executemany("DELETE FROM thought_search WHERE rowid = ?", [(seq,) for seq in seqs])
    db.execute("INSERT INTO thought_search (thought_search) VALUES ('optimize')")


def last(db: Connection) -> int:
    """The newest thought in the index; 0 if there is none."""
    seq: int | None = db.execute("SELECT rowid FROM thought_search ORDER BY rowid DESC LIMIT 1").get
    return seq or 0


def beginning(db: Connection, start: str, most: int) -> list[str]:
    """The first words that begin so, each looked up from the one before: a prefix query would go
    through all thoughts that have any of them.
    """
    found: list[str] = []
    after = start
    while len(found) < most:
        query = "SELECT term FROM thought_words WHERE term >= ? LIMIT 1"
        word: str | None = db.execute(query, (after,)).get
        if word is None or not word.startswith(start):
            break
        found.append(word)
        after = word + _AFTER
    return found


def count(db: Connection, phrases: Sequence[str], most: int) -> int:
    """How many thoughts have one of some phrases, up to a number."""
    found: int = db.execute(
        "SELECT count(*) FROM (SELECT 1 FROM thought_search WHERE thought_search MATCH ? LIMIT ?)",
        (_any(phrases), most),
    ).get
    return found


def missing() -> Query:
    """The thoughts that are not in the index yet: all after the newest one in it."""
    newest = "SELECT rowid FROM thought_search ORDER BY rowid DESC LIMIT 1"
    return f"SELECT seq FROM thoughts WHERE seq > coalesce(({newest}), 0)", ()


def having(phrases: Sequence[str]) -> Query:
    """The seqs of the thoughts that have one of some phrases, each once."""
    return "SELECT rowid AS seq FROM thought_search WHERE thought_search MATCH ?", (_any(phrases),)


def newest(phrases: Sequence[Sequence[str]], most: int) -> Query:
    """The newest thoughts that have one phrase of each group."""
    return (
        "SELECT rowid FROM thought_search WHERE thought_search MATCH ? ORDER BY rowid DESC LIMIT ?",
        (" AND ".join(f"({_any(group)})" for group in phrases), most),
    )


# Thoughts enter the index in order, a batch at a time; an erased one may have been removed.
_ALTERED = """
    SELECT seq FROM thoughts
    WHERE seq < (SELECT max(rowid) FROM thought_search)
        AND seq NOT IN (SELECT rowid FROM thought_search)
        AND (SELECT body FROM ledger WHERE ledger.seq = thoughts.seq) IS NOT NULL
    UNION ALL
    SELECT rowid FROM thought_search WHERE rowid NOT IN (SELECT seq FROM thoughts)
"""


def altered(db: Connection) -> Iterator[int]:
    """The seqs of thoughts that only one of the ledger and the index has."""
    for (seq,) in db.execute(_ALTERED):
        yield seq


def has_other_words(db: Connection) -> bool:
    """Never: SQLite makes the list from the index itself."""
    return False


def _any(phrases: Sequence[str]) -> str:
    return " OR ".join(f'"{phrase}"' for phrase in phrases)
