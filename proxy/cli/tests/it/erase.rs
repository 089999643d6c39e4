//! `erase` and `prune`.

use insta::assert_snapshot;

use crate::fixture::{Data, START, crm, crm_records, id, trouble_records};
use crate::run::{command, json, on, told, written};

#[test]
fn erasing_asks_for_yes() {
    let data = crm();
    let session = id(START).to_string();
    assert_snapshot!(told(&data.dir, &["erase", "--session", &session]), @"");
    assert_eq!(json(&data.dir, &["calls", "--json"]).len(), 4);
    assert_snapshot!(told(&data.dir, &["erase", "--session", &session, "--yes"]), @"");
    assert_eq!(json(&data.dir, &["calls", "--json"]).len(), 0);
    assert_eq!(json(&data.dir, &["sessions", "--json"]).len(), 0);
}

#[test]
fn a_principal_goes_alone() {
    let mut records = crm_records();
    records.extend(trouble_records());
    let data = Data::with(records);
    assert_snapshot!(told(&data.dir, &["erase", "--principal", "h:9f"]), @"");
    assert_snapshot!(told(&data.dir, &["erase", "--principal", "h:9f2c"]), @"");
    assert_snapshot!(told(&data.dir, &["erase", "--principal", "h:9f2c", "--yes"]), @"");
    assert_eq!(json(&data.dir, &["calls", "--json"]).len(), 6);
    assert_snapshot!(told(&data.dir, &["erase", "--principal", "h:9f2c", "--yes"]), @"");
}

#[test]
fn a_call_is_not_a_session() {
    let data = crm();
    let call = id(START + 48_000_000).to_string();
    assert_snapshot!(told(&data.dir, &["erase", "--session", &call, "--yes"]), @"");
    assert_eq!(json(&data.dir, &["calls", "--json"]).len(), 4);
}

#[test]
fn one_of_both_is_needed() {
    assert_snapshot!(written(&command(&["erase"]).output().unwrap()), @"");
}

#[test]
fn pruning_applies_the_configured_limits() {
    let data = crm();
    let output = on(&data.dir, &["prune"])
        .env("CALLBOX__RECORD__RETENTION__MAX_AGE", "36000d")
        .output()
        .unwrap();
    assert_snapshot!(written(&output), @"");
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
