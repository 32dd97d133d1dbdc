-- Sessions and their thoughts: projections of the ledger's `session.open`, `thought` and
-- `session.seal` records; and the trees that seal them.

CREATE TABLE sessions (
    session_id   TEXT NOT NULL PRIMARY KEY,
    intent       TEXT NOT NULL,
    task_id      TEXT,
    started_at   TEXT NOT NULL,
    open_seq     INTEGER NOT NULL UNIQUE REFERENCES ledger (seq),
    record_count INTEGER NOT NULL CHECK (record_count >= 0),      -- its thoughts
    last_leaf    BLOB NOT NULL CHECK (length(last_leaf) = 32),    -- of the newest, else zeros
    finalized_at TEXT,
    seal_seq     INTEGER UNIQUE REFERENCES ledger (seq),
    root         BLOB CHECK (length(root) = 32),
    CHECK ((finalized_at IS NULL) = (root IS NULL) AND (seal_seq IS NULL) = (root IS NULL))
) STRICT;

CREATE TABLE thoughts (
    seq     INTEGER PRIMARY KEY REFERENCES ledger (seq),
    session TEXT NOT NULL REFERENCES sessions (session_id),
    idx     INTEGER NOT NULL CHECK (idx >= 0),
    task    TEXT,
    type    TEXT NOT NULL CHECK (
                type = 'plan' OR type = 'analysis' OR type = 'decision' OR type = 'reflection'),
    UNIQUE (session, idx)
) STRICT;

CREATE INDEX thoughts_of_task ON thoughts (task, seq, type) WHERE task IS NOT NULL;
CREATE INDEX thoughts_of_type ON thoughts (type);

-- How many thoughts there are of each type, so that a total of all never counts rows.
CREATE TABLE thought_counts (
    type TEXT NOT NULL PRIMARY KEY,
    n    INTEGER NOT NULL CHECK (n >= 0)
) STRICT;

CREATE TRIGGER thoughts_counted AFTER INSERT ON thoughts BEGIN
    INSERT INTO thought_counts VALUES (NEW.type, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;

-- The Merkle tree of a sealed session: level 0 holds the leaves, a promoted node is on every level.
CREATE TABLE merkle_nodes (
    session TEXT NOT NULL REFERENCES sessions (session_id),
    level   INTEGER NOT NULL CHECK (level >= 0),
    idx     INTEGER NOT NULL CHECK (idx >= 0),
    hash    BLOB NOT NULL CHECK (length(hash) = 32),
    PRIMARY KEY (session, level, idx)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER merkle_nodes_refuse_update BEFORE UPDATE ON merkle_nodes
BEGIN
    SELECT RAISE(ABORT, 'a sealed session is never changed');
END;

CREATE TRIGGER merkle_nodes_refuse_delete BEFORE DELETE ON merkle_nodes
BEGIN
    SELECT RAISE(ABORT, 'a sealed session is never changed');
END;
