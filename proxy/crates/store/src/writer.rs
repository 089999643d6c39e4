//! The one writer of a call log: a bounded queue in front of a thread that commits in groups.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use uuid::Uuid;

use crate::clock;
use crate::error::StoreError;
use crate::files::{self, WriteLock};
use crate::health::{DropReason, Health};
use crate::ids::Ids;
use crate::reader::Reader;
use crate::record::{Call, Catalogue, Message, Session};
use crate::retention::{Limits, Retention};

mod commit;
mod queue;
mod sessions;
mod wal;
mod worker;

use commit::Log;
use queue::{Group, Queue};
use wal::Wal;
use worker::Worker;

/// How a log is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Data directory; made when it is missing.
    pub dir: PathBuf,
    /// Whether a commit waits until the disk has it (`durability = "before-response"`), or survives a crash of the process only.
    pub synchronous_full: bool,
    /// Older calls go.
    pub max_age: Duration,
    /// Bytes of the file; the oldest calls go first. The write-ahead log adds up to 8 MiB while no reader blocks it.
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
            max_age: Duration::from_hours(720),
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

/// Handle of the writer thread. Dropping it without [`Writer::close`] ends the thread after what is queued, but nobody
/// waits for it.
#[derive(Debug)]
pub struct Writer {
    queue: Arc<Queue>,
    dir: PathBuf,
    newest: Option<Uuid>,
    thread: Mutex<Option<JoinHandle<Result<(), StoreError>>>>,
    /// For look-ups; opened when it is first needed, and again after an error.
    reader: Mutex<Option<Reader>>,
}

/// Opens the log of a data directory for writing, making or migrating it as needed; calls that an earlier run left open
/// become `abandoned`.
///
/// # Errors
/// When the directory or the file cannot be made, opened or migrated, or another process writes there.
pub fn open(options: Options) -> Result<Writer, StoreError> {
    let dir = options.dir;
    files::directory(&dir)?;
    let lock = WriteLock::take(&dir)?;
    let mut log = Log::open(&dir, options.synchronous_full, options.compression_level)?;
    let abandoned = log.abandon()?;
    if abandoned > 0 {
        tracing::info!(
            calls = abandoned,
            "calls left open by an earlier run were marked abandoned"
        );
    }
    let newest = log.newest()?;
    let queue = Arc::new(Queue::new(options.queue_records, options.queue_bytes));
    let limits = Limits {
        max_age: options.max_age,
        max_bytes: options.max_bytes,
    };
    let worker = Worker {
        queue: Arc::clone(&queue),
        log,
        lock,
        dir: dir.clone(),
        synchronous_full: options.synchronous_full,
        level: options.compression_level,
        wal: Wal::new(&dir),
        retention: Retention::new(limits),
        moved: false,
    };
    let thread = thread::Builder::new()
        .name("callbox-writer".to_owned())
        .spawn(move || {
            let _guard = AtPanic(Arc::clone(&worker.queue));
            worker.run()
        })
        .map_err(|_| StoreError::Thread("could not be started"))?;
    Ok(Writer {
        queue,
        dir,
        newest,
        thread: Mutex::new(Some(thread)),
        reader: Mutex::new(None),
    })
}

impl Writer {
    /// Queues a batch. Never blocks.
    ///
    /// # Errors
    /// The batch comes back untouched and uncounted when the queue has no room: try again later, or [`Writer::discard`] it.
    pub fn submit(&self, batch: Batch) -> Result<(), Batch> {
        self.queue.push(batch)
    }

    /// Counts a batch as offered and dropped (because the queue is full, or because of what the log is degraded by) and
    /// calls its `committed`.
    pub fn discard(&self, batch: Batch) {
        self.queue.discard(batch);
    }

    /// The session with this key and the number of its last call, from what is committed.
    pub fn find_session(&self, key: &[u8; 16]) -> Option<(Session, u32)> {
        let mut slot = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.is_none() {
            *slot = Reader::open(&self.dir).ok();
        }
        match slot.as_ref()?.session_by_key(key) {
            Ok(found) => found,
            Err(error) => {
                tracing::debug!(%error, "session not looked up");
                *slot = None;
                None
            }
        }
    }

    /// A generator of ids that come after all ids that the log had when it was opened. One is enough: two would give
    /// the same first halves.
    pub fn ids(&self) -> Ids {
        Ids::after(self.newest)
    }

    /// How recording is doing.
    pub fn health(&self) -> Health {
        self.queue.health()
    }

    /// New retention limits, from the next second on.
    pub fn retention(&self, max_age: Duration, max_bytes: u64) {
        self.queue.set_limits(Limits { max_age, max_bytes });
    }

    /// Commits all that is queued, folds the write-ahead log into the file and ends the thread. Figures can still be read
    /// afterwards; records are refused.
    ///
    /// # Errors
    /// When queued records could not be committed; they are counted as dropped.
    pub fn close(&self) -> Result<(), StoreError> {
        self.queue.close();
        // Its connection must not keep the write-ahead log alive.
        *self.reader.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        match thread.map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(StoreError::Thread("panicked")),
            None => Ok(()),
        }
    }
}

/// Should the thread panic, nobody waits for it, and the health says so.
struct AtPanic(Arc<Queue>);

impl Drop for AtPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.failed(
                &mut Group::default(),
                DropReason::Io,
                clock::now(),
                "the writer thread panicked",
            );
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue.close();
    }
}
