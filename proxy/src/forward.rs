//! One exchange, from the parsed head of a request to the answer given to hyper.

mod answer;
mod request;

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use callbox_config::Durability;
use callbox_net::{Channel, ConnectionWatch, Drain, SendError};
use http::header::{HOST, TRANSFER_ENCODING};
use http::{HeaderValue, Method, Request, Response, Version};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use crate::clock::Clock;
use crate::exchange::Exchange;
use crate::fault::{Fault, FaultKind};
use crate::live::Live;
use crate::route::{Upstream, without_port};
use crate::tap::{BodyEnd, Tap};
use crate::tee::{Answer, Gate, RequestTee};
use crate::traffic::Traffic;
use answer::{fail, own, pass};
use request::{Terms, prepare};

/// Of a request that no connection took: bytes read for its record, and how long the client has for them.
const UNSENT_BYTES: usize = 1 << 20;
const UNSENT_WAIT: Duration = Duration::from_millis(100);

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

impl Client {
    /// Adds what passed since the last time to the worker's counters.
    pub(crate) fn count_bytes(&self) {
        let (read, written) = self.watch.take_bytes();
        if let Some(traffic) = self.worker.traffic.workers.get(self.worker.index) {
            traffic.bytes_in.fetch_add(read, Relaxed);
            traffic.bytes_out.fetch_add(written, Relaxed);
        }
    }
}

/// What is known of an exchange once it has a route.
struct Routed {
    upstream: Arc<Upstream>,
    exchange: Arc<Exchange>,
    /// `x-request-id` for the answer.
    request_id: Option<HeaderValue>,
    /// Where the body waits until the upstream asks for it.
    gate: Option<Arc<Gate>>,
    method: Method,
    version: Version,
    listens: bool,
    /// Hold answers back until committed, this long at most.
    hold: Option<Duration>,
}

/// Serves one request.
pub(crate) async fn exchange(client: Arc<Client>, request: Request<Incoming>) -> Response<Answer> {
    client.watch.exchange_began();
    client.count_bytes();
    let (routed, request, limit) = match route(&client, request) {
        Ok(routed) => routed,
        Err(fault) => {
            client.worker.count(fault.kind);
            return own(&client, fault);
        }
    };
    if limit.is_some_and(|limit| request.body().size_hint().lower() > limit) {
        drop(request);
        return fail(&client, routed, too_large(limit)).await;
    }
    let mut request = Some(request);
    let error = match send(&client, &routed, &mut request).await {
        Ok((response, channel)) => {
            routed
                .upstream
                .traffic
                .answered(client.worker.index, response.status());
            return pass(&client, routed, response, channel).await;
        }
        Err(error) => error,
    };
    if let Some(unsent) = request {
        read_for_record(unsent, routed.gate.is_some()).await;
    }
    if routed.exchange.client_gone() {
        // Nobody is there to be answered, and the upstream did nothing wrong.
        routed.exchange.end(None, BodyEnd::Cancelled);
        return own(
            &client,
            Fault::new(FaultKind::BadRequest, "the request's body broke off"),
        );
    }
    let fault = if routed.exchange.too_large() {
        too_large(limit)
    } else {
        explain(&routed, &error)
    };
    fail(&client, routed, fault).await
}

/// No connection took the request, but its record should say what was asked: reads what the client has sent so far.
async fn read_for_record(request: Request<RequestTee>, gated: bool) {
    if gated {
        // The client waits to be asked for the body; nobody will.
        return;
    }
    let mut body = request.into_body();
    let mut left = UNSENT_BYTES;
    let read = async {
        while let Some(Ok(frame)) = body.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                return;
            }
        }
    };
    if tokio::time::timeout(UNSENT_WAIT, read).await.is_err() {
        tracing::debug!("the body of a request that could not be forwarded is not in its record");
    }
}

/// Finds where a request goes and opens its books, or says why it goes nowhere.
fn route(
    client: &Client,
    request: Request<Incoming>,
) -> Result<(Routed, Request<RequestTee>, Option<u64>), Fault> {
    if request.method() == Method::CONNECT {
        return Err(Fault::new(
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
            let text = "Content-Length and Transfer-Encoding contradict each other; send only one";
            return Err(Fault::new(FaultKind::BadRequest, text));
        }
    }
    if request.version() < Version::HTTP_2 {
        let target = request
            .uri()
            .path_and_query()
            .map_or("/", |target| target.as_str());
        if client.watch.had_fragment(request.method().as_str(), target) {
            let text = "a request's target has no fragment (#)";
            return Err(Fault::new(FaultKind::BadRequest, text));
        }
    }
    let live = client.worker.live.load();
    let found = live.routes.find(host_of(&request), request.uri().path());
    let Some(upstream) = found.cloned() else {
        let text = "no upstream is configured for this host and path";
        return Err(Fault::new(FaultKind::NoRoute, text));
    };
    let hold = live.durability == Durability::BeforeResponse;
    let terms = Terms {
        stamp: live.stamp,
        limit: live.max_request_body,
        hold: hold.then_some(live.durability_timeout),
    };
    drop(live);
    let (routed, request) = prepare(client, upstream, request, &terms);
    Ok((routed, request, terms.limit))
}

/// The host a request is for, without port.
fn host_of(request: &Request<Incoming>) -> &str {
    request.uri().host().unwrap_or_else(|| {
        let host = request.headers().get(HOST);
        without_port(host.and_then(|host| host.to_str().ok()).unwrap_or_default())
    })
}

fn too_large(limit: Option<u64>) -> Fault {
    let limit = limit.unwrap_or_default();
    let text =
        format!("the request's body is over the limit of {limit} bytes (listen.max_request_body)");
    Fault::new(FaultKind::BodyTooLarge, text)
}

fn explain(routed: &Routed, error: &Unanswered) -> Fault {
    let error = match error {
        Unanswered::Deadline(after) => {
            let text = format!("the upstream gave no answer within {after:?}");
            return Fault::new(FaultKind::HeadTimeout, text);
        }
        Unanswered::Send(error) => error,
    };
    let cause = std::error::Error::source(&error)
        .map(ToString::to_string)
        .unwrap_or_default();
    tracing::debug!(upstream = %routed.upstream.name, %error, cause, "no answer");
    match error {
        SendError::Dial(_) => Fault::new(
            FaultKind::UpstreamUnreachable,
            "the upstream cannot be reached",
        ),
        SendError::Lost { .. } => Fault::new(
            FaultKind::UpstreamLost,
            "the upstream broke off before it answered",
        ),
    }
}

enum Unanswered {
    Send(SendError),
    Deadline(Duration),
}

async fn send(
    client: &Client,
    routed: &Routed,
    request: &mut Option<Request<RequestTee>>,
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
