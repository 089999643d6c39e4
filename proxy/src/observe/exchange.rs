//! One exchange while it is under way.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use callbox_store::Message;
use uuid::Uuid;

use super::body::{Body, Content};
use super::calls::RequestNo;
use super::identity::Identity;
use super::sessions::Seat;
use crate::tap::{RequestHead, ResponseHead};

/// State of one exchange.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) id: Uuid,
    pub(super) head: Arc<RequestHead>,
    pub(super) identity: Identity,
    pub(super) up: Body,
    /// The request was read, as far as it came.
    pub(super) read: bool,
    pub(super) down: Option<Down>,
    pub(super) seat: Option<Seat>,
    /// Requests that it carried.
    pub(super) requests: Vec<RequestNo>,
    /// Calls that came on other exchanges and were answered on this one.
    pub(super) adopted: Vec<RequestNo>,
    /// Messages whose session is not known yet.
    pub(super) held: Vec<Box<Message>>,
    /// Parts of the response that overtook the request.
    pub(super) early: Vec<(Instant, Bytes)>,
    pub(super) early_bytes: usize,
    pub(super) kind: Kind,
    pub(super) modern: bool,
    pub(super) batch: bool,
    /// Something of it went to the log.
    pub(super) produced: bool,
}

/// What an exchange is to MCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing: authorization, health, pages.
    Plain,
    /// A POST with messages.
    Messages,
    /// A GET that asks for a stream of the server's own messages.
    Stream,
    /// A GET that goes on with a stream that broke.
    Resume,
    /// A DELETE of a session.
    Delete,
}

/// Its response.
#[derive(Debug)]
pub(super) struct Down {
    pub(super) head: Box<ResponseHead>,
    pub(super) content: Content,
    pub(super) body: Body,
    /// First byte of the body.
    pub(super) first: Option<Instant>,
    /// Events or texts that are no JSON-RPC.
    pub(super) garbled: bool,
    /// JSON-RPC messages read.
    pub(super) messages: u64,
    /// Bytes of an event that never ended.
    pub(super) begun: Option<u64>,
    pub(super) last_event: Option<Box<str>>,
    /// The endpoint that was announced on it belongs to this session.
    pub(super) endpoint: bool,
}

impl Exchange {
    pub(super) fn status(&self) -> Option<u16> {
        self.down.as_ref().map(|down| down.head.status.as_u16())
    }

    pub(super) fn is_success(&self) -> bool {
        self.down
            .as_ref()
            .is_some_and(|down| down.head.status.is_success())
    }

    pub(super) fn is_stream(&self) -> bool {
        self.down
            .as_ref()
            .is_some_and(|down| down.content == Content::Events)
    }
}
