//! Following: each call once, when it concludes.

use callbox_store::{Call, Outcome, Reader, open};

use crate::sample::{NOON, call, calls, opened, options, session, store};

#[test]
fn a_call_is_delivered_once_when_it_concludes() {
    let dir = tempfile::tempdir().unwrap();
    let writer = open(options(dir.path())).unwrap();
    let mut ids = writer.ids();
    let session = session(1);
    let before = call(&mut ids, &session, 1, NOON);
    let long = call(&mut ids, &session, 2, NOON + 1);
    let short = call(&mut ids, &session, 3, NOON + 2);
    let both = call(&mut ids, &session, 4, NOON + 3);
    assert!(store(&writer, calls([before, opened(&long)])));
    let mut follower = Reader::open(dir.path()).unwrap().follow().unwrap();
    let mut poll = || {
        follower
            .poll()
            .unwrap()
            .iter()
            .map(|call| call.id)
            .collect::<Vec<_>>()
    };
    assert!(poll().is_empty(), "nothing concluded since");
    assert!(store(&writer, calls([short.clone()])));
    assert_eq!(poll(), [short.id]);
    // Open and concluded in one commit.
    assert!(store(&writer, calls([opened(&both), both.clone()])));
    assert_eq!(poll(), [both.id]);
    // It began before the others.
    assert!(store(&writer, calls([long.clone()])));
    assert_eq!(poll(), [long.id]);
    // A later word on a call that was delivered.
    let flagged = Call {
        flags: vec!["late_result".to_owned()],
        ..long.clone()
    };
    assert!(store(&writer, calls([flagged])));
    assert!(poll().is_empty());
    let reader = Reader::open(dir.path()).unwrap();
    assert_eq!(
        reader.call(long.id).unwrap().unwrap().flags,
        ["late_result"]
    );
    writer.close().unwrap();
}

#[test]
fn calls_left_open_are_abandoned_by_the_next_run_and_delivered_as_such() {
    let dir = tempfile::tempdir().unwrap();
    let writer = open(options(dir.path())).unwrap();
    let mut ids = writer.ids();
    let session = session(1);
    let open_calls: Vec<_> = (0..600)
        .map(|seq| opened(&call(&mut ids, &session, seq, NOON)))
        .collect();
    assert!(store(&writer, calls(open_calls.clone())));
    let reader = Reader::open(dir.path()).unwrap();
    let mut follower = reader.follow().unwrap();
    writer.close().unwrap();
    let writer = open(options(dir.path())).unwrap();
    let mut delivered = Vec::new();
    loop {
        let calls = follower.poll().unwrap();
        if calls.is_empty() {
            break;
        }
        delivered.extend(calls);
    }
    assert_eq!(delivered.len(), 600);
    for (before, after) in open_calls.iter().zip(&delivered) {
        let abandoned = Call {
            outcome: Outcome::Abandoned,
            ..before.clone()
        };
        assert_eq!(
            format!("{after:?}"),
            format!("{abandoned:?}"),
            "nothing else about it changes"
        );
    }
    let summary = reader.session(session.id).unwrap().unwrap();
    assert_eq!((summary.calls, summary.failed), (600, 600));
    // Should its answer be found after all, it counts, and is not news.
    let answered = call(&mut ids, &session, 0, NOON);
    let late = Call {
        id: open_calls[0].id,
        ..answered
    };
    assert!(store(&writer, calls([late])));
    assert!(follower.poll().unwrap().is_empty());
    let summary = reader.session(session.id).unwrap().unwrap();
    assert_eq!((summary.calls, summary.failed), (600, 599));
}

/// A tail that is not asked for a while, with calls that conclude in another order than they begin.
#[test]
fn a_long_backlog_comes_whole_and_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let writer = open(options(dir.path())).unwrap();
    let mut ids = writer.ids();
    let session = session(1);
    let mut follower = Reader::open(dir.path()).unwrap().follow().unwrap();
    let mut all: Vec<_> = (0..900)
        .map(|seq| call(&mut ids, &session, seq, NOON))
        .collect();
    all.reverse();
    for chunk in all.chunks(9) {
        assert!(store(&writer, calls(chunk.iter().cloned())));
    }
    let mut delivered = Vec::new();
    while delivered.len() < all.len() {
        let calls = follower.poll().unwrap();
        assert!(
            !calls.is_empty(),
            "{} of {} came",
            delivered.len(),
            all.len()
        );
        delivered.extend(calls.into_iter().map(|call| call.id));
    }
    assert_eq!(
        delivered,
        all.iter().map(|call| call.id).collect::<Vec<_>>()
    );
    assert!(follower.poll().unwrap().is_empty());
}
