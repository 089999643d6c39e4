//! Streamable HTTP with sessions: 2025-03-26, 2025-06-18, 2025-11-25.

use callbox_store::{Capture, End, Outcome, SessionSource};

use super::feed::{Feed, flags, outcomes, raw, result, tools_call};
use crate::tap::BodyEnd;

#[test]
fn a_call_answered_as_json() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-11-25", "s-1", "authorization: Bearer t\n");
    let id = feed.post(&headers, &tools_call("1", "search", r#"{"q":"x"}"#));
    feed.wait(12);
    feed.head(
        id,
        200,
        "content-type: application/json; charset=utf-8\nserver: node\n",
    );
    feed.wait(1);
    feed.chunk(id, result("1", "found"));
    feed.wait(2);
    feed.done(id);
    let call = feed.call();
    assert_eq!(call.outcome, Outcome::Ok);
    assert_eq!(call.end, End::Complete);
    assert_eq!(
        (call.tool.as_str(), raw(call.arguments.as_ref())),
        ("search", r#"{"q":"x"}"#)
    );
    assert_eq!(
        raw(call.result.as_ref()),
        r#"{"content":[{"type":"text","text":"found"}]}"#
    );
    assert_eq!(
        (call.first_byte_us, call.duration_us),
        (Some(13_000), Some(15_000))
    );
    assert_eq!(
        (call.http_status, call.jsonrpc_id.get(), call.seq, call.legs),
        (Some(200), "1", 1, 1)
    );
    assert_eq!(call.protocol_version.as_deref(), Some("2025-11-25"));
    assert_eq!(
        call.request_bytes,
        tools_call("1", "search", r#"{"q":"x"}"#).len() as u64
    );
    assert_eq!(call.response_bytes, result("1", "found").len() as u64);
    assert_eq!(call.capture.response, Capture::Full);
    assert_eq!(call.flags, [""; 0]);
    let session = &call.session;
    assert_eq!(session.source, SessionSource::Protocol);
    assert_eq!(session.client.as_ref().unwrap().name, "claude");
    assert_eq!(session.protocol_version.as_deref(), Some("2025-11-25"));
    assert!(session.principal.as_deref().unwrap().starts_with("h:"));
    assert_eq!(
        call.http.response_headers.last().unwrap(),
        &("server".to_owned(), "node".to_owned())
    );
    assert!(
        call.http
            .request_headers
            .iter()
            .all(|(_, value)| !value.contains("s-1") && !value.contains("Bearer t"))
    );
    assert_eq!(
        feed.lines(),
        [
            "> request initialize 200",
            "< response initialize 200",
            "> notification notifications/initialized"
        ]
    );
    assert!(
        feed.messages()
            .iter()
            .all(|message| message.session.id == session.id)
    );
}

#[test]
fn a_call_answered_as_a_stream() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-06-18", "s-1", "");
    let id = feed.post(&headers, &tools_call("1", "slow", "{}"));
    feed.stream(id);
    feed.chunk(id, "id: 0\nretry: 3000\ndata:\n\n");
    feed.wait(5);
    feed.event(id, r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#);
    feed.wait(5);
    feed.event(id, &result("1", "late"));
    feed.wait(40);
    feed.done(id);
    let call = feed.call();
    assert_eq!(
        (call.outcome, call.end, call.duration_us),
        (Outcome::Ok, End::Complete, Some(10_000))
    );
    let events: Vec<_> = call
        .events
        .iter()
        .map(|event| (event.kind.as_str(), event.offset_ms))
        .collect();
    assert_eq!(
        events,
        [("priming", 0.0), ("message", 5.0), ("response", 10.0)]
    );
    assert_eq!(feed.messages().last().unwrap().call, Some(call.id));
}

#[test]
fn failures_of_tools_and_of_the_protocol_are_two_things() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-06-18", "s", "");
    for (id, answer) in [
        (
            "1",
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":true}}"#,
        ),
        (
            "2",
            r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"Unknown tool"}}"#,
        ),
        (
            "3",
            r#"{"id":3,"result":{"content":[],"isError":false},"jsonrpc":"2.0"}"#,
        ),
    ] {
        let exchange = feed.post(&headers, &tools_call(id, "t", "{}"));
        feed.json(exchange, answer);
    }
    let calls = feed.calls();
    assert_eq!(
        outcomes(&calls),
        [Outcome::ToolError, Outcome::RpcError, Outcome::Ok]
    );
    assert_eq!(
        raw(calls[1].error.as_ref()),
        r#"{"code":-32602,"message":"Unknown tool"}"#
    );
    assert_eq!(
        calls.iter().map(|call| call.seq).collect::<Vec<_>>(),
        [1, 2, 3]
    );
}

#[test]
fn a_batch_is_split() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-03-26", "s", "");
    let body = format!(
        r#"[{},{},{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":9,"progress":1}}}},{{"jsonrpc":"2.0","id":3,"method":"ping"}}]"#,
        tools_call("1", "a", "{}"),
        tools_call("2", "b", "{}")
    );
    // One exchange answers as a stream, with an array in one event and the rest in another; one as JSON.
    let streamed = feed.post("mcp-session-id: s\n", &body);
    feed.stream(streamed);
    feed.event(
        streamed,
        &format!(
            "[{},{}]",
            result("2", "two"),
            r#"{"jsonrpc":"2.0","id":3,"result":{}}"#
        ),
    );
    feed.event(streamed, &result("1", "one"));
    feed.done(streamed);
    let json = feed.post(&headers, &body);
    feed.json(
        json,
        &format!("[{},{}]", result("2", "two"), result("1", "one")),
    );
    let calls = feed.calls();
    assert_eq!(calls.len(), 4);
    for pair in calls.chunks(2) {
        assert_eq!((pair[0].tool.as_str(), pair[1].tool.as_str()), ("a", "b"));
        assert!(raw(pair[0].result.as_ref()).contains("one"));
        assert!(raw(pair[1].result.as_ref()).contains("two"));
    }
    assert_eq!(
        calls[0].request_bytes,
        tools_call("1", "a", "{}").len() as u64
    );
    assert_eq!(calls[0].protocol_version.as_deref(), Some("2025-03-26"));
}

#[test]
fn the_answer_may_come_on_another_stream() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-11-25", "s", "");
    let stream = feed.get(&headers);
    feed.stream(stream);
    let id = feed.post(&headers, &tools_call("7", "t", "{}"));
    feed.answer(id, 202, "", "");
    feed.wait(2000);
    assert_eq!(
        (feed.call().outcome, feed.call().end),
        (Outcome::Pending, End::Complete)
    );
    feed.event(stream, &result("7", "there"));
    let call = feed.call();
    assert_eq!(
        (call.outcome, call.end, call.duration_us),
        (Outcome::Ok, End::Complete, Some(2_000_000))
    );
    assert_eq!(call.exchange_id, id);
}

#[test]
fn a_polled_stream_is_resumed() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-11-25", "s", "");
    let id = feed.post(&headers, &tools_call("1", "t", "{}"));
    feed.stream(id);
    feed.chunk(id, "id: stream1_0\ndata: \n\nretry: 500\n\n");
    feed.done(id);
    feed.wait(300);
    assert_eq!(feed.call().outcome, Outcome::Pending);
    let resumed = feed.get(&format!("{headers}last-event-id: stream1_0\n"));
    feed.stream(resumed);
    feed.chunk(
        resumed,
        format!("id: stream1_1\ndata: {}\n\n", result("1", "done")),
    );
    feed.done(resumed);
    let call = feed.call();
    assert_eq!((call.outcome, call.end), (Outcome::Ok, End::Complete));
    assert!(raw(call.result.as_ref()).contains("done"));
}

#[test]
fn a_broken_stream_is_lost_until_it_is_resumed() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-11-25", "s", "");
    for (id, end, outcome, ended) in [
        ("1", BodyEnd::Error, Outcome::Lost, End::UpstreamLost),
        ("2", BodyEnd::Cancelled, Outcome::Aborted, End::ClientGone),
    ] {
        let exchange = feed.post(&headers, &tools_call(id, "t", "{}"));
        feed.stream(exchange);
        feed.chunk(exchange, format!("id: {id}_0\ndata: \n\n"));
        feed.end(exchange, end);
        let call = feed.calls().pop().unwrap();
        assert_eq!((call.outcome, call.end), (outcome, ended));
        let resumed = feed.get(&format!("{headers}last-event-id: {id}_0\n"));
        feed.stream(resumed);
        feed.event(resumed, &result(id, "after all"));
        feed.wait(300);
        let call = feed.calls().pop().unwrap();
        assert_eq!((call.outcome, call.end), (Outcome::Ok, End::Open));
        feed.done(resumed);
        assert_eq!(feed.calls().pop().unwrap().end, End::Complete);
    }
    assert_eq!(feed.calls().len(), 2);
}

#[test]
fn the_same_id_again_is_another_call() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-11-25", "s", "");
    let first = feed.post(&headers, &tools_call("1", "a", "{}"));
    feed.stream(first);
    feed.chunk(first, "id: a_0\ndata: \n\n");
    feed.end(first, BodyEnd::Error);
    let second = feed.post(&headers, &tools_call("1", "b", "{}"));
    feed.stream(second);
    feed.chunk(second, "id: b_0\ndata: \n\n");
    // The first is resumed while the second runs; each gets its own.
    let resumed = feed.get(&format!("{headers}last-event-id: a_0\n"));
    feed.stream(resumed);
    feed.event(resumed, &result("1", "for a"));
    feed.event(second, &result("1", "for b"));
    feed.done(second);
    feed.done(resumed);
    let calls = feed.calls();
    assert_eq!(outcomes(&calls), [Outcome::Ok, Outcome::Ok]);
    assert!(raw(calls[0].result.as_ref()).contains("for a"));
    assert!(raw(calls[1].result.as_ref()).contains("for b"));
}

#[test]
fn ids_of_other_sessions_and_principals_are_other_ids() {
    let mut feed = Feed::new();
    let one = feed.initialize("2025-11-25", "s-1", "authorization: Bearer a\n");
    let two = feed.initialize("2025-11-25", "s-2", "authorization: Bearer b\n");
    let first = feed.post(&one, &tools_call("1", "a", "{}"));
    feed.answer(first, 202, "", "");
    let second = feed.post(&two, &tools_call("1", "b", "{}"));
    feed.answer(second, 202, "", "");
    let stream = feed.get(&two);
    feed.stream(stream);
    feed.event(stream, &result("1", "for b"));
    feed.wait(300);
    let calls = feed.calls();
    assert_eq!(outcomes(&calls), [Outcome::Pending, Outcome::Ok]);
    assert_ne!(calls[0].session.id, calls[1].session.id);
}

#[test]
fn a_session_used_with_another_credential_is_told_apart() {
    let mut feed = Feed::new();
    let own = feed.initialize("2025-11-25", "s", "authorization: Bearer a\n");
    let first = feed.post(&own, &tools_call("1", "t", "{}"));
    feed.json(first, &result("1", "x"));
    let other = own.replace("Bearer a", "Bearer b");
    let second = feed.post(&other, &tools_call("2", "t", "{}"));
    feed.json(second, &result("2", "x"));
    let third = feed.post(&own, &tools_call("3", "t", "{}"));
    feed.json(third, &result("3", "x"));
    let calls = feed.calls();
    assert_eq!(flags(&calls[1]), ["session_other_principal"]);
    assert_eq!((flags(&calls[0]).len(), flags(&calls[2]).len()), (0, 0));
    assert_eq!(calls[0].session.id, calls[2].session.id);
    assert_ne!(calls[0].session.id, calls[1].session.id);
    assert_ne!(calls[0].session.principal, calls[1].session.principal);
    assert_eq!((calls[1].seq, calls[2].seq), (1, 2));
}

#[test]
fn a_session_id_that_a_refusal_mints_is_none() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-11-25", "s-1", "");
    // A Python server answers 400 to what has no session, with a fresh id.
    let stray = feed.post("", &tools_call("1", "t", "{}"));
    feed.answer(
        stray,
        400,
        "content-type: application/json\nmcp-session-id: fresh\n",
        r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Bad Request: Missing session ID"}}"#,
    );
    let known = feed.post(&headers, &tools_call("2", "t", "{}"));
    feed.json(known, &result("2", "x"));
    let used = feed.post("mcp-session-id: fresh\n", &tools_call("3", "t", "{}"));
    feed.json(used, &result("3", "x"));
    let calls = feed.calls();
    let sources: Vec<_> = calls.iter().map(|call| call.session.source).collect();
    assert_eq!(
        sources,
        [
            SessionSource::Inferred,
            SessionSource::Protocol,
            SessionSource::Protocol
        ]
    );
    assert_ne!(calls[1].session.id, calls[2].session.id);
    assert_eq!(
        (calls[0].outcome, calls[0].http_status),
        (Outcome::RpcError, Some(400))
    );
    assert!(
        flags(&calls[0]).contains(&"id_mismatch"),
        "the error names no request of this exchange"
    );
}

#[test]
fn sessions_are_found_again_after_a_restart() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-11-25", "s", "authorization: Bearer a\n");
    let id = feed.post(&headers, &tools_call("1", "t", "{}"));
    feed.json(id, &result("1", "x"));
    let before = feed.call();
    let mut feed = Feed::after(feed.log, |_| {});
    let id = feed.post(
        "mcp-session-id: s\nauthorization: Bearer a\n",
        &tools_call("1", "t", "{}"),
    );
    feed.json(id, &result("1", "x"));
    let after = feed.call();
    assert_eq!(after.session.id, before.session.id);
    assert_ne!(after.id, before.id);
    assert_eq!(
        (after.seq, after.protocol_version.as_deref()),
        (2, Some("2025-11-25"))
    );
    let id = feed.post(
        "mcp-session-id: s\nauthorization: Bearer b\n",
        &tools_call("2", "t", "{}"),
    );
    feed.json(id, &result("2", "x"));
    assert_eq!(flags(&feed.calls()[1]), ["session_other_principal"]);
}

#[test]
fn deleting_a_session_gives_up_what_waits_in_it() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-11-25", "s", "");
    let id = feed.post(&headers, &tools_call("1", "t", "{}"));
    feed.answer(id, 202, "", "");
    let delete = feed.request_head(http::Method::DELETE, "/mcp", &headers);
    feed.request_body(delete, b"", Some(BodyEnd::Complete));
    feed.answer(delete, 200, "", "");
    assert_eq!(feed.call().outcome, Outcome::Abandoned);
    assert_eq!(feed.lines().last().unwrap(), "< http DELETE 200");
}

#[test]
fn elicitation_confirms_a_call() {
    for action in ["accept", "decline", "cancel"] {
        let mut feed = Feed::new();
        let headers = feed.initialize("2025-06-18", "s", "");
        let id = feed.post(&headers, &tools_call("1", "delete_contact", "{}"));
        feed.stream(id);
        feed.event(id, r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"Really?"}}"#);
        let answer = format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"action":"{action}","content":{{}}}}}}"#
        );
        let posted = feed.post(&headers, &answer);
        feed.answer(posted, 202, "", "");
        feed.event(id, &result("1", "done"));
        feed.done(id);
        let call = feed.call();
        assert_eq!(call.confirmation.as_deref(), Some(action));
        assert_eq!(call.events[0].kind, "elicitation");
        let messages = feed.messages();
        let [.., asked, answered] = messages.as_slice() else {
            panic!()
        };
        assert_eq!(
            (asked.method.as_deref(), asked.call),
            (Some("elicitation/create"), Some(call.id))
        );
        assert_eq!(
            (answered.kind.as_str(), answered.method.as_deref()),
            ("response", Some("elicitation/create"))
        );
        assert_eq!(answered.call, Some(call.id));
    }
}

#[test]
fn answers_of_another_type_count_and_are_flagged() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-06-18", "s", "");
    let id = feed.post(&headers, &tools_call("1", "t", "{}"));
    feed.json(id, &result("\"1\"", "x"));
    let call = feed.call();
    assert_eq!(
        (call.outcome, flags(&call)),
        (Outcome::Ok, vec!["id_type_mismatch"])
    );
    assert_eq!(call.jsonrpc_id.get(), "1");
}

#[test]
fn the_same_call_after_a_failure_is_a_retry() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-06-18", "s", "");
    let ask = |feed: &mut Feed, id: &str, arguments: &str| {
        feed.post(&headers, &tools_call(id, "t", arguments))
    };
    let first = ask(&mut feed, "1", r#"{"x":1}"#);
    feed.end(first, BodyEnd::Error);
    let other = ask(&mut feed, "2", r#"{"x":2}"#);
    feed.json(other, &result("2", "x"));
    let again = ask(&mut feed, "3", r#"{"x":1}"#);
    feed.json(again, &result("3", "x"));
    let calls = feed.calls();
    assert_eq!(outcomes(&calls), [Outcome::Lost, Outcome::Ok, Outcome::Ok]);
    assert_eq!(
        (flags(&calls[1]).len(), flags(&calls[2])),
        (0, vec!["retry_of"])
    );
}

#[test]
fn an_answer_that_is_no_json_rpc_is_http() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-06-18", "s", "");
    for (status, kind, body, outcome) in [
        (500, "text/html", "<h1>oops</h1>", Outcome::HttpError),
        (200, "text/html", "<h1>log in</h1>", Outcome::HttpError),
        (
            503,
            "application/json",
            r#"{"error":"busy","password":"hunter2"}"#,
            Outcome::HttpError,
        ),
        (
            200,
            "application/json",
            r#"{"jsonrpc":"2.0","id":1,"res"#,
            Outcome::Unreadable,
        ),
        (204, "text/plain", "", Outcome::HttpError),
    ] {
        let id = feed.post(&headers, &tools_call("1", "t", "{}"));
        feed.answer(id, status, &format!("content-type: {kind}\n"), body);
        let call = feed.calls().pop().unwrap();
        assert_eq!(call.outcome, outcome, "{status} {body}");
        let error: String = call
            .error
            .map(|error| serde_json::from_str(error.get()).unwrap())
            .unwrap_or_default();
        assert!(!error.contains("hunter2"));
        if !body.contains("password") {
            assert_eq!(error, body);
        }
    }
}

#[test]
fn faults_of_callbox_are_told_from_the_tools() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-06-18", "s", "");
    for (status, kind, outcome, end) in [
        (
            502,
            "upstream-unreachable",
            Outcome::Lost,
            End::UpstreamLost,
        ),
        (504, "head-timeout", Outcome::Timeout, End::ProxyTimeout),
        (413, "body-too-large", Outcome::HttpError, End::Complete),
    ] {
        let id = feed.post(&headers, &tools_call("1", "t", "{}"));
        feed.fault(id, status, "content-type: text/plain\n", Some(kind));
        feed.chunk(id, "callbox: no");
        feed.done(id);
        let call = feed.calls().pop().unwrap();
        assert_eq!((call.outcome, call.end), (outcome, end));
        assert_eq!(raw(call.error.as_ref()), r#""callbox: no""#);
    }
}

#[test]
fn what_a_whole_answer_decided_stays() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-06-18", "s", "");
    for end in [BodyEnd::Error, BodyEnd::Cancelled, BodyEnd::Timeout] {
        let id = feed.post(&headers, &tools_call("1", "t", "{}"));
        feed.stream(id);
        feed.event(id, &result("1", "x"));
        feed.end(id, end);
        let json = feed.post(&headers, &tools_call("2", "t", "{}"));
        feed.head(json, 200, "content-type: application/json\n");
        feed.chunk(json, result("2", "x"));
        feed.end(json, end);
    }
    let calls = feed.calls();
    assert!(calls.iter().all(|call| call.outcome == Outcome::Ok));
    let ends: Vec<_> = calls.iter().map(|call| call.end).collect();
    assert_eq!(
        ends[..4],
        [
            End::UpstreamLost,
            End::UpstreamLost,
            End::ClientGone,
            End::ClientGone
        ]
    );
}

#[test]
fn a_request_that_breaks_off_is_a_call_all_the_same() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-06-18", "s", "");
    let id = feed.request_head(http::Method::POST, "/mcp", &headers);
    let body = tools_call("1", "upload", r#"{"data":"aaaaaaaaaaaaaaaaaaaa"}"#);
    feed.request_body(
        id,
        &body.as_bytes()[..body.len() - 10],
        Some(BodyEnd::Error),
    );
    feed.end(id, BodyEnd::Cancelled);
    let call = feed.call();
    assert_eq!(
        (call.tool.as_str(), call.outcome, call.end),
        ("upload", Outcome::Aborted, End::ClientGone)
    );
    assert_eq!(flags(&call), ["incomplete_request"]);
    assert_eq!(call.capture.request, Capture::Truncated);
}

#[test]
fn an_answer_may_overtake_its_question() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-06-18", "s", "");
    let id = feed.request_head(http::Method::POST, "/mcp", &headers);
    feed.request_body(id, tools_call("1", "t", "{}").as_bytes(), None);
    feed.stream(id);
    feed.event(id, &result("1", "early"));
    feed.request_body(id, b"", Some(BodyEnd::Complete));
    feed.done(id);
    let call = feed.call();
    assert_eq!((call.outcome, call.http_status), (Outcome::Ok, Some(200)));
    assert!(raw(call.result.as_ref()).contains("early"));
}

#[test]
fn what_is_not_mcp_is_not_recorded() {
    let mut feed = Feed::new();
    for (target, body) in [
        (
            "/register",
            r#"{"client_name":"x","redirect_uris":["http://localhost"]}"#,
        ),
        ("/token", "grant_type=authorization_code&code=abc"),
        ("/x", ""),
    ] {
        let id = feed.post_to(target, "", body);
        feed.json(id, r#"{"client_id":"1","client_secret":"s"}"#);
    }
    let id = feed.request_head(
        http::Method::GET,
        "/.well-known/oauth-protected-resource",
        "accept: */*\n",
    );
    feed.request_body(id, b"", Some(BodyEnd::Complete));
    feed.json(id, "{}");
    assert!(feed.records().is_empty());
    assert_eq!(feed.faults(), 0);
}
