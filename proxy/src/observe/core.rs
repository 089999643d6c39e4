//! What all exchanges share: rules, tables, and the batch that is being filled.

use std::hash::RandomState;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use callbox_store::{Batch, Capture, Client, Ids, Micros, Outcome, Record, Session, SessionSource};
use callbox_telemetry::Metrics;
use callbox_telemetry::metrics::CallFacts;
use uuid::Uuid;

use super::body::Budget;
use super::bounded::Bounded;
use super::calls::{OpenCall, Request, RequestNo, What};
use super::exchange::Exchange;
use super::link::Links;
use super::lists::Lists;
use super::outcome;
use super::rules::Rules;
use super::sessions::{Finder, Sessions};
use super::{calls, sessions};
use crate::recorder::Counts;

/// Clients without sessions whose introduction is remembered, and endpoints that are announced.
const MAX_HINTS: usize = 4096;

/// The observer's state beside the exchanges themselves.
pub(super) struct Core {
    pub(super) rules: Rules,
    pub(super) sessions: Sessions,
    pub(super) requests: calls::Requests,
    pub(super) links: Links,
    pub(super) lists: Lists,
    /// How a client introduced itself to a server that has no sessions.
    pub(super) hints: Bounded<Client>,
    /// Endpoint URIs of the two-endpoint transport: the keys of their sessions.
    pub(super) endpoints: Bounded<()>,
    pub(super) ids: Ids,
    pub(super) metrics: Metrics,
    pub(super) counts: Arc<Counts>,
    pub(super) budget: Budget,
    pub(super) out: Batch,
    /// Stands in until a message's session is known.
    pub(super) nobody: Arc<Session>,
    pub(super) hasher: RandomState,
    began: Instant,
    /// Seconds since then, at the last event.
    pub(super) secs: u32,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core")
            .field("sessions", &self.sessions)
            .field("requests", &self.requests.len())
            .finish_non_exhaustive()
    }
}

impl Core {
    pub(super) fn new(
        rules: Rules,
        max_sessions: usize,
        ids: Ids,
        find: Finder,
        metrics: Metrics,
        counts: Arc<Counts>,
        now: Instant,
    ) -> Self {
        Self {
            sessions: Sessions::new(max_sessions, seconds(rules.session_idle), find),
            requests: calls::Requests::default(),
            links: Links::new(),
            lists: Lists::new(),
            hints: Bounded::new(MAX_HINTS),
            endpoints: Bounded::new(MAX_HINTS),
            ids,
            metrics,
            counts,
            budget: Budget::new(rules.buffer_bytes),
            out: Batch::default(),
            nobody: Arc::new(Session {
                id: Uuid::nil(),
                source: SessionSource::Inferred,
                key: [0; 16],
                upstream: String::new(),
                principal: None,
                tenant: None,
                asserted: false,
                client: None,
                protocol_version: None,
                started_at: 0,
            }),
            hasher: RandomState::new(),
            began: now,
            secs: 0,
            rules,
        }
    }

    pub(super) fn reload(&mut self, rules: Rules) {
        self.sessions.idle = seconds(rules.session_idle);
        self.budget.set_limit(rules.buffer_bytes);
        self.rules = rules;
    }

    /// Time goes on.
    pub(super) fn at(&mut self, now: Instant) {
        self.secs = self
            .secs
            .max(seconds(now.saturating_duration_since(self.began)));
    }

    /// Puts a request into the tables.
    pub(super) fn open(&mut self, exchange: &mut Exchange, request: Request) -> RequestNo {
        let no = self.requests.next_no();
        let mut request = request;
        if let Some(active) = request
            .seat
            .as_ref()
            .and_then(|seat| self.sessions.peek(&seat.key))
        {
            request.place = active.open.push(no);
        }
        let no = self.requests.add(request);
        exchange.requests.push(no);
        no
    }

    /// Takes a request out of all tables.
    pub(super) fn close(&mut self, no: RequestNo) -> Option<Request> {
        let request = self.requests.take(no)?;
        if let Some(active) = request
            .seat
            .as_ref()
            .and_then(|seat| self.sessions.peek(&seat.key))
            && let Some(moved) = active.open.remove(request.place, no)
            && let Some(moved) = self.requests.get(moved)
        {
            moved.place = request.place;
        }
        if let What::Call(call) = &request.what {
            self.unlink(call, no);
        }
        Some(request)
    }

    /// The call waits for nothing any more that only a link could bring.
    pub(super) fn unlink(&mut self, call: &OpenCall, no: RequestNo) {
        match &call.wait {
            calls::Wait::Answer => {}
            calls::Wait::Task(task) => self.links.end_task(task, no),
            calls::Wait::Input(asks) => self.links.stop(asks, no),
        }
    }

    /// Hands a call's present state to the log; it stays open here.
    pub(super) fn show(&mut self, no: RequestNo) {
        let Some(call) = self.requests.call(no) else {
            return;
        };
        call.shown = true;
        call.changed = false;
        let record = call.record.clone();
        self.out.records.push(Record::Call(Box::new(record)));
    }

    /// Hands a call to the log for the last time.
    pub(super) fn store(&mut self, call: OpenCall) {
        if call.changed || !call.shown {
            self.out.records.push(Record::Call(Box::new(call.record)));
        }
    }

    /// Counts a call, once.
    pub(super) fn count(&mut self, no: RequestNo) {
        let Some(call) = self
            .requests
            .call(no)
            .filter(|call| call.decided && !call.counted)
        else {
            return;
        };
        call.counted = true;
        let record = &call.record;
        let answered = matches!(record.outcome, Outcome::Ok | Outcome::ToolError);
        self.metrics.call(CallFacts {
            upstream: &record.session.upstream,
            tool: &record.tool,
            outcome: outcome::name(record.outcome),
            duration: record.duration_us.map(Duration::from_micros),
            known_tool: answered,
        });
        for capture in [record.capture.request, record.capture.response] {
            let counter: &AtomicU64 = match capture {
                Capture::Full => continue,
                Capture::Truncated => &self.counts.truncated,
                Capture::Undecoded => &self.counts.undecoded,
                Capture::Dropped => &self.counts.dropped,
            };
            counter.fetch_add(1, Relaxed);
        }
    }

    /// A session as it is now: what was learnt since a seat was taken counts.
    pub(super) fn session_now(&mut self, seat: &sessions::Seat) -> Arc<Session> {
        match self.sessions.peek(&seat.key) {
            Some(active) if active.session.id == seat.session.id => Arc::clone(&active.session),
            _ => Arc::clone(&seat.session),
        }
    }
}

fn seconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_secs()).unwrap_or(u32::MAX)
}

/// The wall clock at a moment of an exchange.
pub(super) fn wall(exchange: &Exchange, at: Instant) -> Micros {
    let since = calls::micros(at, exchange.head.at);
    exchange
        .head
        .at_wall
        .saturating_add(i64::try_from(since).unwrap_or(i64::MAX))
}
