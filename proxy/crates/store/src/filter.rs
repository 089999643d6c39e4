//! What a query asks for. The same filter selects stored calls and, for `tail`, calls that arrive.

use uuid::Uuid;

use crate::record::{Call, Micros, Outcome, Session, SessionSource};

/// Which calls. An empty list or `None` does not restrict.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallFilter {
    /// Started at or after.
    pub since: Option<Micros>,
    /// Started before.
    pub until: Option<Micros>,
    /// One of these tools.
    pub tools: Vec<String>,
    /// One of these outcomes.
    pub outcomes: Vec<Outcome>,
    /// Of this session.
    pub session: Option<Uuid>,
    /// Of this principal, as shown (`h:…`).
    pub principal: Option<String>,
    /// Of this tenant.
    pub tenant: Option<String>,
    /// Of this upstream.
    pub upstream: Option<String>,
    /// Under this tool list: its hash or the beginning of it, with or without `sha256:`.
    pub catalogue: Option<String>,
    /// By this client name.
    pub client: Option<String>,
}

impl CallFilter {
    /// Whether `call` is asked for.
    pub fn matches(&self, call: &Call) -> bool {
        self.in_time(call.started_at)
            && (self.tools.is_empty() || self.tools.contains(&call.tool))
            && (self.outcomes.is_empty() || self.outcomes.contains(&call.outcome))
            && self.session.is_none_or(|id| id == call.session.id)
            && self.catalogue.as_deref().is_none_or(|asked| {
                call.catalogue
                    .as_deref()
                    .is_some_and(|hash| hash.starts_with(&full_hash(asked)))
            })
            && self.of_session().matches(&call.session)
    }

    /// Whether a call that began at this moment is asked for.
    pub(crate) fn in_time(&self, started_at: Micros) -> bool {
        self.since.is_none_or(|since| started_at >= since)
            && self.until.is_none_or(|until| started_at < until)
    }

    /// The part of the filter that speaks of the session.
    pub(crate) fn of_session(&self) -> SessionFilter {
        SessionFilter {
            principal: self.principal.clone(),
            tenant: self.tenant.clone(),
            upstream: self.upstream.clone(),
            client: self.client.clone(),
            ..SessionFilter::default()
        }
    }
}

/// A catalogue hash as stored, whatever part of it was given.
pub(crate) fn full_hash(asked: &str) -> String {
    if asked.starts_with("sha256:") {
        asked.to_owned()
    } else {
        format!("sha256:{asked}")
    }
}

/// Which sessions. `None` does not restrict.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionFilter {
    /// Last active at or after.
    pub since: Option<Micros>,
    /// Started before.
    pub until: Option<Micros>,
    /// Found this way.
    pub source: Option<SessionSource>,
    /// Of this principal, as shown (`h:…`).
    pub principal: Option<String>,
    /// Of this tenant.
    pub tenant: Option<String>,
    /// Of this upstream.
    pub upstream: Option<String>,
    /// By this client name.
    pub client: Option<String>,
}

impl SessionFilter {
    /// Whether the session has the attributes asked for (times aside: a session does not know its last activity).
    pub(crate) fn matches(&self, session: &Session) -> bool {
        let same =
            |asked: &Option<String>, has: Option<&str>| asked.is_none() || asked.as_deref() == has;
        self.source.is_none_or(|source| source == session.source)
            && same(&self.principal, session.principal.as_deref())
            && same(&self.tenant, session.tenant.as_deref())
            && same(&self.upstream, Some(&session.upstream))
            && same(
                &self.client,
                session.client.as_ref().map(|client| client.name.as_str()),
            )
    }
}

/// What the beginning of an id turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// A call.
    Call(Uuid),
    /// A session.
    Session(Uuid),
}
