//! The files of a data directory: who may read them, and who may write the log.
//!
//! Everything is made for its owner alone before SQLite touches it: SQLite gives its `-wal` and `-shm` files the
//! permissions of the database.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::error::StoreError;

/// The database in a data directory.
pub(crate) fn database(dir: &Path) -> PathBuf {
    dir.join("calls.db")
}

/// Its write-ahead log.
pub(crate) fn write_ahead_log(dir: &Path) -> PathBuf {
    dir.join("calls.db-wal")
}

/// Makes the data directory, with those above it, when it is missing. One that exists keeps its permissions: it may be
/// shared on purpose, and no file in it can be read by others.
pub(crate) fn directory(dir: &Path) -> Result<(), StoreError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|source| StoreError::file("create directory", dir, source))
}

/// Makes an empty database file for its owner alone, or tightens one that is there.
///
/// One that is there is not opened: closing it would take away the locks that SQLite holds on it elsewhere in this
/// process.
pub(crate) fn private_file(path: &Path) -> Result<(), StoreError> {
    match OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
    {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => owner_only(path),
        Err(source) => Err(StoreError::file("create", path, source)),
    }
}

/// Device and inode of a file; none when it cannot be seen.
pub(crate) fn identity(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().map(|file| (file.dev(), file.ino()))
}

/// Takes away what group and others may do.
pub(crate) fn owner_only(path: &Path) -> Result<(), StoreError> {
    let failed = |source| StoreError::file("set permissions of", path, source);
    let mode = path.metadata().map_err(failed)?.permissions().mode();
    if mode & 0o077 != 0 {
        fs::set_permissions(path, Permissions::from_mode(mode & 0o700)).map_err(failed)?;
    }
    Ok(())
}

/// The right to write to a data directory; ends with the process, however that ends.
#[derive(Debug)]
pub(crate) struct WriteLock {
    _file: File,
}

impl WriteLock {
    /// Takes the lock anew when the directory was moved away and another stands in its place.
    pub(crate) fn take_again(dir: &Path) -> Option<Self> {
        if directory(dir).is_err() || dir.join("calls.lock").exists() {
            return None;
        }
        Self::take(dir).ok()
    }

    /// Takes the lock and leaves the process id in the file, for the message that the next one gets.
    pub(crate) fn take(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join("calls.lock");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(|source| StoreError::file("open", &path, source))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let pid = file
                    .read_to_string(&mut text)
                    .ok()
                    .and_then(|_| text.trim().parse().ok());
                return Err(StoreError::InUse {
                    path: dir.to_path_buf(),
                    pid,
                });
            }
            Err(TryLockError::Error(source)) => {
                return Err(StoreError::file("lock", &path, source));
            }
        }
        let written = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        written.map_err(|source| StoreError::file("write", &path, source))?;
        Ok(Self { _file: file })
    }
}
