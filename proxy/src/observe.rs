//! The observer: turns what the tap saw into calls, messages, sessions and catalogues.
//!
//! Runs on one thread behind the tap. Pure apart from the session look-up: events and moments in, records out. It may
//! be slow, wrong or restarted without any effect on traffic.

mod body;
mod calls;
mod exchange;
mod head;
mod identity;
mod link;
mod messages;
mod outcome;
mod rules;
mod sessions;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use callbox_store::{Batch, Ids, Record, Session};
use callbox_telemetry::Metrics;
use uuid::Uuid;

use self::body::{Body, Piece};
use self::calls::OpenCall;
use self::exchange::Exchange;
pub(crate) use self::rules::{Rules, RulesError};
use self::sessions::{Active, Key, Sessions};
use crate::recorder::Counts;
use crate::tap::{BodyEnd, Event, RequestHead, ResponseHead, Side};

/// A call open for longer is put into the log as it is, and again when it is concluded.
const SHOW_OPEN_AFTER: Duration = Duration::from_secs(1);
/// Exchanges under way at most; past it the oldest is given up.
const MAX_EXCHANGES: usize = 100_000;

type Finder = Box<dyn Fn(&Key) -> Option<(Session, u32)> + Send>;

/// State of the observer.
pub(crate) struct Observer {
    rules: Rules,
    exchanges: HashMap<Uuid, Box<Exchange>>,
    sessions: Sessions,
    /// Announced endpoint URIs of the two-endpoint transport and the session each belongs to.
    endpoints: HashMap<String, Key>,
    /// Tool list in force by upstream and principal, where there is no session that lists.
    catalogues: HashMap<(Arc<str>, Option<String>), Arc<str>>,
    known_catalogues: std::collections::HashSet<Arc<str>>,
    /// Sessions to wait on a chain of states or a task: digest to session.
    chains: HashMap<Key, Key>,
    ids: Ids,
    find: Finder,
    metrics: Metrics,
    counts: Arc<Counts>,
    out: Batch,
    pieces: Vec<Piece>,
}

impl std::fmt::Debug for Observer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observer")
            .field("exchanges", &self.exchanges.len())
            .finish_non_exhaustive()
    }
}

impl Observer {
    pub(crate) fn new(
        rules: Rules,
        max_sessions: usize,
        ids: Ids,
        find: Finder,
        metrics: Metrics,
        counts: Arc<Counts>,
    ) -> Self {
        Self {
            rules,
            exchanges: HashMap::new(),
            sessions: Sessions::new(max_sessions),
            endpoints: HashMap::new(),
            catalogues: HashMap::new(),
            known_catalogues: std::collections::HashSet::new(),
            chains: HashMap::new(),
            ids,
            find,
            metrics,
            counts,
            out: Batch::default(),
            pieces: Vec::new(),
        }
    }

    pub(crate) fn reload(&mut self, rules: Rules) {
        self.rules = rules;
    }

    /// What was made since the last time.
    pub(crate) fn take(&mut self) -> Batch {
        self.counts
            .sessions
            .store(self.sessions.len() as u64, Relaxed);
        self.counts
            .sessions_evicted
            .store(self.sessions.evicted, Relaxed);
        self.counts
            .exchanges_open
            .store(self.exchanges.len() as u64, Relaxed);
        std::mem::take(&mut self.out)
    }

    /// Takes one event. A fault of ours costs the exchange it happened on, and is counted.
    pub(crate) fn handle(&mut self, event: Event) {
        let id = match &event {
            Event::Request(id, _)
            | Event::RequestChunk(id, _)
            | Event::RequestEnd(id, _)
            | Event::Response(id, _)
            | Event::ResponseChunk(id, ..)
            | Event::Lost(id, _)
            | Event::End(id, ..)
            | Event::Flush(id, _) => *id,
        };
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.event(event)));
        if caught.is_err() {
            self.exchanges.remove(&id);
            self.counts.faults.fetch_add(1, Relaxed);
            tracing::error!(exchange = %id, "an exchange was not recorded: the observer has a fault; please report it");
        }
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Request(id, head) => self.request(id, head),
            Event::RequestChunk(id, chunk) => self.with(id, |observer, exchange| {
                let mut pieces = std::mem::take(&mut observer.pieces);
                exchange.up.push(exchange.request.at, &chunk, &mut pieces);
                observer.pieces = pieces;
            }),
            Event::RequestEnd(id, end) => {
                self.with(id, |observer, exchange| observer.request_end(exchange, end))
            }
            Event::Response(id, head) => {
                self.with(id, |observer, exchange| observer.response(exchange, head))
            }
            Event::ResponseChunk(id, at, chunk) => self.with(id, |observer, exchange| {
                exchange.first_byte.get_or_insert(at);
                let Some(body) = &mut exchange.down else {
                    return;
                };
                let mut pieces = std::mem::take(&mut observer.pieces);
                body.push(at, &chunk, &mut pieces);
                for piece in pieces.drain(..) {
                    observer.down(exchange, piece);
                }
                observer.pieces = pieces;
            }),
            Event::Lost(id, side) => self.with(id, |_, exchange| match side {
                Side::Request => exchange.up.lost = true,
                Side::Response => {
                    if let Some(body) = &mut exchange.down {
                        body.lost = true;
                    }
                }
            }),
            Event::End(id, at, end) => {
                if let Some(mut exchange) = self.exchanges.remove(&id) {
                    self.end(&mut exchange, at, end);
                }
            }
            Event::Flush(id, done) => {
                self.with(id, |observer, exchange| {
                    let piece = exchange
                        .down
                        .as_mut()
                        .and_then(|body| body.conclude_early(Instant::now()));
                    if let Some(piece) = piece {
                        observer.down(exchange, piece);
                    }
                    observer.show_decided(exchange);
                });
                // The other side may have stopped waiting; that is its business.
                self.out
                    .committed
                    .push(Box::new(move || done.send(()).unwrap_or(())));
            }
        }
    }

    fn with(&mut self, id: Uuid, work: impl FnOnce(&mut Self, &mut Exchange)) {
        if let Some(mut exchange) = self.exchanges.remove(&id) {
            work(self, &mut exchange);
            self.exchanges.insert(id, exchange);
        }
    }

    fn request(&mut self, id: Uuid, head: Box<RequestHead>) {
        if self.exchanges.len() >= MAX_EXCHANGES
            && let Some(oldest) = self.exchanges.keys().min().copied()
            && let Some(mut oldest) = self.exchanges.remove(&oldest)
        {
            self.counts.exchanges_evicted.fetch_add(1, Relaxed);
            self.end(&mut oldest, Instant::now(), BodyEnd::Cancelled);
        }
        let facts = head::RequestFacts::of(&head.headers);
        let up = Body::new(
            facts.content_type,
            facts.content_encoding,
            self.rules.max_message_bytes,
        );
        let identity = self.rules.identity(&head.headers);
        let exchange = Box::new(Exchange {
            id,
            identity,
            up,
            response: None,
            down: None,
            first_byte: None,
            calls: Vec::new(),
            asked: Vec::new(),
            introduced: None,
            session: None,
            resumable: false,
            spoke: false,
            answered: false,
            plain: None,
            unreadable_answer: false,
            endpoint: None,
            request: head,
        });
        self.exchanges.insert(id, exchange);
    }

    fn request_end(&mut self, exchange: &mut Exchange, end: BodyEnd) {
        let mut pieces = std::mem::take(&mut self.pieces);
        let at = exchange.request.at;
        exchange
            .up
            .finish(at, end == BodyEnd::Complete, &mut pieces);
        for piece in pieces.drain(..) {
            if end == BodyEnd::Complete || piece.text.overflow.is_some() {
                self.up(exchange, piece);
            }
        }
        self.pieces = pieces;
    }

    fn response(&mut self, exchange: &mut Exchange, head: Box<ResponseHead>) {
        let content_type = head::value(&head.headers, "content-type");
        let encoding = head::value(&head.headers, "content-encoding");
        exchange.down = Some(Body::new(
            content_type,
            encoding,
            self.rules.max_message_bytes,
        ));
        exchange.first_byte = Some(head.at);
        exchange.response = Some(head);
        self.settle_session(exchange);
        let first_byte = exchange.first_byte;
        let status = exchange.status();
        for call in &mut exchange.calls {
            call.record.first_byte_us = first_byte.map(|at| micros(at, call.started));
            call.record.http_status = status;
        }
        if exchange.is_get() && head::value(&exchange.request.headers, "last-event-id").is_some() {
            exchange.resumable = true;
        }
    }

    /// Time passes: calls that stay open become visible, silent sessions leave memory.
    pub(crate) fn tick(&mut self, now: Instant) {
        let mut shown = Vec::new();
        for exchange in self.exchanges.values_mut() {
            for call in &mut exchange.calls {
                if !call.shown && now.saturating_duration_since(call.started) >= SHOW_OPEN_AFTER {
                    call.shown = true;
                    shown.push(call.record.clone());
                }
            }
        }
        self.out
            .records
            .extend(shown.into_iter().map(|call| Record::Call(Box::new(call))));
        for active in self.sessions.expire(now, self.rules.session_idle) {
            self.give_up(active);
        }
        if self.endpoints.len() + self.chains.len() > 0 {
            let sessions = &mut self.sessions;
            self.endpoints.retain(|_, key| sessions.get(key).is_some());
            self.chains.retain(|_, key| sessions.get(key).is_some());
        }
    }

    /// The end: what is open is recorded as it is.
    pub(crate) fn finish(&mut self, now: Instant) {
        let open: Vec<Box<Exchange>> = self
            .exchanges
            .drain()
            .map(|(_, exchange)| exchange)
            .collect();
        for mut exchange in open {
            for mut call in exchange.calls.drain(..) {
                call.finished(now);
                call.record.duration_us = None;
                self.store(call);
            }
        }
        for active in self.sessions.drain() {
            self.give_up(active);
        }
    }

    /// A session leaves memory: what still waits in it never got its answer.
    fn give_up(&mut self, mut active: Active) {
        for mut call in active
            .more
            .take()
            .map(|more| more.waiting)
            .unwrap_or_default()
        {
            call.decide(callbox_store::Outcome::Abandoned);
            self.store(call);
        }
    }

    /// Hands a call to the log; concluded ones are counted.
    fn store(&mut self, call: Box<OpenCall>) {
        let OpenCall {
            record, decided, ..
        } = *call;
        if decided {
            self.metrics.call(callbox_telemetry::metrics::CallFacts {
                upstream: &record.session.upstream,
                tool: &record.tool,
                outcome: record.outcome.as_str(),
                duration: record.duration_us.map(Duration::from_micros),
                known_tool: record.result.is_some(),
            });
        }
        self.count_capture(&record);
        self.out.records.push(Record::Call(Box::new(record)));
    }

    fn count_capture(&self, record: &callbox_store::Call) {
        for state in [record.capture.request, record.capture.response] {
            match state {
                callbox_store::Capture::Full => {}
                callbox_store::Capture::Truncated => {
                    drop(self.counts.truncated.fetch_add(1, Relaxed))
                }
                callbox_store::Capture::Undecoded => {
                    drop(self.counts.undecoded.fetch_add(1, Relaxed))
                }
                callbox_store::Capture::Dropped => drop(self.counts.dropped.fetch_add(1, Relaxed)),
            }
        }
    }

    /// Before a response may go on: calls that its frames decided are put into the log as they are.
    fn show_decided(&mut self, exchange: &mut Exchange) {
        for call in &mut exchange.calls {
            if call.decided {
                call.shown = true;
                self.out
                    .records
                    .push(Record::Call(Box::new(call.record.clone())));
            }
        }
    }
}

fn micros(at: Instant, since: Instant) -> u64 {
    u64::try_from(at.saturating_duration_since(since).as_micros()).unwrap_or(u64::MAX)
}
