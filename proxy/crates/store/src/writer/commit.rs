//! One commit: batches in, one transaction. All or nothing; what is remembered between commits is undone with it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use rusqlite::{Connection, OptionalExtension, Result, TransactionBehavior};
use uuid::Uuid;

use super::put::{Done, INSERT, Spread, Txn};
use super::sessions::Sessions;
use super::{Batch, Record};
use crate::block::Packer;
use crate::db;
use crate::error::StoreError;
use crate::files;
use crate::ids::id_from;
use crate::names::Names;
use crate::record::Outcome;
use crate::segments::Segments;

/// The open log and what the writer remembers of it.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) conn: Connection,
    path: PathBuf,
    /// Device and inode.
    file: Option<(u64, u64)>,
    level: i32,
    packer: Packer,
    names: Names,
    sessions: Sessions,
    next_block: i64,
    /// Changes by other processes seen so far: `erase` and `prune` make what is remembered untrue.
    foreign: i64,
    spread: Spread,
    segments: Segments,
    /// Frames in the write-ahead log after the last commit.
    frames: Arc<AtomicI32>,
}

impl Log {
    /// Opens the log, making or migrating it. The caller holds the write lock.
    pub(crate) fn open(dir: &Path, synchronous_full: bool, level: i32) -> Result<Self, StoreError> {
        let path = files::database(dir);
        let mut conn = db::create(dir, synchronous_full)?;
        let failed = |source| StoreError::sql(&path, source);
        let frames = Arc::new(AtomicI32::new(0));
        let seen = Arc::clone(&frames);
        conn.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages| {
            seen.store(pages, Ordering::Relaxed);
            Ok(())
        }))
        .map_err(failed)?;
        let next_block = 1 + conn
            .query_row("SELECT ifnull(max(num), 0) FROM block", [], |row| {
                row.get::<_, i64>(0)
            })
            .map_err(failed)?;
        let spread = conn
            .query_row("SELECT early, late FROM bounds", [], |row| {
                Ok(Spread {
                    early: row.get(0)?,
                    late: row.get(1)?,
                })
            })
            .map_err(failed)?;
        let foreign = data_version(&conn).map_err(failed)?;
        Ok(Self {
            packer: Packer::new(level)?,
            conn,
            level,
            names: Names::default(),
            sessions: Sessions::default(),
            next_block,
            foreign,
            spread,
            segments: Segments::default(),
            frames,
            file: files::identity(&path),
            path,
        })
    }

    /// Frames in the write-ahead log after the last commit.
    pub(crate) fn frames(&self) -> i32 {
        self.frames.load(Ordering::Relaxed)
    }

    /// Whether the file at the log's path is another one than the one that is open, or there is none.
    pub(crate) fn moved(&self) -> bool {
        files::identity(&self.path) != self.file
    }

    /// Stores all of `batches`, or nothing.
    pub(crate) fn commit(&mut self, batches: &[Batch]) -> Result<Done, StoreError> {
        self.transact(|txn| {
            let superseded = superseded(batches);
            for record in batches.iter().flat_map(|batch| &batch.records) {
                txn.put(record, &superseded)?;
            }
            Ok(())
        })
    }

    /// The newest id in the log.
    pub(crate) fn newest(&self) -> Result<Option<Uuid>, StoreError> {
        let newest = |table: &str| -> Result<Option<(i64, i64)>> {
            self.conn
                .query_row(table, [], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()
        };
        let call = newest("SELECT id, tail FROM call ORDER BY id DESC LIMIT 1");
        let message = newest("SELECT id, tail FROM message ORDER BY id DESC LIMIT 1");
        let newest = call.and_then(|call| Ok(call.max(message?)));
        newest
            .map(|newest| newest.map(|(key, tail)| id_from(key, tail)))
            .map_err(|source| StoreError::sql(&self.path, source))
    }

    /// Marks calls that an earlier run left open: nobody will conclude them now.
    pub(crate) fn abandon(&mut self) -> Result<u64, StoreError> {
        let mut abandoned = 0;
        loop {
            let mut found = 0;
            self.transact(|txn| {
                found = txn.abandon_some(256)?;
                Ok(())
            })?;
            abandoned += found;
            if found == 0 {
                return Ok(abandoned);
            }
        }
    }

    fn transact(
        &mut self,
        work: impl FnOnce(&mut Txn<'_, '_>) -> Result<(), StoreError>,
    ) -> Result<Done, StoreError> {
        let (next_block, spread) = (self.next_block, self.spread);
        let result = self.try_transact(work);
        if result.is_err() {
            self.next_block = next_block;
            self.spread = spread;
            self.packer.forget();
            self.forget();
        }
        result
    }

    /// Forgets what is remembered of names and sessions.
    pub(crate) fn forget(&mut self) {
        self.names.clear();
        self.sessions.clear();
        self.segments.forget();
    }

    fn try_transact(
        &mut self,
        work: impl FnOnce(&mut Txn<'_, '_>) -> Result<(), StoreError>,
    ) -> Result<Done, StoreError> {
        let failed = |source| StoreError::sql(&self.path, source);
        let change = self
            .conn
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed)?;
        let foreign = data_version(&change).map_err(failed)?;
        if foreign != self.foreign {
            self.names.clear();
            self.sessions.clear();
            self.segments.forget();
        }
        let mut txn = Txn {
            insert: change.prepare_cached(INSERT).map_err(failed)?,
            change: &change,
            path: &self.path,
            level: self.level,
            packer: &mut self.packer,
            names: &mut self.names,
            sessions: &mut self.sessions,
            next_block: &mut self.next_block,
            spread: &mut self.spread,
            segments: &mut self.segments,
            done: Done::default(),
        };
        let before = *txn.spread;
        work(&mut txn)?;
        if !txn.packer.is_empty() {
            txn.close_block()?;
        }
        txn.sessions.flush(&change).map_err(failed)?;
        txn.segments.flush(&change).map_err(failed)?;
        if *txn.spread != before {
            change
                .prepare_cached("UPDATE bounds SET early = ?1, late = ?2")
                .and_then(|mut update| update.execute([txn.spread.early, txn.spread.late]))
                .map_err(failed)?;
        }
        let done = txn.done;
        drop(txn);
        change.commit().map_err(failed)?;
        self.foreign = foreign;
        Ok(done)
    }
}

/// Calls whose open state need not be written, since the same commit concludes them.
fn superseded(batches: &[Batch]) -> HashSet<Uuid> {
    let calls = || {
        batches
            .iter()
            .flat_map(|batch| &batch.records)
            .filter_map(|record| match record {
                Record::Call(call) => Some(call),
                _ => None,
            })
    };
    let open: HashSet<Uuid> = calls()
        .filter(|call| call.outcome == Outcome::Pending)
        .map(|call| call.id)
        .collect();
    if open.is_empty() {
        return open;
    }
    calls()
        .filter(|call| call.outcome != Outcome::Pending && open.contains(&call.id))
        .map(|call| call.id)
        .collect()
}

/// Counts changes by other connections. Inside of a transaction it is what this transaction sees.
fn data_version(conn: &Connection) -> Result<i64> {
    conn.prepare_cached("PRAGMA data_version")?
        .query_row([], |row| row.get(0))
}
