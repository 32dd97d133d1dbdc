"""A checkpoint of a log, in a separate process: python tree.py bare|first|next DATABASE

    bare     reads the leaves and hashes the tree over them, level by level, nothing else
    first    keeps the roots of all parts, as `colibri witness` does, and makes the checkpoint
    next     makes one of 100 records more than there were when the roots were kept

Prints seconds.
"""

import sys
import time
from hashlib import sha256

from colibri.store import ledger, log_tree
from colibri.store.sqlite import appending
from colibri.store.sqlite.opening import open_reader
from colibri.store.sqlite.watch import Change

MORE = 100


def bare(path: str) -> float:
    reader, start = open_reader(path), time.perf_counter()
    row = [leaf for (leaf,) in reader.execute("SELECT leaf FROM ledger ORDER BY seq")]
    while len(row) > 1:
        odd = row[-1:] if len(row) % 2 else []
        pairs = zip(row[::2], row[1::2], strict=False)
        row = [sha256(b"\1" + left + right).digest() for left, right in pairs] + odd
    return time.perf_counter() - start


def first(path: str) -> float:
    opened, start = appending.open_current(path, lambda tries: False), time.perf_counter()
    more = True
    while more:
        with Change(opened.db, opened.watch, durable=False):
            more = log_tree.keep(opened.db)
    log_tree.checkpoint(opened.db)
    taken = time.perf_counter() - start
    appending.leave(opened)
    return taken


def next(path: str) -> float:
    reader = open_reader(path)
    last = ledger.last_seq(reader)
    log_tree.checkpoint(reader, last - MORE)  # which the witness before has made
    start = time.perf_counter()
    log_tree.checkpoint(reader, last)
    return time.perf_counter() - start


if __name__ == "__main__":
    print({"bare": bare, "first": first, "next": next}[sys.argv[1]](sys.argv[2]))
