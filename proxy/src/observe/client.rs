//! What clients send: requests are opened, notifications and answers find what they are about.

use std::sync::Arc;
use std::time::Instant;

use callbox_store::{Direction, Outcome};
use callbox_wire::collect::{Collected, Collector};
use callbox_wire::mcp::{Evidence, Method, Params, ResultFacts, each_member, revision};
use callbox_wire::rpc::{self, IdField};
use http::Method as Verb;

use super::body::Text;
use super::calls::{Other, Request, Role, What};
use super::core::Core;
use super::exchange::{Exchange, Kind};
use super::head::RequestFacts;
use super::incoming::{self, Incoming};
use super::messages::Note;
use super::rules::{MAX_NAME, clipped};
use super::seat::{Reading, client_of};
use super::sessions::Seat;

impl Core {
    /// Reads the request, all of it or what came.
    pub(super) fn read_request(&mut self, exchange: &mut Exchange, whole: bool) {
        exchange.read = true;
        let (text, _) = exchange.up.finish(whole, &mut self.budget, &mut Vec::new());
        let head = Arc::clone(&exchange.head);
        let facts = RequestFacts::of(&head.headers);
        let identity = self.rules.identity(&head.headers, facts.authorization);
        exchange.identity = identity.clone();
        let named = match facts.session {
            Some(id) => Some(self.session_key(&head.upstream, id)),
            None if self.endpoints.is_empty() => None,
            None => {
                let key = self.endpoint_key(&head.upstream, &head.target);
                self.endpoints.get(&key, self.secs).is_some().then_some(key)
            }
        };
        let reading = Reading {
            head: &head,
            facts,
            identity: &identity,
            modern: false,
            version: facts.version,
            assumed: false,
            batch: false,
            named,
        };
        match head.method {
            Verb::POST => self.read_post(exchange, &reading, &text, whole),
            Verb::GET => self.read_get(exchange, &reading),
            Verb::DELETE if facts.session.is_some() => {
                exchange.kind = Kind::Delete;
                exchange.seat = Some(self.seat_of(&reading, &Params::default()));
            }
            _ => {}
        }
    }

    fn read_get(&mut self, exchange: &mut Exchange, reading: &Reading<'_>) {
        let asks = reading.facts.accept.is_some_and(|accept| {
            accept
                .windows(17)
                .any(|part| part.eq_ignore_ascii_case(b"text/event-stream"))
        });
        if !asks {
            return;
        }
        exchange.kind = match reading.facts.last_event_id {
            Some(_) => Kind::Resume,
            None => Kind::Stream,
        };
        // Without a session the first event may still announce one.
        if reading.facts.session.is_some() {
            exchange.seat = Some(self.seat_of(reading, &Params::default()));
        }
    }

    fn read_post(
        &mut self,
        exchange: &mut Exchange,
        reading: &Reading<'_>,
        text: &Text,
        whole: bool,
    ) {
        if text.is_blank() || exchange.up.lost || exchange.up.undecoded.is_some() {
            return self.unread_request(exchange, reading);
        }
        let outlined;
        let (messages, batch) = match incoming::read(text) {
            Ok(read) => read,
            Err(_) if !whole => {
                outlined = outline(text);
                match incoming::read(&outlined) {
                    Ok(read) => read,
                    Err(_) => return,
                }
            }
            Err(_) => return self.malformed(exchange, reading, text),
        };
        let speaks = |message: &Incoming<'_>| message.kind != rpc::Kind::Invalid && !message.not_v2;
        if !messages.iter().any(speaks) && !is_mcp(reading) {
            return;
        }
        exchange.kind = Kind::Messages;
        exchange.batch = batch;
        let reading = &Reading { batch, ..*reading };
        let first = messages
            .first()
            .map(|message| Params::of(message.params))
            .unwrap_or_default();
        let session = self.revise(reading, messages.first(), &first);
        let detected = revision::detect(&evidence(
            reading,
            messages.first(),
            &first,
            session.as_deref(),
        ));
        let modern = detected.era == revision::Era::Modern;
        let reading = &Reading {
            modern,
            assumed: detected.assumed,
            version: detected.version,
            ..*reading
        };
        exchange.modern = modern;
        // The handshake's session comes with its answer, except where an endpoint was announced.
        let handshake = matches!(messages.as_slice(), [only] if method(only) == Some(Method::Initialize))
            && (reading.named.is_none() || reading.facts.session.is_some());
        if !handshake {
            exchange.seat = Some(self.seat_of(reading, &first));
        }
        for (at, message) in messages.iter().enumerate() {
            if at == 0 {
                self.client_message(exchange, reading, message, &first, whole);
            } else {
                self.client_message(
                    exchange,
                    reading,
                    message,
                    &Params::of(message.params),
                    whole,
                );
            }
        }
    }

    /// The session whose version may tell the revision, when nothing nearer does.
    fn revise(
        &mut self,
        reading: &Reading<'_>,
        first: Option<&Incoming<'_>>,
        params: &Params<'_>,
    ) -> Option<Arc<callbox_store::Session>> {
        let told = params.meta.protocol_version.is_some()
            || reading.facts.version.is_some()
            || first.and_then(method) == Some(Method::Initialize);
        if told {
            return None;
        }
        self.version_of(&reading.named?)
    }

    fn client_message(
        &mut self,
        exchange: &mut Exchange,
        reading: &Reading<'_>,
        message: &Incoming<'_>,
        params: &Params<'_>,
        whole: bool,
    ) {
        let at = reading.head.at;
        match message.kind {
            rpc::Kind::Request if method(message) == Some(Method::ToolsCall) => {
                self.begin_call(exchange, reading, message, params, whole);
            }
            rpc::Kind::Request => self.begin_other(exchange, reading, message, params),
            rpc::Kind::Notification => self.client_notification(exchange, message, params, at),
            rpc::Kind::Response => self.client_response(exchange, message, at),
            rpc::Kind::Invalid => {
                let note = self.note_of(message, Direction::ClientToServer);
                let seat = exchange.seat.clone();
                self.note(exchange, seat.as_ref(), at, note);
            }
        }
    }

    fn begin_other(
        &mut self,
        exchange: &mut Exchange,
        reading: &Reading<'_>,
        message: &Incoming<'_>,
        params: &Params<'_>,
    ) {
        let name = message.method.as_deref().unwrap_or_default();
        let kind = Method::of(name);
        let seat = exchange.seat.clone();
        let mut call = None;
        let role = match kind {
            Method::Initialize => Role::Initialize(client_of(params)),
            Method::ToolsList => Role::List(match (&params.cursor, &seat) {
                (None, _) => Some(Vec::new()),
                (Some(cursor), Some(seat)) => {
                    self.lists
                        .resume(&self.rules, reading.scope(), &seat.key, cursor)
                }
                (Some(_), None) => None,
            }),
            Method::TasksGet | Method::TasksResult | Method::TasksUpdate | Method::TasksCancel => {
                let no = params
                    .task_id
                    .as_deref()
                    .zip(seat.as_ref())
                    .and_then(|(task, seat)| {
                        let key = reading.scope().task(&self.rules.redactor, seat, task);
                        self.links.task(&key)
                    });
                call = no.and_then(|no| Some(self.requests.call(no)?.record.id));
                if let (Some(no), Some(responses)) = (no, params.input_responses) {
                    self.confirm(no, responses);
                }
                Role::Task(no)
            }
            _ => Role::Plain,
        };
        let id = message.id.id().cloned();
        let what = What::Other(Box::new(Other {
            kind,
            method: clipped(name, MAX_NAME).into(),
            role,
        }));
        let mut note = self.note_of(message, Direction::ClientToServer);
        note.call = call;
        self.note(exchange, seat.as_ref(), reading.head.at, note);
        let request = Request {
            id,
            seat,
            exchange: exchange.id,
            live: true,
            answered: false,
            since: reading.head.at,
            place: 0,
            what,
        };
        self.open(exchange, request);
    }

    fn client_notification(
        &mut self,
        exchange: &mut Exchange,
        message: &Incoming<'_>,
        params: &Params<'_>,
        at: Instant,
    ) {
        let seat = exchange.seat.clone();
        let mut note = self.note_of(message, Direction::ClientToServer);
        if method(message) == Some(Method::Cancelled)
            && let (Some(id), Some(seat)) = (&params.request_id, &seat)
        {
            note.call = self.cancel(seat, id, at);
        }
        self.note(exchange, seat.as_ref(), at, note);
    }

    /// A client takes a call back; the call, when it is known.
    fn cancel(&mut self, seat: &Seat, id: &rpc::RequestId, at: Instant) -> Option<uuid::Uuid> {
        let open = self.sessions.peek(&seat.key)?.open.as_slice().to_vec();
        let mut candidates: Vec<_> = open
            .into_iter()
            .filter(|no| {
                self.requests
                    .get(*no)
                    .is_some_and(|request| request.has_id(id))
            })
            .collect();
        // The newest first: an older one of that id is no longer open in the client's eyes.
        candidates.sort_unstable();
        let no = *candidates.iter().rev().find(|no| {
            let aborted = |outcome| matches!(outcome, Outcome::Aborted | Outcome::Lost);
            self.requests
                .call(**no)
                .is_some_and(|call| call.waits() || aborted(call.record.outcome))
        })?;
        let call = self.requests.call(no)?;
        let known = call.record.id;
        if call.waits() {
            call.record.duration_us = Some(call.since(at));
        }
        // Clients close the stream and say so afterwards: the notification is the reason, the close only its effect.
        call.record.outcome = Outcome::Cancelled;
        (call.decided, call.changed, call.touched) = (true, true, at);
        if !self.requests.get(no)?.live {
            self.conclude(no, at);
        }
        Some(known)
    }

    fn client_response(&mut self, exchange: &mut Exchange, message: &Incoming<'_>, at: Instant) {
        let seat = exchange.seat.clone();
        let mut note = self.note_of(message, Direction::ClientToServer);
        let asked = match (&message.id, &seat) {
            (IdField::Id(id), Some(seat)) => self
                .sessions
                .peek(&seat.key)
                .and_then(|active| active.answer(id)),
            _ => None,
        };
        match asked {
            None => note.flags.push("unmatched".to_owned()),
            Some(asked) => {
                note.method = Some(asked.method.into());
                note.call = asked.call.map(|(_, id)| id);
                let action = message
                    .result
                    .and_then(|result| ResultFacts::of(result).action);
                if let (Method::Elicitation, Some((no, _)), Some(action)) =
                    (asked.kind, asked.call, action)
                    && let Some(call) = self.requests.call(no)
                {
                    call.touched = at;
                    confirm(call, &action);
                }
            }
        }
        self.note(exchange, seat.as_ref(), at, note);
    }

    /// Answers to elicitations that came with a further leg or an update of a task.
    pub(super) fn confirm(
        &mut self,
        no: super::calls::RequestNo,
        responses: &serde_json::value::RawValue,
    ) {
        let Some(call) = self.requests.call(no) else {
            return;
        };
        let elicits = match &call.wait {
            super::calls::Wait::Input(asks) => asks.elicits.as_slice(),
            _ => &[],
        };
        let mut action = None;
        each_member(responses.get(), |name, response| {
            if elicits.is_empty() || elicits.iter().any(|known| **known == *name) {
                action = ResultFacts::of(response)
                    .action
                    .map(std::borrow::Cow::into_owned)
                    .or(action.take());
            }
        });
        if let Some(action) = action {
            confirm(call, &action);
        }
    }

    /// A POST that is no JSON, where JSON-RPC was due.
    fn malformed(&mut self, exchange: &mut Exchange, reading: &Reading<'_>, text: &Text) {
        if !is_mcp(reading) {
            return;
        }
        exchange.kind = Kind::Messages;
        let seat = self.seat_of(reading, &Params::default());
        exchange.seat = Some(seat.clone());
        let note = Note {
            direction: Direction::ClientToServer,
            kind: "invalid",
            method: None,
            id: None,
            call: None,
            body: self.rules.plain(text),
            flags: vec!["malformed".to_owned()],
        };
        self.note(exchange, Some(&seat), reading.head.at, note);
    }
}

/// What an elicitation was answered with, if it is one of the three words.
fn confirm(call: &mut super::calls::OpenCall, action: &str) {
    if matches!(action, "accept" | "decline" | "cancel") {
        call.record.confirmation = Some(action.to_owned());
        call.changed = true;
    }
}

/// The method, as far as it is told apart.
pub(super) fn method(message: &Incoming<'_>) -> Option<Method> {
    message.method.as_deref().map(Method::of)
}

/// Whether the head alone says that this is MCP.
pub(super) fn is_mcp(reading: &Reading<'_>) -> bool {
    let facts = &reading.facts;
    facts.session.is_some()
        || facts.version.is_some()
        || facts.method.is_some()
        || reading.named.is_some()
}

fn evidence<'a>(
    reading: &'a Reading<'_>,
    first: Option<&Incoming<'_>>,
    params: &'a Params<'_>,
    session: Option<&'a callbox_store::Session>,
) -> Evidence<'a> {
    Evidence {
        body: params.meta.protocol_version.as_deref(),
        method: first.and_then(method),
        method_header: reading.facts.method.is_some(),
        requested: params.protocol_version.as_deref(),
        header: reading.facts.version,
        batch: reading.batch,
        session: session.and_then(|session| session.protocol_version.as_deref()),
        unknown_session: reading.facts.session.is_some() && session.is_none(),
        endpoint: reading.facts.session.is_none() && reading.named.is_some(),
    }
}

/// What can be told of a text that was cut off.
fn outline(text: &Text) -> Text {
    let mut collector = Collector::new(0);
    collector.push(text.bytes());
    let outlined = collector.finish();
    Text::Collected(Collected {
        text: text.bytes().to_vec(),
        ..outlined
    })
}
