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
    let output = on(&data.dir, &["export"])
        .arg("-o")
        .arg(&file)
        .output()
        .unwrap();
    let text = written(&output).replace(&*folder.path().to_string_lossy(), "[FOLDER]");
    assert_snapshot!(text, @r"
    exit code: 0
    ----- stdout -----
    ----- stderr -----
    wrote 4 calls to [FOLDER]/day.jsonl
    ");
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
    let text = told(&data.dir, &["export", "-o", &file.to_string_lossy()]);
    // The name beside the file is random.
    let (before, after) = text.split_once(".callbox-export-").unwrap();
    assert_snapshot!(format!("{before}.callbox-export-{}", &after[6..]), @r#"
    exit code: 2
    ----- stdout -----
    ----- stderr -----
    error: cannot write [DATA]/missing/day.jsonl
      caused by: No such file or directory (os error 2) at path "[DATA]/missing/.callbox-export-"
    "#);
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
    assert_snapshot!(format!("{:#}", entries[3]), @r#"
    {
      "_call": "01a22cc4-ed28-7000-8000-0000ca11b0c5",
      "_outcome": "tool_error",
      "_session": "01a22cc4-31a8-7000-8000-0000ca11b0c5",
      "_tool": "delete_contact",
      "cache": {},
      "comment": "call 01a22cc4-ed28-7000-8000-0000ca11b0c5",
      "request": {
        "bodySize": 180,
        "cookies": [],
        "headers": [
          {
            "name": "host",
            "value": "mcp.northwind.example"
          },
          {
            "name": "content-type",
            "value": "application/json"
          },
          {
            "name": "authorization",
            "value": "[redacted:authorization:9f2c1ab0]"
          }
        ],
        "headersSize": -1,
        "httpVersion": "HTTP/1.1",
        "method": "POST",
        "postData": {
          "comment": "made from the record of the call, after redaction",
          "mimeType": "application/json",
          "params": [],
          "text": "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"tools/call\",\"params\":{\"name\":\"delete_contact\",\"arguments\":{\"id\":\"c_151\"}}}"
        },
        "queryString": [],
        "url": "http://mcp.northwind.example/mcp"
      },
      "response": {
        "bodySize": 912,
        "content": {
          "comment": "made from the record of the call, after redaction",
          "mimeType": "application/json",
          "size": 154,
          "text": "{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"The user declined.\\nNothing was deleted; ask before you try again.\"}],\"isError\":true}}"
        },
        "cookies": [],
        "headers": [
          {
            "name": "content-type",
            "value": "application/json"
          },
          {
            "name": "x-request-id",
            "value": "req-4"
          }
        ],
        "headersSize": -1,
        "httpVersion": "HTTP/1.1",
        "redirectURL": "",
        "status": 200,
        "statusText": "OK"
      },
      "startedDateTime": "2026-11-30T14:03:53.000000Z",
      "time": 4800.0,
      "timings": {
        "receive": 4787.6,
        "send": 0.0,
        "wait": 12.4
      }
    }
    "#);
    assert_snapshot!(format!("{:#}", entries[5]["response"]), @r#"
    {
      "bodySize": 912,
      "content": {
        "comment": "made from the record of the call, after redaction",
        "mimeType": "application/json",
        "size": 35,
        "text": "<html>\n<h1>Bad Gateway</h1>\n</html>"
      },
      "cookies": [],
      "headers": [
        {
          "name": "content-type",
          "value": "application/json"
        },
        {
          "name": "x-request-id",
          "value": "req-2"
        }
      ],
      "headersSize": -1,
      "httpVersion": "HTTP/1.1",
      "redirectURL": "",
      "status": 502,
      "statusText": "Bad Gateway"
    }
    "#);
    assert_snapshot!(format!("{:#}", entries[9]["response"]), @r#"
    {
      "_error": "open",
      "bodySize": 912,
      "content": {
        "comment": "made from the record of the call, after redaction",
        "mimeType": "application/json",
        "size": 0
      },
      "cookies": [],
      "headers": [
        {
          "name": "content-type",
          "value": "application/json"
        },
        {
          "name": "x-request-id",
          "value": "req-6"
        }
      ],
      "headersSize": -1,
      "httpVersion": "HTTP/1.1",
      "redirectURL": "",
      "status": 0,
      "statusText": ""
    }
    "#);
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
