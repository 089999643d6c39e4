//! Feeds an observer with exchanges as text and collects what it makes of them.

use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use callbox_config::{Overrides, Settings, Sources};
use callbox_store::{Call, Catalogue, Ids, Message, Outcome, Record, Session};
use callbox_telemetry::Metrics;
use http::{Method, StatusCode, Version};
use uuid::Uuid;

use crate::observe::{Observer, Rules};
use crate::recorder::Counts;
use crate::tap::{BodyEnd, Event, HeaderText, RequestHead, ResponseHead};

/// Sessions that stand in for those of the log.
pub(super) type Log = Arc<Mutex<HashMap<[u8; 16], (Session, u32)>>>;

pub(super) struct Feed {
    pub(super) observer: Observer,
    pub(super) now: Instant,
    pub(super) metrics: Metrics,
    pub(super) counts: Arc<Counts>,
    pub(super) log: Log,
    /// Bodies are cut into frames of this many bytes.
    pub(super) frame: usize,
    pub(super) peer: &'static str,
    started: Instant,
    exchanges: u64,
    records: Vec<Record>,
}

pub(super) const WALL: i64 = 1_796_000_000_000_000;

pub(super) fn settings() -> Settings {
    let sources = Sources {
        overrides: Overrides {
            upstream: vec!["http://127.0.0.1:1".to_owned()],
            ..Overrides::default()
        },
        ..Sources::default()
    };
    Settings::from_sources(&sources).unwrap()
}

impl Feed {
    pub(super) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(super) fn with(change: impl FnOnce(&mut Settings)) -> Self {
        Self::after(Log::default(), change)
    }

    /// An observer that starts with the sessions of an earlier one.
    pub(super) fn after(log: Log, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = settings();
        change(&mut settings);
        let rules = Rules::with_key(&settings, &[7; 32]).unwrap();
        let metrics = Metrics::new("0");
        let counts = Arc::new(Counts::default());
        let found = Arc::clone(&log);
        let find = Box::new(move |key: &[u8; 16]| found.lock().unwrap().get(key).cloned());
        let observer = Observer::new(
            rules,
            settings.record.max_sessions,
            Ids::after(None),
            find,
            metrics.clone(),
            Arc::clone(&counts),
        );
        let now = Instant::now();
        Self {
            observer,
            now,
            metrics,
            counts,
            log,
            frame: usize::MAX,
            peer: "192.0.2.1:1000",
            started: now,
            exchanges: 0,
            records: Vec::new(),
        }
    }

    pub(super) fn wait(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
        self.observer.tick(self.now);
    }

    pub(super) fn request_head(&mut self, method: Method, target: &str, headers: &str) -> Uuid {
        self.exchanges += 1;
        let id = Uuid::from_u64_pair(0x7000, self.exchanges << 8);
        let since = i64::try_from((self.now - self.started).as_micros()).unwrap();
        let head = RequestHead {
            at_wall: WALL + since,
            at: self.now,
            peer: self.peer.parse().unwrap(),
            upstream: "crm".into(),
            method,
            target: target.to_owned(),
            version: Version::HTTP_11,
            request_id: Some(format!("r-{}", self.exchanges)),
            headers: text(headers),
        };
        self.observer.handle(Event::Request(id, Box::new(head)));
        id
    }

    pub(super) fn request_body(&mut self, id: Uuid, body: &[u8], end: Option<BodyEnd>) {
        for frame in frames(body, self.frame) {
            self.observer.handle(Event::RequestChunk(id, frame));
        }
        if let Some(end) = end {
            self.observer.handle(Event::RequestEnd(id, end));
        }
    }

    pub(super) fn post_to(&mut self, target: &str, headers: &str, body: &str) -> Uuid {
        let headers = format!(
            "host: h\ncontent-type: application/json\naccept: application/json, text/event-stream\n{headers}"
        );
        let id = self.request_head(Method::POST, target, &headers);
        self.request_body(id, body.as_bytes(), Some(BodyEnd::Complete));
        id
    }

    pub(super) fn post(&mut self, headers: &str, body: &str) -> Uuid {
        self.post_to("/mcp", headers, body)
    }

    pub(super) fn get_at(&mut self, target: &str, headers: &str) -> Uuid {
        let id = self.request_head(
            Method::GET,
            target,
            &format!("accept: text/event-stream\n{headers}"),
        );
        self.request_body(id, b"", Some(BodyEnd::Complete));
        id
    }

    pub(super) fn get(&mut self, headers: &str) -> Uuid {
        self.get_at("/mcp", headers)
    }

    pub(super) fn head(&mut self, id: Uuid, status: u16, headers: &str) {
        self.fault(id, status, headers, None);
    }

    pub(super) fn fault(
        &mut self,
        id: Uuid,
        status: u16,
        headers: &str,
        fault: Option<&'static str>,
    ) {
        let head = ResponseHead {
            at: self.now,
            status: StatusCode::from_u16(status).unwrap(),
            headers: text(headers),
            fault,
        };
        self.observer.handle(Event::Response(id, Box::new(head)));
    }

    pub(super) fn chunk(&mut self, id: Uuid, body: impl AsRef<[u8]>) {
        for frame in frames(body.as_ref(), self.frame) {
            self.observer
                .handle(Event::ResponseChunk(id, self.now, frame));
        }
    }

    pub(super) fn event(&mut self, id: Uuid, data: &str) {
        self.chunk(id, format!("event: message\ndata: {data}\n\n"));
    }

    pub(super) fn end(&mut self, id: Uuid, end: BodyEnd) {
        self.observer.handle(Event::End(id, self.now, end));
    }

    pub(super) fn done(&mut self, id: Uuid) {
        self.end(id, BodyEnd::Complete);
    }

    /// A whole answer.
    pub(super) fn answer(&mut self, id: Uuid, status: u16, headers: &str, body: impl AsRef<[u8]>) {
        self.head(id, status, headers);
        self.chunk(id, body);
        self.done(id);
    }

    pub(super) fn json(&mut self, id: Uuid, body: &str) {
        self.answer(id, 200, "content-type: application/json\n", body);
    }

    pub(super) fn stream(&mut self, id: Uuid) {
        self.head(id, 200, "content-type: text/event-stream\n");
    }

    /// The handshake of a server with sessions; what to send from then on.
    pub(super) fn initialize(&mut self, version: &str, session: &str, headers: &str) -> String {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{"name":"claude","version":"2.1"}}}}}}"#
        );
        let id = self.post(headers, &body);
        let result = format!(
            r#"{{"jsonrpc":"2.0","id":0,"result":{{"protocolVersion":"{version}","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"s","version":"1"}}}}}}"#
        );
        self.answer(
            id,
            200,
            &format!("content-type: application/json\nmcp-session-id: {session}\n"),
            &result,
        );
        let headers =
            format!("mcp-session-id: {session}\nmcp-protocol-version: {version}\n{headers}");
        let id = self.post(
            &headers,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        );
        self.answer(id, 202, "", "");
        headers
    }

    pub(super) fn records(&mut self) -> &[Record] {
        let batch = self.observer.take();
        batch.committed.into_iter().for_each(|done| done());
        for record in &batch.records {
            let session = match record {
                Record::Call(call) => (Arc::clone(&call.session), call.seq),
                Record::Message(message) => (Arc::clone(&message.session), 0),
                Record::Catalogue(_) => continue,
            };
            let mut log = self.log.lock().unwrap();
            let known =
                log.get(&session.0.key).map_or(
                    0,
                    |(known, seq)| if known.id == session.0.id { *seq } else { 0 },
                );
            log.insert(
                session.0.key,
                (Session::clone(&session.0), known.max(session.1)),
            );
        }
        self.records.extend(batch.records);
        &self.records
    }

    /// The last state of each call, in the order of their beginning.
    pub(super) fn calls(&mut self) -> Vec<Call> {
        let mut calls: Vec<Call> = Vec::new();
        for record in self.records() {
            if let Record::Call(call) = record {
                match calls.iter_mut().find(|known| known.id == call.id) {
                    Some(known) => *known = Call::clone(call),
                    None => calls.push(Call::clone(call)),
                }
            }
        }
        calls.sort_by_key(|call| call.id);
        calls
    }

    /// The only call.
    pub(super) fn call(&mut self) -> Call {
        let calls = self.calls();
        let [call] = calls.as_slice() else {
            panic!("{} calls: {calls:#?}", calls.len())
        };
        call.clone()
    }

    pub(super) fn messages(&mut self) -> Vec<Message> {
        self.records()
            .iter()
            .filter_map(|record| match record {
                Record::Message(message) => Some(Message::clone(message)),
                _ => None,
            })
            .collect()
    }

    /// Messages in short: direction, kind, method, status.
    pub(super) fn lines(&mut self) -> Vec<String> {
        self.messages()
            .iter()
            .map(|message| {
                let arrow = match message.direction {
                    callbox_store::Direction::ClientToServer => '>',
                    callbox_store::Direction::ServerToClient => '<',
                };
                let status = message
                    .http_status
                    .map(|status| format!(" {status}"))
                    .unwrap_or_default();
                let flags = if message.flags.is_empty() {
                    String::new()
                } else {
                    format!(" {:?}", message.flags)
                };
                let method = message.method.as_deref().unwrap_or("-");
                format!("{arrow} {} {method}{status}{flags}", message.kind)
            })
            .collect()
    }

    pub(super) fn catalogues(&mut self) -> Vec<Catalogue> {
        self.records()
            .iter()
            .filter_map(|record| match record {
                Record::Catalogue(catalogue) => Some(Catalogue::clone(catalogue)),
                _ => None,
            })
            .collect()
    }

    pub(super) fn faults(&self) -> u64 {
        self.counts.faults.load(Relaxed)
    }
}

pub(super) fn text(lines: &str) -> HeaderText {
    HeaderText(lines.as_bytes().to_vec())
}

fn frames(body: &[u8], size: usize) -> Vec<Bytes> {
    body.chunks(size.min(1 << 30))
        .map(Bytes::copy_from_slice)
        .collect()
}

/// A `tools/call` without `_meta`.
pub(super) fn tools_call(id: &str, tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    )
}

/// Its answer.
pub(super) fn result(id: &str, content: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{content}"}}]}}}}"#
    )
}

/// A modern request: headers and body.
pub(super) fn modern(id: &str, method: &str, name: &str, params: &str) -> (String, String) {
    let name = if name.is_empty() {
        String::new()
    } else {
        format!("mcp-name: {name}\n")
    };
    let params = if params.is_empty() {
        String::new()
    } else {
        format!("{params},")
    };
    (
        format!("mcp-protocol-version: 2026-07-28\nmcp-method: {method}\n{name}"),
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}},"io.modelcontextprotocol/clientInfo":{{"name":"agent","version":"3"}}}}}}}}"#
        ),
    )
}

pub(super) fn outcomes(calls: &[Call]) -> Vec<Outcome> {
    calls.iter().map(|call| call.outcome).collect()
}

/// Text of a recorded part.
pub(super) fn raw(part: Option<&callbox_store::RawJson>) -> &str {
    part.map_or("", |part| part.get())
}

pub(super) fn flags(call: &Call) -> Vec<&str> {
    call.flags.iter().map(String::as_str).collect()
}
