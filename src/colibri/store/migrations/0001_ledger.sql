-- The hash-chained ledger: one row per record, its payload apart so that it can be erased.

CREATE TABLE ledger (
    seq     INTEGER PRIMARY KEY CHECK (seq >= 1),
    header  BLOB NOT NULL,                                  -- the bytes that were hashed
    leaf    BLOB NOT NULL CHECK (length(leaf) = 32),
    prev    BLOB NOT NULL CHECK (length(prev) = 32),
    at      TEXT NOT NULL,                                  -- from here on: copies, for queries
    kind    TEXT NOT NULL CHECK (kind IN (
                'call.enter', 'call.exit', 'session.open', 'thought',
                'session.seal', 'task', 'task.text', 'erasure')),
    call    TEXT NOT NULL,
    session TEXT,
    task    TEXT,
    agent   TEXT
) STRICT;

CREATE INDEX ledger_by_session ON ledger (session, seq) WHERE session IS NOT NULL;
CREATE INDEX ledger_by_task ON ledger (task, seq) WHERE task IS NOT NULL;
CREATE INDEX ledger_erasures ON ledger (seq) WHERE kind = 'erasure';

CREATE TABLE payloads (
    seq   INTEGER PRIMARY KEY REFERENCES ledger (seq),
    nonce BLOB NOT NULL CHECK (length(nonce) = 32),
    body  BLOB NOT NULL
) STRICT;

CREATE TABLE meta (
    key   TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

-- The chain can neither fork nor gap: every record but the first follows the newest there is.
CREATE TRIGGER ledger_refuses_a_fork BEFORE INSERT ON ledger
WHEN NEW.seq IS NOT (SELECT ifnull(max(seq), 0) + 1 FROM ledger)
    OR NEW.prev IS NOT (SELECT leaf FROM ledger WHERE seq = NEW.seq - 1) AND NEW.seq > 1
BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only: a record follows the newest one, or none');
END;

CREATE TRIGGER ledger_refuses_update BEFORE UPDATE ON ledger
BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only: records are never changed');
END;

CREATE TRIGGER ledger_refuses_delete BEFORE DELETE ON ledger
BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only: records are never deleted');
END;

CREATE TRIGGER payloads_refuse_update BEFORE UPDATE ON payloads
BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only: payloads are never changed, only erased');
END;

-- The two records of a call, under the seeds' name; sequence_no is the enter's seq on both.
CREATE VIEW actions AS
SELECT
    CASE l.kind WHEN 'call.enter' THEN l.seq ELSE p.body ->> '$.enter' END AS sequence_no,
    CASE l.kind WHEN 'call.enter' THEN 'enter' ELSE 'exit' END             AS phase,
    p.body ->> '$.tool'                                                    AS tool,
    l.call                                                                 AS correlation_id,
    CASE l.kind WHEN 'call.enter' THEN 'running' ELSE p.body ->> '$.outcome' END AS outcome,
    p.body ->> '$.result_sha256'                                           AS result_hash,
    p.body ->> '$.duration_ms'                                             AS duration_ms,
    l.at                                                                   AS at
FROM ledger AS l
LEFT JOIN (SELECT seq, CAST(body AS TEXT) AS body FROM payloads) AS p ON p.seq = l.seq
WHERE l.kind IN ('call.enter', 'call.exit');

CREATE VIEW audit_events AS
SELECT sequence_no, phase, tool, correlation_id, outcome, result_hash, duration_ms, at FROM actions;

-- Thoughts in ledger order; of an erased one only its place and its hash are left.
CREATE VIEW thought_records AS
SELECT
    'R-' || l.seq                               AS thought_id,
    l.seq                                       AS seq,
    p.body ->> '$.index'                        AS idx,
    l.session                                   AS session_id,
    l.task                                      AS task_id,
    l.agent                                     AS agent_id,
    p.body ->> '$.type'                         AS type,
    coalesce(p.body ->> '$.content', '[erased]') AS content,
    l.at                                        AS created_at,
    p.body ->> '$.prev'                         AS prev_hash,
    lower(hex(l.leaf))                          AS hash
FROM ledger AS l
LEFT JOIN (SELECT seq, CAST(body AS TEXT) AS body FROM payloads) AS p ON p.seq = l.seq
WHERE l.kind = 'thought';
