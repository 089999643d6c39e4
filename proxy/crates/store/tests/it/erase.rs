//! Erasure: what is erased is in no file of the log any more, and nothing else is missing.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use callbox_store::{
    Call, CallFilter, Erase, Erased, Ids, Reader, Record, Session, erase, open, prune,
};
use rusqlite::Connection;
use zstd::stream::raw::{self, InBuffer, Operation, OutBuffer};

use crate::sample::{
    NOON, call, calls, eventually, message, opened, options, raw as json, session, store,
};

/// A text that is in every call of session `number`, and in no other's. Most of it is in no other text at all, so that
/// a compressed block has to spell it out.
fn canary(number: u64) -> String {
    format!("canary{}{number}", "qxjzkvwyqhpfg")
}

fn with_canary(ids: &mut Ids, session: &Arc<Session>, number: u64, seq: u32) -> Call {
    Call {
        arguments: Some(json(&format!("{{\"secret\":\"{}\"}}", canary(number)))),
        result: Some(json(&format!(
            "{{\"content\":[{{\"text\":\"{} {seq}\"}}]}}",
            canary(number)
        ))),
        ..call(ids, session, seq, NOON + i64::from(seq) * 1_000_000)
    }
}

/// Looks for a text in every file of the log: as it is, and in every compressed frame, or beginning of one, that stands
/// anywhere in them. The files are copied by another process first: to open and close them in this one would take
/// away the locks that SQLite holds.
fn find(dir: &Path, text: &str) -> Vec<String> {
    let copy = tempfile::tempdir().unwrap();
    let copied = Command::new("cp")
        .arg("-r")
        .arg(dir)
        .arg(copy.path().join("copy"))
        .status()
        .unwrap();
    assert!(copied.success());
    let mut found = Vec::new();
    for file in copy.path().join("copy").read_dir().unwrap() {
        let path = file.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let contains = |bytes: &[u8]| {
            bytes
                .windows(text.len())
                .any(|window| window == text.as_bytes())
        };
        if contains(&bytes) {
            found.push(format!("{} as it is", path.display()));
        }
        let magic = [0x28, 0xb5, 0x2f, 0xfd];
        for at in (0..bytes.len().saturating_sub(4)).filter(|at| bytes[*at..*at + 4] == magic) {
            if contains(&decompress_what_can_be(&bytes[at..])) {
                found.push(format!("{} at {at}, compressed", path.display()));
            }
        }
    }
    found
}

/// A frame that is cut off, or runs into other bytes, gives what comes before that.
fn decompress_what_can_be(frame: &[u8]) -> Vec<u8> {
    let mut decoder =
        raw::Decoder::with_dictionary(include_bytes!("../../src/block/dictionary.bin")).unwrap();
    let mut out = vec![0; 1 << 16];
    let mut output = OutBuffer::around(out.as_mut_slice());
    let mut input = InBuffer::around(frame);
    loop {
        let before = (input.pos(), output.pos());
        let result = decoder.run(&mut input, &mut output);
        if result.is_err() || (input.pos(), output.pos()) == before {
            return output.as_slice().to_vec();
        }
    }
}

fn ids_of(dir: &Path, session: &Session) -> Vec<uuid::Uuid> {
    let filter = CallFilter {
        session: Some(session.id),
        ..CallFilter::default()
    };
    Reader::open(dir)
        .unwrap()
        .calls(&filter, None)
        .unwrap()
        .iter()
        .map(|call| call.id)
        .collect()
}

fn integrity(dir: &Path) -> String {
    let conn = Connection::open(dir.join("calls.db")).unwrap();
    conn.query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap()
}

/// The search itself must be able to find: in a compressed block, and in what a deleted row leaves behind.
#[test]
fn the_search_finds_what_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let writer = open(options(dir.path())).unwrap();
    let mut ids = writer.ids();
    let session = session(1);
    assert!(store(
        &writer,
        calls([with_canary(&mut ids, &session, 1, 1)])
    ));
    assert!(!find(dir.path(), &canary(1)).is_empty());
    assert!(find(dir.path(), &canary(2)).is_empty());
    writer.close().unwrap();
    assert!(!find(dir.path(), &canary(1)).is_empty());
    let conn = Connection::open(dir.path().join("calls.db")).unwrap();
    conn.execute_batch(
        "PRAGMA secure_delete = OFF; DELETE FROM block; PRAGMA wal_checkpoint(TRUNCATE)",
    )
    .unwrap();
    drop(conn);
    assert!(
        !find(dir.path(), &canary(1)).is_empty(),
        "a deleted row is still in its page"
    );
}

#[test]
fn a_session_goes_with_its_calls_messages_and_earlier_states() {
    let dir = tempfile::tempdir().unwrap();
    let writer = open(options(dir.path())).unwrap();
    let mut ids = writer.ids();
    let (one, two) = (session(1), session(2));
    let mut kept = Vec::new();
    let mut erased = 0;
    // More than a segment, in blocks that the two share; some calls are stored open first.
    for round in 0..90_u32 {
        let mut records = Vec::new();
        for seq in round * 50..round * 50 + 50 {
            let (session, number) = if seq % 3 == 0 { (&one, 1) } else { (&two, 2) };
            let call = with_canary(&mut ids, session, number, seq);
            if seq % 30 == 0 {
                let before = Call {
                    arguments: call.arguments.clone(),
                    ..opened(&call)
                };
                assert!(store(&writer, calls([before])));
            }
            if number == 2 {
                kept.push(call.id);
            } else {
                erased += 1;
            }
            records.extend(calls([call]));
        }
        for (session, number) in [(&one, 1), (&two, 2)] {
            let body = format!("{{\"secret\":\"{}\"}}", canary(number));
            records.push(Record::Message(Box::new(message(
                &mut ids, session, NOON, &body,
            ))));
        }
        assert!(store(&writer, records));
    }
    assert!(!find(dir.path(), &canary(1)).is_empty());
    let gone = erase(dir.path(), &Erase::Session(one.id)).unwrap();
    assert_eq!(
        gone,
        Erased {
            sessions: 1,
            calls: erased,
            messages: 90,
            wal_emptied: true
        }
    );
    assert_eq!(find(dir.path(), &canary(1)), Vec::<String>::new());
    let reader = Reader::open(dir.path()).unwrap();
    assert!(reader.session(one.id).unwrap().is_none());
    assert!(ids_of(dir.path(), &one).is_empty());
    // The other session has all of its own.
    assert_eq!(ids_of(dir.path(), &two), kept);
    assert_eq!(reader.messages(two.id).unwrap().len(), 90);
    let all = reader.calls(&CallFilter::default(), None).unwrap();
    assert_eq!(all.len(), kept.len());
    assert!(
        all.iter().all(|call| call.flags.is_empty()
            && call.arguments.as_ref().unwrap().get().contains(&canary(2)))
    );
    assert!(find(dir.path(), &one.id.simple().to_string()).is_empty());
    assert_eq!(integrity(dir.path()), "ok");
    // Nothing is left to do a second time.
    let nothing = Erased {
        sessions: 0,
        calls: 0,
        messages: 0,
        wal_emptied: true,
    };
    assert_eq!(erase(dir.path(), &Erase::Session(one.id)).unwrap(), nothing);
    assert_eq!(writer.health().dropped_total(), 0);
    writer.close().unwrap();
}

#[test]
fn a_principal_goes_from_all_sessions_while_the_writer_writes() {
    let dir = tempfile::tempdir().unwrap();
    let writer = open(options(dir.path())).unwrap();
    let principal = session(1).principal.clone();
    let of_principal: Vec<_> = (10..16)
        .map(|number| {
            Arc::new(Session {
                principal: principal.clone(),
                ..(*session(number)).clone()
            })
        })
        .collect();
    let other = session(2);
    let mut ids = writer.ids();
    for (number, session) in (0..).zip(&of_principal) {
        for seq in 0..20 {
            let seq = number * 20 + seq;
            let pair = [
                with_canary(&mut ids, session, 1, seq),
                with_canary(&mut ids, &other, 2, seq),
            ];
            assert!(store(&writer, calls(pair)));
        }
    }
    let done = AtomicBool::new(false);
    let (stored, gone) = std::thread::scope(|scope| {
        let busy = scope.spawn(|| {
            let mut stored = 0;
            while !done.load(Ordering::Relaxed) || stored < 50 {
                assert!(store(
                    &writer,
                    calls([with_canary(&mut ids, &other, 2, 1000 + stored)])
                ));
                stored += 1;
            }
            stored
        });
        let gone = erase(dir.path(), &Erase::Principal(principal.clone().unwrap()));
        done.store(true, Ordering::Relaxed);
        (busy.join().unwrap(), gone.unwrap())
    });
    assert_eq!((gone.sessions, gone.calls), (6, 120));
    assert!(gone.wal_emptied);
    assert_eq!(find(dir.path(), &canary(1)), Vec::<String>::new());
    assert_eq!(
        find(dir.path(), principal.as_ref().unwrap()),
        Vec::<String>::new()
    );
    assert_eq!(ids_of(dir.path(), &other).len(), 120 + stored as usize);
    assert_eq!(writer.health().dropped_total(), 0);
    // A session that is still alive begins anew.
    let again = with_canary(&mut ids, &of_principal[0], 3, 5000);
    assert!(store(&writer, calls([again.clone()])));
    let reader = Reader::open(dir.path()).unwrap();
    let read = reader.call(again.id).unwrap().unwrap();
    assert_eq!(
        (read.session.id, &read.session.principal),
        (of_principal[0].id, &principal)
    );
    assert_eq!(
        reader.session(of_principal[0].id).unwrap().unwrap().calls,
        1
    );
    assert_eq!(integrity(dir.path()), "ok");
    writer.close().unwrap();
}

/// Retention moves rows from page to page; what it leaves in the gaps must go as well.
#[test]
fn nothing_is_left_in_gaps_after_retention_was_at_work() {
    let dir = tempfile::tempdir().unwrap();
    let writer = open(options(dir.path())).unwrap();
    let mut ids = writer.ids();
    // Blocks of very different sizes, several to a page and over several pages.
    let mut last = 0;
    for round in 0..400_u64 {
        let session = session(round);
        let size = [1_u32, 1, 2, 40, 3, 1, 9][round as usize % 7];
        let batch: Vec<_> = (0..size)
            .map(|seq| {
                last += 1;
                let filler: String = (0..seq * 37 % 300)
                    .map(|number| {
                        format!(
                            "{:x}",
                            (u64::from(number) + round).wrapping_mul(0x9e37_79b9_7f4a_7c15)
                        )
                    })
                    .collect();
                let call = with_canary(&mut ids, &session, round, last);
                Call {
                    error: Some(json(&format!("\"{filler}\""))),
                    ..call
                }
            })
            .collect();
        assert!(store(&writer, calls(batch)));
    }
    for target in [300_u64, 301, 302, 303, 350, 399] {
        // Everything up to a little before the target is pruned, bit by bit.
        let oldest = Reader::open(dir.path())
            .unwrap()
            .calls(
                &CallFilter {
                    session: Some(session_of(dir.path(), target)),
                    ..CallFilter::default()
                },
                None,
            )
            .unwrap();
        // Calls are a second apart.
        let age = clock() - oldest[0].started_at + 500_000;
        prune(
            dir.path(),
            std::time::Duration::from_micros(age.unsigned_abs()),
            u64::MAX,
        )
        .unwrap();
        let gone = erase(dir.path(), &Erase::Session(oldest[0].session.id)).unwrap();
        assert!(gone.wal_emptied && gone.calls > 0);
        assert_eq!(
            find(dir.path(), &canary(target)),
            Vec::<String>::new(),
            "{target}"
        );
    }
    assert_eq!(integrity(dir.path()), "ok");
    writer.close().unwrap();
}

fn session_of(dir: &Path, number: u64) -> uuid::Uuid {
    let principal = session(number).principal.clone();
    let filter = callbox_store::SessionFilter {
        principal,
        ..callbox_store::SessionFilter::default()
    };
    Reader::open(dir).unwrap().sessions(&filter, None).unwrap()[0]
        .session
        .id
}

fn clock() -> i64 {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::SystemTime::UNIX_EPOCH)
        .unwrap();
    i64::try_from(since.as_micros()).unwrap()
}

/// A reader that holds its snapshot keeps the erased pages in the write-ahead log: that is said.
#[test]
fn a_reader_in_the_way_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let writer = open(options(dir.path())).unwrap();
    let mut ids = writer.ids();
    let session = session(1);
    assert!(store(
        &writer,
        calls([with_canary(&mut ids, &session, 1, 1)])
    ));
    let reader = Connection::open(dir.path().join("calls.db")).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    reader
        .query_row("SELECT count(*) FROM call", [], |row| row.get::<_, i64>(0))
        .unwrap();
    let gone = erase(dir.path(), &Erase::Session(session.id)).unwrap();
    assert_eq!(
        gone,
        Erased {
            sessions: 1,
            calls: 1,
            messages: 0,
            wal_emptied: false
        }
    );
    reader.execute_batch("COMMIT").unwrap();
    let again = erase(dir.path(), &Erase::Session(session.id)).unwrap();
    assert!(again.wal_emptied);
    assert_eq!(find(dir.path(), &canary(1)), Vec::<String>::new());
    eventually("the writer is well", || writer.health().queued == 0);
    writer.close().unwrap();
}
