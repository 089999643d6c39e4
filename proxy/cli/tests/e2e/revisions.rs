//! One call found in every revision of the protocol, wherever its answer came.

use anyhow::{Context as _, Result};
use callbox_testkit::blocking::{Asked, Client};

use crate::mcp::{self, STREAM, Session, event};
use crate::stand::{Stand, flagged};

/// A client on an HTTP+SSE endpoint, whose messages go to `endpoint`.
fn http_sse(stand: &Stand, endpoint: &str) -> Result<(Client, Asked)> {
    let mut client = stand.client()?;
    client
        .send("GET /sse HTTP/1.1\r\nHost: mcp.example.test\r\nAccept: text/event-stream\r\n\r\n")?;
    let mut asked = stand.upstream.next()?;
    asked.send(STREAM)?;
    asked.chunk(format!("event: endpoint\ndata: {endpoint}\n\n"))?;
    client.head()?;
    client.until(endpoint)?;
    Ok((client, asked))
}

#[test]
fn revision_2024_11_05_answers_on_the_stream_of_the_session() -> Result<()> {
    let stand = Stand::up()?;
    let endpoints = ["/message?sessionId=a-1", "/message?sessionId=b-2"];
    let (mut first, mut first_asked) = http_sse(&stand, endpoints[0])?;
    let (mut second, mut second_asked) = http_sse(&stand, endpoints[1])?;
    let accepted =
        "HTTP/1.1 202 Accepted\r\nContent-Type: text/plain\r\nContent-Length: 8\r\n\r\nAccepted";
    let mut posting = stand.client()?;
    // Both sessions use id 1 at the same time.
    for (endpoint, tool) in endpoints.iter().zip(["first", "second"]) {
        let (_, answer) = stand.trade(
            &mut posting,
            mcp::post_to(endpoint, "", &mcp::call("1", tool, "{}")),
            accepted,
        )?;
        assert_eq!(answer.text(), "Accepted");
    }
    second_asked.chunk(event(&mcp::result("1", "for the second")))?;
    first_asked.chunk(event(&mcp::result("1", "for the first")))?;
    second.until("for the second")?;
    first.until("for the first")?;
    let calls = stand.calls(2)?;
    for (call, (tool, text)) in calls
        .iter()
        .zip([("first", "for the first"), ("second", "for the second")])
    {
        assert_eq!(call["tool"], tool);
        assert_eq!(call["outcome"], "ok", "{call:#}");
        assert_eq!(call["result"]["content"][0]["text"], text);
        assert_eq!(call["session_source"], "protocol");
    }
    assert_ne!(calls[0]["session"], calls[1]["session"]);
    drop((first, second, first_asked, second_asked));
    stand.finish_whole()
}

#[test]
fn revision_2025_03_26_batches_are_split_into_calls() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    let session = Session::open(&stand, &mut client, "2025-03-26", "s-batch")?;
    let body = format!(
        "[{}, {},\n{}]",
        mcp::call("1", "one", "{}"),
        mcp::notification(
            "notifications/progress",
            r#"{"progressToken":9,"progress":1}"#
        ),
        mcp::call(r#""2""#, "two", "{}")
    );
    let answer = format!(
        r#"[{},{{"jsonrpc":"2.0","id":1,"error":{{"code":-32602,"message":"no"}}}}]"#,
        mcp::result(r#""2""#, "second")
    );
    let (asked, answered) = stand.trade(&mut client, session.post(&body), mcp::json(&answer))?;
    assert_eq!(asked.body()?, body.as_bytes());
    assert_eq!(answered.text(), answer);
    let calls = stand.calls(2)?;
    assert_eq!(calls[0]["tool"], "one");
    assert_eq!(calls[0]["outcome"], "rpc_error");
    assert_eq!(calls[0]["error"]["code"], -32602);
    assert_eq!(calls[1]["tool"], "two");
    assert_eq!(calls[1]["outcome"], "ok");
    assert_eq!(calls[0]["exchange_id"], calls[1]["exchange_id"]);
    assert_eq!(calls[0]["protocol_version"], "2025-03-26");
    stand.finish_whole()
}

#[test]
fn revision_2025_06_18_calls_of_one_session_are_numbered_and_told_apart_by_outcome() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    let session = Session::open(&stand, &mut client, "2025-06-18", "s-0618")?;
    let list = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"search","inputSchema":{"type":"object"}}]}}"#;
    stand.trade(
        &mut client,
        session.post(&mcp::request("1", "tools/list", "{}")),
        mcp::json(list),
    )?;
    let answers = [
        mcp::result("2", "found"),
        r#"{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"no such contact"}],"isError":true}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"Unknown tool"}}"#.to_owned(),
    ];
    for answer in &answers {
        stand.trade(
            &mut client,
            session.post(&mcp::call("2", "search", r#"{"query":"Dana"}"#)),
            mcp::json(answer),
        )?;
    }
    let calls = stand.calls(3)?;
    let of = |member: &str| {
        calls
            .iter()
            .map(|call| call[member].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(of("outcome"), ["ok", "tool_error", "rpc_error"]);
    assert_eq!(of("seq"), [1, 2, 3]);
    for call in &calls {
        assert_eq!(call["session_source"], "protocol");
        assert_eq!(call["protocol_version"], "2025-06-18");
        assert_eq!(call["client"]["name"], "desk");
        assert_eq!(call["client"]["version"], "2.1");
        assert!(
            call["catalogue"]
                .as_str()
                .is_some_and(|hash| hash.starts_with("sha256:")),
            "{call:#}"
        );
    }
    let sessions = stand.sessions()?;
    assert_eq!(sessions.len(), 1);
    assert_eq!(sessions[0]["calls"], 3);
    let id = sessions[0]["id"].as_str().context("an id")?;
    let timeline = stand.callbox.query(&["show", id])?;
    for part in [
        "desk",
        "2.1",
        "2025-06-18",
        "search",
        "Dana",
        "no such contact",
        "Unknown tool",
    ] {
        assert!(timeline.contains(part), "{part} in\n{timeline}");
    }
    stand.finish_whole()
}

#[test]
fn revision_2025_11_25_an_answer_after_a_resume_belongs_to_its_call() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    let session = Session::open(&stand, &mut client, "2025-11-25", "s-resume")?;
    client.send(session.post(&mcp::call("3", "report", "{}")))?;
    let mut asked = stand.upstream.next()?;
    asked.send(STREAM)?;
    asked.chunk("id: ev-41\nretry: 100\ndata:\n\n")?;
    asked.end()?;
    client.head()?;
    assert!(client.rest()?.broken.is_none());

    let resume = session.get("Last-Event-ID: ev-41\r\n");
    client.send(resume)?;
    let mut asked = stand.upstream.next()?;
    assert_eq!(asked.head.all("last-event-id"), ["ev-41"]);
    asked.send(STREAM)?;
    asked.chunk(format!(
        "id: ev-42\n{}",
        event(&mcp::result("3", "resumed"))
    ))?;
    asked.end()?;
    client.head()?;
    client.rest()?;
    let call = stand.call_when("the answer is found", |call| call["outcome"] == "ok")?;
    assert_eq!(call["result"]["content"][0]["text"], "resumed");
    stand.finish_whole()
}

#[test]
fn revision_2025_11_25_a_task_concludes_its_call() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    let session = Session::open(&stand, &mut client, "2025-11-25", "s-task")?;
    let body = mcp::request(
        "3",
        "tools/call",
        r#"{"name":"report","arguments":{},"task":{"ttl":60000}}"#,
    );
    let task = r#"{"jsonrpc":"2.0","id":3,"result":{"task":{"taskId":"t-786","status":"working","createdAt":"2026-11-30T10:00:00Z","lastUpdatedAt":"2026-11-30T10:00:00Z","ttl":60000}}}"#;
    stand.trade(&mut client, session.post(&body), mcp::json(task))?;
    stand.call_when("the call is pending", |call| call["outcome"] == "pending")?;
    let ask = mcp::request("4", "tasks/result", r#"{"taskId":"t-786"}"#);
    let result = r#"{"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"the report"}],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t-786"}}}}"#;
    stand.trade(&mut client, session.post(&ask), mcp::json(result))?;
    let call = stand.call()?;
    assert_eq!(call["outcome"], "ok", "{call:#}");
    assert_eq!(call["result"]["content"][0]["text"], "the report");
    assert_eq!(call["jsonrpc_id"], 3);
    stand.finish_whole()
}

#[test]
fn revision_2026_07_28_a_plain_call() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    let request = mcp::modern(
        "1",
        "tools/call",
        Some("search"),
        r#""name":"search","arguments":{"query":"Dana"}"#,
    );
    let result = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}"#;
    stand.trade(&mut client, request, mcp::json(result))?;
    let call = stand.call()?;
    assert_eq!(call["outcome"], "ok");
    assert_eq!(call["protocol_version"], "2026-07-28");
    assert_eq!(call["client"]["name"], "desk");
    assert_eq!(call["client"]["version"], "3.0");
    assert_eq!(call["legs"], 1);
    stand.finish_whole()
}

#[test]
fn revision_2026_07_28_legs_with_request_state_are_one_call() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    let params = r#""name":"delete_contact","arguments":{"id":"c_1"}"#;
    let interim = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"sure":{"method":"elicitation/create","params":{"message":"Really?"}}},"requestState":"sealed-99"}}"#;
    let first = mcp::modern("1", "tools/call", Some("delete_contact"), params);
    stand.trade(&mut client, first, mcp::json(interim))?;
    stand.call_when("the call is pending", |call| call["outcome"] == "pending")?;
    // Another call in between, so that nearness alone would not do.
    let other = mcp::modern(
        "2",
        "tools/call",
        Some("delete_contact"),
        r#""name":"delete_contact","arguments":{"id":"c_2"}"#,
    );
    let done = |id: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","content":[]}}}}"#
        )
    };
    stand.trade(&mut client, other, mcp::json(&done("2")))?;
    let retry = mcp::modern(
        "3",
        "tools/call",
        Some("delete_contact"),
        &format!(
            r#"{params},"inputResponses":{{"sure":{{"action":"accept","content":{{}}}}}},"requestState":"sealed-99""#
        ),
    );
    stand.trade(&mut client, retry, mcp::json(&done("3")))?;
    let calls = stand.calls(2)?;
    assert_eq!(calls.len(), 2, "{calls:#?}");
    let joined = calls
        .iter()
        .find(|call| call["legs"] == 2)
        .context("two legs are one call")?;
    assert_eq!(joined["outcome"], "ok");
    assert_eq!(joined["arguments"]["id"], "c_1");
    assert_eq!(joined["confirmation"], "accept");
    assert!(!flagged(joined, "weak_link"), "{joined:#}");
    stand.finish_whole()
}

#[test]
fn b31_a_subscription_is_a_stream_and_no_call() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    let request = mcp::modern(
        "1",
        "subscriptions/listen",
        None,
        r#""notifications":{"toolsListChanged":true}"#,
    );
    client.send(request)?;
    let mut asked = stand.upstream.next()?;
    asked.send(STREAM)?;
    let acknowledged = mcp::notification(
        "notifications/subscriptions/acknowledged",
        r#"{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":1}}"#,
    );
    asked.chunk(event(&acknowledged))?;
    client.head()?;
    client.until("acknowledged")?;
    let mut other = stand.client()?;
    let call = mcp::modern(
        "1",
        "tools/call",
        Some("search"),
        r#""name":"search","arguments":{}"#,
    );
    let result = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}"#;
    stand.trade(&mut other, call, mcp::json(result))?;
    let call = stand.call()?;
    assert_eq!(
        call["tool"], "search",
        "the listen request with the same id is no call"
    );
    assert_eq!(call["outcome"], "ok");
    assert_eq!(stand.count("mcp_tool_call_duration_seconds_count", "")?, 1);
    stand.messages_when("the subscription is recorded", |messages| {
        messages
            .iter()
            .any(|message| message["method"] == "subscriptions/listen")
    })?;
    drop((client, asked));
    stand.finish_whole()
}

#[test]
fn both_eras_on_one_port_and_what_is_unknown_passes() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    let discover = mcp::modern("1", "server/discover", None, "");
    let refused = r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: no valid session"},"id":null}"#;
    let (_, answer) = stand.trade(
        &mut client,
        discover,
        mcp::status("400 Bad Request", "", refused),
    )?;
    assert_eq!(answer.status(), 400);
    let session = Session::open(&stand, &mut client, "2025-11-25", "s-dual")?;
    let unknown = mcp::post_with(
        "MCP-Protocol-Version: 2031-01-01\r\nMcp-Param-Future: x\r\nMcp-Other: y\r\n",
        &mcp::request("5", "tools/teleport", r#"{"to":"there"}"#),
    );
    let result = r#"{"jsonrpc":"2.0","id":5,"result":{"there":true}}"#;
    let (asked, answer) = stand.trade(&mut client, unknown, mcp::json(result))?;
    assert_eq!(asked.head.all("mcp-param-future"), ["x"]);
    assert_eq!(asked.head.all("mcp-other"), ["y"]);
    assert_eq!(answer.text(), result);
    let metadata =
        "GET /.well-known/oauth-protected-resource/mcp HTTP/1.1\r\nHost: mcp.example.test\r\n\r\n";
    let (asked, _) = stand.trade(
        &mut client,
        metadata,
        mcp::json(r#"{"resource":"https://mcp.example.test/mcp"}"#),
    )?;
    assert_eq!(
        asked.head.target(),
        "/.well-known/oauth-protected-resource/mcp"
    );
    stand.trade(
        &mut client,
        session.post(&mcp::call("6", "search", "{}")),
        mcp::json(&mcp::result("6", "found")),
    )?;
    assert_eq!(stand.call()?["protocol_version"], "2025-11-25");
    stand.messages_when("the unknown method is recorded", |messages| {
        messages
            .iter()
            .any(|message| message["method"] == "tools/teleport")
    })?;
    stand.finish_whole()
}
