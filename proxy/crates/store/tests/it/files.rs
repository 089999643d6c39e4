//! Who may read the files, and who may write them.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use callbox_store::{Reader, StoreError, open, prune};

use crate::sample::{NOON, call, calls, options, session, store};

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn everything_is_the_owners_alone() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("a/data");
    let writer = open(options(&dir)).unwrap();
    let mut ids = writer.ids();
    let session = session(1);
    assert!(store(&writer, calls([call(&mut ids, &session, 1, NOON)])));
    assert_eq!(mode(&dir), 0o700);
    let mut names = Vec::new();
    for file in dir.read_dir().unwrap() {
        let file = file.unwrap();
        assert_eq!(mode(&file.path()), 0o600, "{}", file.path().display());
        names.push(file.file_name().into_string().unwrap());
    }
    names.sort();
    assert_eq!(
        names,
        ["calls.db", "calls.db-shm", "calls.db-wal", "calls.lock"]
    );
    writer.close().unwrap();
}

#[test]
fn a_file_that_others_could_read_is_closed_to_them() {
    let dir = tempfile::tempdir().unwrap();
    open(options(dir.path())).unwrap().close().unwrap();
    let path = dir.path().join("calls.db");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let writer = open(options(dir.path())).unwrap();
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(&dir.path().join("calls.db-wal")), 0o600);
    writer.close().unwrap();
}

#[test]
fn a_second_writer_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let writer = open(options(dir.path())).unwrap();
    let error = open(options(dir.path())).unwrap_err();
    assert!(
        matches!(&error, StoreError::InUse { pid: Some(pid), .. } if *pid == std::process::id()),
        "{error:?}"
    );
    assert!(
        error
            .to_string()
            .contains(&format!("another callbox (pid {})", std::process::id())),
        "{error}"
    );
    writer.close().unwrap();
    open(options(dir.path())).unwrap().close().unwrap();
}

#[test]
fn where_there_is_no_log_the_answer_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let error = Reader::open(&dir.path().join("nowhere"))
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("no call log in ") && error.contains("--data"),
        "{error}"
    );
    let error = prune(dir.path(), std::time::Duration::ZERO, 0).unwrap_err();
    assert!(matches!(error, StoreError::NoLog(_)), "{error:?}");
    // Looking does not make one.
    assert_eq!(dir.path().read_dir().unwrap().count(), 0);
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = open(options(&file.join("data"))).unwrap_err().to_string();
    assert!(
        error.starts_with("create directory ") && error.contains("file/data"),
        "{error}"
    );
}

#[test]
fn handles_can_be_handed_to_other_threads() {
    fn send<T: Send>() {}
    fn sync<T: Sync>() {}
    send::<callbox_store::Writer>();
    sync::<callbox_store::Writer>();
    send::<Reader>();
    send::<callbox_store::Follower>();
    send::<callbox_store::Ids>();
}
