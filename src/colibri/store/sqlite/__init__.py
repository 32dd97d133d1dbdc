"""Everything specific to SQLite; only this package imports apsw.

connection.py   connections and their settings; engine.py what the store reaches through them
opening.py      open, migrate, close; schema.py recognises our files and has the migrations
locks.py        `<db>.lock`; files.py the files and their directory; place.py their disk
indexes.py      whether every index matches its table
identity.py     whether the path still leads to what was opened
transaction.py  transactions and parts of them
checkpoint.py   waiting for others, and copying the write-ahead log back
faults.py       what errors mean
backup.py       making, checking and restoring copies of the file
"""

SCHEMA = 5  # the version of the schema that the migrations lead to
