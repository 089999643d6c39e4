//! `[listen]`: the client side.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::order::keys;
use super::{DurationText, PathText, SizeText};

/// The side that clients connect to.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("x-order" = keys::<Self>()))]
pub(crate) struct Listen {
    /// IP address and port to bind, without a host name. `0.0.0.0:8080` is every IPv4 interface, `[::]:8080` every
    /// interface. Port 0 takes a free port, which is printed at start and written to `--ready-file`.
    #[schemars(extend("x-form" = "address", "x-restart" = true, "x-flag" = "--listen"))]
    pub(crate) address: String,
    /// Also accept HTTP/2 without TLS from clients that begin with it (prior knowledge). HTTP/1.1 keeps working on the
    /// same port.
    pub(crate) h2c: bool,
    /// Threads that carry traffic; each has its own connections and its own pool towards every upstream. Without this
    /// key: one for each CPU core.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1024), extend("x-restart" = true), example = 4)]
    pub(crate) workers: Option<usize>,
    /// Client connections open at once. A connection over the limit is answered 503 and closed.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) max_connections: usize,
    /// Time a client has to finish the TLS handshake before its connection is closed.
    pub(crate) tls_timeout: DurationText,
    /// Time a client has to send a whole request head: from the start of the connection, later from the first byte of
    /// the next request. Bodies and idle connections are not limited by it.
    pub(crate) request_head_timeout: DurationText,
    /// How long a stop (SIGTERM) waits for running calls. Idle streams end at once; what still runs at the deadline is
    /// cut. `0s` does not wait.
    pub(crate) drain_timeout: DurationText,
    /// Largest request body that is let through; a larger one is answered 413. Without this key there is no limit.
    /// What is kept in the log has a limit of its own, `record.max_message_bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"64MiB")]
    pub(crate) max_request_body: Option<SizeText>,
    /// What it means when a client closes only its sending side while an answer is under way.
    pub(crate) half_close: HalfClose,
    /// What callbox adds to messages, so that its records can be matched with other logs.
    pub(crate) stamp: Stamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tls: Option<ServerTls>,
}

impl Default for Listen {
    fn default() -> Self {
        Self {
            address: "127.0.0.1:8080".to_owned(),
            h2c: false,
            workers: None,
            max_connections: 10_000,
            tls_timeout: "10s".into(),
            request_head_timeout: "30s".into(),
            drain_timeout: "30s".into(),
            max_request_body: None,
            half_close: HalfClose::Gone,
            stamp: Stamp::RequestId,
            tls: None,
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HalfClose {
    /// The client has left; its call is cancelled upstream. Right for every common HTTP client.
    Gone,
    /// The client may still be reading; the call goes on until a write to it fails.
    Wait,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Stamp {
    /// `x-request-id` on a request that came without one, and on its response unless the server set its own. An id that
    /// a client sent is kept and recorded.
    RequestId,
    /// Nothing is added.
    None,
}

/// Serve HTTPS, with HTTP/1.1 and HTTP/2 as the client prefers. Without this section the listener speaks plain HTTP.
/// The files are read again on SIGHUP.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("x-order" = keys::<Self>(), "required" = ["certificate", "key"]))]
pub(crate) struct ServerTls {
    /// PEM file with the server's certificate chain, its own certificate first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"tls/callbox.crt")]
    pub(crate) certificate: Option<PathText>,
    /// PEM file with the certificate's private key, not encrypted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"tls/callbox.key")]
    pub(crate) key: Option<PathText>,
    /// PEM file with the certificate authorities that client certificates must come from. Without this key clients are
    /// not asked for a certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"tls/client-ca.crt")]
    pub(crate) client_ca: Option<PathText>,
    /// Whether a client must show a certificate. Needs `client_ca`; `required` when that is set and this is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"required")]
    pub(crate) client_certificate: Option<ClientCertificate>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ClientCertificate {
    /// Without a valid certificate the handshake fails.
    Required,
    /// A certificate that is shown must be valid; clients without one are let in.
    Optional,
}
