-- A call log as version 1 wrote it. Do not change: files like this are on disks.
PRAGMA auto_vacuum = 2;
BEGIN TRANSACTION;
CREATE TABLE activity (
    session  INTEGER PRIMARY KEY,
    first_at INTEGER NOT NULL, -- no call of it started earlier
    last_at  INTEGER NOT NULL, -- nor later than this
    calls    INTEGER NOT NULL,
    failed   INTEGER NOT NULL,
    seq      INTEGER NOT NULL  -- of its last call
) STRICT;
INSERT INTO "activity" VALUES(1,1796040001000000,1796040002002000,1,1,1);
CREATE TABLE block (
    num  INTEGER PRIMARY KEY,
    last INTEGER NOT NULL, -- largest key in it
    data BLOB NOT NULL
) STRICT;
INSERT INTO "block" VALUES(1,117705277571100673,X'0128B52FFD645F00650700D40B01A22C5389D070008502000003108F561982F3BE7B8A060108013532350D203061663736353139313663643433646438343438656232313163383033313963110131131044616E61227D154F7B6E6F207375636820636F6E74616374747275652C226E223A31653430307D18C8011AE8071C641EC8012002232601290D6F7665722031302062797465732A903531089A9999999999A93F32013500370039004F0202018077533773BA2EC242004A80C998E4A4DFB00618CA014D027B7D0E001787210036483F816ABC5D4881CE42C8D2209C73140A40156D051560AD0F4299A202346002AA1049105309FBA2749E');
CREATE TABLE bounds (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    early  INTEGER NOT NULL, -- microseconds that a start came before the moment in its id at most
    late   INTEGER NOT NULL, -- microseconds that a start came after it at most
    listed INTEGER NOT NULL  -- calls up to this id are in a segment, or in `late`
) STRICT;
INSERT INTO "bounds" VALUES(1,0,0,0);
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
INSERT INTO "call" VALUES(117705277571100672,-8118273228062950518,1,5,1,0,6,0,2000,1);
CREATE TABLE catalogue (
    hash     INTEGER PRIMARY KEY, -- its name's number
    upstream INTEGER NOT NULL,
    seen_at  INTEGER NOT NULL,
    data     BLOB NOT NULL
) STRICT;
INSERT INTO "catalogue" VALUES(6,1,1796040000000000,X'28B52FFD20021100005B5D');
CREATE TABLE late (
    id INTEGER PRIMARY KEY
) STRICT;
CREATE TABLE message (
    id      INTEGER PRIMARY KEY,
    tail    INTEGER NOT NULL,
    session INTEGER NOT NULL,
    block   INTEGER NOT NULL
) STRICT;
INSERT INTO "message" VALUES(117705277571100673,-9189785016996319550,1,1);
CREATE TABLE name (
    num     INTEGER PRIMARY KEY AUTOINCREMENT,
    role    INTEGER NOT NULL,
    hash    INTEGER NOT NULL,
    used_at INTEGER NOT NULL, -- tools and catalogues: last call, to the hour
    text    TEXT NOT NULL
) STRICT;
INSERT INTO "name" VALUES(1,2,-7898804745344213392,0,'crm');
INSERT INTO "name" VALUES(2,3,-5065587523474379130,0,'h:00000000000000000000000000000001');
INSERT INTO "name" VALUES(3,4,762985973163753230,0,'tenant-1');
INSERT INTO "name" VALUES(4,5,6270380780101322212,0,'client-1');
INSERT INTO "name" VALUES(5,0,8041286396066077014,1796040000000000,'search_contacts');
INSERT INTO "name" VALUES(6,1,-8469886219307727578,1796040000000000,'sha256:4f2e');
CREATE TABLE segment (
    num   INTEGER PRIMARY KEY,
    first INTEGER NOT NULL,
    last  INTEGER NOT NULL
) STRICT;
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
INSERT INTO "session" VALUES(1,X'01A22C53820070058D0B0CF94FAA1BBD',X'00000000000000000000000000000001',0,1,2,3,0,4,'1.0','2025-11-25',1796040000000001);
CREATE TABLE session_calls (
    segment INTEGER NOT NULL,
    session INTEGER NOT NULL,
    ids     BLOB NOT NULL,
    PRIMARY KEY (segment, session)
) STRICT, WITHOUT ROWID;
CREATE TABLE stale (
    id    INTEGER NOT NULL,
    block INTEGER NOT NULL,
    PRIMARY KEY (id, block)
) STRICT, WITHOUT ROWID;
CREATE TABLE tool_calls (
    segment INTEGER NOT NULL,
    tool    INTEGER NOT NULL,
    ids     BLOB NOT NULL,
    PRIMARY KEY (segment, tool)
) STRICT, WITHOUT ROWID;
CREATE INDEX name_hash ON name (hash);
CREATE INDEX session_key ON session (key);
CREATE INDEX session_principal ON session (principal) WHERE principal IS NOT NULL;
CREATE INDEX session_tenant ON session (tenant) WHERE tenant IS NOT NULL;
CREATE INDEX session_client ON session (client) WHERE client IS NOT NULL;
CREATE INDEX call_outcome ON call (outcome) WHERE outcome <> 0;
CREATE INDEX message_session ON message (session);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('name',6);
INSERT INTO "sqlite_sequence" VALUES('session',1);
COMMIT;
PRAGMA user_version = 1;
