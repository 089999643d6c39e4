//! What peers send is shown, never obeyed.

use std::sync::Arc;

use callbox_store::{Client, Direction, Outcome, Record};

use crate::fixture::{Data, START, call, id, message, of_call, of_message, raw, session};
use crate::run::{on, stdout};
use crate::terminal;

const EVIL: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}gnp\u{200b}\r\nfake line\u{e0041}";

fn evil() -> Data {
    let text = serde_json::to_string(EVIL).unwrap();
    let mut session = session(START);
    EVIL.clone_into(&mut session.upstream);
    session.client = Some(Client {
        name: EVIL.to_owned(),
        version: Some(EVIL.to_owned()),
    });
    session.tenant = Some(EVIL.to_owned());
    session.protocol_version = Some(EVIL.to_owned());
    let session = Arc::new(session);
    // serde_json leaves all but the C0 controls as they are: the rest comes through in the JSON text itself.
    let mut failed = call(
        &session,
        1,
        START + 1000,
        EVIL,
        &format!("{{{text}:{text}}}"),
        "",
    );
    failed.outcome = Outcome::ToolError;
    failed.result = Some(raw(&format!(
        "{{\"content\":[{{\"type\":\"text\",\"text\":{text}}},{{\"type\":{text}}}],\"isError\":true,{text}:1}}"
    )));
    failed.request_id = Some(EVIL.to_owned());
    failed.flags = vec![EVIL.to_owned()];
    failed.confirmation = Some(EVIL.to_owned());
    failed.http.target = format!("/{EVIL}");
    failed.http.request_headers = vec![(EVIL.to_owned(), EVIL.to_owned())];
    failed.capture.reason = Some(EVIL.to_owned());
    failed.capture.response = callbox_store::Capture::Truncated;
    let mut refused = call(&session, 2, START + 2000, EVIL, &text, "");
    refused.outcome = Outcome::RpcError;
    refused.result = None;
    refused.error = Some(raw(&format!("{{\"code\":-1,\"message\":{text}}}")));
    refused.jsonrpc_id = raw(&text);
    let mut flooded = call(
        &session,
        3,
        START + 3000,
        &"t".repeat(100_000),
        &format!("{{\"a\":\"{}\"}}", "x".repeat(500_000)),
        &"y".repeat(500_000),
    );
    flooded.flags = vec!["f".repeat(10_000)];
    let mut deep = call(
        &session,
        4,
        START + 4000,
        "deep",
        &format!("{}{}", "[".repeat(120), "]".repeat(120)),
        "",
    );
    deep.result = Some(raw(&format!("{{\"content\":{text}}}")));
    let noise = message(
        &session,
        START + 5000,
        Direction::ServerToClient,
        "notification",
        EVIL,
        Some(&text),
        Some(&format!("{{\"message\":{text}}}")),
    );
    let log = message(
        &session,
        START + 6000,
        Direction::ServerToClient,
        "notification",
        "notifications/message",
        None,
        Some(&format!("{{\"level\":{text},\"data\":{text}}}")),
    );
    let mut records: Vec<Record> = [failed, refused, flooded, deep].map(of_call).into();
    records.extend([noise, log].map(of_message));
    Data::with(records)
}

/// Printable text and line breaks; of escape sequences only our own colours, and only on a terminal.
fn assert_inert(what: &str, text: &str) {
    let mut rest = text.to_owned();
    for sgr in ["0", "1", "2", "31", "32", "33", "36"] {
        rest = rest.replace(&format!("\u{1b}[{sgr}m"), "");
    }
    let acts = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{200b}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e0fff}')
    };
    assert!(
        !rest.contains(acts),
        "{what}: {:?}",
        rest.find(acts).map(|at| &rest[at.saturating_sub(40)..])
    );
    assert!(
        !rest.lines().any(|line| line.starts_with("fake line")),
        "{what}: a recorded line break broke a line: {rest}"
    );
}

#[test]
fn no_command_obeys_recorded_text() {
    let data = evil();
    let session = id(START).to_string();
    let ids: Vec<String> = (1..=4).map(|n| id(START + n * 1000).to_string()).collect();
    let mut commands: Vec<Vec<&str>> = vec![
        vec!["calls"],
        vec!["sessions"],
        vec!["show", &session],
        vec!["show", &session, "--full"],
        vec!["erase", "--session", &session],
    ];
    commands.extend(
        ids.iter()
            .flat_map(|id| [vec!["show", id, "--headers"], vec!["show", id, "--full"]]),
    );
    for arguments in commands {
        let output = on(&data.dir, &arguments).output().unwrap();
        let text =
            String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        assert!(
            text.contains("\\u001b") || text.contains("ttt") || text.contains("deep"),
            "{arguments:?}: {text}"
        );
        assert_inert(&format!("{arguments:?}"), &text);
        let shown = terminal::run(100, &data.dir, &arguments, &[]);
        assert_inert(&format!("{arguments:?} on a terminal"), &shown);
    }
}

#[test]
fn floods_stay_on_their_lines() {
    let data = evil();
    for arguments in [
        &["calls"][..],
        &["sessions"],
        &["show", &id(START).to_string()],
    ] {
        let shown = terminal::run(100, &data.dir, arguments, &[("NO_COLOR", "1")]);
        for line in shown.lines() {
            assert!(line.chars().count() <= 100, "{arguments:?}: {line}");
        }
    }
    let call = id(START + 3000).to_string();
    let bounded = stdout_of(&data, &["show", &call]);
    assert!(bounded.len() < 120_000, "{}", bounded.len());
    assert!(stdout_of(&data, &["show", &call, "--full"]).len() > 1_000_000);
}

#[test]
fn json_stays_json() {
    let data = evil();
    for arguments in [
        &["calls", "--json"][..],
        &["sessions", "--json"],
        &["export"],
        &["show", "--json", &id(START).to_string()],
    ] {
        for line in stdout(&data.dir, arguments).lines() {
            serde_json::from_str::<serde_json::Value>(line).expect(line);
        }
    }
    serde_json::from_str::<serde_json::Value>(&stdout(&data.dir, &["export", "--har"])).unwrap();
}

fn stdout_of(data: &Data, arguments: &[&str]) -> String {
    String::from_utf8(on(&data.dir, arguments).output().unwrap().stdout).unwrap()
}
