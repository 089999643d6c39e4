//! Exchanges end, time passes: calls are concluded, kept for what may still come, or given up.

use std::time::{Duration, Instant};

use callbox_store::{Capture, Direction, End, Outcome, SessionSource};
use callbox_wire::mcp::TaskStatus;
use http::StatusCode;

use super::body::Text;
use super::bounded::Key;
use super::calls::{OpenCall, Request, RequestNo, Wait, What};
use super::core::Core;
use super::exchange::{Exchange, Kind};
use super::head::value;
use super::link::Scope;
use super::messages::Note;
use super::outcome::{self, Unanswered, unanswered};
use super::rules::over_cap;
use crate::tap::BodyEnd;

/// A call open for longer is put into the log as it is.
const SHOW_OPEN_AFTER: Duration = Duration::from_secs(1);
/// How long a broken call is kept for a resume, or for the word that the client cancelled it.
const LINGER: Duration = Duration::from_mins(1);
/// How long an answered one is kept for a repeated answer on another exchange.
const LINGER_ANSWERED: Duration = Duration::from_secs(10);
/// Requests in the tables at most.
const MAX_REQUESTS: usize = 100_000;

/// The end of an exchange as its calls see it.
#[derive(Clone, Copy)]
struct Ending<'a> {
    end: End,
    at: Instant,
    plain: Option<&'a Text>,
}

impl Core {
    /// The exchange is over. What it carried is concluded, or waits without it.
    pub(super) fn end(&mut self, exchange: &mut Exchange, at: Instant, body_end: BodyEnd) {
        if !exchange.read {
            self.read_request(exchange, false);
            self.note_response(exchange);
        }
        self.take_early(exchange);
        let mut plain = None;
        if let Some(down) = &mut exchange.down {
            let mut events = Vec::new();
            let whole = body_end == BodyEnd::Complete;
            let (text, begun) = down.body.finish(whole, &mut self.budget, &mut events);
            down.begun = begun;
            if exchange.kind != Kind::Plain {
                for event in events {
                    self.read_event(exchange, event, at);
                }
                if !text.is_blank() {
                    plain = self.read_text(exchange, text, at);
                }
            }
        }
        if exchange.kind == Kind::Plain {
            return;
        }
        let fault = exchange.down.as_ref().and_then(|down| down.head.fault);
        let ending = Ending {
            end: outcome::end(body_end, fault),
            at,
            plain: plain.as_ref(),
        };
        if exchange.seat.is_none() {
            exchange.seat = Some(self.late_seat(exchange, None, None));
        }
        self.release(exchange);
        for no in std::mem::take(&mut exchange.requests) {
            self.settle(exchange, no, ending);
        }
        for no in std::mem::take(&mut exchange.adopted) {
            self.settle_adopted(no, ending);
        }
        self.note_http(exchange, ending);
        self.end_of_session(exchange, ending);
        if self.requests.len() > MAX_REQUESTS {
            self.evict();
        }
    }

    /// What overtook the request is read now that the request was.
    pub(super) fn take_early(&mut self, exchange: &mut Exchange) {
        let mut events = Vec::new();
        for (at, chunk) in std::mem::take(&mut exchange.early) {
            self.read_chunk(exchange, at, chunk, &mut events);
        }
    }

    fn settle(&mut self, exchange: &mut Exchange, no: RequestNo, ending: Ending<'_>) {
        let Some(request) = self.requests.get(no) else {
            return;
        };
        request.live = false;
        let waits = self.may_come(exchange, no, ending.end);
        let Some(request) = self.requests.get(no) else {
            return;
        };
        let answered = request.answered;
        if let What::Other(_) = &request.what {
            if answered || !waits {
                drop(self.close(no));
            }
            return;
        }
        let batch = exchange.batch;
        let Self {
            requests, rules, ..
        } = self;
        let Some(call) = requests.call(no) else {
            return;
        };
        call.changed = true;
        call.record.end = ending.end;
        if let Some(down) = &exchange.down {
            if !batch || !answered {
                call.record.response_bytes += down.body.bytes;
            }
            call.last_event.clone_from(&down.last_event);
            captured(call, exchange, answered);
            if down.begun.is_some() {
                call.flag("incomplete_event");
            }
            if down.garbled {
                call.flag("framing_error");
            }
            if !answered && call.record.first_byte_us.is_none() {
                call.record.first_byte_us = down
                    .first
                    .or(Some(down.head.at))
                    .map(|first| call.since(first));
            }
        }
        if !answered && !call.decided {
            let down = exchange.down.as_ref();
            let outcome = unanswered(Unanswered {
                end: ending.end,
                status: down.map(|down| down.head.status.as_u16()),
                fault: down.and_then(|down| down.head.fault),
                unread: down.is_some_and(|down| {
                    down.garbled || down.body.lost || down.body.undecoded.is_some()
                }),
                may_come: waits,
                accepted: !exchange.modern
                    && down.is_some_and(|down| down.head.status == StatusCode::ACCEPTED),
            });
            call.decide(outcome);
            if call.decided {
                call.record.duration_us = Some(call.since(ending.at));
                if let Some(text) = ending.plain {
                    call.record.error = rules.plain(text);
                    if let Some(overflow) = text.overflow() {
                        call.record.capture.response = Capture::Truncated;
                        call.record.capture.reason =
                            Some(over_cap(text.bytes().len(), text.len(), overflow));
                    }
                }
                if outcome == Outcome::HttpError && is_session_gone(exchange) {
                    call.flag("session_lost");
                }
            }
        }
        let pending_word = !matches!(call.wait, Wait::Answer);
        let decided = call.decided;
        requests.weigh(no);
        exchange.produced = true;
        if decided {
            self.conclude(no, ending.at);
        } else if pending_word {
            self.show(no);
        }
    }

    fn settle_adopted(&mut self, no: RequestNo, ending: Ending<'_>) {
        let Some(request) = self.requests.get(no) else {
            return;
        };
        request.live = false;
        if let Some(call) = request.call() {
            call.record.end = ending.end;
            call.changed = true;
        }
        self.conclude(no, ending.at);
    }

    /// Whether another exchange may still bring the answer.
    fn may_come(&mut self, exchange: &Exchange, no: RequestNo, end: End) -> bool {
        if exchange.modern || !exchange.is_success() || end != End::Complete {
            return false;
        }
        let Some(seat) = self
            .requests
            .get(no)
            .and_then(|request| request.seat.clone())
        else {
            return false;
        };
        let accepted = exchange.status() == Some(202);
        let resumable = exchange
            .down
            .as_ref()
            .is_some_and(|down| down.last_event.is_some());
        if seat.session.source != SessionSource::Protocol {
            return accepted || (exchange.is_stream() && resumable);
        }
        let by_header = value(&exchange.head.headers, "mcp-session-id").is_some();
        // The stream that announced the endpoint may be gone by now.
        (by_header && (exchange.is_stream() || accepted))
            || (!by_header && self.endpoints.peek(&seat.key).is_some())
    }

    /// A decided call: counted, and handed over unless something may still come for it.
    pub(super) fn conclude(&mut self, no: RequestNo, at: Instant) {
        self.count(no);
        let Some(request) = self.requests.get(no) else {
            return;
        };
        let answered = request.answered;
        let seat = request.seat.clone();
        let Some(call) = request.call() else { return };
        let broken = matches!(call.record.outcome, Outcome::Aborted | Outcome::Lost);
        let unanswered = call.record.outcome == Outcome::Cancelled && !answered;
        let resumed = answered && call.record.end != End::Complete && call.is_resumable();
        let lingers = !call.modern && (broken || unanswered || resumed);
        if let Some(seat) = &seat
            && matches!(
                call.record.outcome,
                Outcome::Aborted
                    | Outcome::Lost
                    | Outcome::Timeout
                    | Outcome::HttpError
                    | Outcome::Unreadable
            )
        {
            let scope = Scope {
                upstream: &call.record.session.upstream,
                principal: call.principal,
            };
            let key = scope.retry(
                &self.rules.redactor,
                seat,
                &call.record.tool,
                call.arguments,
            );
            self.links.failed(key, self.secs);
        }
        if lingers {
            call.lingers = Some(at + LINGER);
            self.show(no);
        } else {
            self.hand_over(no);
        }
    }

    /// The same for a call that was answered on another exchange than its own, where the answer may be repeated.
    pub(super) fn conclude_elsewhere(&mut self, no: RequestNo, at: Instant) {
        self.count(no);
        if let Some(call) = self.requests.call(no) {
            call.lingers = Some(at + LINGER_ANSWERED);
        }
        self.show(no);
    }

    fn hand_over(&mut self, no: RequestNo) {
        if let Some(Request {
            what: What::Call(call),
            ..
        }) = self.close(no)
        {
            self.store(*call);
        }
    }

    /// Nothing more is expected of a call that was not concluded.
    fn abandon(&mut self, no: RequestNo, outcome: Outcome) {
        if let Some(call) = self.requests.call(no).filter(|call| !call.decided) {
            let outcome = match call.task {
                Some(TaskStatus::Completed) => Outcome::Ok,
                Some(TaskStatus::Failed) => Outcome::ToolError,
                _ => outcome,
            };
            call.decide(outcome);
        }
        self.count(no);
        self.hand_over(no);
    }

    /// A DELETE, or the end of the stream that was the session.
    fn end_of_session(&mut self, exchange: &Exchange, ending: Ending<'_>) {
        let Some(seat) = &exchange.seat else { return };
        let deleted = exchange.kind == Kind::Delete && exchange.is_success();
        let hung_up = exchange.down.as_ref().is_some_and(|down| down.endpoint);
        if !deleted && !hung_up {
            return;
        }
        let outcome = match ending.end {
            _ if deleted => Outcome::Abandoned,
            End::ClientGone => Outcome::Aborted,
            End::UpstreamLost => Outcome::Lost,
            End::ProxyTimeout => Outcome::Timeout,
            End::Complete | End::Open => Outcome::Abandoned,
        };
        if hung_up {
            self.endpoints.remove(&seat.key);
        }
        for no in self.open_of(&seat.key) {
            let Some(request) = self.requests.get(no).filter(|request| !request.live) else {
                continue;
            };
            if let Some(call) = request.call().filter(|call| !call.decided) {
                call.record.duration_us = Some(call.since(ending.at));
                if hung_up {
                    call.record.end = ending.end;
                }
                call.changed = true;
            }
            self.abandon(no, outcome);
        }
        if deleted {
            self.sessions.remove(&seat.key);
        }
    }

    fn open_of(&mut self, key: &Key) -> Vec<RequestNo> {
        let mut open = self
            .sessions
            .peek(key)
            .map(|active| active.open.as_slice().to_vec())
            .unwrap_or_default();
        open.sort_unstable();
        open
    }

    /// Exchanges that say something without JSON-RPC: streams and their end, a session's DELETE, refusals.
    fn note_http(&mut self, exchange: &mut Exchange, ending: Ending<'_>) {
        let silent = exchange.down.as_ref().is_none_or(|down| down.messages == 0);
        let refused = exchange.kind == Kind::Messages && silent && !exchange.is_success();
        if exchange.kind == Kind::Messages && !refused {
            return;
        }
        let end = match ending.end {
            End::Complete => None,
            End::ClientGone => Some("client_gone"),
            End::UpstreamLost => Some("upstream_lost"),
            End::ProxyTimeout => Some("proxy_timeout"),
            End::Open => Some("open"),
        };
        let mut flags: Vec<String> = end.map(str::to_owned).into_iter().collect();
        if let Some(down) = &exchange.down {
            let mut flag = |is: bool, name: &str| {
                if is {
                    flags.push(name.to_owned());
                }
            };
            flag(down.begun.is_some(), "incomplete_event");
            flag(down.garbled && exchange.is_stream(), "framing_error");
            flag(down.body.undecoded.is_some(), "undecoded");
            flag(down.body.lost, "dropped");
            flag(
                exchange.kind != Kind::Messages && is_session_gone(exchange),
                "session_lost",
            );
        }
        let note = Note {
            direction: Direction::ServerToClient,
            kind: "http",
            method: Some(exchange.head.method.as_str().to_owned()),
            id: None,
            call: None,
            body: ending.plain.and_then(|text| self.rules.plain(text)),
            flags,
        };
        let seat = exchange.seat.clone();
        self.note(exchange, seat.as_ref(), ending.at, note);
    }

    /// Time passes.
    pub(super) fn tick(&mut self, now: Instant) {
        let idle = self.rules.session_idle;
        let (mut show, mut conclude, mut abandon, mut forget) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for no in self.requests.pick(|_| true) {
            let Some(request) = self.requests.get(no) else {
                continue;
            };
            let (live, since) = (request.live, request.since);
            match &request.what {
                What::Other(_) if !live && since + idle < now => forget.push(no),
                What::Other(_) => {}
                What::Call(call) => {
                    let unseen = call.changed || !call.shown;
                    if call.lingers.is_some_and(|until| until < now) {
                        conclude.push(no);
                    } else if !live && !call.decided && call.touched + idle < now {
                        abandon.push(no);
                    } else if (call.decided && unseen)
                        || (!call.shown && (!live || call.started + SHOW_OPEN_AFTER <= now))
                    {
                        show.push(no);
                    }
                }
            }
        }
        show.into_iter().for_each(|no| self.show(no));
        conclude.into_iter().for_each(|no| self.hand_over(no));
        abandon
            .into_iter()
            .for_each(|no| self.abandon(no, Outcome::Abandoned));
        forget.into_iter().for_each(|no| drop(self.close(no)));
        self.sessions.expire(self.secs);
        self.links.expire(self.secs);
    }

    /// What decided calls of an exchange say has to be in the log before its answer goes on.
    pub(super) fn show_decided(&mut self, exchange: &mut Exchange) {
        for no in exchange.requests.iter().chain(&exchange.adopted) {
            let request = self.requests.get(*no);
            if request.is_some_and(|request| {
                let answered = request.answered;
                request
                    .call()
                    .is_some_and(|call| (call.decided || answered) && (call.changed || !call.shown))
            }) {
                self.show(*no);
                exchange.produced = true;
            }
        }
    }

    /// The oldest calls that wait for something unlikely are given up, a quarter of them at once.
    pub(super) fn evict(&mut self) {
        let mut waiting = self.requests.pick(|request| !request.live);
        waiting.truncate(waiting.len().div_ceil(4));
        for no in waiting {
            self.counts
                .exchanges_evicted
                .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            match self
                .requests
                .get(no)
                .map(|request| matches!(request.what, What::Call(_)))
            {
                Some(true) => {
                    if let Some(call) = self.requests.call(no).filter(|call| !call.decided) {
                        call.flag("evicted");
                    }
                    self.abandon(no, Outcome::Abandoned);
                }
                _ => drop(self.close(no)),
            }
        }
    }

    /// The observer stops: what is open goes to the log as it is.
    pub(super) fn finish(&mut self) {
        for no in self
            .requests
            .pick(|request| matches!(request.what, What::Call(_)))
        {
            self.hand_over(no);
        }
    }
}

/// How much of the response the record holds, and why not all.
fn captured(call: &mut OpenCall, exchange: &Exchange, answered: bool) {
    let Some(down) = &exchange.down else { return };
    let capture = &mut call.record.capture;
    if let Some(why) = &down.body.undecoded
        && !down.body.lost
    {
        if !answered {
            capture.response = Capture::Undecoded;
            capture.reason = Some(why.clone());
            call.flag("undecoded");
        }
    } else if down.body.lost {
        capture.response = Capture::Dropped;
        capture.reason = Some("frames of the response were dropped".to_owned());
    }
}

/// A plain 404 to a request that names a session of the protocol.
fn is_session_gone(exchange: &Exchange) -> bool {
    !exchange.modern
        && exchange.status() == Some(404)
        && value(&exchange.head.headers, "mcp-session-id").is_some()
}
