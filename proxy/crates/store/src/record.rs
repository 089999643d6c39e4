//! What the log holds, in the words of the wire: calls, messages, sessions, catalogues.
//!
//! Plain values without SQL. The observer builds them, the writer stores them, the reader gives them back;
//! their JSON form is the one users see (`callbox.call/1`, `callbox.session/1`, `callbox.message/1`).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

/// JSON text exactly as it was on the wire (after redaction): spelling of numbers and strings kept.
pub type RawJson = Box<RawValue>;

/// Microseconds since the Unix epoch, UTC.
pub type Micros = i64;

/// How the last exchange of a call ended on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Both bodies ended as HTTP says they should.
    Complete,
    /// The client left before the answer was whole.
    ClientGone,
    /// The upstream broke off, or could not be reached.
    UpstreamLost,
    /// A deadline of callbox's own passed.
    ProxyTimeout,
    /// Not ended yet (or callbox was killed before it saw the end).
    Open,
}

/// What became of a call. See the design page for the meaning of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A result without `isError`.
    Ok,
    /// A result with `isError: true`.
    ToolError,
    /// A JSON-RPC error.
    RpcError,
    /// An HTTP answer without a JSON-RPC one.
    HttpError,
    /// A deadline of callbox's own passed.
    Timeout,
    /// The client cancelled it with a notification.
    Cancelled,
    /// The client left first.
    Aborted,
    /// The upstream broke.
    Lost,
    /// An answer that could not be decoded or parsed.
    Unreadable,
    /// A task or an `input_required` not concluded yet, or a call still open.
    Pending,
    /// Never concluded.
    Abandoned,
}

impl Outcome {
    /// Its word, in JSON, metrics and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ToolError => "tool_error",
            Self::RpcError => "rpc_error",
            Self::HttpError => "http_error",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Aborted => "aborted",
            Self::Lost => "lost",
            Self::Unreadable => "unreadable",
            Self::Pending => "pending",
            Self::Abandoned => "abandoned",
        }
    }
}

/// How a session was found, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionSource {
    /// `Mcp-Session-Id`, or the endpoint URI of the 2024-11-05 transport.
    Protocol,
    /// A conversation id that the client states (`baggage`, `_meta`).
    Conversation,
    /// The task that the message belongs to.
    Task,
    /// A chain of equal `requestState` values.
    RequestState,
    /// The trace id.
    Trace,
    /// Principal, client and upstream within an idle gap.
    Inferred,
}

/// How much of a body the record holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capture {
    /// All of it.
    Full,
    /// The beginning; the cap of the configuration was reached.
    Truncated,
    /// None of it: its content coding is unknown or broken.
    Undecoded,
    /// Part or all of it was dropped before the observer saw it.
    Dropped,
}

/// Capture state of both directions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Captured {
    /// The request's body.
    pub request: Capture,
    /// The response's body.
    pub response: Capture,
    /// Why not `full`, e.g. `over 1048576 bytes: 5242880 bytes, sha256:…`.
    pub reason: Option<String>,
}

/// Self-declared name and version of the client.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Client {
    /// `clientInfo.name`
    pub name: String,
    /// `clientInfo.version`
    pub version: Option<String>,
}

/// A session: the protocol's own, or an inferred conversation (`source` says which).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// UUID v7, minted when it was first seen.
    pub id: Uuid,
    /// How it was found.
    pub source: SessionSource,
    /// Keyed digest of what identifies it, to find it again after a restart. Never shown.
    #[serde(skip)]
    pub key: [u8; 16],
    /// Name of the upstream.
    pub upstream: String,
    /// `h:` and the keyed digest of the credential; none without a credential.
    pub principal: Option<String>,
    /// Tenant as the configuration finds it.
    pub tenant: Option<String>,
    /// Whether `principal` or `tenant` came from an unverified claim.
    pub asserted: bool,
    /// Client as it introduced itself.
    pub client: Option<Client>,
    /// Negotiated (or assumed) revision.
    pub protocol_version: Option<String>,
    /// First message.
    pub started_at: Micros,
}

/// One SSE event of a call's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallEvent {
    /// From the call's start.
    pub offset_ms: f64,
    /// `progress`, `message`, `elicitation`, `sampling`, `priming`, `response`, or the method.
    pub kind: String,
}

/// The sampler's decision, stored with every call whether chosen or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Inclusion probability in force when it was decided.
    pub probability: f64,
    /// Whether the call was chosen.
    pub selected: bool,
}

/// One header as it was, its value redacted where it is a credential.
pub type HeaderLine = (String, String);

/// The HTTP side of a call, for export as HAR. Bodies are in the call itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Http {
    /// Request method.
    pub method: String,
    /// Path and query as sent, secrets in the query replaced.
    pub target: String,
    /// `HTTP/1.1` or `HTTP/2`.
    pub version: String,
    /// Request headers, in order.
    pub request_headers: Vec<HeaderLine>,
    /// Response headers, in order.
    pub response_headers: Vec<HeaderLine>,
}

/// One logical `tools/call`, all its legs joined.
#[derive(Clone, Debug)]
pub struct Call {
    /// UUID v7, minted by callbox when the request was seen.
    pub id: Uuid,
    /// The HTTP exchange that carried the request (the last leg's, when there are several).
    pub exchange_id: Uuid,
    /// `x-request-id`: the client's own, or the one callbox stamped.
    pub request_id: Option<String>,
    /// The session it belongs to.
    pub session: Arc<Session>,
    /// Position among the session's calls, from 1.
    pub seq: u32,
    /// Revision of this exchange.
    pub protocol_version: Option<String>,
    /// 32 hex digits, from `_meta.traceparent`, else from the header.
    pub trace_id: Option<String>,
    /// 16 hex digits: the parent span of the same source.
    pub span_id: Option<String>,
    /// JSON-RPC id as spelled.
    pub jsonrpc_id: RawJson,
    /// `params.name`
    pub tool: String,
    /// `params.arguments`
    pub arguments: Option<RawJson>,
    /// What became of it.
    pub outcome: Outcome,
    /// `result` of the answer.
    pub result: Option<RawJson>,
    /// `error` of the answer; for an HTTP answer without JSON-RPC a JSON string with the text the client read.
    pub error: Option<RawJson>,
    /// How the last exchange ended.
    pub end: End,
    /// HTTP status of the exchange that carried the request.
    pub http_status: Option<u16>,
    /// When the request's head was complete.
    pub started_at: Micros,
    /// From there to the answer's first byte, microseconds.
    pub first_byte_us: Option<u64>,
    /// From there to the end of the answer, microseconds; none while open.
    pub duration_us: Option<u64>,
    /// Body bytes of the request as on the wire.
    pub request_bytes: u64,
    /// Body bytes of the response as on the wire.
    pub response_bytes: u64,
    /// Exchanges joined into this call.
    pub legs: u32,
    /// Answer to an elicitation during the call: `accept`, `decline` or `cancel`.
    pub confirmation: Option<String>,
    /// Content hash of the tool list in force, `sha256:…`.
    pub catalogue: Option<String>,
    /// How much of it is here.
    pub capture: Captured,
    /// Offsets of the answer's events.
    pub events: Vec<CallEvent>,
    /// Facts worth a flag; an open list.
    pub flags: Vec<String>,
    /// The sampling decision; none until a sampler is configured.
    pub sample: Option<Sample>,
    /// HTTP side of the (last) exchange.
    pub http: Http,
}

/// Who sent a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the client.
    ClientToServer,
    /// From the server.
    ServerToClient,
}

/// Any other JSON-RPC message of a session: the evidence around the calls.
#[derive(Clone, Debug)]
pub struct Message {
    /// UUID v7.
    pub id: Uuid,
    /// The exchange it was on.
    pub exchange_id: Uuid,
    /// Its session.
    pub session: Arc<Session>,
    /// Who sent it.
    pub direction: Direction,
    /// `request`, `response`, `notification`, `invalid`, `http` (an exchange without JSON-RPC that matters, e.g. DELETE).
    pub kind: String,
    /// Method; of a response, the method it answers when known.
    pub method: Option<String>,
    /// JSON-RPC id as spelled.
    pub jsonrpc_id: Option<RawJson>,
    /// The call it belongs to, when known.
    pub call: Option<Uuid>,
    /// When it was whole.
    pub at: Micros,
    /// HTTP status of its exchange, when known.
    pub http_status: Option<u16>,
    /// `params`, `result` or `error` (redacted).
    pub body: Option<RawJson>,
    /// Facts worth a flag.
    pub flags: Vec<String>,
}

/// One assembled `tools/list`.
#[derive(Clone, Debug)]
pub struct Catalogue {
    /// `sha256:` and the digest of the canonical tools array.
    pub hash: String,
    /// The upstream that served it.
    pub upstream: String,
    /// When this content was first seen.
    pub seen_at: Micros,
    /// The `tools` array as served (pages joined).
    pub tools: RawJson,
}
