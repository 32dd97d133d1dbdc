-- Sessions and their thoughts: projections of the ledger's `session.open`, `session.resume`,
-- `thought` and `session.seal` records; and the trees that seal them.

CREATE TABLE sessions (
    session_id   TEXT NOT NULL PRIMARY KEY,
    intent       TEXT NOT NULL,
    task_id      TEXT,
    agent        TEXT,
    server       TEXT NOT NULL,         -- the process that opened it, or last went on with it,
    client       TEXT,                  -- and for whom
    host_session TEXT,
    resume_seq   INTEGER UNIQUE REFERENCES ledger (seq),
    started_at   TEXT NOT NULL,
    open_seq     INTEGER NOT NULL UNIQUE REFERENCES ledger (seq),
    record_count INTEGER NOT NULL CHECK (record_count >= 0),      -- its thoughts
    last_leaf    BLOB NOT NULL CHECK (length(last_leaf) = 32),    -- of the newest, else zeros
    finalized_at TEXT,
    seal_seq     INTEGER UNIQUE REFERENCES ledger (seq),
    root         BLOB CHECK (length(root) = 32),
    CHECK ((finalized_at IS NULL) = (root IS NULL) AND (seal_seq IS NULL) = (root IS NULL))
) STRICT;

CREATE INDEX sessions_open ON sessions (open_seq) WHERE root IS NULL;
CREATE INDEX sessions_of_server ON sessions (server) WHERE root IS NULL;

-- The first call of each key that a client gave to a call which it may send again.
CREATE TABLE call_keys (
    tool    TEXT NOT NULL,
    session TEXT NOT NULL,              -- '' where the key counts for all
    key     TEXT NOT NULL,              -- its hash: the key itself can be erased with its call
    enter   INTEGER NOT NULL UNIQUE REFERENCES ledger (seq),
    made    INTEGER NOT NULL,           -- the number of the task, or the seq of the thought
    PRIMARY KEY (tool, session, key)
) STRICT, WITHOUT ROWID;

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

-- Search: the words of each thought. The text itself is in the ledger.
CREATE VIRTUAL TABLE thought_search USING fts5 (
    text, tokenize = 'unicode61 remove_diacritics 0', content = '', contentless_delete = 1);
CREATE VIRTUAL TABLE thought_words USING fts5vocab (thought_search, instance);

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
