//! The dictionary: strings that many rows share, each under a number and a role.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Result, params};
use sha2::{Digest, Sha256};

use crate::record::Micros;

/// What a name is the name of. Equal texts in different roles are different names, so that each role can be cleaned up
/// or erased by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    Tool,
    Catalogue,
    Upstream,
    Principal,
    Tenant,
    Client,
}

impl Role {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Tool => 0,
            Self::Catalogue => 1,
            Self::Upstream => 2,
            Self::Principal => 3,
            Self::Tenant => 4,
            Self::Client => 5,
        }
    }
}

/// Names of calls that the writer met lately, with the hour of their last use as far as that is written down. Peers
/// choose them, so it is bounded.
#[derive(Debug, Default)]
pub(crate) struct Names {
    tools: HashMap<Box<str>, (i64, Micros)>,
    catalogues: HashMap<Box<str>, (i64, Micros)>,
}

/// Entries kept of each.
const MOST: usize = 4096;
/// Uses are written down once in this time.
const HOUR: Micros = 3_600_000_000;

impl Names {
    /// The number of a tool that is used now.
    pub(crate) fn tool(&mut self, conn: &Connection, text: &str, at: Micros) -> Result<i64> {
        used(&mut self.tools, conn, Role::Tool, text, at)
    }

    /// The number of a catalogue's hash that is used now.
    pub(crate) fn catalogue(&mut self, conn: &Connection, text: &str, at: Micros) -> Result<i64> {
        used(&mut self.catalogues, conn, Role::Catalogue, text, at)
    }

    /// Forgets what may no longer be true.
    pub(crate) fn clear(&mut self) {
        self.tools.clear();
        self.catalogues.clear();
    }
}

fn used(
    known: &mut HashMap<Box<str>, (i64, Micros)>,
    conn: &Connection,
    role: Role,
    text: &str,
    at: Micros,
) -> Result<i64> {
    if let Some((num, hour)) = known.get(text)
        && at < hour + HOUR
    {
        return Ok(*num);
    }
    let hour = at / HOUR * HOUR;
    let num = number(conn, role, text, hour)?;
    conn.prepare_cached("UPDATE name SET used_at = ?2 WHERE num = ?1 AND used_at < ?2")?
        .execute([num, hour])?;
    if known.len() >= MOST {
        known.clear();
    }
    known.insert(text.into(), (num, hour));
    Ok(num)
}

/// The number of a name; it gets one when it is new.
pub(crate) fn number(conn: &Connection, role: Role, text: &str, used_at: Micros) -> Result<i64> {
    if let Some(num) = find(conn, role, text)? {
        return Ok(num);
    }
    conn.prepare_cached("INSERT INTO name (role, hash, text, used_at) VALUES (?1, ?2, ?3, ?4)")?
        .insert(params![role.code(), hash(text), text, used_at])
}

/// The number of a name, when it has one.
pub(crate) fn find(conn: &Connection, role: Role, text: &str) -> Result<Option<i64>> {
    conn.prepare_cached("SELECT num FROM name WHERE hash = ?2 AND role = ?1 AND text = ?3")?
        .query_row(params![role.code(), hash(text), text], |row| row.get(0))
        .optional()
}

/// Names of a role that begin with `prefix`. Only for roles with few names: it reads them all.
pub(crate) fn begin_with(conn: &Connection, role: Role, prefix: &str) -> Result<Vec<i64>> {
    let mut query = conn.prepare_cached(
        "SELECT num FROM name WHERE role = ?1 AND substr(text, 1, length(?2)) = ?2",
    )?;
    query
        .query_map(params![role.code(), prefix], |row| row.get(0))?
        .collect()
}

/// The text of a name.
pub(crate) fn text(conn: &Connection, num: i64) -> Result<Option<String>> {
    conn.prepare_cached("SELECT text FROM name WHERE num = ?1")?
        .query_row([num], |row| row.get(0))
        .optional()
}

fn hash(text: &str) -> i64 {
    let digest = Sha256::digest(text.as_bytes());
    i64::from_be_bytes(std::array::from_fn(|at| digest[at]))
}
