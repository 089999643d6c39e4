//! SIGHUP: a good file is taken into use, a bad one is refused and said so.

use std::time::Duration;

use anyhow::Result;
use callbox_testkit::blocking::Upstream;
use callbox_testkit::process::until;

use crate::mcp;
use crate::stand::{Setup, Stand, file};

fn reload_ok(stand: &Stand) -> Result<u64> {
    stand.count("callbox_config_reload_ok", "")
}

fn write(stand: &Stand, text: &str) -> Result<()> {
    Ok(std::fs::write(
        stand.folder.path().join("callbox.toml"),
        text,
    )?)
}

#[test]
fn a_good_file_changes_routes_for_new_requests_and_leaves_running_calls_alone() -> Result<()> {
    let stand = Setup::default().file("", "").start()?;
    let next = Upstream::start()?;
    let mut running = stand.client()?;
    running.send(mcp::post(&mcp::call("1", "report", "{}")))?;
    let mut asked = stand.upstream.next()?;
    asked.body()?;

    write(
        &stand,
        &file(&next.url(), "", "[listen]\nmax_request_body = \"1KiB\""),
    )?;
    stand.callbox.signal("HUP")?;
    let mut client = stand.client()?;
    until("the new limit is in force", || {
        // Only a head: the upstream would wait for the rest, callbox refuses it.
        let mut client = stand.client()?;
        client.send("POST /mcp HTTP/1.1\r\nHost: h\r\nContent-Length: 2048\r\n\r\n")?;
        if client.quiet(Duration::from_millis(50)).is_ok() {
            return Ok(None);
        }
        Ok((client.head()?.status() == 413).then_some(()))
    })?;
    client.send(mcp::post(&mcp::call("2", "search", "{}")))?;
    let mut second = next.next()?;
    second.send(mcp::json(&mcp::result("2", "from the new upstream")))?;
    assert!(client.answer()?.text().contains("from the new upstream"));

    asked.send(mcp::json(&mcp::result("1", "from the old one")))?;
    assert!(running.answer()?.text().contains("from the old one"));
    assert_eq!(reload_ok(&stand)?, 1);
    stand.finish().map(drop)
}

#[test]
fn a_bad_file_keeps_the_old_configuration_and_says_so() -> Result<()> {
    let stand = Setup::default().file("", "").start()?;
    assert_eq!(reload_ok(&stand)?, 1);
    let good = file(&stand.upstream.url(), "", "");
    write(
        &stand,
        &good.replace("[[upstream]]", "[listen]\nmax_conections = 5\n[[upstream]]"),
    )?;
    stand.callbox.signal("HUP")?;
    until("the refusal shows", || {
        Ok((reload_ok(&stand)? == 0).then_some(()))
    })?;

    let mut client = stand.client()?;
    let result = mcp::json(&mcp::result("1", "found"));
    let (_, answer) = stand.trade(
        &mut client,
        mcp::post(&mcp::call("1", "search", "{}")),
        result,
    )?;
    assert_eq!(answer.status(), 200);
    let log = stand.callbox.log()?;
    assert!(
        log.contains("listen.max_conections") && log.contains("max_connections"),
        "the key and its nearest: {log}"
    );

    write(&stand, &good)?;
    stand.callbox.signal("HUP")?;
    until("the good file is taken", || {
        Ok((reload_ok(&stand)? == 1).then_some(()))
    })?;
    stand.finish_whole()
}
