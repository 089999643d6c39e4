//! Which header fields are the hop's own, and the few that callbox sets.
//!
//! All else passes as it came, repeated fields in order. Fields that MCP or HTTP gives an end-to-end meaning stay even
//! when `Connection` names them: a client could otherwise make the hop drop its own credentials or session.

use http::header::{CONNECTION, HeaderMap, HeaderName, HeaderValue, TE, TRANSFER_ENCODING};

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
pub(crate) const MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");

/// Never taken for hop-by-hop, whatever `Connection` says.
const END_TO_END: [&str; 16] = [
    "authorization",
    "cache-control",
    "cookie",
    "date",
    "etag",
    "expect",
    "host",
    "last-event-id",
    "origin",
    "retry-after",
    "server",
    "set-cookie",
    "vary",
    "www-authenticate",
    "x-accel-buffering",
    "x-request-id",
];
/// The same, by how the name begins.
const END_TO_END_PREFIXES: [&str; 5] = ["mcp-", "content-", "accept", "access-control-", "trace"];

/// Removes what is between the client and callbox, or between callbox and the upstream, only.
///
/// `Transfer-Encoding` and `Trailer` are left to the caller: what they say holds on the other side, too, when that is
/// HTTP/1.1 and the body passes as it is.
pub(crate) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok())
        .filter(is_hop_option)
        .collect();
    // Built anew, because `HeaderMap::remove` moves the last field into the gap: the order would change.
    let all = std::mem::take(headers);
    headers.reserve(all.len());
    let mut current = None;
    for (name, value) in all {
        if let Some(name) = name {
            let keep = !is_hop_by_hop(&name) && !named.contains(&name);
            current = keep.then_some(name);
        }
        if let Some(name) = &current {
            headers.append(name.clone(), value);
        }
    }
}

/// What the names alone tell, found in one pass: a look-up for each would cost more than the pass.
#[expect(clippy::struct_excessive_bools, reason = "a set of independent facts")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    /// Something is the hop's own.
    pub(crate) hop_by_hop: bool,
    pub(crate) te: bool,
    pub(crate) expect: bool,
    pub(crate) request_id: bool,
    pub(crate) mcp_method: bool,
    pub(crate) transfer_encoding: bool,
    pub(crate) content_length: bool,
}

impl Named {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let mut named = Self::default();
        for name in headers.keys() {
            match name.as_str() {
                "expect" => named.expect = true,
                "x-request-id" => named.request_id = true,
                "mcp-method" => named.mcp_method = true,
                "transfer-encoding" => named.transfer_encoding = true,
                "content-length" => named.content_length = true,
                "te" => (named.te, named.hop_by_hop) = (true, true),
                _ => named.hop_by_hop |= is_hop_by_hop(name),
            }
        }
        named
    }
}

fn is_hop_by_hop(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "connection"
            | "keep-alive"
            | "proxy-connection"
            | "proxy-authenticate"
            | "proxy-authorization"
            | "te"
            | "upgrade"
    )
}

fn is_hop_option(name: &HeaderName) -> bool {
    let text = name.as_str();
    *name != TRANSFER_ENCODING
        && *name != http::header::TRAILER
        && !END_TO_END.contains(&text)
        && !END_TO_END_PREFIXES
            .iter()
            .any(|prefix| text.starts_with(prefix))
}

/// Whether the client takes trailers.
pub(crate) fn takes_trailers(headers: &HeaderMap) -> bool {
    headers
        .get_all(TE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|coding| {
            coding
                .split(';')
                .next()
                .unwrap_or_default()
                .trim()
                .eq_ignore_ascii_case("trailers")
        })
}

/// `name: value` lines, for the record.
pub(crate) fn text(headers: &HeaderMap) -> Vec<u8> {
    let size = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 3)
        .sum();
    let mut text = Vec::with_capacity(size);
    for (name, value) in headers {
        text.extend_from_slice(name.as_str().as_bytes());
        text.extend_from_slice(b": ");
        text.extend_from_slice(value.as_bytes());
        text.push(b'\n');
    }
    text
}

/// Adds `X-Forwarded-For`, `-Host` and `-Proto`, behind what the client already sent for the first.
pub(crate) fn add_forwarded(
    headers: &mut HeaderMap,
    peer: std::net::IpAddr,
    host: Option<HeaderValue>,
    https: bool,
) {
    const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
    const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
    const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
    let mut chain: Vec<u8> = Vec::new();
    for value in headers.get_all(&FOR) {
        chain.extend_from_slice(value.as_bytes());
        chain.extend_from_slice(b", ");
    }
    chain.extend_from_slice(peer.to_string().as_bytes());
    if let Ok(value) = HeaderValue::from_bytes(&chain) {
        headers.insert(FOR, value);
    }
    if let Some(host) = host {
        headers.insert(FORWARDED_HOST, host);
    }
    headers.insert(
        PROTO,
        HeaderValue::from_static(if https { "https" } else { "http" }),
    );
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails loudly")]

    use super::*;

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        lines
            .iter()
            .map(|(name, value)| {
                (
                    HeaderName::from_bytes(name.as_bytes()).unwrap(),
                    HeaderValue::from_str(value).unwrap(),
                )
            })
            .collect()
    }

    #[test]
    fn connection_takes_what_it_names_but_nothing_end_to_end() {
        let mut map = headers(&[
            ("connection", "close, X-Hop, Mcp-Session-Id, authorization"),
            (
                "connection",
                "mcp-protocol-version, Host, content-type, last-event-id, transfer-encoding",
            ),
            ("x-hop", "1"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "keep-alive"),
            ("te", "trailers"),
            ("upgrade", "websocket"),
            ("mcp-session-id", "s"),
            ("mcp-protocol-version", "2025-11-25"),
            ("authorization", "Bearer t"),
            ("host", "h"),
            ("content-type", "application/json"),
            ("last-event-id", "7"),
            ("transfer-encoding", "chunked"),
            ("x-other", "1"),
            ("x-other", "2"),
        ]);
        remove_hop_by_hop(&mut map);
        assert_eq!(
            String::from_utf8(text(&map)).unwrap(),
            "mcp-session-id: s\nmcp-protocol-version: 2025-11-25\nauthorization: Bearer t\nhost: h\n\
             content-type: application/json\nlast-event-id: 7\ntransfer-encoding: chunked\nx-other: 1\nx-other: 2\n"
        );
    }

    #[test]
    fn trailers_are_taken_only_when_said() {
        assert!(takes_trailers(&headers(&[("te", "gzip, trailers;q=0.5")])));
        assert!(!takes_trailers(&headers(&[("te", "gzip")])));
        assert!(!takes_trailers(&headers(&[])));
    }

    #[test]
    fn forwarded_fields_append() {
        let mut map = headers(&[
            ("x-forwarded-for", "10.0.0.1"),
            ("host", "mcp.example.test"),
        ]);
        add_forwarded(
            &mut map,
            [127, 0, 0, 1].into(),
            Some(HeaderValue::from_static("mcp.example.test")),
            false,
        );
        assert_eq!(map.get("x-forwarded-for").unwrap(), "10.0.0.1, 127.0.0.1");
        assert_eq!(map.get("x-forwarded-host").unwrap(), "mcp.example.test");
        assert_eq!(map.get("x-forwarded-proto").unwrap(), "http");
    }
}
