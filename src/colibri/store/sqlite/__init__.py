"""SQLite as the engine of the store: all that is its own, and the only importer of apsw.

connection.py   connections and their settings
opening.py      open, migrate, close; schema.py whose file it is, and the migrations
locks.py        `<db>.lock`; files.py the files and their directory; place.py their disk
indexes.py      whether every index has the rows of its table
identity.py     whether the path still leads to what was opened
transaction.py  transactions and parts of them
checkpoint.py   waiting for others, and copying the write-ahead log back
faults.py       what errors mean
backup.py       copies of the file, their check, and putting one in place
"""
