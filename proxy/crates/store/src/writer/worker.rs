//! What the writer thread does with its time: commit, retry, fold the write-ahead log back, remove what is too old.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::commit::{Done, Log};
use super::queue::{Group, Queue};
use super::wal::Wal;
use crate::clock;
use crate::error::StoreError;
use crate::fault;
use crate::files::{self, WriteLock};
use crate::health::{DropReason, State};
use crate::retention::Retention;

/// Commits are at least this far apart, unless somebody waits for one.
const INTERVAL: Duration = Duration::from_millis(10);
/// How often the thread looks around when nothing happens.
const IDLE: Duration = Duration::from_secs(1);
/// Delays between attempts while the log is degraded.
const FIRST_DELAY: Duration = Duration::from_millis(50);
const LAST_DELAY: Duration = Duration::from_secs(1);
/// While the log stays degraded, one line so often.
const SUMMARY: Duration = Duration::from_mins(1);
/// Attempts that remain when the log is being closed.
const LAST_ATTEMPTS: u32 = 3;
/// Time for retention between two commits.
const RETENTION_SHARE: Duration = Duration::from_millis(10);

/// The thread's own state.
pub(crate) struct Worker {
    pub(crate) queue: Arc<Queue>,
    pub(crate) log: Log,
    pub(crate) lock: WriteLock,
    pub(crate) dir: PathBuf,
    pub(crate) synchronous_full: bool,
    pub(crate) level: i32,
    pub(crate) wal: Wal,
    pub(crate) retention: Retention,
    /// Whether the log's file is known to be gone.
    pub(crate) moved: bool,
}

impl Worker {
    /// Runs until the handle is gone and the queue is empty.
    pub(crate) fn run(mut self) -> Result<(), StoreError> {
        let mut next_commit = Instant::now();
        let mut next_look = Instant::now();
        loop {
            // Retention that lags behind does not wait for the next look.
            let idle = if self.retention.is_behind() {
                Instant::now()
            } else {
                next_look
            };
            let woken = self.queue.next(next_commit, idle);
            if woken.group.records > 0 || !woken.group.batches.is_empty() {
                next_commit = Instant::now() + INTERVAL;
                self.store(woken.group)?;
                self.wal.after_commit(&self.log);
            } else if woken.closing {
                return self.finish();
            }
            if Instant::now() >= next_look {
                next_look = Instant::now() + IDLE;
                self.look_around();
            }
            if self.retention.is_behind() {
                self.retain();
            }
        }
    }

    /// Commits a group, however long it takes; gives up only when the log is being closed.
    fn store(&mut self, mut group: Group) -> Result<(), StoreError> {
        let mut delay = FIRST_DELAY;
        let mut attempts_left = LAST_ATTEMPTS;
        let mut next_summary = Instant::now() + SUMMARY;
        loop {
            let begun = Instant::now();
            let error = match self.log.commit(&group.batches) {
                Ok(done) => {
                    self.stored(group, done, begun.elapsed());
                    return Ok(());
                }
                Err(error) => error,
            };
            let mut reason = fault::reason(&error, &self.dir);
            let mut detail = error.to_string();
            if reason != DropReason::Busy
                && let Err(error) = self.reopen()
            {
                // What stands in the way of opening the log says more than what befell the open one.
                reason = fault::reason(&error, &self.dir);
                detail = error.to_string();
            }
            // One line per change of state, and a summary now and then (never one per attempt).
            if self.queue.failed(&mut group, reason, clock::now(), &detail) {
                tracing::error!(reason = reason.as_str(), error = %detail, "call log degraded: records wait, and are dropped when the queue is full");
            } else if Instant::now() >= next_summary {
                next_summary = Instant::now() + SUMMARY;
                let health = self.queue.health();
                tracing::error!(reason = reason.as_str(), error = %detail, queued = health.queued, dropped = health.dropped_total(), "call log still degraded");
            }
            if self.queue.pause(delay) {
                attempts_left -= 1;
                if attempts_left == 0 {
                    let lost = self.queue.give_up(group, reason);
                    tracing::error!(reason = reason.as_str(), error = %detail, lost, "call log closed without its last records");
                    return Err(error);
                }
                delay = FIRST_DELAY;
                std::thread::park_timeout(delay);
            } else {
                delay = (delay * 2).min(LAST_DELAY);
            }
        }
    }

    fn stored(&mut self, group: Group, done: Done, took: Duration) {
        if done.invalid > 0 {
            tracing::warn!(
                records = done.invalid,
                "dropped records whose ids others have"
            );
        }
        if let Some(State::Degraded { reason, since, .. }) = self.queue.committed(group, done, took)
        {
            let health = self.queue.health();
            let seconds = (clock::now() - since) / 1_000_000;
            tracing::warn!(
                reason = reason.as_str(),
                seconds,
                dropped = health.dropped_total(),
                "call log recovered"
            );
        }
    }

    /// A new connection: the old one may hold a file that is gone, or state that an error left behind.
    fn reopen(&mut self) -> Result<(), StoreError> {
        self.log = Log::open(&self.dir, self.synchronous_full, self.level)?;
        self.wal = Wal::new(&self.dir);
        self.moved = false;
        Ok(())
    }

    /// Once a second: sizes, the write-ahead log, limits, and whether the file is still where it was.
    fn look_around(&mut self) {
        if let Some(limits) = self.queue.take_limits() {
            self.retention.limits = limits;
        }
        let moved = self.log.moved();
        if moved && !std::mem::replace(&mut self.moved, moved) {
            tracing::error!(dir = %self.dir.display(), "call log was moved or removed while in use: a new one is begun");
        }
        if moved {
            if let Some(lock) = WriteLock::take_again(&self.dir) {
                self.lock = lock;
            }
            if let Err(error) = self.reopen() {
                tracing::debug!(%error, "call log not reopened");
            }
        }
        self.wal.when_idle(&mut self.log);
        let size = |path: PathBuf| path.metadata().map_or(0, |file| file.len());
        self.queue.sizes(
            size(files::database(&self.dir)),
            size(files::write_ahead_log(&self.dir)),
        );
        self.retention.look(&self.log.conn, clock::now());
    }

    fn retain(&mut self) {
        match self.retention.work(&mut self.log.conn, RETENTION_SHARE) {
            Ok(pruned) => self.queue.pruned(pruned),
            Err(error) => tracing::debug!(%error, "retention put off"),
        }
        if self.retention.removed_names() {
            self.log.forget();
        }
        self.wal.after_commit(&self.log);
    }

    fn finish(mut self) -> Result<(), StoreError> {
        let path = files::database(&self.dir);
        Wal::at_end(&mut self.log);
        let Self { log, lock, .. } = self;
        // The lock outlives the connection: a successor finds a closed file.
        let closed = log
            .conn
            .close()
            .map_err(|(_, source)| StoreError::sql(&path, source));
        drop(lock);
        closed
    }
}
