//! The dictionary: strings that many rows share, each under a number and a role.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Result, params};
use sha2::{Digest, Sha256};

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

/// Names that the writer met lately. Peers choose some of them, so it is bounded.
#[derive(Debug, Default)]
pub(crate) struct Names {
    tools: HashMap<Box<str>, i64>,
    others: HashMap<(Role, Box<str>), i64>,
}

/// Entries kept.
const MOST: usize = 4096;

impl Names {
    /// The number of a name; it gets one when it is new.
    pub(crate) fn number(&mut self, conn: &Connection, role: Role, text: &str) -> Result<i64> {
        // Tools are looked up with every call: without a copy of the text.
        if role == Role::Tool {
            if let Some(num) = self.tools.get(text) {
                return Ok(*num);
            }
            let num = find_or_insert(conn, role, text)?;
            bounded(&mut self.tools).insert(text.into(), num);
            return Ok(num);
        }
        let key = (role, Box::from(text));
        if let Some(num) = self.others.get(&key) {
            return Ok(*num);
        }
        let num = find_or_insert(conn, role, text)?;
        bounded(&mut self.others).insert(key, num);
        Ok(num)
    }

    /// The number of a name that may be absent.
    pub(crate) fn optional(
        &mut self,
        conn: &Connection,
        role: Role,
        text: Option<&str>,
    ) -> Result<Option<i64>> {
        text.map(|text| self.number(conn, role, text)).transpose()
    }

    /// Forgets what may no longer be true.
    pub(crate) fn clear(&mut self) {
        self.tools.clear();
        self.others.clear();
    }
}

fn bounded<K, V>(map: &mut HashMap<K, V>) -> &mut HashMap<K, V> {
    if map.len() >= MOST {
        map.clear();
    }
    map
}

fn find_or_insert(conn: &Connection, role: Role, text: &str) -> Result<i64> {
    if let Some(num) = find(conn, role, text)? {
        return Ok(num);
    }
    conn.prepare_cached("INSERT INTO name (role, hash, text) VALUES (?1, ?2, ?3)")?
        .insert(params![role.code(), hash(text), text])
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
