//! An answer reaches its request: a call's outcome, a handshake's session, a list's tools, a task's state.

use std::time::Instant;

use callbox_store::{Call, Capture, Client, Direction, End, Outcome, Record, SessionSource};
use callbox_wire::mcp::{Method, ResultFacts, TaskStatus};
use callbox_wire::redact::Place;
use callbox_wire::rpc::{ErrorFacts, IdField};
use serde_json::value::RawValue;

use super::calls::{OpenCall, RequestNo, Role, Wait, What};
use super::core::{Core, wall};
use super::exchange::Exchange;
use super::head::{RequestFacts, ResponseFacts};
use super::incoming::Incoming;
use super::link::Scope;
use super::rules::{Rules, over_cap};
use super::seat::Reading;
use super::sessions::{Origin, Seat};

/// What an answer says of a call.
enum Said {
    Concluded(Outcome),
    Interim,
    Task,
}

impl Core {
    /// A response has found its request.
    pub(super) fn answered(
        &mut self,
        exchange: &mut Exchange,
        no: RequestNo,
        message: &Incoming<'_>,
        at: Instant,
        own: bool,
    ) {
        let Some(request) = self.requests.get(no) else {
            return;
        };
        let repeated = std::mem::replace(&mut request.answered, true);
        let seat = request.seat.clone();
        let (method, call) = match &mut request.what {
            What::Call(call) => ("tools/call".to_owned(), Some(call.record.id)),
            What::Other(other) => (String::from(&*other.method), None),
        };
        if repeated {
            if let Some(call) = self.requests.call(no) {
                call.flag("duplicate_response");
            }
            let mut note = self.note_of(message, Direction::ServerToClient);
            (note.method, note.call) = (Some(method), call);
            note.flags.push("duplicate_response".to_owned());
            return self.note(exchange, seat.as_ref(), at, note);
        }
        if call.is_some() {
            self.call_answered(exchange, no, message, at, own);
        } else {
            self.other_answered(exchange, no, message, at, own);
        }
    }

    fn call_answered(
        &mut self,
        exchange: &mut Exchange,
        no: RequestNo,
        message: &Incoming<'_>,
        at: Instant,
        own: bool,
    ) {
        let lost = own && is_session_lost(exchange, message);
        let stream = exchange.is_stream();
        let first = exchange
            .down
            .as_ref()
            .and_then(|down| down.first)
            .filter(|_| own)
            .unwrap_or(at);
        let Self {
            requests, rules, ..
        } = self;
        let Some(request) = requests.get(no) else {
            return;
        };
        let seat = request.seat.clone();
        let live = request.live;
        let Some(call) = request.call() else { return };
        if stream {
            call.event(at, "response");
        }
        (call.touched, call.changed) = (at, true);
        // What broke off or was taken for lost has come after all, by a resume.
        if matches!(
            call.record.outcome,
            Outcome::Aborted | Outcome::Lost | Outcome::Pending
        ) {
            call.decided = false;
        }
        if call.decided {
            call.flag("late_result");
        }
        let facts = message.result.map(ResultFacts::of).unwrap_or_default();
        payload(rules, &mut call.record, message);
        let said = if lost {
            call.flag("session_lost");
            Said::Concluded(Outcome::HttpError)
        } else {
            said(message, &facts)
        };
        if call.record.first_byte_us.is_none() || call.record.legs > 1 {
            call.record.first_byte_us = Some(call.since(first));
        }
        let scope = Scope {
            upstream: &exchange.head.upstream,
            principal: call.principal,
        };
        match said {
            _ if call.decided => {}
            Said::Concluded(outcome) => {
                call.decide(outcome);
                call.record.duration_us = Some(call.since(at));
            }
            Said::Interim => {
                let asks = scope.asks(
                    &rules.redactor,
                    facts.request_state.as_deref(),
                    &call.record.tool,
                    call.arguments,
                    facts.input_requests,
                );
                self.links.wait(&asks, no);
                call.wait = Wait::Input(Box::new(asks));
                call.record.outcome = Outcome::Pending;
            }
            Said::Task => {
                if let (Some(task), Some(seat)) = (&facts.task, &seat) {
                    let key = scope.task(&rules.redactor, seat, &task.id);
                    self.links.begin_task(key, no);
                    (call.wait, call.task) = (Wait::Task(key), task.status);
                }
                call.record.outcome = Outcome::Pending;
            }
        }
        if !own || exchange.batch {
            call.record.response_bytes += message.bytes;
        }
        let (ended, decided) = (call.record.end, call.decided);
        self.requests.weigh(no);
        if own || live {
            return;
        }
        if ended == End::Complete {
            if decided {
                self.conclude_elsewhere(no, at);
            } else {
                self.show(no);
            }
            exchange.produced = true;
        } else {
            self.adopt(exchange, no);
        }
    }

    /// The call's last exchange is this one: its end will be the call's.
    fn adopt(&mut self, exchange: &mut Exchange, no: RequestNo) {
        let Some(request) = self.requests.get(no) else {
            return;
        };
        (request.live, request.exchange) = (true, exchange.id);
        if let Some(call) = request.call() {
            call.record.end = End::Open;
            call.lingers = None;
        }
        exchange.adopted.push(no);
    }

    fn other_answered(
        &mut self,
        exchange: &mut Exchange,
        no: RequestNo,
        message: &Incoming<'_>,
        at: Instant,
        own: bool,
    ) {
        let Some(request) = self.requests.get(no) else {
            return;
        };
        let (seat, live) = (request.seat.clone(), request.live);
        let What::Other(other) = &mut request.what else {
            return;
        };
        let (kind, method) = (other.kind, String::from(&*other.method));
        let role = match &other.role {
            // Repetitions and requests of the server on this exchange are still about that call.
            Role::Task(call) => Role::Task(*call),
            _ => std::mem::replace(&mut other.role, Role::Plain),
        };
        let mut note = self.note_of(message, Direction::ServerToClient);
        note.method = Some(method);
        let mut seat = seat.or_else(|| exchange.seat.clone());
        match role {
            Role::Plain => {}
            Role::Initialize(client) => {
                self.shake_hands(exchange, seat.as_ref(), client, message, own);
                seat = seat.or_else(|| exchange.seat.clone());
            }
            Role::List(pages) => {
                if let (Some(pages), Some(seat), Some(result)) = (pages, &seat, message.result) {
                    self.listed(exchange, seat, pages, &ResultFacts::of(result), at);
                }
            }
            Role::Task(Some(call)) => {
                note.call = self.requests.call(call).map(|call| call.record.id);
                if self.task_answered(exchange, call, kind, message, at) {
                    // It is the call's own result, and recorded there.
                    note.body = None;
                }
            }
            Role::Task(None) => {}
        }
        self.note(exchange, seat.as_ref(), at, note);
        if !live {
            drop(self.close(no));
        }
    }

    /// `initialize` was answered: the session begins, or learns who talks in it.
    fn shake_hands(
        &mut self,
        exchange: &mut Exchange,
        seat: Option<&Seat>,
        client: Option<Client>,
        message: &Incoming<'_>,
        own: bool,
    ) {
        let facts = message.result.map(ResultFacts::of).unwrap_or_default();
        let version = facts.protocol_version.as_deref();
        if let Some(seat) = seat {
            if let Some(active) = self
                .sessions
                .peek(&seat.key)
                .filter(|_| message.result.is_some())
            {
                active.introduce(client, version);
            }
            return;
        }
        if !own {
            return;
        }
        let header = exchange
            .down
            .as_ref()
            .and_then(|down| ResponseFacts::of(&down.head.headers).session);
        let header = header.filter(|_| exchange.is_success() && message.result.is_some());
        let seat = match header {
            Some(id) => {
                let upstream = &exchange.head.upstream;
                let key = self.session_key(upstream, id);
                let identity = &exchange.identity;
                let origin = Origin {
                    upstream,
                    identity,
                    client: client.as_ref(),
                    version,
                    at: exchange.head.at_wall,
                };
                // Also where the id is known: a server that counts its sessions has begun anew.
                self.sessions.begin(
                    key,
                    SessionSource::Protocol,
                    &origin,
                    &mut self.ids,
                    self.secs,
                )
            }
            None => self.late_seat(exchange, client, version),
        };
        exchange.seat = Some(seat);
        self.release(exchange);
    }

    /// The inferred session of an exchange that found no better one.
    pub(super) fn late_seat(
        &mut self,
        exchange: &Exchange,
        client: Option<Client>,
        version: Option<&str>,
    ) -> Seat {
        let head = exchange.head.clone();
        let reading = Reading {
            head: &head,
            facts: RequestFacts::default(),
            identity: &exchange.identity,
            modern: exchange.modern,
            version,
            assumed: false,
            batch: false,
            named: None,
        };
        self.inferred_seat(&reading, client)
    }

    fn listed(
        &mut self,
        exchange: &mut Exchange,
        seat: &Seat,
        mut pages: Vec<Box<RawValue>>,
        facts: &ResultFacts<'_>,
        at: Instant,
    ) {
        let Some(tools) = facts.tools else { return };
        pages.push(tools.to_owned());
        let upstream = exchange.head.upstream.clone();
        let scope = Scope {
            upstream: &upstream,
            principal: exchange.identity.principal,
        };
        if let Some(cursor) = &facts.next_cursor {
            return self
                .lists
                .keep(&self.rules, scope, &seat.key, cursor, pages, self.secs);
        }
        let metrics = self.metrics.clone();
        let named = |name: &str| metrics.tool_listed(&upstream, name);
        let (hash, record) = self.lists.assembled(
            &self.rules,
            scope,
            &pages,
            wall(exchange, at),
            self.secs,
            named,
        );
        self.enforce(seat, &hash);
        if let Some(record) = record {
            self.out.records.push(Record::Catalogue(Box::new(record)));
        }
    }

    /// An answer about a task; true when it is the call's own answer.
    fn task_answered(
        &mut self,
        exchange: &mut Exchange,
        no: RequestNo,
        kind: Method,
        message: &Incoming<'_>,
        at: Instant,
    ) -> bool {
        match kind {
            Method::TasksResult => {
                let Some(call) = self.requests.call(no) else {
                    return false;
                };
                payload(&self.rules, &mut call.record, message);
                let outcome = match message.cut {
                    _ if message.is_error() => Outcome::RpcError,
                    Some(overflow) if overflow.outline.is_error => Outcome::ToolError,
                    Some(_) => Outcome::Ok,
                    None if message
                        .result
                        .is_some_and(|result| ResultFacts::of(result).is_error) =>
                    {
                        Outcome::ToolError
                    }
                    None => Outcome::Ok,
                };
                self.task_concluded(exchange, no, outcome, message.bytes, at);
                true
            }
            Method::TasksGet if message.cut.is_some() => {
                // Too long to read, but only a task that is done has so much to say.
                let Some(call) = self.requests.call(no) else {
                    return false;
                };
                payload(&self.rules, &mut call.record, message);
                self.task_concluded(exchange, no, Outcome::Unreadable, message.bytes, at);
                true
            }
            Method::TasksGet => {
                let Some(result) = message.result else {
                    return false;
                };
                self.task_told(exchange, no, &ResultFacts::of(result), at)
            }
            Method::TasksCancel if message.result.is_some() => {
                self.task_concluded(exchange, no, Outcome::Cancelled, 0, at);
                false
            }
            _ => false,
        }
    }

    /// A task's state was told; true when the call is concluded by it.
    pub(super) fn task_told(
        &mut self,
        exchange: &mut Exchange,
        no: RequestNo,
        facts: &ResultFacts<'_>,
        at: Instant,
    ) -> bool {
        let Some(task) = &facts.task else {
            return false;
        };
        let Some(call) = self.requests.call(no) else {
            return false;
        };
        call.touched = at;
        call.task = task.status.or(call.task);
        let place = Place::Result {
            tool: &call.record.tool,
        };
        let (outcome, bytes) = match (task.status, task.result, task.error) {
            (Some(TaskStatus::Cancelled), ..) => (Outcome::Cancelled, 0),
            (Some(TaskStatus::Failed), _, Some(error)) => {
                call.record.error = self.rules.json(error, Place::Message);
                call.record.result = None;
                (Outcome::RpcError, error.get().len())
            }
            (Some(TaskStatus::Completed | TaskStatus::Failed), Some(result), _) => {
                let is_error = ResultFacts::of(result).is_error;
                call.record.result = self.rules.json(result, place);
                call.record.error = None;
                (
                    if is_error {
                        Outcome::ToolError
                    } else {
                        Outcome::Ok
                    },
                    result.get().len(),
                )
            }
            // 2025-11-25 says what came of it in `tasks/result` only.
            _ => return false,
        };
        self.task_concluded(exchange, no, outcome, bytes as u64, at);
        true
    }

    fn task_concluded(
        &mut self,
        exchange: &mut Exchange,
        no: RequestNo,
        outcome: Outcome,
        bytes: u64,
        at: Instant,
    ) {
        let Some(request) = self.requests.get(no) else {
            return;
        };
        let live = request.live;
        let Some(call) = request.call() else { return };
        if call.decided {
            if call.record.outcome == Outcome::Cancelled && outcome != Outcome::Cancelled {
                call.flag("late_result");
            }
            return;
        }
        call.decide(outcome);
        call.touched = at;
        call.record.duration_us = Some(call.since(at));
        call.record.response_bytes += bytes;
        call.record.legs += 1;
        if call.record.end == End::Open || live {
            return;
        }
        self.requests.weigh(no);
        self.adopt(exchange, no);
    }
}

/// What an answer says, by its shape alone.
fn said(message: &Incoming<'_>, facts: &ResultFacts<'_>) -> Said {
    if message.is_error() {
        return Said::Concluded(Outcome::RpcError);
    }
    if let Some(overflow) = message.cut {
        return match overflow.outline.result_type.as_deref() {
            Some("input_required") => Said::Interim,
            Some("task") => Said::Task,
            _ if overflow.outline.is_error => Said::Concluded(Outcome::ToolError),
            _ => Said::Concluded(Outcome::Ok),
        };
    }
    match facts.result_type.as_deref() {
        Some("input_required") => Said::Interim,
        Some("task") => Said::Task,
        // 2025-11-25: a `task` instead of a content.
        None if facts.task.is_some() && !facts.has_content => Said::Task,
        _ if facts.is_error => Said::Concluded(Outcome::ToolError),
        _ => Said::Concluded(Outcome::Ok),
    }
}

/// Puts what was answered into the record.
fn payload(rules: &Rules, record: &mut Call, message: &Incoming<'_>) {
    (record.result, record.error) = (None, None);
    let place = if message.is_error() {
        Place::Message
    } else {
        Place::Result { tool: &record.tool }
    };
    let text = match (message.cut, message.error.or(message.result)) {
        (Some(_), _) => rules.prefix(message.text, place),
        (None, Some(part)) => rules.json(part, place),
        (None, None) => None,
    };
    if message.is_error() {
        record.error = text;
    } else {
        record.result = text;
    }
    if let Some(overflow) = message.cut {
        record.capture.response = Capture::Truncated;
        record.capture.reason = Some(over_cap(message.text.len(), message.bytes, overflow));
    }
}

/// Whether an error means that the server does not know the session any more: 404 as the specification says (unless it is
/// about the method), or the 400 that some servers answer instead, which names no request.
fn is_session_lost(exchange: &Exchange, message: &Incoming<'_>) -> bool {
    if exchange.modern || super::head::value(&exchange.head.headers, "mcp-session-id").is_none() {
        return false;
    }
    let code = message.error.and_then(|error| ErrorFacts::of(error).code);
    match exchange.status() {
        Some(404) => code != Some(-32601),
        Some(400) => {
            matches!(code, Some(-32000 | -32001))
                && matches!(message.id, IdField::Null | IdField::Missing)
        }
        _ => false,
    }
}

impl OpenCall {
    /// Whether an answer that was read has a resumable stream behind it.
    pub(super) fn is_resumable(&self) -> bool {
        self.last_event.is_some()
    }
}
