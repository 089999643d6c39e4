//! What a commit writes for each record: its row, its document, and what follows from them.

use std::collections::HashSet;
use std::path::Path;

use rusqlite::{CachedStatement, Connection, Result, Transaction, params};
use uuid::Uuid;

use super::Record;
use super::sessions::Sessions;
use crate::block::{Kind, Packer};
use crate::codes::{Coded, failed};
use crate::doc;
use crate::error::StoreError;
use crate::ids::{key_of, moment_of, tail_of};
use crate::names::{self, Names, Role};
use crate::record::{Call, Catalogue, Message, Micros, Outcome};
use crate::segments::{Segments, Unlisted};

/// How far starts lie from the moments in their ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spread {
    pub(crate) early: Micros,
    pub(crate) late: Micros,
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

pub(crate) const INSERT: &str =
    "INSERT INTO call (id, tail, session, tool, outcome, \"end\", catalogue, shift, took, block)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (id) DO NOTHING";
const UPDATE: &str = "UPDATE call SET session = ?2, tool = ?3, outcome = ?4, \"end\" = ?5, catalogue = ?6, shift = ?7,
    took = ?8, block = ?9 WHERE id = ?1";

/// A commit under way.
pub(crate) struct Txn<'c, 'l> {
    pub(crate) change: &'c Transaction<'c>,
    pub(crate) insert: CachedStatement<'c>,
    pub(crate) path: &'l Path,
    pub(crate) level: i32,
    pub(crate) packer: &'l mut Packer,
    pub(crate) names: &'l mut Names,
    pub(crate) sessions: &'l mut Sessions,
    pub(crate) next_block: &'l mut i64,
    pub(crate) spread: &'l mut Spread,
    pub(crate) segments: &'l mut Segments,
    pub(crate) done: Done,
}

impl Txn<'_, '_> {
    /// Stores a record, or counts it as impossible to store.
    pub(crate) fn put(
        &mut self,
        record: &Record,
        superseded: &HashSet<Uuid>,
    ) -> Result<(), StoreError> {
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

    /// Stores a call; `false` when another call has its key, or the key is none.
    fn call(&mut self, call: &Call) -> Result<bool> {
        let (key, tail) = (key_of(call.id), tail_of(call.id));
        if key <= 0 || key == i64::MAX {
            return Ok(false);
        }
        let session = self.sessions.number(self.change, &call.session)?;
        let duration = call
            .duration_us
            .map(|micros| i64::try_from(micros).unwrap_or(i64::MAX));
        let ended_at = call.started_at.saturating_add(duration.unwrap_or(0));
        let tool = self.names.tool(self.change, &call.tool, ended_at)?;
        let catalogue = match call.catalogue.as_deref() {
            Some(hash) => Some(self.names.catalogue(self.change, hash, ended_at)?),
            None => None,
        };
        let shift = call.started_at.saturating_sub(moment_of(key));
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
        self.spread.early = self.spread.early.max(shift.saturating_neg());
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

    /// Stores a message; `false` when another message has its key, or the key is none.
    fn message(&mut self, message: &Message) -> Result<bool> {
        let (key, tail) = (key_of(message.id), tail_of(message.id));
        if key <= 0 || key == i64::MAX {
            return Ok(false);
        }
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

    /// Writes the block that was filled.
    pub(crate) fn close_block(&mut self) -> Result<(), StoreError> {
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

    /// Marks some of the calls that are open. Gives back how many.
    pub(crate) fn abandon_some(&mut self, most: u32) -> Result<u64, StoreError> {
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
            Ok((key, row.get(1)?, moment_of(key).saturating_add(row.get(2)?)))
        })?
        .collect()
}
