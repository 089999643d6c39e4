//! One exchange, from the parsed head of a request to the answer given to hyper.

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use callbox_config::{Durability, HostHeader, Stamp};
use callbox_net::{Channel, ConnectionWatch, Drain, SendError};
use http::header::{
    CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST, TE, TRANSFER_ENCODING,
};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, Version};
use http_body::Body as _;
use hyper::body::Incoming;

use crate::clock::{self, Clock};
use crate::exchange::Exchange;
use crate::fault::{Fault, FaultKind};
use crate::headers;
use crate::live::Live;
use crate::route::{Upstream, without_port};
use crate::tap::{BodyEnd, HeaderText, RequestHead, ResponseHead, Tap};
use crate::tee::{Answer, Commit, Gate, HeldBody, RequestTee, ResponseTee, Upstreamed};
use crate::traffic::Traffic;

/// What all exchanges of one worker share.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) index: usize,
    pub(crate) live: Arc<Live>,
    pub(crate) tap: Tap,
    pub(crate) traffic: Arc<Traffic>,
    pub(crate) drain: Drain,
    pub(crate) clock: Mutex<Clock>,
}

/// What all exchanges of one client connection share.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) worker: Arc<Worker>,
    pub(crate) watch: Arc<ConnectionWatch>,
    pub(crate) peer: SocketAddr,
    pub(crate) https: bool,
}

impl Worker {
    pub(crate) fn count(&self, kind: FaultKind) {
        if let Some(traffic) = self.traffic.workers.get(self.index) {
            traffic.fault(kind, 1);
        }
    }
}

/// What is known of an exchange once it has a route.
struct Routed {
    upstream: Arc<Upstream>,
    exchange: Arc<Exchange>,
    /// `x-request-id` for the answer.
    request_id: Option<HeaderValue>,
    method: Method,
    version: Version,
    takes_trailers: bool,
    listens: bool,
    /// Hold answers back until committed, this long at most.
    hold: Option<Duration>,
}

/// Serves one request.
pub(crate) async fn exchange(
    client: Arc<Client>,
    mut request: Request<Incoming>,
) -> Response<Answer> {
    client.watch.exchange_began();
    if let Some(fault) = refused(&client, &mut request) {
        client.worker.count(fault.kind);
        return own(&client, fault);
    }
    let live = client.worker.live.load();
    let Some(upstream) = live
        .routes
        .find(&host_of(&request), request.uri().path())
        .cloned()
    else {
        client.worker.count(FaultKind::NoRoute);
        return own(
            &client,
            Fault::new(
                FaultKind::NoRoute,
                "no upstream is configured for this host and path",
            ),
        );
    };
    let (stamp, limit) = (live.stamp, live.max_request_body);
    let hold = (live.durability == Durability::BeforeResponse).then_some(live.durability_timeout);
    drop(live);
    let (routed, request, gate) = prepare(&client, upstream, request, stamp, limit, hold);
    if limit.is_some_and(|limit| request.body().size_hint().lower() > limit) {
        drop(request);
        return fail(&client, routed, too_large(limit)).await;
    }
    let answered = send(&client, &routed, request).await;
    match answered {
        Ok((response, channel)) => {
            routed
                .upstream
                .traffic
                .answered(client.worker.index, response.status());
            pass(&client, routed, response, channel, gate.as_deref()).await
        }
        Err(_) if routed.exchange.too_large() => fail(&client, routed, too_large(limit)).await,
        Err(_) if routed.exchange.client_gone() => {
            // Nobody is there to be answered, and the upstream did nothing wrong.
            routed.exchange.end(None, BodyEnd::Cancelled);
            own(
                &client,
                Fault::new(FaultKind::BadRequest, "the request's body broke off"),
            )
        }
        Err(Unanswered::Deadline(after)) => {
            let fault = Fault::new(
                FaultKind::HeadTimeout,
                format!("the upstream gave no answer within {after:?}"),
            );
            fail(&client, routed, fault).await
        }
        Err(Unanswered::Send(error)) => {
            let fault = match &error {
                SendError::Dial(_) => Fault::new(
                    FaultKind::UpstreamUnreachable,
                    "the upstream cannot be reached",
                ),
                SendError::Lost { .. } => Fault::new(
                    FaultKind::UpstreamLost,
                    "the upstream broke off before it answered",
                ),
            };
            let cause = std::error::Error::source(&error)
                .map(ToString::to_string)
                .unwrap_or_default();
            tracing::debug!(upstream = %routed.upstream.name, %error, cause, "no answer");
            fail(&client, routed, fault).await
        }
    }
}

/// What is not forwarded at all.
fn refused(client: &Client, request: &mut Request<Incoming>) -> Option<Fault> {
    if request.method() == Method::CONNECT {
        return Some(Fault::new(
            FaultKind::BadRequest,
            "CONNECT is not forwarded",
        ));
    }
    if request.version() < Version::HTTP_2 && request.headers().contains_key(TRANSFER_ENCODING) {
        let target = request.uri().to_string();
        if client
            .watch
            .has_content_length(request.method().as_str(), &target)
        {
            return Some(Fault::new(
                FaultKind::BadRequest,
                "Content-Length and Transfer-Encoding contradict each other; send only one",
            ));
        }
    }
    None
}

/// The host a request is for, without port.
fn host_of(request: &Request<Incoming>) -> String {
    let host = match request.uri().host() {
        Some(host) => host,
        None => {
            let field = request
                .headers()
                .get(HOST)
                .and_then(|host| host.to_str().ok())
                .unwrap_or_default();
            without_port(field)
        }
    };
    host.to_owned()
}

fn too_large(limit: Option<u64>) -> Fault {
    let limit = limit.unwrap_or_default();
    Fault::new(
        FaultKind::BodyTooLarge,
        format!("the request's body is over the limit of {limit} bytes (listen.max_request_body)"),
    )
}

/// Opens the books and makes the request as it goes on.
fn prepare(
    client: &Client,
    upstream: Arc<Upstream>,
    request: Request<Incoming>,
    stamp: Stamp,
    limit: Option<u64>,
    hold: Option<Duration>,
) -> (Routed, Request<RequestTee>, Option<Arc<Gate>>) {
    let (mut parts, body) = request.into_parts();
    let moment = client
        .worker
        .clock
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .stamp();
    let given = parts.headers.get(&headers::REQUEST_ID).cloned();
    let stamped = match (&given, stamp) {
        (None, Stamp::RequestId) => {
            let mut text = [0; uuid::fmt::Hyphenated::LENGTH];
            HeaderValue::from_str(moment.id.as_hyphenated().encode_lower(&mut text)).ok()
        }
        _ => None,
    };
    let known = given.as_ref().or(stamped.as_ref());
    let head = Box::new(RequestHead {
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
        request_id: known.map(|id| String::from_utf8_lossy(id.as_bytes()).into_owned()),
        headers: HeaderText(headers::text(&parts.headers)),
    });
    let exchange = Arc::new(Exchange::new(
        moment.id,
        client.worker.tap.clone(),
        client.worker.drain.clone(),
        head,
    ));
    let request_id = if stamp == Stamp::RequestId {
        known.cloned()
    } else {
        None
    };
    let routed = Routed {
        exchange: Arc::clone(&exchange),
        request_id,
        method: parts.method.clone(),
        version: parts.version,
        takes_trailers: headers::takes_trailers(&parts.headers),
        listens: parts
            .headers
            .get(&headers::MCP_METHOD)
            .is_some_and(|method| method == "subscriptions/listen"),
        hold,
        upstream,
    };
    let http1 = routed.upstream.pool(client.worker.index).speaks_http1();
    let gate = (http1
        && parts.version < Version::HTTP_2
        && expects_continue(&parts.headers)
        && !body.is_end_stream())
    .then(Arc::<Gate>::default);
    let forwarded_host = routed
        .upstream
        .settings
        .forwarded
        .then(|| host_field(&parts))
        .flatten();
    address(&mut parts, &routed.upstream, http1);
    headers::remove_hop_by_hop(&mut parts.headers);
    if routed.takes_trailers {
        parts
            .headers
            .insert(TE, HeaderValue::from_static("trailers"));
        if http1 {
            parts
                .headers
                .insert(CONNECTION, HeaderValue::from_static("te"));
        }
    }
    if let Some(id) = stamped {
        parts.headers.insert(headers::REQUEST_ID, id);
    }
    if routed.upstream.settings.forwarded {
        headers::add_forwarded(
            &mut parts.headers,
            client.peer.ip(),
            forwarded_host,
            client.https,
        );
    }
    if !http1 {
        parts.headers.remove(TRANSFER_ENCODING);
    } else if parts.version == Version::HTTP_2
        && !body.is_end_stream()
        && !parts.headers.contains_key(CONTENT_LENGTH)
    {
        // hyper would leave the body of a GET out when nothing says that there is one.
        parts
            .headers
            .insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
    parts.version = if http1 {
        Version::HTTP_11
    } else {
        Version::HTTP_2
    };
    let tee = RequestTee::new(
        body,
        exchange,
        Arc::clone(&client.watch),
        gate.clone(),
        limit,
    );
    let mut request = Request::from_parts(parts, tee);
    if let Some(gate) = gate.clone() {
        hyper::ext::on_informational(&mut request, move |response| {
            if response.status() == StatusCode::CONTINUE {
                gate.open();
            }
        });
    }
    (routed, request, gate)
}

/// What the client wrote as host.
fn host_field(parts: &http::request::Parts) -> Option<HeaderValue> {
    match parts.uri.authority() {
        Some(authority) => HeaderValue::from_str(authority.as_str()).ok(),
        None => parts.headers.get(HOST).cloned(),
    }
}

fn expects_continue(headers: &HeaderMap) -> bool {
    headers
        .get(EXPECT)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

/// Says where the request goes in the way of the upstream's HTTP version; the path and query stay as they are.
fn address(parts: &mut http::request::Parts, upstream: &Upstream, http1: bool) {
    let rewrite = upstream.settings.host_header == HostHeader::Rewrite;
    if http1 {
        if rewrite {
            parts.headers.insert(HOST, upstream.authority.clone());
        } else if let Some(authority) = parts.uri.authority() {
            // HTTP/2's `:authority`, and the absolute form of HTTP/1.1, whose host counts more than the field's.
            if let Ok(host) = HeaderValue::from_str(authority.as_str()) {
                parts.headers.insert(HOST, host);
            }
        }
        if parts.uri.authority().is_some() {
            let target = parts
                .uri
                .path_and_query()
                .cloned()
                .unwrap_or_else(|| PathAndQuery::from_static("/"));
            parts.uri = Uri::from(target);
        }
        return;
    }
    let host = parts.headers.remove(HOST);
    let kept = if rewrite {
        None
    } else {
        parts
            .uri
            .authority()
            .cloned()
            .or_else(|| host.and_then(authority_of))
    };
    let mut uri = http::uri::Parts::default();
    uri.scheme = Some(if upstream.settings.https {
        Scheme::HTTPS
    } else {
        Scheme::HTTP
    });
    uri.authority = kept.or_else(|| authority_of(upstream.authority.clone()));
    uri.path_and_query = Some(
        parts
            .uri
            .path_and_query()
            .cloned()
            .unwrap_or_else(|| PathAndQuery::from_static("/")),
    );
    if let Ok(uri) = Uri::from_parts(uri) {
        parts.uri = uri;
    }
}

fn authority_of(host: HeaderValue) -> Option<Authority> {
    Authority::try_from(host.as_bytes()).ok()
}

enum Unanswered {
    Send(SendError),
    Deadline(Duration),
}

async fn send(
    client: &Client,
    routed: &Routed,
    request: Request<RequestTee>,
) -> Result<(Response<Incoming>, Channel<RequestTee>), Unanswered> {
    let sending = routed.upstream.pool(client.worker.index).send(request);
    let Some(limit) = routed.upstream.settings.response_head_timeout else {
        return sending.await.map_err(Unanswered::Send);
    };
    let mut sending = pin!(sending);
    let mut deadline: Option<Pin<Box<tokio::time::Sleep>>> = None;
    poll_fn(|cx| {
        if let Poll::Ready(sent) = sending.as_mut().poll(cx) {
            return Poll::Ready(sent.map_err(Unanswered::Send));
        }
        // The clock starts when the upstream has the whole request.
        if deadline.is_none() && routed.exchange.poll_request_done(cx) {
            deadline = Some(Box::pin(tokio::time::sleep(limit)));
        }
        match &mut deadline {
            Some(deadline) => deadline
                .as_mut()
                .poll(cx)
                .map(|()| Err(Unanswered::Deadline(limit))),
            None => Poll::Pending,
        }
    })
    .await
}

/// Makes the answer that goes to the client out of the upstream's.
async fn pass(
    client: &Client,
    routed: Routed,
    response: Response<Incoming>,
    mut channel: Channel<RequestTee>,
    gate: Option<&Gate>,
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
    if !routed.exchange.request_done() && gate.is_none_or(Gate::was_opened) {
        // Both directions go on: neither may wait for the other, so the connection gets a task of its own.
        if let Channel::Http1(lease) = channel {
            channel = Channel::Detached;
            lease.detach();
        }
    }
    let chunked = parts.headers.contains_key(TRANSFER_ENCODING);
    headers::remove_hop_by_hop(&mut parts.headers);
    if chunked {
        // RFC 9112 6.3: a length beside chunked must not go on.
        parts.headers.remove(CONTENT_LENGTH);
    }
    if routed.version >= Version::HTTP_2 {
        parts.headers.remove(TRANSFER_ENCODING);
    }
    if let Some(id) = routed.request_id
        && !parts.headers.contains_key(&headers::REQUEST_ID)
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
async fn fail(client: &Client, routed: Routed, fault: Fault) -> Response<Answer> {
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

fn own(client: &Client, fault: Fault) -> Response<Answer> {
    client.watch.exchange_ended();
    fault.answer().map(|text| Answer::Own(Some(text)))
}
