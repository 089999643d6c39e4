//! Erasure on request: the records of a session or a principal leave every file of the log.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension, Result, TransactionBehavior, params};
use uuid::Uuid;

use crate::block::{Packer, Unpacker};
use crate::db;
use crate::error::StoreError;
use crate::files;
use crate::names::{self, Role};
use crate::reader::Fault;
use crate::retention::in_use;
use crate::segments::{self, Owner, Segment};

/// Rows of one transaction, and blocks written anew in it: some milliseconds.
const PORTION: usize = 256;
const PORTION_ROWS: u32 = 256;
const BLOCKS: usize = 16;
/// Tighter than what the writer does, so that what remains fits where the block was.
const LEVEL: i32 = 3;
/// How long readers are waited for at the end.
const WAL_PATIENCE: Duration = Duration::from_secs(5);

/// What is to be forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Erase {
    /// One session.
    Session(Uuid),
    /// All sessions of a principal, as shown (`h:…`).
    Principal(String),
}

/// What was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// Sessions removed.
    pub sessions: u64,
    /// Calls removed.
    pub calls: u64,
    /// Messages removed.
    pub messages: u64,
    /// Whether the write-ahead log was emptied too. `false`: a reader held on to it; its old pages go as soon as the
    /// reader lets go and the writer comes by. Erase again to be sure.
    pub wal_emptied: bool,
}

/// Erases, in short write transactions, beside a running writer. Records of a session that is still active keep coming
/// after it.
///
/// # Errors
/// When there is no log, or it cannot be changed; what was erased until then stays erased.
pub fn erase(dir: &Path, what: &Erase) -> Result<Erased, StoreError> {
    let mut conn = db::open_to_change(dir)?;
    let path = files::database(dir);
    let failed = |source| StoreError::sql(&path, source);
    let (sessions, principal) = find(&conn, what).map_err(failed)?;
    let mut eraser = Eraser {
        path: &path,
        packer: Packer::new(LEVEL)?,
        unpacker: Unpacker::new()?,
        gone: Erased::default(),
    };
    for session in &sessions {
        eraser.listed(&mut conn, *session)?;
    }
    eraser.sweep(&mut conn, &sessions.iter().copied().collect())?;
    for session in &sessions {
        while !eraser.change(&mut conn, |eraser, change| eraser.rest(change, *session))? {
            eraser.listed(&mut conn, *session)?;
        }
    }
    if let Some(num) = principal {
        forget_principal(&mut conn, num).map_err(failed)?;
    }
    let mut gone = eraser.gone;
    gone.wal_emptied = empty_wal(&mut conn).map_err(failed)?;
    Ok(gone)
}

/// Sessions by number, and the principal's name when that goes too.
fn find(conn: &Connection, what: &Erase) -> Result<(Vec<i64>, Option<i64>)> {
    match what {
        Erase::Session(id) => {
            let sessions = conn
                .prepare("SELECT num FROM session WHERE id = ?1")?
                .query_map([id.as_bytes()], |row| row.get(0))?
                .collect::<Result<_>>()?;
            Ok((sessions, None))
        }
        Erase::Principal(principal) => {
            let Some(num) = names::find(conn, Role::Principal, principal)? else {
                return Ok((Vec::new(), None));
            };
            let sessions = conn
                .prepare("SELECT num FROM session WHERE principal = ?1")?
                .query_map([num], |row| row.get(0))?
                .collect::<Result<_>>()?;
            Ok((sessions, Some(num)))
        }
    }
}

struct Eraser<'p> {
    path: &'p Path,
    packer: Packer,
    unpacker: Unpacker,
    gone: Erased,
}

impl Eraser<'_> {
    /// The calls of a session that lists name, and the lists.
    fn listed(&mut self, conn: &mut Connection, session: i64) -> Result<(), StoreError> {
        let path = self.path;
        let failed = |source| StoreError::sql(path, source);
        for segment in segments::all(conn).map_err(failed)? {
            let keys = segments::calls(conn, segment, Owner::Session(session)).map_err(failed)?;
            let mut rest = keys.as_slice();
            while !rest.is_empty() {
                let done = self.change(conn, |eraser, change| {
                    eraser.calls(change, session, rest, Some(segment))
                })?;
                rest = &rest[done..];
            }
            if !keys.is_empty() {
                self.change(conn, |_, change| {
                    Ok(segments::forget_list(change, segment, session)?)
                })?;
            }
        }
        Ok(())
    }

    /// Looks at every call there is: what is erased must not depend on the lists being whole.
    fn sweep(&mut self, conn: &mut Connection, sessions: &HashSet<i64>) -> Result<(), StoreError> {
        let path = self.path;
        let failed = |source| StoreError::sql(path, source);
        let mut after = 0;
        loop {
            let page: Vec<(i64, i64)> = conn
                .prepare_cached(
                    "SELECT id, session FROM call WHERE id > ?1 ORDER BY id LIMIT 16384",
                )
                .and_then(|mut query| query.query_map([after], |row| row.try_into())?.collect())
                .map_err(failed)?;
            let Some((last, _)) = page.last() else {
                return Ok(());
            };
            after = *last;
            let found: Vec<_> = page
                .into_iter()
                .filter(|(_, session)| sessions.contains(session))
                .collect();
            for calls in found.chunks(BLOCKS) {
                self.change(conn, |eraser, change| {
                    for (key, session) in calls {
                        eraser.calls(change, *session, &[*key], None)?;
                    }
                    Ok(())
                })?;
            }
        }
    }

    /// A portion of what is in no list, and of the messages; when nothing is left, the session. `true` when it is gone.
    fn rest(&mut self, change: &Connection, session: i64) -> Result<bool, Fault> {
        let listed = segments::listed(change)?;
        let mut keys: Vec<i64> = change
            .prepare_cached("SELECT id FROM call WHERE id > ?1 AND session = ?2 LIMIT ?3")?
            .query_map(params![listed, session, PORTION_ROWS], |row| row.get(0))?
            .collect::<Result<_>>()?;
        keys.extend(segments::late(change)?);
        let before = self.gone.calls;
        let done = self.calls(change, session, &keys, None)?;
        let calls = done < keys.len() || self.gone.calls > before;
        let messages: Vec<(i64, i64)> = change
            .prepare_cached("SELECT id, block FROM message WHERE session = ?1 LIMIT ?2")?
            .query_map(params![session, PORTION_ROWS], |row| row.try_into())?
            .collect::<Result<_>>()?;
        self.messages(change, &messages)?;
        // A segment may have been written since the lists were gone through.
        if calls || !messages.is_empty() || segments::has_list(change, session)? {
            return Ok(false);
        }
        change
            .prepare_cached("DELETE FROM activity WHERE session = ?1")?
            .execute([session])?;
        self.gone.sessions += change
            .prepare_cached("DELETE FROM session WHERE num = ?1")?
            .execute([session])? as u64;
        Ok(true)
    }

    /// Calls with these keys, as far as they belong to the session, until enough blocks are concerned. Gives back how
    /// many keys are done with.
    fn calls(
        &mut self,
        change: &Connection,
        session: i64,
        keys: &[i64],
        segment: Option<Segment>,
    ) -> Result<usize, Fault> {
        let mut places = Places::new();
        let mut tools: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        let mut done = 0;
        for key in keys.iter().take(PORTION) {
            if places.len() >= BLOCKS {
                break;
            }
            done += 1;
            let found: Option<(i64, i64)> = change
                .prepare_cached("SELECT tool, block FROM call WHERE id = ?1 AND session = ?2")?
                .query_row([*key, session], |row| row.try_into())
                .optional()?;
            let Some((tool, block)) = found else { continue };
            tools.entry(tool).or_default().push(*key);
            places.entry(block).or_default().insert((true, *key));
            outdated(change, &mut places, true, *key)?;
            change
                .prepare_cached("DELETE FROM call WHERE id = ?1")?
                .execute([key])?;
            change
                .prepare_cached("DELETE FROM late WHERE id = ?1")?
                .execute([key])?;
            self.gone.calls += 1;
        }
        if let Some(segment) = segment {
            for (tool, gone) in &tools {
                segments::unlist_calls(change, segment, *tool, gone)?;
            }
        }
        self.rewrite(change, &places)?;
        Ok(done)
    }

    fn messages(&mut self, change: &Connection, messages: &[(i64, i64)]) -> Result<(), Fault> {
        let mut places = Places::new();
        for (key, block) in messages {
            if places.len() >= BLOCKS {
                break;
            }
            places.entry(*block).or_default().insert((false, *key));
            outdated(change, &mut places, false, *key)?;
            change
                .prepare_cached("DELETE FROM message WHERE id = ?1")?
                .execute([key])?;
            self.gone.messages += 1;
        }
        self.rewrite(change, &places)
    }

    /// Writes blocks anew without some of their documents, in place.
    fn rewrite(&mut self, change: &Connection, places: &Places) -> Result<(), Fault> {
        for (num, gone) in places {
            let data: Option<Vec<u8>> = change
                .prepare_cached("SELECT data FROM block WHERE num = ?1")?
                .query_row([num], |row| row.get(0))
                .optional()?;
            let Some(data) = data else { continue };
            match self.unpacker.unpack(*num, &data) {
                Ok(block) => {
                    for doc in block
                        .docs()
                        .filter(|doc| !gone.contains(&(doc.kind.of_call(), doc.key)))
                    {
                        self.packer.copy(&doc);
                    }
                }
                // Nobody can say what is in it, so all of it goes.
                Err(error) => tracing::warn!(%error, "erased a damaged block as a whole"),
            }
            let packed = self.packer.pack_to(data.len())?;
            change
                .prepare_cached("UPDATE block SET data = ?2 WHERE num = ?1")?
                .execute(params![num, packed.data])?;
        }
        Ok(())
    }

    fn change<T>(
        &mut self,
        conn: &mut Connection,
        work: impl FnOnce(&mut Self, &Connection) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let path = self.path;
        let failed = |source| StoreError::sql(path, source);
        let begun = Instant::now();
        let change = conn
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed)?;
        let result = work(self, &change).map_err(|fault| match fault {
            Fault::Sql(source) => failed(source),
            Fault::Other(error) => error,
        })?;
        change.commit().map_err(failed)?;
        db::give_way(begun.elapsed());
        Ok(result)
    }
}

/// What goes, by block: whether it is a call's document, and its key.
type Places = BTreeMap<i64, HashSet<(bool, i64)>>;

/// Blocks with earlier documents of a row.
fn outdated(
    change: &Connection,
    places: &mut Places,
    of_call: bool,
    key: i64,
) -> Result<(), Fault> {
    let blocks: Vec<i64> = change
        .prepare_cached("SELECT block FROM stale WHERE id = ?1")?
        .query_map([key], |row| row.get(0))?
        .collect::<Result<_>>()?;
    for block in blocks {
        places.entry(block).or_default().insert((of_call, key));
    }
    change
        .prepare_cached("DELETE FROM stale WHERE id = ?1")?
        .execute([key])?;
    Ok(())
}

/// The principal's digest itself, unless it has begun a new session meanwhile.
fn forget_principal(conn: &mut Connection, num: i64) -> Result<()> {
    let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if !in_use(&change, num, Role::Principal.code())? {
        change.execute("DELETE FROM name WHERE num = ?1", [num])?;
    }
    change.commit()
}

/// Empties the write-ahead log, where the erased pages still are. A reader may be in the way for a while.
pub(crate) fn empty_wal(conn: &mut Connection) -> Result<bool> {
    let until = Instant::now() + WAL_PATIENCE;
    loop {
        if db::empty_wal(conn, Duration::from_millis(20))? {
            return Ok(true);
        }
        if Instant::now() >= until {
            return Ok(false);
        }
        db::give_way(Duration::from_millis(50));
    }
}
