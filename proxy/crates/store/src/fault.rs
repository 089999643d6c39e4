//! What an error of SQLite means for recording.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rusqlite::ErrorCode;

use crate::error::StoreError;
use crate::health::DropReason;

/// Why a commit failed. SQLite says "I/O error" for much that the operating system can tell apart, so in that case a
/// small file is written beside the log and the system asked.
pub(crate) fn reason(error: &StoreError, dir: &Path) -> DropReason {
    match error {
        StoreError::Sql { source, .. } => match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => DropReason::DiskFull,
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => DropReason::ReadOnly,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => DropReason::Busy,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => DropReason::Corrupt,
            _ => probe(dir),
        },
        StoreError::File { source, .. } => of_system(source),
        StoreError::InUse { .. } => DropReason::Busy,
        StoreError::NewerSchema { .. } => DropReason::ReadOnly,
        _ => DropReason::Io,
    }
}

fn of_system(error: &io::Error) -> DropReason {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => DropReason::DiskFull,
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => DropReason::ReadOnly,
        _ => DropReason::Io,
    }
}

fn probe(dir: &Path) -> DropReason {
    let path = dir.join("calls.probe");
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&path)
        .and_then(|mut file| file.write_all(&[0; 8192]).and_then(|()| file.sync_all()))
        .and_then(|()| fs::remove_file(&path));
    match written {
        Ok(()) => DropReason::Io,
        Err(error) => {
            // What could not be written whole is in nobody's way, and may not be removable either.
            drop(fs::remove_file(&path));
            of_system(&error)
        }
    }
}
