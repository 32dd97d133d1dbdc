-- Deeds: a projection of the ledger's `deed` records.

CREATE TABLE deeds (
    seq          bigint PRIMARY KEY REFERENCES ledger (seq),
    call         text COLLATE "C" NOT NULL UNIQUE,
    session      text COLLATE "C",      -- that it is bound to
    host         text COLLATE "C" NOT NULL,
    host_session text COLLATE "C",
    host_agent   text COLLATE "C",
    event        text COLLATE "C" NOT NULL,
    use          text COLLATE "C",
    class        text COLLATE "C",
    exit         bigint,
    late         text COLLATE "C"
);

-- An event of a tool call that has an id is recorded once.
CREATE UNIQUE INDEX deeds_once
    ON deeds (use, event, coalesce(host_session, ''), coalesce(host_agent, ''))
    WHERE use IS NOT NULL;
CREATE INDEX deeds_of_session ON deeds (session, class, seq) WHERE session IS NOT NULL;
CREATE INDEX deeds_that_bind ON deeds (host_session) WHERE event = 'bind';

-- To which session the work of a host belongs.
CREATE INDEX sessions_of_host ON sessions (host_session)
    WHERE root IS NULL AND host_session IS NOT NULL;
