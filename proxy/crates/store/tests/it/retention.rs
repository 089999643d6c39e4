//! Retention: what is too old or too much goes, oldest first, while the writer writes.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use callbox_store::{
    Batch, Call, CallFilter, Catalogue, Ids, Options, Reader, Record, SessionFilter, Writer, open,
    prune,
};

use crate::sample::{
    assert_adds_up, call, calls, eventually, message, options, raw, session, store,
};

const HOUR: Duration = Duration::from_hours(1);
const EVER: Duration = Duration::from_hours(876_000);

fn now() -> i64 {
    i64::try_from(
        SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap()
            .as_micros(),
    )
    .unwrap()
}

fn ago(hours: i64) -> i64 {
    now() - hours * 3_600_000_000
}

fn size(dir: &Path) -> u64 {
    dir.join("calls.db").metadata().unwrap().len()
}

/// Calls with results of 10 KB that do not compress.
fn heavy(ids: &mut Ids, count: u32, at: i64) -> Vec<Call> {
    let session = session(1);
    let mut state = 11_u64;
    let mut text = || {
        let mut text = String::from("\"");
        while text.len() < 10_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            text.push_str(&format!("{state:x}"));
        }
        raw(&(text + "\""))
    };
    (0..count)
        .map(|seq| Call {
            result: Some(text()),
            ..call(ids, &session, seq, at + i64::from(seq))
        })
        .collect()
}

fn stored(dir: &Path) -> Vec<Call> {
    Reader::open(dir)
        .unwrap()
        .calls(&CallFilter::default(), None)
        .unwrap()
}

#[test]
fn what_is_too_old_goes_with_all_that_belongs_to_it() {
    let dir = tempfile::tempdir().unwrap();
    let writer = open(Options {
        max_age: EVER,
        ..options(dir.path())
    })
    .unwrap();
    let mut ids = writer.ids();
    let (old, young) = (session(1), session(2));
    let old_call = Call {
        tool: "old tool".to_owned(),
        catalogue: Some("sha256:01".to_owned()),
        ..call(&mut ids, &old, 1, ago(72))
    };
    let catalogue = Catalogue {
        hash: "sha256:01".to_owned(),
        upstream: "crm".to_owned(),
        seen_at: ago(72),
        tools: raw("[]"),
    };
    let old_message = message(&mut ids, &old, ago(72), "{}");
    let records = vec![
        Record::Call(Box::new(old_call)),
        Record::Message(Box::new(old_message)),
        Record::Catalogue(Box::new(catalogue)),
    ];
    assert!(store(&writer, records));
    let young_call = call(&mut ids, &young, 1, ago(2));
    assert!(store(&writer, calls([young_call.clone()])));

    writer.retention(24 * HOUR, u64::MAX);
    eventually("the old call is gone", || writer.health().pruned_calls == 1);
    let reader = Reader::open(dir.path()).unwrap();
    let left = reader.calls(&CallFilter::default(), None).unwrap();
    assert_eq!(
        left.iter().map(|call| call.id).collect::<Vec<_>>(),
        [young_call.id]
    );
    assert!(reader.messages(old.id).unwrap().is_empty());
    assert_eq!(writer.health().pruned_messages, 1);
    let pruned = prune(dir.path(), 24 * HOUR, u64::MAX).unwrap();
    let sessions = reader.sessions(&SessionFilter::default(), None).unwrap();
    assert_eq!(
        sessions
            .iter()
            .map(|summary| summary.session.id)
            .collect::<Vec<_>>(),
        [young.id],
        "{pruned:?}"
    );
    assert!(reader.catalogue("sha256:01").unwrap().is_none());
    let names: i64 = rusqlite::Connection::open(dir.path().join("calls.db"))
        .unwrap()
        .query_row(
            "SELECT count(*) FROM name WHERE text IN ('old tool', ?1)",
            [old.principal.as_deref()],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(names, 0, "names without use are gone");
    // The writer goes on with names that it knew and that are gone.
    let again = Call {
        tool: "old tool".to_owned(),
        ..call(&mut ids, &old, 2, now())
    };
    assert!(store(&writer, calls([again.clone()])));
    let read = reader.call(again.id).unwrap().unwrap();
    assert_eq!((read.tool, read.session.id), (again.tool, old.id));
    writer.close().unwrap();
}

#[test]
fn the_log_stays_within_its_size_and_keeps_the_newest() {
    const LIMIT: u64 = 6 << 20;
    let dir = tempfile::tempdir().unwrap();
    let writer = open(Options {
        max_bytes: LIMIT,
        ..options(dir.path())
    })
    .unwrap();
    let mut ids = writer.ids();
    let mut newest = None;
    let mut longest = Duration::ZERO;
    for _ in 0..40 {
        let batch = heavy(&mut ids, 60, now());
        newest = batch.last().map(|call| call.id);
        let begun = Instant::now();
        assert!(store(&writer, calls(batch)));
        longest = longest.max(begun.elapsed());
    }
    eventually("it is within its limit", || size(dir.path()) <= LIMIT);
    let left = stored(dir.path());
    assert_eq!(left.last().map(|call| call.id), newest);
    let health = writer.health();
    assert_eq!(left.len() as u64 + health.pruned_calls, 2400);
    assert!(
        left.len() > 200,
        "no more goes than must: {} left",
        left.len()
    );
    assert!(
        longest < Duration::from_secs(1),
        "the writer was held up for {longest:?}"
    );
    assert_adds_up(&writer);
    // Half the room from now on.
    writer.retention(EVER, LIMIT / 2);
    eventually("the file has shrunk", || size(dir.path()) <= LIMIT / 2);
    assert_eq!(stored(dir.path()).last().map(|call| call.id), newest);
    writer.close().unwrap();
}

#[test]
fn prune_works_beside_the_writer_and_gives_the_room_back() {
    let dir = tempfile::tempdir().unwrap();
    let writer = open(options(dir.path())).unwrap();
    let mut ids = writer.ids();
    for _ in 0..10 {
        assert!(store(&writer, calls(heavy(&mut ids, 60, ago(48)))));
    }
    let (done, running) = (
        std::sync::atomic::AtomicBool::new(false),
        std::sync::atomic::AtomicBool::new(false),
    );
    let pruned = std::thread::scope(|scope| {
        scope.spawn(|| {
            let session = session(5);
            for number in 1.. {
                let records = calls([call(&mut ids, &session, 1, now())]);
                writer
                    .submit(Batch {
                        records,
                        ..Batch::default()
                    })
                    .unwrap();
                eventually("it is stored", || writer.health().stored == 600 + number);
                running.store(true, std::sync::atomic::Ordering::Relaxed);
                if done.load(std::sync::atomic::Ordering::Relaxed) {
                    break;
                }
            }
        });
        eventually("the writer is at work", || {
            running.load(std::sync::atomic::Ordering::Relaxed)
        });
        let pruned = prune(dir.path(), 24 * HOUR, u64::MAX);
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        pruned.unwrap()
    });
    assert_eq!(pruned.calls, 600);
    assert!(pruned.bytes > 2 << 20, "{pruned:?}");
    // What was written may still have been in the write-ahead log: measured by what went, not by the file before.
    eventually("the file has shrunk", || {
        size(dir.path()) < pruned.bytes / 2
    });
    let health = writer.health();
    assert_eq!(stored(dir.path()).len() as u64, health.stored - 600);
    assert_eq!(health.dropped_total(), 0);
    writer.close().unwrap();
}

#[test]
fn all_can_go_and_numbers_are_not_used_twice() {
    let dir = tempfile::tempdir().unwrap();
    let writer = open(options(dir.path())).unwrap();
    let mut ids = writer.ids();
    let session = session(1);
    assert!(store(
        &writer,
        calls((0..50).map(|seq| call(&mut ids, &session, seq, ago(48))))
    ));
    let mut follower = Reader::open(dir.path()).unwrap().follow().unwrap();
    let pruned = prune(dir.path(), HOUR, u64::MAX).unwrap();
    assert_eq!((pruned.calls, pruned.sessions), (50, 1));
    assert!(stored(dir.path()).is_empty());
    writer.close().unwrap();
    // A new run, and a follower that was there before.
    let writer = open(options(dir.path())).unwrap();
    let one = call(&mut ids, &session, 1, now());
    writer
        .submit(Batch {
            records: calls([one.clone()]),
            ..Batch::default()
        })
        .unwrap();
    let mut found = Vec::new();
    eventually("it is followed", || {
        found.extend(follower.poll().unwrap());
        !found.is_empty()
    });
    assert_eq!(found[0].id, one.id);
    check_prune_is_idle(&writer, dir.path());
}

fn check_prune_is_idle(writer: &Writer, dir: &Path) {
    assert_eq!(prune(dir, HOUR, u64::MAX).unwrap().calls, 0);
    assert_eq!(writer.health().pruned_calls, 0);
}
