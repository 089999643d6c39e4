//! The request as it goes on, and the books that are opened for it.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use callbox_config::{HostHeader, Stamp};
use http::header::{EXPECT, HOST, TE};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri, Version};
use http_body::Body as _;
use hyper::body::Incoming;

use super::{Client, Routed};
use crate::clock::Moment;
use crate::exchange::Exchange;
use crate::headers::{self, Named};
use crate::route::Upstream;
use crate::tap::{HeaderText, RequestHead};
use crate::tee::{Gate, RequestTee};

/// What of the settings in force a request needs.
pub(super) struct Terms {
    pub(super) stamp: Stamp,
    pub(super) limit: Option<u64>,
    /// Hold answers back until committed, this long at most.
    pub(super) hold: Option<Duration>,
}

/// Opens the books and makes the request as it goes on.
pub(super) fn prepare(
    client: &Client,
    upstream: Arc<Upstream>,
    request: Request<Incoming>,
    terms: &Terms,
) -> (Routed, Request<RequestTee>) {
    let (mut parts, body) = request.into_parts();
    let moment = client
        .worker
        .clock
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .now();
    let named = Named::of(&parts.headers);
    let given = if named.request_id {
        parts.headers.get(&headers::REQUEST_ID).cloned()
    } else {
        None
    };
    let stamped = match (&given, terms.stamp) {
        (None, Stamp::RequestId) => {
            let mut text = [0; uuid::fmt::Hyphenated::LENGTH];
            HeaderValue::from_str(moment.id.as_hyphenated().encode_lower(&mut text)).ok()
        }
        _ => None,
    };
    let request_id = given.or_else(|| stamped.clone());
    let head = record(client, &upstream, &parts, moment, request_id.as_ref());
    let (tap, drain) = (client.worker.tap.clone(), client.worker.drain.clone());
    let exchange = Arc::new(Exchange::new(moment.id, tap, drain, head));
    let http1 = upstream.pool(client.worker.index).speaks_http1();
    let waits = http1
        && named.expect
        && parts.version < Version::HTTP_2
        && expects_continue(&parts.headers)
        && !body.is_end_stream();
    let gate = waits.then(Arc::<Gate>::default);
    let routed = Routed {
        exchange: Arc::clone(&exchange),
        request_id: request_id.filter(|_| terms.stamp == Stamp::RequestId),
        gate: gate.clone(),
        method: parts.method.clone(),
        version: parts.version,
        listens: named.mcp_method
            && parts
                .headers
                .get(&headers::MCP_METHOD)
                .is_some_and(|method| method == "subscriptions/listen"),
        hold: terms.hold,
        upstream,
    };
    change(client, &routed.upstream, &mut parts, named, stamped);
    let tee = RequestTee::new(
        body,
        exchange,
        Arc::clone(&client.watch),
        gate.clone(),
        terms.limit,
    );
    let mut request = Request::from_parts(parts, tee);
    if let Some(gate) = gate {
        hyper::ext::on_informational(&mut request, move |response| {
            if response.status() == StatusCode::CONTINUE {
                gate.open();
            }
        });
    }
    (routed, request)
}

/// The head for the record, as the client sent it.
fn record(
    client: &Client,
    upstream: &Upstream,
    parts: &Parts,
    moment: Moment,
    request_id: Option<&HeaderValue>,
) -> Box<RequestHead> {
    Box::new(RequestHead {
        at_wall: moment.wall,
        at: moment.at,
        peer: client.peer,
        upstream: Arc::clone(&upstream.name),
        method: parts.method.clone(),
        target: parts
            .uri
            .path_and_query()
            .map_or_else(String::new, |target| target.as_str().to_owned()),
        version: parts.version,
        request_id: request_id.map(|id| String::from_utf8_lossy(id.as_bytes()).into_owned()),
        headers: HeaderText(headers::text(&parts.headers)),
    })
}

/// The few changes there are: hop-by-hop fields go, `Host` by its policy, and what the operator asked for is added.
fn change(
    client: &Client,
    upstream: &Upstream,
    parts: &mut Parts,
    named: Named,
    stamped: Option<HeaderValue>,
) {
    // HTTP/2's `:authority`, or that of the absolute form of HTTP/1.1, whose host counts more than the field's.
    let authority = parts
        .uri
        .authority()
        .and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
    let forwarded = upstream.settings.forwarded;
    let host = if forwarded {
        authority
            .clone()
            .or_else(|| parts.headers.get(HOST).cloned())
    } else {
        None
    };
    if authority.is_some() {
        let target = parts.uri.path_and_query().cloned();
        parts.uri = Uri::from(target.unwrap_or_else(|| PathAndQuery::from_static("/")));
    }
    match upstream.settings.host_header {
        HostHeader::Rewrite => {
            parts.headers.insert(HOST, upstream.authority.clone());
        }
        HostHeader::Keep => {
            if let Some(authority) = authority {
                parts.headers.insert(HOST, authority);
            }
        }
    }
    let takes_trailers = named.te && headers::takes_trailers(&parts.headers);
    if named.hop_by_hop {
        headers::remove_hop_by_hop(&mut parts.headers);
    }
    if takes_trailers {
        parts
            .headers
            .insert(TE, HeaderValue::from_static("trailers"));
    }
    if let Some(id) = stamped {
        parts.headers.insert(headers::REQUEST_ID, id);
    }
    if forwarded {
        headers::add_forwarded(&mut parts.headers, client.peer.ip(), host, client.https);
    }
}

fn expects_continue(headers: &HeaderMap) -> bool {
    headers
        .get(EXPECT)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}
