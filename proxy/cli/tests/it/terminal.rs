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
    assert_snapshot!(plain(120, &crm(), &["calls"]), @"");
    assert_snapshot!(plain(80, &both(), &["calls"]), @"");
}

#[test]
fn sessions_fit_the_terminal() {
    assert_snapshot!(plain(120, &both(), &["sessions"]), @"");
    assert_snapshot!(plain(80, &both(), &["sessions"]), @"");
}

#[test]
fn a_timeline_fits_the_terminal() {
    let session = id(START).to_string();
    assert_snapshot!(plain(120, &crm(), &["show", &session]), @"");
    assert_snapshot!(plain(80, &crm(), &["show", &session]), @"");
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
    assert_snapshot!(plain(100, &data, &["calls"]), @"");
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
