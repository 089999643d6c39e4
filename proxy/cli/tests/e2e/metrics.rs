//! Cases about the admin listener: series are bounded, and it is for those who may see it.

use anyhow::{Result, ensure};
use callbox_testkit::blocking::{Client, Upstream};
use callbox_testkit::process::until;

use crate::mcp;
use crate::stand::{Setup, Stand};

#[test]
fn b49_series_are_bounded_whatever_clients_invent() -> Result<()> {
    series_are_bounded(1000, 1000)
}

/// Calls in sessions of their own, and calls to tools that do not exist.
pub(crate) fn series_are_bounded(sessions: usize, tools: usize) -> Result<()> {
    let upstream = Upstream::answering(|_, body| {
        let known = callbox_testkit::blocking::http1::find(body, b"\"search\"").is_some();
        let refused =
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unknown tool"}}"#;
        if known {
            mcp::json(&mcp::result("1", "found"))
        } else {
            mcp::json(refused)
        }
        .into_bytes()
    })?;
    let stand = Setup::default().answered_by(upstream).start()?;
    let mut client = stand.client()?;
    for n in 0..sessions {
        let fields = format!("Mcp-Session-Id: session-{n}\r\nMCP-Protocol-Version: 2025-06-18\r\n");
        client.ask(mcp::post_with(&fields, &mcp::call("1", "search", "{}")))?;
    }
    for n in 0..tools {
        client.ask(mcp::post(&mcp::call("1", &format!("invented_{n}"), "{}")))?;
    }
    until("all calls are counted", || {
        Ok((stand.count("mcp_tool_calls_total", "")? == (sessions + tools) as u64).then_some(()))
    })?;
    let page = stand.callbox.admin_page("/metrics")?;
    let series = page.lines().filter(|line| !line.starts_with('#')).count();
    ensure!(series < 600, "{series} series");
    ensure!(!page.contains("session-"), "no session is a label");
    ensure!(
        !page.contains("invented_"),
        "a tool that never answered is no label"
    );
    ensure!(stand.count("mcp_tool_calls_total", "tool=\"search\"")? == sessions as u64);
    ensure!(stand.count("mcp_tool_calls_total", "tool=\"_other\"")? == tools as u64);
    stand.finish_whole()
}

/// Status of an admin page.
fn status(stand: &Stand, path: &str, fields: &str) -> Result<u16> {
    let mut admin = Client::connect(stand.callbox.admin)?;
    let answer = admin.ask(format!(
        "GET {path} HTTP/1.1\r\nHost: admin\r\n{fields}\r\n"
    ))?;
    Ok(answer.status())
}

#[test]
fn a_token_guards_what_names_names() -> Result<()> {
    let folder = tempfile::TempDir::new()?;
    let token = folder.path().join("token");
    std::fs::write(&token, "s3same\n")?;
    let stand = Setup::default()
        .file(
            "",
            &format!("[admin]\ntoken = {{ file = \"{}\" }}", token.display()),
        )
        .start()?;
    let bearer = |token: &str| format!("Authorization: Bearer {token}\r\n");
    for path in ["/metrics", "/readyz"] {
        assert_eq!(status(&stand, path, "")?, 401, "{path}");
        assert_eq!(status(&stand, path, &bearer("wrong"))?, 401, "{path}");
        assert_eq!(status(&stand, path, &bearer("s3same"))?, 200, "{path}");
    }
    assert_eq!(status(&stand, "/livez", "")?, 200);
    // None of it is on the port of the traffic: it goes to the server.
    let mut client = stand.client()?;
    let missing = mcp::status("404 Not Found", "", "{}");
    let (asked, answer) = stand.trade(
        &mut client,
        "GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n",
        missing,
    )?;
    assert_eq!(asked.head.target(), "/metrics");
    assert_eq!(answer.status(), 404);
    Ok(())
}
