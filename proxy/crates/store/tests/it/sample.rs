//! Calls and sessions to store, and helpers that wait for conditions.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use callbox_store::{
    Batch, Call, Capture, Captured, Client, Direction, End, Http, Ids, Message, Micros, Options,
    Outcome, RawJson, Record, Session, SessionSource, Writer,
};
use serde_json::value::RawValue;

/// 2026-11-30, noon.
pub(crate) const NOON: Micros = 1_796_040_000_000_000;

pub(crate) fn raw(text: &str) -> RawJson {
    RawValue::from_string(text.to_owned()).unwrap()
}

/// Options for tests: limits that do not get in the way of calls dated [`NOON`].
pub(crate) fn options(dir: &Path) -> Options {
    Options {
        max_age: Duration::from_hours(876_000),
        ..Options::new(dir)
    }
}

/// A session whose id does not move the calls' ids on.
pub(crate) fn session(number: u64) -> Arc<Session> {
    let started_at = NOON + i64::try_from(number).unwrap();
    let id = Ids::after(None).next(started_at);
    Arc::new(Session {
        id,
        source: SessionSource::Protocol,
        key: u128::from(number).to_be_bytes(),
        upstream: "crm".to_owned(),
        principal: Some(format!("h:{number:032x}")),
        tenant: Some(format!("tenant-{}", number % 3)),
        asserted: false,
        client: Some(Client {
            name: format!("client-{}", number % 2),
            version: Some("1.0".to_owned()),
        }),
        protocol_version: Some("2025-11-25".to_owned()),
        started_at,
    })
}

/// A concluded call.
pub(crate) fn call(ids: &mut Ids, session: &Arc<Session>, seq: u32, at: Micros) -> Call {
    let id = ids.next(at);
    Call {
        id,
        exchange_id: id,
        request_id: Some(id.to_string()),
        session: Arc::clone(session),
        seq,
        protocol_version: Some("2025-11-25".to_owned()),
        trace_id: None,
        span_id: None,
        jsonrpc_id: raw(&seq.to_string()),
        tool: "search_contacts".to_owned(),
        arguments: Some(raw(r#"{"query":"Dana"}"#)),
        outcome: Outcome::Ok,
        result: Some(raw(r#"{"content":[]}"#)),
        error: None,
        end: End::Complete,
        http_status: Some(200),
        started_at: at,
        first_byte_us: Some(1000),
        duration_us: Some(2000),
        request_bytes: 100,
        response_bytes: 200,
        legs: 1,
        confirmation: None,
        catalogue: None,
        capture: Captured {
            request: Capture::Full,
            response: Capture::Full,
            reason: None,
        },
        events: Vec::new(),
        flags: Vec::new(),
        sample: None,
        http: Http::default(),
    }
}

/// The same call before its answer.
pub(crate) fn opened(call: &Call) -> Call {
    Call {
        outcome: Outcome::Pending,
        end: End::Open,
        result: None,
        duration_us: None,
        first_byte_us: None,
        http_status: None,
        ..call.clone()
    }
}

pub(crate) fn message(ids: &mut Ids, session: &Arc<Session>, at: Micros, body: &str) -> Message {
    let id = ids.next(at);
    Message {
        id,
        exchange_id: id,
        session: Arc::clone(session),
        direction: Direction::ClientToServer,
        kind: "notification".to_owned(),
        method: Some("notifications/initialized".to_owned()),
        jsonrpc_id: None,
        call: None,
        at,
        http_status: Some(202),
        body: Some(raw(body)),
        flags: Vec::new(),
    }
}

pub(crate) fn calls(calls: impl IntoIterator<Item = Call>) -> Vec<Record> {
    calls
        .into_iter()
        .map(|call| Record::Call(Box::new(call)))
        .collect()
}

/// Submits and waits until the writer has answered. `true` when it did within ten seconds.
pub(crate) fn store(writer: &Writer, records: Vec<Record>) -> bool {
    let (done, wait) = sync_channel(1);
    let committed: Vec<Box<dyn FnOnce() + Send>> =
        vec![Box::new(move || done.send(()).unwrap_or_default())];
    writer
        .submit(Batch { records, committed })
        .expect("the queue has room");
    wait.recv_timeout(Duration::from_secs(10)).is_ok()
}

/// Waits until something is true; fails the test when it does not become true.
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_mins(1);
    while !condition() {
        assert!(Instant::now() < until, "did not happen: {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// `offered = stored + dropped + queued`.
pub(crate) fn assert_adds_up(writer: &Writer) {
    let health = writer.health();
    assert_eq!(
        health.offered,
        health.stored + health.dropped_total() + health.queued,
        "{health:?}"
    );
}
