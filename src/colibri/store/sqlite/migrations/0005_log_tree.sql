-- The Merkle tree over the leaves of the ledger: the roots of its complete parts of 256 leaves, as
-- far as they were computed. Part idx is over the records from idx * 256 + 1 on.

CREATE TABLE log_tree (
    idx  INTEGER PRIMARY KEY CHECK (idx >= 0),
    hash BLOB NOT NULL CHECK (length(hash) = 32)
) STRICT;

CREATE TRIGGER log_tree_refuses_update BEFORE UPDATE ON log_tree
BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only, and so is its tree');
END;

CREATE TRIGGER log_tree_refuses_delete BEFORE DELETE ON log_tree
BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only, and so is its tree');
END;
