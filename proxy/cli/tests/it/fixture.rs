//! Data directories filled through the store's own writer, with fixed ids and times.

mod story;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use callbox_store::{
    Batch, Call, Capture, Captured, Client, Direction, End, Http, Message, Micros, Options,
    Outcome, RawJson, Record, Sample, Session, SessionSource,
};
use serde_json::value::RawValue;
use tempfile::TempDir;
use uuid::Uuid;

pub(crate) use story::{crm, crm_records, trouble_records};

/// 2026-11-30T14:03:05Z
pub(crate) const START: Micros = 1_796_047_385_000_000;

/// A data directory; gone when dropped.
pub(crate) struct Data {
    _root: TempDir,
    pub(crate) dir: PathBuf,
}

impl Data {
    /// With these records in it.
    pub(crate) fn with(records: Vec<Record>) -> Self {
        let root = TempDir::new().unwrap();
        let dir = root.path().join("data");
        let data = Self { _root: root, dir };
        data.add(records);
        data
    }

    /// More records, as another run of the proxy would leave them.
    pub(crate) fn add(&self, records: Vec<Record>) {
        let writer = callbox_store::open(options(&self.dir)).unwrap();
        writer
            .submit(Batch {
                records,
                committed: Vec::new(),
            })
            .unwrap();
        writer.close().unwrap();
    }
}

/// Nothing here is ever too old.
pub(crate) fn options(dir: &Path) -> Options {
    Options {
        max_age: Duration::from_hours(100 * 365 * 24),
        ..Options::new(dir)
    }
}

/// A UUID v7 of this moment. Equal moments give equal ids, and the last digits are the same in all.
pub(crate) fn id(at: Micros) -> Uuid {
    let at = at.cast_unsigned();
    let fraction = at % 1000 * 4096 / 1000;
    Uuid::from_u64_pair(
        (at / 1000) << 16 | 7 << 12 | fraction,
        1 << 63 | 0xca11_b0c5,
    )
}

pub(crate) fn of_call(call: Call) -> Record {
    Record::Call(Box::new(call))
}

pub(crate) fn of_message(message: Message) -> Record {
    Record::Message(Box::new(message))
}

pub(crate) fn raw(json: &str) -> RawJson {
    RawValue::from_string(json.to_owned()).unwrap()
}

/// A session that began at this moment.
pub(crate) fn session(at: Micros) -> Session {
    let id = id(at);
    let mut key = [0; 16];
    key.copy_from_slice(id.as_bytes());
    Session {
        id,
        source: SessionSource::Protocol,
        key,
        upstream: "crm".to_owned(),
        principal: Some("h:9f2c41d08c3b5a6e7f8091a2b3c4d5e6".to_owned()),
        tenant: Some("acme".to_owned()),
        asserted: false,
        client: Some(Client {
            name: "claude-desktop".to_owned(),
            version: Some("2.1".to_owned()),
        }),
        protocol_version: Some("2025-11-25".to_owned()),
        started_at: at,
    }
}

/// A call that went well.
pub(crate) fn call(
    session: &Arc<Session>,
    seq: u32,
    at: Micros,
    tool: &str,
    arguments: &str,
    text: &str,
) -> Call {
    let content = serde_json::json!({ "content": [{ "type": "text", "text": text }] });
    Call {
        id: id(at),
        exchange_id: id(at + 1),
        request_id: Some(format!("req-{seq}")),
        session: Arc::clone(session),
        seq,
        protocol_version: session.protocol_version.clone(),
        trace_id: Some("0af7651916cd43dd8448eb211c80319c".to_owned()),
        span_id: Some("b7ad6b7169203331".to_owned()),
        jsonrpc_id: raw(&seq.to_string()),
        tool: tool.to_owned(),
        arguments: Some(raw(arguments)),
        outcome: Outcome::Ok,
        result: Some(raw(&content.to_string())),
        error: None,
        end: End::Complete,
        http_status: Some(200),
        started_at: at,
        first_byte_us: Some(12_400),
        duration_us: Some(34_200),
        request_bytes: 180,
        response_bytes: 912,
        legs: 1,
        confirmation: None,
        catalogue: Some(format!("sha256:4f2e{:060x}", 7)),
        capture: Captured {
            request: Capture::Full,
            response: Capture::Full,
            reason: None,
        },
        events: Vec::new(),
        flags: Vec::new(),
        sample: Some(Sample {
            probability: 0.05,
            selected: false,
        }),
        http: Http {
            method: "POST".to_owned(),
            target: "/mcp".to_owned(),
            version: "HTTP/1.1".to_owned(),
            request_headers: lines(&[
                ("host", "mcp.northwind.example"),
                ("content-type", "application/json"),
                ("authorization", "[redacted:authorization:9f2c1ab0]"),
            ]),
            response_headers: lines(&[
                ("content-type", "application/json"),
                ("x-request-id", &format!("req-{seq}")),
            ]),
        },
    }
}

pub(crate) fn lines(headers: &[(&str, &str)]) -> Vec<(String, String)> {
    headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// A message that belongs to no call.
pub(crate) fn message(
    session: &Arc<Session>,
    at: Micros,
    direction: Direction,
    kind: &str,
    method: &str,
    id_text: Option<&str>,
    body: Option<&str>,
) -> Message {
    Message {
        id: id(at),
        exchange_id: id(at + 1),
        session: Arc::clone(session),
        direction,
        kind: kind.to_owned(),
        method: Some(method.to_owned()),
        jsonrpc_id: id_text.map(raw),
        call: None,
        at,
        http_status: Some(200),
        body: body.map(raw),
        flags: Vec::new(),
    }
}
