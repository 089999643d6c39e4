//! `export`: JSON Lines, HAR, files that appear whole.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use insta::assert_snapshot;
use serde_json::Value;

use crate::fixture::{Data, crm, crm_records, trouble_records};
use crate::run::{json, on, stdout, told, written};

#[test]
fn json_lines_are_those_of_calls() {
    let data = crm();
    assert_eq!(
        stdout(&data.dir, &["export"]),
        stdout(&data.dir, &["calls", "--json"])
    );
    assert_eq!(
        json(&data.dir, &["export", "--tool", "delete_contact"]).len(),
        1
    );
}

#[test]
fn a_file_appears_when_it_is_complete() {
    let data = crm();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("day.jsonl");
    fs::write(&file, "the day before").unwrap();
    let output = on(&data.dir, &["export", "-o"])
        .arg(&file)
        .output()
        .unwrap();
    let text = written(&output).replace(&*folder.path().to_string_lossy(), "[FOLDER]");
    assert_snapshot!(text, @"");
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        stdout(&data.dir, &["export"])
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    // It holds what people sent to tools.
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[test]
fn a_file_that_cannot_be_written() {
    let data = crm();
    let file = data.dir.join("missing/day.jsonl");
    assert_snapshot!(told(&data.dir, &["export", "-o", &file.to_string_lossy()]), @"");
}

#[test]
fn har_has_what_the_format_asks_for() {
    let mut records = crm_records();
    records.extend(trouble_records());
    let data = Data::with(records);
    let har: Value = serde_json::from_str(&stdout(&data.dir, &["export", "--har"])).unwrap();
    let log = &har["log"];
    assert_eq!(log["version"], "1.2");
    assert!(log["creator"]["name"].is_string() && log["creator"]["version"].is_string());
    let entries = log["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 10);
    for entry in entries {
        check(entry);
    }
    assert_snapshot!(format!("{:#}", entries[3]), @"");
    assert_snapshot!(format!("{:#}", entries[5]["response"]), @"");
    assert_snapshot!(format!("{:#}", entries[9]["response"]), @"");
}

/// The members that HAR 1.2 makes mandatory, with their types.
fn check(entry: &Value) {
    let at = |pointer: &str| {
        entry
            .pointer(pointer)
            .unwrap_or_else(|| panic!("{pointer} is missing in {entry:#}"))
    };
    for text in [
        "/startedDateTime",
        "/request/method",
        "/request/url",
        "/request/httpVersion",
        "/request/postData/mimeType",
        "/request/postData/text",
        "/response/statusText",
        "/response/httpVersion",
        "/response/redirectURL",
        "/response/content/mimeType",
        "/comment",
    ] {
        assert!(at(text).is_string(), "{text}: {}", at(text));
    }
    for number in [
        "/time",
        "/request/headersSize",
        "/request/bodySize",
        "/response/status",
        "/response/headersSize",
        "/response/bodySize",
        "/response/content/size",
        "/timings/send",
        "/timings/wait",
        "/timings/receive",
    ] {
        assert!(at(number).is_number(), "{number}: {}", at(number));
    }
    for list in [
        "/request/cookies",
        "/request/headers",
        "/request/queryString",
        "/response/cookies",
        "/response/headers",
    ] {
        assert!(at(list).is_array(), "{list}: {}", at(list));
    }
    assert!(at("/cache").is_object());
    let millis = |pointer: &str| at(pointer).as_f64().unwrap();
    let sum = millis("/timings/send") + millis("/timings/wait") + millis("/timings/receive");
    assert!((sum - millis("/time")).abs() < 0.001 && sum >= 0.0);
    assert!(at("/request/url").as_str().unwrap().starts_with("http://"));
    assert!(serde_json::from_str::<Value>(at("/request/postData/text").as_str().unwrap()).is_ok());
    assert!(at("/comment").as_str().unwrap().starts_with("call 01"));
}

#[test]
fn an_empty_archive_is_an_archive() {
    let har: Value = serde_json::from_str(&stdout(
        &crm().dir,
        &["export", "--har", "--tool", "nobody"],
    ))
    .unwrap();
    assert_eq!(har["log"]["entries"], serde_json::json!([]));
}
