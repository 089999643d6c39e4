//! One HTTP exchange under way: its heads, its bodies, and which of its messages wait for an answer.

use std::time::Instant;

use callbox_wire::mcp::Method;
use callbox_wire::rpc::RequestId;
use uuid::Uuid;

use super::body::Body;
use super::calls::OpenCall;
use super::identity::Identity;
use super::sessions::Key;
use crate::tap::{RequestHead, ResponseHead};

/// A request other than `tools/call` that waits for its answer.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) id: RequestId,
    pub(super) method: Method,
    pub(super) name: Box<str>,
    pub(super) cursor: bool,
    /// The task a `tasks/result` or `tasks/get` is about.
    pub(super) task: Option<Box<str>>,
}

/// What an `initialize` said, until its answer tells the session.
#[derive(Debug)]
pub(super) struct Introduced {
    pub(super) client: Option<callbox_store::Client>,
    pub(super) requested: Option<String>,
    pub(super) body: Option<callbox_store::RawJson>,
    pub(super) id: RequestId,
    pub(super) at: Instant,
}

/// Everything about one exchange.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) id: Uuid,
    pub(super) request: Box<RequestHead>,
    pub(super) identity: Identity,
    pub(super) up: Body,
    pub(super) response: Option<Box<ResponseHead>>,
    pub(super) down: Option<Body>,
    pub(super) first_byte: Option<Instant>,
    pub(super) calls: Vec<Box<OpenCall>>,
    pub(super) asked: Vec<Asked>,
    pub(super) introduced: Option<Introduced>,
    pub(super) session: Option<Key>,
    /// Its response stream has event ids: the answer may come after a resume.
    pub(super) resumable: bool,
    /// An MCP message was seen on it.
    pub(super) spoke: bool,
    /// An answer to one of its requests was seen.
    pub(super) answered: bool,
    /// Text of an answer that is no JSON-RPC, redacted.
    pub(super) plain: Option<callbox_store::RawJson>,
    /// The request's body could not be read as JSON-RPC although it claims to be JSON.
    pub(super) unreadable_answer: bool,
    /// The endpoint URI this stream announced (2024-11-05).
    pub(super) endpoint: Option<String>,
}

impl Exchange {
    pub(super) fn is_get(&self) -> bool {
        self.request.method == http::Method::GET
    }

    pub(super) fn status(&self) -> Option<u16> {
        self.response.as_ref().map(|head| head.status.as_u16())
    }

    /// Microseconds since the epoch of a moment of this exchange.
    pub(super) fn wall(&self, at: Instant) -> i64 {
        let since = at.saturating_duration_since(self.request.at);
        self.request
            .at_wall
            .saturating_add(i64::try_from(since.as_micros()).unwrap_or(0))
    }

    pub(super) fn call_with(&mut self, id: &RequestId) -> Option<&mut Box<OpenCall>> {
        self.calls.iter_mut().find(|call| call.rpc_id == *id)
    }
}
