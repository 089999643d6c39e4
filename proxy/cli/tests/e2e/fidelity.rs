//! Cases about JSON-RPC as it was spelt: on the wire, in the record, and for telling messages apart.

use std::collections::HashSet;

use anyhow::{Context as _, Result};
use callbox_testkit::blocking::Client;
use callbox_testkit::process::Callbox;
use serde_json::json;

use crate::mcp::{self, ACCEPTED, STREAM, Session, event};
use crate::stand::{Stand, binary, event_kinds, flagged};

/// One call with this body answered with that one; both must pass byte for byte.
fn passes(stand: &Stand, body: &str, answer: &str) -> Result<()> {
    let mut client = stand.client()?;
    let (asked, answered) = stand.trade(&mut client, mcp::post(body), mcp::json(answer))?;
    assert_eq!(String::from_utf8_lossy(&asked.body()?), body);
    assert_eq!(answered.text(), answer);
    Ok(())
}

#[test]
fn b25_string_ids_stay_strings_and_differ_from_numbers() -> Result<()> {
    let stand = Stand::up()?;
    passes(
        &stand,
        &mcp::call(r#""init-a1""#, "search", "{}"),
        &mcp::result(r#""init-a1""#, "a"),
    )?;

    // 1 and "1" at the same time in one session, answered on the other's exchange order.
    let mut first = stand.client()?;
    let session = Session::open(&stand, &mut first, "2025-06-18", "s-25")?;
    first.send(session.post(&mcp::call("1", "number", "{}")))?;
    let mut number = stand.upstream.next()?;
    let mut second = stand.client()?;
    second.send(session.post(&mcp::call(r#""1""#, "string", "{}")))?;
    let mut string = stand.upstream.next()?;
    string.send(mcp::json(&mcp::result(r#""1""#, "for the string")))?;
    number.send(mcp::json(&mcp::result("1", "for the number")))?;
    first.answer()?;
    second.answer()?;

    let calls = stand.calls(3)?;
    let of = |tool: &str| {
        calls
            .iter()
            .find(|call| call["tool"] == tool)
            .context("recorded")
    };
    assert_eq!(of("search")?["jsonrpc_id"], "init-a1");
    assert_eq!(of("number")?["jsonrpc_id"], json!(1));
    assert_eq!(
        of("number")?["result"]["content"][0]["text"],
        "for the number"
    );
    assert_eq!(of("string")?["jsonrpc_id"], json!("1"));
    assert_eq!(
        of("string")?["result"]["content"][0]["text"],
        "for the string"
    );
    stand.finish_whole()
}

#[test]
fn b25_an_answer_with_the_id_in_another_type_is_a_mismatch() -> Result<()> {
    let stand = Stand::up()?;
    passes(
        &stand,
        &mcp::call(r#""7""#, "search", "{}"),
        &mcp::result("7", "found"),
    )?;
    let call = stand.call()?;
    assert_eq!(call["jsonrpc_id"], "7");
    assert!(flagged(&call, "id_type_mismatch"), "{call:#}");
    stand.finish_whole()
}

#[test]
fn b26_large_numbers_keep_their_digits() -> Result<()> {
    let stand = Stand::up()?;
    passes(
        &stand,
        &mcp::call(
            "18446744073709551617",
            "search",
            r#"{"x":1e400,"y":9007199254740993}"#,
        ),
        r#"{"jsonrpc":"2.0","id":18446744073709551617,"result":{"id":9007199254740993,"z":-0.10}}"#,
    )?;
    let recorded = stand.calls_text(1)?;
    for part in [
        r#""jsonrpc_id":18446744073709551617"#,
        r#""arguments":{"x":1e400,"y":9007199254740993}"#,
        r#""result":{"id":9007199254740993,"z":-0.10}"#,
    ] {
        assert!(recorded.contains(part), "{part} in {recorded}");
    }
    stand.finish_whole()
}

#[test]
fn b27_the_spelling_of_numbers_survives_redaction() -> Result<()> {
    let stand = Stand::up()?;
    passes(
        &stand,
        &mcp::call(
            "0",
            "search",
            r#"{"n":1.0, "m":1,"password":"hunter2","k":0.50}"#,
        ),
        r#"{"jsonrpc":"2.0","id":0,"result":{"n":1.0,"token":"t0ps3cret","e":1E3}}"#,
    )?;
    let recorded = stand.calls_text(1)?;
    for part in [
        r#""jsonrpc_id":0,"#,
        r#""n":1.0, "m":1,"#,
        r#""k":0.50}"#,
        r#""n":1.0,"#,
        r#""e":1E3}"#,
    ] {
        assert!(recorded.contains(part), "{part} in {recorded}");
    }
    for secret in ["hunter2", "t0ps3cret"] {
        assert!(!recorded.contains(secret), "{recorded}");
    }
    stand.finish_whole()
}

#[test]
fn b28_a_null_id_is_not_a_missing_one() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    let session = Session::open(&stand, &mut client, "2025-06-18", "s-28")?;
    let null = r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#;
    let refused = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"id"}}"#;
    stand.trade(
        &mut client,
        session.post(null),
        mcp::status("400 Bad Request", "", refused),
    )?;
    let missing = r#"{"jsonrpc":"2.0","method":"tools/list"}"#;
    stand.trade(&mut client, session.post(missing), ACCEPTED)?;
    let messages = stand.messages_when("both are recorded", |messages| {
        messages
            .iter()
            .filter(|message| message["method"] == "tools/list")
            .count()
            >= 2
    })?;
    let kinds: HashSet<String> = messages
        .iter()
        .filter(|message| {
            message["method"] == "tools/list" && message["direction"] == "client_to_server"
        })
        .map(|message| message["kind"].to_string())
        .collect();
    assert_eq!(kinds.len(), 2, "{messages:#?}");
    assert!(kinds.contains("\"notification\""), "{kinds:?}");
    // Pairing still works.
    let result = mcp::json(&mcp::result("2", "found"));
    stand.trade(
        &mut client,
        session.post(&mcp::call("2", "search", "{}")),
        result,
    )?;
    assert_eq!(stand.call()?["outcome"], "ok");
    stand.finish_whole()
}

#[test]
fn b29_a_second_response_is_a_duplicate() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    client.send(mcp::post(&mcp::call("4", "search", "{}")))?;
    let mut asked = stand.upstream.next()?;
    asked.send(STREAM)?;
    let (first, second) = (
        event(&mcp::result("4", "first")),
        event(&mcp::result("4", "second")),
    );
    asked.chunk(&first)?;
    client.head()?;
    client.until(&first)?;
    client.quiet(std::time::Duration::from_millis(300))?;
    asked.chunk(&second)?;
    asked.end()?;
    assert_eq!(
        client.rest()?.bytes,
        second.as_bytes(),
        "both are forwarded"
    );
    let call = stand.call_when("the duplicate is noted", |call| {
        flagged(call, "duplicate_response")
    })?;
    assert_eq!(call["outcome"], "ok");
    assert_eq!(call["result"]["content"][0]["text"], "first");
    let took = call["duration_ms"].as_f64().context("a duration")?;
    assert!(took < 300.0, "the first one's: {took} ms");
    assert_eq!(stand.counted("ok")?, 1);
    stand.finish_whole()
}

/// Two calls in a session.
fn two_calls(stand: &Stand, client: &mut Client, session: &Session) -> Result<()> {
    for id in ["1", "2"] {
        let result = mcp::json(&mcp::result(id, "found"));
        stand.trade(client, session.post(&mcp::call(id, "search", "{}")), result)?;
    }
    Ok(())
}

#[test]
fn b33_a_session_goes_on_after_a_restart() -> Result<()> {
    let mut stand = Stand::up()?;
    let mut client = stand.client()?;
    let session = Session::open(&stand, &mut client, "2025-06-18", "s-33")?;
    two_calls(&stand, &mut client, &session)?;
    stand.calls(2)?;
    assert_eq!(stand.callbox.stop()?.code(), Some(0));
    stand.callbox = Callbox::up(binary(), &stand.upstream.url(), &stand.data(), &[], &[])?;
    two_calls(&stand, &mut stand.client()?, &session)?;
    let calls = stand.calls(4)?;
    let seqs: Vec<_> = calls
        .iter()
        .filter_map(|call| call["seq"].as_u64())
        .collect();
    assert_eq!(seqs, [1, 2, 3, 4]);
    let sessions = stand.sessions()?;
    assert_eq!(
        sessions.len(),
        1,
        "the same protocol session: {sessions:#?}"
    );
    assert_eq!(sessions[0]["client"]["name"], "desk");
    stand.finish_whole()
}

#[test]
fn b33_ids_never_collide_across_restarts_and_replicas() -> Result<()> {
    let mut stand = Stand::up()?;
    let url = stand.upstream.url();
    let mut ids = HashSet::new();
    for (data, calls) in [("data", 2), ("data", 4), ("replica", 2)] {
        let data = stand.folder.path().join(data);
        drop(stand.callbox.stop());
        stand.callbox = Callbox::up(binary(), &url, &data, &[], &[])?;
        let mut client = stand.client()?;
        let session = Session::open(&stand, &mut client, "2025-06-18", "s-33")?;
        two_calls(&stand, &mut client, &session)?;
        for call in stand.calls(calls)? {
            ids.insert(call["id"].to_string());
            ids.insert(call["exchange_id"].to_string());
        }
    }
    assert_eq!(ids.len(), 2 * 6, "the same traffic three times: {ids:?}");
    stand.finish_whole()
}

#[test]
fn b34_text_is_stored_as_it_was_sent() -> Result<()> {
    let stand = Stand::up()?;
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"<a href=\"x\">& \u003c é \/"}]}}"#;
    passes(
        &stand,
        &mcp::call("1", "search", r#"{"q":"<b>&amp;"}"#),
        answer,
    )?;
    let recorded = stand.calls_text(1)?;
    assert!(
        recorded.contains(r#""text":"<a href=\"x\">& \u003c é \/""#),
        "{recorded}"
    );
    assert!(recorded.contains(r#""q":"<b>&amp;""#), "{recorded}");
    stand.finish_whole()
}

#[test]
fn b35_members_nobody_knows_are_kept() -> Result<()> {
    let stand = Stand::up()?;
    let result = r#"{"content":[],"structuredContent":{"rows":[{"id":1}]},"_meta":{"vendor":{"a":1}},"x9":[true,null]}"#;
    let answer = format!(r#"{{"x8":"outside","jsonrpc":"2.0","id":1,"result":{result}}}"#);
    passes(&stand, &mcp::call("1", "search", "{}"), &answer)?;
    let recorded = stand.calls_text(1)?;
    assert!(
        recorded.contains(&format!(r#""result":{result}"#)),
        "{recorded}"
    );
    stand.finish_whole()
}

#[test]
fn b36_progress_reaches_the_client_in_order_and_belongs_to_the_call() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    let session = Session::open(&stand, &mut client, "2025-06-18", "s-36")?;
    let body = mcp::request(
        "5",
        "tools/call",
        r#"{"name":"report","arguments":{},"_meta":{"progressToken":"tok-1"}}"#,
    );
    client.send(session.post(&body))?;
    let mut asked = stand.upstream.next()?;
    assert_eq!(asked.body()?, body.as_bytes(), "the token is unchanged");
    asked.send(STREAM)?;
    client.head()?;
    for n in 1..=2 {
        let params = format!(r#"{{"progressToken":"tok-1","progress":{n},"total":2}}"#);
        let progress = event(&mcp::notification("notifications/progress", &params));
        asked.chunk(&progress)?;
        assert_eq!(client.until("\n\n")?, progress.as_bytes());
    }
    asked.chunk(event(&mcp::result("5", "done")))?;
    asked.end()?;
    client.rest()?;
    let call = stand.call()?;
    assert_eq!(event_kinds(&call), ["progress", "progress", "response"]);
    let messages = stand.messages_when("progress is recorded", |messages| {
        messages
            .iter()
            .filter(|message| message["method"] == "notifications/progress")
            .count()
            == 2
    })?;
    for message in messages
        .iter()
        .filter(|message| message["method"] == "notifications/progress")
    {
        assert_eq!(message["call"], call["id"]);
    }
    stand.finish_whole()
}
