//! What the observer is told, what is dropped and counted, and answers that wait for their record.

use std::time::{Duration, Instant};

use callbox_config::Durability;
use callbox_proxy::tap::{BodyEnd, DropReason, Side};
use callbox_testkit::scripted::{Connections, Scripted};

use super::harness::{Callbox, Observer, pair};

const POST: &str = "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 4\r\n\r\ncall";
const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

async fn with(
    observer: Observer,
    change: impl FnOnce(&mut callbox_config::Settings),
) -> (Callbox, Connections, Scripted) {
    let (upstream, connections) = Scripted::by_hand().await.unwrap();
    (
        Callbox::with(upstream.address(), observer, change),
        connections,
        upstream,
    )
}

#[tokio::test]
async fn a_stalled_observer_costs_records_and_no_traffic() {
    let (callbox, mut connections, _upstream) = with(Observer::Stalled, |settings| {
        settings.record.queue_events = 10;
    })
    .await;
    let mut client = callbox.client().await;
    client.send(POST).await.unwrap();
    let mut upstream = connections.next().await.unwrap();
    for turn in 0..50 {
        if turn > 0 {
            client.send(POST).await.unwrap();
        }
        upstream.read_message().await.unwrap();
        upstream
            .send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
            .await
            .unwrap();
        assert_eq!(client.read_message().await.unwrap().body, b"ok");
    }
    let counts = callbox.tap.counts();
    assert_eq!(
        counts.exchanges() + counts.exchanges_dropped(DropReason::Events),
        50,
        "{counts:?}"
    );
    assert_eq!(
        counts.exchanges(),
        5,
        "each takes two of ten slots: its request and its end"
    );
}

#[tokio::test]
async fn a_gap_is_told_where_it_is() {
    // The queue holds little; the observer is slow because it is only looked at between chunks.
    let (callbox, mut connections, _upstream) = with(Observer::Prompt, |settings| {
        settings.record.queue_bytes = 20_000;
    })
    .await;
    let mut client = callbox.client().await;
    client.send(POST).await.unwrap();
    let mut upstream = connections.next().await.unwrap();
    upstream.read_message().await.unwrap();
    let large = vec![b'x'; 30_000];
    upstream.send(STREAM).await.unwrap();
    client.read_head().await.unwrap();
    for part in [b"before".as_slice(), &large, b"after"] {
        upstream.send_chunk(part).await.unwrap();
        let mut left = part.len();
        while left > 0 {
            left -= client.read_chunk().await.unwrap().len();
        }
        // What fits is taken before the next part comes.
        while callbox.tap.bytes_in_flight() > 0 {
            tokio::task::yield_now().await;
        }
    }
    upstream.send("0\r\n\r\n").await.unwrap();
    let seen = callbox.observed.ended();
    assert_eq!(seen.end, Some(BodyEnd::Complete));
    assert!(seen.lost.contains(&Side::Response), "{:?}", seen.events);
    assert!(seen.response.starts_with(b"before") && seen.response.ends_with(b"after"));
    assert!(seen.response.len() < 30_000);
    let lost = seen
        .events
        .iter()
        .position(|event| *event == "lost")
        .unwrap();
    assert!(
        lost > seen
            .events
            .iter()
            .position(|event| *event == "response chunk")
            .unwrap(),
        "{:?}",
        seen.events
    );
    assert!(callbox.tap.counts().chunks_dropped(DropReason::Bytes) > 0);
}

#[tokio::test]
async fn a_gap_at_the_end_is_told_before_the_end() {
    let (callbox, mut connections, _upstream) = with(Observer::Prompt, |settings| {
        settings.record.queue_bytes = 20_000;
    })
    .await;
    let mut client = callbox.client().await;
    client.send(POST).await.unwrap();
    let mut upstream = connections.next().await.unwrap();
    upstream.read_message().await.unwrap();
    upstream
        .send("HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
        .await
        .unwrap();
    upstream.send(vec![b'x'; 100_000]).await.unwrap();
    assert_eq!(client.read_message().await.unwrap().body.len(), 100_000);
    let seen = callbox.observed.ended();
    assert_eq!(seen.end, Some(BodyEnd::Complete));
    assert!(seen.response.len() < 100_000);
    assert_eq!(
        &seen.events[seen.events.len() - 2..],
        ["lost", "end"],
        "{:?}",
        seen.events
    );
}

fn before_response(settings: &mut callbox_config::Settings) {
    settings.record.durability = Durability::BeforeResponse;
}

#[tokio::test]
async fn before_response_an_answer_waits_for_its_commit() {
    for (answer, last) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", "ok"),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n",
            "1\r\nk\r\n",
        ),
    ] {
        let (callbox, mut connections, _upstream) = with(Observer::Manual, before_response).await;
        let mut client = callbox.client().await;
        client.send(POST).await.unwrap();
        let mut upstream = connections.next().await.unwrap();
        upstream.read_message().await.unwrap();
        upstream.send(answer).await.unwrap();
        let seen = callbox.observed.ended();
        assert_eq!(
            (seen.end, seen.response.as_slice()),
            (Some(BodyEnd::Complete), b"ok".as_slice()),
            "offered first"
        );
        let early = tokio::time::timeout(
            Duration::from_millis(200),
            client.read_until(last.as_bytes()),
        )
        .await;
        assert!(early.is_err(), "not before the commit");
        callbox.observed.commit();
        client.read_until(last.as_bytes()).await.unwrap();
    }
}

#[tokio::test]
async fn before_response_an_answer_without_a_body_waits_too() {
    let (callbox, mut connections, _upstream) = with(Observer::Manual, before_response).await;
    let mut client = callbox.client().await;
    client.send(POST).await.unwrap();
    let mut upstream = connections.next().await.unwrap();
    upstream.read_message().await.unwrap();
    upstream
        .send("HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n")
        .await
        .unwrap();
    callbox.observed.ended();
    assert!(
        tokio::time::timeout(Duration::from_millis(200), client.read_more())
            .await
            .is_err()
    );
    callbox.observed.commit();
    assert_eq!(client.read_head().await.unwrap().status(), 500);
}

#[tokio::test]
async fn before_response_each_event_of_a_stream_waits() {
    let (callbox, mut connections, _upstream) = with(Observer::Manual, before_response).await;
    let mut client = callbox.client().await;
    client.send(POST).await.unwrap();
    let mut upstream = connections.next().await.unwrap();
    upstream.read_message().await.unwrap();
    upstream.send(STREAM).await.unwrap();
    for event in ["data: 1\n\n", "data: 2\n\n"] {
        upstream.send_chunk(event).await.unwrap();
        let early = tokio::time::timeout(
            Duration::from_millis(200),
            client.read_until(event.as_bytes()),
        )
        .await;
        assert!(early.is_err(), "not before the commit");
        callbox.observed.commit();
        client.read_until(event.as_bytes()).await.unwrap();
    }
    upstream.send("0\r\n\r\n").await.unwrap();
    callbox.observed.commit();
    client.read_until(b"0\r\n\r\n").await.unwrap();
    assert_eq!(callbox.observed.ended().end, Some(BodyEnd::Complete));
}

#[tokio::test]
async fn before_response_does_not_wait_for_ever_and_counts_it() {
    let limit = Duration::from_millis(200);
    let (callbox, mut connections, _upstream) = with(Observer::Manual, |settings| {
        before_response(settings);
        settings.record.durability_timeout = limit;
    })
    .await;
    let mut client = callbox.client().await;
    client.send(POST).await.unwrap();
    let mut upstream = connections.next().await.unwrap();
    upstream.read_message().await.unwrap();
    let sent = Instant::now();
    upstream
        .send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        .await
        .unwrap();
    assert_eq!(client.read_message().await.unwrap().body, b"ok");
    assert!(sent.elapsed() >= limit.mul_f32(0.9), "{:?}", sent.elapsed());
    assert_eq!(callbox.tap.counts().durability_late(), 1);
}

#[tokio::test]
async fn before_response_goes_on_when_nothing_is_recorded() {
    let (callbox, mut connections, _upstream) = with(Observer::Stalled, |settings| {
        before_response(settings);
        settings.record.queue_events = 1;
    })
    .await;
    let mut client = callbox.client().await;
    client.send(POST).await.unwrap();
    let mut upstream = connections.next().await.unwrap();
    upstream.read_message().await.unwrap();
    upstream
        .send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        .await
        .unwrap();
    assert_eq!(client.read_message().await.unwrap().body, b"ok");
    assert_eq!(
        callbox.tap.counts().exchanges_dropped(DropReason::Events),
        1
    );
}

#[tokio::test]
async fn before_response_a_break_still_arrives_with_what_came() {
    let (callbox, mut connections, _upstream) = with(Observer::Prompt, before_response).await;
    let mut client = callbox.client().await;
    client.send(POST).await.unwrap();
    let mut upstream = connections.next().await.unwrap();
    upstream.read_message().await.unwrap();
    upstream
        .send("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf")
        .await
        .unwrap();
    drop(upstream);
    client.read_head().await.unwrap();
    assert_eq!(client.read_to_end().await.unwrap(), b"half");
    assert_eq!(callbox.observed.ended().end, Some(BodyEnd::Error));
}

#[tokio::test]
async fn a_record_is_there_within_a_moment_of_the_end() {
    let (callbox, mut connections, _upstream) = pair(|_| {}).await;
    // The observer sleeps by now: nothing has come.
    let mut client = callbox.client().await;
    client.send(POST).await.unwrap();
    let mut upstream = connections.next().await.unwrap();
    upstream.read_message().await.unwrap();
    upstream
        .send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        .await
        .unwrap();
    client.read_message().await.unwrap();
    let answered = Instant::now();
    callbox.observed.ended();
    assert!(
        answered.elapsed() < Duration::from_millis(100),
        "{:?}",
        answered.elapsed()
    );
}
