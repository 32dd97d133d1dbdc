-- The hash-chained ledger, as in SQLite; and what keeps its rules against everyone but the owner.
-- Texts compare by their bytes. Functions keep the search path of this migration, so that no other
-- one can put a foreign table or operator under them; but for expressions that they are made of,
-- which PostgreSQL can then take apart instead of calling them.

-- It has no CHECK: PostgreSQL would parse each again for every statement. `check_record` refuses
-- what they would.
CREATE TABLE ledger (
    seq     bigint PRIMARY KEY,
    at      text COLLATE "C" NOT NULL,
    kind    text COLLATE "C" NOT NULL,
    call    text COLLATE "C" NOT NULL,
    session text COLLATE "C",
    task    text COLLATE "C",
    agent   text COLLATE "C",
    payload bytea NOT NULL,     -- the commitment to nonce and body
    nonce   bytea,              -- NULL, like the body, once erased
    body    bytea,
    leaf    bytea NOT NULL,     -- the hash of the header
    prev    bytea NOT NULL
);

CREATE INDEX ledger_by_session ON ledger (session, seq) WHERE session IS NOT NULL;
CREATE INDEX ledger_by_task ON ledger (task, seq) WHERE task IS NOT NULL;
CREATE INDEX ledger_erasures ON ledger (seq) WHERE kind = 'erasure';

-- `log` is its name, `schema` the version of these tables: only the owner changes them.
CREATE TABLE meta (
    key   text COLLATE "C" NOT NULL PRIMARY KEY,
    value text COLLATE "C" NOT NULL
);

CREATE FUNCTION keep_meta() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF (NEW.key <> 'verified' OR TG_OP = 'UPDATE' AND OLD.key <> 'verified')
        AND NOT pg_has_role((SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'MEMBER')
    THEN
        RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
            MESSAGE = 'only the owner names the log and the version of the schema';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER meta_is_the_owners BEFORE INSERT OR UPDATE ON meta
FOR EACH ROW EXECUTE FUNCTION keep_meta();

-- docs/formats.md §2. to_json writes the escapes of §1, and no others.
CREATE FUNCTION genesis(log text) RETURNS bytea LANGUAGE sql STABLE AS $$
    SELECT sha256('colibri/ledger/v1\012'::bytea || convert_to(log, 'UTF8'))
$$;

CREATE FUNCTION commitment(nonce bytea, body bytea) RETURNS bytea LANGUAGE sql STABLE AS $$
    SELECT sha256('colibri/payload/v1\012'::bytea || nonce || body)
$$;

CREATE FUNCTION record_leaf(
    log text, seq bigint, at text, kind text, call text, session text, task text, agent text,
    payload bytea, prev bytea
) RETURNS bytea LANGUAGE sql STABLE AS $$
    SELECT sha256('\000'::bytea || convert_to(
        '{"agent":' || coalesce(to_json(agent)::text, 'null') || ',"at":' || to_json(at)::text
        || ',"call":' || to_json(call)::text || ',"kind":' || to_json(kind)::text
        || ',"log":' || to_json(log)::text || ',"payload":"' || encode(payload, 'hex')
        || '","prev":"' || encode(prev, 'hex') || '","seq":' || seq
        || ',"session":' || coalesce(to_json(session)::text, 'null')
        || ',"task":' || coalesce(to_json(task)::text, 'null') || ',"v":1}', 'UTF8'))
$$;

-- The chain can neither fork nor gap, and no record can claim another hash than its own: number and
-- hashes are computed here, compared with those that are given, and filled in where none are.
-- Whoever waits for more records learns of them after the commit, on the channel with the schema's
-- name.
CREATE FUNCTION check_record() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    log    text;
    place  bigint;
    before bytea;
    hash   bytea;
BEGIN
    SELECT meta.value, coalesce(l.seq, 0) + 1, coalesce(l.leaf, genesis(meta.value))
    INTO STRICT log, place, before
    FROM meta LEFT JOIN ledger AS l ON l.seq = (SELECT max(seq) FROM ledger)
    WHERE meta.key = 'log';
    NEW.seq := coalesce(NEW.seq, place);
    NEW.prev := coalesce(NEW.prev, before);
    IF NEW.seq <> place OR NEW.prev <> before THEN
        RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
            MESSAGE = 'the ledger is append-only: a record follows the newest one, or none';
    END IF;
    hash := commitment(NEW.nonce, NEW.body);
    NEW.payload := coalesce(NEW.payload, hash);
    IF (NEW.nonce IS NULL) <> (NEW.body IS NULL) OR length(NEW.nonce) <> 32 OR NEW.payload <> hash
    THEN
        RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
            MESSAGE = format('record %s does not commit to its payload', NEW.seq);
    END IF;
    hash := record_leaf(log, NEW.seq, NEW.at, NEW.kind, NEW.call, NEW.session, NEW.task, NEW.agent,
        NEW.payload, NEW.prev);
    NEW.leaf := coalesce(NEW.leaf, hash);
    IF NEW.leaf IS DISTINCT FROM hash THEN
        RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
            MESSAGE = format('the leaf of record %s is not the hash of its header', NEW.seq);
    ELSIF length(NEW.payload) <> 32 OR NEW.kind <> ALL (
        '{call.enter,call.exit,session.open,session.resume,thought,session.seal,task,task.text,'
        'erasure,deed,deed.text}')
    THEN
        RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
            MESSAGE = format('record %s is of no kind that there is', NEW.seq);
    END IF;
    PERFORM pg_notify(TG_TABLE_SCHEMA, '');
    RETURN NEW;
END $$;

CREATE TRIGGER ledger_refuses_a_fork BEFORE INSERT ON ledger
FOR EACH ROW EXECUTE FUNCTION check_record();

-- Erasure is the one change there is: a text goes, with its nonce, once and for good.
CREATE FUNCTION keep_record() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.nonce IS NOT NULL OR NEW.body IS NOT NULL OR OLD.nonce IS NULL OR OLD.body IS NULL
        OR (NEW.seq, NEW.at, NEW.kind, NEW.call, NEW.session, NEW.task, NEW.agent,
            NEW.payload, NEW.leaf, NEW.prev)
        IS DISTINCT FROM (OLD.seq, OLD.at, OLD.kind, OLD.call, OLD.session, OLD.task, OLD.agent,
            OLD.payload, OLD.leaf, OLD.prev)
    THEN
        RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
            MESSAGE = 'the ledger is append-only: records are never changed, only erased';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER ledger_refuses_update BEFORE UPDATE ON ledger
FOR EACH ROW EXECUTE FUNCTION keep_record();

CREATE FUNCTION keep_records() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
        MESSAGE = 'the ledger is append-only: records are never deleted';
END $$;

CREATE TRIGGER ledger_refuses_delete BEFORE DELETE OR TRUNCATE ON ledger
FOR EACH STATEMENT EXECUTE FUNCTION keep_records();

-- With the rights of the owner, for a role that may do nothing else to a record.
CREATE FUNCTION erase(erased bigint) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE ledger SET nonce = NULL, body = NULL
    WHERE seq = erased AND body IS NOT NULL
        AND kind IN ('call.enter', 'session.open', 'thought', 'task.text', 'deed.text');
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
            MESSAGE = format('record %s does not exist, is erased, or has to stay', erased);
    END IF;
END $$;

-- Whoever appends waits here for the others, until the transaction ends. What is read before may be
-- out of date; so it is here that a server learns whether the schema is still the one it knows.
CREATE FUNCTION lock_head(known bigint) RETURNS void LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
DECLARE
    found text;
BEGIN
    PERFORM pg_advisory_xact_lock('ledger'::regclass::oid::bigint);
    SELECT value INTO found FROM meta WHERE key = 'schema';
    IF found IS DISTINCT FROM known::text THEN
        RAISE EXCEPTION USING ERRCODE = 'CB001', MESSAGE = format(
            'the schema has version %s, and this program knows version %s', found, known);
    END IF;
END $$;

-- Now, as records have it: by the clock of the server, which all writers share.
CREATE FUNCTION utc(at timestamp with time zone) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;

-- The same lock, for a caller that knows a record which must be there; then the newest, and the time.
CREATE FUNCTION take_head(
    known bigint, known_seq bigint, known_leaf bytea,
    OUT seq bigint, OUT leaf bytea, OUT at text
) LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    found bytea;
BEGIN
    PERFORM lock_head(known);
    SELECT l.seq, l.leaf, (SELECT k.leaf FROM ledger AS k WHERE k.seq = known_seq)
    INTO seq, leaf, found FROM ledger AS l ORDER BY l.seq DESC LIMIT 1;
    IF known_seq > 0 AND found IS DISTINCT FROM known_leaf THEN
        RAISE EXCEPTION USING ERRCODE = 'CB002', MESSAGE = format(
            'record %s, which this server knows, is missing or differs', known_seq);
    END IF;
    at := utc(clock_timestamp());
END $$;

-- A payload to look into. PostgreSQL has no text with the character 0, which no tool of ours takes;
-- here it reads as the sign for what cannot be shown.
CREATE FUNCTION shown(body bytea) RETURNS json LANGUAGE sql STABLE AS $$
    SELECT regexp_replace(
        convert_from(body, 'UTF8'), '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g')::json
$$;

-- The two records of a call (Specification 9.7); sequence_no is the enter's seq on both.
CREATE VIEW actions AS
SELECT
    CASE l.kind WHEN 'call.enter' THEN l.seq ELSE (l.body ->> 'enter')::bigint END AS sequence_no,
    CASE l.kind WHEN 'call.enter' THEN 'enter' ELSE 'exit' END COLLATE "C"         AS phase,
    (l.body ->> 'tool') COLLATE "C"                                                AS tool,
    l.call                                                                         AS correlation_id,
    CASE l.kind WHEN 'call.enter' THEN 'running' ELSE l.body ->> 'outcome' END COLLATE "C" AS outcome,
    (l.body ->> 'result_sha256') COLLATE "C"                                       AS result_hash,
    (l.body ->> 'duration_ms')::bigint                                             AS duration_ms,
    l.at                                                                           AS at
FROM (SELECT seq, at, kind, call, shown(body) AS body FROM ledger) AS l
WHERE l.kind = 'call.enter' OR l.kind = 'call.exit';

CREATE VIEW audit_events AS
SELECT sequence_no, phase, tool, correlation_id, outcome, result_hash, duration_ms, at FROM actions;

-- Thoughts in ledger order; of an erased one only its place and its hash are left.
CREATE VIEW thought_records AS
SELECT
    ('R-' || l.seq) COLLATE "C"                             AS thought_id,
    l.seq                                                   AS seq,
    (l.said ->> 'index')::bigint                            AS idx,
    l.session                                               AS session_id,
    l.task                                                  AS task_id,
    l.agent                                                 AS agent_id,
    (l.said ->> 'type') COLLATE "C"                         AS type,
    coalesce(l.said ->> 'content', '[erased]') COLLATE "C"  AS content,
    l.at                                                    AS created_at,
    (l.said ->> 'prev') COLLATE "C"                         AS prev_hash,
    encode(l.leaf, 'hex') COLLATE "C"                       AS hash
FROM (SELECT *, shown(body) AS said FROM ledger) AS l
WHERE l.kind = 'thought';
