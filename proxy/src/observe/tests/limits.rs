//! What is bounded, what is counted, and what is never kept.

use std::sync::atomic::Ordering::Relaxed;

use callbox_config::Payloads;
use callbox_store::{Capture, End, Outcome};
use tokio::sync::oneshot;

use super::feed::{Feed, outcomes, raw, result, tools_call};
use crate::tap::{BodyEnd, Event, Side};

#[test]
fn b48_sessions_that_nobody_ends_leave_memory() {
    let mut feed = Feed::with(|settings| settings.record.max_sessions = 1000);
    for n in 0..20_000 {
        feed.initialize("2025-11-25", &format!("s-{n}"), "");
        if n % 500 == 0 {
            feed.records();
        }
    }
    feed.records();
    let held = feed.counts.sessions.load(Relaxed);
    assert!(held <= 1000, "{held}");
    assert_eq!(feed.counts.sessions_evicted.load(Relaxed), 20_000 - held);
    // One that had to leave is found in the log.
    let id = feed.post("mcp-session-id: s-0\n", &tools_call("1", "t", "{}"));
    feed.json(id, &result("1", "x"));
    let call = feed.call();
    assert_eq!(call.session.client.as_ref().unwrap().name, "claude");
    feed.wait(601_000);
    feed.records();
    assert_eq!(feed.counts.sessions.load(Relaxed), 0);
}

#[test]
fn sessions_in_use_are_not_pushed_out_by_unused_ones() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-11-25", "mine", "");
    let ask = |feed: &mut Feed| {
        let id = feed.post(&headers, &tools_call("1", "t", "{}"));
        feed.json(id, &result("1", "x"));
    };
    ask(&mut feed);
    for n in 0..5000 {
        feed.initialize("2025-11-25", &format!("s-{n}"), "");
    }
    // Without the log it can only be memory.
    feed.records();
    feed.log.lock().unwrap().clear();
    ask(&mut feed);
    let calls = feed.calls();
    assert_eq!(calls[0].session.id, calls[1].session.id);
    assert_eq!(calls[1].seq, 2);
}

#[test]
fn without_payloads_only_facts_are_kept() {
    let mut feed = Feed::with(|settings| settings.record.payloads = Payloads::None);
    let headers = feed.initialize("2025-11-25", "s", "x-canary: CANARY\n");
    for answer in [
        result("1", "CANARY"),
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"CANARY"}}"#.to_owned(),
        "CANARY".to_owned(),
    ] {
        let id = feed.post(&headers, &tools_call("1", "t", r#"{"q":"CANARY"}"#));
        feed.json(id, &answer);
    }
    assert_eq!(
        outcomes(&feed.calls()),
        [Outcome::Ok, Outcome::RpcError, Outcome::Unreadable]
    );
    for record in feed.records() {
        assert!(!format!("{record:?}").contains("CANARY"), "{record:?}");
    }
}

#[test]
fn nothing_leaves_unredacted() {
    let mut feed = Feed::new();
    let secret = "hunter2hunter2";
    let headers = feed.initialize(
        "2025-11-25",
        "session-secret",
        &format!("authorization: Bearer {secret}\ncookie: a={secret}\n"),
    );
    let id = feed.post_to(
        &format!("/mcp?api_key={secret}"),
        &headers,
        &tools_call(
            "1",
            "t",
            &format!(r#"{{"password":"{secret}","url":"https://u:{secret}@h.test/"}}"#),
        ),
    );
    feed.head(
        id,
        200,
        &format!("content-type: text/event-stream\nset-cookie: s={secret}\n"),
    );
    feed.event(id, &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{{"token":"{secret}"}}}}"#));
    feed.event(id, &format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[],"structuredContent":{{"access_token":"{secret}"}}}}}}"#));
    feed.done(id);
    let id = feed.post(&headers, &format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"action":"accept","content":{{"api_key":"{secret}"}}}}}}"#));
    feed.answer(id, 202, "", "");
    let id = feed.post(&headers, &tools_call("2", "t", "{}"));
    feed.answer(
        id,
        500,
        "content-type: application/json\n",
        format!(r#"{{"secret":"{secret}"}}"#),
    );
    assert!(!feed.calls().is_empty());
    for record in feed.records() {
        let text = format!("{record:?}");
        assert!(
            !text.contains(secret) && !text.contains("session-secret"),
            "{text}"
        );
    }
}

#[test]
fn a_call_open_for_long_is_shown_and_then_concluded() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-11-25", "s", "");
    let id = feed.post(&headers, &tools_call("1", "slow", "{}"));
    feed.wait(500);
    assert!(feed.calls().is_empty());
    feed.wait(600);
    let open = feed.call();
    assert_eq!(
        (open.outcome, open.end, open.duration_us),
        (Outcome::Pending, End::Open, None)
    );
    feed.wait(5000);
    feed.json(id, &result("1", "x"));
    let call = feed.call();
    assert_eq!(
        (call.id, call.outcome, call.end),
        (open.id, Outcome::Ok, End::Complete)
    );
    let sent = feed
        .records()
        .iter()
        .filter(|record| matches!(record, callbox_store::Record::Call(_)))
        .count();
    assert_eq!(sent, 2, "once open, once concluded");
}

#[test]
fn at_the_end_open_calls_are_recorded_as_they_are() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-11-25", "s", "");
    let answered = feed.post(&headers, &tools_call("1", "t", "{}"));
    feed.stream(answered);
    feed.event(answered, &result("1", "x"));
    feed.post(&headers, &tools_call("2", "t", "{}"));
    feed.post("", r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#);
    feed.observer.finish(feed.now);
    let calls = feed.calls();
    assert_eq!(outcomes(&calls), [Outcome::Ok, Outcome::Pending]);
    assert!(calls.iter().all(|call| call.end == End::Open));
    assert_eq!(feed.lines().last().unwrap(), "> request initialize");
}

#[test]
fn lost_frames_are_said_and_the_rest_is_read() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-11-25", "s", "");
    let stream = feed.post(&headers, &tools_call("1", "t", "{}"));
    feed.stream(stream);
    feed.chunk(stream, "data: {\"jsonrpc\":\"2.0\",\"meth");
    feed.observer.handle(Event::Lost(stream, Side::Response));
    feed.chunk(stream, "params\":{}}\n\n");
    feed.event(stream, &result("1", "x"));
    feed.done(stream);
    let json = feed.post(&headers, &tools_call("2", "t", "{}"));
    feed.head(json, 200, "content-type: application/json\n");
    feed.observer.handle(Event::Lost(json, Side::Response));
    feed.chunk(json, "\"}");
    feed.done(json);
    let calls = feed.calls();
    assert_eq!(outcomes(&calls), [Outcome::Ok, Outcome::Unreadable]);
    assert!(
        calls
            .iter()
            .all(|call| call.capture.response == Capture::Dropped)
    );
}

#[test]
fn an_unknown_coding_is_unreadable_only_where_it_hid_the_answer() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-11-25", "s", "");
    for (status, outcome) in [(200, Outcome::Unreadable), (502, Outcome::HttpError)] {
        let id = feed.post(&headers, &tools_call("1", "t", &format!("[{status}]")));
        feed.answer(
            id,
            status,
            "content-type: application/json\ncontent-encoding: sdch\n",
            "????",
        );
        let call = feed.calls().pop().unwrap();
        assert_eq!(
            (call.outcome, call.capture.response),
            (outcome, Capture::Undecoded)
        );
        assert_eq!(call.flags, ["undecoded"]);
        assert!(call.capture.reason.unwrap().contains("sdch"));
    }
}

#[test]
fn before_response_waits_only_for_what_there_is() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-11-25", "s", "");
    feed.records();
    let ask = |feed: &mut Feed, id| {
        let (done, waiting) = oneshot::channel();
        feed.observer.handle(Event::Flush(id, done));
        waiting
    };
    // Nothing to store yet: at once.
    let id = feed.request_head(http::Method::GET, "/health", "accept: */*\n");
    feed.request_body(id, b"", Some(BodyEnd::Complete));
    assert!(ask(&mut feed, id).try_recv().is_ok());
    // A stream: the answer's record is handed over with whoever waits for it.
    let id = feed.post(&headers, &tools_call("1", "t", "{}"));
    feed.stream(id);
    feed.event(id, &result("1", "x"));
    let mut waiting = ask(&mut feed, id);
    assert!(waiting.try_recv().is_err());
    let batch = feed.observer.take();
    assert_eq!((batch.records.len(), batch.committed.len()), (1, 1));
    batch.committed.into_iter().for_each(|done| done());
    assert!(waiting.try_recv().is_ok());
    feed.done(id);
    let call = feed.call();
    assert_eq!(call.end, End::Complete);
    // JSON: asked after the end, when the exchange is gone from the books.
    let id = feed.post(&headers, &tools_call("2", "t", "{}"));
    feed.json(id, &result("2", "x"));
    let mut waiting = ask(&mut feed, id);
    assert!(waiting.try_recv().is_err());
    let batch = feed.observer.take();
    assert_eq!((batch.records.len(), batch.committed.len()), (1, 1));
    drop(batch);
    assert!(waiting.try_recv().is_err(), "given up: the sender is gone");
}

#[test]
fn open_calls_hold_no_more_than_their_limit() {
    let mut feed = Feed::with(|settings| settings.record.queue_bytes = 64 << 10);
    let headers = feed.initialize("2025-11-25", "s", "");
    let arguments = format!(r#"{{"a":"{}"}}"#, "x".repeat(10 << 10));
    for n in 0..20 {
        let id = feed.post(&headers, &tools_call(&n.to_string(), "t", &arguments));
        feed.answer(id, 202, "", "");
    }
    feed.wait(300);
    let calls = feed.calls();
    assert_eq!(calls.len(), 20);
    let evicted = calls
        .iter()
        .filter(|call| call.flags.contains(&"evicted".to_owned()))
        .count();
    assert!(evicted > 10, "{evicted}");
    assert_eq!(calls[0].outcome, Outcome::Abandoned);
    assert_eq!(calls[19].outcome, Outcome::Pending);
    assert!(
        calls
            .iter()
            .all(|call| raw(call.arguments.as_ref()) == arguments),
        "they were handed over whole"
    );
    // Running calls cannot be evicted: they go without.
    let mut feed = Feed::with(|settings| settings.record.queue_bytes = 64 << 10);
    for n in 0..20 {
        feed.post("", &tools_call(&n.to_string(), "t", &arguments));
    }
    feed.wait(2000);
    let dropped = feed
        .calls()
        .iter()
        .filter(|call| call.capture.request == Capture::Dropped)
        .count();
    assert!(dropped > 10, "{dropped}");
}

#[test]
fn many_events_are_listed_up_to_a_limit() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-11-25", "s", "");
    let id = feed.post(&headers, &tools_call("1", "t", "{}"));
    feed.stream(id);
    for _ in 0..2000 {
        feed.event(
            id,
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#,
        );
    }
    feed.event(id, &result("1", "x"));
    feed.done(id);
    let call = feed.call();
    assert_eq!((call.events.len(), call.outcome), (1000, Outcome::Ok));
    assert_eq!(call.flags, ["events_cut"]);
}

#[test]
fn tool_lists_are_assembled_from_pages_and_named_by_calls() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-11-25", "s", "");
    let list = |feed: &mut Feed, cursor: &str, answer: &str| {
        let id = feed.post(
            &headers,
            &format!(r#"{{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{{{cursor}}}}}"#),
        );
        feed.json(
            id,
            &format!(r#"{{"jsonrpc":"2.0","id":5,"result":{answer}}}"#),
        );
    };
    let call = |feed: &mut Feed| {
        let id = feed.post(&headers, &tools_call("6", "a", "{}"));
        feed.json(id, &result("6", "x"));
        feed.calls().pop().unwrap().catalogue
    };
    assert_eq!(call(&mut feed), None);
    list(
        &mut feed,
        "",
        r#"{"tools":[{"name":"a","inputSchema":{"properties":{"password":{"type":"string"}}}}],"nextCursor":""}"#,
    );
    assert_eq!(call(&mut feed), None, "not whole yet");
    list(&mut feed, r#""cursor":"""#, r#"{"tools":[{"name":"b"}]}"#);
    let first = call(&mut feed).unwrap();
    list(
        &mut feed,
        "",
        r#"{"tools":[{"name":"b"},{"inputSchema":{"properties":{"password":{"type":"string"}}},"name":"a"}]}"#,
    );
    assert_eq!(call(&mut feed), Some(first.clone()), "order is no content");
    list(
        &mut feed,
        "",
        r#"{"tools":[{"name":"a","description":"new"}]}"#,
    );
    let second = call(&mut feed).unwrap();
    assert_ne!(first, second);
    let catalogues = feed.catalogues();
    assert_eq!(
        catalogues
            .iter()
            .map(|catalogue| &catalogue.hash)
            .collect::<Vec<_>>(),
        [&first, &second]
    );
    assert_eq!(
        catalogues[0].tools.get(),
        r#"[{"name":"a","inputSchema":{"properties":{"password":{"type":"string"}}}},{"name":"b"}]"#
    );
    let metrics = feed
        .metrics
        .render(callbox_telemetry::metrics::Format::Text);
    assert!(
        metrics.contains(r#"mcp_tool_calls_total{outcome="tool_error",tool="b",upstream="crm"} 0"#)
    );
}

#[test]
fn batches_within_a_batch_and_nonsense_do_no_harm() {
    let mut feed = Feed::new();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for body in [
        "[]",
        "[[]]",
        "[1,2]",
        "{}",
        "null",
        "\"x\"",
        "{\"jsonrpc\":\"2.0\"}",
        &deep,
        "\u{feff}{}",
        "[{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"tools/call\"}]",
    ] {
        for headers in [
            "",
            "mcp-session-id: s\n",
            "mcp-protocol-version: 2026-07-28\nmcp-method: tools/call\n",
        ] {
            let id = feed.post(headers, body);
            feed.json(id, body);
            let id = feed.post(headers, &tools_call("1", "t", "{}"));
            feed.stream(id);
            feed.event(id, body);
            feed.event(id, body);
            feed.done(id);
        }
    }
    feed.wait(700_000);
    feed.observer.finish(feed.now);
    feed.records();
    assert_eq!(feed.faults(), 0);
}
