//! HTTP/2 on either side or both.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use callbox_config::UpstreamProtocol;
use callbox_net::{ExecuteOn, Tasks};
use callbox_proxy::tap::BodyEnd;
use http::{HeaderMap, HeaderValue, Request, Response, Version};
use http_body::{Body, Frame};
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::harness::{Callbox, pair};

/// A body whose frames the test hands in; dropping the sender ends it, an error breaks it.
#[derive(Debug)]
pub(crate) struct Handed(mpsc::Receiver<Result<Frame<Bytes>, std::io::Error>>);

pub(crate) type Frames = mpsc::Sender<Result<Frame<Bytes>, std::io::Error>>;

pub(crate) fn handed() -> (Frames, Handed) {
    let (sender, receiver) = mpsc::channel(16);
    (sender, Handed(receiver))
}

impl Body for Handed {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        self.0.poll_recv(cx)
    }
}

#[expect(clippy::unnecessary_wraps, reason = "what a body takes")]
pub(crate) fn data(text: impl Into<Bytes>) -> Result<Frame<Bytes>, std::io::Error> {
    Ok(Frame::data(text.into()))
}

/// Sends while the test does something else; dropping the handle gives up.
#[expect(
    clippy::disallowed_methods,
    reason = "the handle aborts the task when the test lets go of it"
)]
fn background<F>(work: F) -> AbortOnDropHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    AbortOnDropHandle::new(tokio::spawn(work))
}

/// An HTTP/2 client by prior knowledge.
async fn connect<B>(address: SocketAddr, tasks: &Tasks) -> SendRequest<B>
where
    B: Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>>
        + Send
        + Unpin
        + 'static,
{
    over(TcpStream::connect(address).await.unwrap(), tasks).await
}

/// An HTTP/2 client on a connected stream.
pub(crate) async fn over<I, B>(io: I, tasks: &Tasks) -> SendRequest<B>
where
    I: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    B: Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>>
        + Send
        + Unpin
        + 'static,
{
    let (sender, connection) =
        hyper::client::conn::http2::handshake(ExecuteOn(tasks.clone()), TokioIo::new(io))
            .await
            .unwrap();
    tasks.spawn("client", async move { drop(connection.await) });
    sender
}

/// An HTTP/2 upstream; what comes in is handed to the test together with the place for the answer.
struct Upstream {
    address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    requests: mpsc::Receiver<(
        Request<Incoming>,
        tokio::sync::oneshot::Sender<Response<Handed>>,
    )>,
}

async fn upstream(tasks: &Tasks) -> Upstream {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let accepted = Arc::new(AtomicUsize::new(0));
    let (sender, requests) = mpsc::channel(1000);
    let (count, within) = (Arc::clone(&accepted), tasks.clone());
    tasks.spawn("upstream", async move {
        while let Ok((tcp, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            let sender = sender.clone();
            let service = service_fn(move |request| {
                let sender = sender.clone();
                async move {
                    let (answer, answered) = tokio::sync::oneshot::channel();
                    sender.send((request, answer)).await.unwrap();
                    answered
                        .await
                        .map_err(|_| std::io::Error::other("the test gives no answer"))
                }
            });
            let connection = hyper::server::conn::http2::Builder::new(ExecuteOn(within.clone()))
                .max_concurrent_streams(1000)
                .serve_connection(TokioIo::new(tcp), service);
            within.spawn("upstream connection", async move { drop(connection.await) });
        }
    });
    Upstream {
        address,
        accepted,
        requests,
    }
}

fn h2c(settings: &mut callbox_config::Settings) {
    settings.listen.h2c = true;
}

fn post<B>(address: SocketAddr, body: B) -> Request<B> {
    Request::post(format!(
        "http://mcp.example.test:{}/mcp?a=%2F",
        address.port()
    ))
    .body(body)
    .unwrap()
}

#[tokio::test]
async fn b24_an_authority_becomes_the_host() {
    let tasks = Tasks::default();
    let (callbox, mut connections, _upstream) = pair(h2c).await;
    let mut client = connect(callbox.addr(), &tasks).await;
    let answer = client.send_request(post(callbox.addr(), Full::new(Bytes::from("hi"))));
    let serve = async {
        let mut upstream = connections.next().await.unwrap();
        let asked = upstream.read_message().await.unwrap();
        upstream
            .send("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\ncontent-length: 2\r\n\r\nok")
            .await
            .unwrap();
        asked
    };
    let (answer, asked) = tokio::join!(answer, serve);
    assert_eq!(asked.head.line, "POST /mcp?a=%2F HTTP/1.1");
    let host = format!("mcp.example.test:{}", callbox.addr().port());
    assert_eq!(asked.head.one("host"), Some(host.as_str()));
    assert_eq!(
        (asked.head.one("content-length"), asked.body.as_slice()),
        (Some("2"), b"hi".as_slice())
    );
    let answer = answer.unwrap();
    assert_eq!(
        (answer.status().as_u16(), answer.version()),
        (200, Version::HTTP_2)
    );
    assert!(
        answer.headers().get("connection").is_none()
            && answer.headers().get("keep-alive").is_none()
    );
    let mut body = answer.into_body();
    assert_eq!(
        body.frame().await.unwrap().unwrap().into_data().unwrap(),
        "ok"
    );
    let seen = callbox.observed.ended();
    assert_eq!(
        (seen.request.as_slice(), seen.response.as_slice()),
        (b"hi".as_slice(), b"ok".as_slice())
    );
}

#[tokio::test]
async fn the_same_port_still_speaks_http1() {
    let (callbox, mut connections, _upstream) = pair(h2c).await;
    for request in ["P", "PUT / HTTP/1.1\r\nhost: h\r\n\r\n"] {
        let mut client = callbox.client().await;
        client.send(request).await.unwrap();
        if request.len() > 1 {
            let mut upstream = connections.next().await.unwrap();
            upstream.read_head().await.unwrap();
            upstream
                .send("HTTP/1.1 204 No Content\r\n\r\n")
                .await
                .unwrap();
            assert_eq!(client.read_head().await.unwrap().status(), 204);
        }
    }
}

#[tokio::test]
async fn streams_and_trailers_pass_between_the_versions() {
    let tasks = Tasks::default();
    let (callbox, mut connections, _upstream) = pair(h2c).await;
    let mut client = connect(callbox.addr(), &tasks).await;
    let (frames, body) = handed();
    let mut request = post(callbox.addr(), body);
    request
        .headers_mut()
        .insert("te", HeaderValue::from_static("trailers"));
    request
        .headers_mut()
        .insert("trailer", HeaderValue::from_static("x-sum"));
    let answer = background(client.send_request(request));
    let mut upstream = connections.next().await.unwrap();
    let head = upstream.read_head().await.unwrap();
    assert_eq!(
        (head.one("transfer-encoding"), head.one("te")),
        (Some("chunked"), Some("trailers"))
    );
    frames.send(data("up")).await.unwrap();
    assert_eq!(upstream.read_chunk().await.unwrap(), b"up");
    upstream
        .send("HTTP/1.1 200 OK\r\nTrailer: x-sum\r\ntransfer-encoding: chunked\r\ncontent-type: text/event-stream\r\n\r\n")
        .await
        .unwrap();
    let mut answer = answer.await.unwrap().unwrap();
    assert!(answer.headers().get("transfer-encoding").is_none());
    for turn in 0..3 {
        upstream
            .send_chunk(format!("data: {turn}\n\n"))
            .await
            .unwrap();
        let frame = answer.body_mut().frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), format!("data: {turn}\n\n"));
        frames.send(data(format!("up {turn}"))).await.unwrap();
        assert_eq!(
            upstream.read_chunk().await.unwrap(),
            format!("up {turn}").as_bytes()
        );
    }
    let trailers =
        HeaderMap::from_iter([("x-sum".parse().unwrap(), HeaderValue::from_static("9"))]);
    frames.send(Ok(Frame::trailers(trailers))).await.unwrap();
    drop(frames);
    assert_eq!(
        upstream.read_until(b"0\r\nx-sum: 9\r\n\r\n").await.unwrap(),
        b"0\r\nx-sum: 9\r\n\r\n"
    );
    upstream.send("0\r\nx-sum: 7\r\n\r\n").await.unwrap();
    let last = answer.body_mut().frame().await.unwrap().unwrap();
    assert_eq!(last.into_trailers().unwrap().get("x-sum").unwrap(), "7");
    assert!(answer.body_mut().frame().await.is_none());
    assert_eq!(callbox.observed.ended().end, Some(BodyEnd::Complete));
}

#[tokio::test]
async fn a_reset_stream_ends_its_call_upstream_and_no_other() {
    let tasks = Tasks::default();
    let (callbox, mut connections, _upstream) = pair(h2c).await;
    let mut client = connect(callbox.addr(), &tasks).await;
    let mut calls = Vec::new();
    for _ in 0..2 {
        let answer =
            background(client.send_request(post(callbox.addr(), Full::new(Bytes::from("hi")))));
        let mut upstream = connections.next().await.unwrap();
        upstream.read_message().await.unwrap();
        upstream
            .send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n")
            .await
            .unwrap();
        let mut answer = answer.await.unwrap().unwrap();
        answer.body_mut().frame().await.unwrap().unwrap();
        calls.push((answer, upstream));
    }
    let (answer, mut upstream) = calls.pop().unwrap();
    let left = Instant::now();
    drop(answer);
    upstream.closed().await.unwrap();
    assert!(
        left.elapsed() < Duration::from_millis(100),
        "{:?}",
        left.elapsed()
    );
    let (mut other, mut upstream) = calls.pop().unwrap();
    upstream.send_chunk("b").await.unwrap();
    assert_eq!(
        other
            .body_mut()
            .frame()
            .await
            .unwrap()
            .unwrap()
            .into_data()
            .unwrap(),
        "b"
    );
    // Not answered yet: leaving ends that one as well.
    let waiting =
        background(client.send_request(post(callbox.addr(), Full::new(Bytes::from("hi")))));
    let mut upstream = connections.next().await.unwrap();
    upstream.read_message().await.unwrap();
    waiting.abort();
    upstream.closed().await.unwrap();
}

#[tokio::test]
async fn a_break_upstream_resets_the_stream() {
    let tasks = Tasks::default();
    let (callbox, mut connections, _upstream) = pair(h2c).await;
    let mut client = connect(callbox.addr(), &tasks).await;
    let answer =
        background(client.send_request(post(callbox.addr(), Full::new(Bytes::from("hi")))));
    let mut upstream = connections.next().await.unwrap();
    upstream.read_message().await.unwrap();
    upstream
        .send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n7\r\ndata: h\r\n")
        .await
        .unwrap();
    let mut answer = answer.await.unwrap().unwrap();
    assert_eq!(
        answer
            .body_mut()
            .frame()
            .await
            .unwrap()
            .unwrap()
            .into_data()
            .unwrap(),
        "data: h"
    );
    drop(upstream);
    assert!(
        answer.body_mut().frame().await.unwrap().is_err(),
        "not a clean end"
    );
    assert_eq!(callbox.observed.ended().end, Some(BodyEnd::Error));
}

fn to_http2(settings: &mut callbox_config::Settings) {
    settings.upstreams[0].protocol = UpstreamProtocol::Http2;
}

#[tokio::test]
async fn an_http2_upstream_gets_authority_and_path() {
    let tasks = Tasks::default();
    let mut upstream = upstream(&tasks).await;
    let callbox = Callbox::start(upstream.address, to_http2);
    for turn in 0..3 {
        let mut client = callbox.client().await;
        client
            .send("POST /mcp?a=%2F HTTP/1.1\r\nHost: mcp.example.test\r\nConnection: keep-alive\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n")
            .await
            .unwrap();
        let (request, answer) = upstream.requests.recv().await.unwrap();
        assert_eq!(
            request.uri().authority().unwrap().as_str(),
            "mcp.example.test"
        );
        assert_eq!(
            request.uri().path_and_query().unwrap().as_str(),
            "/mcp?a=%2F"
        );
        let names: Vec<_> = request
            .headers()
            .keys()
            .map(http::HeaderName::as_str)
            .collect();
        assert_eq!(names, ["x-request-id"]);
        let mut body = request.into_body();
        assert_eq!(
            body.frame().await.unwrap().unwrap().into_data().unwrap(),
            "hi"
        );
        let (frames, handed) = handed();
        answer.send(Response::new(handed)).unwrap();
        frames.send(data("ok")).await.unwrap();
        let head = client.read_head().await.unwrap();
        assert_eq!(
            (head.line.as_str(), head.one("transfer-encoding")),
            ("HTTP/1.1 200 OK", Some("chunked"))
        );
        assert_eq!(client.read_chunk().await.unwrap(), b"ok");
        if turn == 1 {
            frames
                .send(Err(std::io::Error::other("broken")))
                .await
                .unwrap();
            client.read_to_end().await.unwrap();
        } else {
            drop(frames);
            assert!(client.read_chunk().await.unwrap().is_empty());
        }
    }
    assert_eq!(
        upstream.accepted.load(Ordering::SeqCst),
        1,
        "one connection for all"
    );
    let seen = callbox.observed.wait("three end", |seen| {
        (seen.len() == 3 && seen.iter().all(|seen| seen.end.is_some())).then(|| seen.to_vec())
    });
    let ends: Vec<_> = seen.iter().map(|seen| seen.end.unwrap()).collect();
    assert_eq!(ends, [BodyEnd::Complete, BodyEnd::Error, BodyEnd::Complete]);
}

#[tokio::test]
async fn a_client_that_leaves_resets_the_stream_of_an_http2_upstream() {
    let tasks = Tasks::default();
    let mut upstream = upstream(&tasks).await;
    let callbox = Callbox::start(upstream.address, to_http2);
    let mut client = callbox.client().await;
    client
        .send("POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\nhi")
        .await
        .unwrap();
    let (_request, answer) = upstream.requests.recv().await.unwrap();
    let (frames, handed) = handed();
    answer.send(Response::new(handed)).unwrap();
    frames.send(data("a")).await.unwrap();
    client.read_head().await.unwrap();
    let left = Instant::now();
    drop(client);
    frames.closed().await;
    assert!(
        left.elapsed() < Duration::from_millis(100),
        "{:?}",
        left.elapsed()
    );
    assert_eq!(callbox.observed.ended().end, Some(BodyEnd::Cancelled));
}

#[tokio::test]
async fn more_streams_than_one_connection_takes_go_on_another() {
    let tasks = Tasks::default();
    let mut upstream = upstream(&tasks).await;
    let callbox = Callbox::start(upstream.address, to_http2);
    let mut clients = Vec::new();
    let mut open = Vec::new();
    for _ in 0..150 {
        let mut client = callbox.client().await;
        client
            .send("GET / HTTP/1.1\r\nhost: h\r\naccept: text/event-stream\r\n\r\n")
            .await
            .unwrap();
        open.push(upstream.requests.recv().await.unwrap());
        clients.push(client);
    }
    assert_eq!(upstream.accepted.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn http2_on_both_sides_drains() {
    let tasks = Tasks::default();
    let mut upstream = upstream(&tasks).await;
    let callbox = Callbox::start(upstream.address, |settings| {
        h2c(settings);
        to_http2(settings);
    });
    let mut client = connect::<Empty<Bytes>>(callbox.addr(), &tasks).await;
    let stream = Request::get("http://h/")
        .header("accept", "text/event-stream")
        .body(Empty::new())
        .unwrap();
    let answer = background(client.send_request(stream));
    let (request, place) = upstream.requests.recv().await.unwrap();
    assert_eq!(request.uri().authority().unwrap().as_str(), "h");
    let (_frames, body) = handed();
    place
        .send(
            Response::builder()
                .header("content-type", "text/event-stream")
                .body(body)
                .unwrap(),
        )
        .unwrap();
    let mut stream = answer.await.unwrap().unwrap();
    let call =
        background(client.send_request(Request::get("http://h/call").body(Empty::new()).unwrap()));
    let (_request, place) = upstream.requests.recv().await.unwrap();
    let draining = tokio::task::spawn_blocking(move || callbox.server.drain());
    while let Some(frame) = stream.body_mut().frame().await {
        assert!(
            frame
                .expect("the idle stream ends at once, cleanly")
                .into_data()
                .unwrap()
                .is_empty()
        );
    }
    let (frames, body) = handed();
    place.send(Response::new(body)).unwrap();
    frames.send(data("ok")).await.unwrap();
    drop(frames);
    let mut answer = call.await.unwrap().unwrap();
    assert_eq!(
        answer
            .body_mut()
            .frame()
            .await
            .unwrap()
            .unwrap()
            .into_data()
            .unwrap(),
        "ok"
    );
    assert_eq!(draining.await.unwrap().aborted, 0);
}

#[tokio::test]
async fn an_upstream_that_goes_away_gets_the_next_call_on_a_new_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let tasks = Tasks::default();
    let callbox = Callbox::start(listener.local_addr().unwrap(), to_http2);
    let mut client = callbox.client().await;
    for _ in 0..3 {
        client
            .send("GET / HTTP/1.1\r\nhost: h\r\n\r\n")
            .await
            .unwrap();
        let (tcp, _) = listener.accept().await.unwrap();
        let service = service_fn(|_request: Request<Incoming>| async {
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("ok"))))
        });
        let mut connection = Box::pin(
            hyper::server::conn::http2::Builder::new(ExecuteOn(tasks.clone()))
                .serve_connection(TokioIo::new(tcp), service),
        );
        let answered = tokio::select! {
            ended = connection.as_mut() => panic!("{ended:?}"),
            answered = client.read_message() => answered.unwrap(),
        };
        assert_eq!(answered.body, b"ok");
        // GOAWAY, then gone.
        connection.as_mut().graceful_shutdown();
        connection.await.unwrap();
    }
}
