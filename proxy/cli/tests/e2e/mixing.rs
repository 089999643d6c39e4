//! What must not be mixed up: equal ids of different clients, sessions and principals, and rounds that look alike.

use anyhow::{Context as _, Result};
use callbox_testkit::blocking::{Asked, Client};
use serde_json::Value;

use crate::mcp::{self, ACCEPTED, STREAM, Session, event};
use crate::stand::{Stand, flagged};

/// A call that is under way, with the text its result will have as its tool's name.
fn under_way(stand: &Stand, request: String) -> Result<(Client, Asked)> {
    let mut client = stand.client()?;
    client.send(request)?;
    let asked = stand.upstream.next()?;
    asked.body()?;
    Ok((client, asked))
}

fn text(call: &Value) -> &str {
    call["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
}

#[test]
fn equal_ids_at_the_same_time_are_told_apart_by_exchange() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    let session = Session::open(&stand, &mut client, "2025-06-18", "s-mix")?;
    let requests = [
        // Clients without a session, and two in one session that reuse an id they should not.
        ("alone", mcp::post(&mcp::call("1", "alone", "{}"))),
        ("other", mcp::post(&mcp::call("1", "other", "{}"))),
        ("first", session.post(&mcp::call("1", "first", "{}"))),
        ("second", session.post(&mcp::call("1", "second", "{}"))),
    ];
    let mut open = requests
        .iter()
        .map(|(tool, request)| Ok((*tool, under_way(&stand, request.clone())?)))
        .collect::<Result<Vec<_>>>()?;
    for (tool, (client, asked)) in open.iter_mut().rev() {
        asked.send(mcp::json(&mcp::result("1", tool)))?;
        assert!(client.answer()?.text().contains(*tool));
    }
    for call in stand.calls(4)? {
        assert_eq!(call["tool"], text(&call), "{call:#}");
    }
    stand.finish_whole()
}

#[test]
fn a_session_id_of_another_principal_is_flagged() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    let of = |principal: &str| {
        format!(
            "Authorization: Bearer {principal}\r\nMcp-Session-Id: s-stolen\r\nMCP-Protocol-Version: 2025-06-18\r\n"
        )
    };
    for principal in ["alice", "alice", "mallory"] {
        let request = mcp::post_with(&of(principal), &mcp::call("1", "search", "{}"));
        stand.trade(&mut client, request, mcp::json(&mcp::result("1", "found")))?;
    }
    let calls = stand.calls(3)?;
    assert!(
        !flagged(&calls[1], "session_other_principal"),
        "{:#}",
        calls[1]
    );
    assert!(
        flagged(&calls[2], "session_other_principal"),
        "{:#}",
        calls[2]
    );
    stand.finish_whole()
}

#[test]
fn an_answer_on_the_get_stream_finds_its_call() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    let session = Session::open(&stand, &mut client, "2025-03-26", "s-get")?;
    let (mut listening, mut stream) = under_way(&stand, session.get(""))?;
    stream.send(STREAM)?;
    listening.head()?;
    stand.trade(
        &mut client,
        session.post(&mcp::call("4", "search", "{}")),
        ACCEPTED,
    )?;
    // A request of the server with the same id is not the answer.
    stream.chunk(event(&mcp::request("4", "ping", "{}")))?;
    stream.chunk(event(&mcp::result("4", "found")))?;
    listening.until("found")?;
    let call = stand.call_when("the answer is found", |call| call["outcome"] == "ok")?;
    assert_eq!(text(&call), "found");
    drop((listening, stream));
    stand.finish_whole()
}

const ASK: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"sure":{"method":"elicitation/create","params":{"message":"Really?"}}}}}"#;
const DONE: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}"#;

/// A call of 2026-07-28, and its second round without `requestState`.
fn rounds() -> (String, String) {
    let params = r#""name":"delete_contact","arguments":{"id":"c_1"}"#;
    let again = format!(r#"{params},"inputResponses":{{"sure":{{"action":"decline"}}}}"#);
    let call = |params: &str| mcp::modern("1", "tools/call", Some("delete_contact"), params);
    (call(params), call(&again))
}

#[test]
fn a_round_with_one_candidate_is_joined_as_a_weak_link() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    let (first, second) = rounds();
    stand.trade(&mut client, first, mcp::json(ASK))?;
    stand.trade(&mut client, second, mcp::json(DONE))?;
    let call = stand.call()?;
    assert_eq!(call["legs"], 2);
    assert_eq!(call["confirmation"], "decline");
    assert!(flagged(&call, "weak_link"), "{call:#}");
    stand.finish_whole()
}

#[test]
fn a_round_with_several_candidates_stays_apart_and_says_so() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    let (first, second) = rounds();
    stand.trade(&mut client, &first, mcp::json(ASK))?;
    stand.trade(&mut client, &first, mcp::json(ASK))?;
    stand.trade(&mut client, second, mcp::json(DONE))?;
    let calls = stand.calls(1)?;
    assert_eq!(calls.len(), 3, "{calls:#?}");
    let concluded = calls
        .iter()
        .find(|call| call["outcome"] == "ok")
        .context("the last")?;
    assert_eq!(concluded["legs"], 1);
    let said = || {
        Ok(stand
            .callbox
            .calls()?
            .iter()
            .all(|call| flagged(call, "ambiguous_link"))
            .then_some(()))
    };
    callbox_testkit::process::until("all candidates say so", said)?;
    stand.finish_whole()
}

#[test]
fn a_task_of_2026_07_28_is_concluded_by_polling() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    let call = mcp::modern(
        "1",
        "tools/call",
        Some("report"),
        r#""name":"report","arguments":{}"#,
    );
    let working = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"t-9","status":"working","createdAt":"2026-11-30T10:00:00Z","lastUpdatedAt":"2026-11-30T10:00:00Z","ttlMs":null}}"#;
    stand.trade(&mut client, call, mcp::json(working))?;
    let poll = |id: &str| mcp::modern(id, "tasks/get", Some("t-9"), r#""taskId":"t-9""#);
    let state = |id: &str, status: &str, more: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","taskId":"t-9","status":"{status}"{more}}}}}"#
        )
    };
    stand.trade(
        &mut client,
        poll("2"),
        mcp::json(&state("2", "working", "")),
    )?;
    stand.call_when("the call is pending", |call| call["outcome"] == "pending")?;
    let result =
        r#","result":{"content":[{"type":"text","text":"no such report"}],"isError":true}"#;
    stand.trade(
        &mut client,
        poll("3"),
        mcp::json(&state("3", "completed", result)),
    )?;
    let call = stand.call()?;
    assert_eq!(call["outcome"], "tool_error", "{call:#}");
    assert_eq!(text(&call), "no such report");
    stand.finish_whole()
}
