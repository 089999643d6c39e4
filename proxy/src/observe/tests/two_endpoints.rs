//! HTTP+SSE, the transport of 2024-11-05: questions and answers on different exchanges.

use callbox_store::{End, Outcome, SessionSource};
use uuid::Uuid;

use super::feed::{Feed, outcomes, raw, result, tools_call};
use crate::tap::BodyEnd;

const ENDPOINT: &str = "/message?sessionId=4b1c";

fn connect(feed: &mut Feed, endpoint: &str) -> Uuid {
    let stream = feed.get_at("/sse", "");
    feed.stream(stream);
    feed.chunk(stream, format!("event: endpoint\ndata: {endpoint}\n\n"));
    stream
}

fn send(feed: &mut Feed, target: &str, body: &str) {
    let id = feed.post_to(target, "", body);
    feed.answer(id, 202, "", "Accepted");
}

fn handshake(feed: &mut Feed, stream: Uuid) {
    send(
        feed,
        ENDPOINT,
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"old","version":"1"}}}"#,
    );
    feed.event(stream, r#"{"result":{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"s"}},"jsonrpc":"2.0","id":0}"#);
    send(
        feed,
        ENDPOINT,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    );
}

#[test]
fn a_call_is_found_by_its_endpoint() {
    let mut feed = Feed::new();
    let stream = connect(&mut feed, ENDPOINT);
    handshake(&mut feed, stream);
    send(&mut feed, ENDPOINT, &tools_call("1", "t", r#"{"a":1}"#));
    feed.wait(20);
    feed.event(stream, &result("1", "x"));
    let call = feed.call();
    assert_eq!(
        (call.outcome, call.end, call.duration_us),
        (Outcome::Ok, End::Complete, Some(20_000))
    );
    assert_eq!((call.http_status, call.seq), (Some(202), 1));
    assert_eq!(call.protocol_version.as_deref(), Some("2024-11-05"));
    assert_eq!(call.session.source, SessionSource::Protocol);
    assert_eq!(
        call.session
            .client
            .as_ref()
            .map(|client| client.name.as_str()),
        Some("old")
    );
    assert_eq!(
        feed.lines(),
        [
            "> request initialize",
            "< response initialize 200",
            "> notification notifications/initialized"
        ]
    );
    let sessions: Vec<_> = feed
        .messages()
        .iter()
        .map(|message| message.session.id)
        .collect();
    assert!(sessions.iter().all(|id| *id == call.session.id));
}

#[test]
fn an_absolute_uri_and_a_newer_version_make_no_difference() {
    let mut feed = Feed::new();
    let stream = connect(
        &mut feed,
        "http://crm.example.test:8080/message?sessionId=4b1c",
    );
    send(
        &mut feed,
        ENDPOINT,
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"new"}}}"#,
    );
    feed.event(stream, r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{}}}"#);
    send(&mut feed, ENDPOINT, &tools_call("1", "t", "{}"));
    feed.event(stream, &result("1", "x"));
    let call = feed.call();
    assert_eq!(
        (call.outcome, call.protocol_version.as_deref()),
        (Outcome::Ok, Some("2025-11-25"))
    );
}

#[test]
fn the_answer_may_come_before_the_acknowledgement() {
    let mut feed = Feed::new();
    let stream = connect(&mut feed, ENDPOINT);
    let id = feed.post_to(ENDPOINT, "", &tools_call("1", "t", "{}"));
    feed.event(stream, &result("1", "quick"));
    feed.answer(id, 202, "", "Accepted");
    let call = feed.call();
    assert_eq!((call.outcome, call.end), (Outcome::Ok, End::Complete));
    assert!(raw(call.result.as_ref()).contains("quick"));
}

#[test]
fn two_clients_with_the_same_ids_stay_apart() {
    let mut feed = Feed::new();
    let one = connect(&mut feed, "/message?sessionId=1");
    let two = connect(&mut feed, "/message?sessionId=2");
    send(
        &mut feed,
        "/message?sessionId=1",
        &tools_call("1", "a", "{}"),
    );
    send(
        &mut feed,
        "/message?sessionId=2",
        &tools_call("1", "b", "{}"),
    );
    feed.event(two, &result("1", "for b"));
    feed.event(one, &result("1", "for a"));
    let calls = feed.calls();
    assert!(raw(calls[0].result.as_ref()).contains("for a"));
    assert!(raw(calls[1].result.as_ref()).contains("for b"));
    assert_ne!(calls[0].session.id, calls[1].session.id);
}

#[test]
fn a_second_answer_is_flagged_there_too() {
    let mut feed = Feed::new();
    let stream = connect(&mut feed, ENDPOINT);
    send(&mut feed, ENDPOINT, &tools_call("1", "t", "{}"));
    feed.event(stream, &result("1", "first"));
    feed.wait(500);
    feed.event(stream, &result("1", "second"));
    feed.wait(500);
    let call = feed.call();
    assert!(raw(call.result.as_ref()).contains("first"));
    assert_eq!(
        (call.flags, call.duration_us),
        (vec!["duplicate_response".to_owned()], Some(0))
    );
}

#[test]
fn the_end_of_the_stream_ends_what_waits() {
    for (end, outcome) in [
        (BodyEnd::Cancelled, Outcome::Aborted),
        (BodyEnd::Error, Outcome::Lost),
        (BodyEnd::Complete, Outcome::Abandoned),
        (BodyEnd::Timeout, Outcome::Timeout),
    ] {
        let mut feed = Feed::new();
        let stream = connect(&mut feed, ENDPOINT);
        send(&mut feed, ENDPOINT, &tools_call("1", "t", "{}"));
        let open = feed.post_to(ENDPOINT, "", &tools_call("2", "t", "{}"));
        feed.end(stream, end);
        feed.answer(open, 202, "", "Accepted");
        assert_eq!(outcomes(&feed.calls()), [outcome, Outcome::Abandoned]);
    }
}

#[test]
fn the_servers_requests_are_answered_by_post() {
    let mut feed = Feed::new();
    let stream = connect(&mut feed, ENDPOINT);
    handshake(&mut feed, stream);
    feed.event(stream, r#"{"jsonrpc":"2.0","id":0,"method":"roots/list"}"#);
    send(
        &mut feed,
        ENDPOINT,
        r#"{"jsonrpc":"2.0","id":0,"result":{"roots":[]}}"#,
    );
    assert_eq!(
        feed.lines()[3..],
        ["< request roots/list 200", "> response roots/list"],
        "ids of the two directions have nothing to do with each other"
    );
}
