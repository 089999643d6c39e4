//! `show`: timelines and single calls.

use insta::assert_snapshot;

use crate::fixture::{Data, START, crm, id, trouble_records};
use crate::run::{json, told};

#[test]
fn a_session_as_a_timeline() {
    let data = crm();
    assert_snapshot!(told(&data.dir, &["show", &id(START).to_string()]), @"");
}

#[test]
fn a_session_where_all_goes_wrong() {
    let data = Data::with(trouble_records());
    assert_snapshot!(told(&data.dir, &["show", &id(START + 86_400_000_000).to_string()]), @"");
}

#[test]
fn a_call() {
    let data = crm();
    assert_snapshot!(told(&data.dir, &["show", &id(START + 7_007_000).to_string()]), @"");
}

#[test]
fn a_failed_call_with_headers() {
    let data = crm();
    assert_snapshot!(told(&data.dir, &["show", "--headers", &id(START + 48_000_000).to_string()]), @"");
}

#[test]
fn calls_without_an_answer() {
    let data = Data::with(trouble_records());
    let show = |seconds: i64| {
        told(
            &data.dir,
            &[
                "show",
                &id(START + (86_400 + seconds) * 1_000_000).to_string(),
            ],
        )
    };
    assert_snapshot!(show(1), @"");
    assert_snapshot!(show(2), @"");
    assert_snapshot!(show(5), @"");
    assert_snapshot!(show(6), @"");
}

#[test]
fn a_session_as_json_is_everything_in_order() {
    let data = crm();
    let lines = json(&data.dir, &["show", "--json", &id(START).to_string()]);
    let order: Vec<String> = lines
        .iter()
        .map(|line| {
            let schema = line["schema"].as_str().unwrap();
            let name = line["tool"]
                .as_str()
                .or(line["method"].as_str())
                .unwrap_or("");
            format!("{schema} {name}").trim_end().to_owned()
        })
        .collect();
    assert_snapshot!(order.join("\n"), @"");
    let message = lines
        .iter()
        .find(|line| line["schema"] == "callbox.message/1")
        .unwrap();
    assert_snapshot!(message.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" "), @"");
}

#[test]
fn a_call_as_json_is_the_call() {
    let data = crm();
    let id = id(START + 2_120_000).to_string();
    let shown = json(&data.dir, &["show", "--json", &id]);
    assert_eq!(
        shown,
        json(
            &data.dir,
            &["calls", "--json", "--until", "2026-11-30T14:03:08Z"]
        )
    );
    assert_eq!(shown[0]["id"], id.as_str());
}
