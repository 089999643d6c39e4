-- Version 1 of the call log.
--
-- Rows are narrow and integer; everything else of a record is its document, packed with others into blocks. Keys of
-- calls and messages are the first half of their UUID v7, so key order is time order.

-- Strings that many rows share, by role: 0 tool, 1 catalogue hash, 2 upstream, 3 principal, 4 tenant, 5 client.
-- Looked up by hash, so that the text itself stands in one place only and can be erased there.
CREATE TABLE name (
    num     INTEGER PRIMARY KEY AUTOINCREMENT,
    role    INTEGER NOT NULL,
    hash    INTEGER NOT NULL,
    used_at INTEGER NOT NULL, -- tools and catalogues: last call, to the hour
    text    TEXT NOT NULL
) STRICT;
CREATE INDEX name_hash ON name (hash);

CREATE TABLE session (
    num              INTEGER PRIMARY KEY AUTOINCREMENT,
    id               BLOB NOT NULL UNIQUE,
    key              BLOB NOT NULL,
    source           INTEGER NOT NULL,
    upstream         INTEGER NOT NULL,
    principal        INTEGER,
    tenant           INTEGER,
    asserted         INTEGER NOT NULL,
    client           INTEGER,
    client_version   TEXT,
    protocol_version TEXT,
    started_at       INTEGER NOT NULL
) STRICT;
CREATE INDEX session_key ON session (key);
CREATE INDEX session_principal ON session (principal) WHERE principal IS NOT NULL;
CREATE INDEX session_tenant ON session (tenant) WHERE tenant IS NOT NULL;
CREATE INDEX session_client ON session (client) WHERE client IS NOT NULL;

-- What changes about a session with every commit: apart, so that a commit touches few pages.
CREATE TABLE activity (
    session  INTEGER PRIMARY KEY,
    first_at INTEGER NOT NULL, -- no call of it started earlier
    last_at  INTEGER NOT NULL, -- nor later than this
    calls    INTEGER NOT NULL,
    failed   INTEGER NOT NULL,
    seq      INTEGER NOT NULL  -- of its last call
) STRICT;

CREATE TABLE call (
    id        INTEGER PRIMARY KEY,
    tail      INTEGER NOT NULL, -- second half of the UUID
    session   INTEGER NOT NULL,
    tool      INTEGER NOT NULL,
    outcome   INTEGER NOT NULL,
    "end"     INTEGER NOT NULL,
    catalogue INTEGER,
    shift     INTEGER NOT NULL, -- start, minus the moment that the id carries, microseconds
    took      INTEGER,          -- duration, microseconds
    block     INTEGER NOT NULL  -- where its document is
) STRICT;
-- 0 is `ok`: the interesting calls are few.
CREATE INDEX call_outcome ON call (outcome) WHERE outcome <> 0;

-- Which calls a tool and a session have. Instead of an index entry for each call, which would touch a page for each
-- tool and session with every commit: lists for some thousand calls at a time, written once, one after the other.
-- A list may name calls that are gone. Calls above `bounds.listed`, and those in `late`, are in no list yet.
CREATE TABLE segment (
    num   INTEGER PRIMARY KEY,
    first INTEGER NOT NULL,
    last  INTEGER NOT NULL
) STRICT;
CREATE TABLE tool_calls (
    segment INTEGER NOT NULL,
    tool    INTEGER NOT NULL,
    ids     BLOB NOT NULL,
    PRIMARY KEY (segment, tool)
) STRICT, WITHOUT ROWID;
CREATE TABLE session_calls (
    segment INTEGER NOT NULL,
    session INTEGER NOT NULL,
    ids     BLOB NOT NULL,
    PRIMARY KEY (segment, session)
) STRICT, WITHOUT ROWID;
CREATE TABLE late (
    id INTEGER PRIMARY KEY
) STRICT;

CREATE TABLE message (
    id      INTEGER PRIMARY KEY,
    tail    INTEGER NOT NULL,
    session INTEGER NOT NULL,
    block   INTEGER NOT NULL
) STRICT;
CREATE INDEX message_session ON message (session);

-- Documents of one commit, compressed together. Numbers grow in commit order and are never used again.
CREATE TABLE block (
    num  INTEGER PRIMARY KEY,
    last INTEGER NOT NULL, -- largest key in it
    data BLOB NOT NULL
) STRICT;

-- Blocks with an earlier document of a call or message that was stored again: erasure must reach them too.
CREATE TABLE stale (
    id    INTEGER NOT NULL,
    block INTEGER NOT NULL,
    PRIMARY KEY (id, block)
) STRICT, WITHOUT ROWID;

CREATE TABLE catalogue (
    hash     INTEGER PRIMARY KEY, -- its name's number
    upstream INTEGER NOT NULL,
    seen_at  INTEGER NOT NULL,
    data     BLOB NOT NULL
) STRICT;

CREATE TABLE bounds (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    early  INTEGER NOT NULL, -- microseconds that a start came before the moment in its id at most
    late   INTEGER NOT NULL, -- microseconds that a start came after it at most
    listed INTEGER NOT NULL  -- calls up to this id are in a segment, or in `late`
) STRICT;
INSERT INTO bounds VALUES (1, 0, 0, 0);
