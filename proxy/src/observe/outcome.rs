//! The end of an exchange: what it means for the calls that were on it.

use std::time::Instant;

use callbox_store::{Capture, End, Outcome};
use callbox_wire::redact::Place;

use super::Observer;
use super::exchange::Exchange;
use super::micros;
use crate::tap::BodyEnd;

impl Observer {
    pub(super) fn end(&mut self, exchange: &mut Exchange, at: Instant, end: BodyEnd) {
        if let Some(mut body) = exchange.down.take() {
            let mut pieces = std::mem::take(&mut self.pieces);
            body.finish(at, end == BodyEnd::Complete, &mut pieces);
            for piece in pieces.drain(..) {
                // What was cut off is no answer: a text over the cap is told by its outline.
                if end == BodyEnd::Complete
                    || piece
                        .text
                        .overflow
                        .as_ref()
                        .is_some_and(|cut| cut.outline.complete)
                {
                    self.down(exchange, piece);
                }
            }
            self.pieces = pieces;
            exchange.down = Some(body);
        }
        if let Some(target) = &exchange.endpoint {
            self.endpoints.remove(target);
        }
        let fault = exchange.response.as_ref().and_then(|head| head.fault);
        let ended = match (end, fault) {
            (_, Some("head-timeout")) | (BodyEnd::Timeout, _) => End::ProxyTimeout,
            (_, Some("upstream-unreachable" | "upstream-lost")) => End::UpstreamLost,
            (BodyEnd::Complete, _) => End::Complete,
            (BodyEnd::Error, _) => End::UpstreamLost,
            (BodyEnd::Cancelled, _) => End::ClientGone,
        };
        let http = if exchange.calls.is_empty() {
            None
        } else {
            Some(self.rules.http(exchange))
        };
        let response_bytes = exchange.down.as_ref().map_or(0, |body| body.bytes);
        let calls = std::mem::take(&mut exchange.calls);
        let alone = calls.len() == 1;
        for mut call in calls {
            call.record.end = ended;
            call.record.http_status = exchange.status();
            call.record.response_bytes += response_bytes;
            call.record.first_byte_us =
                exchange.first_byte.map(|first| micros(first, call.started));
            if let Some(http) = &http {
                call.record.http = http.clone();
            }
            self.mark_capture(exchange, &mut call);
            if exchange.status() == Some(404)
                && alone
                && crate::observe::head::value(&exchange.request.headers, "mcp-session-id")
                    .is_some()
            {
                call.flag("session_lost");
            }
            let waits = call.interim || (call.task.is_some() && !call.decided);
            if !waits && !call.decided {
                let elsewhere = self.decide_without_answer(exchange, &mut call, ended, fault);
                if elsewhere && let Some(key) = exchange.session {
                    self.keep_waiting(key, call);
                    continue;
                }
            }
            if waits && let Some(key) = exchange.session {
                self.keep_waiting(key, call);
                continue;
            }
            if call.record.duration_us.is_none() {
                call.finished(at);
            }
            let may_come_late =
                call.record.outcome == Outcome::Cancelled && call.record.result.is_none();
            let resumable = call.record.outcome == Outcome::Aborted && exchange.resumable;
            if (may_come_late || resumable)
                && let Some(key) = exchange.session
            {
                let late = super::calls::OpenCall {
                    record: call.record.clone(),
                    started: call.started,
                    rpc_id: call.rpc_id.clone(),
                    progress_token: call.progress_token.clone(),
                    fingerprint: call.fingerprint,
                    request_state: None,
                    interim: false,
                    task: None,
                    decided: true,
                    shown: true,
                };
                if let Some(active) = self.sessions.get(&key) {
                    drop(active.wait_for(Box::new(late)));
                }
            }
            self.store(call);
        }
    }

    fn mark_capture(&self, exchange: &Exchange, call: &mut super::calls::OpenCall) {
        if let Some(body) = &exchange.down {
            if body.lost {
                call.captured(
                    false,
                    Capture::Dropped,
                    Some("the recorder's queue was full".to_owned()),
                );
            } else if let Some(why) = &body.undecoded {
                call.captured(false, Capture::Undecoded, Some(why.clone()));
                call.flag("undecoded");
            }
            if body.incomplete_event {
                call.flag("incomplete_event");
            }
        }
    }

    /// No JSON-RPC answer was seen on this exchange. True when it may still come on another one.
    fn decide_without_answer(
        &mut self,
        exchange: &Exchange,
        call: &mut super::calls::OpenCall,
        ended: End,
        fault: Option<&'static str>,
    ) -> bool {
        match ended {
            End::ProxyTimeout => call.decide(Outcome::Timeout),
            End::UpstreamLost => call.decide(Outcome::Lost),
            End::ClientGone => call.decide(Outcome::Aborted),
            End::Complete | End::Open => {
                let success = exchange
                    .response
                    .as_ref()
                    .is_some_and(|head| head.status.is_success());
                let undecoded = exchange
                    .down
                    .as_ref()
                    .is_some_and(|body| body.undecoded.is_some() || body.lost);
                let streamed =
                    exchange.down.as_ref().is_some_and(|body| body.bytes > 0) && exchange.resumable;
                let acknowledged = exchange.status() == Some(202)
                    || self.endpoints.contains_key(&exchange.request.target);
                if success && (undecoded || exchange.unreadable_answer) {
                    call.record.error = exchange.plain.clone();
                    call.decide(Outcome::Unreadable);
                } else if success && (acknowledged || streamed) {
                    return true;
                } else {
                    call.record.error = exchange.plain.clone().or_else(|| {
                        let kind = fault?;
                        serde_json::value::to_raw_value(&format!("callbox: {kind}")).ok()
                    });
                    call.decide(Outcome::HttpError);
                }
                let _ = Place::Message;
            }
        }
        false
    }
}
