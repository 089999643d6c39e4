//! The observer: turns what the tap saw into calls, messages, sessions and catalogues.
//!
//! Runs on one thread behind the tap. Pure apart from the look-up of sessions in the log: events and moments in, records
//! out. It may be slow, wrong or restarted without any effect on traffic. It must not wait for anything, and must not keep
//! more than its limits, whatever peers send.
//!
//! Reading order: `exchange` and `calls` (what is kept), `client` and `begin` (what clients send), `server` and `answer`
//! (what servers send), `settle` (how things end), `seat`, `sessions`, `link` (what belongs together).

#![allow(
    clippy::match_same_arms,
    clippy::struct_excessive_bools,
    clippy::box_collection,
    clippy::vec_box,
    clippy::needless_for_each,
    clippy::similar_names,
    clippy::assigning_clones,
    clippy::cast_precision_loss,
    reason = "arms follow the tables of the protocol; flags are independent facts; rare parts are boxed to keep sessions small; offsets in ms are far below 2^52 us"
)]

mod answer;
mod begin;
mod body;
mod bounded;
mod calls;
mod client;
mod core;
mod exchange;
mod head;
mod identity;
mod incoming;
mod link;
mod lists;
mod messages;
mod open;
mod outcome;
mod rules;
mod seat;
mod server;
mod sessions;
mod settle;
#[cfg(test)]
mod tests;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use bytes::Bytes;
use callbox_store::{Batch, Ids};
use callbox_telemetry::Metrics;
use callbox_wire::sse::SseEvent;
use uuid::Uuid;

use self::body::{Body, Content};
use self::bounded::DigestMap;
use self::core::Core;
use self::exchange::{Exchange, Kind};
pub(crate) use self::rules::{Rules, RulesError};
pub(crate) use self::sessions::Finder;
use crate::recorder::Counts;
use crate::tap::{BodyEnd, Event, ExchangeId, RequestHead, Side};

/// Exchanges under way at most; over it new ones are not recorded, and counted.
const MAX_EXCHANGES: usize = 100_000;

/// State of the observer.
#[derive(Debug)]
pub(crate) struct Observer {
    exchanges: DigestMap<Uuid, Box<Exchange>>,
    core: Core,
    events: Vec<SseEvent>,
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
            exchanges: DigestMap::default(),
            core: Core::new(
                rules,
                max_sessions,
                ids,
                find,
                metrics,
                counts,
                Instant::now(),
            ),
            events: Vec::new(),
        }
    }

    /// New rules from the next event on.
    pub(crate) fn reload(&mut self, rules: Rules) {
        self.core.reload(rules);
    }

    /// What was made since the last time.
    pub(crate) fn take(&mut self) -> Batch {
        let counts = &self.core.counts;
        counts
            .sessions
            .store(self.core.sessions.len() as u64, Relaxed);
        counts
            .sessions_evicted
            .store(self.core.sessions.evicted, Relaxed);
        counts
            .exchanges_open
            .store(self.exchanges.len() as u64, Relaxed);
        let room = self.core.out.records.len();
        std::mem::replace(
            &mut self.core.out,
            Batch {
                records: Vec::with_capacity(room),
                committed: Vec::new(),
            },
        )
    }

    /// Takes one event. A fault of the observer costs the exchange it happened on, and is counted.
    pub(crate) fn handle(&mut self, event: Event) {
        let id = exchange_of(&event);
        if catch_unwind(AssertUnwindSafe(|| self.event(event))).is_err() {
            drop(self.exchanges.remove(&id));
            for no in self.core.requests.pick(|request| request.exchange == id) {
                drop(self.core.close(no));
            }
            self.core.counts.faults.fetch_add(1, Relaxed);
            tracing::error!(exchange = %id, "an exchange was not recorded: the observer has a fault; please report it");
        }
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Request(id, head) => self.begin(id, head),
            Event::RequestChunk(id, chunk) => {
                if let Some(exchange) = self.exchanges.get_mut(&id)
                    && !exchange.read
                {
                    exchange
                        .up
                        .push(chunk, &mut self.core.budget, &mut self.events);
                }
            }
            Event::RequestEnd(id, end) => {
                if let Some(exchange) = self.exchanges.get_mut(&id)
                    && !exchange.read
                {
                    self.core.read_request(exchange, end == BodyEnd::Complete);
                    if exchange.down.is_some() {
                        self.core.note_response(exchange);
                        self.core.take_early(exchange);
                    }
                }
            }
            Event::Response(id, head) => {
                self.core.at(head.at);
                if let Some(exchange) = self.exchanges.get_mut(&id) {
                    self.core.read_head(exchange, head);
                }
            }
            Event::ResponseChunk(id, at, chunk) => self.chunk(id, at, chunk),
            Event::Lost(id, side) => {
                if let Some(exchange) = self.exchanges.get_mut(&id) {
                    let budget = &mut self.core.budget;
                    match (side, &mut exchange.down) {
                        (Side::Request, _) => exchange.up.lose(budget),
                        (Side::Response, Some(down)) => down.body.lose(budget),
                        (Side::Response, None) => {}
                    }
                }
            }
            Event::End(id, at, end) => {
                self.core.at(at);
                if let Some(mut exchange) = self.exchanges.remove(&id) {
                    self.core.end(&mut exchange, at, end);
                }
            }
            Event::Flush(id, done) => {
                let mut made = true;
                if let Some(exchange) = self.exchanges.get_mut(&id) {
                    self.core.show_decided(exchange);
                    made = exchange.produced;
                }
                // Nobody may be waiting any more; that is the other side's business.
                let done = move || done.send(()).unwrap_or(());
                if made {
                    self.core.out.committed.push(Box::new(done));
                } else {
                    done();
                }
            }
        }
    }

    fn chunk(&mut self, id: ExchangeId, at: Instant, chunk: Bytes) {
        if let Some(exchange) = self.exchanges.get_mut(&id) {
            self.core.read_chunk(exchange, at, chunk, &mut self.events);
        }
    }

    fn begin(&mut self, id: ExchangeId, head: Box<RequestHead>) {
        if self.exchanges.len() >= MAX_EXCHANGES {
            self.core.counts.exchanges_evicted.fetch_add(1, Relaxed);
            return;
        }
        self.core.at(head.at);
        let coding = head::content_encoding(&head.headers).map(Into::into);
        let up = Body::new(Content::Json, coding, self.core.rules.max_message_bytes);
        let exchange = Exchange {
            id,
            head: Arc::from(head),
            identity: identity::Identity::default(),
            up,
            read: false,
            down: None,
            seat: None,
            requests: Vec::new(),
            adopted: Vec::new(),
            held: Vec::new(),
            early: Vec::new(),
            early_bytes: 0,
            kind: Kind::Plain,
            modern: false,
            batch: false,
            produced: false,
        };
        self.exchanges.insert(id, Box::new(exchange));
    }

    /// Time passes: calls that stay open become visible, silent sessions leave memory.
    pub(crate) fn tick(&mut self, now: Instant) {
        self.core.at(now);
        self.core.tick(now);
    }

    /// The end: what is open is recorded as it is.
    pub(crate) fn finish(&mut self, now: Instant) {
        self.core.at(now);
        for (_, mut exchange) in self.exchanges.drain() {
            if !exchange.held.is_empty() {
                exchange.seat = Some(self.core.late_seat(&exchange, None, None));
                self.core.release(&mut exchange);
            }
        }
        self.core.finish();
    }
}

fn exchange_of(event: &Event) -> ExchangeId {
    match event {
        Event::Request(id, _)
        | Event::RequestChunk(id, _)
        | Event::RequestEnd(id, _)
        | Event::Response(id, _)
        | Event::ResponseChunk(id, ..)
        | Event::Lost(id, _)
        | Event::End(id, ..)
        | Event::Flush(id, _) => *id,
    }
}
