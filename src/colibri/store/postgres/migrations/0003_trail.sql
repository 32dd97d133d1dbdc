-- Sessions and their thoughts: projections of the ledger's `session.open`, `session.resume`,
-- `thought` and `session.seal` records; and the trees that seal them.

CREATE TABLE sessions (
    session_id   text COLLATE "C" NOT NULL PRIMARY KEY,
    intent       text COLLATE "C" NOT NULL,
    task_id      text COLLATE "C",
    agent        text COLLATE "C",
    server       text COLLATE "C" NOT NULL,     -- the process that opened it, or last went on with
    client       text COLLATE "C",              -- it, and for whom
    host_session text COLLATE "C",
    resume_seq   bigint UNIQUE REFERENCES ledger (seq),
    started_at   text COLLATE "C" NOT NULL,
    open_seq     bigint NOT NULL UNIQUE REFERENCES ledger (seq),
    record_count bigint NOT NULL CHECK (record_count >= 0),         -- its thoughts
    last_leaf    bytea NOT NULL CHECK (length(last_leaf) = 32),     -- of the newest, else zeros
    finalized_at text COLLATE "C",
    seal_seq     bigint UNIQUE REFERENCES ledger (seq),
    root         bytea CHECK (length(root) = 32),
    CHECK ((finalized_at IS NULL) = (root IS NULL) AND (seal_seq IS NULL) = (root IS NULL))
);

CREATE INDEX sessions_open ON sessions (open_seq) WHERE root IS NULL;
CREATE INDEX sessions_of_server ON sessions (server) WHERE root IS NULL;

-- The last sign of life of a session: the exit of a call that was not refused, a deed that was not
-- late, or its opening. Without enable_sort, PostgreSQL goes back through the records of the
-- session; else it may read all of them and sort.
CREATE FUNCTION last_sign(of_session text) RETURNS TABLE (seq bigint, at text)
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET enable_sort = off AS $$
BEGIN
    RETURN QUERY SELECT l.seq, l.at FROM ledger AS l
        WHERE l.session = of_session AND (l.kind = 'session.open'
            OR l.kind = 'call.exit'
                AND position(convert_to('"outcome":"ok"', 'UTF8') IN l.body) > 0
            OR l.kind = 'deed' AND position(convert_to('"late":null,', 'UTF8') IN l.body) > 0)
        ORDER BY l.seq DESC LIMIT 1;
END $$;

-- The one open session in which a caller works, if there is just one: sessions.current in SQL.
CREATE FUNCTION current_session(
    of_server text, of_client text, of_host_session text, since text,
    OUT id text, OUT its_agent text
) LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
DECLARE
    found bigint;
BEGIN
    WITH mine AS (
        SELECT s.session_id, s.agent FROM sessions AS s
        WHERE s.server = of_server AND s.root IS NULL
            AND s.client IS NOT DISTINCT FROM of_client
            AND s.host_session IS NOT DISTINCT FROM of_host_session
        LIMIT 33
    ), alive AS (
        SELECT * FROM mine WHERE (SELECT count(*) FROM mine) > 32 OR (
            SELECT sign.at FROM last_sign(mine.session_id) AS sign) > since
    )
    SELECT count(*), min(session_id), min(agent) INTO found, id, its_agent FROM alive;
    IF found <> 1 THEN
        id := NULL;
        its_agent := NULL;
    END IF;
END $$;

-- The enter record of a call, under the lock of the head, and whose call it is: of the session that
-- it names, else of the one in which its caller works if `seeks`; and of the agent that it names,
-- else of that session's.
CREATE FUNCTION enter_call(
    new_call text, new_session text, new_task text, new_agent text, seeks boolean,
    of_server text, of_client text, of_host_session text, minutes double precision,
    new_nonce bytea, new_body bytea,
    OUT seq bigint, OUT leaf bytea, OUT whose text, OUT who text, OUT at text
) LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    now timestamptz;
BEGIN
    now := clock_timestamp();
    at := utc(now);
    whose := new_session;
    who := new_agent;
    IF seeks AND new_session IS NULL THEN
        SELECT id, coalesce(new_agent, its_agent) INTO whose, who FROM current_session(
            of_server, of_client, of_host_session, utc(now - minutes * interval '1 minute'));
    ELSIF seeks AND new_agent IS NULL THEN
        SELECT s.agent INTO who FROM sessions AS s WHERE s.session_id = new_session;
    END IF;
    INSERT INTO ledger AS l (at, kind, call, session, task, agent, nonce, body)
    VALUES (at, 'call.enter', new_call, whose, new_task, who, new_nonce, new_body)
    RETURNING l.seq, l.leaf INTO STRICT seq, leaf;
END $$;

-- The first call of each key that a client gave to a call which it may send again.
CREATE TABLE call_keys (
    tool    text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,  -- '' where the key counts for all
    key     text COLLATE "C" NOT NULL,  -- its hash: the key itself can be erased with its call
    enter   bigint NOT NULL UNIQUE REFERENCES ledger (seq),
    made    bigint NOT NULL,            -- the number of the task, or the seq of the thought
    PRIMARY KEY (tool, session, key)
);

CREATE TABLE thoughts (
    seq     bigint PRIMARY KEY REFERENCES ledger (seq),
    session text COLLATE "C" NOT NULL REFERENCES sessions (session_id),
    idx     bigint NOT NULL CHECK (idx >= 0),
    task    text COLLATE "C",
    type    text COLLATE "C" NOT NULL CHECK (
                type = 'plan' OR type = 'analysis' OR type = 'decision' OR type = 'reflection'),
    UNIQUE (session, idx)
);

CREATE INDEX thoughts_of_task ON thoughts (task, seq, type) WHERE task IS NOT NULL;
CREATE INDEX thoughts_of_type ON thoughts (type, seq);

-- Search: the words of each thought, with their places; and all words that there are. The text
-- itself is in the ledger.
CREATE TABLE thought_search (
    seq   bigint PRIMARY KEY,
    words tsvector NOT NULL
);
CREATE INDEX thought_search_words ON thought_search USING gin (words);
CREATE TABLE thought_words (
    word text COLLATE "C" NOT NULL PRIMARY KEY
);

-- How many thoughts there are of each type, so that a total of all never counts rows. Only the
-- trigger writes here.
CREATE TABLE thought_counts (
    type text COLLATE "C" NOT NULL PRIMARY KEY,
    n    bigint NOT NULL CHECK (n >= 0)
);

CREATE FUNCTION count_thought() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO thought_counts AS counted VALUES (NEW.type, 1)
        ON CONFLICT (type) DO UPDATE SET n = counted.n + 1;
    RETURN NULL;
END $$;

CREATE TRIGGER thoughts_counted AFTER INSERT ON thoughts
FOR EACH ROW EXECUTE FUNCTION count_thought();

-- The Merkle tree of a sealed session: level 0 holds the leaves, a promoted node is on every level.
CREATE TABLE merkle_nodes (
    session text COLLATE "C" NOT NULL REFERENCES sessions (session_id),
    level   bigint NOT NULL CHECK (level >= 0),
    idx     bigint NOT NULL CHECK (idx >= 0),
    hash    bytea NOT NULL CHECK (length(hash) = 32),
    PRIMARY KEY (session, level, idx)
);

CREATE FUNCTION keep_tree() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
        MESSAGE = 'a sealed session is never changed';
END $$;

CREATE TRIGGER merkle_nodes_refuse_change BEFORE UPDATE OR DELETE OR TRUNCATE ON merkle_nodes
FOR EACH STATEMENT EXECUTE FUNCTION keep_tree();
