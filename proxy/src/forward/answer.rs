//! The answer that goes to the client: the upstream's, or a fault.

use std::future::poll_fn;
use std::sync::Arc;

use callbox_net::Channel;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use http::{HeaderMap, Method, Response, StatusCode, Version};
use http_body::Body as _;
use hyper::body::Incoming;

use super::{Client, Routed};
use crate::clock;
use crate::fault::{Fault, FaultKind, Party};
use crate::headers::{self, Named};
use crate::tap::{BodyEnd, HeaderText, ResponseHead};
use crate::tee::{Answer, Commit, Gate, HeldBody, RequestTee, ResponseTee, Upstreamed};

/// Makes the answer that goes to the client out of the upstream's.
pub(super) async fn pass(
    client: &Client,
    routed: Routed,
    response: Response<Incoming>,
    mut channel: Channel<RequestTee>,
) -> Response<Answer> {
    let (mut parts, body) = response.into_parts();
    routed.exchange.response(Box::new(ResponseHead {
        at: clock::now(),
        status: parts.status,
        headers: HeaderText(headers::text(&parts.headers)),
        fault: None,
    }));
    if parts.status == StatusCode::SWITCHING_PROTOCOLS {
        let fault = Fault::new(
            FaultKind::UpstreamLost,
            "the upstream switched protocols without being asked",
        );
        return fail(client, routed, fault).await;
    }
    if !routed.exchange.request_done() && routed.gate.as_deref().is_none_or(Gate::was_opened) {
        // Both directions go on: neither may wait for the other, so the connection gets a task of its own.
        if let Channel::Http1(lease) = channel {
            channel = Channel::Detached;
            lease.detach();
        }
    }
    let named = Named::of(&parts.headers);
    if named.hop_by_hop {
        headers::remove_hop_by_hop(&mut parts.headers);
    }
    if named.transfer_encoding {
        if named.content_length {
            // RFC 9112 6.3: a length beside chunked must not go on.
            parts.headers.remove(CONTENT_LENGTH);
        }
        if routed.version >= Version::HTTP_2 {
            parts.headers.remove(TRANSFER_ENCODING);
        }
    }
    if let Some(id) = routed.request_id
        && !named.request_id
    {
        parts.headers.insert(headers::REQUEST_ID, id);
    }
    // An upstream's HTTP/1.0 is between it and callbox; hyper knows what the client speaks.
    parts.version = Version::HTTP_11;
    let whole = body.is_end_stream();
    let declared = if whole && routed.version < Version::HTTP_2 {
        content_length(&parts.headers)
    } else {
        None
    };
    let events = is_event_stream(&parts.headers);
    let endless = events && (routed.method == Method::GET || routed.listens);
    let close_delimited = routed.version == Version::HTTP_10 && body.size_hint().exact().is_none();
    let mut tee = ResponseTee::new(
        Upstreamed {
            inner: body,
            channel: Some(channel),
        },
        Arc::clone(&routed.exchange),
        Arc::clone(&client.watch),
        declared,
    );
    if endless && !parts.headers.contains_key(CONTENT_ENCODING) {
        tee = tee.endless();
    }
    if close_delimited {
        tee = tee.close_delimited();
    }
    let answer = match routed.hold {
        None => Answer::Passed(tee),
        Some(limit) if whole => {
            if let Some(mut commit) = Commit::of(&routed.exchange, limit) {
                poll_fn(|cx| commit.poll(cx, &routed.exchange)).await;
            }
            Answer::Passed(tee)
        }
        Some(limit) => Answer::Held(Box::new(HeldBody::new(tee, limit, events))),
    };
    Response::from_parts(parts, answer)
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn is_event_stream(headers: &HeaderMap) -> bool {
    headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.as_bytes().get(..17))
        .is_some_and(|start| start.eq_ignore_ascii_case(b"text/event-stream"))
}

/// Answers a routed exchange with a fault.
pub(super) async fn fail(client: &Client, routed: Routed, fault: Fault) -> Response<Answer> {
    let end = match fault.kind {
        FaultKind::UpstreamUnreachable | FaultKind::UpstreamLost => BodyEnd::Error,
        FaultKind::HeadTimeout => BodyEnd::Timeout,
        _ => BodyEnd::Complete,
    };
    let kind = fault.kind;
    client.worker.count(kind);
    routed
        .upstream
        .traffic
        .answered(client.worker.index, kind.status());
    let mut response = own(client, fault);
    if let Some(id) = routed.request_id {
        response.headers_mut().insert(headers::REQUEST_ID, id);
    }
    routed.exchange.response(Box::new(ResponseHead {
        at: clock::now(),
        status: kind.status(),
        headers: HeaderText(headers::text(response.headers())),
        fault: Some(kind.name()),
    }));
    routed.exchange.end(None, end);
    if let Some(limit) = routed.hold
        && let Some(mut commit) = Commit::of(&routed.exchange, limit)
    {
        poll_fn(|cx| commit.poll(cx, &routed.exchange)).await;
    }
    response
}

pub(super) fn own(client: &Client, fault: Fault) -> Response<Answer> {
    client.watch.exchange_ended();
    if fault.kind.party() == Party::Client {
        client.watch.linger_on_close();
    }
    fault.answer().map(|text| Answer::Own(Some(text)))
}
