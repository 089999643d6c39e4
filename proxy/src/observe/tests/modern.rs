//! 2026-07-28: stateless, several legs, mirrored headers.

use callbox_store::{Call, End, Outcome, SessionSource};
use uuid::Uuid;

use super::feed::{Feed, flags, modern, outcomes, raw, result};
use crate::tap::BodyEnd;

fn call(feed: &mut Feed, headers: &str, id: &str, tool: &str, params: &str) -> Uuid {
    let params = if params.is_empty() {
        String::new()
    } else {
        format!(",{params}")
    };
    let (own, body) = modern(
        id,
        "tools/call",
        tool,
        &format!(r#""name":"{tool}","arguments":{{"x":1}}{params}"#),
    );
    feed.post(&format!("{own}{headers}"), &body)
}

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[test]
fn a_stateless_call() {
    let mut feed = Feed::new();
    let id = call(&mut feed, "", "1", "search", "");
    feed.json(
        id,
        r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}"#,
    );
    let call = feed.call();
    assert_eq!((call.outcome, flags(&call).len()), (Outcome::Ok, 0));
    assert_eq!(call.protocol_version.as_deref(), Some("2026-07-28"));
    assert_eq!(call.session.source, SessionSource::Inferred);
    assert_eq!(
        call.session
            .client
            .as_ref()
            .map(|client| client.name.as_str()),
        Some("agent")
    );
}

#[test]
fn a_session_header_means_nothing_here() {
    let mut feed = Feed::new();
    for session in ["a", "b"] {
        let id = call(
            &mut feed,
            &format!("mcp-session-id: {session}\n"),
            "1",
            "t",
            "",
        );
        feed.json(id, &result("1", "x"));
    }
    let calls = feed.calls();
    assert_eq!(calls[0].session.id, calls[1].session.id);
    assert_eq!(calls[0].session.source, SessionSource::Inferred);
}

#[test]
fn sessions_are_found_by_the_strongest_helper() {
    let mut feed = Feed::new();
    let meta = |member: &str| {
        format!(r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28",{member}}}"#)
    };
    let sent = |feed: &mut Feed, headers: &str, member: &str| -> Call {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t",{}}}}}"#,
            meta(member)
        );
        let id = feed.post(
            &format!("mcp-method: tools/call\nmcp-name: t\n{headers}"),
            &body,
        );
        feed.json(id, &result("1", "x"));
        feed.calls().pop().unwrap()
    };
    let one = sent(&mut feed, "", r#""session.id":"c-1""#);
    let two = sent(&mut feed, "baggage: session.id=c-1\n", r#""x":1"#);
    let three = sent(&mut feed, "", r#""baggage":"a=b,session.id=c-1""#);
    let other = sent(
        &mut feed,
        "authorization: Bearer b\n",
        r#""session.id":"c-1""#,
    );
    assert_eq!(one.session.source, SessionSource::Conversation);
    assert_eq!(
        [one.session.id, one.session.id],
        [two.session.id, three.session.id]
    );
    assert_ne!(one.session.id, other.session.id, "of another principal");
    let traced = sent(&mut feed, &format!("traceparent: {TRACE}\n"), r#""x":1"#);
    assert_eq!(traced.session.source, SessionSource::Trace);
    let again = sent(&mut feed, "", &format!(r#""traceparent":"{TRACE}""#));
    assert_eq!(traced.session.id, again.session.id);
    assert_eq!(
        sent(&mut feed, "", r#""x":1"#).session.source,
        SessionSource::Inferred
    );
}

#[test]
fn an_idle_gap_ends_an_inferred_session() {
    let mut feed = Feed::new();
    let ask = |feed: &mut Feed| {
        let id = call(feed, "", "1", "t", "");
        feed.json(id, &result("1", "x"));
    };
    ask(&mut feed);
    feed.wait(300_000);
    ask(&mut feed);
    feed.wait(700_000);
    ask(&mut feed);
    let calls = feed.calls();
    assert_eq!(calls[0].session.id, calls[1].session.id);
    assert_ne!(calls[1].session.id, calls[2].session.id);
    assert_eq!((calls[1].seq, calls[2].seq), (2, 1));
}

#[test]
fn addresses_tell_anonymous_clients_apart_and_credentials_do_better() {
    let mut feed = Feed::new();
    for (peer, headers) in [
        ("192.0.2.1:1", ""),
        ("192.0.2.1:2", ""),
        ("192.0.2.2:1", ""),
        ("192.0.2.1:1", "authorization: Bearer a\n"),
        ("192.0.2.2:1", "authorization: Bearer a\n"),
    ] {
        feed.peer = peer;
        let id = call(&mut feed, headers, "1", "t", "");
        feed.json(id, &result("1", "x"));
    }
    let ids: Vec<_> = feed.calls().iter().map(|call| call.session.id).collect();
    assert_eq!(ids[0], ids[1]);
    assert_ne!(ids[0], ids[2]);
    assert_ne!(ids[0], ids[3]);
    assert_eq!(ids[3], ids[4]);
}

const ASKS: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"sure":{"method":"elicitation/create","params":{"message":"?"}}},"requestState":"blob-1"}}"#;

#[test]
fn legs_are_joined_by_request_state() {
    let mut feed = Feed::new();
    let first = call(
        &mut feed,
        &format!("traceparent: {TRACE}\n"),
        "1",
        "delete",
        "",
    );
    feed.json(first, ASKS);
    let pending = feed.call();
    assert_eq!(
        (pending.outcome, pending.end, pending.duration_us),
        (Outcome::Pending, End::Complete, None)
    );
    feed.wait(3000);
    let answer =
        r#""inputResponses":{"sure":{"action":"accept","content":{}}},"requestState":"blob-1""#;
    let second = call(&mut feed, "", "2", "delete", answer);
    feed.json(second, &result("2", "deleted"));
    let call = feed.call();
    assert_eq!(call.id, pending.id);
    assert_eq!(
        (call.outcome, call.legs, flags(&call).len()),
        (Outcome::Ok, 2, 0)
    );
    assert_eq!((call.exchange_id, call.jsonrpc_id.get()), (second, "2"));
    assert_eq!(call.confirmation.as_deref(), Some("accept"));
    assert_eq!(call.duration_us, Some(3_000_000));
    assert!(raw(call.result.as_ref()).contains("deleted"));
    assert_eq!((call.seq, call.session.id), (1, pending.session.id));
}

#[test]
fn rounds_may_repeat() {
    let mut feed = Feed::new();
    let first = call(&mut feed, "", "1", "t", "");
    feed.json(first, ASKS);
    for round in 2..5 {
        let state = format!(
            r#""inputResponses":{{"sure":{{"action":"decline"}}}},"requestState":"blob-{}""#,
            round - 1
        );
        let next = call(&mut feed, "", &round.to_string(), "t", &state);
        let asks = ASKS
            .replace("\"id\":1", &format!("\"id\":{round}"))
            .replace("blob-1", &format!("blob-{round}"));
        feed.json(next, &asks);
    }
    let call = feed.call();
    assert_eq!(
        (call.outcome, call.legs, call.confirmation.as_deref()),
        (Outcome::Pending, 4, Some("decline"))
    );
}

#[test]
fn without_a_state_the_question_links_weakly() {
    let mut feed = Feed::new();
    let asks = ASKS.replace(r#","requestState":"blob-1""#, "");
    let first = call(&mut feed, "", "1", "t", "");
    feed.json(first, &asks);
    let wrong = call(
        &mut feed,
        "",
        "2",
        "t",
        r#""inputResponses":{"other":{"action":"accept"}}"#,
    );
    feed.json(wrong, &result("2", "x"));
    let second = call(
        &mut feed,
        "",
        "3",
        "t",
        r#""inputResponses":{"sure":{"action":"accept"}}"#,
    );
    feed.json(second, &result("3", "x"));
    let calls = feed.calls();
    assert_eq!(outcomes(&calls), [Outcome::Ok, Outcome::Ok]);
    assert_eq!((calls[0].legs, flags(&calls[0])), (2, vec!["weak_link"]));
    assert_eq!((calls[1].legs, calls[1].jsonrpc_id.get()), (1, "2"));
}

#[test]
fn several_candidates_stay_apart_and_say_so() {
    let mut feed = Feed::new();
    let asks = ASKS.replace(r#","requestState":"blob-1""#, "");
    for id in ["1", "2"] {
        let exchange = call(&mut feed, "", id, "t", "");
        feed.json(exchange, &asks.replace("\"id\":1", &format!("\"id\":{id}")));
    }
    let third = call(
        &mut feed,
        "",
        "3",
        "t",
        r#""inputResponses":{"sure":{"action":"accept"}}"#,
    );
    feed.json(third, &result("3", "x"));
    let calls = feed.calls();
    assert_eq!(
        outcomes(&calls),
        [Outcome::Pending, Outcome::Pending, Outcome::Ok]
    );
    assert!(calls.iter().all(|call| flags(call) == ["ambiguous_link"]));
    assert!(calls.iter().all(|call| call.legs == 1));
}

#[test]
fn a_state_of_another_principal_joins_nothing() {
    let mut feed = Feed::new();
    let first = call(&mut feed, "authorization: Bearer a\n", "1", "t", "");
    feed.json(first, ASKS);
    let answer = r#""inputResponses":{"sure":{"action":"accept"}},"requestState":"blob-1""#;
    let second = call(&mut feed, "authorization: Bearer b\n", "2", "t", answer);
    feed.json(second, &result("2", "x"));
    assert_eq!(outcomes(&feed.calls()), [Outcome::Pending, Outcome::Ok]);
}

#[test]
fn a_question_never_answered_is_abandoned() {
    let mut feed = Feed::new();
    let first = call(&mut feed, "", "1", "t", "");
    feed.json(first, ASKS);
    feed.wait(601_000);
    let call = feed.call();
    assert_eq!((call.outcome, call.duration_us), (Outcome::Abandoned, None));
}

#[test]
fn headers_that_say_something_else_are_flagged() {
    let mut feed = Feed::new();
    let body = |version: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","_meta":{{"io.modelcontextprotocol/protocolVersion":"{version}"}}}}}}"#
        )
    };
    for (headers, version, differs) in [
        (
            "mcp-protocol-version: 2026-07-28\nmcp-method: tools/call\nmcp-name: t\n",
            "2026-07-28",
            false,
        ),
        (
            "mcp-protocol-version: 2026-07-28\nmcp-method: tools/call\nmcp-name: =?base64?dA==?=\n",
            "2026-07-28",
            false,
        ),
        (
            "mcp-protocol-version: 2026-07-28\nmcp-method: tools/call\nmcp-name: u\n",
            "2026-07-28",
            true,
        ),
        (
            "mcp-protocol-version: 2026-07-28\nmcp-method: tools/Call\nmcp-name: t\n",
            "2026-07-28",
            true,
        ),
        (
            "mcp-protocol-version: 2026-07-28\nmcp-method: tools/call\nmcp-name: =?base64?%%?=\n",
            "2026-07-28",
            true,
        ),
        (
            "mcp-protocol-version: 2026-07-28\nmcp-method: tools/call\nmcp-name: t\n",
            "2027-01-01",
            true,
        ),
    ] {
        let id = feed.post(headers, &body(version));
        feed.json(
            id,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"mismatch"}}"#,
        );
        let call = feed.calls().pop().unwrap();
        assert_eq!(
            call.flags.contains(&"header_mismatch".to_owned()),
            differs,
            "{headers}"
        );
        assert_eq!(call.tool, "t", "the body counts");
    }
}

#[test]
fn mirrored_arguments_are_compared_by_the_list_in_force() {
    let mut feed = Feed::new();
    let (headers, body) = modern("1", "tools/list", "", "");
    let id = feed.post(&headers, &body);
    feed.json(
        id,
        r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","tools":[{"name":"t","inputSchema":{"type":"object","properties":{"x":{"type":"integer","x-mcp-header":"Ex"}}}}]}}"#,
    );
    for (header, differs) in [
        ("1", false),
        ("1.0", false),
        ("2", true),
        ("=?base64?MQ==?=", false),
    ] {
        let id = call(
            &mut feed,
            &format!("Mcp-Param-Ex: {header}\n"),
            "2",
            "t",
            "",
        );
        feed.json(id, &result("2", "x"));
        let call = feed.calls().pop().unwrap();
        assert_eq!(
            call.flags.contains(&"header_mismatch".to_owned()),
            differs,
            "{header}"
        );
        assert!(call.catalogue.is_some());
    }
}

#[test]
fn a_probe_of_the_other_era_is_no_failure_of_a_tool() {
    let mut feed = Feed::new();
    let (headers, body) = modern("0", "server/discover", "", "");
    let id = feed.post(&headers, &body);
    feed.answer(
        id,
        400,
        "content-type: application/json\n",
        r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}"#,
    );
    let headers = feed.initialize("2025-11-25", "s", "");
    let id = feed.post(&headers, &super::feed::tools_call("1", "t", "{}"));
    feed.json(id, &result("1", "x"));
    let call = feed.call();
    assert_eq!(
        (call.outcome, call.session.source),
        (Outcome::Ok, SessionSource::Protocol)
    );
    assert_eq!(
        feed.lines()[..2],
        [
            "> request server/discover",
            "< response server/discover 400"
        ]
    );
}

#[test]
fn errors_with_a_status_of_their_own_are_still_json_rpc() {
    let mut feed = Feed::new();
    for (status, code) in [
        (400, -32020),
        (400, -32021),
        (400, -32602),
        (404, -32601),
        (200, -32602),
    ] {
        let id = call(&mut feed, "", "1", "t", "");
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":{code},"message":"no"}}}}"#);
        feed.answer(id, status, "content-type: application/json\n", &body);
        let call = feed.calls().pop().unwrap();
        assert_eq!(
            (call.outcome, call.http_status),
            (Outcome::RpcError, Some(status))
        );
        assert!(flags(&call).is_empty());
    }
}

#[test]
fn closing_the_stream_takes_the_call_back() {
    let mut feed = Feed::new();
    let id = call(&mut feed, "", "1", "t", "");
    feed.stream(id);
    feed.event(id, r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#);
    feed.end(id, BodyEnd::Cancelled);
    let call = feed.call();
    assert_eq!(
        (call.outcome, call.end),
        (Outcome::Aborted, End::ClientGone)
    );
}

#[test]
fn an_unread_body_is_told_by_its_headers() {
    let mut feed = Feed::new();
    let id = feed.post(
        "mcp-protocol-version: 2026-07-28\nmcp-method: tools/call\nmcp-name: =?base64?5pCc57Si?=\ncontent-encoding: sdch\n",
        "????",
    );
    feed.json(id, &result("1", "x"));
    let call = feed.call();
    assert_eq!(
        (call.tool.as_str(), call.jsonrpc_id.get()),
        ("搜索", "null")
    );
    assert_eq!(call.capture.request, callbox_store::Capture::Undecoded);
    assert!(flags(&call).contains(&"undecoded"));
    assert_eq!(call.outcome, Outcome::Ok);
}
