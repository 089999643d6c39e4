//! A logical `tools/call` under way, and how it becomes a record.

use std::sync::Arc;
use std::time::Instant;

use callbox_store::{Call, CallEvent, Capture, Captured, End, Http, Outcome, RawJson, Session};
use callbox_wire::rpc::RequestId;
use uuid::Uuid;

/// Events kept per call; more are counted in the flag `events_capped`.
const MAX_EVENTS: usize = 1000;

/// A call from its request on. Payloads are redacted already; what correlation still needs is kept beside them.
#[derive(Debug)]
pub(super) struct OpenCall {
    pub(super) record: Call,
    pub(super) started: Instant,
    /// As sent, for matching.
    pub(super) rpc_id: RequestId,
    pub(super) progress_token: Option<RequestId>,
    /// Digest of tool and arguments as sent, to recognise a further leg or a retry.
    pub(super) fingerprint: [u8; 16],
    /// `requestState` of the interim result, as a digest.
    pub(super) request_state: Option<[u8; 16]>,
    /// It got an interim result and waits for its next leg.
    pub(super) interim: bool,
    pub(super) task: Option<Box<str>>,
    /// The answer is in, or it is decided otherwise.
    pub(super) decided: bool,
    /// It was handed to the store as open.
    pub(super) shown: bool,
}

impl OpenCall {
    pub(super) fn session(&self) -> &Arc<Session> {
        &self.record.session
    }

    pub(super) fn flag(&mut self, flag: &str) {
        if !self.record.flags.iter().any(|known| known == flag) {
            self.record.flags.push(flag.to_owned());
        }
    }

    pub(super) fn event(&mut self, at: Instant, kind: &str) {
        if self.record.events.len() >= MAX_EVENTS {
            self.flag("events_capped");
            return;
        }
        let offset = at.saturating_duration_since(self.started);
        self.record.events.push(CallEvent {
            offset_ms: offset.as_secs_f64() * 1000.0,
            kind: kind.to_owned(),
        });
    }

    /// The answer came. What was decided before is not changed, but a late result is noted.
    pub(super) fn answer(
        &mut self,
        outcome: Outcome,
        result: Option<RawJson>,
        error: Option<RawJson>,
    ) {
        if self.decided {
            let cancelled = self.record.outcome == Outcome::Cancelled;
            self.flag(if cancelled {
                "late_result"
            } else {
                "duplicate_response"
            });
            return;
        }
        self.record.outcome = outcome;
        self.record.result = result;
        self.record.error = error;
        self.decided = true;
    }

    /// Decides it by how things ended, unless an answer did.
    pub(super) fn decide(&mut self, outcome: Outcome) {
        if !self.decided {
            self.record.outcome = outcome;
            self.decided = true;
        }
    }

    pub(super) fn finished(&mut self, at: Instant) {
        let took = at.saturating_duration_since(self.started);
        self.record.duration_us = Some(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }

    pub(super) fn captured(&mut self, request: bool, state: Capture, reason: Option<String>) {
        let place = if request {
            &mut self.record.capture.request
        } else {
            &mut self.record.capture.response
        };
        *place = state;
        if let Some(reason) = reason
            && self.record.capture.reason.is_none()
        {
            self.record.capture.reason = Some(reason);
        }
    }
}

/// A record with nothing known yet but where it is.
pub(super) fn blank(
    id: Uuid,
    exchange: Uuid,
    session: Arc<Session>,
    jsonrpc_id: RawJson,
    tool: String,
) -> Call {
    Call {
        id,
        exchange_id: exchange,
        request_id: None,
        session,
        seq: 0,
        protocol_version: None,
        trace_id: None,
        span_id: None,
        jsonrpc_id,
        tool,
        arguments: None,
        outcome: Outcome::Pending,
        result: None,
        error: None,
        end: End::Open,
        http_status: None,
        started_at: 0,
        first_byte_us: None,
        duration_us: None,
        request_bytes: 0,
        response_bytes: 0,
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
