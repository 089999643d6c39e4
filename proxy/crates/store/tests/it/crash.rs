//! kill -9: what was said to be committed is there, and the file is whole.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::sync_channel;

use callbox_store::{Batch, CallFilter, Outcome, Reader, open};
use rusqlite::Connection;

use crate::sample::{NOON, call, calls, opened, options, session};

/// Not a test by itself: stores calls in the working directory and prints the id of each that is committed, until it
/// is killed.
#[test]
#[ignore = "the process that is killed"]
fn child() {
    let writer = open(options(Path::new("."))).unwrap();
    let mut ids = writer.ids();
    let session = session(1);
    let (done, acknowledged) = sync_channel(4);
    std::thread::spawn(move || {
        let mut out = std::io::stdout().lock();
        for id in acknowledged {
            writeln!(out, "committed {id}").unwrap();
        }
    });
    for seq in 0.. {
        let records = calls((0..=(seq % 4)).flat_map(|_| {
            let call = call(&mut ids, &session, seq, NOON);
            [opened(&call), call]
        }));
        let last = match records.last().unwrap() {
            callbox_store::Record::Call(call) => call.id,
            _ => unreachable!("only calls were made"),
        };
        let left_open = calls([opened(&call(&mut ids, &session, seq, NOON))]);
        drop(writer.submit(Batch {
            records: left_open,
            ..Batch::default()
        }));
        let done = done.clone();
        let committed: Vec<Box<dyn FnOnce() + Send>> =
            vec![Box::new(move || done.send(last).unwrap_or_default())];
        let mut batch = Batch { records, committed };
        while let Err(back) = writer.submit(batch) {
            batch = back;
            std::thread::yield_now();
        }
    }
}

#[test]
fn killed_twenty_times_nothing_acknowledged_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let mut acknowledged = HashSet::new();
    for round in 0..20 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "crash::child",
                "--ignored",
                "--nocapture",
                "--quiet",
            ])
            .current_dir(dir.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut heard = 0;
        // A little more each round, so that the kill falls on different work.
        while heard < 3 + round * 2 {
            let line = lines.next().expect("it runs until it is killed").unwrap();
            if let Some(id) = line.strip_prefix("committed ") {
                acknowledged.insert(id.parse::<uuid::Uuid>().unwrap());
                heard += 1;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // What it still managed to say counts as well.
        for line in lines.map_while(Result::ok) {
            if let Some(id) = line
                .strip_prefix("committed ")
                .and_then(|id| id.parse().ok())
            {
                acknowledged.insert(id);
            }
        }
        let reader = Reader::open(dir.path()).unwrap();
        let stored = reader.calls(&CallFilter::default(), None).unwrap();
        let concluded: HashSet<_> = stored
            .iter()
            .filter(|call| call.outcome == Outcome::Ok)
            .map(|call| call.id)
            .collect();
        assert!(
            acknowledged.is_subset(&concluded),
            "round {round}: {} lost",
            acknowledged.difference(&concluded).count()
        );
        assert!(
            stored.iter().all(|call| call.flags.is_empty()),
            "every document can be read"
        );
        let check: String = Connection::open(dir.path().join("calls.db"))
            .unwrap()
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(check, "ok", "round {round}");
    }
    // The next run takes the lock over, and concludes what the killed ones left open.
    let writer = open(options(dir.path())).unwrap();
    let reader = Reader::open(dir.path()).unwrap();
    let filter = |outcome| CallFilter {
        outcomes: vec![outcome],
        ..CallFilter::default()
    };
    assert!(
        reader
            .calls(&filter(Outcome::Pending), None)
            .unwrap()
            .is_empty()
    );
    assert!(
        !reader
            .calls(&filter(Outcome::Abandoned), None)
            .unwrap()
            .is_empty()
    );
    writer.close().unwrap();
}
