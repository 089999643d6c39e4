//! Retention: the oldest blocks and their rows go when they are too old or the log is too big, a little at a time.
//!
//! The unit is the block, since that is what takes room: a row goes with the block that holds its document.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, Result, TransactionBehavior, params};

use crate::clock;
use crate::db;
use crate::error::StoreError;
use crate::files;
use crate::ids::{key_at, moment_of};
use crate::record::Micros;
use crate::segments;

mod leftovers;

use leftovers::Leftovers;
pub(crate) use leftovers::in_use;

/// Blocks of one transaction: a few thousand rows, some milliseconds.
const BLOCKS: u32 = 8;
/// Moves some pages from the end of the file into gaps.
const SHRINK: &str = "PRAGMA incremental_vacuum(128)";
/// Free pages are kept for what comes next, up to this part of the file.
const FREE_PART: u64 = 4;
/// And in a small file up to this.
const FREE_BYTES: u64 = 4 << 20;

/// How long another process than the writer works at a time.
const TURN: Duration = Duration::from_millis(10);

/// What retention removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Calls.
    pub calls: u64,
    /// Messages.
    pub messages: u64,
    /// Sessions without anything left.
    pub sessions: u64,
    /// Bytes that the file shrank by. Room inside of the file is used again first.
    pub bytes: u64,
}

/// How long and how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) max_age: Duration,
    pub(crate) max_bytes: u64,
}

/// Retention at work.
#[derive(Debug)]
pub(crate) struct Retention {
    pub(crate) limits: Limits,
    behind: bool,
    leftovers: Leftovers,
}

/// Sizes in bytes.
#[derive(Clone, Copy, Debug)]
struct Room {
    file: u64,
    free: u64,
}

/// What there is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    Nothing,
    /// Remove blocks whose youngest record has a smaller key than this.
    Age(i64),
    /// Remove the oldest blocks, whatever their age.
    Size,
    /// Give free pages back.
    Shrink,
}

impl Retention {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            behind: false,
            leftovers: Leftovers::default(),
        }
    }

    /// Whether there is more to do at once.
    pub(crate) fn is_behind(&self) -> bool {
        self.behind
    }

    /// Finds out whether there is something to do.
    pub(crate) fn look(&mut self, conn: &Connection, now: Micros) {
        self.behind = self.need(conn, now).is_ok_and(|need| need != Need::Nothing);
    }

    /// Works for about `share`.
    pub(crate) fn work(&mut self, conn: &mut Connection, share: Duration) -> Result<Pruned> {
        let until = Instant::now() + share;
        let mut pruned = Pruned::default();
        // Whatever happens, the next attempt waits for the next look.
        self.behind = false;
        loop {
            let need = self.need(conn, clock::now())?;
            match need {
                Need::Nothing => return Ok(pruned),
                Need::Shrink => pruned.bytes += shrink(conn)?,
                Need::Age(_) | Need::Size => {
                    let horizon = remove(conn, need, &mut pruned)?;
                    pruned.sessions += self.leftovers.some(conn, horizon)?;
                }
            }
            if Instant::now() >= until {
                self.behind = true;
                return Ok(pruned);
            }
        }
    }

    /// Whether sessions or names went since this was last asked.
    pub(crate) fn removed_names(&mut self) -> bool {
        self.leftovers.removed()
    }

    fn need(&self, conn: &Connection, now: Micros) -> Result<Need> {
        let cutoff = key_at(now.saturating_sub(
            Micros::try_from(self.limits.max_age.as_micros()).unwrap_or(Micros::MAX),
        ));
        let oldest: Vec<i64> = conn
            .prepare_cached("SELECT last FROM block ORDER BY num LIMIT 2")?
            .query_map([], |row| row.get(0))?
            .collect::<Result<_>>()?;
        // An emptied block has 0: it is kept for its number.
        if oldest
            .first()
            .is_some_and(|last| *last < cutoff && (oldest.len() > 1 || *last != 0))
        {
            return Ok(Need::Age(cutoff));
        }
        let room = room(conn)?;
        if room.file - room.free > self.limits.max_bytes && oldest.len() > 1 {
            return Ok(Need::Size);
        }
        let most = (room.file / FREE_PART).max(FREE_BYTES);
        let shrink = room.free > most || room.file > self.limits.max_bytes;
        Ok(if shrink && room.free > 0 {
            Need::Shrink
        } else {
            Need::Nothing
        })
    }
}

fn room(conn: &Connection) -> Result<Room> {
    let ask = |pragma| -> Result<u64> {
        let value: i64 = conn
            .prepare_cached(pragma)?
            .query_row([], |row| row.get(0))?;
        Ok(value.unsigned_abs())
    };
    let page = ask("PRAGMA page_size")?;
    Ok(Room {
        file: page * ask("PRAGMA page_count")?,
        free: page * ask("PRAGMA freelist_count")?,
    })
}

/// Gives some free pages back. How many bytes the file is shorter; 0 when it has no free pages.
fn shrink(conn: &Connection) -> Result<u64> {
    let before = room(conn)?;
    if before.free > 0 {
        conn.execute_batch(SHRINK)?;
    }
    Ok(before.file.saturating_sub(room(conn)?.file))
}

/// Removes some of the oldest blocks with their rows. The newest block's row stays, emptied, since numbers are not used
/// twice. Gives back the moment up to which sessions may have become empty.
fn remove(conn: &mut Connection, need: Need, pruned: &mut Pruned) -> Result<Micros> {
    let cutoff = match need {
        Need::Age(cutoff) => cutoff,
        _ => i64::MAX,
    };
    let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let blocks: Vec<(i64, i64)> = change
        .prepare_cached("SELECT num, last FROM block ORDER BY num LIMIT ?1")?
        .query_map([BLOCKS], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_>>()?;
    let newest: i64 = change.query_row("SELECT max(num) FROM block", [], |row| row.get(0))?;
    let going: Vec<_> = blocks
        .into_iter()
        .take_while(|(num, last)| *last < cutoff && (cutoff < i64::MAX || *num < newest))
        .collect();
    let (Some((num, _)), Some(last)) = (going.last(), going.iter().map(|(_, last)| *last).max())
    else {
        return Ok(0);
    };
    let rows = |table: &str| change.prepare_cached(table)?.execute([last, *num]);
    pruned.calls += rows("DELETE FROM call WHERE id <= ?1 AND block <= ?2")? as u64;
    pruned.messages += rows("DELETE FROM message WHERE id <= ?1 AND block <= ?2")? as u64;
    rows("DELETE FROM stale WHERE id <= ?1 AND block <= ?2")?;
    segments::prune(&change, last)?;
    change
        .prepare_cached("DELETE FROM block WHERE num <= ?1 AND num < ?2")?
        .execute([*num, newest])?;
    if *num == newest {
        change
            .prepare_cached("UPDATE block SET last = 0, data = ?2 WHERE num = ?1")?
            .execute(params![newest, []])?;
    }
    change.commit()?;
    Ok(moment_of(last))
}

/// Applies these limits now, in short write transactions, beside a running writer.
///
/// # Errors
/// When there is no log, or it cannot be changed.
pub fn prune(dir: &Path, max_age: Duration, max_bytes: u64) -> Result<Pruned, StoreError> {
    let path = files::database(dir);
    let mut conn = db::open_to_change(dir)?;
    let failed = |source| StoreError::sql(&path, source);
    let mut retention = Retention::new(Limits { max_age, max_bytes });
    let mut total = Pruned::default();
    retention.behind = true;
    while retention.is_behind() {
        let pruned = retention.work(&mut conn, TURN).map_err(failed)?;
        total.calls += pruned.calls;
        total.messages += pruned.messages;
        total.sessions += pruned.sessions;
        total.bytes += pruned.bytes;
        db::give_way(TURN);
    }
    let horizon =
        clock::now().saturating_sub(Micros::try_from(max_age.as_micros()).unwrap_or(Micros::MAX));
    total.sessions += retention
        .leftovers
        .all(&mut conn, horizon)
        .map_err(failed)?;
    // The operator asked for room: the free pages go, too. What the writer needs meanwhile is not free.
    loop {
        let bytes = shrink(&conn).map_err(failed)?;
        total.bytes += bytes;
        if bytes == 0 {
            break;
        }
        db::give_way(TURN);
    }
    // So that the file itself gets smaller now. A reader may prevent it; then the writer does it later.
    if !crate::erase::empty_wal(&mut conn).map_err(failed)? {
        tracing::debug!("write-ahead log not emptied");
    }
    Ok(total)
}
