//! One commit: batches in, one transaction. All or nothing; what is remembered between commits is undone with it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use rusqlite::{
    CachedStatement, Connection, OptionalExtension, Result, Transaction, TransactionBehavior,
    params,
};
use uuid::Uuid;

use super::sessions::Sessions;
use super::{Batch, Record};
use crate::block::{Kind, Packer};
use crate::codes::{Coded, failed};
use crate::db;
use crate::doc;
use crate::error::StoreError;
use crate::files;
use crate::ids::{id_from, key_of, moment_of, tail_of};
use crate::names::{self, Names, Role};
use crate::record::{Call, Catalogue, Message, Micros, Outcome};
use crate::segments::{Segments, Unlisted};

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

/// How far starts lie from the moments in their ids.
#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    early: Micros,
    late: Micros,
}

/// What a commit did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Done {
    /// Records stored.
    pub(crate) stored: u64,
    /// Records that cannot be stored.
    pub(crate) invalid: u64,
    /// Calls among `stored` that the log did not have.
    pub(crate) calls: u64,
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
        if (txn.spread.early, txn.spread.late) != (before.early, before.late) {
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

const INSERT: &str =
    "INSERT INTO call (id, tail, session, tool, outcome, \"end\", catalogue, shift, took, block)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (id) DO NOTHING";
const UPDATE: &str = "UPDATE call SET session = ?2, tool = ?3, outcome = ?4, \"end\" = ?5, catalogue = ?6, shift = ?7,
    took = ?8, block = ?9 WHERE id = ?1";

/// A commit under way.
struct Txn<'c, 'l> {
    change: &'c Transaction<'c>,
    insert: CachedStatement<'c>,
    path: &'l Path,
    level: i32,
    packer: &'l mut Packer,
    names: &'l mut Names,
    sessions: &'l mut Sessions,
    next_block: &'l mut i64,
    spread: &'l mut Spread,
    segments: &'l mut Segments,
    done: Done,
}

impl Txn<'_, '_> {
    fn put(&mut self, record: &Record, superseded: &HashSet<Uuid>) -> Result<(), StoreError> {
        let path = self.path;
        let stored = match record {
            Record::Call(call)
                if call.outcome == Outcome::Pending && superseded.contains(&call.id) =>
            {
                Ok(true)
            }
            Record::Call(call) => self.call(call),
            Record::Message(message) => self.message(message),
            Record::Catalogue(catalogue) => self.catalogue(catalogue),
        };
        if stored.map_err(|source| StoreError::sql(path, source))? {
            self.done.stored += 1;
        } else {
            self.done.invalid += 1;
        }
        if self.packer.is_full() {
            self.close_block()
        } else {
            Ok(())
        }
    }

    /// Stores a call; `false` when another call has its key.
    fn call(&mut self, call: &Call) -> Result<bool> {
        let (key, tail) = (key_of(call.id), tail_of(call.id));
        let session = self.sessions.number(self.change, &call.session)?;
        let duration = call.duration_us.map(u64::cast_signed);
        let ended_at = call.started_at.saturating_add(duration.unwrap_or(0));
        let tool = self.names.tool(self.change, &call.tool, ended_at)?;
        let catalogue = match call.catalogue.as_deref() {
            Some(hash) => Some(self.names.catalogue(self.change, hash, ended_at)?),
            None => None,
        };
        let shift = call.started_at - moment_of(key);
        let (outcome, end) = (call.outcome.code(), call.end.code());
        let mut new_failed = i64::from(failed(call.outcome));
        let mut concluded = call.outcome != Outcome::Pending;
        let block = *self.next_block;
        let values = params![
            key, tail, session, tool, outcome, end, catalogue, shift, duration, block
        ];
        let new = self.insert.execute(values)? == 1;
        let listing = Unlisted { key, tool, session };
        if new {
            self.segments.add(self.change, listing)?;
        } else {
            let (tail_before, outcome_before, block_before, tool_before, session_before): (
                i64,
                i64,
                i64,
                i64,
                i64,
            ) = self
                .change
                .prepare_cached(
                    "SELECT tail, outcome, block, tool, session FROM call WHERE id = ?1",
                )?
                .query_row([key], |row| row.try_into())?;
            if tail_before != tail {
                return Ok(false);
            }
            let values = params![
                key, session, tool, outcome, end, catalogue, shift, duration, block
            ];
            self.change.prepare_cached(UPDATE)?.execute(values)?;
            self.outdate(key, block_before)?;
            if (tool_before, session_before) != (tool, session) {
                self.segments.change(self.change, listing)?;
            }
            let before = Outcome::from_code(outcome_before).unwrap_or(Outcome::Abandoned);
            concluded &= before == Outcome::Pending;
            new_failed -= i64::from(failed(before));
        }
        let kind = if concluded {
            Kind::Concluded
        } else {
            Kind::Call
        };
        self.packer.add(kind, key, |out| doc::put_call(out, call));
        self.sessions.note(
            session,
            call.started_at..=ended_at,
            i64::from(new),
            new_failed,
            call.seq,
        );
        self.spread.early = self.spread.early.max(-shift);
        self.spread.late = self.spread.late.max(shift);
        self.done.calls += u64::from(new);
        Ok(true)
    }

    /// Remembers where an earlier document of a row is.
    fn outdate(&mut self, key: i64, block: i64) -> Result<()> {
        if block != *self.next_block {
            self.change
                .prepare_cached("INSERT OR IGNORE INTO stale (id, block) VALUES (?1, ?2)")?
                .execute([key, block])?;
        }
        Ok(())
    }

    /// Stores a message; `false` when another message has its key.
    fn message(&mut self, message: &Message) -> Result<bool> {
        let (key, tail) = (key_of(message.id), tail_of(message.id));
        let session = self.sessions.number(self.change, &message.session)?;
        let block = *self.next_block;
        let new = self
            .change
            .prepare_cached(
                "INSERT INTO message (id, tail, session, block) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (id) DO NOTHING",
            )?
            .execute([key, tail, session, block])?
            == 1;
        if !new {
            let (tail_before, block_before): (i64, i64) = self
                .change
                .prepare_cached("SELECT tail, block FROM message WHERE id = ?1")?
                .query_row([key], |row| Ok((row.get(0)?, row.get(1)?)))?;
            if tail_before != tail {
                return Ok(false);
            }
            self.change
                .prepare_cached("UPDATE message SET session = ?2, block = ?3 WHERE id = ?1")?
                .execute([key, session, block])?;
            self.outdate(key, block_before)?;
        }
        self.packer
            .add(Kind::Message, key, |out| doc::put_message(out, message));
        self.sessions
            .note(session, message.at..=message.at, 0, 0, 0);
        Ok(true)
    }

    fn catalogue(&mut self, catalogue: &Catalogue) -> Result<bool> {
        let hash = self
            .names
            .catalogue(self.change, &catalogue.hash, catalogue.seen_at)?;
        let known: bool = self
            .change
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM catalogue WHERE hash = ?1)")?
            .query_row([hash], |row| row.get(0))?;
        if !known {
            let data = zstd::bulk::compress(catalogue.tools.get().as_bytes(), self.level)
                .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
            let upstream = names::number(self.change, Role::Upstream, &catalogue.upstream, 0)?;
            self.change
                .prepare_cached(
                    "INSERT INTO catalogue (hash, upstream, seen_at, data) VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(params![hash, upstream, catalogue.seen_at, data])?;
        }
        Ok(true)
    }

    fn close_block(&mut self) -> Result<(), StoreError> {
        let packed = self.packer.pack()?;
        self.change
            .prepare_cached("INSERT INTO block (num, last, data) VALUES (?1, ?2, ?3)")
            .and_then(|mut insert| {
                insert.execute(params![*self.next_block, packed.last, packed.data])
            })
            .map_err(|source| StoreError::sql(self.path, source))?;
        *self.next_block += 1;
        Ok(())
    }

    fn abandon_some(&mut self, most: u32) -> Result<u64, StoreError> {
        let path = self.path;
        let failed = |source| StoreError::sql(path, source);
        let found = pending(self.change, most).map_err(failed)?;
        for (key, session, started_at) in &found {
            self.change
                .prepare_cached("UPDATE call SET outcome = ?2 WHERE id = ?1")
                .and_then(|mut update| update.execute(params![key, Outcome::Abandoned.code()]))
                .map_err(failed)?;
            self.packer.add(Kind::Mark, *key, |_| {});
            self.sessions
                .note(*session, *started_at..=*started_at, 0, 1, 0);
        }
        Ok(found.len() as u64)
    }
}

/// Calls that are open: key, session, start.
fn pending(conn: &Connection, most: u32) -> Result<Vec<(i64, i64, Micros)>> {
    conn.prepare_cached("SELECT id, session, shift FROM call WHERE outcome <> 0 AND outcome = ?1 ORDER BY id LIMIT ?2")?
        .query_map(params![Outcome::Pending.code(), most], |row| {
            let key = row.get(0)?;
            Ok((key, row.get(1)?, moment_of(key) + row.get::<_, i64>(2)?))
        })?
        .collect()
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
