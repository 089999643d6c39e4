//! `[[upstream]]`: the servers behind callbox.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::order::keys;
use super::{DurationText, PathText};

#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("x-order" = keys::<Self>(), "required" = ["url"]))]
pub(crate) struct Upstream {
    /// Short name in records, metrics and tables: up to 64 letters, digits, `.`, `_` and `-`, beginning with a letter or
    /// digit. Needed as soon as there are several; a single upstream without a name is called `default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"crm")]
    pub(crate) name: Option<String>,
    /// Origin of the server: `http://` or `https://`, host, and the port when it is not 80 or 443. It has no path: every
    /// path goes on as the client sent it, so clients keep theirs (`/mcp`, `/sse`) and only change the origin.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"http://127.0.0.1:3001")]
    pub(crate) url: Option<String>,
    /// HTTP version spoken to the server.
    pub(crate) protocol: Protocol,
    /// Time to find the address and open the TCP connection; then callbox answers 502.
    pub(crate) connect_timeout: DurationText,
    /// Time for the TLS handshake with an `https` server; then callbox answers 502.
    pub(crate) tls_timeout: DurationText,
    /// Time from the end of the request to the head of the response; then callbox answers 504 and the call is recorded
    /// as `timeout`. Without this key there is no limit, because a tool may work for minutes. A response that has begun
    /// is never limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"5m")]
    pub(crate) response_head_timeout: Option<DurationText>,
    /// How long a connection without a request is kept for the next one.
    pub(crate) idle_timeout: DurationText,
    /// Connections without a request that each worker keeps at most; 0 opens a new connection for every request.
    #[schemars(range(min = 0, max = 65_536))]
    pub(crate) max_idle: usize,
    /// What the server sees as `Host`.
    pub(crate) host_header: HostHeader,
    /// Add `X-Forwarded-For`, `X-Forwarded-Host` and `X-Forwarded-Proto` to requests. Off by default: nothing is added
    /// that nobody asked for.
    pub(crate) forwarded: bool,
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub(crate) rule: Option<Match>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tls: Option<ClientTls>,
}

impl Default for Upstream {
    fn default() -> Self {
        Self {
            name: None,
            url: None,
            protocol: Protocol::Auto,
            connect_timeout: "5s".into(),
            tls_timeout: "10s".into(),
            response_head_timeout: None,
            idle_timeout: "90s".into(),
            max_idle: 256,
            host_header: HostHeader::Keep,
            forwarded: false,
            rule: None,
            tls: None,
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Protocol {
    /// HTTP/2 with an `https` server that offers it, else HTTP/1.1.
    Auto,
    /// HTTP/1.1 only.
    Http1,
    /// HTTP/2 only; with an `http` server by prior knowledge.
    Http2,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HostHeader {
    /// What the client sent: callbox has taken over the server's public address, and OAuth metadata stays true.
    Keep,
    /// The authority of `url`: for a server that answers 421 or 403 to a foreign host.
    Rewrite,
}

/// Which requests go to this upstream. With both keys, both must match.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("x-order" = keys::<Self>()))]
pub(crate) struct Match {
    /// Requests whose path is this or lies below it: `/crm` takes `/crm` and `/crm/mcp`, not `/crmx`. The path goes on
    /// unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"/crm")]
    pub(crate) path_prefix: Option<String>,
    /// Requests for this host (`Host` or `:authority`), written without a port; case does not matter.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"crm.example.com")]
    pub(crate) host: Option<String>,
}

/// Trust and identity towards an `https` server. The server's certificate is always verified. The files are read again
/// on SIGHUP.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("x-order" = keys::<Self>()))]
pub(crate) struct ClientTls {
    /// PEM file with the certificate authorities to trust instead of the system's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"tls/upstream-ca.crt")]
    pub(crate) ca: Option<PathText>,
    /// PEM file with the certificate chain that callbox shows to a server which asks for one. Needs `key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"tls/callbox-client.crt")]
    pub(crate) certificate: Option<PathText>,
    /// PEM file with the private key of `certificate`, not encrypted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"tls/callbox-client.key")]
    pub(crate) key: Option<PathText>,
    /// Name to send as SNI and to look for in the server's certificate. Without this key: the host of `url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"mcp.internal")]
    pub(crate) server_name: Option<String>,
}
