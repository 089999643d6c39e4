//! What each message means: requests open calls, answers conclude them, the rest is evidence around them.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use callbox_store::{Capture, Catalogue, Direction, Message as Stored, Outcome, RawJson, Record};
use callbox_wire::collect::Collected;
use callbox_wire::mcp::revision::{Era, Evidence, detect};
use callbox_wire::mcp::{Method, Params, ResultFacts, TaskStatus, catalogue, header, trace};
use callbox_wire::redact::Place;
use callbox_wire::rpc::{self, IdField, Kind, Message, RequestId};
use serde_json::value::RawValue;

use super::body::Piece;
use super::calls::{OpenCall, blank};
use super::exchange::{Asked, Exchange, Introduced};
use super::head::RequestFacts;
use super::link::{self, Hints};
use super::rules::over_cap;
use super::{Observer, micros};

/// Tools of one list at most; longer lists are not assembled.
const MAX_TOOLS: usize = 10_000;
/// Tool lists whose content is known to be stored.
const MAX_KNOWN_CATALOGUES: usize = 10_000;

impl Observer {
    /// A piece of the request's body.
    pub(super) fn up(&mut self, exchange: &mut Exchange, piece: Piece) {
        if piece.text.overflow.is_some() {
            self.long_request(exchange, &piece);
            return;
        }
        let Ok(body) = rpc::parse(&piece.text.text) else {
            return;
        };
        let batch = matches!(body, rpc::Body::Batch(_));
        for message in body.messages() {
            self.from_client(exchange, message, batch);
        }
    }

    fn from_client(&mut self, exchange: &mut Exchange, message: &Message<'_>, batch: bool) {
        let params = Params::of(message.params);
        let method = message.method.as_deref().map_or(Method::Other, Method::of);
        let request = Arc::new(()); // keeps the borrow of the headers apart from that of the exchange
        drop(request);
        let headers = exchange.request.headers.clone();
        let facts = RequestFacts::of(&headers);
        let session_version = self.session_version(exchange, &facts);
        let revision = detect(&Evidence {
            body: params.meta.protocol_version.as_deref(),
            method: message.method.is_some().then_some(method),
            method_header: facts.mcp_method.is_some(),
            requested: params.protocol_version.as_deref(),
            header: facts.version,
            batch,
            session: session_version.as_deref(),
            unknown_session: facts.session.is_some() && session_version.is_none(),
            endpoint: self.endpoints.contains_key(&exchange.request.target),
        });
        let version = revision.version.map(str::to_owned);
        exchange.spoke = true;
        match (message.kind, &message.id) {
            (Kind::Request, IdField::Id(id)) if method == Method::Initialize => {
                exchange.introduced = Some(Introduced {
                    client: params.client_info.and_then(link::client),
                    requested: params.protocol_version.as_deref().map(str::to_owned),
                    body: message
                        .params
                        .and_then(|raw| self.rules.json(raw, Place::Message)),
                    id: id.clone(),
                    at: exchange.request.at,
                });
                // On the two-endpoint transport the session is known already.
                if self.endpoints.contains_key(&exchange.request.target) {
                    let client = params.client_info.and_then(link::client);
                    let key = self.endpoints[&exchange.request.target];
                    self.join(
                        exchange,
                        key,
                        callbox_store::SessionSource::Protocol,
                        client,
                        None,
                    );
                }
                return;
            }
            _ => {}
        }
        let hints = Hints {
            meta: Some(&params.meta),
            version: version.as_deref(),
            modern: revision.era == Era::Modern,
            task: params
                .task_id
                .as_deref()
                .or(params.meta.related_task.as_deref()),
            request_state: params.request_state.as_deref(),
        };
        let key = self.session(exchange, &hints);
        match message.kind {
            Kind::Request => {
                let Some(id) = message.id.id().cloned() else {
                    return;
                };
                if method == Method::ToolsCall {
                    self.open_call(exchange, &params, &id, version, &facts, message);
                    return;
                }
                let call = params
                    .task_id
                    .as_deref()
                    .and_then(|task| self.waiting_task(exchange, task));
                exchange.asked.push(Asked {
                    id,
                    method,
                    name: message.method.as_deref().unwrap_or_default().into(),
                    cursor: params.cursor.is_some(),
                    task: params.task_id.as_deref().map(Into::into),
                });
                self.record(
                    exchange,
                    message,
                    Direction::ClientToServer,
                    exchange.request.at,
                    call,
                );
            }
            Kind::Notification => {
                let mut call = None;
                if method == Method::Cancelled
                    && let Some(id) = &params.request_id
                {
                    call = self.cancel(exchange, key, id);
                }
                self.record(
                    exchange,
                    message,
                    Direction::ClientToServer,
                    exchange.request.at,
                    call,
                );
            }
            Kind::Response => {
                let call = self.answer_to_server(key, message);
                self.record(
                    exchange,
                    message,
                    Direction::ClientToServer,
                    exchange.request.at,
                    call,
                );
            }
            Kind::Invalid => self.record(
                exchange,
                message,
                Direction::ClientToServer,
                exchange.request.at,
                None,
            ),
        }
    }

    fn session_version(
        &mut self,
        exchange: &mut Exchange,
        facts: &RequestFacts<'_>,
    ) -> Option<String> {
        let key = match exchange.session {
            Some(key) => key,
            None => match facts.session {
                Some(session) => self.digest(exchange, "session", session),
                None => *self.endpoints.get(&exchange.request.target)?,
            },
        };
        self.sessions.get(&key)?.session.protocol_version.clone()
    }

    fn open_call(
        &mut self,
        exchange: &mut Exchange,
        params: &Params<'_>,
        id: &RequestId,
        version: Option<String>,
        facts: &RequestFacts<'_>,
        message: &Message<'_>,
    ) {
        let tool = params.name.as_deref().unwrap_or_default().to_owned();
        let arguments = params.arguments.map_or("", RawValue::get);
        let fingerprint = self
            .rules
            .redactor
            .digest("call", format!("{tool}\0{arguments}").as_bytes());
        let raw_id =
            RawValue::from_string(id.as_raw_json().to_owned()).expect("invariant: an id is JSON");
        let Some(key) = exchange.session else { return };
        // A further leg of a call that asked for input?
        let mut flags = Vec::new();
        if let Some(mut call) = self.earlier_leg(exchange, params, fingerprint, &mut flags) {
            call.record.legs += 1;
            call.record.exchange_id = exchange.id;
            call.record
                .request_id
                .clone_from(&exchange.request.request_id);
            call.record.jsonrpc_id = raw_id;
            call.rpc_id = id.clone();
            call.interim = false;
            call.decided = false;
            call.record.outcome = Outcome::Pending;
            call.record.result = None;
            call.record.request_bytes += exchange.up.bytes;
            if let Some(action) = params.input_responses.and_then(first_action) {
                call.record.confirmation = Some(action);
            }
            for flag in flags {
                call.flag(flag);
            }
            exchange.calls.push(call);
            return;
        }
        let call_id = self.next_id(exchange.request.at_wall);
        let arguments = params
            .arguments
            .and_then(|raw| self.rules.json(raw, Place::Arguments { tool: &tool }));
        let parent = params
            .meta
            .traceparent
            .as_deref()
            .or(facts.traceparent)
            .and_then(trace::TraceParent::parse);
        let Some(active) = self.sessions.get(&key) else {
            return;
        };
        active.calls += 1;
        let seq = active.calls;
        let session = Arc::clone(&active.session);
        let mut record = blank(call_id, exchange.id, session, raw_id, tool);
        record.seq = seq;
        record.request_id.clone_from(&exchange.request.request_id);
        record.protocol_version = version;
        record.trace_id = parent.map(|parent| parent.trace.to_owned());
        record.span_id = parent.map(|parent| parent.span.to_owned());
        record.arguments = arguments;
        record.started_at = exchange.request.at_wall;
        record.request_bytes = exchange.up.bytes;
        if let Some(active) = self.sessions.get(&key) {
            let active = &*active;
            let named = active.catalogue.clone();
            let place = (
                Arc::clone(&exchange.request.upstream),
                exchange.identity.principal.clone(),
            );
            record.catalogue = named
                .or_else(|| self.catalogues.get(&place).cloned())
                .map(|hash| hash.to_string());
        }
        let mut call = Box::new(OpenCall {
            record,
            started: exchange.request.at,
            rpc_id: id.clone(),
            progress_token: params.meta.progress_token.clone(),
            fingerprint,
            request_state: None,
            interim: false,
            task: None,
            decided: false,
            shown: false,
        });
        for flag in flags {
            call.flag(flag);
        }
        if exchange.up.lost {
            call.captured(
                true,
                Capture::Dropped,
                Some("the recorder's queue was full".to_owned()),
            );
        }
        if message.duplicate_members {
            call.flag("duplicate_members");
        }
        header_flags(&mut call, facts);
        exchange.calls.push(call);
    }

    /// The call that this one continues, taken out of its session.
    fn earlier_leg(
        &mut self,
        exchange: &mut Exchange,
        params: &Params<'_>,
        fingerprint: [u8; 16],
        flags: &mut Vec<&'static str>,
    ) -> Option<Box<OpenCall>> {
        let key = exchange.session?;
        if let Some(state) = &params.request_state {
            let digest = self.digest(exchange, "state", state);
            let key = self.chains.remove(&digest).unwrap_or(key);
            return self
                .sessions
                .get(&key)?
                .take_waiting(|call| call.request_state == Some(digest));
        }
        params.input_responses?;
        let active = self.sessions.get(&key)?;
        let waiting = &mut active.more.as_mut()?.waiting;
        let is_candidate = |call: &OpenCall| {
            call.interim && call.request_state.is_none() && call.fingerprint == fingerprint
        };
        match waiting.iter().filter(|call| is_candidate(call)).count() {
            0 => None,
            1 => {
                flags.push("weak_link");
                active.take_waiting(is_candidate)
            }
            _ => {
                flags.push("ambiguous_link");
                for call in waiting.iter_mut().filter(|call| is_candidate(call)) {
                    call.flag("ambiguous_link");
                }
                None
            }
        }
    }

    fn cancel(
        &mut self,
        exchange: &mut Exchange,
        key: super::sessions::Key,
        id: &RequestId,
    ) -> Option<uuid::Uuid> {
        let decide = |call: &mut OpenCall| {
            call.decide(Outcome::Cancelled);
            call.record.id
        };
        let waiting = self
            .sessions
            .get(&key)
            .and_then(|active| active.more.as_mut())
            .map(|more| &mut more.waiting);
        if let Some(call) = waiting
            .into_iter()
            .flatten()
            .find(|call| call.rpc_id == *id && !call.decided)
        {
            return Some(decide(call));
        }
        let others = self
            .exchanges
            .values_mut()
            .filter(|other| other.session == Some(key) && other.id != exchange.id);
        others
            .flat_map(|other| other.calls.iter_mut())
            .find(|call| call.rpc_id == *id && !call.decided)
            .map(|call| decide(call))
    }

    /// The client answers a request of the server.
    fn answer_to_server(
        &mut self,
        key: super::sessions::Key,
        message: &Message<'_>,
    ) -> Option<uuid::Uuid> {
        let id = message.id.id()?;
        let requests = &mut self.sessions.get(&key)?.more.as_mut()?.server_requests;
        let at = requests.iter().position(|(asked, ..)| asked == id)?;
        let (_, method, call) = requests.remove(at)?;
        let call = call?;
        if Method::of(&method) == Method::Elicitation
            && let Some(action) = message
                .result
                .and_then(|result| ResultFacts::of(result).action)
        {
            let action = action.into_owned();
            self.each_open(key, |open| {
                if open.record.id == call {
                    open.record.confirmation = Some(action.clone());
                }
            });
        }
        Some(call)
    }

    fn each_open(&mut self, key: super::sessions::Key, mut work: impl FnMut(&mut OpenCall)) {
        for exchange in self
            .exchanges
            .values_mut()
            .filter(|exchange| exchange.session == Some(key))
        {
            exchange.calls.iter_mut().for_each(|call| work(call));
        }
        if let Some(more) = self
            .sessions
            .get(&key)
            .and_then(|active| active.more.as_mut())
        {
            more.waiting.iter_mut().for_each(|call| work(call));
        }
    }

    fn waiting_task(&mut self, exchange: &Exchange, task: &str) -> Option<uuid::Uuid> {
        let key = exchange.session?;
        let waiting = &self.sessions.get(&key)?.more.as_ref()?.waiting;
        waiting
            .iter()
            .find(|call| call.task.as_deref() == Some(task))
            .map(|call| call.record.id)
    }

    /// A piece of the response's body.
    pub(super) fn down(&mut self, exchange: &mut Exchange, piece: Piece) {
        let at = piece.at;
        if piece.resumable {
            exchange.resumable = true;
        }
        if piece.event.as_deref() == Some("endpoint") && exchange.is_get() {
            let uri = String::from_utf8_lossy(&piece.text.text).into_owned();
            self.announce(exchange, &uri);
            return;
        }
        if piece.streamed && piece.text.bytes == 0 {
            exchange
                .calls
                .iter_mut()
                .for_each(|call| call.event(at, "priming"));
            return;
        }
        if piece.text.overflow.is_some() {
            self.long_answer(exchange, &piece);
            return;
        }
        match rpc::parse(&piece.text.text) {
            Ok(body) => {
                exchange.spoke = true;
                for message in body.messages() {
                    self.from_server(exchange, message, at, piece.streamed);
                }
            }
            Err(_) if !piece.streamed => {
                let json = super::head::value(
                    exchange
                        .response
                        .as_ref()
                        .map_or(&exchange.request.headers, |head| &head.headers),
                    "content-type",
                );
                exchange.unreadable_answer = exchange
                    .response
                    .as_ref()
                    .is_some_and(|head| head.status.is_success())
                    && json.is_some_and(|media| media.contains("json"));
                exchange.plain = self.rules.plain(&piece.text);
            }
            Err(_) => exchange
                .calls
                .iter_mut()
                .for_each(|call| call.flag("unreadable_event")),
        }
    }

    fn from_server(
        &mut self,
        exchange: &mut Exchange,
        message: &Message<'_>,
        at: Instant,
        streamed: bool,
    ) {
        let method = message.method.as_deref().map_or(Method::Other, Method::of);
        match message.kind {
            Kind::Response => self.answer(exchange, message, at, streamed),
            Kind::Request => {
                let kind = match method {
                    Method::Elicitation => "elicitation",
                    Method::Sampling => "sampling",
                    _ => message.method.as_deref().unwrap_or("request"),
                };
                let call = match exchange.calls.as_mut_slice() {
                    [one] => {
                        one.event(at, kind);
                        Some(one.record.id)
                    }
                    _ => None,
                };
                self.session(exchange, &Hints::default());
                if let (Some(id), Some(key)) = (message.id.id(), exchange.session)
                    && let Some(active) = self.sessions.get(&key)
                {
                    active.server_asked(
                        id.clone(),
                        message.method.as_deref().unwrap_or_default(),
                        call,
                    );
                }
                self.record(exchange, message, Direction::ServerToClient, at, call);
            }
            Kind::Notification => {
                let params = Params::of(message.params);
                let kind: Cow<'_, str> = match method {
                    Method::Progress => "progress".into(),
                    Method::LogMessage => "message".into(),
                    _ => message
                        .method
                        .as_deref()
                        .unwrap_or("notification")
                        .to_owned()
                        .into(),
                };
                let mut call = None;
                if let Some(token) = &params.progress_token {
                    call = self.progress(exchange, token, at, &kind);
                } else if let [one] = exchange.calls.as_mut_slice() {
                    one.event(at, &kind);
                    call = Some(one.record.id);
                }
                if method == Method::TaskStatus
                    && let Some(facts) = message.params.and_then(callbox_wire::mcp::TaskFacts::of)
                {
                    self.task_state(exchange, &facts, at);
                }
                self.session(exchange, &Hints::default());
                self.record(exchange, message, Direction::ServerToClient, at, call);
            }
            Kind::Invalid => {
                if let [one] = exchange.calls.as_mut_slice() {
                    one.flag("invalid_message");
                }
            }
        }
    }

    fn progress(
        &mut self,
        exchange: &mut Exchange,
        token: &RequestId,
        at: Instant,
        kind: &str,
    ) -> Option<uuid::Uuid> {
        if let Some(call) = exchange
            .calls
            .iter_mut()
            .find(|call| call.progress_token.as_ref() == Some(token))
        {
            call.event(at, kind);
            return Some(call.record.id);
        }
        let key = exchange.session?;
        let mut found = None;
        self.each_open(key, |call| {
            if found.is_none() && call.progress_token.as_ref() == Some(token) {
                call.event(at, kind);
                found = Some(call.record.id);
            }
        });
        found
    }

    /// An answer of the server: to a call here, to a call elsewhere in the session, or to something else asked.
    fn answer(
        &mut self,
        exchange: &mut Exchange,
        message: &Message<'_>,
        at: Instant,
        streamed: bool,
    ) {
        let id = message.id.id();
        exchange.answered = true;
        if let Some(introduced) = exchange
            .introduced
            .take_if(|introduced| id == Some(&introduced.id))
        {
            self.introduced(exchange, introduced, message, at);
            return;
        }
        let here = match id {
            Some(id) => exchange.calls.iter().position(|call| call.rpc_id == *id),
            // An error without an id answers what was asked, when that was one thing.
            None => (message.error.is_some() && exchange.calls.len() == 1).then_some(0),
        };
        if let Some(here) = here {
            let mut call = exchange.calls.remove(here);
            if streamed {
                call.event(at, "response");
            }
            self.conclude(exchange, &mut call, message, at);
            exchange.calls.insert(here, call);
            return;
        }
        let Some(id) = id else {
            self.session(exchange, &Hints::default());
            self.record(exchange, message, Direction::ServerToClient, at, None);
            return;
        };
        if let Some(asked) = exchange.asked.iter().position(|asked| asked.id == *id) {
            let asked = exchange.asked.remove(asked);
            self.answered(exchange, &asked, message, at);
            return;
        }
        if exchange.calls.len() == 1 && exchange.calls[0].rpc_id.resembles(id) {
            let mut call = exchange.calls.remove(0);
            call.flag("id_type_mismatch");
            self.conclude(exchange, &mut call, message, at);
            exchange.calls.push(call);
            return;
        }
        if self.answer_elsewhere(exchange, id, message, at) {
            return;
        }
        self.session(exchange, &Hints::default());
        self.record(exchange, message, Direction::ServerToClient, at, None);
    }

    /// Legacy: the answer to a request of another exchange of the same session.
    fn answer_elsewhere(
        &mut self,
        exchange: &mut Exchange,
        id: &RequestId,
        message: &Message<'_>,
        at: Instant,
    ) -> bool {
        if exchange.session.is_none()
            && super::head::value(&exchange.request.headers, "mcp-session-id").is_some()
        {
            self.session(exchange, &Hints::default());
        }
        let Some(key) = exchange.session else {
            return false;
        };
        if let Some(mut call) = self
            .sessions
            .get(&key)
            .and_then(|active| active.take_waiting(|call| call.rpc_id == *id))
        {
            call.event(at, "response");
            if !call.decided
                || call.record.outcome == Outcome::Cancelled
                || call.record.outcome == Outcome::Aborted
            {
                if call.record.outcome == Outcome::Aborted {
                    call.decided = false;
                }
                call.record.response_bytes += message.text.len() as u64;
                self.conclude(exchange, &mut call, message, at);
                call.finished(at);
                call.record.end = callbox_store::End::Complete;
            }
            if call.interim || call.task.is_some() && !call.decided {
                self.keep_waiting(key, call);
            } else {
                self.store(call);
            }
            return true;
        }
        let other = self.exchanges.iter_mut().find_map(|(other_id, other)| {
            let holds = other.session == Some(key)
                && (other.calls.iter().any(|call| call.rpc_id == *id)
                    || other.asked.iter().any(|asked| asked.id == *id)
                    || other
                        .introduced
                        .as_ref()
                        .is_some_and(|introduced| introduced.id == *id));
            holds.then_some(*other_id)
        });
        let Some(mut other) = other.and_then(|other| self.exchanges.remove(&other)) else {
            return false;
        };
        if let Some(introduced) = other.introduced.take_if(|introduced| introduced.id == *id) {
            self.introduced(&mut other, introduced, message, at);
        } else if let Some(asked) = other.asked.iter().position(|asked| asked.id == *id) {
            let asked = other.asked.remove(asked);
            self.answered(&mut other, &asked, message, at);
        } else if let Some(call) = other.calls.iter().position(|call| call.rpc_id == *id) {
            let mut call = other.calls.remove(call);
            call.event(at, "response");
            call.record.response_bytes += message.text.len() as u64;
            self.conclude(&mut other, &mut call, message, at);
            call.finished(at);
            other.calls.push(call);
        }
        self.exchanges.insert(other.id, other);
        true
    }

    pub(super) fn keep_waiting(&mut self, key: super::sessions::Key, mut call: Box<OpenCall>) {
        if !call.shown {
            call.shown = true;
            self.out
                .records
                .push(Record::Call(Box::new(call.record.clone())));
        }
        let gone = match self.sessions.get(&key) {
            Some(active) => active.wait_for(call),
            None => Some(call),
        };
        if let Some(mut gone) = gone {
            gone.decide(Outcome::Abandoned);
            self.store(gone);
        }
    }

    /// The answer of a call: outcome, result, and whether it goes on elsewhere.
    fn conclude(
        &mut self,
        exchange: &Exchange,
        call: &mut OpenCall,
        message: &Message<'_>,
        at: Instant,
    ) {
        let tool = call.record.tool.clone();
        if let Some(error) = message.error {
            let error = self.rules.json(error, Place::Result { tool: &tool });
            call.answer(Outcome::RpcError, None, error);
            return;
        }
        let Some(raw) = message.result else { return };
        let facts = ResultFacts::of(raw);
        let result = self.rules.json(raw, Place::Result { tool: &tool });
        if facts.is_interim() && !call.decided {
            call.interim = true;
            call.record.result = result;
            if let Some(state) = &facts.request_state {
                let digest = self.digest(exchange, "state", state);
                call.request_state = Some(digest);
                if let Some(key) = exchange.session {
                    self.chains.insert(digest, key);
                }
            } else {
                call.request_state = None;
            }
            return;
        }
        let is_task = facts.result_type.as_deref() == Some("task") || facts.result_type.is_none();
        if let (true, Some(task), false) = (is_task, &facts.task, call.decided)
            && (facts.result_type.is_some() || !has_content(raw))
        {
            call.task = Some(task.id.as_ref().into());
            call.record.result = result;
            if let Some(key) = exchange.session {
                self.chains
                    .insert(self.digest(exchange, "task", &task.id), key);
            }
            return;
        }
        let outcome = if facts.is_error {
            Outcome::ToolError
        } else {
            Outcome::Ok
        };
        call.answer(outcome, result, None);
        let _ = at;
    }

    /// A task's state, told on any exchange of its session.
    fn task_state(
        &mut self,
        exchange: &mut Exchange,
        facts: &callbox_wire::mcp::TaskFacts<'_>,
        at: Instant,
    ) {
        self.session(
            exchange,
            &Hints {
                task: Some(&facts.id),
                ..Hints::default()
            },
        );
        let digest = self.digest(exchange, "task", &facts.id);
        let Some(key) = self.chains.get(&digest).copied().or(exchange.session) else {
            return;
        };
        let ended = matches!(
            facts.status,
            Some(TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Cancelled)
        );
        if !ended {
            return;
        }
        let task: &str = &facts.id;
        let Some(mut call) = self
            .sessions
            .get(&key)
            .and_then(|active| active.take_waiting(|call| call.task.as_deref() == Some(task)))
        else {
            return;
        };
        let tool = call.record.tool.clone();
        match (facts.status, facts.result, facts.error) {
            (Some(TaskStatus::Cancelled), ..) => call.decide(Outcome::Cancelled),
            (_, _, Some(error)) => {
                let error = self.rules.json(error, Place::Result { tool: &tool });
                call.answer(Outcome::RpcError, None, error);
            }
            (_, Some(result), _) => {
                let failed = ResultFacts::of(result).is_error;
                let result = self.rules.json(result, Place::Result { tool: &tool });
                call.answer(
                    if failed {
                        Outcome::ToolError
                    } else {
                        Outcome::Ok
                    },
                    result,
                    None,
                );
            }
            // 2025-11-25: the result itself comes by `tasks/result`.
            _ => {
                self.keep_waiting(key, call);
                return;
            }
        }
        call.finished(at);
        self.store(call);
    }

    /// The answer to a request other than a call.
    fn answered(
        &mut self,
        exchange: &mut Exchange,
        asked: &Asked,
        message: &Message<'_>,
        at: Instant,
    ) {
        let mut call_id = None;
        match asked.method {
            Method::ToolsList => self.listed(exchange, asked, message, at),
            Method::TasksResult => {
                if let (Some(key), Some(task)) = (exchange.session, &asked.task) {
                    let waiting = self.sessions.get(&key);
                    let found = waiting.and_then(|active| {
                        active.take_waiting(|call| call.task.as_ref() == Some(task))
                    });
                    if let Some(mut call) = found {
                        call.task = None;
                        call.record.legs += 1;
                        call_id = Some(call.record.id);
                        self.conclude(exchange, &mut call, message, at);
                        call.finished(at);
                        call.record.end = callbox_store::End::Complete;
                        if call.decided {
                            self.store(call);
                        } else {
                            call.task = Some(task.clone());
                            self.keep_waiting(key, call);
                        }
                    }
                }
            }
            Method::TasksGet | Method::TasksCancel => {
                if let Some(task) = message
                    .result
                    .and_then(|result| ResultFacts::of(result).task)
                {
                    self.task_state(exchange, &task, at);
                }
            }
            _ => {}
        }
        self.record_as(
            exchange,
            message,
            Direction::ServerToClient,
            at,
            call_id,
            Some(&asked.name),
        );
    }

    fn listed(
        &mut self,
        exchange: &mut Exchange,
        asked: &Asked,
        message: &Message<'_>,
        at: Instant,
    ) {
        let Some(key) = exchange.session else { return };
        let Some(result) = message.result else { return };
        let facts = ResultFacts::of(result);
        let Some(tools) = facts.tools.and_then(catalogue::elements) else {
            return;
        };
        let upstream = Arc::clone(&exchange.request.upstream);
        for tool in &tools {
            self.metrics.tool_listed(&upstream, &catalogue::name(tool));
        }
        let Some(active) = self.sessions.get(&key) else {
            return;
        };
        let more = active.more();
        if !asked.cursor {
            more.pages.clear();
        }
        if more.pages.len() + tools.len() > MAX_TOOLS {
            more.pages.clear();
            return;
        }
        more.pages.extend(tools.into_iter().map(RawValue::to_owned));
        if facts.next_cursor.is_some() {
            return;
        }
        let pages = std::mem::take(&mut more.pages);
        let borrowed: Vec<&RawValue> = pages.iter().map(|page| &**page).collect();
        let hash: Arc<str> = catalogue::hash(&borrowed).into();
        active.catalogue = Some(Arc::clone(&hash));
        let place = (Arc::clone(&upstream), exchange.identity.principal.clone());
        if self.catalogues.len() < MAX_KNOWN_CATALOGUES || self.catalogues.contains_key(&place) {
            self.catalogues.insert(place, Arc::clone(&hash));
        }
        if self.known_catalogues.contains(&hash) {
            return;
        }
        if self.known_catalogues.len() >= MAX_KNOWN_CATALOGUES {
            self.known_catalogues.clear();
        }
        let text = format!(
            "[{}]",
            pages
                .iter()
                .map(|page| page.get())
                .collect::<Vec<_>>()
                .join(",")
        );
        let Ok(tools) = RawValue::from_string(text) else {
            return;
        };
        let Some(tools) = self.rules.json(&tools, Place::Schema) else {
            return;
        };
        self.known_catalogues.insert(Arc::clone(&hash));
        self.out.records.push(Record::Catalogue(Box::new(Catalogue {
            hash: hash.to_string(),
            upstream: upstream.to_string(),
            seen_at: exchange.wall(at),
            tools,
        })));
    }

    fn introduced(
        &mut self,
        exchange: &mut Exchange,
        introduced: Introduced,
        message: &Message<'_>,
        at: Instant,
    ) {
        exchange.introduced = Some(introduced);
        self.settle_session(exchange);
        let Some(introduced) = exchange.introduced.take() else {
            return;
        };
        let negotiated = message
            .result
            .and_then(|result| ResultFacts::of(result).protocol_version);
        let version = negotiated
            .as_deref()
            .or(introduced.requested.as_deref())
            .map(str::to_owned);
        if let Some(key) = exchange.session
            && let Some(active) = self.sessions.get(&key)
        {
            let mut session = (*active.session).clone();
            session.protocol_version = version;
            session.client = introduced.client.clone().or(session.client);
            active.session = Arc::new(session);
        }
        self.push_message(
            exchange,
            Direction::ClientToServer,
            "request",
            Some("initialize"),
            Some(&introduced.id),
            introduced.at,
            introduced.body,
            None,
        );
        self.record_as(
            exchange,
            message,
            Direction::ServerToClient,
            at,
            None,
            Some("initialize"),
        );
    }

    fn long_request(&mut self, exchange: &mut Exchange, piece: &Piece) {
        let Some(overflow) = &piece.text.overflow else {
            return;
        };
        exchange.spoke = true;
        let outline = &overflow.outline;
        if outline.method.as_deref() != Some("tools/call") {
            return;
        }
        let IdField::Id(id) = &outline.id else { return };
        let text = String::new();
        let message = Message {
            kind: Kind::Request,
            id: outline.id.clone(),
            method: Some("tools/call".into()),
            params: None,
            result: None,
            error: None,
            duplicate_members: false,
            not_v2: false,
            text: &text,
        };
        let tool = outline.tool.clone().unwrap_or_default();
        let params = Params {
            name: Some(tool.as_str().into()),
            ..Params::default()
        };
        let headers = exchange.request.headers.clone();
        let facts = RequestFacts::of(&headers);
        let version = facts.version.map(str::to_owned);
        let modern = version
            .as_deref()
            .is_some_and(callbox_wire::mcp::revision::is_modern);
        self.session(
            exchange,
            &Hints {
                version: version.as_deref(),
                modern,
                ..Hints::default()
            },
        );
        self.open_call(exchange, &params, id, version, &facts, &message);
        let arguments = self
            .rules
            .prefix(&piece.text, Place::Arguments { tool: &tool });
        if let Some(call) = exchange.calls.last_mut() {
            let (state, reason) = over_cap(&piece.text);
            call.record.arguments = arguments;
            call.captured(true, state, reason);
        }
    }

    fn long_answer(&mut self, exchange: &mut Exchange, piece: &Piece) {
        let Some(overflow) = &piece.text.overflow else {
            return;
        };
        exchange.spoke = true;
        let outline = &overflow.outline;
        let (state, reason) = over_cap(&piece.text);
        let position = match &outline.id {
            IdField::Id(id) => exchange.calls.iter().position(|call| call.rpc_id == *id),
            _ => (exchange.calls.len() == 1).then_some(0),
        };
        let mut call = match position {
            Some(position) => exchange.calls.remove(position),
            None => {
                let (Some(key), IdField::Id(id)) = (exchange.session, &outline.id) else {
                    return;
                };
                let Some(call) = self
                    .sessions
                    .get(&key)
                    .and_then(|active| active.take_waiting(|call| call.rpc_id == *id))
                else {
                    self.long_message(exchange, &piece.text, piece.at);
                    return;
                };
                call
            }
        };
        if piece.streamed {
            call.event(piece.at, "response");
        }
        let tool = call.record.tool.clone();
        let text = self
            .rules
            .prefix(&piece.text, Place::Result { tool: &tool });
        match (outline.has_error, outline.is_error) {
            (true, _) => call.answer(Outcome::RpcError, None, text),
            (false, true) => call.answer(Outcome::ToolError, text, None),
            (false, false) => call.answer(Outcome::Ok, text, None),
        }
        call.captured(false, state, reason);
        match position {
            Some(position) => exchange.calls.insert(position, call),
            None => {
                call.finished(piece.at);
                self.store(call);
            }
        }
    }

    /// A message other than a call's that is over the cap: the same cap, marked alike.
    fn long_message(&mut self, exchange: &mut Exchange, text: &Collected, at: Instant) {
        let Some(overflow) = &text.overflow else {
            return;
        };
        self.session(exchange, &Hints::default());
        let kind = if overflow.outline.method.is_some() {
            "request"
        } else {
            "response"
        };
        let body = self.rules.prefix(text, Place::Message);
        let (_, reason) = over_cap(text);
        let method = overflow.outline.method.clone();
        let id = overflow.outline.id.id().cloned();
        self.push_message(
            exchange,
            Direction::ServerToClient,
            kind,
            method.as_deref(),
            id.as_ref(),
            at,
            body,
            reason,
        );
    }

    fn record(
        &mut self,
        exchange: &mut Exchange,
        message: &Message<'_>,
        direction: Direction,
        at: Instant,
        call: Option<uuid::Uuid>,
    ) {
        self.record_as(exchange, message, direction, at, call, None);
    }

    fn record_as(
        &mut self,
        exchange: &mut Exchange,
        message: &Message<'_>,
        direction: Direction,
        at: Instant,
        call: Option<uuid::Uuid>,
        method: Option<&str>,
    ) {
        let method = message.method.as_deref().or(method);
        let place = if method == Some("tools/list") {
            Place::Schema
        } else {
            Place::Message
        };
        let raw = message.params.or(message.result).or(message.error);
        let body = raw.and_then(|raw| self.rules.json(raw, place));
        let kind = match message.kind {
            Kind::Request => "request",
            Kind::Response => "response",
            Kind::Notification => "notification",
            Kind::Invalid => "invalid",
        };
        let id = message.id.id().cloned();
        self.push_message_for(
            exchange,
            direction,
            kind,
            method,
            id.as_ref(),
            at,
            body,
            None,
            call,
        );
    }

    #[expect(clippy::too_many_arguments, reason = "the members of one record")]
    fn push_message(
        &mut self,
        exchange: &mut Exchange,
        direction: Direction,
        kind: &str,
        method: Option<&str>,
        id: Option<&RequestId>,
        at: Instant,
        body: Option<RawJson>,
        flag: Option<String>,
    ) {
        self.push_message_for(exchange, direction, kind, method, id, at, body, flag, None);
    }

    #[expect(clippy::too_many_arguments, reason = "the members of one record")]
    fn push_message_for(
        &mut self,
        exchange: &mut Exchange,
        direction: Direction,
        kind: &str,
        method: Option<&str>,
        id: Option<&RequestId>,
        at: Instant,
        body: Option<RawJson>,
        flag: Option<String>,
        call: Option<uuid::Uuid>,
    ) {
        let Some(key) = exchange.session else { return };
        let wall = exchange.wall(at);
        let message_id = self.next_id(wall);
        let Some(active) = self.sessions.get(&key) else {
            return;
        };
        active.seen = active.seen.max(at);
        let session = Arc::clone(&active.session);
        self.out.records.push(Record::Message(Box::new(Stored {
            id: message_id,
            exchange_id: exchange.id,
            session,
            direction,
            kind: kind.to_owned(),
            method: method.map(str::to_owned),
            jsonrpc_id: id.and_then(|id| RawValue::from_string(id.as_raw_json().to_owned()).ok()),
            call,
            at: wall,
            http_status: exchange.status(),
            body,
            flags: flag.into_iter().collect(),
        })));
    }
}

/// Whether a result looks like a tool's own, so that a `task` member in it is the tool's word.
fn has_content(raw: &RawValue) -> bool {
    let mut found = false;
    callbox_wire::mcp::each_member(raw.get(), |name, _| {
        found |= name == "content" || name == "structuredContent"
    });
    found
}

/// `action` of the first elicitation answered in `inputResponses`.
fn first_action(raw: &RawValue) -> Option<String> {
    let mut action = None;
    callbox_wire::mcp::each_member(raw.get(), |_, response| {
        if action.is_none() {
            action = ResultFacts::of(response).action.map(Cow::into_owned);
        }
    });
    action
}

fn header_flags(call: &mut OpenCall, facts: &RequestFacts<'_>) {
    let method_differs = facts.mcp_method.is_some_and(|value| value != "tools/call");
    let name_differs = facts.mcp_name.is_some_and(|value| {
        header::decode(value.as_bytes()).map_or(true, |name| name != call.record.tool)
    });
    if method_differs || name_differs {
        call.flag("header_mismatch");
    }
    let _ = micros;
}
