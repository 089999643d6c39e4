//! How exchanges end when a side leaves, and that nothing is sent twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use callbox_config::HalfClose;
use callbox_proxy::tap::BodyEnd;
use callbox_testkit::peer::Closed;
use callbox_testkit::scripted::Scripted;

use super::harness::{Callbox, pair};

const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const POST: &str = "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 4\r\n\r\ncall";
const PROMPT: Duration = Duration::from_millis(100);

#[tokio::test]
async fn b16_a_client_that_leaves_ends_the_call_upstream_at_once() {
    for streaming in [false, true] {
        let (callbox, mut connections, _upstream) = pair(|_| {}).await;
        let mut client = callbox.client().await;
        client.send(POST).await.unwrap();
        let mut upstream = connections.next().await.unwrap();
        upstream.read_message().await.unwrap();
        if streaming {
            upstream.send(STREAM).await.unwrap();
            upstream.send_chunk("data: 1\n\n").await.unwrap();
            client.read_head().await.unwrap();
            client.read_chunk().await.unwrap();
        }
        let left = Instant::now();
        drop(client);
        upstream.closed().await.unwrap();
        assert!(left.elapsed() < PROMPT, "{:?}", left.elapsed());
        let seen = callbox.observed.ended();
        assert_eq!(
            (seen.end, seen.request_end),
            (Some(BodyEnd::Cancelled), Some(BodyEnd::Complete))
        );
        assert_eq!(seen.status, streaming.then_some(200));
    }
}

#[tokio::test]
async fn a_client_that_resets_in_mid_upload_is_not_waited_for() {
    let (callbox, mut connections, _upstream) = pair(|_| {}).await;
    let mut client = callbox.client().await;
    client
        .send("POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 100\r\n\r\nhalf")
        .await
        .unwrap();
    let mut upstream = connections.next().await.unwrap();
    upstream.read_head().await.unwrap();
    assert_eq!(upstream.read_exact(4).await.unwrap(), b"half");
    let left = Instant::now();
    client.reset().unwrap();
    upstream.closed().await.unwrap();
    assert!(left.elapsed() < PROMPT, "{:?}", left.elapsed());
    let seen = callbox.observed.ended();
    assert_eq!(
        (seen.end, seen.request.as_slice()),
        (Some(BodyEnd::Cancelled), b"half".as_slice())
    );
    assert_ne!(seen.request_end, Some(BodyEnd::Complete));
}

#[tokio::test]
async fn a_half_close_is_leaving_or_waiting_as_configured() {
    let (callbox, mut connections, _upstream) =
        pair(|settings| settings.listen.half_close = HalfClose::Gone).await;
    let mut client = callbox.client().await;
    client.send(POST).await.unwrap();
    let mut upstream = connections.next().await.unwrap();
    upstream.read_message().await.unwrap();
    client.finish().await.unwrap();
    upstream.closed().await.unwrap();
    assert_eq!(callbox.observed.ended().end, Some(BodyEnd::Cancelled));

    let (callbox, mut connections, _upstream) =
        pair(|settings| settings.listen.half_close = HalfClose::Wait).await;
    let mut client = callbox.client().await;
    client.send(POST).await.unwrap();
    let mut upstream = connections.next().await.unwrap();
    upstream.read_message().await.unwrap();
    client.finish().await.unwrap();
    upstream
        .send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        .await
        .unwrap();
    assert_eq!(client.read_message().await.unwrap().body, b"ok");
    assert_eq!(callbox.observed.ended().end, Some(BodyEnd::Complete));
}

#[tokio::test]
async fn an_upstream_that_breaks_breaks_the_answer_and_what_came_still_arrives() {
    for (reset, length) in [
        (false, None),
        (true, None),
        (false, Some(100)),
        (true, Some(100)),
    ] {
        let (callbox, mut connections, _upstream) = pair(|_| {}).await;
        let mut client = callbox.client().await;
        client.send(POST).await.unwrap();
        let mut upstream = connections.next().await.unwrap();
        upstream.read_message().await.unwrap();
        // Head, half an event and the end in one breath.
        let framing = length.map_or(
            "transfer-encoding: chunked\r\n\r\n7\r\ndata: h\r\n".to_owned(),
            |length| format!("content-length: {length}\r\n\r\ndata: h"),
        );
        upstream
            .send(format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{framing}"
            ))
            .await
            .unwrap();
        if reset {
            client.read_head().await.unwrap();
            if length.is_none() {
                assert_eq!(client.read_chunk().await.unwrap(), b"data: h");
            } else {
                assert_eq!(client.read_exact(7).await.unwrap(), b"data: h");
            }
            upstream.reset().unwrap();
            client.closed().await.unwrap();
        } else {
            drop(upstream);
            client.read_head().await.unwrap();
            let rest = client.read_to_end().await.unwrap();
            let expected: &[u8] = if length.is_none() {
                b"7\r\ndata: h\r\n"
            } else {
                b"data: h"
            };
            assert_eq!(
                String::from_utf8(rest).unwrap().as_bytes(),
                expected,
                "all that came, and no clean end"
            );
        }
        let seen = callbox.observed.ended();
        assert_eq!(
            (seen.end, seen.response.as_slice()),
            (Some(BodyEnd::Error), b"data: h".as_slice())
        );
    }
}

#[tokio::test]
async fn a_break_within_a_body_without_length_is_a_reset() {
    let (callbox, mut connections, _upstream) = pair(|_| {}).await;
    let mut client = callbox.client().await;
    client
        .send("GET / HTTP/1.0\r\nhost: h\r\n\r\n")
        .await
        .unwrap();
    let mut upstream = connections.next().await.unwrap();
    upstream.read_head().await.unwrap();
    upstream
        .send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n")
        .await
        .unwrap();
    client.read_head().await.unwrap();
    assert_eq!(client.read_exact(3).await.unwrap(), b"abc");
    drop(upstream);
    assert_eq!(
        client.closed().await.unwrap(),
        Closed::Reset,
        "a FIN would look like the regular end"
    );
}

#[tokio::test]
async fn a_large_answer_that_breaks_is_written_out_before_the_break() {
    const SIZE: usize = 8 << 20;
    let (callbox, mut connections, _upstream) = pair(|_| {}).await;
    let mut client = callbox.client().await;
    client.send(POST).await.unwrap();
    let mut upstream = connections.next().await.unwrap();
    upstream.read_message().await.unwrap();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", SIZE * 2);
    let sending = async move {
        upstream.send(head).await.unwrap();
        upstream.send(vec![b'x'; SIZE]).await.unwrap();
        drop(upstream);
    };
    let reading = async {
        client.read_head().await.unwrap();
        client.read_to_end().await.unwrap().len()
    };
    let ((), read) = tokio::join!(sending, reading);
    assert_eq!(read, SIZE);
    assert_eq!(callbox.observed.ended().end, Some(BodyEnd::Error));
}

#[tokio::test]
async fn a_connection_is_used_again_and_again() {
    let (callbox, mut connections, upstream) = pair(|_| {}).await;
    let mut client = callbox.client().await;
    let mut peer = None;
    for _ in 0..20 {
        client.send(POST).await.unwrap();
        if peer.is_none() {
            peer = Some(connections.next().await.unwrap());
        }
        let peer = peer.as_mut().unwrap();
        peer.read_message().await.unwrap();
        peer.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")
            .await
            .unwrap();
        assert_eq!(client.read_message().await.unwrap().body, b"ok");
    }
    assert_eq!(upstream.accepted(), 1);
}

#[tokio::test]
async fn a_connection_the_upstream_closed_while_idle_costs_no_request() {
    for goodbye in [
        "",
        "HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
    ] {
        let (callbox, mut connections, _upstream) = pair(|_| {}).await;
        let mut client = callbox.client().await;
        for _ in 0..10 {
            client.send(POST).await.unwrap();
            let mut peer = connections.next().await.unwrap();
            peer.read_message().await.unwrap();
            peer.send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
                .await
                .unwrap();
            assert_eq!(client.read_message().await.unwrap().body, b"ok");
            peer.send(goodbye).await.unwrap();
            drop(peer);
        }
        let seen = callbox.observed.wait("ten end", |seen| {
            (seen.len() == 10 && seen.iter().all(|seen| seen.end.is_some())).then(|| seen.to_vec())
        });
        assert!(
            seen.iter().all(|seen| seen.status == Some(200)),
            "{seen:#?}"
        );
    }
}

#[tokio::test]
async fn a_request_is_never_sent_twice() {
    // An upstream that reads each request whole, closes, and sometimes answers nothing.
    let received = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&received);
    let upstream = Scripted::start(move |number, mut peer| {
        let count = Arc::clone(&count);
        async move {
            let asked = peer.read_message().await?;
            assert_eq!(asked.body, b"call");
            count.fetch_add(1, Ordering::SeqCst);
            if number % 2 == 0 {
                peer.send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
                    .await?;
                // The second request on this connection is read and not answered.
                if peer.read_head().await.is_ok() {
                    count.fetch_add(1, Ordering::SeqCst);
                }
            }
            Ok(())
        }
    })
    .await
    .unwrap();
    let callbox = Callbox::start(upstream.address(), |_| {});
    let mut client = callbox.client().await;
    let mut statuses = Vec::new();
    for sent in 1..=20 {
        client.send(POST).await.unwrap();
        let answered = client.read_message().await.unwrap();
        statuses.push(answered.head.status());
        if answered.head.status() == 502 {
            assert_eq!(answered.head.one("callbox-fault"), Some("upstream-lost"));
        }
        assert_eq!(
            received.load(Ordering::SeqCst),
            sent,
            "one request, one arrival: {statuses:?}"
        );
    }
    assert!(
        statuses.contains(&200) && statuses.contains(&502),
        "{statuses:?}"
    );
}

#[tokio::test]
async fn idle_connections_are_closed_after_their_time_and_over_their_number() {
    let (callbox, mut connections, _upstream) = pair(|settings| {
        settings.upstreams[0].idle_timeout = Duration::from_millis(300);
        settings.upstreams[0].max_idle = 2;
    })
    .await;
    let mut clients = Vec::new();
    let mut peers = Vec::new();
    for _ in 0..4 {
        let mut client = callbox.client().await;
        client.send(POST).await.unwrap();
        let mut peer = connections.next().await.unwrap();
        peer.read_message().await.unwrap();
        clients.push(client);
        peers.push(peer);
    }
    for (client, peer) in clients.iter_mut().zip(&mut peers) {
        peer.send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
            .await
            .unwrap();
        client.read_message().await.unwrap();
    }
    let start = Instant::now();
    let mut closed = Vec::new();
    for peer in peers.iter_mut().rev() {
        peer.closed().await.unwrap();
        closed.push(start.elapsed());
    }
    assert!(
        closed[1] < Duration::from_millis(200),
        "two were over the number: {closed:?}"
    );
    assert!(
        closed[3] > Duration::from_millis(200),
        "two were kept for their time: {closed:?}"
    );
}
