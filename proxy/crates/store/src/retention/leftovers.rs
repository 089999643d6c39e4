//! What retention leaves behind when calls and messages are gone: sessions, names, catalogues without any use.
//!
//! Looked through in small portions, round and round.

use rusqlite::{Connection, Result, TransactionBehavior, params};

use crate::names::Role;
use crate::record::Micros;

/// Rows looked at in a portion.
const PORTION: u32 = 256;
/// A session stays for a while after its last activity is beyond the horizon: its last records may be stored later than
/// those of others.
const SESSION_GRACE: Micros = 3_600_000_000;
/// Uses of names are written down to the hour.
const NAME_GRACE: Micros = 2 * SESSION_GRACE;

/// Where the last portion ended.
#[derive(Debug, Default)]
pub(crate) struct Leftovers {
    session: i64,
    name: i64,
    horizon: Micros,
    removed: bool,
}

impl Leftovers {
    /// Looks through the next portion; what was last in use before `horizon` may go. Gives back how many sessions did.
    pub(crate) fn some(&mut self, conn: &mut Connection, horizon: Micros) -> Result<u64> {
        self.horizon = self.horizon.max(horizon);
        let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let sessions = self.sessions(&change)?;
        let names = self.names(&change)?;
        change.commit()?;
        self.removed |= sessions + names > 0;
        Ok(sessions as u64)
    }

    /// Looks through everything once.
    pub(crate) fn all(&mut self, conn: &mut Connection, horizon: Micros) -> Result<u64> {
        let mut sessions = 0;
        (self.session, self.name) = (0, 0);
        while {
            sessions += self.some(conn, horizon)?;
            self.session != 0
        } {}
        // Sessions are gone now, so their names are without use.
        self.name = 0;
        while {
            sessions += self.some(conn, horizon)?;
            self.name != 0
        } {}
        Ok(sessions)
    }

    /// Whether something went since this was last asked.
    pub(crate) fn removed(&mut self) -> bool {
        std::mem::take(&mut self.removed)
    }

    fn sessions(&mut self, conn: &Connection) -> Result<usize> {
        let portion: Vec<(i64, Micros)> = conn
            .prepare_cached("SELECT session, last_at FROM activity WHERE session > ?1 ORDER BY session LIMIT ?2")?
            .query_map(params![self.session, PORTION], |row| row.try_into())?
            .collect::<Result<_>>()?;
        let empty: bool = conn
            .prepare_cached(
                "SELECT NOT EXISTS (SELECT 1 FROM call) AND NOT EXISTS (SELECT 1 FROM message)",
            )?
            .query_row([], |row| row.get(0))?;
        let grace = if empty { 0 } else { SESSION_GRACE };
        let mut removed = 0;
        for (session, _) in portion
            .iter()
            .filter(|(_, last_at)| *last_at < self.horizon - grace)
        {
            conn.prepare_cached("DELETE FROM session WHERE num = ?1")?
                .execute([session])?;
            removed += conn
                .prepare_cached("DELETE FROM activity WHERE session = ?1")?
                .execute([session])?;
        }
        self.session = portion.last().map_or(0, |(session, _)| *session);
        Ok(removed)
    }

    fn names(&mut self, conn: &Connection) -> Result<usize> {
        let portion: Vec<(i64, u8, Micros)> = conn
            .prepare_cached(
                "SELECT num, role, used_at FROM name WHERE num > ?1 ORDER BY num LIMIT ?2",
            )?
            .query_map(params![self.name, PORTION], |row| row.try_into())?
            .collect::<Result<_>>()?;
        let mut removed = 0;
        for (num, role, used_at) in &portion {
            let by_time = *role == Role::Tool.code() || *role == Role::Catalogue.code();
            let unused = if by_time {
                *used_at < self.horizon - NAME_GRACE
            } else {
                !in_use(conn, *num, *role)?
            };
            if unused {
                conn.prepare_cached("DELETE FROM catalogue WHERE hash = ?1")?
                    .execute([num])?;
                removed += conn
                    .prepare_cached("DELETE FROM name WHERE num = ?1")?
                    .execute([num])?;
            }
        }
        self.name = portion.last().map_or(0, |(num, ..)| *num);
        Ok(removed)
    }
}

/// Whether a session speaks of a name; one look into an index. Upstreams, which the configuration names, always stay.
pub(crate) fn in_use(conn: &Connection, num: i64, role: u8) -> Result<bool> {
    let question = match role {
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
