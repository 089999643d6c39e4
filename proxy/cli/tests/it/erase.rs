//! `erase` and `prune`.

use insta::assert_snapshot;

use crate::fixture::{Data, START, crm, crm_records, id, trouble_records};
use crate::run::{command, json, on, told, written};

#[test]
fn erasing_asks_for_yes() {
    let data = crm();
    let session = id(START).to_string();
    assert_snapshot!(told(&data.dir, &["erase", "--session", &session]), @r"
    exit code: 64
    ----- stdout -----
    ----- stderr -----
    error: session 01a22cc4-31a8-7000-8000-0000ca11b0c5 was not erased; this would go:
      session 01a22cc4  2026-11-30 14:03:05.000  4 calls  claude-desktop 2.1

    hint: repeat the command with --yes to erase it
    ");
    assert_eq!(json(&data.dir, &["calls", "--json"]).len(), 4);
    assert_snapshot!(told(&data.dir, &["erase", "--session", &session, "--yes"]), @r"
    exit code: 0
    ----- stdout -----
    erased session 01a22cc4-31a8-7000-8000-0000ca11b0c5: 1 session, 4 calls, 12 messages
    ----- stderr -----
    ");
    assert_eq!(json(&data.dir, &["calls", "--json"]).len(), 0);
    assert_eq!(json(&data.dir, &["sessions", "--json"]).len(), 0);
}

#[test]
fn a_principal_goes_alone() {
    let mut records = crm_records();
    records.extend(trouble_records());
    let data = Data::with(records);
    assert_snapshot!(told(&data.dir, &["erase", "--principal", "h:9f"]), @r"
    exit code: 2
    ----- stdout -----
    ----- stderr -----
    error: h:9f is the beginning of several principals

    hint: give more of it:
      h:9f2c41d08c3b5a6e7f8091a2b3c4d5e6
      h:9f77000000000000000000000000beef
    ");
    assert_snapshot!(told(&data.dir, &["erase", "--principal", "h:9f2c"]), @r"
    exit code: 64
    ----- stdout -----
    ----- stderr -----
    error: principal h:9f2c41d08c3b5a6e7f8091a2b3c4d5e6 was not erased; this would go:
      session 01a22cc4  2026-11-30 14:03:05.000  4 calls  claude-desktop 2.1

    hint: repeat the command with --yes to erase it
    ");
    assert_snapshot!(told(&data.dir, &["erase", "--principal", "h:9f2c", "--yes"]), @r"
    exit code: 0
    ----- stdout -----
    erased principal h:9f2c41d08c3b5a6e7f8091a2b3c4d5e6: 1 session, 4 calls, 12 messages
    ----- stderr -----
    ");
    assert_eq!(json(&data.dir, &["calls", "--json"]).len(), 6);
    assert_snapshot!(told(&data.dir, &["erase", "--principal", "h:9f2c", "--yes"]), @r"
    exit code: 2
    ----- stdout -----
    ----- stderr -----
    error: no session has a principal that begins with h:9f2c

    hint: callbox sessions lists them; a principal looks like h:9f2c…
    ");
}

#[test]
fn a_call_is_not_a_session() {
    let data = crm();
    let call = id(START + 48_000_000).to_string();
    assert_snapshot!(told(&data.dir, &["erase", "--session", &call, "--yes"]), @r"
    exit code: 2
    ----- stdout -----
    ----- stderr -----
    error: 01a22cc4-ed28-7000-8000-0000ca11b0c5 is a call, not a session

    hint: its session is 01a22cc4
    ");
    assert_eq!(json(&data.dir, &["calls", "--json"]).len(), 4);
}

#[test]
fn one_of_both_is_needed() {
    assert_snapshot!(written(&command(&["erase"]).output().unwrap()), @r"
    exit code: 64
    ----- stdout -----
    ----- stderr -----
    error: the following required arguments were not provided:
      <--session <ID>|--principal <PRINCIPAL>>

    Usage: callbox erase <--session <ID>|--principal <PRINCIPAL>>

    For more information, try '--help'.
    ");
}

#[test]
fn pruning_applies_the_configured_limits() {
    let data = crm();
    let output = on(&data.dir, &["prune"])
        .env("CALLBOX__RECORD__RETENTION__MAX_AGE", "36000d")
        .output()
        .unwrap();
    assert_snapshot!(written(&output), @r"
    exit code: 0
    ----- stdout -----
    removed 0 calls, 0 messages, 0 sessions; the log is 0 B smaller
    ----- stderr -----
    ");
    assert_eq!(json(&data.dir, &["calls", "--json"]).len(), 4);
    let output = on(&data.dir, &["prune"])
        .env("CALLBOX__RECORD__RETENTION__MAX_AGE", "1s")
        .output()
        .unwrap();
    let text = written(&output);
    assert!(
        text.starts_with("exit code: 0\n----- stdout -----\nremoved 4 calls, "),
        "{text}"
    );
    assert_eq!(json(&data.dir, &["calls", "--json"]).len(), 0);
}
