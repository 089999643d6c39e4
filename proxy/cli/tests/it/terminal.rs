//! What a person sees: the binary on a pseudo-terminal of a given width.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use insta::assert_snapshot;
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::fixture::{Data, START, crm, crm_records, id, of_call, trouble_records};
use crate::run::on;

/// All that appears on a terminal of `columns`, line ends as LF.
pub(crate) fn run(
    columns: u16,
    data: &Path,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> String {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let size = Winsize {
        ws_col: columns,
        ws_row: 24,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&ours, size).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let theirs: OwnedFd =
        rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    let mut command = on(data, arguments);
    command
        .env("TERM", "xterm-256color")
        .envs(environment.iter().copied());
    command.stdout(theirs.try_clone().unwrap()).stderr(theirs);
    let mut child = command.spawn().unwrap();
    // It keeps their end open, and with it our reading.
    drop(command);
    let mut shown = Vec::new();
    let mut ours = File::from(ours);
    let mut part = [0; 4096];
    loop {
        match ours.read(&mut part) {
            Ok(0) => break,
            Ok(read) => shown.extend_from_slice(&part[..read]),
            // How Linux says that the last process let go of the other end.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => {
                break;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => panic!("{error}"),
        }
    }
    child.wait().unwrap();
    String::from_utf8(shown).unwrap().replace("\r\n", "\n")
}

fn plain(columns: u16, data: &Data, arguments: &[&str]) -> String {
    run(columns, &data.dir, arguments, &[("NO_COLOR", "1")])
        .replace(&*data.dir.to_string_lossy(), "[DATA]")
}

fn both() -> Data {
    let mut records = crm_records();
    records.extend(trouble_records());
    Data::with(records)
}

#[test]
fn calls_fit_the_terminal() {
    assert_snapshot!(plain(120, &crm(), &["calls"]), @r#"
    2026-11-30  ID           SESSION   TOOL             OUTCOME      TOOK  ARGUMENTS
    14:03:07    01a22cc4-39  01a22cc4  search_contacts  ok          34 ms  query="Dana Kim"
    14:03:09    01a22cc4-43  01a22cc4  search_contacts  ok          34 ms  query="dana@northwind.example" limit=1.50
    14:03:12    01a22cc4-4d  01a22cc4  create_contact   ok          1.0 s  name="Dana Kim" company="Northwind"
    14:03:53    01a22cc4-e   01a22cc4  delete_contact   tool_error  4.8 s  [duplicate_response] id="c_151" -> The user decl…
    "#);
    assert_snapshot!(plain(80, &both(), &["calls"]), @r#"
    TIME            ID           TOOL        OUTCOME      TOOK  ARGUMENTS
    11-30 14:03:07  01a22cc4-39  search_co…  ok          34 ms  query="Dana Kim"
    11-30 14:03:09  01a22cc4-43  search_co…  ok          34 ms  query="dana@northwi…
    11-30 14:03:12  01a22cc4-4d  create_co…  ok          1.0 s  name="Dana Kim" com…
    11-30 14:03:53  01a22cc4-e   delete_co…  tool_error  4.8 s  [duplicate_response…
    12-01 14:03:06  01a231ea-91  refund      rpc_error   34 ms  invoice=1 -> -32602…
    12-01 14:03:07  01a231ea-95  refund      http_error  34 ms  invoice=2 -> <html>…
    12-01 14:03:08  01a231ea-99  refund      lost        34 ms  invoice=3
    12-01 14:03:09  01a231ea-9d  refund      aborted     34 ms  invoice=4
    12-01 14:03:10  01a231ea-a1  refund      unreadable  34 ms  invoice=5
    12-01 14:03:11  01a231ea-a5  refund      pending         -  invoice=6
    "#);
}

#[test]
fn sessions_fit_the_terminal() {
    assert_snapshot!(plain(120, &both(), &["sessions"]), @r"
    TIME            ID            LASTED  CALLS  FAILED  CLIENT              UPSTREAM  TENANT  PRINCIPAL
    11-30 14:03:05  01a22cc4  1 min 10 s      4       1  claude-desktop 2.1  crm       acme    h:9f2c41
    12-01 14:03:05  01a231ea       6.0 s      6       5  -                   billing   -       h:9f7700 asserted
    ");
    assert_snapshot!(plain(80, &both(), &["sessions"]), @r"
    TIME            ID        CALLS  FAILED  CLIENT    UPSTREAM  TENANT  PRINCIPAL
    11-30 14:03:05  01a22cc4      4       1  claude-…  crm       acme    h:9f2c41
    12-01 14:03:05  01a231ea      6       5  -         billing   -       h:9f7700 a…
    ");
}

#[test]
fn a_timeline_fits_the_terminal() {
    let session = id(START).to_string();
    assert_snapshot!(plain(120, &crm(), &["show", &session]), @r#"
    session 01a22cc4  claude-desktop 2.1 -> crm  2025-11-25  tenant acme  principal h:9f2c41
    01a22cc4-31a8-7000-8000-0000ca11b0c5  2026-11-30 14:03:05.000 UTC  lasted 1 min 10 s  source protocol
       14:03:05.001  -> initialize  claude-desktop 2.1, 2025-11-25 -> crm-server 1.4, 2025-11-25
       14:03:05.060  -> tools/list  2 tools
    1  14:03:07.120  search_contacts  query="Dana Kim"                           ok          34 ms  0 matches
    2  14:03:09.482  search_contacts  query="dana@northwind.example" limit=1.50  ok          34 ms  0 matches
    3  14:03:12.007  create_contact   name="Dana Kim" company="Northwind"        ok          1.0 s  {"id":"c_151"}  sampled
         <- progress ×2
       … 39.9 s
    4  14:03:53.000  delete_contact   id="c_151"                                 tool_error  4.8 s
         The user declined.
         Nothing was deleted; ask before you try again.
         <- elicitation/create  Delete Dana Kim? -> decline
         flags: duplicate_response
       … 10.1 s
       14:04:07.900  -> ping
       14:04:15.000  -> DELETE  200
    4 calls, 1 failed, 5.9 s in tools, 44.7 s between them
    hint: callbox show 01a22cc4 4 shows all of call 4
    "#);
    assert_snapshot!(plain(80, &crm(), &["show", &session]), @r#"
    session 01a22cc4  claude-desktop 2.1 -> crm  2025-11-25  tenant acme
    principal h:9f2c41
    01a22cc4-31a8-7000-8000-0000ca11b0c5  2026-11-30 14:03:05.000 UTC
    lasted 1 min 10 s  source protocol
       14:03:05.001  -> initialize  claude-desktop 2.1, 2025-11-25 -> crm-server 1.…
       14:03:05.060  -> tools/list  2 tools
    1  14:03:07.120  search_contacts  query="Dana Kim"           ok          34 ms
         = 0 matches
    2  14:03:09.482  search_contacts  query="dana@northwind.ex…  ok          34 ms
         = 0 matches
    3  14:03:12.007  create_contact   name="Dana Kim" company=…  ok          1.0 s
         = {"id":"c_151"}  sampled
         <- progress ×2
       … 39.9 s
    4  14:03:53.000  delete_contact   id="c_151"                 tool_error  4.8 s
         The user declined.
         Nothing was deleted; ask before you try again.
         <- elicitation/create  Delete Dana Kim? -> decline
         flags: duplicate_response
       … 10.1 s
       14:04:07.900  -> ping
       14:04:15.000  -> DELETE  200
    4 calls, 1 failed, 5.9 s in tools, 44.7 s between them
    hint: callbox show 01a22cc4 4 shows all of call 4
    "#);
}

#[test]
fn full_cuts_nothing() {
    let session = id(START).to_string();
    let shown = plain(80, &crm(), &["show", "--full", &session]);
    assert!(
        !shown.contains("…\n") && shown.contains("company=\"Northwind\""),
        "{shown}"
    );
}

#[test]
fn wide_characters_stay_in_their_columns() {
    let session = std::sync::Arc::new(crate::fixture::session(START));
    let calls = [
        ("検索_連絡先", r#"{"名前":"金ダナ"}"#),
        ("search", r#"{"name":"Dana"}"#),
    ]
    .into_iter()
    .zip(1_u32..)
    .map(|((tool, arguments), n)| {
        let call = crate::fixture::call(
            &session,
            n,
            START + i64::from(n) * 1000,
            tool,
            arguments,
            "東京都庁の一件",
        );
        of_call(call)
    });
    let data = Data::with(calls.collect());
    assert_snapshot!(plain(100, &data, &["calls"]), @r#"
    2026-11-30  ID             SESSION   TOOL         OUTCOME   TOOK  ARGUMENTS
    14:03:05    01a22cc4-31a9  01a22cc4  検索_連絡先  ok       34 ms  名前="金ダナ"
    14:03:05    01a22cc4-31aa  01a22cc4  search       ok       34 ms  name="Dana"
    "#);
}

#[test]
fn colours_repeat_what_words_say() {
    let data = crm();
    let coloured = run(100, &data.dir, &["calls", "--outcome", "tool_error"], &[]);
    assert!(
        coloured.contains("\u{1b}[31mtool_error\u{1b}[0m"),
        "{coloured:?}"
    );
    let plain = run(
        100,
        &data.dir,
        &["calls", "--outcome", "tool_error"],
        &[("NO_COLOR", "1")],
    );
    assert!(
        !plain.contains('\u{1b}') && plain.contains("tool_error"),
        "{plain:?}"
    );
    // Piped, there is none.
    assert!(!crate::run::stdout(&data.dir, &["calls"]).contains('\u{1b}'));
}
