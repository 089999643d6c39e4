//! What a call costs the observer. Not a test of right or wrong: run it in release mode and read the figures.
//!
//! `cargo test --release -p callbox-proxy --lib observe::tests::speed -- --ignored --nocapture`

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, StatusCode, Version};
use uuid::Uuid;

use super::feed::{Feed, WALL, modern, result, text, tools_call};
use crate::tap::{BodyEnd, Event, RequestHead, ResponseHead};

/// As in the shipped binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CALLS: u64 = 50_000;

struct Shape {
    name: &'static str,
    request_headers: String,
    request: String,
    response_headers: &'static str,
    response: String,
}

fn shapes() -> Vec<Shape> {
    let common = "host: crm.example.test\naccept: application/json, text/event-stream\ncontent-type: application/json\n\
                  user-agent: node\naccept-language: *\nsec-fetch-mode: cors\naccept-encoding: br, gzip, deflate\n\
                  authorization: Bearer 0123456789abcdef0123456789abcdef\n";
    let json = "content-type: application/json\nserver: up\ncontent-length: 200\ndate: Mon, 30 Nov 2026 14:03:07 GMT\n";
    let stream = "content-type: text/event-stream\ncache-control: no-cache\nconnection: keep-alive\n\
                  date: Mon, 30 Nov 2026 14:03:07 GMT\n";
    let legacy = format!(
        "{common}mcp-session-id: 5f0c1c5e-6c2f-4e0e-9b54-1b7d3a0e6a11\nmcp-protocol-version: 2025-11-25\n"
    );
    let arguments =
        r#"{"query":"Dana Kim","limit":10,"filter":{"stage":"open","since":"2026-11-01"}}"#;
    let answer = |size: usize| result("1", &"Found 3 contacts near you. ".repeat(size / 27));
    let (headers, body) = modern(
        "1",
        "tools/call",
        "search_contacts",
        &format!(r#""name":"search_contacts","arguments":{arguments}"#),
    );
    let legacy_shape = |name, response_headers, response| Shape {
        name,
        request_headers: legacy.clone(),
        request: tools_call("1", "search_contacts", arguments),
        response_headers,
        response,
    };
    vec![
        legacy_shape("sessions, JSON, 200 B", json, answer(120)),
        legacy_shape(
            "sessions, SSE, 200 B",
            stream,
            format!("event: message\ndata: {}\n\n", answer(120)),
        ),
        Shape {
            name: "stateless, JSON, 200 B",
            request_headers: format!("{common}{headers}"),
            request: body,
            response_headers: json,
            response: answer(120),
        },
        legacy_shape("sessions, JSON, 4 KiB", json, answer(4 << 10)),
        legacy_shape("sessions, JSON, 256 KiB", json, answer(256 << 10)),
    ]
}

fn run(shape: &Shape) {
    let mut feed = Feed::new();
    feed.initialize(
        "2025-11-25",
        "5f0c1c5e-6c2f-4e0e-9b54-1b7d3a0e6a11",
        "authorization: Bearer 0123456789abcdef0123456789abcdef\n",
    );
    feed.observer.take();
    let calls = if shape.response.len() > 100_000 {
        CALLS / 100
    } else {
        CALLS
    };
    let (mut spent, mut records) = (Duration::ZERO, 0);
    for batch in 0..calls / 250 {
        let events: Vec<Event> = (0..250)
            .flat_map(|n| exchange(shape, feed.now, batch * 250 + n))
            .collect();
        let began = busy();
        for event in events {
            feed.observer.handle(event);
        }
        let made = feed.observer.take();
        spent += busy().saturating_sub(began);
        records += made.records.len();
    }
    let per_call = spent.as_nanos() / u128::from(calls);
    println!(
        "{:<26} {per_call:>8} ns per call, {records} records of {calls} calls",
        shape.name
    );
}

/// Time this thread has had a core, whoever else wanted it.
fn busy() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(stat.split(' ').next().unwrap().parse().unwrap())
}

fn exchange(shape: &Shape, now: Instant, n: u64) -> Vec<Event> {
    let id = Uuid::from_u64_pair(0x7000, n.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let head = RequestHead {
        at_wall: WALL,
        at: now,
        peer: "192.0.2.1:1".parse().unwrap(),
        upstream: "crm".into(),
        method: Method::POST,
        target: "/mcp".to_owned(),
        version: Version::HTTP_11,
        request_id: Some(id.to_string()),
        headers: text(&shape.request_headers),
    };
    let answer = ResponseHead {
        at: now,
        status: StatusCode::OK,
        headers: text(shape.response_headers),
        fault: None,
    };
    let mut events = vec![
        Event::Request(id, Box::new(head)),
        Event::RequestChunk(id, Bytes::copy_from_slice(shape.request.as_bytes())),
        Event::RequestEnd(id, BodyEnd::Complete),
        Event::Response(id, Box::new(answer)),
    ];
    for frame in shape.response.as_bytes().chunks(16 << 10) {
        events.push(Event::ResponseChunk(id, now, Bytes::copy_from_slice(frame)));
    }
    events.push(Event::End(id, now, BodyEnd::Complete));
    events
}

#[test]
#[ignore = "a measurement"]
fn nanoseconds_per_small_call() {
    shapes()
        .iter()
        .filter(|shape| shape.response.len() < 1000)
        .for_each(run);
}

#[test]
#[ignore = "a measurement"]
fn nanoseconds_per_large_call() {
    shapes()
        .iter()
        .filter(|shape| shape.response.len() > 1000)
        .for_each(run);
}
