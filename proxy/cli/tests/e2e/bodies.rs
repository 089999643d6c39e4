//! Cases about bodies: coded, large, many at once.

use std::io::Write as _;
use std::time::Duration;

use anyhow::{Result, ensure};
use callbox_testkit::blocking::upstream::chunk;
use callbox_testkit::blocking::{Client, Upstream};

use crate::mcp;
use crate::stand::{Setup, Stand, flagged};

const LIST: &str = r#"{"result":{"tools":[{"name":"search","inputSchema":{"type":"object"}}]},"jsonrpc":"2.0","id":1}"#;

fn gzip(text: &str) -> Result<Vec<u8>> {
    let mut coder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    coder.write_all(text.as_bytes())?;
    Ok(coder.finish()?)
}

fn deflate(text: &str) -> Result<Vec<u8>> {
    let mut coder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    coder.write_all(text.as_bytes())?;
    Ok(coder.finish()?)
}

fn brotli(text: &str) -> Result<Vec<u8>> {
    let mut coded = Vec::new();
    brotli::BrotliCompress(
        &mut text.as_bytes(),
        &mut coded,
        &brotli::enc::BrotliEncoderParams::default(),
    )?;
    Ok(coded)
}

/// An answer whose body is coded as `coding` says.
fn coded(coding: &str, body: &[u8]) -> Vec<u8> {
    let mut answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: {coding}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    answer.extend_from_slice(body);
    answer
}

#[test]
fn b08_a_coded_answer_passes_raw_with_its_headers() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    let body = gzip(LIST)?;
    let request = mcp::post_with(
        "Accept-Encoding: gzip, deflate, br, zstd\r\n",
        &mcp::request("1", "tools/list", "{}"),
    );
    let (asked, answer) = stand.trade(&mut client, request, coded("gzip", &body))?;
    assert_eq!(
        asked.head.all("accept-encoding"),
        ["gzip, deflate, br, zstd"]
    );
    assert_eq!(answer.head.all("content-encoding"), ["gzip"]);
    assert_eq!(answer.head.all("content-length"), [body.len().to_string()]);
    assert_eq!(answer.body.bytes, body);
    stand.finish_whole()
}

#[test]
fn b09_the_copy_is_decoded_whatever_the_coding() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    let text = mcp::result("1", "found it");
    let bodies = [
        ("gzip", gzip(&text)?),
        ("deflate", deflate(&text)?),
        ("br", brotli(&text)?),
        ("zstd", zstd::encode_all(text.as_bytes(), 3)?),
    ];
    for (coding, body) in &bodies {
        let request = mcp::post(&mcp::call("1", coding, "{}"));
        let (_, answer) = stand.trade(&mut client, request, coded(coding, body))?;
        assert_eq!(&answer.body.bytes, body);
    }
    for (call, (coding, _)) in stand.calls(bodies.len())?.iter().zip(&bodies) {
        assert_eq!(call["tool"], *coding);
        assert_eq!(call["outcome"], "ok", "{call:#}");
        assert_eq!(call["result"]["content"][0]["text"], "found it");
        assert_eq!(call["capture"]["response"], "full");
    }
    stand.finish_whole()
}

#[test]
fn b09_an_unknown_coding_is_a_record_marked_undecoded() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    let body = b"\x01\x02 whatever this is";
    let request = mcp::post(&mcp::call("1", "search", "{}"));
    let (_, answer) = stand.trade(&mut client, request, coded("x-lz9", body))?;
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.body.bytes, body);
    let call = stand.call()?;
    assert_eq!(call["capture"]["response"], "undecoded");
    assert_eq!(call["outcome"], "unreadable");
    assert!(flagged(&call, "undecoded"), "{call:#}");
    stand.finish_whole()
}

#[test]
fn b22_a_body_over_the_recording_cap_passes_and_is_marked() -> Result<()> {
    let stand = Stand::with(&[("RECORD__MAX_MESSAGE_BYTES", "64KiB")])?;
    let mut client = stand.client()?;
    let body = mcp::call(
        "1",
        "upload",
        &format!(r#"{{"text":"{}"}}"#, "x".repeat(2_200_000)),
    );
    let result = mcp::json(&mcp::result("1", "stored"));
    let (asked, answer) = stand.trade(&mut client, mcp::post(&body), result)?;
    assert!(asked.body()? == body.as_bytes(), "byte for byte");
    assert_eq!(answer.status(), 200);
    let call = stand.call()?;
    assert_eq!(call["tool"], "upload");
    assert_eq!(call["outcome"], "ok");
    assert_eq!(call["capture"]["request"], "truncated");
    assert_eq!(call["request_bytes"].as_u64(), Some(body.len() as u64));
    stand.finish_whole()
}

#[test]
fn b22_a_configured_limit_is_a_413_that_names_it() -> Result<()> {
    let stand = Stand::with(&[("LISTEN__MAX_REQUEST_BODY", "2MiB")])?;
    let body = mcp::call(
        "1",
        "upload",
        &format!(r#"{{"text":"{}"}}"#, "x".repeat(2_200_000)),
    );
    let mut client = stand.client()?;
    // The refusal may come before the whole body is taken.
    client.send(mcp::post(&body)).ok();
    let answer = client.answer()?;
    assert_eq!(answer.status(), 413);
    assert!(answer.text().contains("2097152"), "{}", answer.text());
    assert!(
        answer.text().contains("max_request_body"),
        "{}",
        answer.text()
    );
    assert_eq!(stand.count("callbox_faults_total", "body-too-large")?, 1);

    let fits = mcp::call(
        "2",
        "upload",
        &format!(r#"{{"text":"{}"}}"#, "x".repeat(2_000_000)),
    );
    let mut client = stand.client()?;
    let (asked, answer) = stand.trade(
        &mut client,
        mcp::post(&fits),
        mcp::json(&mcp::result("2", "stored")),
    )?;
    assert_eq!(asked.body_length(), fits.len() as u64);
    assert_eq!(answer.status(), 200);
    stand.finish_whole()
}

/// Most memory the process has had, in bytes.
fn peak_memory(stand: &Stand) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", stand.callbox.pid()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: u64 = line
        .and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or_default();
    ensure!(kib > 0, "no VmHWM in {status}");
    Ok(kib * 1024)
}

/// Sends a chunked call with `megabytes` of arguments, and checks that it is answered.
fn upload(address: std::net::SocketAddr, megabytes: u32) -> Result<()> {
    let mut client = Client::connect(address)?;
    client.patience(Duration::from_mins(10))?;
    client.send(
        "POST /mcp HTTP/1.1\r\nHost: mcp.example.test\r\nContent-Type: application/json\r\n\
         Transfer-Encoding: chunked\r\n\r\n",
    )?;
    let body = mcp::call("1", "upload", r#"{"text":"|"}"#);
    let (before, after) = body.split_once('|').unwrap_or_default();
    client.send(chunk(before.as_bytes()))?;
    let megabyte = chunk(&vec![b'x'; 1 << 20]);
    for _ in 0..megabytes {
        client.send(&megabyte)?;
    }
    client.send(chunk(after.as_bytes()))?;
    client.send("0\r\n\r\n")?;
    let answer = client.answer()?;
    ensure!(answer.status() == 200, "{:?}", answer.head);
    Ok(())
}

/// The limits of the recorder's queue and what a busy process needs besides.
const BOUND: u64 = (64 + 96) << 20;

pub(crate) fn memory_is_bounded(large: u32, each: u32, at_once: usize) -> Result<()> {
    let upstream = Upstream::answering(|_, _| mcp::json(&mcp::result("1", "stored")).into_bytes())?;
    let stand = Setup::default().answered_by(upstream).start()?;
    let address = stand.callbox.listen;
    upload(address, large)?;
    std::thread::scope(|scope| -> Result<()> {
        let uploads: Vec<_> = (0..at_once)
            .map(|_| scope.spawn(move || upload(address, each)))
            .collect();
        for upload in uploads {
            upload.join().expect("the client does not panic")?;
        }
        Ok(())
    })?;
    let calls = stand.calls(1)?;
    assert_eq!(
        calls[0]["capture"]["request"], "truncated",
        "{:?}",
        calls[0]["capture"]
    );
    assert!(calls[0]["request_bytes"].as_u64() >= Some(u64::from(large) << 20));
    let peak = peak_memory(&stand)?;
    assert!(peak < BOUND, "{} MiB", peak >> 20);
    // Chunks that the recorder was too slow for may be dropped, as long as they are counted.
    stand.finish().map(drop)
}

#[test]
fn b23_memory_does_not_grow_with_bodies() -> Result<()> {
    memory_is_bounded(200, 10, 12)
}
