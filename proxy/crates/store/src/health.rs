//! How recording is doing: what was offered, stored, dropped and is still queued, and what is in the way.
//!
//! The figures come from one lock that is held for a few additions, so `offered = stored + dropped + queued` holds in
//! every snapshot.

use std::time::Duration;

use crate::record::Micros;

/// Why a record did not reach the log, and what a degraded log suffers from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// The writer was behind and its queue full.
    QueueFull,
    /// No room on the disk.
    DiskFull,
    /// File or file system cannot be written.
    ReadOnly,
    /// The disk failed.
    Io,
    /// Another process kept the write lock.
    Busy,
    /// The database is damaged.
    Corrupt,
    /// The record itself cannot be stored (an id that another record has).
    Invalid,
    /// It came after the log was closed.
    Closed,
}

impl DropReason {
    /// All of them, in the order of [`Health::dropped`].
    pub const ALL: [Self; 8] = [
        Self::QueueFull,
        Self::DiskFull,
        Self::ReadOnly,
        Self::Io,
        Self::Busy,
        Self::Corrupt,
        Self::Invalid,
        Self::Closed,
    ];

    /// Its place in [`DropReason::ALL`].
    pub(crate) fn at(self) -> usize {
        Self::ALL
            .iter()
            .position(|reason| *reason == self)
            .expect("ALL lists every reason (tested)")
    }

    /// As metrics and logs spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::DiskFull => "disk_full",
            Self::ReadOnly => "read_only",
            Self::Io => "io",
            Self::Busy => "busy",
            Self::Corrupt => "corrupt",
            Self::Invalid => "invalid",
            Self::Closed => "closed",
        }
    }
}

/// Whether records reach the disk.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum State {
    /// They do.
    #[default]
    Ok,
    /// They wait in the queue, and are dropped once it is full. It ends by itself when the reason goes away.
    Degraded {
        /// What is in the way.
        reason: DropReason,
        /// Since when.
        since: Micros,
        /// The last error in words.
        detail: String,
    },
}

/// A snapshot of the writer.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// Whether records reach the disk.
    pub state: State,
    /// Records handed to the writer, taken or not.
    pub offered: u64,
    /// Records committed (a call stored open and again concluded counts twice).
    pub stored: u64,
    /// Records dropped, by reason, in the order of [`DropReason::ALL`].
    pub dropped: [u64; DropReason::ALL.len()],
    /// Records that wait or are being committed.
    pub queued: u64,
    /// Their bytes, roughly.
    pub queued_bytes: u64,
    /// Calls in `stored`, each counted once.
    pub calls: u64,
    /// Transactions committed.
    pub commits: u64,
    /// Time spent in them.
    pub commit_time: Duration,
    /// Duration of the last one.
    pub last_commit: Duration,
    /// Longest one so far.
    pub longest_commit: Duration,
    /// Bytes of the write-ahead log on disk.
    pub wal_bytes: u64,
    /// Bytes of the database on disk, without the write-ahead log.
    pub db_bytes: u64,
    /// Calls removed by retention since the start.
    pub pruned_calls: u64,
    /// Messages removed by retention since the start.
    pub pruned_messages: u64,
}

impl Health {
    /// Records dropped for any reason.
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().sum()
    }

    /// Records dropped for this reason.
    pub fn dropped_for(&self, reason: DropReason) -> u64 {
        DropReason::ALL
            .iter()
            .zip(self.dropped)
            .filter(|(known, _)| **known == reason)
            .map(|(_, count)| count)
            .sum()
    }
}
