//! Sessions as the writer meets them: each gets a number and a row when it is first seen, and its counters move once
//! per commit.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Result, params};
use uuid::Uuid;

use crate::codes::Coded;
use crate::names::{self, Role};
use crate::record::{Micros, Session};

/// Sessions met lately.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    known: HashMap<Uuid, Known>,
    changes: HashMap<i64, Change>,
}

#[derive(Debug)]
struct Known {
    num: i64,
    /// As last written. Held, so that the same allocation always means the same content.
    session: Arc<Session>,
}

/// What a commit adds to a session.
#[derive(Clone, Copy, Debug)]
struct Change {
    first_at: Micros,
    last_at: Micros,
    calls: i64,
    failed: i64,
    seq: u32,
}

/// Sessions kept; others are looked up.
const MOST: usize = 8192;

impl Sessions {
    /// The number of a session, its row being up to date.
    pub(crate) fn number(&mut self, conn: &Connection, session: &Arc<Session>) -> Result<i64> {
        if let Some(known) = self.known.get_mut(&session.id) {
            if Arc::ptr_eq(&known.session, session) {
                return Ok(known.num);
            }
            if *known.session == **session {
                known.session = Arc::clone(session);
                return Ok(known.num);
            }
        }
        let num = write(conn, session)?;
        if self.known.len() >= MOST {
            self.known.clear();
        }
        self.known.insert(
            session.id,
            Known {
                num,
                session: Arc::clone(session),
            },
        );
        Ok(num)
    }

    /// Notes activity that belongs to the running commit.
    pub(crate) fn note(
        &mut self,
        num: i64,
        span: RangeInclusive<Micros>,
        calls: i64,
        failed: i64,
        seq: u32,
    ) {
        let (first_at, last_at) = span.into_inner();
        let change = self.changes.entry(num).or_insert(Change {
            first_at,
            last_at,
            calls: 0,
            failed: 0,
            seq,
        });
        change.first_at = change.first_at.min(first_at);
        change.last_at = change.last_at.max(last_at);
        change.calls += calls;
        change.failed += failed;
        change.seq = change.seq.max(seq);
    }

    /// Writes the counters, in the order of the table.
    pub(crate) fn flush(&mut self, conn: &Connection) -> Result<()> {
        let mut changes: Vec<_> = self.changes.drain().collect();
        changes.sort_unstable_by_key(|(num, _)| *num);
        let mut update = conn.prepare_cached(
            "UPDATE activity SET first_at = min(first_at, ?2), last_at = max(last_at, ?3), calls = calls + ?4,
                 failed = failed + ?5, seq = max(seq, ?6)
             WHERE session = ?1",
        )?;
        let mut insert = conn.prepare_cached(
            "INSERT INTO activity (session, first_at, last_at, calls, failed, seq) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        for (num, change) in changes {
            let values = params![
                num,
                change.first_at,
                change.last_at,
                change.calls,
                change.failed,
                change.seq
            ];
            if update.execute(values)? == 0 {
                insert.execute(values)?;
            }
        }
        Ok(())
    }

    /// Forgets everything, e.g. because the transaction did not happen or another process erased sessions.
    pub(crate) fn clear(&mut self) {
        self.known.clear();
        self.changes.clear();
    }
}

/// Writes a session that is new or has changed. What was known once is not forgotten when a record that was made before
/// it was known comes late.
fn write(conn: &Connection, session: &Session) -> Result<i64> {
    let client = session.client.as_ref();
    let name = |role, text: &str| names::number(conn, role, text, 0);
    let optional = |role, text: Option<&str>| text.map(|text| name(role, text)).transpose();
    let upstream = name(Role::Upstream, &session.upstream)?;
    let principal = optional(Role::Principal, session.principal.as_deref())?;
    let tenant = optional(Role::Tenant, session.tenant.as_deref())?;
    let client_name = optional(Role::Client, client.map(|client| client.name.as_str()))?;
    let client_version = client.and_then(|client| client.version.as_deref());
    let found: Option<i64> = conn
        .prepare_cached("SELECT num FROM session WHERE id = ?1")?
        .query_row([session.id.as_bytes()], |row| row.get(0))
        .optional()?;
    if let Some(num) = found {
        conn.prepare_cached(
            "UPDATE session SET principal = ifnull(?2, principal), tenant = ifnull(?3, tenant), asserted = ?4,
                 client = ifnull(?5, client), client_version = ifnull(?6, client_version),
                 protocol_version = ifnull(?7, protocol_version)
             WHERE num = ?1",
        )?
        .execute(params![
            num,
            principal,
            tenant,
            session.asserted,
            client_name,
            client_version,
            session.protocol_version
        ])?;
        return Ok(num);
    }
    conn.prepare_cached(
        "INSERT INTO session (id, key, source, upstream, principal, tenant, asserted, client, client_version,
             protocol_version, started_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?
    .insert(params![
        session.id.as_bytes(),
        session.key,
        session.source.code(),
        upstream,
        principal,
        tenant,
        session.asserted,
        client_name,
        client_version,
        session.protocol_version,
        session.started_at
    ])
}
