//! Disks fill up, file systems turn read-only, other processes hold locks. Nothing is lost silently, and recording
//! resumes by itself.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use callbox_store::{Batch, CallFilter, DropReason, Options, Reader, State, Writer, open};
use rusqlite::Connection;

use crate::sample::{NOON, assert_adds_up, call, calls, eventually, options, session, store};

fn degraded(writer: &Writer) -> Option<DropReason> {
    match writer.health().state {
        State::Ok => None,
        State::Degraded { reason, .. } => Some(reason),
    }
}

fn count(dir: &Path) -> u64 {
    Reader::open(dir)
        .unwrap()
        .calls(&CallFilter::default(), None)
        .unwrap()
        .len() as u64
}

/// A small file system of our own.
struct Mount(PathBuf);

impl Mount {
    /// None, said loudly, where mounting is not allowed.
    fn of_size(size: &str, on: &Path) -> Option<Self> {
        let dir = on.join("mounted");
        fs::create_dir(&dir).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "none"])
            .arg(&dir)
            .output();
        if mounted.is_ok_and(|output| output.status.success()) {
            Some(Self(dir))
        } else {
            eprintln!("SKIPPED: a file system of limited size cannot be mounted here");
            None
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("--lazy").arg(&self.0).status();
        assert!(
            unmounted.is_ok_and(|status| status.success()),
            "{} stays mounted",
            self.0.display()
        );
    }
}

/// Takes all the room there is.
fn fill(dir: &Path) -> PathBuf {
    let path = dir.join("filler");
    let mut file = File::create(&path).unwrap();
    loop {
        match file.write_all(&[1; 4096]) {
            Ok(()) => {}
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::StorageFull);
                return path;
            }
        }
    }
}

#[test]
fn a_full_disk_is_waited_out_and_what_does_not_fit_is_counted() {
    let home = tempfile::tempdir().unwrap();
    let Some(mount) = Mount::of_size("8m", home.path()) else {
        return;
    };
    let dir = mount.0.join("data");
    let writer = open(Options {
        queue_records: 2000,
        ..options(&dir)
    })
    .unwrap();
    let mut ids = writer.ids();
    let session = session(1);
    let mut batch = |size: u32| Batch {
        records: calls((0..size).map(|seq| call(&mut ids, &session, seq, NOON))),
        ..Batch::default()
    };
    writer.submit(batch(100)).unwrap();
    eventually("the first calls are stored", || {
        writer.health().stored == 100
    });

    let filler = fill(&mount.0);
    eventually("no commit fits any more", || {
        if let Err(batch) = writer.submit(batch(50)) {
            writer.discard(batch);
        }
        degraded(&writer) == Some(DropReason::DiskFull)
    });
    let before = writer.health().stored;
    // Nobody is kept waiting for a disk that is full.
    assert!(store(&writer, batch(1).records), "the waiter is let go");
    // All or none, also of a large batch.
    writer.submit(batch(500)).unwrap();
    eventually("the queue is full", || match writer.submit(batch(400)) {
        Ok(()) => false,
        Err(batch) => {
            writer.discard(batch);
            true
        }
    });
    assert_adds_up(&writer);
    let health = writer.health();
    assert!(
        health.dropped_for(DropReason::DiskFull) >= 400,
        "{health:?}"
    );
    assert_eq!(health.stored, before);
    assert_eq!(
        count(&dir),
        before,
        "the log can be read, and has nothing by halves"
    );

    fs::remove_file(filler).unwrap();
    eventually("recording resumes", || {
        writer.health().state == State::Ok && writer.health().queued == 0
    });
    assert!(store(&writer, batch(1).records));
    assert_adds_up(&writer);
    let health = writer.health();
    assert_eq!(
        health.dropped_total(),
        health.dropped_for(DropReason::DiskFull) + health.dropped_for(DropReason::QueueFull)
    );
    assert_eq!(count(&dir), health.stored);
    writer.close().unwrap();
}

/// The operator's tools can make files unchangeable under a running process; so can a file system with errors.
#[test]
fn b50_a_read_only_store_is_said_counted_and_waited_out() {
    let dir = tempfile::tempdir().unwrap();
    let writer = open(Options {
        queue_records: 100,
        ..options(dir.path())
    })
    .unwrap();
    let mut ids = writer.ids();
    let session = session(1);
    let mut batch = |size: u32| calls((0..size).map(|seq| call(&mut ids, &session, seq, NOON)));
    assert!(store(&writer, batch(10)));
    let set = |flag: &str| {
        let files = ["calls.db", "calls.db-wal"].map(|name| dir.path().join(name));
        Command::new("chattr")
            .arg(flag)
            .args(files)
            .output()
            .is_ok_and(|output| output.status.success())
    };
    if !set("+i") {
        eprintln!("SKIPPED: files cannot be made immutable here");
        return;
    }
    let waited = store(&writer, batch(10));
    let state = degraded(&writer);
    let mut dropped = 0;
    for _ in 0..20 {
        if let Err(batch) = writer.submit(Batch {
            records: batch(10),
            ..Batch::default()
        }) {
            dropped += batch.records.len() as u64;
            writer.discard(batch);
        }
    }
    let health = writer.health();
    assert!(set("-i"));
    assert!(waited, "traffic is not held up");
    assert_eq!(state, Some(DropReason::ReadOnly));
    assert_eq!(health.dropped_for(DropReason::ReadOnly), dropped);
    assert!(dropped > 0);
    eventually("recording resumes", || {
        writer.health().state == State::Ok && writer.health().queued == 0
    });
    assert_adds_up(&writer);
    assert_eq!(count(dir.path()), writer.health().stored);
    writer.close().unwrap();
}

#[test]
fn a_lock_held_for_long_by_another_process_is_waited_out() {
    let dir = tempfile::tempdir().unwrap();
    let writer = open(options(dir.path())).unwrap();
    let mut ids = writer.ids();
    let session = session(1);
    let other = Connection::open(dir.path().join("calls.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(
        store(&writer, calls([call(&mut ids, &session, 1, NOON)])),
        "the waiter is let go"
    );
    assert_eq!(degraded(&writer), Some(DropReason::Busy));
    assert_eq!(writer.health().stored, 0);
    other.execute_batch("ROLLBACK").unwrap();
    eventually("recording resumes", || writer.health().state == State::Ok);
    assert_eq!(count(dir.path()), 1);
    assert_adds_up(&writer);
}

/// Says which lines callbox logs; for one test, since a process has one.
struct Lines(Mutex<Vec<String>>);

impl tracing::Subscriber for &'static Lines {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::INFO
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = event.metadata().level().to_string();
        event.record(
            &mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
                line.push_str(&format!(" {field}={value:?}"));
            },
        );
        self.0.lock().unwrap().push(line);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

static LINES: Lines = Lines(Mutex::new(Vec::new()));

/// Attempt after attempt fails; that is news once, and its end is.
#[test]
fn b46_a_lasting_fault_is_one_line_and_its_end_another() {
    tracing::subscriber::set_global_default(&LINES).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let writer = open(options(dir.path())).unwrap();
    let mut ids = writer.ids();
    let session = session(1);
    let other = Connection::open(dir.path().join("calls.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let begun = Instant::now();
    eventually("some attempts failed", || {
        let records = calls([call(&mut ids, &session, 1, NOON)]);
        writer
            .submit(Batch {
                records,
                ..Batch::default()
            })
            .unwrap();
        begun.elapsed() > Duration::from_secs(4)
    });
    other.execute_batch("ROLLBACK").unwrap();
    eventually("recording resumes", || {
        writer.health().state == State::Ok && writer.health().queued == 0
    });
    let path = dir.path().display().to_string();
    let lines = LINES.0.lock().unwrap();
    let degraded: Vec<_> = lines
        .iter()
        .filter(|line| line.contains("degraded") && line.contains(&path))
        .collect();
    assert_eq!(degraded.len(), 1, "{lines:?}");
    assert!(
        degraded[0].starts_with("ERROR") && degraded[0].contains("\"busy\""),
        "{degraded:?}"
    );
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("WARN") && line.contains("call log recovered")),
        "{lines:?}"
    );
}

#[test]
fn closing_with_a_fault_counts_what_is_lost_and_does_not_hang() {
    let dir = tempfile::tempdir().unwrap();
    let writer = open(options(dir.path())).unwrap();
    let mut ids = writer.ids();
    let session = session(1);
    let other = Connection::open(dir.path().join("calls.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    writer
        .submit(Batch {
            records: calls([call(&mut ids, &session, 1, NOON)]),
            ..Batch::default()
        })
        .unwrap();
    let error = writer.close().unwrap_err().to_string();
    assert!(error.contains("locked"), "{error}");
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(count(dir.path()), 0);
}

#[test]
fn a_log_that_is_moved_away_is_begun_anew() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("data");
    let writer = open(options(&dir)).unwrap();
    let mut ids = writer.ids();
    let session = session(1);
    assert!(store(&writer, calls([call(&mut ids, &session, 1, NOON)])));
    fs::rename(&dir, home.path().join("data.old")).unwrap();
    eventually("there is a new log", || dir.join("calls.db").exists());
    let second = call(&mut ids, &session, 2, NOON);
    assert!(store(&writer, calls([second.clone()])));
    assert_eq!(count(&home.path().join("data.old")), 1);
    let read = Reader::open(&dir)
        .unwrap()
        .call(second.id)
        .unwrap()
        .unwrap();
    assert_eq!(
        read.session.id, session.id,
        "sessions are written anew, too"
    );
    assert!(open(options(&dir)).is_err(), "the new directory is locked");
    writer.close().unwrap();
}
