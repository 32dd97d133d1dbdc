"""Everything specific to PostgreSQL; only this package imports psycopg.

connection.py   connections; engine.py what the store reaches through them
transaction.py  transactions under the lock of the head, and the flush after them
task_search.py thought_index.py   the words of tasks and thoughts
faults.py       what errors mean
schema.py       the migrations; roles.py who may do what; expected.py whether it is still so
team.py         making a project's schema
moving.py       a file's ledger, copied into one (copying.py)
"""

SCHEMA = 5  # the version of the schema that the migrations lead to
