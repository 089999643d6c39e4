//! Secrets planted on every path a message can take through the recorder.

use std::io::Write as _;

use anyhow::Result;

use crate::at_rest::AtRest;
use crate::mcp::{self, ACCEPTED, STREAM, Session, event};
use crate::privacy::stopped;
use crate::stand::Stand;

/// Planted where it may be seen: proves that the search finds what is there.
const CONTROL: &str = "plain-control-text";

/// A stand that cuts what it records at 4 KiB.
fn stand() -> Result<Stand> {
    Stand::with(&[("RECORD__MAX_MESSAGE_BYTES", "4KiB")])
}

/// Looks while callbox runs and after it stopped.
fn nowhere(stand: Stand, secrets: &[&str]) -> Result<()> {
    stand.callbox.reconcile()?;
    let running = AtRest::of(&stand)?;
    assert!(
        !running.places(CONTROL).is_empty(),
        "the search finds what is there"
    );
    running.has_none_of(secrets)?;
    stopped(stand, secrets)
}

#[test]
fn canaries_in_events_and_replies_are_nowhere_on_disk() -> Result<()> {
    let stand = stand()?;
    let mut client = stand.client()?;
    let session = Session::open(&stand, &mut client, "2025-06-18", "canary-session")?;
    client.send(session.post(&mcp::call("1", "report", "{}")))?;
    let mut asked = stand.upstream.next()?;
    asked.send(STREAM)?;
    let log = r#"{"level":"info","data":{"password":"canary-log","note":"plain-control-text"}}"#;
    asked.chunk(event(&mcp::notification("notifications/message", log)))?;
    let progress =
        r#"{"progressToken":1,"progress":1,"message":"at https://u:canary-progress@h.test/"}"#;
    asked.chunk(event(&mcp::notification(
        "notifications/progress",
        progress,
    )))?;
    asked.chunk(event(&mcp::request(
        "\"q\"",
        "elicitation/create",
        r#"{"message":"Password?"}"#,
    )))?;
    client.head()?;
    client.until("Password?")?;
    let reply = r#"{"jsonrpc":"2.0","id":"q","result":{"action":"accept","content":{"password":"canary-reply"}}}"#;
    stand.trade(&mut stand.client()?, session.post(reply), ACCEPTED)?;
    asked.chunk(event(
        r#"{"jsonrpc":"2.0","id":1,"result":{"secret":"canary-sse-result"}}"#,
    ))?;
    asked.chunk(
        "event: message\ndata: {\"jsonrpc\":\"2.0\",\"params\":{\"token\":\"canary-unfinished",
    )?;
    asked.end()?;
    client.rest()?;
    stand.call()?;
    let secrets = [
        "canary-session",
        "canary-log",
        "canary-progress",
        "canary-reply",
        "canary-sse-result",
        "canary-unfinished",
    ];
    nowhere(stand, &secrets)
}

/// Answers to a call, each with a secret in another form.
fn answers() -> Result<Vec<Vec<u8>>> {
    let error = r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"no route to https://svc:canary-error-url@db.test/","data":{"token":"canary-error-data"}}}"#;
    let long = format!(
        r#"{{"jsonrpc":"2.0","id":2,"result":{{"pad":"{}","password":"canary-cut-in and more"}}}}"#,
        "x".repeat(4015)
    );
    let mut coder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    coder.write_all(br#"{"jsonrpc":"2.0","id":2,"result":{"api_key":"canary-gzip"}}"#)?;
    let body = coder.finish()?;
    let mut gzipped = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    gzipped.extend_from_slice(&body);
    let plain = "cannot open postgres://app:canary-plain-text@db.test/crm";
    let refused = format!(
        "HTTP/1.1 500 Oops\r\nContent-Type: text/plain\r\nX-Debug: https://u:canary-header-url@h.test/\r\n\
         Content-Length: {}\r\n\r\n{plain}",
        plain.len()
    );
    let broken = r#"{"jsonrpc":"2.0","id":2,"result":{"password":"canary-not-json"#;
    Ok(vec![
        mcp::json(error).into(),
        mcp::json(&long).into(),
        gzipped,
        mcp::json(broken).into(),
        refused.into(),
        mcp::json(&mcp::result("2", CONTROL)).into(),
    ])
}

#[test]
fn canaries_in_errors_codings_cut_and_broken_bodies_are_nowhere_on_disk() -> Result<()> {
    let stand = stand()?;
    let mut client = stand.client()?;
    let answers = answers()?;
    for answer in &answers {
        stand.trade(
            &mut client,
            mcp::post(&mcp::call("2", "connect", "{}")),
            answer,
        )?;
    }
    let read = mcp::request(
        "3",
        "resources/read",
        r#"{"uri":"db://app:canary-resource@h/x"}"#,
    );
    let contents = r#"{"jsonrpc":"2.0","id":3,"result":{"contents":[{"text":"{\"password\":\"canary-content\"}"}]}}"#;
    stand.trade(&mut client, mcp::post(&read), mcp::json(contents))?;
    let batch = format!(
        "[{}]",
        mcp::call("4", "connect", r#"{"authorization":"canary-batch"}"#)
    );
    let batched = format!("[{}]", mcp::result("4", "ok"));
    stand.trade(&mut client, mcp::post(&batch), mcp::json(&batched))?;
    let broken = r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x","arguments":{"password":"canary-broken-call"#;
    stand.trade(
        &mut client,
        mcp::post(broken),
        mcp::status("400 Bad Request", "", "{}"),
    )?;
    stand.calls(answers.len() + 1)?;
    let secrets = [
        "canary-error-url",
        "canary-error-data",
        "canary-cut-in",
        "canary-gzip",
        "canary-not-json",
        "canary-plain-text",
        "canary-header-url",
        "canary-resource",
        "canary-content",
        "canary-batch",
        "canary-broken-call",
    ];
    nowhere(stand, &secrets)
}

#[test]
fn the_session_id_in_an_endpoint_uri_is_not_at_rest() -> Result<()> {
    let stand = Stand::up()?;
    let secret = "canary-endpoint-session";
    let endpoint = format!("/message?sessionId={secret}");
    let mut client = stand.client()?;
    client.send("GET /sse HTTP/1.1\r\nHost: h\r\nAccept: text/event-stream\r\n\r\n")?;
    let mut asked = stand.upstream.next()?;
    asked.send(STREAM)?;
    asked.chunk(format!("event: endpoint\ndata: {endpoint}\n\n"))?;
    client.head()?;
    client.until(secret)?;
    stand.trade(
        &mut stand.client()?,
        mcp::post_to(&endpoint, "", &mcp::call("1", "search", "{}")),
        ACCEPTED,
    )?;
    asked.chunk(event(&mcp::result("1", "found")))?;
    client.until("found")?;
    stand.call()?;
    AtRest::of(&stand)?.has_none_of(&[secret])?;
    drop((client, asked));
    stopped(stand, &[secret])
}
