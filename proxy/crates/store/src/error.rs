//! What can go wrong with the call log, each naming the file or the id it is about.

use std::io;
use std::path::{Path, PathBuf};

use uuid::Uuid;

/// A fault of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file or directory of the log could not be made, opened or changed.
    #[error("{action} {path}: {source}", path = path.display())]
    File {
        /// What was tried: `create`, `open`, `lock` ...
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// SQLite refused.
    #[error("{path}: {source}", path = path.display())]
    Sql {
        /// The database.
        path: PathBuf,
        /// Its answer.
        source: rusqlite::Error,
    },
    /// There is no call log in this directory.
    #[error("no call log in {path}: start `callbox up` or `callbox proxy` with this data directory, or name another with --data", path = .0.display())]
    NoLog(PathBuf),
    /// Another process writes here.
    #[error("{path} is in use by another callbox{pid}: stop it, or give this one its own data directory", path = path.display(), pid = holder(*pid))]
    InUse {
        /// The data directory.
        path: PathBuf,
        /// Who, when the lock file tells.
        pid: Option<u32>,
    },
    /// The file was written by a newer callbox.
    #[error("{path} has schema version {found}, this callbox knows up to {known}: use the newer callbox that wrote it, or another data directory", path = path.display())]
    NewerSchema {
        /// The database.
        path: PathBuf,
        /// `user_version` found.
        found: i64,
        /// Newest version this build knows.
        known: i64,
    },
    /// The key file does not hold a key.
    #[error("{path} holds {found} bytes where a key of 32 is expected: restore it from a backup, or move it away to start with a new key (principals and sessions then get new digests)", path = path.display())]
    BadKey {
        /// The key file.
        path: PathBuf,
        /// Its length.
        found: u64,
    },
    /// Not an id or the beginning of one.
    #[error("`{0}` is not an id: expected the first hex digits of a call's or session's UUID")]
    BadId(String),
    /// No call or session has this id.
    #[error("no call or session begins with `{0}`")]
    NoSuchId(String),
    /// Several do.
    #[error("`{prefix}` is the beginning of several ids: {list}", list = list(candidates))]
    AmbiguousId {
        /// As it was given.
        prefix: String,
        /// Some of them, oldest first.
        candidates: Vec<Uuid>,
    },
    /// Stored bytes that do not make sense: a damaged block.
    #[error("block {block} of the call log is damaged: {what}")]
    Damaged {
        /// Its number.
        block: i64,
        /// What did not fit.
        what: String,
    },
    /// The compressor refused.
    #[error("compression: {0}")]
    Compression(io::Error),
    /// The writer thread could not be started, or is gone.
    #[error("the callbox-writer thread {0}")]
    Thread(&'static str),
}

impl StoreError {
    pub(crate) fn file(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::File {
            action,
            path: path.to_path_buf(),
            source,
        }
    }

    pub(crate) fn sql(path: &Path, source: rusqlite::Error) -> Self {
        Self::Sql {
            path: path.to_path_buf(),
            source,
        }
    }
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" (pid {pid})"))
}

fn list(ids: &[Uuid]) -> String {
    ids.iter()
        .map(Uuid::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}
