//! Ids may be shortened to any unique beginning.

use std::sync::Arc;

use insta::assert_snapshot;

use crate::fixture::{Data, START, call, crm, id, of_call, session};
use crate::run::{command, json, stdout, told};

/// Every id that the table shows is enough for `show`, also of calls minted in the same millisecond.
#[test]
fn shown_ids_are_enough() {
    let session = Arc::new(session(START));
    let calls = (0..20).map(|n| {
        call(
            &session,
            n + 1,
            START + 500 + i64::from(n),
            "tool",
            "{}",
            "text",
        )
    });
    let data = Data::with(calls.map(of_call).collect());
    let table = stdout(&data.dir, &["calls"]);
    let shown: Vec<&str> = table
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().nth(1).unwrap())
        .collect();
    assert_eq!(shown.len(), 20);
    for (at, prefix) in (0..20).zip(shown) {
        let call = json(&data.dir, &["show", "--json", prefix]);
        assert_eq!(call[0]["id"], id(START + 500 + at).to_string(), "{prefix}");
        assert!(prefix.len() < 20, "{prefix}");
    }
}

/// A session and its calls share their first digits; together they mean the session, as in the design's example.
#[test]
fn the_beginning_of_a_session_and_its_calls_means_the_session() {
    let data = crm();
    let shown = json(&data.dir, &["show", "--json", &id(START).to_string()[..8]]);
    assert_eq!(shown[0]["schema"], "callbox.session/1");
}

#[test]
fn several_sessions_are_listed() {
    let records = [0, 30_000_000].into_iter().map(|later| {
        let session = Arc::new(session(START + later));
        of_call(call(
            &session,
            1,
            START + later + 5_000,
            "search_contacts",
            "{}",
            "text",
        ))
    });
    let data = Data::with(records.collect());
    assert_snapshot!(told(&data.dir, &["show", &id(START).to_string()[..8]]), @r"
    exit code: 2
    ----- stdout -----
    ----- stderr -----
    error: 01a22cc4 is the beginning of several ids

    hint: give more of it:
      01a22cc4-31a8  session  2026-11-30 14:03:05.000  claude-desktop 2.1
      01a22cc4-31ad  call     2026-11-30 14:03:05.005  search_contacts  ok
      01a22cc4-a6d8  session  2026-11-30 14:03:35.000  claude-desktop 2.1
      01a22cc4-a6dd  call     2026-11-30 14:03:35.005  search_contacts  ok
    ");
    assert_snapshot!(told(&data.dir, &["calls", "--session", &id(START).to_string()[..8]]), @r"
    exit code: 2
    ----- stdout -----
    ----- stderr -----
    error: 01a22cc4 is the beginning of several ids

    hint: give more of it:
      01a22cc4-31a8  session  2026-11-30 14:03:05.000  claude-desktop 2.1
      01a22cc4-a6d8  session  2026-11-30 14:03:35.000  claude-desktop 2.1
    ");
}

#[test]
fn hyphens_and_case_do_not_matter() {
    let data = crm();
    let id = id(START + 2_120_000);
    for spelling in [
        id.to_string(),
        id.simple().to_string(),
        id.to_string().to_uppercase(),
        id.to_string()[..21].to_owned(),
    ] {
        assert_eq!(
            json(&data.dir, &["show", "--json", &spelling])[0]["id"],
            id.to_string(),
            "{spelling}"
        );
    }
}

#[test]
fn no_such_id() {
    let data = crm();
    assert_snapshot!(told(&data.dir, &["show", "ffffffff"]), @r"
    exit code: 2
    ----- stdout -----
    ----- stderr -----
    error: no call or session begins with `ffffffff`

    hint: `callbox calls` and `callbox sessions` list what there is
    ");
    assert_snapshot!(told(&data.dir, &["show", "delete_contact"]), @r"
    exit code: 2
    ----- stdout -----
    ----- stderr -----
    error: `delete_contact` is not an id: expected the first hex digits of a call's or session's UUID

    hint: ids are in the first columns of `callbox calls` and `callbox sessions`
    ");
}

#[test]
fn no_log() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("nothing");
    for arguments in [
        &["calls"][..],
        &["sessions"],
        &["tail"],
        &["show", "0193"],
        &["export"],
        &["prune"],
        &["erase", "--session", "0193", "--yes"],
    ] {
        let text = told(&missing, arguments);
        assert!(
            text.starts_with("exit code: 2\n----- stdout -----\n----- stderr -----\nerror: "),
            "{arguments:?}: {text}"
        );
        assert!(
            text.contains("[DATA]") && text.contains("--data"),
            "{arguments:?}: {text}"
        );
        assert!(!missing.exists(), "{arguments:?} made a directory");
    }
    assert_snapshot!(told(&missing, &["calls"]), @r"
    exit code: 2
    ----- stdout -----
    ----- stderr -----
    error: no call log in [DATA]

    hint: name its directory with --data, or start recording there: callbox up --upstream ORIGIN --data DIR
    ");
    // Without --data it is the documented default, in the working directory.
    let output = command(&["calls"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("callbox-data"));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "plays the newer callbox")]
fn a_log_of_a_newer_callbox() {
    let data = crm();
    let file = std::fs::read_dir(&data.dir)
        .unwrap()
        .map(|file| file.unwrap().path())
        .find(|path| path.extension().is_some_and(|name| name == "db"))
        .unwrap();
    let database = rusqlite::Connection::open(file).unwrap();
    database.pragma_update(None, "user_version", 999).unwrap();
    drop(database);
    assert_snapshot!(told(&data.dir, &["calls"]), @r"
    exit code: 2
    ----- stdout -----
    ----- stderr -----
    error: [DATA]/calls.db has schema version 999, this callbox knows up to 1: use the newer callbox that wrote it, or another data directory
    ");
}
