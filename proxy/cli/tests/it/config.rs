//! `config`.

use std::fs;

use insta::assert_snapshot;

use crate::run::{command, written};

#[test]
fn all_problems_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("callbox.toml");
    fs::write(
        &file,
        "[listen]\nadress = \"127.0.0.1:1\"\n\n[[upstream]]\nname = \"crm\"\nurl = \"ftp://crm\"\n",
    )
    .unwrap();
    let check = |arguments: &[&str]| {
        let output = command(&["config", "check", "--config"])
            .arg(&file)
            .args(arguments)
            .output()
            .unwrap();
        written(&output).replace(&*folder.path().to_string_lossy(), "[FOLDER]")
    };
    assert_snapshot!(check(&[]), @r#"
    exit code: 1
    ----- stdout -----
    error: [FOLDER]/callbox.toml:2:1: listen.adress: unknown key
      allowed: in listen: address, h2c, workers, max_connections, tls_timeout, request_head_timeout, drain_timeout, max_request_body, half_close, stamp, tls
      fix: did you mean `listen.address`?

    error: [FOLDER]/callbox.toml:6:7: upstream[0].url: the scheme is neither http nor https
      found: "ftp://crm"
      allowed: an origin such as "http://127.0.0.1:3001" or "https://mcp.example.com"

    2 errors, 0 warnings
    ----- stderr -----
    "#);
    assert_snapshot!(check(&["--json"]), @r#"
    exit code: 1
    ----- stdout -----
    {"schema":"callbox.problem/1","severity":"error","key":"listen.adress","origin":{"source":"file","path":"[FOLDER]/callbox.toml","line":2,"column":1},"message":"unknown key","found":null,"allowed":"in listen: address, h2c, workers, max_connections, tls_timeout, request_head_timeout, drain_timeout, max_request_body, half_close, stamp, tls","fix":"did you mean `listen.address`?"}
    {"schema":"callbox.problem/1","severity":"error","key":"upstream[0].url","origin":{"source":"file","path":"[FOLDER]/callbox.toml","line":6,"column":7},"message":"the scheme is neither http nor https","found":"\"ftp://crm\"","allowed":"an origin such as \"http://127.0.0.1:3001\" or \"https://mcp.example.com\"","fix":null}
    ----- stderr -----
    "#);
}

#[test]
fn a_sound_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("callbox.toml");
    fs::write(
        &file,
        "[[upstream]]\nname = \"crm\"\nurl = \"http://127.0.0.1:3001\"\n",
    )
    .unwrap();
    let output = command(&["config", "check", "--config"])
        .arg(&file)
        .output()
        .unwrap();
    assert_snapshot!(written(&output), @r"
    exit code: 0
    ----- stdout -----
    0 errors, 0 warnings
    ----- stderr -----
    ");
}

#[test]
fn a_missing_file() {
    let output = command(&["config", "check", "--config", "/nowhere/callbox.toml"])
        .output()
        .unwrap();
    assert_snapshot!(written(&output), @r"
    exit code: 2
    ----- stdout -----
    ----- stderr -----
    error: cannot read the configuration file /nowhere/callbox.toml
      caused by: No such file or directory (os error 2)
    ");
}

#[test]
fn settings_in_force_with_their_source() {
    let mut show = command(&["config", "show", "--data", "/tmp/elsewhere", "-v"]);
    let output = show
        .env("CALLBOX__LISTEN__ADDRESS", "127.0.0.1:7000")
        .output()
        .unwrap();
    let text = written(&output);
    for line in [
        "flag --data",
        "env CALLBOX__LISTEN__ADDRESS",
        "default",
        "flag --log-level",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn the_schema_is_json() {
    let output = command(&["config", "schema"]).output().unwrap();
    assert!(output.status.success());
    let schema: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(schema["title"], "callbox.toml");
}

/// A command that only reads what was recorded fails on a wrong file, too: it would look in the wrong place.
#[test]
fn a_wrong_file_stops_a_query() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("callbox.toml");
    fs::write(&file, "data = 1\n").unwrap();
    let output = command(&["calls", "--config"]).arg(&file).output().unwrap();
    let text = written(&output).replace(&*folder.path().to_string_lossy(), "[FOLDER]");
    assert_snapshot!(text, @r#"
    exit code: 2
    ----- stdout -----
    ----- stderr -----
    error: 1 problem in the configuration

    [FOLDER]/callbox.toml:1:8: data: expected a string, found a whole number
      found: 1
      allowed: a path, as a string
      fix: write it in quotes: "1"
    "#);
}
