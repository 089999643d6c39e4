//! The writer under load: everything is accounted for at every moment.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use callbox_store::{Batch, Call, CallFilter, DropReason, Options, Reader, Record, State, open};

use crate::sample::{
    NOON, assert_adds_up, call, calls, eventually, message, options, session, store,
};

/// Twelve tasks that offer calls, a small queue, and somebody who reads all the while.
#[test]
fn b42_records_in_are_records_stored_plus_counted_drops() {
    let dir = tempfile::tempdir().unwrap();
    let writer = open(Options {
        queue_records: 300,
        ..options(dir.path())
    })
    .unwrap();
    let ids = Mutex::new(writer.ids());
    let (done, offered) = (AtomicBool::new(false), AtomicU64::new(0));
    let taken = Mutex::new(HashSet::new());
    std::thread::scope(|scope| {
        let tasks: Vec<_> = (0..12)
            .map(|number| {
                let (writer, ids, offered, taken) = (&writer, &ids, &offered, &taken);
                scope.spawn(move || {
                    let session = session(number);
                    for seq in 0..400 {
                        let call = call(&mut ids.lock().unwrap(), &session, seq, NOON);
                        let id = call.id;
                        offered.fetch_add(1, Ordering::Relaxed);
                        match writer.submit(Batch {
                            records: calls([call]),
                            ..Batch::default()
                        }) {
                            Ok(()) => drop(taken.lock().unwrap().insert(id)),
                            Err(batch) => writer.discard(batch),
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            let reader = Reader::open(dir.path()).unwrap();
            while !done.load(Ordering::Relaxed) {
                assert_adds_up(&writer);
                reader.calls(&CallFilter::default(), Some(20)).unwrap();
            }
        });
        for task in tasks {
            task.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    eventually("the queue is empty", || writer.health().queued == 0);
    let health = writer.health();
    assert_eq!(health.offered, offered.into_inner());
    assert_eq!(health.stored, health.calls);
    assert_eq!(
        health.dropped_for(DropReason::QueueFull),
        health.dropped_total()
    );
    assert_eq!(health.state, State::Ok);
    writer.close().unwrap();
    let reader = Reader::open(dir.path()).unwrap();
    let stored: HashSet<_> = reader
        .calls(&CallFilter::default(), None)
        .unwrap()
        .iter()
        .map(|call| call.id)
        .collect();
    assert_eq!(stored, taken.into_inner().unwrap());
    assert_eq!(stored.len() as u64, health.stored);
}

/// Five thousand records in one batch: more than any limit on bound values would take.
#[test]
fn b47_a_batch_of_five_thousand_is_stored_whole() {
    let dir = tempfile::tempdir().unwrap();
    let writer = open(options(dir.path())).unwrap();
    let mut ids = writer.ids();
    let session = session(1);
    let batch = calls((0..5000).map(|seq| call(&mut ids, &session, seq, NOON)));
    assert!(store(&writer, batch));
    let health = writer.health();
    assert_eq!((health.stored, health.commits), (5000, 1));
    let reader = Reader::open(dir.path()).unwrap();
    assert_eq!(
        reader.calls(&CallFilter::default(), None).unwrap().len(),
        5000
    );
}

#[test]
fn a_record_is_visible_within_a_tenth_of_a_second() {
    let dir = tempfile::tempdir().unwrap();
    let writer = open(options(dir.path())).unwrap();
    let mut ids = writer.ids();
    let session = session(1);
    let one = call(&mut ids, &session, 1, NOON);
    let reader = Reader::open(dir.path()).unwrap();
    let begun = std::time::Instant::now();
    writer
        .submit(Batch {
            records: calls([one.clone()]),
            ..Batch::default()
        })
        .unwrap();
    eventually("it is visible", || reader.call(one.id).unwrap().is_some());
    assert!(
        begun.elapsed() < Duration::from_millis(100),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn an_id_that_another_record_has_costs_that_record_only() {
    let dir = tempfile::tempdir().unwrap();
    let writer = open(options(dir.path())).unwrap();
    let mut ids = writer.ids();
    let session = session(1);
    let one = call(&mut ids, &session, 1, NOON);
    let (key, _) = one.id.as_u64_pair();
    let same_half = Call {
        id: uuid::Uuid::from_u64_pair(key, 1 << 63),
        ..one.clone()
    };
    let two = call(&mut ids, &session, 2, NOON);
    assert!(store(
        &writer,
        calls([one.clone(), same_half.clone(), two.clone()])
    ));
    let health = writer.health();
    assert_eq!(
        (health.stored, health.dropped_for(DropReason::Invalid)),
        (2, 1)
    );
    assert_adds_up(&writer);
    let reader = Reader::open(dir.path()).unwrap();
    assert!(reader.call(one.id).unwrap().is_some());
    assert!(reader.call(same_half.id).unwrap().is_none());
    assert!(reader.call(two.id).unwrap().is_some());
}

#[test]
fn what_is_queued_is_committed_by_close() {
    let dir = tempfile::tempdir().unwrap();
    let writer = open(options(dir.path())).unwrap();
    let mut ids = writer.ids();
    let session = session(1);
    for seq in 0..50 {
        let records = vec![
            Record::Call(Box::new(call(&mut ids, &session, seq, NOON))),
            Record::Message(Box::new(message(&mut ids, &session, NOON, "{}"))),
        ];
        writer
            .submit(Batch {
                records,
                ..Batch::default()
            })
            .unwrap();
    }
    writer.close().unwrap();
    let reader = Reader::open(dir.path()).unwrap();
    assert_eq!(
        reader.calls(&CallFilter::default(), None).unwrap().len(),
        50
    );
    assert_eq!(reader.messages(session.id).unwrap().len(), 50);
    assert!(
        !dir.path().join("calls.db-wal").exists_with_content(),
        "the write-ahead log is folded in"
    );
}

#[test]
fn a_batch_larger_than_the_queue_is_taken_when_nothing_else_waits() {
    let dir = tempfile::tempdir().unwrap();
    let writer = open(Options {
        queue_records: 10,
        ..options(dir.path())
    })
    .unwrap();
    let mut ids = writer.ids();
    let session = session(1);
    assert!(store(
        &writer,
        calls((0..100).map(|seq| call(&mut ids, &session, seq, NOON)))
    ));
    assert_eq!(writer.health().stored, 100);
}

trait Content {
    fn exists_with_content(&self) -> bool;
}

impl Content for std::path::PathBuf {
    fn exists_with_content(&self) -> bool {
        self.metadata().is_ok_and(|file| file.len() > 0)
    }
}
