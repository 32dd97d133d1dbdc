-- The hash-chained ledger: one row per record. Its header is not stored: it is made from the row.

CREATE TABLE ledger (
    seq     INTEGER PRIMARY KEY CHECK (seq >= 1),
    at      TEXT NOT NULL,
    kind    TEXT NOT NULL CHECK (
                kind = 'call.enter' OR kind = 'call.exit' OR kind = 'session.open'
                OR kind = 'session.resume' OR kind = 'thought' OR kind = 'session.seal'
                OR kind = 'task' OR kind = 'task.text' OR kind = 'erasure'
                OR kind = 'deed' OR kind = 'deed.text'),
    call    TEXT NOT NULL,
    session TEXT,
    task    TEXT,
    agent   TEXT,
    payload BLOB NOT NULL CHECK (length(payload) = 32),     -- the commitment to nonce and body
    nonce   BLOB CHECK (length(nonce) = 32),                -- NULL, like the body, once erased
    body    BLOB,
    leaf    BLOB NOT NULL CHECK (length(leaf) = 32),        -- the hash of the header
    prev    BLOB NOT NULL CHECK (length(prev) = 32),
    CHECK ((nonce IS NULL) = (body IS NULL))
) STRICT;

-- Each index ends with the seq of its row, without being told to.
CREATE INDEX ledger_by_session ON ledger (session) WHERE session IS NOT NULL;
CREATE INDEX ledger_by_task ON ledger (task) WHERE task IS NOT NULL;
CREATE INDEX ledger_erasures ON ledger (seq) WHERE kind = 'erasure';

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

-- Erasure is the one change there is: a text goes, with its nonce, once and for good.
CREATE TRIGGER ledger_refuses_update BEFORE UPDATE ON ledger
WHEN NEW.nonce IS NOT NULL OR NEW.body IS NOT NULL OR OLD.nonce IS NULL OR OLD.body IS NULL
    OR (NEW.seq, NEW.at, NEW.kind, NEW.call, NEW.session, NEW.task, NEW.agent,
        NEW.payload, NEW.leaf, NEW.prev)
    IS NOT (OLD.seq, OLD.at, OLD.kind, OLD.call, OLD.session, OLD.task, OLD.agent,
        OLD.payload, OLD.leaf, OLD.prev)
BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only: records are never changed, only erased');
END;

CREATE TRIGGER ledger_refuses_delete BEFORE DELETE ON ledger
BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only: records are never deleted');
END;

-- The two records of a call (Specification 9.7); sequence_no is the enter's seq on both.
CREATE VIEW actions AS
SELECT
    CASE l.kind WHEN 'call.enter' THEN l.seq ELSE l.body ->> '$.enter' END AS sequence_no,
    CASE l.kind WHEN 'call.enter' THEN 'enter' ELSE 'exit' END             AS phase,
    l.body ->> '$.tool'                                                    AS tool,
    l.call                                                                 AS correlation_id,
    CASE l.kind WHEN 'call.enter' THEN 'running' ELSE l.body ->> '$.outcome' END AS outcome,
    l.body ->> '$.result_sha256'                                           AS result_hash,
    l.body ->> '$.duration_ms'                                             AS duration_ms,
    l.at                                                                   AS at
FROM (SELECT seq, at, kind, call, CAST(body AS TEXT) AS body FROM ledger) AS l
WHERE l.kind = 'call.enter' OR l.kind = 'call.exit';

CREATE VIEW audit_events AS
SELECT sequence_no, phase, tool, correlation_id, outcome, result_hash, duration_ms, at FROM actions;

-- Thoughts in ledger order; of an erased one only its place and its hash are left.
CREATE VIEW thought_records AS
SELECT
    'R-' || l.seq                               AS thought_id,
    l.seq                                       AS seq,
    l.said ->> '$.index'                        AS idx,
    l.session                                   AS session_id,
    l.task                                      AS task_id,
    l.agent                                     AS agent_id,
    l.said ->> '$.type'                         AS type,
    coalesce(l.said ->> '$.content', '[erased]') AS content,
    l.at                                        AS created_at,
    l.said ->> '$.prev'                         AS prev_hash,
    lower(hex(l.leaf))                          AS hash
FROM (SELECT *, CAST(body AS TEXT) AS said FROM ledger) AS l
WHERE l.kind = 'thought';
