-- The Merkle tree over the leaves of the ledger: the roots of its complete parts of 256 leaves, as
-- far as they were computed. Part idx is over the records from idx * 256 + 1 on.

CREATE TABLE log_tree (
    idx  bigint PRIMARY KEY CHECK (idx >= 0),
    hash bytea NOT NULL CHECK (length(hash) = 32)
);

CREATE FUNCTION keep_log_tree() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
        MESSAGE = 'the ledger is append-only, and so is its tree';
END $$;

CREATE TRIGGER log_tree_refuses_change BEFORE UPDATE OR DELETE OR TRUNCATE ON log_tree
FOR EACH STATEMENT EXECUTE FUNCTION keep_log_tree();
