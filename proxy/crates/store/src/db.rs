//! Connections: how the file is opened, by the writer, by others that change it, and by readers.

#![allow(
    clippy::disallowed_methods,
    reason = "this is the one module that opens databases"
)]

use std::path::Path;
use std::thread;
use std::time::Duration;

use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::error::StoreError;
use crate::files;

/// How often a change asks for the write lock that another process has, a millisecond apart. Ours hold it for some
/// milliseconds at a time, and pause between two times.
const WRITE_ATTEMPTS: i32 = 1000;
/// How long a query waits, e.g. for the recovery of the log after a crash.
const READ_PATIENCE: Duration = Duration::from_secs(5);
/// After a checkpoint the write-ahead log is cut back to this.
pub(crate) const WAL_LIMIT: u64 = 8 << 20;

/// Each brings the schema from the version before to the next.
const STEPS: [&str; 1] = [include_str!("schema/1.sql")];
/// The version they lead to.
const VERSION: u32 = 1;

/// Opens for writing, makes the file when there is none, and brings the schema up to date.
pub(crate) fn create(dir: &Path, synchronous_full: bool) -> Result<Connection, StoreError> {
    files::directory(dir)?;
    let path = files::database(dir);
    files::private_file(&path)?;
    let conn = writable(&path)?;
    conn.pragma_update(
        None,
        "synchronous",
        if synchronous_full { "FULL" } else { "NORMAL" },
    )
    .map_err(|source| StoreError::sql(&path, source))?;
    Ok(conn)
}

/// Opens a log that exists for a change by another process than its writer.
pub(crate) fn open_to_change(dir: &Path) -> Result<Connection, StoreError> {
    let path = files::database(dir);
    if !path.is_file() {
        return Err(StoreError::NoLog(dir.to_path_buf()));
    }
    writable(&path)
}

fn writable(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn =
        Connection::open_with_flags(path, flags).map_err(|source| StoreError::sql(path, source))?;
    prepare(&mut conn, path)?;
    Ok(conn)
}

/// SQLite's own busy timeout asks ever more rarely, and is overtaken by whoever comes again and again.
pub(crate) fn wait_for_lock(conn: &mut Connection) -> rusqlite::Result<()> {
    conn.busy_handler(Some(|attempts| {
        thread::park_timeout(Duration::from_millis(1));
        attempts < WRITE_ATTEMPTS
    }))
}

/// Between two changes by a process that is not the writer: the writer gets its turn.
pub(crate) fn give_way(last_change: Duration) {
    thread::park_timeout(last_change.max(Duration::from_millis(5)));
}

/// Tries to empty the write-ahead log. It holds up the writer while it waits for readers, so it waits for an instant.
pub(crate) fn empty_wal(conn: &mut Connection, wait: Duration) -> rusqlite::Result<bool> {
    conn.busy_timeout(wait)?;
    let emptied = conn.wal_checkpoint_v2(rusqlite::DEFAULT_NAME, CheckpointMode::TRUNCATE);
    wait_for_lock(conn)?;
    match emptied {
        Ok(_) => Ok(true),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(false),
        Err(error) => Err(error),
    }
}

fn prepare(conn: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let failed = |source| StoreError::sql(path, source);
    wait_for_lock(conn).map_err(failed)?;
    // Before the first table, or it has no effect: lets the file shrink page by page, without a VACUUM that stops the writer.
    conn.pragma_update(None, "auto_vacuum", "INCREMENTAL")
        .map_err(failed)?;
    conn.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))
        .map_err(failed)?;
    conn.pragma_update_and_check(None, "secure_delete", "ON", |_| Ok(()))
        .map_err(failed)?;
    conn.pragma_update_and_check(None, "journal_size_limit", WAL_LIMIT.cast_signed(), |_| {
        Ok(())
    })
    .map_err(failed)?;
    // Checkpoints are taken where they disturb least, not inside of a commit.
    conn.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(()))
        .map_err(failed)?;
    conn.pragma_update(None, "cache_size", -4096)
        .map_err(failed)?;
    conn.pragma_update(None, "temp_store", "MEMORY")
        .map_err(failed)?;
    conn.set_prepared_statement_cache_capacity(64);
    migrate(conn, path)
}

fn migrate(conn: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let failed = |source| StoreError::sql(path, source);
    if version(conn, path)? == STEPS.len() {
        return Ok(());
    }
    let change = conn
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(failed)?;
    // Again, now that nobody else can migrate.
    for step in &STEPS[version(&change, path)?..] {
        change.execute_batch(step).map_err(failed)?;
    }
    change
        .pragma_update(None, "user_version", VERSION)
        .map_err(failed)?;
    change.commit().map_err(failed)
}

/// The schema version; an error when it is newer than this build.
fn version(conn: &Connection, path: &Path) -> Result<usize, StoreError> {
    let found: i64 = conn
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(|source| StoreError::sql(path, source))?;
    match usize::try_from(found) {
        Ok(version) if version <= STEPS.len() => Ok(version),
        _ => Err(StoreError::NewerSchema {
            path: path.to_path_buf(),
            found,
            known: VERSION.into(),
        }),
    }
}

/// Opens for queries.
pub(crate) fn open_to_read(dir: &Path) -> Result<Connection, StoreError> {
    let path = files::database(dir);
    if !path.is_file() {
        return Err(StoreError::NoLog(dir.to_path_buf()));
    }
    let failed = |source| StoreError::sql(&path, source);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(&path, flags).map_err(failed)?;
    conn.busy_timeout(READ_PATIENCE).map_err(failed)?;
    conn.pragma_update(None, "cache_size", -4096)
        .map_err(failed)?;
    conn.set_prepared_statement_cache_capacity(64);
    if version(&conn, &path)? == 0 {
        return Err(StoreError::NoLog(dir.to_path_buf()));
    }
    Ok(conn)
}
