//! Queries, beside a running writer: read-only, in short transactions.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use uuid::Uuid;

use crate::db;
use crate::error::StoreError;
use crate::files;
use crate::filter::{CallFilter, Resolved, SessionFilter};
use crate::ids::{key_of, tail_of};
use crate::names::{self, Role};
use crate::record::{Call, Catalogue, Message, Session};
use crate::summary::SessionSummary;

mod blocks;
mod follow;
mod load;
mod plan;
mod resolve;
mod sessions;
mod walk;

pub use follow::Follower;

use blocks::Blocks;
use load::{CallRow, Loader, Met};
use plan::Plan;
use walk::{Direction, Walk};

/// Calls read in one transaction, and rows looked at for them.
const PAGE: usize = 256;
const ROWS: usize = 16_384;

/// A read-only view of a call log.
#[derive(Debug)]
pub struct Reader {
    conn: Connection,
    dir: PathBuf,
    path: PathBuf,
    blocks: RefCell<Blocks>,
    met: RefCell<Met>,
}

impl Reader {
    /// Opens the log of a data directory.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let conn = db::open_to_read(dir)?;
        Ok(Self {
            conn,
            dir: dir.to_path_buf(),
            path: files::database(dir),
            blocks: RefCell::new(Blocks::new()?),
            met: RefCell::default(),
        })
    }

    /// The last `limit` calls (none: all) that the filter asks for, newest last.
    pub fn calls(
        &self,
        filter: &CallFilter,
        limit: Option<usize>,
    ) -> Result<Vec<Call>, StoreError> {
        let mut calls = Vec::new();
        let Some(limit) = limit else {
            self.each_call(filter, &mut |call| {
                calls.push(call);
                ControlFlow::Continue(())
            })?;
            return Ok(calls);
        };
        if limit > 0 {
            self.walk(filter, Direction::Backward, limit.min(PAGE), &mut |call| {
                calls.push(call);
                if calls.len() < limit {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            })?;
        }
        calls.reverse();
        Ok(calls)
    }

    /// Every call that the filter asks for, oldest first, until `sink` breaks off; calls that begin meanwhile are not
    /// waited for. Paged: no transaction outlives a page.
    pub fn each_call(
        &self,
        filter: &CallFilter,
        sink: &mut dyn FnMut(Call) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.walk(filter, Direction::Forward, PAGE, sink)
    }

    fn walk(
        &self,
        filter: &CallFilter,
        direction: Direction,
        page_size: usize,
        sink: &mut dyn FnMut(Call) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let begun = self.read(|loader| {
            let Some(mut plan) = Plan::make(loader.conn, filter)? else {
                return Ok(None);
            };
            let walk = Walk::begin(loader.conn, plan.take_sources(), plan.range(), direction)?;
            Ok(Some((plan, walk)))
        })?;
        let Some((mut plan, mut walk)) = begun else {
            return Ok(());
        };
        loop {
            let (page, more) =
                self.read_on(|loader| page(loader, &mut plan, &mut walk, page_size))?;
            for call in page {
                if sink(call).is_break() {
                    return Ok(());
                }
            }
            if !more {
                return Ok(());
            }
        }
    }

    /// What an id, or the beginning of one, stands for.
    ///
    /// # Errors
    /// `BadId`, `NoSuchId`, `AmbiguousId`.
    pub fn resolve(&self, prefix: &str) -> Result<Resolved, StoreError> {
        let range =
            resolve::Range::parse(prefix).ok_or_else(|| StoreError::BadId(prefix.to_owned()))?;
        let mut found = self.read(|loader| range.search(loader.conn))?;
        match found.len() {
            0 => Err(StoreError::NoSuchId(prefix.to_owned())),
            1 => Ok(found.remove(0)),
            _ => {
                let ids = found.into_iter().map(|found| match found {
                    Resolved::Call(id) | Resolved::Session(id) => id,
                });
                Err(StoreError::AmbiguousId {
                    prefix: prefix.to_owned(),
                    candidates: ids.collect(),
                })
            }
        }
    }

    /// One call.
    pub fn call(&self, id: Uuid) -> Result<Option<Call>, StoreError> {
        self.read(|loader| match CallRow::find(loader.conn, key_of(id))? {
            Some(row) if row.tail == tail_of(id) => loader.call(&row).map(Some),
            _ => Ok(None),
        })
    }

    /// One session.
    pub fn session(&self, id: Uuid) -> Result<Option<SessionSummary>, StoreError> {
        self.read(|loader| sessions::by_id(loader.conn, id))
    }

    /// The last `limit` sessions (none: all) that the filter asks for, in the order they started.
    pub fn sessions(
        &self,
        filter: &SessionFilter,
        limit: Option<usize>,
    ) -> Result<Vec<SessionSummary>, StoreError> {
        self.read(|loader| sessions::list(loader.conn, filter, limit))
    }

    /// The messages of a session other than its calls, in order.
    pub fn messages(&self, session: Uuid) -> Result<Vec<Message>, StoreError> {
        self.read(|loader| loader.messages(session))
    }

    /// A tool list by its hash.
    pub fn catalogue(&self, hash: &str) -> Result<Option<Catalogue>, StoreError> {
        self.read(
            |loader| match names::find(loader.conn, Role::Catalogue, hash)? {
                Some(num) => load::catalogue(loader.conn, num, hash),
                None => Ok(None),
            },
        )
    }

    /// Follows the log from here on.
    pub fn follow(&self) -> Result<Follower, StoreError> {
        Follower::begin(Self::open(&self.dir)?)
    }

    /// The latest session with this key, and the number of its last call.
    pub(crate) fn session_by_key(
        &self,
        key: &[u8; 16],
    ) -> Result<Option<(Session, u32)>, StoreError> {
        self.read(|loader| sessions::by_key(loader.conn, key))
    }

    /// Runs `work` in one read transaction, as a query of its own.
    fn read<T>(&self, work: impl FnOnce(&Loader<'_>) -> Result<T, Fault>) -> Result<T, StoreError> {
        self.met.take();
        self.read_on(work)
    }

    /// Runs `work` in one read transaction, as the next part of a query. What was met in earlier parts is taken as it
    /// was: that a session has meanwhile told its client's name does not make them wrong.
    fn read_on<T>(
        &self,
        work: impl FnOnce(&Loader<'_>) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let failed = |source| StoreError::sql(&self.path, source);
        let snapshot = self.conn.unchecked_transaction().map_err(failed)?;
        let loader = Loader::new(&snapshot, &self.blocks, &self.met);
        work(&loader).map_err(|fault| match fault {
            Fault::Sql(source) => failed(source),
            Fault::Other(error) => error,
        })
    }
}

/// The next calls of a walk, and whether there may be more. It ends after many rows, too, so that no transaction is
/// long when few of them are asked for.
fn page(
    loader: &Loader<'_>,
    plan: &mut Plan,
    walk: &mut Walk,
    size: usize,
) -> Result<(Vec<Call>, bool), Fault> {
    let mut page = Vec::new();
    for _ in 0..ROWS {
        let Some(key) = walk.next(loader.conn)? else {
            return Ok((page, false));
        };
        if let Some(row) = CallRow::find(loader.conn, key)?
            && plan.admits(loader.conn, &row)?
        {
            page.push(loader.call(&row)?);
            if page.len() == size {
                break;
            }
        }
    }
    Ok((page, true))
}

/// Inside of a query: an error of SQLite does not know its file yet.
#[derive(Debug)]
pub(crate) enum Fault {
    Sql(rusqlite::Error),
    Other(StoreError),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Other(error)
    }
}

#[cfg(test)]
mod tests;
