//! Erasure on request: the records of a session or a principal leave every file of the log.

use std::path::Path;

use uuid::Uuid;

use crate::error::StoreError;

/// What is to be forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Erase {
    /// One session.
    Session(Uuid),
    /// All sessions of a principal, as shown (`h:…`).
    Principal(String),
}

/// What was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// Sessions removed.
    pub sessions: u64,
    /// Calls removed.
    pub calls: u64,
    /// Messages removed.
    pub messages: u64,
    /// Whether the write-ahead log was emptied too. `false`: a reader held on to it; its old pages go as soon as the
    /// reader lets go and the writer comes by. Erase again to be sure.
    pub wal_emptied: bool,
}

/// Erases, in short write transactions, beside a running writer.
pub fn erase(dir: &Path, what: &Erase) -> Result<Erased, StoreError> {
    let _ = (dir, what);
    Err(StoreError::Thread("cannot erase yet"))
}
