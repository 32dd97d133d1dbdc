"""The database: all SQL, synchronous, each table with one owner."""
