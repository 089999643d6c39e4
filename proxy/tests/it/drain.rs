//! Stopping: nothing new, idle streams end at once, running calls finish.

use std::time::{Duration, Instant};

use callbox_proxy::Drained;
use callbox_proxy::tap::BodyEnd;
use callbox_testkit::peer::Peer;

use super::harness::pair;

const GET: &str = "GET /mcp HTTP/1.1\r\nhost: h\r\naccept: text/event-stream\r\n\r\n";
const STREAM: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";

async fn open_stream(client: &mut Peer, upstream: &mut Peer, event: &str) {
    upstream.read_message().await.unwrap();
    upstream.send(STREAM).await.unwrap();
    upstream.send_chunk(event).await.unwrap();
    client.read_head().await.unwrap();
    assert_eq!(client.read_chunk().await.unwrap(), event.as_bytes());
}

#[tokio::test]
async fn b17_an_open_stream_does_not_hold_the_stop() {
    let (callbox, mut connections, _upstream) = pair(|_| {}).await;
    let mut client = callbox.client().await;
    client.send(GET).await.unwrap();
    let mut upstream = connections.next().await.unwrap();
    open_stream(&mut client, &mut upstream, "data: 1\r\n\r\n").await;
    let observed = callbox.observed.clone();
    let stop = Instant::now();
    let drained = tokio::task::spawn_blocking(move || callbox.server.drain())
        .await
        .unwrap();
    assert_eq!(drained, Drained { aborted: 0 });
    assert!(
        stop.elapsed() < Duration::from_secs(1),
        "{:?}",
        stop.elapsed()
    );
    assert!(
        client.read_chunk().await.unwrap().is_empty(),
        "between two events the stream ends cleanly"
    );
    client.closed().await.unwrap();
    upstream.closed().await.unwrap();
    assert_eq!(observed.ended().end, Some(BodyEnd::Timeout));
}

#[tokio::test]
async fn b18_b19_idle_streams_end_and_calls_finish() {
    let (callbox, mut connections, _upstream) = pair(|_| {}).await;
    let mut idle = callbox.client().await;
    idle.send(GET).await.unwrap();
    let mut idle_upstream = connections.next().await.unwrap();
    open_stream(&mut idle, &mut idle_upstream, "data: 1\n\n").await;
    let mut listening = callbox.client().await;
    listening
        .send("POST /mcp HTTP/1.1\r\nhost: h\r\nMcp-Method: subscriptions/listen\r\ncontent-length: 2\r\n\r\n{}")
        .await
        .unwrap();
    let mut listening_upstream = connections.next().await.unwrap();
    open_stream(&mut listening, &mut listening_upstream, ": half an ev").await;
    let mut call = callbox.client().await;
    call.send("POST /mcp HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\n{}")
        .await
        .unwrap();
    let mut call_upstream = connections.next().await.unwrap();
    open_stream(&mut call, &mut call_upstream, "data: working\n\n").await;
    let address = callbox.addr();
    let observed = callbox.observed.clone();
    let draining = tokio::task::spawn_blocking(move || callbox.server.drain());
    assert!(idle.read_chunk().await.unwrap().is_empty());
    assert!(
        listening.read_to_end().await.unwrap().is_empty(),
        "within an event the stream breaks"
    );
    // Nothing new is taken on.
    while tokio::net::TcpStream::connect(address).await.is_ok() {}
    assert!(!draining.is_finished());
    call_upstream.send_chunk("data: result\n\n").await.unwrap();
    call_upstream.send("0\r\n\r\n").await.unwrap();
    assert_eq!(call.read_chunk().await.unwrap(), b"data: result\n\n");
    assert!(call.read_chunk().await.unwrap().is_empty());
    assert_eq!(draining.await.unwrap(), Drained { aborted: 0 });
    let seen = observed.wait("all end", |seen| {
        seen.iter()
            .all(|seen| seen.end.is_some())
            .then(|| seen.to_vec())
    });
    let ends: Vec<_> = seen.iter().map(|seen| seen.end.unwrap()).collect();
    assert_eq!(
        ends,
        [BodyEnd::Timeout, BodyEnd::Timeout, BodyEnd::Complete]
    );
}

#[tokio::test]
async fn an_answer_during_the_drain_closes_its_connection() {
    let (callbox, mut connections, _upstream) = pair(|_| {}).await;
    let mut idle = callbox.client().await;
    let mut client = callbox.client().await;
    client
        .send("POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\nhi")
        .await
        .unwrap();
    let mut upstream = connections.next().await.unwrap();
    upstream.read_message().await.unwrap();
    let draining = tokio::task::spawn_blocking(move || callbox.server.drain());
    idle.closed().await.unwrap();
    upstream
        .send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        .await
        .unwrap();
    let answered = client.read_message().await.unwrap();
    assert_eq!(
        (answered.body.as_slice(), answered.head.one("connection")),
        (b"ok".as_slice(), Some("close"))
    );
    client.closed().await.unwrap();
    assert_eq!(draining.await.unwrap(), Drained { aborted: 0 });
}

#[tokio::test]
async fn the_drain_has_a_deadline() {
    let limit = Duration::from_millis(300);
    let (callbox, mut connections, _upstream) =
        pair(|settings| settings.listen.drain_timeout = limit).await;
    let mut client = callbox.client().await;
    client
        .send("POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\nhi")
        .await
        .unwrap();
    let mut upstream = connections.next().await.unwrap();
    upstream.read_message().await.unwrap();
    let observed = callbox.observed.clone();
    let stop = Instant::now();
    let drained = tokio::task::spawn_blocking(move || callbox.server.drain())
        .await
        .unwrap();
    assert_eq!(drained, Drained { aborted: 1 });
    assert!(stop.elapsed() >= limit, "{:?}", stop.elapsed());
    client.closed().await.unwrap();
    upstream.closed().await.unwrap();
    assert_eq!(observed.ended().end, Some(BodyEnd::Timeout));
}

#[tokio::test]
async fn several_workers_serve_and_drain_together() {
    let (callbox, mut connections, _upstream) =
        pair(|settings| settings.listen.workers = 3.try_into().unwrap()).await;
    let mut calls = Vec::new();
    for _ in 0..30 {
        let mut client = callbox.client().await;
        client
            .send("POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\nhi")
            .await
            .unwrap();
        let mut upstream = connections.next().await.unwrap();
        upstream.read_message().await.unwrap();
        calls.push((client, upstream));
    }
    let traffic = callbox.server.traffic();
    assert_eq!(traffic.connections_open(), 30);
    let draining = tokio::task::spawn_blocking(move || callbox.server.drain());
    for (client, upstream) in &mut calls {
        upstream
            .send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
            .await
            .unwrap();
        assert_eq!(client.read_message().await.unwrap().body, b"ok");
    }
    assert_eq!(draining.await.unwrap(), Drained { aborted: 0 });
    assert_eq!((traffic.connections(), traffic.connections_open()), (30, 0));
}
