//! Cases about the log under load: one writer, small write-ahead log, caps for all kinds, memory given back.

use anyhow::{Context as _, Result, ensure};
use callbox_testkit::process::until;
use serde_json::Value;

use crate::at_rest;
use crate::load::{self, Load, noise};
use crate::mcp::{self, ACCEPTED, STREAM, Session, event};
use crate::stand::{Setup, Stand, flagged};

#[test]
fn b42_many_clients_at_once_lose_nothing() -> Result<()> {
    many_clients(100)
}

/// Twelve clients with `each` calls; every one is stored.
pub(crate) fn many_clients(each: usize) -> Result<()> {
    let stand = Setup::default()
        .answered_by(load::upstream("found")?)
        .start()?;
    load::run(stand.callbox.listen, 12, each, 200)?;
    let (offered, stored, dropped) = stand.callbox.reconcile()?;
    ensure!(
        dropped == 0.0,
        "{dropped} of {offered} dropped, {stored} stored"
    );
    let calls = stand.calls(12 * each)?;
    let names: std::collections::HashSet<_> = calls
        .iter()
        .filter_map(|call| call["arguments"]["n"].as_str())
        .collect();
    ensure!(names.len() == 12 * each, "each call once: {}", names.len());
    ensure!(stand.counted("ok")? == 12 * each as u64);
    stand.finish_whole()
}

#[test]
fn b44_the_write_ahead_log_shrinks_after_a_long_reader() -> Result<()> {
    let stand = Setup::default()
        .answered_by(load::upstream("found")?)
        .set("RECORD__QUEUE_BYTES", "2MiB")
        .start()?;
    load::run(stand.callbox.listen, 1, 5, 10)?;
    stand.calls(5)?;
    let wal = stand.data().join("calls.db-wal");
    let reader = at_rest::open(&stand.data().join("calls.db"))?;
    reader.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema")?;
    let load = Load::start(stand.callbox.listen, 3, "wal", 8000);
    until("the write-ahead log has grown", || {
        Ok((std::fs::metadata(&wal)?.len() > 16 << 20).then_some(()))
    })?;
    ensure!(
        stand.count("callbox_wal_bytes", "")? > 8 << 20,
        "its size is exported"
    );
    reader.execute_batch("COMMIT")?;
    until("the write-ahead log has shrunk under load", || {
        Ok((std::fs::metadata(&wal)?.len() < 8 << 20).then_some(()))
    })?;
    let (_, failures) = load.stop()?;
    ensure!(failures.is_empty(), "{failures:?}");
    until("the metric follows", || {
        Ok((stand.count("callbox_wal_bytes", "")? < 8 << 20).then_some(()))
    })?;
    // The load is more than this recorder's small queue takes.
    stand.finish().map(drop)
}

/// Over the cap of the stand.
const LARGE: usize = 300_000;

/// Checks that a large payload was cut, and that length and hash of the whole are known.
fn cut(call: &Value) -> Result<()> {
    let reason = call["capture"]["reason"].as_str().unwrap_or_default();
    ensure!(
        call["capture"]["response"] == "truncated",
        "{} {}",
        call["tool"],
        call["capture"]
    );
    ensure!(reason.contains("sha256:"), "{} {reason}", call["tool"]);
    ensure!(
        call.to_string().len() < 2 * 65_536,
        "{} is {} bytes",
        call["tool"],
        call.to_string().len()
    );
    Ok(())
}

#[test]
fn b45_every_kind_of_payload_is_capped() -> Result<()> {
    let stand = Stand::with(&[("RECORD__MAX_MESSAGE_BYTES", "64KiB")])?;
    let mut client = stand.client()?;
    let session = Session::open(&stand, &mut client, "2025-11-25", "s-45")?;
    let large = noise(45, LARGE);
    // Plain JSON, and an error.
    let tool = |name: &str| session.post(&mcp::call("1", name, "{}"));
    stand.trade(
        &mut client,
        tool("json"),
        mcp::json(&mcp::result("1", &large)),
    )?;
    let error =
        format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":-32000,"message":"{large}"}}}}"#);
    stand.trade(&mut client, tool("error"), mcp::json(&error))?;
    // SSE, with a question that is large as well.
    client.send(tool("sse"))?;
    let mut asked = stand.upstream.next()?;
    asked.send(STREAM)?;
    let question = mcp::request(
        "\"q\"",
        "elicitation/create",
        &format!(r#"{{"message":"{large}"}}"#),
    );
    asked.chunk(event(&question))?;
    asked.chunk(event(&mcp::result("1", &large)))?;
    asked.end()?;
    client.answer()?;
    let reply = format!(
        r#"{{"jsonrpc":"2.0","id":"q","result":{{"action":"accept","content":{{"a":"{large}"}}}}}}"#
    );
    stand.trade(&mut client, session.post(&reply), ACCEPTED)?;
    // A task's result.
    let task = mcp::request(
        "1",
        "tools/call",
        r#"{"name":"task","arguments":{},"task":{}}"#,
    );
    let working = r#"{"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"t-45","status":"working","ttl":null}}}"#;
    stand.trade(&mut client, session.post(&task), mcp::json(working))?;
    let ask = mcp::request("2", "tasks/result", r#"{"taskId":"t-45"}"#);
    stand.trade(
        &mut client,
        session.post(&ask),
        mcp::json(&mcp::result("2", &large)),
    )?;

    let calls = stand.calls(4)?;
    let outcomes: Vec<_> = calls
        .iter()
        .map(|call| call["outcome"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(
        outcomes,
        ["ok", "rpc_error", "ok", "ok"],
        "told apart though cut"
    );
    for call in &calls {
        cut(call)?;
    }
    let messages = stand.messages_when("question and reply are recorded", |messages| {
        messages
            .iter()
            .filter(|message| message["jsonrpc_id"] == "q")
            .count()
            == 2
    })?;
    for message in messages
        .iter()
        .filter(|message| message["jsonrpc_id"] == "q")
    {
        ensure!(
            message.to_string().len() < 2 * 65_536,
            "{} bytes",
            message.to_string().len()
        );
        ensure!(flagged(message, "truncated"), "{}", message["flags"]);
    }
    stand.finish_whole()
}

#[test]
fn b47_thousands_of_records_at_once_are_stored() -> Result<()> {
    const CALLS: usize = 5000;
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    let calls: Vec<String> = (0..CALLS)
        .map(|n| mcp::call(&n.to_string(), "batch", "{}"))
        .collect();
    let results: Vec<String> = (0..CALLS)
        .map(|n| mcp::result(&n.to_string(), "ok"))
        .collect();
    let answer = mcp::json(&format!("[{}]", results.join(",")));
    stand.trade(
        &mut client,
        mcp::post(&format!("[{}]", calls.join(","))),
        answer,
    )?;
    let recorded = stand.calls(CALLS)?;
    ensure!(recorded.len() == CALLS);
    ensure!(recorded.iter().all(|call| call["outcome"] == "ok"));
    stand.finish_whole()
}

/// Memory in use now, in bytes.
fn memory(stand: &Stand) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", stand.callbox.pid()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    Ok(kib.context("no VmRSS")? * 1024)
}

/// Opens sessions that nobody ends; memory after the last half is what it was after the first.
pub(crate) fn sessions_are_forgotten(half: usize, kept: usize) -> Result<()> {
    let minted = std::sync::atomic::AtomicU64::new(0);
    let upstream = callbox_testkit::blocking::Upstream::answering(move |_, _| {
        let n = minted.fetch_add(1, std::sync::atomic::Ordering::AcqRel);
        let id = format!("Mcp-Session-Id: session-{n}\r\n");
        mcp::status("200 OK", &id, &mcp::initialized("0", "2025-06-18")).into_bytes()
    })?;
    let stand = Setup::default()
        .answered_by(upstream)
        .set("RECORD__MAX_SESSIONS", &kept.to_string())
        .start()?;
    let open = |n: usize| -> Result<()> {
        let mut client = stand.client()?;
        let initialize = mcp::post(&mcp::initialize("0", "2025-06-18"));
        for k in 1..=n {
            ensure!(client.ask(&initialize)?.status() == 200);
            // The queue's own memory is not what this is about.
            if k % 500 == 0 {
                stand.callbox.reconcile()?;
            }
        }
        stand.callbox.reconcile()?;
        Ok(())
    };
    open(half)?;
    let before = memory(&stand)?;
    open(half)?;
    let after = memory(&stand)?;
    ensure!(stand.count("callbox_sessions", "")? <= kept as u64);
    ensure!(
        stand.count("callbox_evicted_total", "")? > 0,
        "and the eviction is counted"
    );
    // 10 %, and what the allocator keeps of the log's caches in a process this small.
    let bound = before + before / 10 + (4 << 20);
    ensure!(
        after <= bound,
        "{} KiB, then {} KiB",
        before >> 10,
        after >> 10
    );
    stand.finish_whole()
}

#[test]
fn b48_sessions_without_end_leave_memory() -> Result<()> {
    sessions_are_forgotten(2500, 1000)
}
