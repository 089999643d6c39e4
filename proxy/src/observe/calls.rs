//! Open requests of clients: the table they wait in, and a call while it is not concluded.

use std::time::Instant;

use callbox_store::{Call, CallEvent, Outcome};
use callbox_wire::mcp::Method;
use callbox_wire::rpc::RequestId;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::bounded::{DigestMap, Key};
use super::link::Asks;
use super::rules::{MAX_NAME, clipped};
use super::sessions::Seat;

/// Number of an open request, never used twice.
pub(super) type RequestNo = u64;

/// Events of an answer that are listed; later ones are counted.
const MAX_EVENTS: usize = 1000;

/// A request of a client that may still be answered.
#[derive(Debug)]
pub(super) struct Request {
    /// None for `null`.
    pub(super) id: Option<RequestId>,
    /// None while the handshake that it is has no session.
    pub(super) seat: Option<Seat>,
    /// The exchange that carried it.
    pub(super) exchange: Uuid,
    /// That exchange has not ended.
    pub(super) live: bool,
    /// An answer was read.
    pub(super) answered: bool,
    pub(super) since: Instant,
    /// Its place among the open requests of its session.
    pub(super) place: u32,
    pub(super) what: What,
}

/// What was asked.
#[derive(Debug)]
pub(super) enum What {
    Call(Box<OpenCall>),
    Other(Box<Other>),
}

impl Request {
    pub(super) fn call(&mut self) -> Option<&mut OpenCall> {
        match &mut self.what {
            What::Call(call) => Some(call),
            What::Other(_) => None,
        }
    }

    /// Whether a response with this id answers it.
    pub(super) fn has_id(&self, id: &RequestId) -> bool {
        self.id.as_ref() == Some(id)
    }
}

/// Any other request.
#[derive(Debug)]
pub(super) struct Other {
    pub(super) kind: Method,
    pub(super) method: Box<str>,
    pub(super) role: Role,
}

/// What its answer is good for.
#[derive(Debug)]
pub(super) enum Role {
    Plain,
    /// `initialize`: how the client introduced itself.
    Initialize(Option<callbox_store::Client>),
    /// `tools/list`: pages before this one; none when they are not known.
    List(Option<Vec<Box<RawValue>>>),
    /// `tasks/*`: the call that became the task.
    Task(Option<RequestNo>),
}

/// What a call waits for.
#[derive(Debug, Default)]
pub(super) enum Wait {
    #[default]
    Answer,
    /// A task to end.
    Task(Key),
    /// A further leg.
    Input(Box<Asks>),
}

/// A call that is not concluded, or lingers because something may still come.
#[derive(Debug)]
pub(super) struct OpenCall {
    pub(super) record: Call,
    pub(super) principal: Option<Key>,
    pub(super) modern: bool,
    pub(super) started: Instant,
    pub(super) progress: Option<RequestId>,
    /// Hash of the arguments as sent.
    pub(super) arguments: u64,
    /// The outcome stands; only facts around it may still change.
    pub(super) decided: bool,
    pub(super) wait: Wait,
    /// In the log already.
    pub(super) shown: bool,
    /// Changed since.
    pub(super) changed: bool,
    /// In the metrics already.
    pub(super) counted: bool,
    /// Concluded, but kept until then: a resume, a late or a repeated answer may come.
    pub(super) lingers: Option<Instant>,
    /// Last sign of life.
    pub(super) touched: Instant,
    /// Its stream can be resumed: the last event id seen on it.
    pub(super) last_event: Option<Box<str>>,
    /// State of its task as last told.
    pub(super) task: Option<callbox_wire::mcp::TaskStatus>,
    pub(super) weight: usize,
}

impl OpenCall {
    /// Adds a flag once.
    pub(super) fn flag(&mut self, flag: &str) {
        self.changed |= set_flag(&mut self.record.flags, flag);
    }

    /// Fixes the outcome, unless it is.
    pub(super) fn decide(&mut self, outcome: Outcome) {
        if !self.decided {
            self.record.outcome = outcome;
            self.decided = outcome != Outcome::Pending;
            self.changed = true;
        }
    }

    /// Lists an event of its answer.
    pub(super) fn event(&mut self, at: Instant, kind: &str) {
        self.touched = at;
        if self.record.events.len() >= MAX_EVENTS {
            self.flag("events_cut");
            return;
        }
        self.changed = true;
        self.record.events.push(CallEvent {
            offset_ms: micros(at, self.started) as f64 / 1000.0,
            kind: clipped(kind, MAX_NAME),
        });
    }

    /// Microseconds since the call began.
    pub(super) fn since(&self, at: Instant) -> u64 {
        micros(at, self.started)
    }

    /// Whether something unread may still belong to it.
    pub(super) fn waits(&self) -> bool {
        !self.decided
    }

    /// Bytes of payload it holds.
    pub(super) fn payload(&self) -> usize {
        let size = |json: &Option<Box<RawValue>>| json.as_ref().map_or(0, |json| json.get().len());
        size(&self.record.arguments) + size(&self.record.result) + size(&self.record.error)
    }
}

/// Adds a flag once; whether it is new.
pub(super) fn set_flag(flags: &mut Vec<String>, flag: &str) -> bool {
    let new = !flags.iter().any(|known| known == flag);
    if new {
        flags.push(flag.to_owned());
    }
    new
}

/// Microseconds between two moments.
pub(super) fn micros(at: Instant, since: Instant) -> u64 {
    u64::try_from(at.saturating_duration_since(since).as_micros()).unwrap_or(u64::MAX)
}

/// All open requests.
#[derive(Debug, Default)]
pub(super) struct Requests {
    next: RequestNo,
    all: DigestMap<RequestNo, Request>,
    /// Payload bytes of all calls in here.
    pub(super) bytes: usize,
}

impl Requests {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn add(&mut self, request: Request) -> RequestNo {
        self.next += 1;
        if let What::Call(call) = &request.what {
            self.bytes += call.weight;
        }
        self.all.insert(self.next, request);
        self.next
    }

    /// The number that the next request gets.
    pub(super) fn next_no(&self) -> RequestNo {
        self.next + 1
    }

    pub(super) fn get(&mut self, no: RequestNo) -> Option<&mut Request> {
        self.all.get_mut(&no)
    }

    pub(super) fn call(&mut self, no: RequestNo) -> Option<&mut OpenCall> {
        self.get(no)?.call()
    }

    pub(super) fn take(&mut self, no: RequestNo) -> Option<Request> {
        let request = self.all.remove(&no)?;
        if let What::Call(call) = &request.what {
            self.bytes = self.bytes.saturating_sub(call.weight);
        }
        Some(request)
    }

    /// Accounts for payload that a call took on or gave up.
    pub(super) fn weigh(&mut self, no: RequestNo) {
        let Some(call) = self.all.get_mut(&no).and_then(Request::call) else {
            return;
        };
        let (before, now) = (call.weight, call.payload());
        call.weight = now;
        self.bytes = (self.bytes + now).saturating_sub(before);
    }

    /// All numbers, oldest first, of those that `which` picks.
    pub(super) fn pick(&self, mut which: impl FnMut(&Request) -> bool) -> Vec<RequestNo> {
        let mut picked: Vec<_> = self
            .all
            .iter()
            .filter(|(_, request)| which(request))
            .map(|(no, _)| *no)
            .collect();
        picked.sort_unstable();
        picked
    }
}
