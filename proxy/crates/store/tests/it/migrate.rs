//! Files of other versions.

use callbox_store::{CallFilter, Reader, StoreError, open};
use rusqlite::Connection;

use crate::sample::{NOON, call, calls, options, session, store};

#[test]
fn a_newer_file_is_refused_by_writer_and_reader_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    open(options(dir.path())).unwrap().close().unwrap();
    let path = dir.path().join("calls.db");
    Connection::open(&path)
        .unwrap()
        .pragma_update(None, "user_version", 99)
        .unwrap();
    for error in [
        open(options(dir.path())).unwrap_err(),
        Reader::open(dir.path()).unwrap_err(),
    ] {
        let text = error.to_string();
        assert!(
            matches!(
                error,
                StoreError::NewerSchema {
                    found: 99,
                    known: 1,
                    ..
                }
            ),
            "{error:?}"
        );
        assert!(
            text.contains("schema version 99, this callbox knows up to 1: use the newer callbox"),
            "{text}"
        );
    }
    let version: i64 = Connection::open(&path)
        .unwrap()
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .unwrap();
    assert_eq!(version, 99);
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("calls.db"),
        "this is not a database, and it is long enough to be looked at".repeat(40),
    )
    .unwrap();
    let error = open(options(dir.path())).unwrap_err().to_string();
    assert!(
        error.contains("calls.db: file is not a database"),
        "{error}"
    );
}

/// `v1.sql` is a dump of a log as version 1 wrote it, a call and a message in it. Whatever the schema becomes, this
/// must stay readable.
#[test]
fn a_log_of_version_1_is_read_and_continued() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("calls.db");
    Connection::open(&path)
        .unwrap()
        .execute_batch(include_str!("../data/v1.sql"))
        .unwrap();
    let writer = open(options(dir.path())).unwrap();
    let reader = Reader::open(dir.path()).unwrap();
    let before = reader.calls(&CallFilter::default(), None).unwrap();
    insta::assert_snapshot!(before.iter().map(callbox_store::Call::to_json).collect::<Vec<_>>().join("\n"), @r##"{"schema":"callbox.call/1","id":"01a22c53-89d0-7000-8f56-1982f3be7b8a","exchange_id":"01a22c53-89d0-7000-8f56-1982f3be7b8a","request_id":"01a22c53-89d0-7000-8f56-1982f3be7b8a","session":"01a22c53-8200-7005-8d0b-0cf94faa1bbd","session_source":"protocol","seq":1,"upstream":"crm","protocol_version":"2025-11-25","principal":"h:00000000000000000000000000000001","tenant":"tenant-1","client":{"name":"client-1","version":"1.0"},"trace_id":"0af7651916cd43dd8448eb211c80319c","jsonrpc_id":1,"tool":"search_contacts","arguments":{"query":"Dana"},"outcome":"tool_error","result":{"content":[{"type":"text","text":"no such contact"}],"isError":true,"n":1e400},"error":null,"end":"complete","http_status":200,"started_at":"2026-11-30T12:00:02.000000Z","first_byte_ms":1.0,"duration_ms":2.0,"request_bytes":100,"response_bytes":200,"legs":2,"confirmation":"accept","catalogue":"sha256:4f2e","capture":{"request":"full","response":"truncated","reason":"over 10 bytes"},"events":[{"offset_ms":3.4,"kind":"progress"}],"flags":["duplicate_response"],"sample":{"probability":0.05,"selected":true},"verdicts":[]}"##);
    let messages = reader.messages(before[0].session.id).unwrap();
    insta::assert_snapshot!(messages.iter().map(callbox_store::Message::to_json).collect::<Vec<_>>().join("\n"), @r##"{"schema":"callbox.message/1","id":"01a22c53-89d0-7001-8077-533773ba2ec2","exchange_id":"01a22c53-89d0-7001-8077-533773ba2ec2","session":"01a22c53-8200-7005-8d0b-0cf94faa1bbd","direction":"client_to_server","kind":"notification","method":"notifications/initialized","jsonrpc_id":null,"call":null,"at":"2026-11-30T12:00:01.000000Z","http_status":202,"body":{},"flags":[]}"##);
    let mut ids = writer.ids();
    let session = session(7);
    assert!(store(&writer, calls([call(&mut ids, &session, 1, NOON)])));
    assert_eq!(reader.calls(&CallFilter::default(), None).unwrap().len(), 2);
    writer.close().unwrap();
    let version: i64 = Connection::open(&path)
        .unwrap()
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .unwrap();
    assert_eq!(version, 1);
}
