//! The write-ahead log: folded back into the file often and in small portions, never waiting for a reader.
//!
//! A reader that holds a snapshot keeps the log from beginning anew, so it grows; once the reader lets go, the next
//! checkpoint catches up and the next commit cuts the file back (`journal_size_limit`). When no commit comes, the idle
//! look does it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rusqlite::wal::CheckpointMode;

use super::commit::Log;
use crate::db::{self, WAL_LIMIT};
use crate::files;

/// A checkpoint after so many frames: often enough to stay small, rarely enough that a page that changes with every
/// commit is copied once for many of them.
const STEP: i32 = 1000;
/// While a reader is in the way, no oftener than this: each attempt looks through all frames.
const PATIENCE: Duration = Duration::from_millis(500);

/// When to take the next checkpoint.
#[derive(Debug)]
pub(crate) struct Wal {
    path: PathBuf,
    /// Frames in the log, and of those in the file, after the last checkpoint.
    frames: i32,
    folded: i32,
    last: Instant,
}

impl Wal {
    pub(crate) fn new(dir: &Path) -> Self {
        Self {
            path: files::write_ahead_log(dir),
            frames: 0,
            folded: 0,
            last: Instant::now(),
        }
    }

    /// After each commit.
    pub(crate) fn after_commit(&mut self, log: &Log) {
        let frames = log.frames();
        if frames < self.frames {
            // The log began anew.
            (self.frames, self.folded) = (0, 0);
        }
        let blocked = self.folded < self.frames;
        if frames - self.frames >= STEP && !(blocked && self.last.elapsed() < PATIENCE) {
            self.fold(&log.conn);
        }
    }

    /// Once in a while: what is left, and a log file that a reader made too long.
    pub(crate) fn when_idle(&mut self, log: &mut Log) {
        if log.frames() != self.folded {
            self.fold(&log.conn);
        }
        let too_long = self
            .path
            .metadata()
            .is_ok_and(|file| file.len() > WAL_LIMIT);
        if too_long && self.folded == self.frames {
            Self::empty(&mut log.conn);
        }
    }

    /// Before the connection is closed.
    pub(crate) fn at_end(log: &mut Log) {
        Self::empty(&mut log.conn);
    }

    fn fold(&mut self, conn: &Connection) {
        self.last = Instant::now();
        match conn.wal_checkpoint_v2(rusqlite::DEFAULT_NAME, CheckpointMode::PASSIVE) {
            Ok((frames, folded)) if frames >= 0 => (self.frames, self.folded) = (frames, folded),
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "checkpoint put off"),
        }
    }

    /// Truncates the log file if no reader needs it; does not wait for any.
    fn empty(conn: &mut Connection) {
        if let Err(error) = db::empty_wal(conn, Duration::ZERO) {
            tracing::debug!(%error, "write-ahead log not emptied");
        }
    }
}
