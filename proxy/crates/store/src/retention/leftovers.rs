//! What retention leaves behind when calls and messages are gone: sessions, names, catalogues without any use.
//!
//! Looked through in small portions, round and round.

use rusqlite::{Connection, Result, TransactionBehavior, params};

use crate::names::Role;
use crate::record::Micros;

/// Rows looked at in a portion.
const PORTION: u32 = 256;

/// Where the last portion ended.
#[derive(Debug, Default)]
pub(crate) struct Leftovers {
    session: i64,
    name: i64,
    horizon: Micros,
    removed: bool,
}

impl Leftovers {
    /// Looks through the next portion; a session may go when its last activity was before `horizon`. Gives back how
    /// many did.
    pub(crate) fn some(&mut self, conn: &mut Connection, horizon: Micros) -> Result<u64> {
        self.horizon = self.horizon.max(horizon);
        let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let sessions = self.sessions(&change)?;
        let names = self.names(&change)?;
        let catalogues =
            change.execute("DELETE FROM catalogue WHERE used_at < ?1", [self.horizon])?;
        change.commit()?;
        self.removed |= sessions + names + catalogues > 0;
        Ok(sessions as u64)
    }

    /// Looks through everything once.
    pub(crate) fn all(&mut self, conn: &mut Connection, horizon: Micros) -> Result<u64> {
        let mut sessions = 0;
        (self.session, self.name) = (0, 0);
        loop {
            sessions += self.some(conn, horizon)?;
            if self.session == 0 {
                break;
            }
        }
        self.name = 0;
        loop {
            sessions += self.some(conn, horizon)?;
            if self.name == 0 {
                return Ok(sessions);
            }
        }
    }

    /// Whether something went since this was last asked.
    pub(crate) fn removed(&mut self) -> bool {
        std::mem::take(&mut self.removed)
    }

    fn sessions(&mut self, conn: &Connection) -> Result<usize> {
        let portion: Vec<i64> = conn
            .prepare_cached(
                "SELECT session FROM activity WHERE session > ?1 ORDER BY session LIMIT ?2",
            )?
            .query_map(params![self.session, PORTION], |row| row.get(0))?
            .collect::<Result<_>>()?;
        let end = portion.last().copied().unwrap_or(i64::MAX);
        let mut removed = 0;
        let gone: Vec<i64> = conn
            .prepare_cached(
                "SELECT session FROM activity WHERE session > ?1 AND session <= ?2 AND last_at < ?3
                 AND NOT EXISTS (SELECT 1 FROM call WHERE call.session = activity.session)
                 AND NOT EXISTS (SELECT 1 FROM message WHERE message.session = activity.session)",
            )?
            .query_map(params![self.session, end, self.horizon], |row| row.get(0))?
            .collect::<Result<_>>()?;
        for session in gone {
            conn.prepare_cached("DELETE FROM session WHERE num = ?1")?
                .execute([session])?;
            removed += conn
                .prepare_cached("DELETE FROM activity WHERE session = ?1")?
                .execute([session])?;
        }
        self.session = if portion.is_empty() { 0 } else { end };
        Ok(removed)
    }

    fn names(&mut self, conn: &Connection) -> Result<usize> {
        let portion: Vec<(i64, u8)> = conn
            .prepare_cached("SELECT num, role FROM name WHERE num > ?1 ORDER BY num LIMIT ?2")?
            .query_map(params![self.name, PORTION], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?
            .collect::<Result<_>>()?;
        let mut removed = 0;
        for (num, role) in &portion {
            if !in_use(conn, *num, *role)? {
                removed += conn
                    .prepare_cached("DELETE FROM name WHERE num = ?1")?
                    .execute([num])?;
            }
        }
        self.name = portion.last().map_or(0, |(num, _)| *num);
        Ok(removed)
    }
}

/// Whether any row speaks of a name. Each question is one look into an index; upstreams, which the configuration
/// names, always stay.
pub(crate) fn in_use(conn: &Connection, num: i64, role: u8) -> Result<bool> {
    let question = match role {
        role if role == Role::Tool.code() => "SELECT EXISTS (SELECT 1 FROM call WHERE tool = ?1)",
        role if role == Role::Catalogue.code() => {
            "SELECT EXISTS (SELECT 1 FROM catalogue WHERE hash = ?1)"
        }
        role if role == Role::Principal.code() => {
            "SELECT EXISTS (SELECT 1 FROM session WHERE principal = ?1)"
        }
        role if role == Role::Tenant.code() => {
            "SELECT EXISTS (SELECT 1 FROM session WHERE tenant = ?1)"
        }
        role if role == Role::Client.code() => {
            "SELECT EXISTS (SELECT 1 FROM session WHERE client = ?1)"
        }
        _ => return Ok(true),
    };
    conn.prepare_cached(question)?
        .query_row([num], |row| row.get(0))
}
