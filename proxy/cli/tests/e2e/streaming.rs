//! Cases about answers that come in parts.

use anyhow::Result;

use crate::mcp::{self, ACCEPTED, STREAM, Session, event};
use crate::stand::{LONGER, SHORT_DEADLINES, Stand, event_kinds};

const PROGRESS: &str = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#;

/// A call that asks for [`PROGRESS`].
fn with_token() -> String {
    let params = r#"{"name":"search","arguments":{},"_meta":{"progressToken":1}}"#;
    mcp::request("1", "tools/call", params)
}

/// A call answered by SSE with exactly these parts, each sent when the client has the one before. Checks that the
/// client's bytes are the upstream's, and gives the recorded call.
fn streamed(stand: &Stand, parts: &[&[u8]]) -> Result<serde_json::Value> {
    let mut client = stand.client()?;
    client.send(mcp::post(&with_token()))?;
    let mut asked = stand.upstream.next()?;
    asked.send(STREAM)?;
    client.head()?;
    let mut seen = Vec::new();
    for part in parts {
        asked.chunk(part)?;
        let due = seen.len() + part.len();
        while seen.len() < due {
            match client.piece()? {
                callbox_testkit::blocking::Piece::Data(data) => seen.extend(data),
                other => anyhow::bail!("{other:?} in the middle of the answer"),
            }
        }
    }
    asked.end()?;
    let rest = client.rest()?;
    assert_eq!(rest.broken, None);
    assert!(rest.bytes.is_empty(), "nothing is added");
    assert_eq!(seen, parts.concat(), "byte for byte");
    stand.call()
}

#[test]
fn b01_a_question_in_mid_call_reaches_the_user_while_the_call_is_open() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    let session = Session::open(&stand, &mut client, "2025-06-18", "s-1")?;

    client.send(session.post(&mcp::call("7", "delete_contact", r#"{"id":"c_1"}"#)))?;
    let mut asked = stand.upstream.next()?;
    asked.send(STREAM)?;
    let question = mcp::request(
        r#""e1""#,
        "elicitation/create",
        r#"{"message":"Really delete?","requestedSchema":{"type":"object","properties":{}}}"#,
    );
    asked.chunk(event(&question))?;
    client.head()?;
    client.until("Really delete?")?;

    let mut second = stand.client()?;
    let reply = r#"{"jsonrpc":"2.0","id":"e1","result":{"action":"accept","content":{}}}"#;
    let (replied, accepted) = stand.trade(&mut second, session.post(reply), ACCEPTED)?;
    assert_eq!(replied.body()?, reply.as_bytes());
    assert_eq!(accepted.status(), 202);

    asked.chunk(event(&mcp::result("7", "deleted")))?;
    asked.end()?;
    assert!(client.rest()?.broken.is_none());

    let call = stand.call()?;
    assert_eq!(call["outcome"], "ok");
    assert_eq!(call["confirmation"], "accept");
    assert_eq!(event_kinds(&call), ["elicitation", "response"]);
    let messages = stand.messages_when("question and reply are recorded", |messages| {
        messages
            .iter()
            .filter(|message| message["jsonrpc_id"] == "e1")
            .count()
            == 2
    })?;
    for message in messages
        .iter()
        .filter(|message| message["jsonrpc_id"] == "e1")
    {
        assert_eq!(message["call"], call["id"], "linked to the call: {message}");
        assert_eq!(message["method"], "elicitation/create");
    }
    stand.finish_whole()
}

#[test]
fn b02_an_idle_get_stream_outlives_every_deadline() -> Result<()> {
    let stand = Stand::with(SHORT_DEADLINES)?;
    let mut client = stand.client()?;
    client.send(mcp::get())?;
    let mut asked = stand.upstream.next()?;
    asked.send(STREAM)?;
    assert_eq!(client.head()?.status(), 200, "the head comes at once");
    client.quiet(LONGER)?;
    asked.chunk(event(PROGRESS))?;
    client.until(&event(PROGRESS))?;
    drop((client, asked));
    stand.finish_whole()
}

#[test]
fn b03_a_character_cut_in_two_is_recorded_whole() -> Result<()> {
    let stand = Stand::up()?;
    let text = event(&mcp::result("1", "이름 그리고 나 그리고 \u{b098}\u{b2e4}"));
    let cut = text.find('\u{b098}').unwrap_or_default() + 1;
    let (before, after) = text.as_bytes().split_at(cut);
    assert_eq!(
        before.last(),
        Some(&0xEB),
        "cut behind the first of three bytes"
    );
    let call = streamed(&stand, &[before, after])?;
    let recorded = call["result"]["content"][0]["text"].to_string();
    assert!(recorded.contains('\u{b098}'), "{recorded}");
    assert!(!recorded.contains('\u{fffd}'), "{recorded}");
    stand.finish_whole()
}

#[test]
fn b04_events_end_with_any_line_end() -> Result<()> {
    let stand = Stand::up()?;
    let result = mcp::result("1", "found");
    let call = streamed(
        &stand,
        &[
            format!("data: {PROGRESS}\r\n\r\n").as_bytes(),
            format!("data: {PROGRESS}\r\r").as_bytes(),
            format!("data: {result}\n\n").as_bytes(),
        ],
    )?;
    assert_eq!(event_kinds(&call), ["progress", "progress", "response"]);
    assert_eq!(call["outcome"], "ok");
    stand.finish_whole()
}

#[test]
fn b05_data_lines_of_one_event_are_joined() -> Result<()> {
    let stand = Stand::up()?;
    let call = streamed(
        &stand,
        &[b"data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":1,\"result\":{}}\n\n"],
    )?;
    assert_eq!(call["outcome"], "ok");
    assert_eq!(call["result"], serde_json::json!({}));
    assert_eq!(event_kinds(&call), ["response"]);
    stand.finish_whole()
}

#[test]
fn b06_event_id_retry_and_comments_pass_unchanged() -> Result<()> {
    let stand = Stand::up()?;
    let result = mcp::result("1", "found");
    let call = streamed(
        &stand,
        &[
            b"retry: 5000\nid: 6\ndata:\n\n",
            b": ping - 2026-11-30\n\n",
            format!("event: message\nid: 7\nfoo: bar\ndata: {result}\n\n").as_bytes(),
        ],
    )?;
    assert_eq!(call["outcome"], "ok");
    assert_eq!(event_kinds(&call), ["priming", "response"]);
    stand.finish_whole()
}

#[test]
fn b07_a_notification_before_the_answer_is_not_the_answer() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    client.send(mcp::post(&mcp::initialize("0", "2025-11-25")))?;
    let mut asked = stand.upstream.next()?;
    asked.send(STREAM.replace("\r\n\r\n", "\r\nMcp-Session-Id: s-7\r\n\r\n"))?;
    let log = mcp::notification(
        "notifications/message",
        r#"{"level":"info","data":"starting"}"#,
    );
    asked.chunk(event(&log))?;
    client.head()?;
    client.until("starting")?;
    asked.chunk(event(&mcp::initialized("0", "2025-06-18")))?;
    asked.end()?;
    client.rest()?;

    let messages =
        stand.messages_when("the handshake is recorded", |messages| messages.len() >= 3)?;
    let answer = messages
        .iter()
        .find(|message| message["kind"] == "response")
        .expect("a response is recorded");
    assert_eq!(answer["method"], "initialize");
    assert_eq!(answer["body"]["protocolVersion"], "2025-06-18");
    let sessions = stand.sessions()?;
    assert_eq!(sessions.len(), 1, "{sessions:#?}");
    assert_eq!(
        sessions[0]["protocol_version"], "2025-06-18",
        "the negotiated one"
    );
    stand.finish_whole()
}

#[test]
fn b10_pings_pass_both_ways_as_they_come() -> Result<()> {
    let stand = Stand::with(SHORT_DEADLINES)?;
    let mut client = stand.client()?;
    let session = Session::open(&stand, &mut client, "2025-06-18", "s-10")?;
    client.send(session.get(""))?;
    let mut asked = stand.upstream.next()?;
    asked.send(STREAM)?;
    client.head()?;
    let mut posting = stand.client()?;
    for n in 0..5 {
        let ping = event(&mcp::request(&n.to_string(), "ping", "{}"));
        asked.chunk(&ping)?;
        client.until(&ping)?;
        let reply = format!(r#"{{"jsonrpc":"2.0","id":{n},"result":{{}}}}"#);
        let (ponged, _) = stand.trade(&mut posting, session.post(&reply), ACCEPTED)?;
        assert_eq!(ponged.body()?, reply.as_bytes());
    }
    assert!(!asked.is_closed());
    drop((client, asked));
    stand.finish_whole()
}

#[test]
fn b11_comments_pass_as_they_come_and_none_is_added() -> Result<()> {
    let stand = Stand::with(SHORT_DEADLINES)?;
    let mut client = stand.client()?;
    client.send(mcp::get())?;
    let mut asked = stand.upstream.next()?;
    asked.send(STREAM)?;
    client.head()?;
    for _ in 0..3 {
        asked.chunk(":\n\n")?;
        assert_eq!(client.until("\n\n")?, b":\n\n");
        client.quiet(LONGER / 3)?;
    }
    drop((client, asked));
    stand.finish_whole()
}

#[test]
fn b57_every_event_is_recorded_with_its_offset_and_the_end() -> Result<()> {
    let stand = Stand::up()?;
    let call = streamed(
        &stand,
        &[
            event(PROGRESS).as_bytes(),
            event(PROGRESS).as_bytes(),
            event(&mcp::result("1", "found")).as_bytes(),
        ],
    )?;
    let events = call["events"].as_array().expect("a list");
    let offsets: Vec<f64> = events
        .iter()
        .filter_map(|event| event["offset_ms"].as_f64())
        .collect();
    assert_eq!(offsets.len(), 3, "{call:#}");
    assert!(offsets.is_sorted() && offsets[0] >= 0.0, "{offsets:?}");
    assert_eq!(call["end"], "complete");
    assert!(call["response_bytes"].as_u64() > Some(0));
    assert_eq!(call["result"]["content"][0]["text"], "found");
    stand.finish_whole()
}

#[test]
fn b57_a_stream_that_breaks_off_is_recorded_as_broken() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    client.send(mcp::post(&with_token()))?;
    let mut asked = stand.upstream.next()?;
    asked.send(STREAM)?;
    asked.chunk(event(PROGRESS))?;
    asked.chunk("event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"res")?;
    client.head()?;
    client.until("\"res")?;
    asked.close()?;
    let rest = client.rest()?;
    assert!(
        rest.broken.is_some(),
        "a broken stream is never ended cleanly"
    );
    let call = stand.call()?;
    assert_eq!(call["outcome"], "lost");
    assert_eq!(call["end"], "upstream_lost");
    assert_eq!(event_kinds(&call), ["progress"]);
    assert!(crate::stand::flagged(&call, "incomplete_event"), "{call:#}");
    stand.finish_whole()
}

#[test]
fn b57_events_that_name_no_call_belong_to_the_only_call_of_their_stream() -> Result<()> {
    let stand = Stand::up()?;
    let log = mcp::notification("notifications/message", r#"{"level":"info","data":"x"}"#);
    let stray = PROGRESS.replace(r#""progressToken":1"#, r#""progressToken":"stray""#);
    let call = streamed(
        &stand,
        &[
            event(&log).as_bytes(),
            event(&stray).as_bytes(),
            event(&mcp::result("1", "found")).as_bytes(),
        ],
    )?;
    assert_eq!(event_kinds(&call), ["message", "progress", "response"]);
    stand.finish_whole()
}
