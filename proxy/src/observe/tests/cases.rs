//! Real faults of neighbouring products, at the observer. Named after the list of cases.

use callbox_store::{Capture, Direction, End, Outcome, SessionSource};

use super::feed::{Feed, flags, modern, outcomes, raw, result, tools_call};
use crate::tap::BodyEnd;

#[test]
fn b01_a_question_in_mid_call_is_linked_to_it() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-06-18", "s", "");
    let id = feed.post(&headers, &tools_call("1", "t", "{}"));
    feed.stream(id);
    feed.event(
        id,
        r#"{"jsonrpc":"2.0","id":"e1","method":"elicitation/create","params":{"message":"?"}}"#,
    );
    let answer = feed.post(
        &headers,
        r#"{"jsonrpc":"2.0","id":"e1","result":{"action":"accept","content":{}}}"#,
    );
    feed.answer(answer, 202, "", "");
    feed.event(id, &result("1", "x"));
    feed.done(id);
    let call = feed.call();
    let linked: Vec<_> = feed
        .messages()
        .into_iter()
        .filter(|message| message.call == Some(call.id))
        .collect();
    assert_eq!(
        (linked.len(), call.confirmation.as_deref()),
        (2, Some("accept"))
    );
    assert_eq!(linked[1].exchange_id, answer);
}

#[test]
fn b07_a_notification_before_the_answer_is_not_the_answer() {
    let mut feed = Feed::new();
    let body = r#"{"jsonrpc":"2.0","id":"init-a1","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    let id = feed.post("", body);
    feed.head(
        id,
        200,
        "content-type: text/event-stream\nmcp-session-id: s\n",
    );
    feed.event(id, r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"up"}}"#);
    feed.event(id, r#"{"jsonrpc":"2.0","id":"init-a1","result":{"protocolVersion":"2025-03-26","capabilities":{},"serverInfo":{}}}"#);
    feed.done(id);
    let call = feed.post("mcp-session-id: s\n", &tools_call("1", "t", "{}"));
    feed.json(call, &result("1", "x"));
    let call = feed.call();
    assert_eq!(
        call.protocol_version.as_deref(),
        Some("2025-03-26"),
        "the result's version counts"
    );
    let messages = feed.messages();
    assert!(
        messages
            .iter()
            .all(|message| message.session.id == call.session.id)
    );
    let kinds: Vec<_> = messages
        .iter()
        .map(|message| message.kind.as_str())
        .collect();
    assert_eq!(kinds, ["request", "notification", "response"]);
}

#[test]
fn b13_a_get_that_is_not_offered_is_no_failure() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-06-18", "s", "");
    let get = feed.get(&headers);
    feed.answer(get, 405, "allow: POST\n", "");
    assert!(feed.calls().is_empty());
    assert_eq!(feed.lines().last().unwrap(), "< http GET 405");
    assert!(
        !feed
            .metrics
            .render(callbox_telemetry::metrics::Format::Text)
            .contains("mcp_tool_calls_total{")
    );
}

#[test]
fn b14_a_call_without_a_session_is_inferred() {
    let mut feed = Feed::new();
    let id = feed.post("", &tools_call("1", "t", "{}"));
    feed.json(id, &result("1", "x"));
    let call = feed.call();
    assert_eq!(
        (call.outcome, call.session.source),
        (Outcome::Ok, SessionSource::Inferred)
    );
    assert_eq!(
        (call.protocol_version.as_deref(), flags(&call)),
        (Some("2025-03-26"), vec!["version_assumed"])
    );
}

#[test]
fn b14_a_stateless_server_still_introduces_its_client() {
    let mut feed = Feed::new();
    let id = feed.post(
        "user-agent: x\n",
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"claude","version":"1"}}}"#,
    );
    feed.json(id, r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{}}}"#);
    let id = feed.post(
        "user-agent: x\nmcp-protocol-version: 2025-06-18\n",
        &tools_call("1", "t", "{}"),
    );
    feed.json(id, &result("1", "x"));
    let call = feed.call();
    assert_eq!(
        call.session
            .client
            .as_ref()
            .map(|client| client.name.as_str()),
        Some("claude")
    );
    assert!(
        feed.messages()
            .iter()
            .all(|message| message.session.id == call.session.id)
    );
}

#[test]
fn b15_a_lost_session_is_not_the_tools_failure() {
    for (status, kind, body) in [
        (
            404,
            "application/json",
            r#"{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}"#,
        ),
        (
            404,
            "application/json",
            r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}"#,
        ),
        (
            400,
            "application/json",
            r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}"#,
        ),
        (404, "text/plain", "Not Found: Session not found"),
    ] {
        let mut feed = Feed::new();
        let headers = feed.initialize("2025-06-18", "s", "");
        let id = feed.post(&headers, &tools_call("5", "t", "{}"));
        feed.answer(id, status, &format!("content-type: {kind}\n"), body);
        let call = feed.call();
        assert_eq!(
            (call.outcome, call.http_status),
            (Outcome::HttpError, Some(status)),
            "{body}"
        );
        assert!(
            flags(&call).contains(&"session_lost"),
            "{body}: {:?}",
            call.flags
        );
        assert!(!raw(call.error.as_ref()).is_empty());
    }
}

#[test]
fn b16_a_client_that_left_is_not_a_failed_tool() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-06-18", "s", "");
    let id = feed.post(&headers, &tools_call("1", "slow", "{}"));
    feed.wait(1000);
    feed.end(id, BodyEnd::Cancelled);
    let call = feed.call();
    assert_eq!(
        (call.outcome, call.end, call.duration_us),
        (Outcome::Aborted, End::ClientGone, Some(1_000_000))
    );
}

#[test]
fn b16_a_cancelled_call_says_so_in_whatever_order() {
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"stop"}}"#;
    for closes_first in [false, true] {
        let mut feed = Feed::new();
        let headers = feed.initialize("2025-06-18", "s", "");
        let id = feed.post(&headers, &tools_call("1", "slow", "{}"));
        feed.stream(id);
        if closes_first {
            feed.end(id, BodyEnd::Cancelled);
        }
        let notice = feed.post(&headers, cancel);
        feed.answer(notice, 202, "", "");
        if !closes_first {
            feed.end(id, BodyEnd::Cancelled);
        }
        let call = feed.call();
        assert_eq!(
            (call.outcome, call.end),
            (Outcome::Cancelled, End::ClientGone)
        );
        let messages = feed.messages();
        assert_eq!(messages.last().unwrap().call, Some(call.id));
        assert_eq!(
            raw(messages.last().unwrap().body.as_ref()),
            r#"{"requestId":1,"reason":"stop"}"#
        );
    }
}

#[test]
fn b25_a_string_id_stays_a_string() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-06-18", "s", "");
    let body = format!(
        "[{},{}]",
        tools_call("1", "number", "{}"),
        tools_call("\"1\"", "string", "{}")
    );
    let id = feed.post(&headers, &body);
    feed.stream(id);
    feed.event(id, &result("\"1\"", "to the string"));
    feed.event(id, &result("1", "to the number"));
    feed.done(id);
    let calls = feed.calls();
    assert_eq!(
        (calls[0].jsonrpc_id.get(), calls[1].jsonrpc_id.get()),
        ("1", "\"1\"")
    );
    assert!(raw(calls[0].result.as_ref()).contains("number"));
    assert!(raw(calls[1].result.as_ref()).contains("string"));
    assert!(calls.iter().all(|call| call.flags.is_empty()));
}

#[test]
fn b26_b27_numbers_keep_their_digits() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-06-18", "s", "");
    let arguments = r#"{"n":1.0,"m":1,"x":1e400,"big":9007199254740993,"password":"hunter2"}"#;
    let id = feed.post(&headers, &tools_call("0", "t", arguments));
    feed.json(
        id,
        r#"{"jsonrpc":"2.0","id":0,"result":{"id":9007199254740993,"v":-0.0,"content":[]}}"#,
    );
    let call = feed.call();
    let recorded = raw(call.arguments.as_ref());
    assert!(
        recorded.starts_with(
            r#"{"n":1.0,"m":1,"x":1e400,"big":9007199254740993,"password":"[redacted:"#
        ),
        "{recorded}"
    );
    assert_eq!(
        raw(call.result.as_ref()),
        r#"{"id":9007199254740993,"v":-0.0,"content":[]}"#
    );
    assert_eq!(call.jsonrpc_id.get(), "0");
    assert_eq!(call.outcome, Outcome::Ok);
}

#[test]
fn b28_null_is_not_a_missing_id() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-06-18", "s", "");
    let id = feed.post(
        &headers,
        r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#,
    );
    feed.json(
        id,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"id"}}"#,
    );
    let id = feed.post(
        &headers,
        r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#,
    );
    feed.answer(id, 202, "", "");
    let id = feed.post(
        &headers,
        r#"{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"t"}}"#,
    );
    feed.json(
        id,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"id"}}"#,
    );
    let messages = feed.messages();
    let kinds: Vec<_> = messages[3..]
        .iter()
        .map(|m| (m.kind.as_str(), raw(m.jsonrpc_id.as_ref())))
        .collect();
    assert_eq!(
        kinds,
        [
            ("request", "null"),
            ("response", "null"),
            ("notification", "")
        ]
    );
    let call = feed.call();
    assert_eq!(
        (call.outcome, call.jsonrpc_id.get()),
        (Outcome::RpcError, "null")
    );
}

#[test]
fn b29_a_second_response_does_not_count() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-06-18", "s", "");
    let id = feed.post(&headers, &tools_call("4", "t", "{}"));
    feed.stream(id);
    feed.wait(10);
    feed.event(id, &result("4", "first"));
    feed.wait(90);
    feed.event(id, &result("4", "second"));
    feed.done(id);
    let call = feed.call();
    assert_eq!(
        (call.duration_us, flags(&call)),
        (Some(10_000), vec!["duplicate_response"])
    );
    assert!(raw(call.result.as_ref()).contains("first"));
    let repeated = feed.messages().pop().unwrap();
    assert_eq!(
        (repeated.call, repeated.flags.as_slice()),
        (Some(call.id), ["duplicate_response".to_owned()].as_slice())
    );
    let metrics = feed
        .metrics
        .render(callbox_telemetry::metrics::Format::Text);
    assert!(metrics.contains(r#"mcp_tool_calls_total{outcome="ok",tool="t",upstream="crm"} 1"#));
}

#[test]
fn b30_an_answer_after_a_cancel_is_late_and_changes_nothing() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-06-18", "s", "");
    let id = feed.post(&headers, &tools_call("9", "t", "{}"));
    feed.stream(id);
    let notice = feed.post(
        &headers,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}"#,
    );
    feed.answer(notice, 202, "", "");
    feed.wait(2000);
    feed.event(id, &result("9", "x"));
    feed.done(id);
    let call = feed.call();
    assert_eq!(
        (call.outcome, flags(&call)),
        (Outcome::Cancelled, vec!["late_result"])
    );
    let metrics = feed
        .metrics
        .render(callbox_telemetry::metrics::Format::Text);
    assert!(
        metrics.contains(r#"outcome="cancelled""#) && !metrics.contains(r#"outcome="ok",tool="t""#)
    );
}

#[test]
fn b31_a_stream_without_end_is_no_call_and_has_no_latency() {
    let mut feed = Feed::new();
    let (headers, body) = modern(
        "1",
        "subscriptions/listen",
        "",
        r#""notifications":{"toolsListChanged":true}"#,
    );
    let id = feed.post(&headers, &body);
    feed.stream(id);
    feed.event(
        id,
        r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{}}"#,
    );
    for _ in 0..360 {
        feed.wait(10_000);
    }
    feed.event(
        id,
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}"#,
    );
    feed.end(id, BodyEnd::Cancelled);
    assert!(feed.calls().is_empty());
    assert_eq!(
        feed.lines(),
        [
            "> request subscriptions/listen",
            "< notification notifications/subscriptions/acknowledged 200",
            "< notification notifications/tools/list_changed 200"
        ]
    );
    assert!(
        !feed
            .metrics
            .render(callbox_telemetry::metrics::Format::Text)
            .contains("mcp_tool_call_duration_seconds_count{")
    );
}

#[test]
fn b32_a_coded_name_is_no_mismatch() {
    let mut feed = Feed::new();
    let (headers, body) = modern("1", "tools/call", "=?base64?5pCc57Si?=", r#""name":"搜索""#);
    let id = feed.post(&headers, &body);
    feed.json(id, &result("1", "x"));
    let call = feed.call();
    assert_eq!((call.tool.as_str(), flags(&call).len()), ("搜索", 0));
}

#[test]
fn b33_ids_do_not_repeat_across_runs() {
    let run = || {
        let mut feed = Feed::new();
        let headers = feed.initialize("2025-06-18", "s", "");
        let id = feed.post(&headers, &tools_call("1", "t", "{}"));
        feed.json(id, &result("1", "x"));
        let call = feed.call();
        (call.id, call.session.id)
    };
    let (one, two) = (run(), run());
    assert_ne!(one.0, two.0);
    assert_ne!(one.1, two.1);
    assert_eq!(one.0.get_version_num(), 7);
}

#[test]
fn b34_text_is_recorded_as_sent() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-06-18", "s", "");
    let id = feed.post(
        &headers,
        &tools_call("1", "t", r#"{"html":"<a href=\"x\">&\u003c那"}"#),
    );
    feed.json(id, &result("1", r#"<a href=\"x\">&"#));
    let call = feed.call();
    assert_eq!(
        raw(call.arguments.as_ref()),
        r#"{"html":"<a href=\"x\">&\u003c那"}"#
    );
    assert!(raw(call.result.as_ref()).contains(r#"<a href=\"x\">&"#));
}

#[test]
fn b35_unknown_members_stay() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-06-18", "s", "");
    let id = feed.post(&headers, &tools_call("1", "t", "{}"));
    let answer = r#"{"content":[],"structuredContent":{"a":[null]},"_meta":{"vendor":{"k":1}},"x9":{"y":true}}"#;
    feed.json(
        id,
        &format!(r#"{{"jsonrpc":"2.0","id":1,"result":{answer}}}"#),
    );
    assert_eq!(raw(feed.call().result.as_ref()), answer);
}

#[test]
fn b36_progress_is_attached_to_its_call() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-06-18", "s", "");
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":"p"}}}"#;
    let id = feed.post(&headers, body);
    feed.stream(id);
    for progress in 1..3 {
        feed.wait(10);
        feed.event(
            id,
            &format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":"p","progress":{progress}}}}}"#),
        );
    }
    feed.event(id, &result("1", "x"));
    feed.done(id);
    let call = feed.call();
    let events: Vec<_> = call
        .events
        .iter()
        .map(|event| (event.kind.as_str(), event.offset_ms))
        .collect();
    assert_eq!(
        events,
        [("progress", 10.0), ("progress", 20.0), ("response", 20.0)]
    );
    let linked = feed
        .messages()
        .iter()
        .filter(|message| message.call == Some(call.id))
        .count();
    assert_eq!(linked, 2);
}

#[test]
fn b37_one_trace_id_wherever_it_stands() {
    let a = "0af7651916cd43dd8448eb211c80319c";
    let b = "1bf7651916cd43dd8448eb211c80319c";
    let span = "b7ad6b7169203331";
    let header = |trace: &str| format!("traceparent: 00-{trace}-{span}-01\n");
    let meta = |trace: &str| format!(r#","_meta":{{"traceparent":"00-{trace}-{span}-01"}}"#);
    for (headers, meta, expected) in [
        (header(a), String::new(), Some(a)),
        (String::new(), meta(a), Some(a)),
        (header(a), meta(a), Some(a)),
        (header(b), meta(a), Some(a)),
        (header(a), meta("nonsense"), Some(a)),
        (String::new(), String::new(), None),
    ] {
        let mut feed = Feed::new();
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t"{meta}}}}}"#
        );
        let id = feed.post(&headers, &body);
        feed.json(id, &result("1", "x"));
        let call = feed.call();
        assert_eq!(call.trace_id.as_deref(), expected);
        assert_eq!(call.span_id.is_some(), expected.is_some());
    }
}

fn big(size: usize) -> String {
    "words ".repeat(size / 6)
}

#[test]
fn b45_one_cap_on_every_route() {
    const CAP: usize = 64 << 10;
    const SIZE: usize = 300 * 1020;
    let mut feed = Feed::with(|settings| settings.record.max_message_bytes = CAP);
    feed.frame = 16 << 10;
    let headers = feed.initialize("2025-11-25", "s", "");
    let large = result("1", &big(SIZE));
    let json = feed.post(&headers, &tools_call("1", "t", "{}"));
    feed.json(json, &large);
    let stream = feed.post(&headers, &tools_call("1", "t", "{}"));
    feed.stream(stream);
    feed.event(stream, &large);
    feed.done(stream);
    let error = feed.post(&headers, &tools_call("1", "t", "{}"));
    let large_error = format!(
        r#"{{"jsonrpc":"2.0","error":{{"code":-1,"message":"{}"}},"id":1}}"#,
        big(SIZE)
    );
    feed.json(error, &large_error);
    let page = feed.post(&headers, &tools_call("1", "t", "{}"));
    feed.answer(page, 500, "content-type: text/plain\n", big(SIZE));
    let begun = feed.post(
        &headers,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","task":{}}}"#,
    );
    feed.json(
        begun,
        r#"{"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"k","status":"working"}}}"#,
    );
    let task = feed.post(
        &headers,
        r#"{"jsonrpc":"2.0","id":1,"method":"tasks/result","params":{"taskId":"k"}}"#,
    );
    feed.json(task, &large);
    let asked = feed.post(
        &headers,
        &tools_call("1", "t", &format!(r#"{{"a":"{}"}}"#, big(SIZE))),
    );
    feed.stream(asked);
    feed.event(
        asked,
        &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{{"message":"{}"}}}}"#, big(SIZE)),
    );
    feed.event(asked, &result("1", "x"));
    feed.done(asked);
    let calls = feed.calls();
    assert_eq!(
        outcomes(&calls),
        [
            Outcome::Ok,
            Outcome::Ok,
            Outcome::RpcError,
            Outcome::HttpError,
            Outcome::Ok,
            Outcome::Ok
        ]
    );
    for (call, length) in calls.iter().zip([
        large.len(),
        large.len(),
        large_error.len(),
        SIZE,
        large.len(),
    ]) {
        assert_eq!(call.capture.response, Capture::Truncated);
        let reason = call.capture.reason.as_deref().unwrap();
        assert!(
            reason.starts_with(&format!("over {CAP} bytes: {length} bytes, sha256:")),
            "{reason}"
        );
        let kept = raw(call.result.as_ref().or(call.error.as_ref()));
        assert!(
            kept.len() > CAP / 2 && kept.len() < 2 * CAP,
            "{}",
            kept.len()
        );
        assert!(
            serde_json::from_str::<String>(kept).is_ok(),
            "a JSON string"
        );
    }
    assert_eq!(
        (calls[5].tool.as_str(), calls[5].capture.request),
        ("t", Capture::Truncated)
    );
    let elicitation = feed
        .messages()
        .into_iter()
        .find(|m| m.method.as_deref() == Some("elicitation/create"))
        .unwrap();
    assert!(elicitation.flags[0] == "truncated" && elicitation.flags[1].contains("sha256:"));
    assert_eq!(
        (elicitation.direction, elicitation.call),
        (Direction::ServerToClient, Some(calls[5].id))
    );
}

#[test]
fn b57_a_streamed_answer_is_all_there() {
    let mut feed = Feed::new();
    feed.frame = 7;
    let headers = feed.initialize("2025-06-18", "s", "");
    let id = feed.post(&headers, &tools_call("1", "t", "{}"));
    feed.stream(id);
    for n in 0..5 {
        feed.wait(10);
        feed.event(
            id,
            &format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"data":{n}}}}}"#
            ),
        );
    }
    feed.chunk(id, "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"resu");
    feed.end(id, BodyEnd::Error);
    let call = feed.call();
    let offsets: Vec<_> = call.events.iter().map(|event| event.offset_ms).collect();
    assert_eq!(offsets, [10.0, 20.0, 30.0, 40.0, 50.0]);
    assert_eq!(
        (call.outcome, call.end, flags(&call)),
        (Outcome::Lost, End::UpstreamLost, vec!["incomplete_event"])
    );
    assert!(call.response_bytes > 300);
}
