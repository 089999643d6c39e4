//! The resolved settings: what the rest of callbox reads. Parsed addresses, durations and sizes, no strings to interpret.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

/// Everything an operator can set.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Data directory (`data`).
    pub data: PathBuf,
    /// `[listen]`
    pub listen: Listen,
    /// `[[upstream]]`, in the order of the file.
    pub upstreams: Vec<Upstream>,
    /// `[record]`
    pub record: Record,
    /// `[identity]`
    pub identity: Identity,
    /// `[admin]`
    pub admin: Admin,
    /// `[log]`
    pub log: Log,
}

/// The client side.
#[derive(Clone, Debug, PartialEq)]
pub struct Listen {
    /// Address to bind.
    pub address: SocketAddr,
    /// TLS with ALPN for HTTP/1.1 and HTTP/2; none: plain HTTP/1.1.
    pub tls: Option<ServerTls>,
    /// Accept HTTP/2 without TLS (prior knowledge) as well.
    pub h2c: bool,
    /// Threads of the data path, each with its own connections and upstream pool.
    pub workers: NonZeroUsize,
    /// Connections at once; over it: 503.
    pub max_connections: usize,
    /// For the TLS handshake.
    pub tls_timeout: Duration,
    /// From the start of a connection, or of a further request's first byte, to a whole request head.
    pub request_head_timeout: Duration,
    /// How long SIGTERM waits for running calls.
    pub drain_timeout: Duration,
    /// Request bodies over this are refused with 413; none: no limit.
    pub max_request_body: Option<u64>,
    /// Whether a client that closed its sending side only is still there.
    pub half_close: HalfClose,
    /// What to add for correlation.
    pub stamp: Stamp,
}

/// What the end of a client's sending side means while its answer is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HalfClose {
    /// The client left: its call is cancelled upstream.
    Gone,
    /// It may still be reading: go on until a write fails.
    Wait,
}

/// What callbox adds to messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    /// `x-request-id`, when the client sent none.
    RequestId,
    /// Nothing.
    None,
}

/// Certificates of the listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTls {
    /// PEM chain, leaf first.
    pub certificate: PathBuf,
    /// PEM key.
    pub key: PathBuf,
    /// CA of client certificates; none: clients are not asked for one.
    pub client_ca: Option<PathBuf>,
    /// With `client_ca`: whether a certificate is a must.
    pub client_certificate: ClientCertificate,
}

/// Whether clients must show a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertificate {
    /// Without one the handshake fails.
    Required,
    /// Checked when shown.
    Optional,
}

/// One server behind callbox.
#[derive(Clone, Debug, PartialEq)]
pub struct Upstream {
    /// Short name: label in records and metrics.
    pub name: String,
    /// `http` or `https`.
    pub https: bool,
    /// Host name in lower case, or address, to dial; IPv6 without brackets.
    pub host: String,
    /// Port to dial.
    pub port: u16,
    /// Requests whose path is this or below it (`/crm` matches `/crm` and `/crm/x`, not `/crmx`); the path is not changed.
    /// Never `/` and never with a slash at the end.
    pub path_prefix: Option<String>,
    /// Requests for this host (`Host` or `:authority`, without port, any case); in lower case, IPv6 in brackets.
    pub match_host: Option<String>,
    /// HTTP version spoken to it.
    pub protocol: UpstreamProtocol,
    /// Trust and identity for `https`.
    pub tls: ClientTls,
    /// For the TCP connect (name look-up included).
    pub connect_timeout: Duration,
    /// For the TLS handshake.
    pub tls_timeout: Duration,
    /// From the request's end to the response's head; none: no limit.
    pub response_head_timeout: Option<Duration>,
    /// Idle connections older than this are closed.
    pub idle_timeout: Duration,
    /// Idle connections kept per worker.
    pub max_idle: usize,
    /// What goes on as `Host`.
    pub host_header: HostHeader,
    /// Add `X-Forwarded-For`, `-Host` and `-Proto`.
    pub forwarded: bool,
}

impl Upstream {
    /// What the server knows itself as, for `Host`: brackets around IPv6, no port when it is the scheme's own.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        let usual = if self.https { 443 } else { 80 };
        if self.port == usual {
            host
        } else {
            format!("{host}:{}", self.port)
        }
    }
}

/// HTTP version towards an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamProtocol {
    /// HTTP/2 where ALPN offers it (`https`), else HTTP/1.1.
    Auto,
    /// HTTP/1.1 only.
    Http1,
    /// HTTP/2 only; without TLS by prior knowledge.
    Http2,
}

/// TLS towards an upstream.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ClientTls {
    /// PEM file of CAs to trust instead of the system's.
    pub ca: Option<PathBuf>,
    /// PEM chain callbox shows.
    pub certificate: Option<PathBuf>,
    /// Its key.
    pub key: Option<PathBuf>,
    /// Name to verify and send as SNI; none: the host of the URL.
    pub server_name: Option<String>,
}

/// Host policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostHeader {
    /// As the client sent it.
    Keep,
    /// The upstream's own authority.
    Rewrite,
}

/// What is recorded and how it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Arguments, results and message bodies, or only the facts around them.
    pub payloads: Payloads,
    /// Bytes of one message (after decoding) that are kept; the rest is counted and hashed.
    pub max_message_bytes: usize,
    /// Events the tap holds at most.
    pub queue_events: usize,
    /// Bytes the tap holds at most.
    pub queue_bytes: usize,
    /// When a response may go on to the client.
    pub durability: Durability,
    /// With `before-response`: how long a response waits for its commit at most.
    pub durability_timeout: Duration,
    /// Sessions the observer keeps in memory at most.
    pub max_sessions: usize,
    /// A session silent for longer starts anew when it is inferred, and leaves memory in any case.
    pub session_idle: Duration,
    /// Secrets.
    pub redact: Redact,
    /// Age and size limits.
    pub retention: Retention,
}

/// Whether payloads are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payloads {
    /// Redacted, then kept.
    Redacted,
    /// Not kept at all: tool names, outcomes, times and sizes only.
    None,
}

/// When a response may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// At once; its record is committed milliseconds later.
    Commit,
    /// After its record is on disk.
    BeforeResponse,
}

/// Redaction rules.
#[derive(Clone, Debug, PartialEq)]
pub struct Redact {
    /// Whole-word key names whose values are replaced, any case or separator.
    pub keys: Vec<String>,
    /// Content detectors that are on.
    pub detectors: Vec<Detector>,
    /// Per tool: JSON pointers into arguments and results.
    pub pointers: Vec<RedactPointer>,
}

/// A value to replace by its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedactPointer {
    /// Tool name, or `*`.
    pub tool: String,
    /// RFC 6901 pointer; `*` as a member stands for any.
    pub pointer: String,
}

/// Content detectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Detector {
    /// PEM blocks.
    Pem,
    /// JSON web tokens.
    Jwt,
    /// Key shapes of the large clouds and services.
    CloudKey,
    /// Payment cards: grouping and checksum.
    Card,
    /// E-mail addresses.
    Email,
    /// Phone numbers.
    Phone,
    /// IBANs: checksum.
    Iban,
    /// User and password in URLs, and secret-named query parameters.
    UrlCredential,
    /// US social security number shape.
    Ssn,
}

/// How long the log keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Older calls go.
    pub max_age: Duration,
    /// Bytes on disk; the oldest go first.
    pub max_bytes: u64,
}

/// Who is calling.
#[derive(Clone, Debug, PartialEq)]
pub struct Identity {
    /// Where the principal comes from.
    pub principal: IdentitySource,
    /// Where the tenant comes from.
    pub tenant: Option<IdentitySource>,
    /// Baggage members or `_meta` keys that name a conversation, in order of preference.
    pub conversation: Vec<String>,
}

/// Where an identity is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdentitySource {
    /// Value of a request header.
    Header(String),
    /// Claim of the bearer token, not verified: marked asserted.
    Claim(String),
}

/// The admin listener.
#[derive(Clone, Debug, PartialEq)]
pub struct Admin {
    /// Address to bind.
    pub address: SocketAddr,
    /// Bearer token asked for on `/metrics` and `/readyz`.
    pub token: Option<Secret>,
}

/// callbox's own log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// Filter, e.g. `info` or `info,callbox_proxy=debug`.
    pub level: String,
    /// Lines for people or for machines.
    pub format: LogFormat,
}

/// Form of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Text.
    Human,
    /// One JSON object a line.
    Json,
}

/// A secret value: prints nothing.
#[derive(Clone)]
pub struct Secret(secrecy::SecretString);

impl Secret {
    /// Wraps a value.
    pub fn new(value: String) -> Self {
        Self(value.into())
    }

    /// The value itself, for the one comparison that needs it.
    pub fn expose(&self) -> &str {
        secrecy::ExposeSecret::expose_secret(&self.0)
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }
}
