//! What servers send: heads, events and texts become messages, and messages find the request they are about.

use std::time::Instant;

use bytes::Bytes;
use callbox_store::{Direction, SessionSource};
use callbox_wire::mcp::{Method, Params, ResultFacts};
use callbox_wire::rpc::{self, IdField};
use callbox_wire::sse::SseEvent;
use http::StatusCode;
use uuid::Uuid;

use super::body::{Body, Content, Text};
use super::calls::{RequestNo, Role, What};
use super::client::method;
use super::core::Core;
use super::exchange::{Down, Exchange, Kind};
use super::head::{ResponseFacts, content_encoding};
use super::identity::Identity;
use super::incoming::{self, Incoming};
use super::link::Scope;
use super::rules::{MAX_NAME, clipped};
use super::sessions::{Asked, Origin};
use crate::tap::ResponseHead;

/// The request that a response answers.
enum Found {
    /// `odd`: what is wrong with the id, as a flag.
    Own {
        no: RequestNo,
        odd: Option<&'static str>,
    },
    /// A request of another exchange of the session.
    Elsewhere(RequestNo),
    None,
}

impl Core {
    pub(super) fn read_head(&mut self, exchange: &mut Exchange, head: Box<ResponseHead>) {
        let content = Content::of(ResponseFacts::of(&head.headers).content_type);
        let coding = content_encoding(&head.headers).map(Into::into);
        let body = Body::new(content, coding, self.rules.max_message_bytes);
        exchange.down = Some(Down {
            head,
            content,
            body,
            first: None,
            garbled: false,
            messages: 0,
            begun: None,
            last_event: None,
            endpoint: false,
        });
        if exchange.read {
            self.note_response(exchange);
        }
    }

    pub(super) fn read_chunk(
        &mut self,
        exchange: &mut Exchange,
        at: Instant,
        chunk: Bytes,
        events: &mut Vec<SseEvent>,
    ) {
        if !exchange.read {
            // The answer overtook the question's last frame: both are read in their order.
            exchange.early_bytes += chunk.len();
            if exchange.early_bytes <= self.rules.max_message_bytes {
                exchange.early.push((at, chunk));
            } else if let Some(down) = &mut exchange.down {
                down.body.lost = true;
            }
            return;
        }
        let Some(down) = &mut exchange.down else {
            return;
        };
        down.first.get_or_insert(at);
        if exchange.kind == Kind::Plain {
            return;
        }
        down.body.push(chunk, &mut self.budget, events);
        for event in events.drain(..) {
            self.read_event(exchange, event, at);
        }
    }

    pub(super) fn read_event(&mut self, exchange: &mut Exchange, event: SseEvent, at: Instant) {
        let Some(down) = &mut exchange.down else {
            return;
        };
        if let Some(id) = event.id.filter(|id| !id.is_empty()) {
            down.last_event = Some(id.into());
        }
        let announces = exchange.kind == Kind::Stream && event.event.as_deref() == Some("endpoint");
        let text = Text::Collected(event.data);
        if announces {
            return self.announce(exchange, &text, at);
        }
        if text.is_blank() {
            self.each_call(exchange, |call| call.event(at, "priming"));
            return;
        }
        if let Ok((messages, _)) = incoming::read(&text) {
            for message in &messages {
                self.server_message(exchange, message, at);
            }
        } else {
            let after_gap = exchange.down.as_mut().is_some_and(|down| {
                down.garbled |= !down.body.lost;
                down.body.lost
            });
            if !after_gap {
                self.each_call(exchange, |call| {
                    call.event(at, "unreadable");
                    call.flag("framing_error");
                });
            }
        }
    }

    /// A text that is no stream; given back when it is no JSON-RPC.
    pub(super) fn read_text(
        &mut self,
        exchange: &mut Exchange,
        text: Text,
        at: Instant,
    ) -> Option<Text> {
        let json = exchange
            .down
            .as_ref()
            .is_some_and(|down| down.content == Content::Json);
        if let Ok((messages, _)) = incoming::read(&text) {
            // `{"error": …}` alone is how many a server words an HTTP error.
            let speaks = |message: &Incoming<'_>| {
                let named = json && matches!(message.id, IdField::Id(_));
                message.kind != rpc::Kind::Invalid
                    && (named || (message.cut.is_none() && !message.not_v2))
            };
            if messages
                .iter()
                .all(|message| speaks(message) && message.is_complete())
            {
                for message in &messages {
                    self.server_message(exchange, message, at);
                }
                return None;
            }
        }
        if let Some(down) = &mut exchange.down {
            // What comes with 202 is an acknowledgement in whatever words.
            down.garbled |= json && down.head.status != StatusCode::ACCEPTED;
        }
        Some(text)
    }

    /// The two-endpoint transport: this stream is a session, and its messages go to that URI.
    fn announce(&mut self, exchange: &mut Exchange, text: &Text, at: Instant) {
        let uri = String::from_utf8_lossy(text.bytes());
        let target = endpoint_target(&exchange.head.target, uri.trim());
        let upstream = &exchange.head.upstream;
        let key = self.endpoint_key(upstream, &target);
        self.endpoints.insert(key, (), self.secs);
        let identity: &Identity = &exchange.identity;
        let at = super::core::wall(exchange, at);
        let origin = Origin {
            upstream,
            identity,
            client: None,
            version: None,
            at,
        };
        let seat = self.sessions.begin(
            key,
            SessionSource::Protocol,
            &origin,
            &mut self.ids,
            self.secs,
        );
        exchange.seat = Some(seat);
        if let Some(down) = &mut exchange.down {
            down.endpoint = true;
        }
        self.release(exchange);
    }

    fn server_message(&mut self, exchange: &mut Exchange, message: &Incoming<'_>, at: Instant) {
        if let Some(down) = &mut exchange.down {
            down.messages += 1;
        }
        // A stream of its own whose session nothing names; a handshake still waits for its answer.
        if exchange.seat.is_none() && matches!(exchange.kind, Kind::Stream | Kind::Resume) {
            exchange.seat = Some(self.late_seat(exchange, None, None));
        }
        match message.kind {
            rpc::Kind::Response => self.server_response(exchange, message, at),
            rpc::Kind::Request => self.server_request(exchange, message, at),
            rpc::Kind::Notification => self.server_notification(exchange, message, at),
            rpc::Kind::Invalid => {
                let note = self.note_of(message, Direction::ServerToClient);
                let seat = exchange.seat.clone();
                self.note(exchange, seat.as_ref(), at, note);
            }
        }
    }

    fn server_response(&mut self, exchange: &mut Exchange, message: &Incoming<'_>, at: Instant) {
        match self.find(exchange, message) {
            Found::Own { no, odd } => {
                if let (Some(flag), Some(call)) = (odd, self.requests.call(no)) {
                    call.flag(flag);
                }
                self.answered(exchange, no, message, at, true);
            }
            Found::Elsewhere(no) => self.answered(exchange, no, message, at, false),
            Found::None => {
                let mut note = self.note_of(message, Direction::ServerToClient);
                note.flags.push("unmatched".to_owned());
                let seat = exchange.seat.clone();
                self.note(exchange, seat.as_ref(), at, note);
            }
        }
    }

    fn find(&mut self, exchange: &Exchange, message: &Incoming<'_>) -> Found {
        let own = |requests: &mut super::calls::Requests,
                   fits: &dyn Fn(&super::calls::Request) -> bool| {
            exchange
                .requests
                .iter()
                .copied()
                .find(|no| requests.get(*no).is_some_and(|request| fits(request)))
        };
        let requests = &mut self.requests;
        // The one request that an answer without a usable id can mean.
        let only = |requests: &mut super::calls::Requests| {
            let mut open = exchange.requests.iter().copied().filter_map(|no| {
                let request = requests.get(no)?;
                (!request.answered).then_some((no, request.id.is_some()))
            });
            match (open.next(), open.next()) {
                (only, None) => only,
                _ => None,
            }
        };
        let IdField::Id(id) = &message.id else {
            return match only(requests) {
                // What answers an id of `null`, or an error whose sender could not read the id.
                Some((no, named)) if !named || message.is_error() => Found::Own {
                    no,
                    odd: named.then_some("id_missing"),
                },
                _ => Found::None,
            };
        };
        let exact = own(requests, &|request| request.has_id(id) && !request.answered)
            .or_else(|| own(requests, &|request| request.has_id(id)));
        if let Some(no) = exact {
            return Found::Own { no, odd: None };
        }
        let like = |request: &super::calls::Request| {
            !request.answered && request.id.as_ref().is_some_and(|known| known.resembles(id))
        };
        if let Some(no) = own(requests, &like) {
            return Found::Own {
                no,
                odd: Some("id_type_mismatch"),
            };
        }
        let elsewhere = self.find_elsewhere(exchange, id);
        match only(&mut self.requests) {
            // A call known by its headers only has no id to compare.
            Some((no, false)) => Found::Own { no, odd: None },
            // A refusal under an id of the server's own.
            Some((no, true))
                if elsewhere.is_none() && message.is_error() && !exchange.is_success() =>
            {
                Found::Own {
                    no,
                    odd: Some("id_mismatch"),
                }
            }
            _ => elsewhere.map_or(Found::None, Found::Elsewhere),
        }
    }

    /// A request of the session that was sent on another exchange: the one whose stream is resumed here, else one that
    /// still waits, else one that was answered (then this is a repetition). Of several the newest.
    fn find_elsewhere(&mut self, exchange: &Exchange, id: &rpc::RequestId) -> Option<RequestNo> {
        let seat = exchange.seat.as_ref()?;
        let open = self.sessions.peek(&seat.key)?.open.as_slice().to_vec();
        let resumed = match exchange.kind {
            Kind::Resume => super::head::value(&exchange.head.headers, "last-event-id"),
            _ => None,
        };
        open.into_iter()
            .filter_map(|no| {
                let request = self.requests.get(no)?;
                if !request.has_id(id) {
                    return None;
                }
                let answered = request.answered;
                let this = request.call().is_some_and(|call| {
                    resumed.is_some() && call.last_event.as_deref().map(str::as_bytes) == resumed
                });
                Some((this, !answered, no))
            })
            .max()
            .map(|(_, _, no)| no)
    }

    fn server_request(&mut self, exchange: &mut Exchange, message: &Incoming<'_>, at: Instant) {
        let params = Params::of(message.params);
        let kind = method(message).unwrap_or(Method::Other);
        let name = message.method.as_deref().unwrap_or_default();
        let call = self.call_meant(exchange, params.meta.related_task.as_deref());
        if let Some((no, _)) = call
            && let Some(call) = self.requests.call(no)
        {
            call.event(
                at,
                match kind {
                    Method::Elicitation => "elicitation",
                    Method::Sampling => "sampling",
                    _ => name,
                },
            );
        }
        let seat = exchange.seat.clone();
        if let (Some(seat), IdField::Id(id)) = (&seat, &message.id)
            && let Some(active) = self.sessions.peek(&seat.key)
        {
            active.ask(Asked {
                id: id.clone(),
                kind,
                method: clipped(name, MAX_NAME).into(),
                call,
            });
        }
        let mut note = self.note_of(message, Direction::ServerToClient);
        note.call = call.map(|(_, id)| id);
        self.note(exchange, seat.as_ref(), at, note);
    }

    fn server_notification(
        &mut self,
        exchange: &mut Exchange,
        message: &Incoming<'_>,
        at: Instant,
    ) {
        let params = Params::of(message.params);
        let kind = method(message).unwrap_or(Method::Other);
        let call = match (kind, &params.progress_token) {
            // A token nobody gave still belongs to the only call of its stream.
            (Method::Progress, Some(token)) => self
                .call_of_token(exchange, token)
                .or_else(|| self.call_meant(exchange, None)),
            (Method::TaskStatus, _) => {
                let task = params.task_id.as_deref();
                task.and_then(|task| self.call_of_task(exchange, task))
            }
            _ => self.call_meant(exchange, params.meta.related_task.as_deref()),
        };
        if let Some((no, _)) = call
            && let Some(call) = self.requests.call(no)
        {
            call.event(
                at,
                match kind {
                    Method::Progress => "progress",
                    Method::LogMessage => "message",
                    _ => message.method.as_deref().unwrap_or_default(),
                },
            );
        }
        let mut note = self.note_of(message, Direction::ServerToClient);
        note.call = call.map(|(_, id)| id);
        let seat = exchange.seat.clone();
        self.note(exchange, seat.as_ref(), at, note);
        if let (Method::TaskStatus, Some((no, _)), Some(raw)) = (kind, call, message.params) {
            self.task_told(exchange, no, &ResultFacts::of(raw), at);
        }
    }

    /// The one call that a message on this exchange can be about.
    fn call_meant(&mut self, exchange: &Exchange, task: Option<&str>) -> Option<(RequestNo, Uuid)> {
        if let Some(found) = task.and_then(|task| self.call_of_task(exchange, task)) {
            return Some(found);
        }
        let mut meant = exchange.requests.iter().filter_map(|no| {
            let request = self.requests.get(*no)?;
            let no = match &request.what {
                What::Call(_) => *no,
                What::Other(other) => match other.role {
                    Role::Task(call) => call?,
                    _ => return None,
                },
            };
            Some((no, self.requests.call(no)?.record.id))
        });
        match (meant.next(), meant.next()) {
            (Some(only), None) => Some(only),
            _ => None,
        }
    }

    fn call_of_task(&mut self, exchange: &Exchange, task: &str) -> Option<(RequestNo, Uuid)> {
        let seat = exchange.seat.as_ref()?;
        let scope = Scope {
            upstream: &exchange.head.upstream,
            principal: exchange.identity.principal,
        };
        let no = self
            .links
            .task(&scope.task(&self.rules.redactor, seat, task))?;
        Some((no, self.requests.call(no)?.record.id))
    }

    /// The call that a progress token stands for: of this exchange, else of the session.
    fn call_of_token(
        &mut self,
        exchange: &Exchange,
        token: &rpc::RequestId,
    ) -> Option<(RequestNo, Uuid)> {
        let session = exchange
            .seat
            .as_ref()
            .and_then(|seat| self.sessions.peek(&seat.key));
        let others = session
            .map(|active| active.open.as_slice().to_vec())
            .unwrap_or_default();
        exchange
            .requests
            .iter()
            .copied()
            .chain(others.into_iter().rev())
            .find_map(|no| {
                let call = self.requests.call(no)?;
                (call.progress.as_ref() == Some(token)).then_some((no, call.record.id))
            })
    }

    fn each_call(
        &mut self,
        exchange: &Exchange,
        mut with: impl FnMut(&mut super::calls::OpenCall),
    ) {
        for no in &exchange.requests {
            if let Some(call) = self.requests.call(*no) {
                with(call);
            }
        }
    }
}

/// Path and query that an endpoint URI means, seen from the stream that announced it.
fn endpoint_target(stream: &str, uri: &str) -> String {
    let after_scheme = uri
        .split_once("://")
        .map(|(_, rest)| rest)
        .or_else(|| uri.strip_prefix("//"));
    if let Some(rest) = after_scheme {
        return rest
            .find('/')
            .and_then(|at| rest.get(at..))
            .unwrap_or("/")
            .to_owned();
    }
    if uri.starts_with('/') {
        return uri.to_owned();
    }
    let path = stream.split('?').next().unwrap_or_default();
    if uri.starts_with('?') {
        return format!("{path}{uri}");
    }
    let folder = path
        .rfind('/')
        .and_then(|at| path.get(..=at))
        .unwrap_or("/");
    format!("{folder}{uri}")
}

#[cfg(test)]
mod tests {
    use super::endpoint_target;

    #[test]
    fn endpoints_as_clients_resolve_them() {
        for (uri, target) in [
            ("/message?sessionId=1", "/message?sessionId=1"),
            ("http://h.test:1/m?x=1", "/m?x=1"),
            ("//h.test/m", "/m"),
            ("https://h.test", "/"),
            ("message?s=1", "/mcp/message?s=1"),
            ("?s=1", "/mcp/sse?s=1"),
        ] {
            assert_eq!(endpoint_target("/mcp/sse?a=b", uri), target, "{uri}");
        }
    }
}
