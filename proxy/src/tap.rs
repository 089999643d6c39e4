//! The tap: the one door between the data path and the recorder.
//!
//! The data path offers copies of heads, frames and ends, in the order it sees them, and never waits. The queue is
//! bounded by count and by bytes; what does not fit is dropped and counted, traffic is not touched. One observer
//! thread takes what was offered.

mod queue;

use std::net::SocketAddr;
use std::time::Instant;

use bytes::Bytes;
use uuid::Uuid;

pub(crate) use queue::Events;
pub use queue::{DropReason, Tap, TapCounts, TapLimits, TapReceiver, TapWatch, tap};

/// One HTTP request and its response.
pub type ExchangeId = Uuid;

/// Header lines copied out of a head into one allocation: `name: value` lines, each ended by LF, values byte for byte.
///
/// A copy on purpose: header values share the connection's read buffer, and a queue of them would pin it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderText(pub Vec<u8>);

/// A request's head as it came from the client.
#[derive(Clone, Debug)]
pub struct RequestHead {
    /// Wall clock when the head was complete, microseconds since the epoch.
    pub at_wall: i64,
    /// Monotonic clock at the same moment.
    pub at: Instant,
    /// Client's address.
    pub peer: SocketAddr,
    /// Name of the upstream it goes to.
    pub upstream: std::sync::Arc<str>,
    /// Method.
    pub method: http::Method,
    /// Path and query, byte for byte.
    pub target: String,
    /// HTTP version of the client's connection.
    pub version: http::Version,
    /// The value of `x-request-id`, the client's own or the stamped one.
    pub request_id: Option<String>,
    /// All header lines.
    pub headers: HeaderText,
}

/// A response's head as it came from the upstream, or callbox's own fault.
#[derive(Clone, Debug)]
pub struct ResponseHead {
    /// Monotonic clock when it was complete.
    pub at: Instant,
    /// Status.
    pub status: http::StatusCode,
    /// All header lines.
    pub headers: HeaderText,
    /// Set when callbox answered itself: the fault's kind.
    pub fault: Option<&'static str>,
}

/// How one body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyEnd {
    /// As its framing says.
    Complete,
    /// The sender of this body failed (client for a request body, upstream for a response body).
    Error,
    /// Nobody wanted the rest: for a response, the client left; for a request, the upstream stopped reading.
    Cancelled,
    /// A deadline of callbox's own, the drain's included.
    Timeout,
}

/// Which body of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The request's.
    Request,
    /// The response's.
    Response,
}

/// What the data path offers.
///
/// Of one exchange `Request` comes first and `End` last, each once. The two sides go on at the same time, so the
/// request's chunks may come after the response's head; none comes after `End`, and a request whose body was still
/// under way at the end has no `RequestEnd`. When `Request` itself did not fit, nothing of the exchange is offered.
#[derive(Debug)]
pub enum Event {
    /// An exchange began.
    Request(ExchangeId, Box<RequestHead>),
    /// Part of the request's body.
    RequestChunk(ExchangeId, Bytes),
    /// The request's body ended.
    RequestEnd(ExchangeId, BodyEnd),
    /// The response's head is here.
    Response(ExchangeId, Box<ResponseHead>),
    /// Part of the response's body, with the moment it passed.
    ResponseChunk(ExchangeId, Instant, Bytes),
    /// Chunks (or the response's head) of this side were dropped here: the queue was full. Comes before whatever of
    /// that side fitted again, or right before `End`.
    Lost(ExchangeId, Side),
    /// The exchange ended; always the last event of an exchange, sent exactly once.
    End(ExchangeId, Instant, BodyEnd),
    /// Wake-up for `durability = "before-response"`: answer when all that came before on this exchange is committed
    /// (or will never be).
    Flush(ExchangeId, tokio::sync::oneshot::Sender<()>),
}
