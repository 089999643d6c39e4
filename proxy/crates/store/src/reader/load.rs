//! From rows and documents back to calls, messages and catalogues.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::blocks::Blocks;
use super::{Fault, sessions};
use crate::codes::Coded;
use crate::doc;
use crate::error::StoreError;
use crate::ids::{id_from, moment_of};
use crate::names;
use crate::record::{
    Call, Capture, Captured, Catalogue, Direction, End, Http, Message, Micros, Outcome, Session,
};

/// Flag of a call or message whose document cannot be read.
const DAMAGED: &str = "damaged_record";
/// A tool list cannot be larger than this.
const LARGEST_CATALOGUE: usize = 256 << 20;

pub(super) const CALL: &str =
    "SELECT id, tail, session, tool, outcome, \"end\", catalogue, shift, took, block
    FROM call WHERE id = ?1";
pub(super) const MESSAGES: &str =
    "SELECT id, tail, block FROM message WHERE session = ?1 ORDER BY id";

/// A row of the call table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallRow {
    pub(crate) key: i64,
    pub(crate) tail: i64,
    pub(crate) session: i64,
    pub(crate) tool: i64,
    pub(crate) outcome: u8,
    end: u8,
    pub(crate) catalogue: Option<i64>,
    shift: i64,
    took: Option<i64>,
    block: i64,
}

impl CallRow {
    /// The row with this key.
    pub(crate) fn find(conn: &Connection, key: i64) -> rusqlite::Result<Option<Self>> {
        conn.prepare_cached(CALL)?
            .query_row([key], Self::read)
            .optional()
    }

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            key: row.get(0)?,
            tail: row.get(1)?,
            session: row.get(2)?,
            tool: row.get(3)?,
            outcome: row.get(4)?,
            end: row.get(5)?,
            catalogue: row.get(6)?,
            shift: row.get(7)?,
            took: row.get(8)?,
            block: row.get(9)?,
        })
    }

    pub(crate) fn started_at(&self) -> Micros {
        moment_of(self.key).saturating_add(self.shift)
    }
}

/// Loads within one read transaction.
pub(crate) struct Loader<'c> {
    pub(crate) conn: &'c Connection,
    blocks: &'c RefCell<Blocks>,
    met: &'c RefCell<Met>,
}

/// Sessions and names met in the course of a query.
#[derive(Debug, Default)]
pub(crate) struct Met {
    sessions: HashMap<i64, Arc<Session>>,
    names: HashMap<i64, String>,
}

/// Of each so many, then anew.
const MET: usize = 8192;

fn bounded<V>(map: &mut HashMap<i64, V>) -> &mut HashMap<i64, V> {
    if map.len() >= MET {
        map.clear();
    }
    map
}

impl<'c> Loader<'c> {
    pub(crate) fn new(
        conn: &'c Connection,
        blocks: &'c RefCell<Blocks>,
        met: &'c RefCell<Met>,
    ) -> Self {
        Self { conn, blocks, met }
    }

    /// The call of a row. A damaged document costs its payloads, and the call says so.
    pub(crate) fn call(&self, row: &CallRow) -> Result<Call, Fault> {
        let bare = self.bare_call(row)?;
        let mut call = bare.clone();
        match self.fill(row.block, |block| match block.find(true, row.key) {
            Some(document) => doc::get_call(document, &mut call),
            None => Err("the document is not in it"),
        })? {
            None => Ok(call),
            Some(damage) => {
                let capture = Captured {
                    request: Capture::Dropped,
                    response: Capture::Dropped,
                    reason: Some(damage),
                };
                Ok(Call {
                    capture,
                    flags: vec![DAMAGED.to_owned()],
                    ..bare
                })
            }
        }
    }

    /// Runs `read` on a block; gives back what is wrong, if it is damage.
    fn fill(
        &self,
        num: i64,
        read: impl FnOnce(&crate::block::Block) -> Result<(), &'static str>,
    ) -> Result<Option<String>, Fault> {
        let block = match self.blocks.borrow_mut().get(self.conn, num) {
            Ok(block) => block,
            Err(Fault::Other(error @ StoreError::Damaged { .. })) => {
                return Ok(Some(error.to_string()));
            }
            Err(other) => return Err(other),
        };
        Ok(read(&block).err().map(|what| {
            StoreError::Damaged {
                block: num,
                what: what.to_owned(),
            }
            .to_string()
        }))
    }

    fn bare_call(&self, row: &CallRow) -> Result<Call, Fault> {
        Ok(Call {
            id: id_from(row.key, row.tail),
            exchange_id: Uuid::nil(),
            request_id: None,
            session: self.session(row.session)?,
            seq: 0,
            protocol_version: None,
            trace_id: None,
            span_id: None,
            jsonrpc_id: RawValue::NULL.to_owned(),
            tool: self.name(row.tool)?,
            arguments: None,
            outcome: Outcome::from_code(row.outcome.into()).unwrap_or(Outcome::Unreadable),
            result: None,
            error: None,
            end: End::from_code(row.end.into()).unwrap_or(End::Open),
            http_status: None,
            started_at: row.started_at(),
            first_byte_us: None,
            duration_us: row.took.map(i64::unsigned_abs),
            request_bytes: 0,
            response_bytes: 0,
            legs: 1,
            confirmation: None,
            catalogue: row.catalogue.map(|num| self.name(num)).transpose()?,
            capture: Captured {
                request: Capture::Full,
                response: Capture::Full,
                reason: None,
            },
            events: Vec::new(),
            flags: Vec::new(),
            sample: None,
            http: Http::default(),
        })
    }

    /// The messages of a session, in order.
    pub(crate) fn messages(&self, session: Uuid) -> Result<Vec<Message>, Fault> {
        let Some(num) = sessions::number(self.conn, session)? else {
            return Ok(Vec::new());
        };
        let session = self.session(num)?;
        let rows: Vec<(i64, i64, i64)> = self
            .conn
            .prepare_cached(MESSAGES)?
            .query_map([num], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<rusqlite::Result<_>>()?;
        rows.into_iter()
            .map(|(key, tail, block)| self.message(key, tail, block, &session))
            .collect()
    }

    fn message(
        &self,
        key: i64,
        tail: i64,
        block: i64,
        session: &Arc<Session>,
    ) -> Result<Message, Fault> {
        let bare = Message {
            id: id_from(key, tail),
            exchange_id: Uuid::nil(),
            session: Arc::clone(session),
            direction: Direction::ClientToServer,
            kind: "invalid".to_owned(),
            method: None,
            jsonrpc_id: None,
            call: None,
            at: moment_of(key),
            http_status: None,
            body: None,
            flags: Vec::new(),
        };
        let mut message = bare.clone();
        let damage = self.fill(block, |block| match block.find(false, key) {
            Some(document) => doc::get_message(document, &mut message),
            None => Err("the document is not in it"),
        })?;
        match damage {
            None => Ok(message),
            Some(damage) => Ok(Message {
                flags: vec![DAMAGED.to_owned(), damage],
                ..bare
            }),
        }
    }

    /// A session by its number. Should its row be lost, its calls are still shown.
    fn session(&self, num: i64) -> Result<Arc<Session>, Fault> {
        if let Some(session) = self.met.borrow().sessions.get(&num) {
            return Ok(Arc::clone(session));
        }
        let session = Arc::new(sessions::by_number(self.conn, num)?);
        bounded(&mut self.met.borrow_mut().sessions).insert(num, Arc::clone(&session));
        Ok(session)
    }

    fn name(&self, num: i64) -> Result<String, Fault> {
        if let Some(name) = self.met.borrow().names.get(&num) {
            return Ok(name.clone());
        }
        let name = names::text(self.conn, num)?.unwrap_or_default();
        bounded(&mut self.met.borrow_mut().names).insert(num, name.clone());
        Ok(name)
    }
}

/// A tool list by the number of its hash.
pub(crate) fn catalogue(
    conn: &Connection,
    num: i64,
    hash: &str,
) -> Result<Option<Catalogue>, Fault> {
    let found: Option<(i64, Micros, Vec<u8>)> = conn
        .prepare_cached("SELECT upstream, seen_at, data FROM catalogue WHERE hash = ?1")?
        .query_row([num], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let Some((upstream, seen_at, data)) = found else {
        return Ok(None);
    };
    let damaged = |what: String| StoreError::Damaged {
        block: 0,
        what: format!("tool list {hash}: {what}"),
    };
    let bound =
        zstd::bulk::Decompressor::upper_bound(&data).filter(|bound| *bound <= LARGEST_CATALOGUE);
    let bound = bound.ok_or_else(|| damaged("its length is unknown".to_owned()))?;
    let tools = zstd::bulk::decompress(&data, bound).map_err(|error| damaged(error.to_string()))?;
    let tools = String::from_utf8(tools).map_err(|error| damaged(error.to_string()))?;
    let tools = RawValue::from_string(tools).map_err(|error| damaged(error.to_string()))?;
    let upstream = names::text(conn, upstream)?.unwrap_or_default();
    Ok(Some(Catalogue {
        hash: hash.to_owned(),
        upstream,
        seen_at,
        tools,
    }))
}
