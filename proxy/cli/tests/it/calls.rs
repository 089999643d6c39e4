//! `calls` and `sessions`: tables, filters, JSON Lines.

use insta::assert_snapshot;

use crate::fixture::{Data, crm, crm_records, trouble_records};
use crate::run::{json, told};

fn both() -> Data {
    let mut records = crm_records();
    records.extend(trouble_records());
    Data::with(records)
}

#[test]
fn calls_as_plain_columns() {
    assert_snapshot!(told(&both().dir, &["calls"]), @"");
}

#[test]
fn sessions_as_plain_columns() {
    assert_snapshot!(told(&both().dir, &["sessions"]), @"");
}

#[test]
fn the_last_calls() {
    assert_snapshot!(told(&both().dir, &["calls", "--limit", "2"]), @"");
}

#[test]
fn nothing_to_list_is_fine() {
    assert_snapshot!(told(&crm().dir, &["calls", "--tool", "nobody"]), @"");
    assert_snapshot!(told(&crm().dir, &["sessions", "--since", "2030-01-01"]), @"");
    assert_snapshot!(told(&crm().dir, &["calls", "--tool", "nobody", "--json"]), @"");
}

#[test]
fn filters() {
    let data = both();
    let listed = |arguments: &[&str]| -> Vec<String> {
        let arguments = [&["calls", "--json"], arguments].concat();
        json(&data.dir, &arguments)
            .iter()
            .map(|call| format!("{}{}", call["upstream"].as_str().unwrap(), call["seq"]))
            .collect()
    };
    let crm = ["crm1", "crm2", "crm3", "crm4"];
    let billing = [
        "billing1", "billing2", "billing3", "billing4", "billing5", "billing6",
    ];
    assert_eq!(listed(&[]), [&crm[..], &billing[..]].concat());
    assert_eq!(
        listed(&["--limit", "3"]),
        ["billing4", "billing5", "billing6"]
    );
    assert_eq!(listed(&["--limit", "0"]).len(), 10);
    assert_eq!(
        listed(&["--tool", "create_contact", "--tool", "delete_contact"]),
        ["crm3", "crm4"]
    );
    assert_eq!(
        listed(&["--outcome", "tool_error", "--outcome", "lost"]),
        ["crm4", "billing3"]
    );
    assert_eq!(listed(&["--since", "2026-12-01"]), billing);
    assert_eq!(
        listed(&["--until", "2026-11-30T14:03:10Z"]),
        ["crm1", "crm2"]
    );
    assert_eq!(
        listed(&[
            "--since",
            "2026-11-30T14:03:09",
            "--until",
            "2026-11-30T15:04:00+01:00"
        ]),
        ["crm2", "crm3", "crm4"]
    );
    assert_eq!(listed(&["--tenant", "acme"]), crm);
    assert_eq!(listed(&["--client", "claude-desktop"]), crm);
    assert_eq!(listed(&["--upstream", "billing"]), billing);
    assert_eq!(
        listed(&["--principal", "h:9f2c41d08c3b5a6e7f8091a2b3c4d5e6"]),
        crm
    );
    assert_eq!(listed(&["--principal", "h:9f7"]), billing);
    assert_eq!(listed(&["--catalogue", "4f2e"]).len(), 10);
    assert_eq!(listed(&["--catalogue", "sha256:4f2f"]).len(), 0);
    let session = json(&data.dir, &["sessions", "--tenant", "acme", "--json"])[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(listed(&["--session", &session]), crm);
    // The first digits are those of the session's first calls, too; where only a session can be meant, that is no matter.
    assert_eq!(listed(&["--session", &session[..9]]), crm);
}

#[test]
fn what_a_filter_cannot_find() {
    let data = both();
    assert_snapshot!(told(&data.dir, &["calls", "--principal", "h:9f"]), @"");
    assert_snapshot!(told(&data.dir, &["calls", "--principal", "h:00"]), @"");
    assert_snapshot!(told(&data.dir, &["calls", "--session", "ffff"]), @"");
    let call = json(&data.dir, &["calls", "--json", "--tool", "delete_contact"])[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_snapshot!(told(&data.dir, &["calls", "--session", &call]), @"");
}

#[test]
fn json_lines_have_the_documented_members() {
    let data = both();
    let members = |value: &serde_json::Value| {
        value
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
            .join(" ")
    };
    let call = json(&data.dir, &["calls", "--json", "--limit", "1"]);
    assert_snapshot!(members(&call[0]), @"");
    let session = json(&data.dir, &["sessions", "--json", "--limit", "1"]);
    assert_snapshot!(members(&session[0]), @"");
    for call in json(&data.dir, &["calls", "--json"]) {
        assert_eq!(call["schema"], "callbox.call/1");
    }
}

#[test]
fn numbers_keep_their_spelling() {
    let text = crate::run::stdout(
        &crm().dir,
        &["calls", "--json", "--tool", "search_contacts"],
    );
    assert!(
        text.contains(r#""arguments":{"query":"dana@northwind.example","limit":1.50}"#),
        "{text}"
    );
}
