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
    assert_snapshot!(told(&both().dir, &["calls"]), @r#"
    exit code: 0
    ----- stdout -----
    TIME                         ID           SESSION   TOOL             OUTCOME      TOOK  ARGUMENTS
    2026-11-30T14:03:07.120000Z  01a22cc4-39  01a22cc4  search_contacts  ok          34 ms  query="Dana Kim"
    2026-11-30T14:03:09.482000Z  01a22cc4-43  01a22cc4  search_contacts  ok          34 ms  query="dana@northwind.example" limit=1.50
    2026-11-30T14:03:12.007000Z  01a22cc4-4d  01a22cc4  create_contact   ok          1.0 s  name="Dana Kim" company="Northwind"
    2026-11-30T14:03:53.000000Z  01a22cc4-e   01a22cc4  delete_contact   tool_error  4.8 s  [duplicate_response] id="c_151" -> The user declined. Nothing was deleted; ask before you try again.
    2026-12-01T14:03:06.000000Z  01a231ea-91  01a231ea  refund           rpc_error   34 ms  invoice=1 -> -32602 Unknown invoice
    2026-12-01T14:03:07.000000Z  01a231ea-95  01a231ea  refund           http_error  34 ms  invoice=2 -> <html> <h1>Bad Gateway</h1> </html>
    2026-12-01T14:03:08.000000Z  01a231ea-99  01a231ea  refund           lost        34 ms  invoice=3
    2026-12-01T14:03:09.000000Z  01a231ea-9d  01a231ea  refund           aborted     34 ms  invoice=4
    2026-12-01T14:03:10.000000Z  01a231ea-a1  01a231ea  refund           unreadable  34 ms  invoice=5
    2026-12-01T14:03:11.000000Z  01a231ea-a5  01a231ea  refund           pending         -  invoice=6
    ----- stderr -----
    "#);
}

#[test]
fn sessions_as_plain_columns() {
    assert_snapshot!(told(&both().dir, &["sessions"]), @r"
    exit code: 0
    ----- stdout -----
    TIME                         ID            LASTED  CALLS  FAILED  CLIENT              UPSTREAM  REVISION    SOURCE    TENANT  PRINCIPAL
    2026-11-30T14:03:05.000000Z  01a22cc4  1 min 10 s      4       1  claude-desktop 2.1  crm       2025-11-25  protocol  acme    h:9f2c41d08c3b5a6e7f8091a2b3c4d5e6
    2026-12-01T14:03:05.000000Z  01a231ea       6.0 s      6       5  -                   billing   2026-07-28  inferred  -       h:9f77000000000000000000000000beef asserted
    ----- stderr -----
    ");
}

#[test]
fn the_last_calls() {
    assert_snapshot!(told(&both().dir, &["calls", "--limit", "2"]), @r"
    exit code: 0
    ----- stdout -----
    TIME                         ID           SESSION   TOOL    OUTCOME      TOOK  ARGUMENTS
    2026-12-01T14:03:10.000000Z  01a231ea-a1  01a231ea  refund  unreadable  34 ms  invoice=5
    2026-12-01T14:03:11.000000Z  01a231ea-a5  01a231ea  refund  pending         -  invoice=6
    ----- stderr -----
    ");
}

#[test]
fn nothing_to_list_is_fine() {
    assert_snapshot!(told(&crm().dir, &["calls", "--tool", "nobody"]), @r"
    exit code: 0
    ----- stdout -----
    ----- stderr -----
    no calls match in [DATA]
    ");
    assert_snapshot!(told(&crm().dir, &["sessions", "--since", "2030-01-01"]), @r"
    exit code: 0
    ----- stdout -----
    ----- stderr -----
    no sessions match in [DATA]
    ");
    assert_snapshot!(told(&crm().dir, &["calls", "--tool", "nobody", "--json"]), @r"
    exit code: 0
    ----- stdout -----
    ----- stderr -----
    ");
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
    assert_snapshot!(told(&data.dir, &["calls", "--principal", "h:9f"]), @r"
    exit code: 2
    ----- stdout -----
    ----- stderr -----
    error: h:9f is the beginning of several principals

    hint: give more of it:
      h:9f2c41d08c3b5a6e7f8091a2b3c4d5e6
      h:9f77000000000000000000000000beef
    ");
    assert_snapshot!(told(&data.dir, &["calls", "--principal", "h:00"]), @r"
    exit code: 2
    ----- stdout -----
    ----- stderr -----
    error: no session has a principal that begins with h:00

    hint: callbox sessions lists them; a principal looks like h:9f2c…
    ");
    assert_snapshot!(told(&data.dir, &["calls", "--session", "ffff"]), @r"
    exit code: 2
    ----- stdout -----
    ----- stderr -----
    error: no call or session begins with `ffff`

    hint: `callbox calls` and `callbox sessions` list what there is
    ");
    let call = json(&data.dir, &["calls", "--json", "--tool", "delete_contact"])[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_snapshot!(told(&data.dir, &["calls", "--session", &call]), @r"
    exit code: 2
    ----- stdout -----
    ----- stderr -----
    error: 01a22cc4-ed28-7000-8000-0000ca11b0c5 is a call, not a session

    hint: its session is 01a22cc4
    ");
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
    assert_snapshot!(members(&call[0]), @"arguments asserted capture catalogue client confirmation duration_ms end error events exchange_id first_byte_ms flags http_status id jsonrpc_id legs outcome principal protocol_version request_bytes request_id response_bytes result sample schema seq session session_source started_at tenant tool trace_id upstream verdicts");
    let session = json(&data.dir, &["sessions", "--json", "--limit", "1"]);
    assert_snapshot!(members(&session[0]), @"asserted calls client failed id last_at principal protocol_version schema source started_at tenant upstream");
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
