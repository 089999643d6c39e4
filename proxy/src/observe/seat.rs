//! Which session a request belongs to: the protocol's own, or the strongest helper there is.

use std::sync::Arc;

use callbox_store::{Client, SessionSource};
use callbox_wire::mcp::trace::{TraceParent, baggage_member};
use callbox_wire::mcp::{ClientInfo, Params};

use super::bounded::Key;
use super::core::Core;
use super::head::{RequestFacts, value};
use super::identity::Identity;
use super::link::Scope;
use super::rules::{MAX_NAME, clipped};
use super::sessions::{Origin, Seat};
use crate::tap::RequestHead;

/// A request as far as all its messages share it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading<'a> {
    pub(super) head: &'a RequestHead,
    pub(super) facts: RequestFacts<'a>,
    pub(super) identity: &'a Identity,
    pub(super) modern: bool,
    pub(super) version: Option<&'a str>,
    pub(super) assumed: bool,
    pub(super) batch: bool,
    /// Key of the session that the request names, by header or by endpoint.
    pub(super) named: Option<Key>,
}

impl Reading<'_> {
    pub(super) fn scope(&self) -> Scope<'_> {
        Scope {
            upstream: &self.head.upstream,
            principal: self.identity.principal,
        }
    }

    fn origin<'a>(&'a self, client: Option<&'a Client>) -> Origin<'a> {
        Origin {
            upstream: &self.head.upstream,
            identity: self.identity,
            client,
            version: self.version.filter(|version| version.len() <= MAX_NAME),
            at: self.head.at_wall,
        }
    }
}

/// Trace id and parent span: the message's own context, else HTTP's.
pub(super) fn trace<'a>(
    params: &'a Params<'_>,
    facts: &RequestFacts<'a>,
) -> Option<TraceParent<'a>> {
    params
        .meta
        .traceparent
        .as_deref()
        .and_then(TraceParent::parse)
        .or_else(|| facts.traceparent.and_then(TraceParent::parse))
}

impl Core {
    /// Key of the session that a session header names.
    pub(super) fn session_key(&self, upstream: &str, id: &[u8]) -> Key {
        Scope {
            upstream,
            principal: None,
        }
        .digest(&self.rules.redactor, "session", &[id])
    }

    /// Key of the session that an endpoint URI stands for.
    pub(super) fn endpoint_key(&self, upstream: &str, target: &str) -> Key {
        Scope {
            upstream,
            principal: None,
        }
        .digest(&self.rules.redactor, "endpoint", &[target.as_bytes()])
    }

    /// The protocol session under a key; one of their own for those whose credential is another.
    pub(super) fn protocol_seat(&mut self, key: Key, origin: &Origin<'_>) -> Seat {
        let redactor = &self.rules.redactor;
        let scope = Scope {
            upstream: origin.upstream,
            principal: origin.identity.principal,
        };
        let other = || scope.digest(redactor, "other principal", &[&key]);
        self.sessions
            .protocol_seat(key, other, origin, &mut self.ids, self.secs)
    }

    /// The session of a request's message.
    pub(super) fn seat_of(&mut self, reading: &Reading<'_>, params: &Params<'_>) -> Seat {
        let client = client_of(params);
        if let Some(key) = reading.named.filter(|_| !reading.modern) {
            return self.protocol_seat(key, &reading.origin(client.as_ref()));
        }
        if let Some(key) = self.conversation(reading, params) {
            let origin = reading.origin(client.as_ref());
            return self.sessions.seat(
                key,
                SessionSource::Conversation,
                &origin,
                &mut self.ids,
                self.secs,
            );
        }
        let scope = reading.scope();
        if let Some(task) = params.task_id.as_deref() {
            let key = scope.digest(&self.rules.redactor, "task", &[task.as_bytes()]);
            let call = self
                .links
                .task(&key)
                .and_then(|no| self.requests.get(no)?.seat.clone());
            if let Some(seat) = call {
                return seat;
            }
        }
        if let Some(trace) = trace(params, &reading.facts) {
            let key = scope.digest(&self.rules.redactor, "trace", &[trace.trace.as_bytes()]);
            let origin = reading.origin(client.as_ref());
            return self.sessions.seat(
                key,
                SessionSource::Trace,
                &origin,
                &mut self.ids,
                self.secs,
            );
        }
        if let Some(task) = params.task_id.as_deref() {
            let key = scope.digest(&self.rules.redactor, "task session", &[task.as_bytes()]);
            let origin = reading.origin(client.as_ref());
            return self
                .sessions
                .seat(key, SessionSource::Task, &origin, &mut self.ids, self.secs);
        }
        self.inferred_seat(reading, client)
    }

    /// Without any id: principal, client and upstream within an idle gap. Without a credential the address stands in.
    pub(super) fn inferred_seat(&mut self, reading: &Reading<'_>, client: Option<Client>) -> Seat {
        let client = match client {
            client if reading.modern => client,
            Some(client) => {
                let hint = self.hint_key(reading);
                self.hints.insert(hint, client.clone(), self.secs);
                Some(client)
            }
            None if self.hints.is_empty() => None,
            None => {
                let hint = self.hint_key(reading);
                self.hints.get(&hint, self.secs).cloned()
            }
        };
        let (name, version) = client.as_ref().map_or(("", ""), |client| {
            (
                client.name.as_str(),
                client.version.as_deref().unwrap_or_default(),
            )
        });
        let address = match reading.identity.principal {
            Some(_) => String::new(),
            None => reading.head.peer.ip().to_string(),
        };
        let tenant = reading.identity.tenant.as_deref().unwrap_or_default();
        let parts = [
            name.as_bytes(),
            version.as_bytes(),
            address.as_bytes(),
            tenant.as_bytes(),
        ];
        let key = reading
            .scope()
            .digest(&self.rules.redactor, "inferred", &parts);
        let origin = reading.origin(client.as_ref());
        self.sessions.seat(
            key,
            SessionSource::Inferred,
            &origin,
            &mut self.ids,
            self.secs,
        )
    }

    /// Where a client's introduction is remembered when nothing else can.
    fn hint_key(&self, reading: &Reading<'_>) -> Key {
        let agent = value(&reading.head.headers, "user-agent").unwrap_or_default();
        let address = reading.head.peer.ip().to_string();
        reading.scope().digest(
            &self.rules.redactor,
            "introduction",
            &[agent, address.as_bytes()],
        )
    }

    /// Key of the conversation that a client states.
    fn conversation(&self, reading: &Reading<'_>, params: &Params<'_>) -> Option<Key> {
        for name in &self.rules.conversation {
            let stated = params
                .meta
                .named(name)
                .or_else(|| {
                    baggage_member(params.meta.baggage.as_deref()?, name)
                        .map(|id| id.into_owned().into())
                })
                .or_else(|| baggage_member(reading.facts.baggage?, name));
            if let Some(id) = stated.filter(|id| !id.is_empty()) {
                let parts = [name.as_bytes(), id.as_bytes()];
                return Some(
                    reading
                        .scope()
                        .digest(&self.rules.redactor, "conversation", &parts),
                );
            }
        }
        None
    }

    /// The negotiated version of a session that a request names.
    pub(super) fn version_of(&mut self, key: &Key) -> Option<Arc<callbox_store::Session>> {
        if !self.sessions.knows(key, self.secs) {
            return None;
        }
        self.sessions
            .peek(key)
            .map(|active| Arc::clone(&active.session))
    }
}

/// Who a message says its client is.
pub(super) fn client_of(params: &Params<'_>) -> Option<Client> {
    let info = params.meta.client_info.or(params.client_info)?;
    ClientInfo::of(info).map(|info| Client {
        name: clipped(&info.name, MAX_NAME),
        version: info.version.map(|version| clipped(&version, MAX_NAME)),
    })
}
