use std::os::unix::fs::PermissionsExt;

use super::*;

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn a_key_is_made_once_for_its_owner_and_read_from_then_on() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("data");
    let made = Keys::load_or_create(&dir).unwrap();
    assert_eq!(made.bytes(), Keys::load_or_create(&dir).unwrap().bytes());
    assert_ne!(made.bytes(), &[0; 32]);
    assert_eq!(mode(&dir), 0o700);
    assert_eq!(mode(&dir.join(NAME)), 0o600);
    let files = fs::read_dir(&dir).unwrap().count();
    assert_eq!(files, 1, "nothing is left beside the key");
}

#[test]
fn a_key_that_others_can_read_is_closed_to_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(NAME);
    fs::write(&path, [7; 32]).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(Keys::load_or_create(dir.path()).unwrap().bytes(), &[7; 32]);
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn a_file_that_is_no_key_is_refused_with_its_length() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(NAME), b"short").unwrap();
    let error = Keys::load_or_create(dir.path()).unwrap_err().to_string();
    assert!(
        error.contains("holds 5 bytes where a key of 32 is expected"),
        "{error}"
    );
}

#[test]
fn processes_that_start_together_agree_on_a_key() {
    let dir = tempfile::tempdir().unwrap();
    let keys = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| Keys::load_or_create(dir.path()).unwrap()))
            .collect();
        threads
            .into_iter()
            .map(|thread| *thread.join().unwrap().bytes())
            .collect::<Vec<_>>()
    });
    assert!(keys.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn debug_prints_nothing_of_it() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(
        format!("{:?}", Keys::load_or_create(dir.path()).unwrap()),
        "Keys(…)"
    );
}
