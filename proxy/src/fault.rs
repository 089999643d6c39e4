//! Callbox's own faults, and the one place that turns them into answers.
//!
//! Plain text with `callbox-fault: <kind>`, never a JSON-RPC body: a client must be able to tell the hop from the
//! server. A fault of ours or of the upstream is a 5xx, because a 4xx makes modern clients take the server for a
//! legacy one.

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response, StatusCode};

/// The header that marks an answer of callbox's own.
pub const FAULT_HEADER: HeaderName = HeaderName::from_static("callbox-fault");

/// Whose fault it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    /// The client's.
    Client,
    /// The upstream's.
    Upstream,
    /// Callbox's, or its configuration's.
    Callbox,
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// No connection to the upstream.
    UpstreamUnreachable,
    /// The upstream broke off before the answer's head.
    UpstreamLost,
    /// No answer's head within the upstream's deadline.
    HeadTimeout,
    /// No route for this host and path.
    NoRoute,
    /// Too many connections.
    ConnectionLimit,
    /// Not HTTP, or framing that contradicts itself.
    BadRequest,
    /// The body is over the configured limit.
    BodyTooLarge,
}

impl FaultKind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::UpstreamUnreachable,
        Self::UpstreamLost,
        Self::HeadTimeout,
        Self::NoRoute,
        Self::ConnectionLimit,
        Self::BadRequest,
        Self::BodyTooLarge,
    ];

    /// Header and label value.
    pub fn name(self) -> &'static str {
        match self {
            Self::UpstreamUnreachable => "upstream-unreachable",
            Self::UpstreamLost => "upstream-lost",
            Self::HeadTimeout => "head-timeout",
            Self::NoRoute => "no-route",
            Self::ConnectionLimit => "connection-limit",
            Self::BadRequest => "bad-request",
            Self::BodyTooLarge => "body-too-large",
        }
    }

    /// Whose fault it is.
    pub fn party(self) -> Party {
        match self {
            Self::UpstreamUnreachable | Self::UpstreamLost | Self::HeadTimeout => Party::Upstream,
            Self::NoRoute | Self::ConnectionLimit => Party::Callbox,
            Self::BadRequest | Self::BodyTooLarge => Party::Client,
        }
    }

    /// The status it is answered with.
    pub fn status(self) -> StatusCode {
        match self {
            Self::UpstreamUnreachable | Self::UpstreamLost | Self::NoRoute => {
                StatusCode::BAD_GATEWAY
            }
            Self::HeadTimeout => StatusCode::GATEWAY_TIMEOUT,
            Self::ConnectionLimit => StatusCode::SERVICE_UNAVAILABLE,
            Self::BadRequest => StatusCode::BAD_REQUEST,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        }
    }
}

/// One fault: its kind and the sentence for the person who reads the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: FaultKind,
    text: String,
}

impl Fault {
    pub(crate) fn new(kind: FaultKind, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: text.into(),
        }
    }

    /// The answer. Its length is the text's; the caller makes the body.
    pub(crate) fn answer(self) -> Response<Bytes> {
        let text = Bytes::from(format!("callbox: {}\n", self.text));
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = self.kind.status();
        let headers = response.headers_mut();
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("text/plain; charset=utf-8"),
        );
        headers.insert(FAULT_HEADER, HeaderValue::from_static(self.kind.name()));
        headers.insert(CONTENT_LENGTH, HeaderValue::from(text.len()));
        if self.kind.party() == Party::Client {
            // What else the client sent on this connection cannot be told apart from the bad message.
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        *response.body_mut() = text;
        response
    }

    /// The answer as bytes, for where no HTTP machinery is at hand.
    pub(crate) fn raw(self, status: StatusCode) -> Vec<u8> {
        let response = self.answer();
        let mut raw = format!(
            "HTTP/1.1 {} {}\r\n",
            status.as_str(),
            status.canonical_reason().unwrap_or("Error")
        )
        .into_bytes();
        for (name, value) in response.headers() {
            if name != CONNECTION {
                raw.extend_from_slice(name.as_str().as_bytes());
                raw.extend_from_slice(b": ");
                raw.extend_from_slice(value.as_bytes());
                raw.extend_from_slice(b"\r\n");
            }
        }
        raw.extend_from_slice(b"connection: close\r\n\r\n");
        raw.extend_from_slice(response.body());
        raw
    }
}

/// What stands in for hyper's own bare refusal.
pub(crate) fn refusal(status: u16) -> Vec<u8> {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    let text = match status {
        StatusCode::URI_TOO_LONG => "the request's target is too long",
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => "the request's head is too large",
        _ => {
            "this is not an HTTP request that can be forwarded: its head or its framing is malformed"
        }
    };
    Fault::new(FaultKind::BadRequest, text).raw(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_ours_are_never_4xx() {
        for kind in FaultKind::ALL {
            assert_eq!(
                kind.status().is_client_error(),
                kind.party() == Party::Client,
                "{kind:?}"
            );
        }
    }

    #[test]
    fn a_raw_answer_is_whole() {
        let raw = String::from_utf8_lossy(&refusal(414)).into_owned();
        assert_eq!(
            raw,
            "HTTP/1.1 414 URI Too Long\r\ncontent-type: text/plain; charset=utf-8\r\ncallbox-fault: bad-request\r\n\
             content-length: 42\r\nconnection: close\r\n\r\ncallbox: the request's target is too long\n"
        );
    }
}
