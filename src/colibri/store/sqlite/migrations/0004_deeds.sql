-- Deeds: a projection of the ledger's `deed` records.

CREATE TABLE deeds (
    seq          INTEGER PRIMARY KEY REFERENCES ledger (seq),
    call         TEXT NOT NULL UNIQUE,
    session      TEXT,                  -- that it is bound to
    host         TEXT NOT NULL,
    host_session TEXT,
    host_agent   TEXT,
    event        TEXT NOT NULL,
    use          TEXT,
    class        TEXT,
    exit         INTEGER,
    late         TEXT
) STRICT;

-- An event of a tool call that has an id is recorded once.
CREATE UNIQUE INDEX deeds_once
    ON deeds (use, event, coalesce(host_session, ''), coalesce(host_agent, ''))
    WHERE use IS NOT NULL;
CREATE INDEX deeds_of_session ON deeds (session, class) WHERE session IS NOT NULL;
CREATE INDEX deeds_that_bind ON deeds (host_session) WHERE event = 'bind';

-- To which session the work of a host belongs.
CREATE INDEX sessions_of_host ON sessions (host_session)
    WHERE root IS NULL AND host_session IS NOT NULL;
