//! Queries find what a look at every call would find.

use std::ops::ControlFlow;
use std::sync::Arc;

use callbox_store::{
    Call, CallFilter, Outcome, Reader, Resolved, Session, SessionFilter, StoreError, Writer, open,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::sample::{NOON, call, calls, opened, options, session, store};

const SECOND: i64 = 1_000_000;

/// A log with lists, late calls, calls that moved, and newest calls in no list; and all of it in memory.
fn log(writer: &Writer) -> Vec<Call> {
    let mut ids = writer.ids();
    let sessions: Vec<_> = (0..40).map(session).collect();
    let silent = Arc::new(Session {
        principal: None,
        tenant: None,
        client: None,
        ..(*session(99)).clone()
    });
    let mut all = Vec::new();
    let mut late = Vec::new();
    for number in 0..11_000_u32 {
        let at = NOON + i64::from(number) * 10_000;
        // Sessions follow one another, so that each has its own span.
        let session = match number {
            number if number % 97 == 0 => &silent,
            number => &sessions[(number / 400 + number % 13) as usize % 40],
        };
        let one = Call {
            tool: match number {
                number if number % 1000 == 0 => "rare".to_owned(),
                number => format!("tool-{}", number % 7),
            },
            outcome: match number % 50 {
                7 => Outcome::ToolError,
                8 => Outcome::Timeout,
                _ => Outcome::Ok,
            },
            catalogue: Some(format!("sha256:{:02x}", number / 4000)),
            ..call(&mut ids, session, number, at)
        };
        match number % 500 {
            // Comes when its segment is long written.
            3 => late.push(one.clone()),
            // Is stored open first, under another tool and session.
            4 => {
                let before = Call {
                    tool: "unknown yet".to_owned(),
                    session: Arc::clone(&silent),
                    ..opened(&one)
                };
                assert!(store(writer, calls([before])));
                late.push(one.clone());
            }
            _ => {}
        }
        all.push(one);
    }
    let early = all
        .iter()
        .filter(|call| !late.iter().any(|late| late.id == call.id));
    for chunk in early.cloned().collect::<Vec<_>>().chunks(700) {
        assert!(store(writer, calls(chunk.iter().cloned())));
    }
    assert!(store(writer, calls(late)));
    all
}

fn filters() -> impl Strategy<Value = CallFilter> {
    let time =
        || prop::option::weighted(0.3, (0..120_i64).prop_map(|second| NOON + second * SECOND));
    let number = || prop::option::weighted(0.25, 0..41_u64);
    (
        (time(), time()),
        prop::option::weighted(
            0.4,
            prop::sample::subsequence(
                vec!["tool-1", "tool-5", "rare", "unknown yet", "never"],
                1..3,
            ),
        ),
        prop::option::weighted(
            0.3,
            prop::sample::subsequence(
                vec![
                    Outcome::ToolError,
                    Outcome::Timeout,
                    Outcome::Ok,
                    Outcome::Lost,
                ],
                1..3,
            ),
        ),
        (number(), number(), number(), number()),
        prop::option::weighted(
            0.2,
            prop::sample::select(vec!["sha256:00", "01", "sha256:0", "7"]),
        ),
    )
        .prop_map(
            |(
                (since, until),
                tools,
                outcomes,
                (principal, tenant, client, upstream),
                catalogue,
            )| CallFilter {
                since,
                until,
                tools: tools
                    .unwrap_or_default()
                    .into_iter()
                    .map(str::to_owned)
                    .collect(),
                outcomes: outcomes.unwrap_or_default(),
                session: None,
                principal: principal.map(|number| format!("h:{number:032x}")),
                tenant: tenant.map(|number| format!("tenant-{}", number % 4)),
                upstream: upstream.map(|number| if number == 0 { "erp" } else { "crm" }.to_owned()),
                catalogue: catalogue.map(str::to_owned),
                client: client.map(|number| format!("client-{}", number % 2)),
            },
        )
}

/// Any filter, any limit: the same calls in the same order as by looking at each.
#[test]
fn any_filter_finds_what_it_should() {
    let dir = tempfile::tempdir().unwrap();
    let writer = open(options(dir.path())).unwrap();
    let all = log(&writer);
    let reader = Reader::open(dir.path()).unwrap();
    let check = |filter: &CallFilter, limit: Option<usize>| {
        let wanted: Vec<_> = all
            .iter()
            .filter(|call| filter.matches(call))
            .map(|call| call.id)
            .collect();
        let found: Vec<_> = reader
            .calls(filter, limit)
            .unwrap()
            .iter()
            .map(|call| call.id)
            .collect();
        let skip = limit.map_or(0, |limit| wanted.len().saturating_sub(limit));
        assert_eq!(found.len(), wanted.len() - skip, "{filter:?} {limit:?}");
        assert_eq!(found, wanted[skip..], "{filter:?} {limit:?}");
    };
    TestRunner::new(Config::with_cases(120))
        .run(
            &(
                filters(),
                prop::option::of(0..60_usize),
                prop::option::weighted(0.3, 0..11_000_usize),
            ),
            |(filter, limit, of)| {
                let session = of.map(|number| all[number].session.id);
                check(&CallFilter { session, ..filter }, limit);
                Ok(())
            },
        )
        .unwrap();
    check(&CallFilter::default(), None);
    check(
        &CallFilter {
            tools: vec!["rare".to_owned()],
            ..CallFilter::default()
        },
        None,
    );
    check(
        &CallFilter {
            tools: vec!["unknown yet".to_owned()],
            ..CallFilter::default()
        },
        None,
    );
    check(
        &CallFilter {
            session: Some(all[0].session.id),
            ..CallFilter::default()
        },
        None,
    );
    writer.close().unwrap();
}

#[test]
fn a_walk_can_be_broken_off_and_is_not_endless() {
    let dir = tempfile::tempdir().unwrap();
    let writer = open(options(dir.path())).unwrap();
    let mut ids = writer.ids();
    let session = session(1);
    assert!(store(
        &writer,
        calls((0..600).map(|seq| call(&mut ids, &session, seq, NOON)))
    ));
    let reader = Reader::open(dir.path()).unwrap();
    let mut seen = 0;
    reader
        .each_call(&CallFilter::default(), &mut |_| {
            seen += 1;
            // A writer that is always a little ahead.
            assert!(store(
                &writer,
                calls([call(&mut ids, &session, 0, NOON + 1)])
            ));
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(seen, 600);
    let mut seen = 0;
    reader
        .each_call(&CallFilter::default(), &mut |_| {
            seen += 1;
            if seen == 3 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })
        .unwrap();
    assert_eq!(seen, 3);
}

/// The clock was an hour fast when these ids were minted, and then not.
#[test]
fn times_are_the_calls_own_whatever_their_ids_say() {
    let dir = tempfile::tempdir().unwrap();
    let writer = open(options(dir.path())).unwrap();
    let mut ids = writer.ids();
    let session = session(1);
    let fast = call(&mut ids, &session, 1, NOON + 3600 * SECOND);
    let right = call(&mut ids, &session, 2, NOON + 5 * SECOND);
    assert!(store(&writer, calls([fast, right.clone()])));
    let reader = Reader::open(dir.path()).unwrap();
    let filter = CallFilter {
        since: Some(NOON + 4 * SECOND),
        until: Some(NOON + 6 * SECOND),
        ..CallFilter::default()
    };
    let found = reader.calls(&filter, None).unwrap();
    assert_eq!(
        found.iter().map(|call| call.id).collect::<Vec<_>>(),
        [right.id]
    );
    assert_eq!(found[0].started_at, right.started_at);
}

#[test]
fn ids_are_found_by_any_unique_beginning() {
    let dir = tempfile::tempdir().unwrap();
    let writer = open(options(dir.path())).unwrap();
    let mut ids = writer.ids();
    let session = session(1);
    let one = call(&mut ids, &session, 1, NOON + SECOND);
    let two = call(&mut ids, &session, 2, NOON + 90_000 * SECOND);
    assert!(store(&writer, calls([one.clone(), two.clone()])));
    let reader = Reader::open(dir.path()).unwrap();
    let text = two.id.to_string();
    for length in [9, 10, 13, 14, 19, 23, 24, 30, 35, 36] {
        assert_eq!(
            reader.resolve(&text[..length]).unwrap(),
            Resolved::Call(two.id),
            "{length}"
        );
    }
    assert_eq!(
        reader
            .resolve(&two.id.simple().to_string().to_uppercase())
            .unwrap(),
        Resolved::Call(two.id)
    );
    assert_eq!(
        reader.resolve(&session.id.to_string()).unwrap(),
        Resolved::Session(session.id)
    );
    match reader.resolve(&one.id.to_string()[..8]).unwrap_err() {
        StoreError::AmbiguousId { candidates, .. } => assert_eq!(candidates, [one.id, session.id]),
        other => panic!("{other}"),
    }
    let mut wrong_end = two.id.to_string();
    wrong_end.replace_range(35.., if wrong_end.ends_with('0') { "1" } else { "0" });
    for unknown in ["ffff", "0", &wrong_end] {
        let error = reader.resolve(unknown).unwrap_err();
        assert!(
            matches!(
                error,
                StoreError::NoSuchId(_) | StoreError::AmbiguousId { .. }
            ),
            "{unknown}: {error}"
        );
    }
    for bad in ["", "xyz", "-", &format!("{text}0")] {
        assert!(
            matches!(reader.resolve(bad).unwrap_err(), StoreError::BadId(_)),
            "{bad}"
        );
    }
}

#[test]
fn sessions_are_listed_by_what_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let writer = open(options(dir.path())).unwrap();
    let mut ids = writer.ids();
    let sessions: Vec<_> = (0..12).map(session).collect();
    for (number, session) in (0..).zip(&sessions) {
        assert!(store(
            &writer,
            calls([call(&mut ids, session, 1, NOON + number * SECOND)])
        ));
    }
    let reader = Reader::open(dir.path()).unwrap();
    let list = |filter: SessionFilter, limit| {
        let found = reader.sessions(&filter, limit).unwrap();
        found
            .iter()
            .map(|summary| {
                sessions
                    .iter()
                    .position(|session| session.id == summary.session.id)
                    .unwrap()
            })
            .collect::<Vec<_>>()
    };
    let all = SessionFilter::default();
    assert_eq!(list(all.clone(), None), (0..12).collect::<Vec<_>>());
    assert_eq!(list(all.clone(), Some(2)), [10, 11]);
    assert_eq!(
        list(
            SessionFilter {
                tenant: Some("tenant-1".to_owned()),
                ..all.clone()
            },
            None
        ),
        [1, 4, 7, 10]
    );
    assert_eq!(
        list(
            SessionFilter {
                tenant: Some("tenant-1".to_owned()),
                client: Some("client-0".to_owned()),
                ..all.clone()
            },
            None
        ),
        [4, 10]
    );
    assert_eq!(
        list(
            SessionFilter {
                principal: sessions[5].principal.clone(),
                ..all.clone()
            },
            None
        ),
        [5]
    );
    assert_eq!(
        list(
            SessionFilter {
                since: Some(NOON + 9 * SECOND),
                ..all.clone()
            },
            None
        ),
        [9, 10, 11]
    );
    assert_eq!(
        list(
            SessionFilter {
                upstream: Some("erp".to_owned()),
                ..all
            },
            None
        ),
        [0_usize; 0]
    );
}
