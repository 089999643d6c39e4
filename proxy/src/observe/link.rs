//! Which session an exchange belongs to, and how that is known.

use std::sync::Arc;

use callbox_store::{Client, Session, SessionSource};
use callbox_wire::mcp::{ClientInfo, Meta, trace};
use uuid::Uuid;

use super::Observer;
use super::exchange::Exchange;
use super::head;
use super::sessions::{Active, Key};

/// What a message says about where it belongs.
#[derive(Debug, Default)]
pub(super) struct Hints<'a> {
    pub(super) meta: Option<&'a Meta<'a>>,
    pub(super) version: Option<&'a str>,
    pub(super) modern: bool,
    pub(super) task: Option<&'a str>,
    pub(super) request_state: Option<&'a str>,
}

impl Observer {
    /// The session of an exchange; made when it is new.
    pub(super) fn session(&mut self, exchange: &mut Exchange, hints: &Hints<'_>) -> Key {
        if let Some(key) = exchange.session {
            return key;
        }
        let (key, source) = self.key(exchange, hints);
        let client = hints
            .meta
            .and_then(|meta| meta.client_info)
            .and_then(client);
        self.join(exchange, key, source, client, hints.version);
        key
    }

    fn key(&self, exchange: &Exchange, hints: &Hints<'_>) -> (Key, SessionSource) {
        let headers = &exchange.request.headers;
        if !hints.modern {
            if let Some(session) = head::value(headers, "mcp-session-id") {
                return (
                    self.digest(exchange, "session", session),
                    SessionSource::Protocol,
                );
            }
            if let Some(key) = self.endpoints.get(&exchange.request.target) {
                return (*key, SessionSource::Protocol);
            }
        }
        let baggage = hints
            .meta
            .and_then(|meta| meta.baggage.as_deref())
            .or_else(|| head::value(headers, "baggage"));
        for name in &self.rules.conversation {
            let stated = hints
                .meta
                .and_then(|meta| meta.named(name))
                .or_else(|| baggage.and_then(|baggage| trace::baggage_member(baggage, name)));
            if let Some(stated) = stated {
                return (
                    self.digest(exchange, "conversation", &stated),
                    SessionSource::Conversation,
                );
            }
        }
        if let Some(task) = hints.task
            && let Some(key) = self.chains.get(&self.digest(exchange, "task", task))
        {
            return (*key, SessionSource::Task);
        }
        if let Some(state) = hints.request_state
            && let Some(key) = self.chains.get(&self.digest(exchange, "state", state))
        {
            return (*key, SessionSource::RequestState);
        }
        let parent = hints
            .meta
            .and_then(|meta| meta.traceparent.as_deref())
            .or_else(|| head::value(headers, "traceparent"))
            .and_then(trace::TraceParent::parse);
        if hints.modern
            && let Some(parent) = parent
        {
            return (
                self.digest(exchange, "trace", parent.trace),
                SessionSource::Trace,
            );
        }
        let client = hints
            .meta
            .and_then(|meta| meta.client_info)
            .and_then(ClientInfo::of);
        let name = client.map(|client| client.name).unwrap_or_default();
        let peer = if exchange.identity.principal.is_some() {
            String::new()
        } else {
            exchange.request.peer.ip().to_string()
        };
        (
            self.digest(exchange, "inferred", &format!("{name}\0{peer}")),
            SessionSource::Inferred,
        )
    }

    /// Digest of something that means a session only for this upstream and principal: ids of others never meet.
    pub(super) fn digest(&self, exchange: &Exchange, kind: &str, value: &str) -> Key {
        let principal = exchange.identity.principal.as_deref().unwrap_or_default();
        let text = format!("{}\0{principal}\0{value}", exchange.request.upstream);
        self.rules.redactor.digest(kind, text.as_bytes())
    }

    /// Puts an exchange into a session, which is made or found in the log when it is not in memory.
    pub(super) fn join(
        &mut self,
        exchange: &mut Exchange,
        key: Key,
        source: SessionSource,
        client: Option<Client>,
        version: Option<&str>,
    ) {
        exchange.session = Some(key);
        let now = exchange.request.at;
        if let Some(active) = self.sessions.get(&key) {
            active.seen = active.seen.max(now);
            let learned = (client.is_some() && active.session.client.is_none())
                || (version.is_some() && active.session.protocol_version.is_none());
            if learned {
                let mut session = (*active.session).clone();
                session.client = session.client.or(client);
                session.protocol_version = session.protocol_version.or(version.map(str::to_owned));
                active.session = Arc::new(session);
            }
            return;
        }
        // Only ids that outlive a restart are worth a look into the log.
        let kept = matches!(
            source,
            SessionSource::Protocol | SessionSource::Conversation
        );
        let (session, calls) = kept
            .then(|| (self.find)(&key))
            .flatten()
            .unwrap_or_else(|| {
                let session = Session {
                    id: self.next_id(exchange.request.at_wall),
                    source,
                    key,
                    upstream: exchange.request.upstream.to_string(),
                    principal: exchange.identity.principal.clone(),
                    tenant: exchange.identity.tenant.clone(),
                    asserted: exchange.identity.asserted,
                    client,
                    protocol_version: version.map(str::to_owned),
                    started_at: exchange.request.at_wall,
                };
                (session, 0)
            });
        let active = Active {
            session: Arc::new(session),
            calls,
            seen: now,
            catalogue: None,
            more: None,
        };
        for gone in self.sessions.insert(key, active) {
            self.give_up(gone);
        }
    }

    pub(super) fn next_id(&mut self, wall: i64) -> Uuid {
        self.ids.next(wall)
    }

    /// The answer to `initialize` told which session this is.
    pub(super) fn settle_session(&mut self, exchange: &mut Exchange) {
        if exchange.introduced.is_none() || exchange.session.is_some() {
            return;
        }
        let Some(response) = &exchange.response else {
            return;
        };
        // A server may mint an id on any answer; only that of a successful initialize counts.
        let minted = response
            .status
            .is_success()
            .then(|| head::value(&response.headers, "mcp-session-id"))
            .flatten();
        let endpoint = self.endpoints.get(&exchange.request.target).copied();
        let client = exchange
            .introduced
            .as_ref()
            .and_then(|introduced| introduced.client.clone());
        let (key, source) = match (minted, endpoint) {
            (Some(minted), _) => (
                self.digest(exchange, "session", minted),
                SessionSource::Protocol,
            ),
            (None, Some(key)) => (key, SessionSource::Protocol),
            (None, None) => {
                let name = client
                    .as_ref()
                    .map(|client| client.name.clone())
                    .unwrap_or_default();
                let peer = if exchange.identity.principal.is_some() {
                    String::new()
                } else {
                    exchange.request.peer.ip().to_string()
                };
                (
                    self.digest(exchange, "inferred", &format!("{name}\0{peer}")),
                    SessionSource::Inferred,
                )
            }
        };
        self.join(exchange, key, source, client, None);
    }

    /// A stream announced where its client is to post (2024-11-05): both are one session.
    pub(super) fn announce(&mut self, exchange: &mut Exchange, uri: &str) {
        let target = resolve(&exchange.request.target, uri);
        let key = self.digest(exchange, "endpoint", &target);
        self.endpoints.insert(target.clone(), key);
        exchange.endpoint = Some(target);
        self.join(exchange, key, SessionSource::Protocol, None, None);
    }

    /// A list applies to the session, and to others of the same principal that never list.
    pub(super) fn catalogue_of(&self, exchange: &Exchange, active: &Active) -> Option<Arc<str>> {
        active.catalogue.clone().or_else(|| {
            let place = (
                Arc::clone(&exchange.request.upstream),
                exchange.identity.principal.clone(),
            );
            self.catalogues.get(&place).cloned()
        })
    }
}

pub(super) fn client(raw: &serde_json::value::RawValue) -> Option<Client> {
    ClientInfo::of(raw).map(|info| Client {
        name: info.name,
        version: info.version,
    })
}

/// Path and query of an announced URI, as the client will send it.
fn resolve(base: &str, uri: &str) -> String {
    let uri = uri.trim();
    if let Some((_, rest)) = uri.split_once("://") {
        return rest
            .find('/')
            .and_then(|slash| rest.get(slash..))
            .unwrap_or("/")
            .to_owned();
    }
    if uri.starts_with('/') {
        return uri.to_owned();
    }
    let path = base.split('?').next().unwrap_or_default();
    let folder = path
        .rfind('/')
        .and_then(|slash| path.get(..=slash))
        .unwrap_or("/");
    format!("{folder}{uri}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announced_uris_are_resolved_as_a_client_does() {
        assert_eq!(
            resolve("/sse", "/message?sessionId=1"),
            "/message?sessionId=1"
        );
        assert_eq!(resolve("/a/sse?x", "message?s=1"), "/a/message?s=1");
        assert_eq!(resolve("/sse", "http://h:1/m?s=1"), "/m?s=1");
        assert_eq!(resolve("/sse", "http://h:1"), "/");
    }
}
