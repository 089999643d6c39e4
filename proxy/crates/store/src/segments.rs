//! Which calls a tool and a session have: lists of ids for some thousand calls at a time.
//!
//! An index of SQLite would take an entry, and with every commit a page for each tool and session at work. Instead the
//! newest calls are in no list (queries look at each of them), and when there are enough their lists are written in one
//! go, one behind the other, as a segment. Lists are hints: a call that is gone, or has moved to another session, is
//! passed over by whoever reads it. What comes too late for its segment waits in a table until it makes a segment of
//! its own.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Result, params};

use crate::doc::fields::{Input, put_number};

/// Calls of a segment. Larger: fewer places to look at for a query, and more unlisted calls to look through.
const SEGMENT: usize = 4096;
/// What a list takes for a call, about.
const BYTES_PER_ID: i64 = 3;
/// Calls that came late before they make a segment.
const LATE: usize = 1024;

pub(crate) const TOOL_LIST: &str = "SELECT ids FROM tool_calls WHERE segment = ?1 AND tool = ?2";
pub(crate) const SESSION_LIST: &str =
    "SELECT ids FROM session_calls WHERE segment = ?1 AND session = ?2";

/// A call that is in no list yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unlisted {
    pub(crate) key: i64,
    pub(crate) tool: i64,
    pub(crate) session: i64,
}

/// The calls that are in no list yet, as the writer remembers them.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    /// Calls up to this key are listed, or late.
    listed: i64,
    recent: Vec<Unlisted>,
    late: Vec<Unlisted>,
    /// Whether the above is true.
    known: bool,
}

impl Segments {
    /// Notes a call that the running commit stores.
    pub(crate) fn add(&mut self, conn: &Connection, call: Unlisted) -> Result<()> {
        self.learn(conn)?;
        if call.key > self.listed {
            self.recent.push(call);
        } else {
            conn.prepare_cached("INSERT OR IGNORE INTO late (id) VALUES (?1)")?
                .execute([call.key])?;
            self.late.push(call);
        }
        Ok(())
    }

    /// Notes that a call has another tool or session than before.
    pub(crate) fn change(&mut self, conn: &Connection, call: Unlisted) -> Result<()> {
        self.learn(conn)?;
        match self
            .recent
            .iter_mut()
            .chain(&mut self.late)
            .find(|known| known.key == call.key)
        {
            Some(known) => *known = call,
            None => self.add(conn, call)?,
        }
        Ok(())
    }

    /// Writes segments when there is enough for them.
    pub(crate) fn flush(&mut self, conn: &Connection) -> Result<()> {
        if self.recent.len() >= SEGMENT {
            let newest = self.recent.iter().map(|call| call.key).max();
            self.listed = newest.unwrap_or(self.listed);
            write(conn, &mut self.recent)?;
            conn.prepare_cached("UPDATE bounds SET listed = ?1")?
                .execute([self.listed])?;
        }
        if self.late.len() >= LATE {
            write(conn, &mut self.late)?;
            conn.execute("DELETE FROM late", [])?;
        }
        Ok(())
    }

    /// Forgets, e.g. because the transaction did not happen; the next one looks again.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    fn learn(&mut self, conn: &Connection) -> Result<()> {
        if self.known {
            return Ok(());
        }
        self.listed = listed(conn)?;
        let read = |row: &rusqlite::Row<'_>| {
            Ok(Unlisted {
                key: row.get(0)?,
                tool: row.get(1)?,
                session: row.get(2)?,
            })
        };
        self.recent = conn
            .prepare_cached("SELECT id, tool, session FROM call WHERE id > ?1")?
            .query_map([self.listed], read)?
            .collect::<Result<_>>()?;
        self.late = conn
            .prepare_cached(
                "SELECT call.id, tool, session FROM late JOIN call ON call.id = late.id",
            )?
            .query_map([], read)?
            .collect::<Result<_>>()?;
        self.known = true;
        Ok(())
    }
}

/// Calls up to this key are in a segment, or late.
pub(crate) fn listed(conn: &Connection) -> Result<i64> {
    conn.prepare_cached("SELECT listed FROM bounds")?
        .query_row([], |row| row.get(0))
}

fn write(conn: &Connection, calls: &mut Vec<Unlisted>) -> Result<()> {
    calls.sort_unstable_by_key(|call| call.key);
    calls.dedup_by_key(|call| call.key);
    let (Some(first), Some(last)) = (calls.first(), calls.last()) else {
        return Ok(());
    };
    let (first, last) = (first.key, last.key);
    let segment = conn
        .prepare_cached("INSERT INTO segment (first, last) VALUES (?1, ?2)")?
        .insert([first, last])?;
    let mut tools: BTreeMap<i64, List> = BTreeMap::new();
    let mut sessions: BTreeMap<i64, List> = BTreeMap::new();
    for call in calls.drain(..) {
        tools.entry(call.tool).or_default().push(first, call.key);
        sessions
            .entry(call.session)
            .or_default()
            .push(first, call.key);
    }
    let mut insert =
        conn.prepare_cached("INSERT INTO tool_calls (segment, tool, ids) VALUES (?1, ?2, ?3)")?;
    for (tool, list) in tools {
        insert.execute(params![segment, tool, list.bytes])?;
    }
    let mut insert = conn
        .prepare_cached("INSERT INTO session_calls (segment, session, ids) VALUES (?1, ?2, ?3)")?;
    for (session, list) in sessions {
        insert.execute(params![segment, session, list.bytes])?;
    }
    Ok(())
}

/// Ids in order, each as its distance from the one before; the first from the segment's first.
#[derive(Debug, Default)]
pub(crate) struct List {
    bytes: Vec<u8>,
    last: Option<i64>,
}

impl List {
    fn push(&mut self, base: i64, key: i64) {
        put_number(
            &mut self.bytes,
            key.wrapping_sub(self.last.unwrap_or(base)).cast_unsigned(),
        );
        self.last = Some(key);
    }
}

fn unlist(base: i64, bytes: &[u8]) -> Vec<i64> {
    let mut input = Input(bytes);
    let mut keys = Vec::new();
    let mut last = base;
    // A list that is damaged is a shorter list.
    while !input.0.is_empty()
        && let Ok(distance) = input.number()
    {
        last = last.wrapping_add(distance.cast_signed());
        keys.push(last);
    }
    keys
}

/// Whose calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Tool(i64),
    Session(i64),
}

/// A segment's number and the keys in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) num: i64,
    pub(crate) first: i64,
    pub(crate) last: i64,
}

/// All segments.
pub(crate) fn all(conn: &Connection) -> Result<Vec<Segment>> {
    conn.prepare_cached("SELECT num, first, last FROM segment")?
        .query_map([], |row| {
            Ok(Segment {
                num: row.get(0)?,
                first: row.get(1)?,
                last: row.get(2)?,
            })
        })?
        .collect()
}

/// The calls of an owner in a segment, in order.
pub(crate) fn calls(conn: &Connection, segment: Segment, owner: Owner) -> Result<Vec<i64>> {
    let (query, owner) = match owner {
        Owner::Tool(num) => (TOOL_LIST, num),
        Owner::Session(num) => (SESSION_LIST, num),
    };
    let list = conn
        .prepare_cached(query)?
        .query_row([segment.num, owner], |row| {
            Ok(row
                .get_ref(0)?
                .as_blob()
                .map(|bytes| unlist(segment.first, bytes))
                .unwrap_or_default())
        })
        .optional()?;
    Ok(list.unwrap_or_default())
}

/// Drops a session's list.
pub(crate) fn forget_list(conn: &Connection, segment: Segment, session: i64) -> Result<()> {
    conn.prepare_cached("DELETE FROM session_calls WHERE segment = ?1 AND session = ?2")?
        .execute([segment.num, session])?;
    Ok(())
}

/// Whether any segment has a list of the session.
pub(crate) fn has_list(conn: &Connection, session: i64) -> Result<bool> {
    let mut list = conn.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM session_calls WHERE segment = ?1 AND session = ?2)",
    )?;
    for segment in all(conn)? {
        if list.query_row([segment.num, session], |row| row.get(0))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Takes calls of a tool, in order, out of its list.
pub(crate) fn unlist_calls(
    conn: &Connection,
    segment: Segment,
    tool: i64,
    gone: &[i64],
) -> Result<()> {
    let mut list = List::default();
    for key in calls(conn, segment, Owner::Tool(tool))? {
        if gone.binary_search(&key).is_err() {
            list.push(segment.first, key);
        }
    }
    conn.prepare_cached("UPDATE tool_calls SET ids = ?3 WHERE segment = ?1 AND tool = ?2")?
        .execute(params![segment.num, tool, list.bytes])?;
    Ok(())
}

/// Whether calls of these tools are fewer than calls of these sessions, as far as lists tell.
pub(crate) fn rarer(
    conn: &Connection,
    tools: &[i64],
    sessions: impl Iterator<Item = i64>,
) -> Result<bool> {
    let mut calls = conn.prepare_cached("SELECT calls FROM activity WHERE session = ?1")?;
    let mut of_sessions = 0;
    for session in sessions {
        of_sessions += calls
            .query_row([session], |row| row.get::<_, i64>(0))
            .optional()?
            .unwrap_or_default();
    }
    let mut bytes = conn.prepare_cached(
        "SELECT ifnull(length(ids), 0) FROM tool_calls WHERE segment = ?1 AND tool = ?2",
    )?;
    let mut of_tools = 0;
    for segment in all(conn)? {
        for tool in tools {
            let length = bytes
                .query_row([segment.num, *tool], |row| row.get::<_, i64>(0))
                .optional()?;
            of_tools += length.unwrap_or_default() / BYTES_PER_ID;
        }
        if of_tools > of_sessions {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Calls that came late for their segment, in order.
pub(crate) fn late(conn: &Connection) -> Result<Vec<i64>> {
    conn.prepare_cached("SELECT id FROM late ORDER BY id")?
        .query_map([], |row| row.get(0))?
        .collect()
}

/// Removes segments whose calls are all gone: those up to `last`.
pub(crate) fn prune(conn: &Connection, last: i64) -> Result<()> {
    let gone: Vec<i64> = conn
        .prepare_cached("SELECT num FROM segment WHERE last <= ?1")?
        .query_map([last], |row| row.get(0))?
        .collect::<Result<_>>()?;
    for num in gone {
        conn.prepare_cached("DELETE FROM tool_calls WHERE segment = ?1")?
            .execute([num])?;
        conn.prepare_cached("DELETE FROM session_calls WHERE segment = ?1")?
            .execute([num])?;
        conn.prepare_cached("DELETE FROM segment WHERE num = ?1")?
            .execute([num])?;
    }
    conn.prepare_cached("DELETE FROM late WHERE id <= ?1 AND NOT EXISTS (SELECT 1 FROM call WHERE call.id = late.id)")?
        .execute([last])?;
    Ok(())
}
