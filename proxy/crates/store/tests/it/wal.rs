//! The write-ahead log stays small, and becomes small again.

use std::path::Path;

use callbox_store::{Batch, Call, Writer, open};
use rusqlite::Connection;

use crate::sample::{NOON, call, calls, eventually, options, raw, session, store};

const MIB: u64 = 1 << 20;

fn wal(dir: &Path) -> u64 {
    dir.join("calls.db-wal")
        .metadata()
        .map_or(0, |file| file.len())
}

/// Stores so many calls with results of 100 KB that do not compress.
fn load(writer: &Writer, ids: &mut callbox_store::Ids, count: u32) {
    let session = session(1);
    let mut state = 7_u64;
    for seq in 0..count {
        let mut text = String::from("\"");
        while text.len() < 100_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            text.push_str(&format!("{state:x}"));
        }
        text.push('"');
        let call = Call {
            result: Some(raw(&text)),
            ..call(ids, &session, seq, NOON)
        };
        assert!(store(writer, calls([call])));
    }
}

#[test]
fn it_stays_small_under_load() {
    let dir = tempfile::tempdir().unwrap();
    let writer = open(options(dir.path())).unwrap();
    let mut ids = writer.ids();
    let mut most = 0;
    for _ in 0..20 {
        load(&writer, &mut ids, 20);
        most = most.max(wal(dir.path()));
    }
    assert!(
        most < 10 * MIB,
        "{most} bytes while {} were stored",
        writer.health().db_bytes
    );
    writer.close().unwrap();
}

/// A reader holds its snapshot while much is stored, then lets go.
#[test]
fn b44_after_a_reader_has_blocked_checkpoints_the_log_shrinks_without_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let writer = open(options(dir.path())).unwrap();
    let mut ids = writer.ids();
    load(&writer, &mut ids, 1);
    let reader = Connection::open(dir.path().join("calls.db")).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    let rows = |reader: &Connection| {
        reader
            .query_row("SELECT count(*) FROM call", [], |row| row.get::<_, i64>(0))
            .unwrap()
    };
    assert_eq!(rows(&reader), 1);
    load(&writer, &mut ids, 700);
    assert_eq!(rows(&reader), 1, "its snapshot is held");
    assert!(wal(dir.path()) > 25 * MIB, "{}", wal(dir.path()));
    eventually("the size is exported", || {
        writer.health().wal_bytes > 25 * MIB
    });
    reader.execute_batch("COMMIT").unwrap();
    // Without another call: the idle writer sees to it.
    eventually("it has shrunk", || wal(dir.path()) <= 8 * MIB);
    eventually("the size is exported", || {
        writer.health().wal_bytes <= 8 * MIB
    });
    assert_eq!(rows(&reader), 701);
    assert_eq!(writer.health().dropped_total(), 0);
    writer.close().unwrap();
}

#[test]
fn with_further_calls_it_shrinks_as_well() {
    let dir = tempfile::tempdir().unwrap();
    let writer = open(options(dir.path())).unwrap();
    let mut ids = writer.ids();
    let session = session(1);
    load(&writer, &mut ids, 1);
    let reader = Connection::open(dir.path().join("calls.db")).unwrap();
    reader
        .execute_batch("BEGIN; SELECT count(*) FROM call")
        .unwrap();
    load(&writer, &mut ids, 400);
    assert!(wal(dir.path()) > 15 * MIB);
    reader.execute_batch("COMMIT").unwrap();
    eventually("it has shrunk", || {
        let records = calls([call(&mut ids, &session, 0, NOON)]);
        drop(writer.submit(Batch {
            records,
            ..Batch::default()
        }));
        wal(dir.path()) <= 8 * MIB
    });
    writer.close().unwrap();
}
