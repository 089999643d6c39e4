//! The cases that take minutes, at their full length. The other modules prove the same in seconds.

use std::time::{Duration, Instant};

use anyhow::Result;
use callbox_testkit::blocking::Client;

use crate::mcp::{self, STREAM, event};
use crate::stand::Stand;

fn stream(stand: &Stand) -> Result<(Client, callbox_testkit::blocking::Asked)> {
    let mut client = stand.client()?;
    client.send(mcp::get())?;
    let mut asked = stand.upstream.next()?;
    asked.send(STREAM)?;
    client.head()?;
    Ok((client, asked))
}

#[test]
#[ignore = "takes 95 s: cargo nextest run --run-ignored all"]
fn b02_an_event_after_95_seconds() -> Result<()> {
    let stand = Stand::up()?;
    let (mut client, mut asked) = stream(&stand)?;
    client.quiet(Duration::from_secs(95))?;
    let ping = event(&mcp::request("1", "ping", "{}"));
    asked.chunk(&ping)?;
    client.until(&ping)?;
    drop((client, asked));
    stand.finish_whole()
}

#[test]
#[ignore = "takes 10 minutes: cargo nextest run --run-ignored all"]
fn b10_a_session_with_pings_survives_ten_minutes() -> Result<()> {
    let stand = Stand::up()?;
    let (mut client, mut asked) = stream(&stand)?;
    let mut delays = Vec::new();
    for n in 0..120 {
        let ping = event(&mcp::request(&n.to_string(), "ping", "{}"));
        let sent = Instant::now();
        asked.chunk(&ping)?;
        client.until(&ping)?;
        delays.push(sent.elapsed());
        client.quiet(Duration::from_secs(5))?;
    }
    // The machine may have been busy now and then.
    delays.sort();
    assert!(delays[60] < Duration::from_millis(100), "{delays:?}");
    drop((client, asked));
    stand.finish_whole()
}

#[test]
#[ignore = "takes 6 minutes: cargo nextest run --run-ignored all"]
fn b11_a_stream_of_comments_stays_for_six_minutes() -> Result<()> {
    let stand = Stand::up()?;
    let (mut client, mut asked) = stream(&stand)?;
    for _ in 0..24 {
        asked.chunk(":\n\n")?;
        assert_eq!(client.until("\n\n")?, b":\n\n");
        client.quiet(Duration::from_secs(15))?;
    }
    drop((client, asked));
    stand.finish_whole()
}

#[test]
#[ignore = "takes 310 s: cargo nextest run --run-ignored all"]
fn b12_a_call_of_310_seconds() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    client.send(mcp::post(&mcp::call("1", "report", "{}")))?;
    let mut asked = stand.upstream.next()?;
    client.quiet(Duration::from_secs(310))?;
    asked.send(mcp::json(&mcp::result("1", "at last")))?;
    assert_eq!(client.answer()?.status(), 200);
    assert_eq!(stand.call()?["outcome"], "ok");
    stand.finish_whole()
}

#[test]
#[ignore = "takes a minute and 5 GB of loopback: cargo nextest run --run-ignored all"]
fn b23_five_gigabytes_and_two_hundred_uploads_at_once() -> Result<()> {
    crate::bodies::memory_is_bounded(5000, 20, 200)
}

#[test]
#[ignore = "takes a minute: cargo nextest run --run-ignored all"]
fn b42_twelve_clients_with_a_thousand_calls_each() -> Result<()> {
    crate::storage::many_clients(1000)
}

#[test]
#[ignore = "takes minutes: cargo nextest run --run-ignored all"]
fn b48_a_hundred_thousand_sessions() -> Result<()> {
    crate::storage::sessions_are_forgotten(50_000, 10_000)
}

#[test]
#[ignore = "takes minutes: cargo nextest run --run-ignored all"]
fn b49_fifty_thousand_sessions_and_five_thousand_invented_tools() -> Result<()> {
    crate::metrics::series_are_bounded(50_000, 5000)
}
