//! The one writer of a call log: a bounded queue in front of a thread that commits in groups.

use std::path::PathBuf;
use std::time::Duration;

use crate::error::StoreError;
use crate::health::{DropReason, Health};
use crate::ids::Ids;
use crate::record::{Call, Catalogue, Message, Session};

/// How a log is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Data directory; made when it is missing.
    pub dir: PathBuf,
    /// Whether a commit waits until the disk has it (`durability = "before-response"`), or survives a crash of the process only.
    pub synchronous_full: bool,
    /// Older calls go.
    pub max_age: Duration,
    /// Bytes on disk; the oldest calls go first.
    pub max_bytes: u64,
    /// Records that may wait.
    pub queue_records: usize,
    /// Bytes that may wait.
    pub queue_bytes: usize,
    /// zstd level of the payloads.
    pub compression_level: i32,
}

impl Options {
    /// The defaults of the configuration, in this data directory.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            synchronous_full: false,
            max_age: Duration::from_secs(30 * 24 * 3600),
            max_bytes: 10 << 30,
            queue_records: 65_536,
            queue_bytes: 64 << 20,
            compression_level: 1,
        }
    }
}

/// Something to store.
#[derive(Debug)]
pub enum Record {
    /// A call. Sent again with the same id it replaces the earlier state (open, then concluded).
    Call(Box<Call>),
    /// Another message of a session.
    Message(Box<Message>),
    /// A tool list; one that is known already costs nothing.
    Catalogue(Box<Catalogue>),
}

/// Records that are committed together or not at all.
#[derive(Default)]
pub struct Batch {
    /// What to store. Ids come from [`Writer::ids`], or at least are unique by their first eight bytes.
    pub records: Vec<Record>,
    /// Called after the commit, or when waiting for it has become pointless: the records were dropped, or the log is
    /// degraded. The thread that calls is the writer's: they must be quick. A batch that has some is committed at once.
    pub committed: Vec<Box<dyn FnOnce() + Send>>,
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch")
            .field("records", &self.records.len())
            .field("committed", &self.committed.len())
            .finish()
    }
}

/// Handle of the writer thread. Dropping it without [`Writer::close`] still commits what is queued.
#[derive(Debug)]
pub struct Writer {}

/// Opens the log of a data directory for writing, making or migrating it as needed; calls that an earlier run left open
/// become `abandoned`.
///
/// # Errors
/// When the directory or the file cannot be made, opened or migrated, or another process writes there.
pub fn open(_options: Options) -> Result<Writer, StoreError> {
    Err(StoreError::Thread("is not built yet"))
}

impl Writer {
    /// Queues a batch. Never blocks.
    ///
    /// # Errors
    /// The batch comes back untouched and uncounted when the queue has no room: try again later, or [`Writer::discard`] it.
    pub fn submit(&self, batch: Batch) -> Result<(), Batch> {
        Err(batch)
    }

    /// Counts a batch as offered and dropped (because the queue is full, or because of what the log is degraded by) and
    /// calls its `committed`.
    pub fn discard(&self, batch: Batch) {
        batch.committed.into_iter().for_each(|done| done());
    }

    /// As [`Writer::discard`], for a reason that the caller knows.
    pub fn discard_because(&self, batch: Batch, reason: DropReason) {
        let _ = reason;
        self.discard(batch);
    }

    /// The session with this key and the number of its last call, from what is committed.
    pub fn find_session(&self, key: &[u8; 16]) -> Option<(Session, u32)> {
        let _ = key;
        None
    }

    /// A generator of ids that come after all ids in the log.
    pub fn ids(&self) -> Ids {
        Ids::after(None)
    }

    /// How recording is doing.
    pub fn health(&self) -> Health {
        Health::default()
    }

    /// New retention limits, from now on.
    pub fn retention(&self, max_age: Duration, max_bytes: u64) {
        let _ = (max_age, max_bytes);
    }

    /// Commits all that is queued, folds the write-ahead log into the file and ends the thread.
    ///
    /// # Errors
    /// When queued records could not be committed; they are counted as dropped.
    pub fn close(self) -> Result<(), StoreError> {
        Ok(())
    }
}
