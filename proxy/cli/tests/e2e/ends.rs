//! Cases about how calls end: answers that are none, clients and servers that leave, deadlines.

use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use crate::mcp::{self, ACCEPTED, STREAM, Session, event};
use crate::stand::{LONGER, SHORT_DEADLINES, Setup, Stand, flagged};

/// How long a client's leaving may take to reach the upstream: the promise is 100 ms, on a machine that is not busy.
const SOON: Duration = Duration::from_secs(1);

#[test]
fn b12_no_deadline_stops_a_tool_that_works_long() -> Result<()> {
    let stand = Stand::with(SHORT_DEADLINES)?;
    let mut client = stand.client()?;
    client.send(mcp::post(&mcp::call("1", "report", "{}")))?;
    let mut asked = stand.upstream.next()?;
    client.quiet(LONGER)?;
    asked.send(mcp::json(&mcp::result("1", "at last")))?;
    let answer = client.answer()?;
    assert_eq!(answer.status(), 200);
    let call = stand.call()?;
    assert_eq!(call["outcome"], "ok");
    let took = call["duration_ms"].as_f64().unwrap_or_default();
    assert!(took >= 1400.0, "{took} ms");
    stand.finish_whole()
}

#[test]
fn b12_a_configured_head_deadline_is_the_proxys_timeout() -> Result<()> {
    let stand = Setup::default()
        .file("response_head_timeout = \"300ms\"", "")
        .start()?;
    let mut client = stand.client()?;
    client.send(mcp::post(&mcp::call("1", "report", "{}")))?;
    let asked = stand.upstream.next()?;
    let answer = client.answer()?;
    assert_eq!(answer.status(), 504);
    assert_eq!(
        answer.head.field("callbox-fault").as_deref(),
        Some("head-timeout")
    );
    assert!(
        !answer.text().starts_with('{'),
        "not JSON-RPC: {}",
        answer.text()
    );
    assert!(asked.closed()? < SOON);
    let call = stand.call()?;
    assert_eq!(call["outcome"], "timeout");
    assert_eq!(call["end"], "proxy_timeout");
    assert_eq!(stand.counted("timeout")?, 1);
    assert_eq!(stand.counted("tool_error")?, 0);
    stand.finish_whole()
}

#[test]
fn b12_the_head_deadline_does_not_end_an_answer_that_began() -> Result<()> {
    let stand = Setup::default()
        .file("response_head_timeout = \"300ms\"", "")
        .start()?;
    let mut client = stand.client()?;
    client.send(mcp::post(&mcp::call("1", "report", "{}")))?;
    let mut asked = stand.upstream.next()?;
    asked.send(STREAM)?;
    client.head()?;
    client.quiet(LONGER)?;
    asked.chunk(event(&mcp::result("1", "at last")))?;
    asked.end()?;
    assert!(client.rest()?.broken.is_none());
    assert_eq!(stand.call()?["outcome"], "ok");
    stand.finish_whole()
}

#[test]
fn b13_a_405_to_get_passes_once() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    let refused = "HTTP/1.1 405 Method Not Allowed\r\nAllow: POST\r\nContent-Length: 0\r\n\r\n";
    let (_, answer) = stand.trade(&mut client, mcp::get(), refused)?;
    assert_eq!(answer.status(), 405);
    assert_eq!(answer.head.all("allow"), ["POST"]);
    // A call after it, so that a retry would have come by now.
    let result = mcp::json(&mcp::result("1", "found"));
    stand.trade(
        &mut client,
        mcp::post(&mcp::call("1", "search", "{}")),
        result,
    )?;
    assert_eq!(stand.upstream.requests(), 2, "no retry");
    assert_eq!(stand.call()?["outcome"], "ok");
    assert_eq!(stand.count("mcp_tool_calls_total", "")?, 1);
    assert_eq!(stand.count("callbox_exchanges_total", "status=\"4xx\"")?, 1);
    stand.finish_whole()
}

#[test]
fn b14_a_call_without_session_passes_and_is_inferred() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    let result = mcp::json(&mcp::result("1", "found"));
    let (asked, answer) = stand.trade(
        &mut client,
        mcp::post(&mcp::call("1", "search", "{}")),
        result,
    )?;
    assert_eq!(asked.head.field("mcp-session-id"), None, "none is made up");
    assert_eq!(answer.status(), 200);
    assert_eq!(stand.call()?["session_source"], "inferred");
    stand.finish_whole()
}

#[test]
fn b15_a_lost_session_passes_as_it_is() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    let session = Session::open(&stand, &mut client, "2025-06-18", "s-15")?;
    let body =
        r#"{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}"#;
    let gone = mcp::status("404 Not Found", "", body);
    let (_, answer) = stand.trade(
        &mut client,
        session.post(&mcp::call("3", "search", "{}")),
        gone,
    )?;
    assert_eq!(answer.status(), 404);
    assert_eq!(answer.text(), body);
    let call = stand.call()?;
    assert_eq!(call["http_status"], 404);
    assert!(flagged(&call, "session_lost"), "{call:#}");
    for outcome in ["ok", "tool_error"] {
        assert_eq!(stand.counted(outcome)?, 0, "{outcome}");
    }
    stand.finish_whole()
}

/// A call that the client leaves in the way of `leave`, and the recorded call.
fn left(
    leave: impl FnOnce(callbox_testkit::blocking::Client) -> Result<()>,
    begun: bool,
) -> Result<Value> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    client.send(mcp::post(&mcp::call("1", "report", "{}")))?;
    let mut asked = stand.upstream.next()?;
    if begun {
        asked.send(STREAM)?;
        asked.chunk(":\n\n")?;
        client.head()?;
        client.until(":\n\n")?;
    }
    leave(client)?;
    assert!(asked.closed()? < SOON);
    let call = stand.call()?;
    stand.finish_whole()?;
    Ok(call)
}

#[test]
fn b16_a_client_that_leaves_before_the_head_ends_the_call_upstream() -> Result<()> {
    let call = left(
        |client| {
            drop(client);
            Ok(())
        },
        false,
    )?;
    assert_eq!(call["outcome"], "aborted");
    assert_eq!(call["end"], "client_gone");
    Ok(())
}

#[test]
fn b16_a_client_that_resets_a_stream_ends_the_call_upstream() -> Result<()> {
    let call = left(callbox_testkit::blocking::Client::reset, true)?;
    assert_eq!(call["outcome"], "aborted");
    assert_eq!(call["end"], "client_gone");
    Ok(())
}

#[test]
fn b16_a_cancellation_passes_verbatim() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    let session = Session::open(&stand, &mut client, "2025-06-18", "s-16")?;
    client.send(session.post(&mcp::call("9", "report", "{}")))?;
    let mut asked = stand.upstream.next()?;
    let mut second = stand.client()?;
    let cancel = mcp::notification(
        "notifications/cancelled",
        r#"{"requestId":9,"reason":"changed my mind"}"#,
    );
    let (cancelled, _) = stand.trade(&mut second, session.post(&cancel), ACCEPTED)?;
    assert_eq!(cancelled.body()?, cancel.as_bytes());
    asked.send(STREAM)?;
    asked.end()?;
    client.answer()?;
    assert_eq!(stand.call()?["outcome"], "cancelled");
    stand.finish_whole()
}

#[test]
fn b30_an_answer_after_the_cancellation_is_a_late_result() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    let session = Session::open(&stand, &mut client, "2025-06-18", "s-30")?;
    client.send(session.post(&mcp::call("9", "report", "{}")))?;
    let mut asked = stand.upstream.next()?;
    let mut second = stand.client()?;
    let cancel = mcp::notification("notifications/cancelled", r#"{"requestId":9}"#);
    stand.trade(&mut second, session.post(&cancel), ACCEPTED)?;
    asked.send(mcp::json(&mcp::result("9", "too late")))?;
    assert_eq!(client.answer()?.status(), 200);
    let call = stand.call_when("the late result is noted", |call| {
        flagged(call, "late_result")
    })?;
    assert_eq!(call["outcome"], "cancelled");
    assert_eq!(stand.counted("cancelled")?, 1);
    for outcome in ["ok", "tool_error", "rpc_error"] {
        assert_eq!(stand.counted(outcome)?, 0, "{outcome}");
    }
    stand.finish_whole()
}

#[test]
fn an_upstream_that_is_not_there_is_a_fault_of_its_own() -> Result<()> {
    let stand = Stand::up()?;
    let Stand {
        callbox,
        upstream,
        folder,
    } = stand;
    let address = upstream.address();
    drop(upstream);
    let mut client = callbox_testkit::blocking::Client::connect(callbox.listen)?;
    let answer = client.ask(mcp::post(&mcp::call("1", "search", "{}")))?;
    assert_eq!(answer.status(), 502);
    assert_eq!(
        answer.head.field("callbox-fault").as_deref(),
        Some("upstream-unreachable")
    );
    let stand = Stand {
        callbox,
        upstream: callbox_testkit::blocking::Upstream::start_on(address)?,
        folder,
    };
    let result = mcp::json(&mcp::result("2", "found"));
    let (_, answer) = stand.trade(
        &mut client,
        mcp::post(&mcp::call("2", "search", "{}")),
        result,
    )?;
    assert_eq!(answer.status(), 200, "it works again without a restart");
    let calls = stand.calls(2)?;
    assert_eq!(calls[0]["outcome"], "lost");
    assert_eq!(calls[0]["end"], "upstream_lost");
    assert_eq!(calls[1]["outcome"], "ok");
    stand.finish_whole()
}

#[test]
fn an_upstream_that_resets_before_its_head_is_asked_once() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    // On a connection that was used before: a pooled connection that broke is where proxies retry.
    let result = mcp::json(&mcp::result("1", "found"));
    drop(stand.trade(
        &mut client,
        mcp::post(&mcp::call("1", "search", "{}")),
        result,
    )?);
    client.send(mcp::post(&mcp::call("2", "delete_contact", "{}")))?;
    let asked = stand.upstream.next()?;
    asked.body()?;
    asked.reset()?;
    let answer = client.answer()?;
    assert_eq!(answer.status(), 502);
    assert_eq!(
        answer.head.field("callbox-fault").as_deref(),
        Some("upstream-lost")
    );
    let calls = stand.calls(2)?;
    assert_eq!(calls[1]["outcome"], "lost");
    assert_eq!(stand.upstream.requests(), 2, "a POST is never sent twice");
    stand.finish_whole()
}
