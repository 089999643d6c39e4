//! Blocks read lately: calls that lie together are read together.

use std::sync::Arc;

use rusqlite::{Connection, ErrorCode, OptionalExtension};

use super::Fault;
use crate::block::{Block, Unpacker};
use crate::error::StoreError;

/// Bytes kept.
const MOST: usize = 8 << 20;

/// A few unpacked blocks, the latest used last.
#[derive(Debug)]
pub(crate) struct Blocks {
    unpacker: Unpacker,
    kept: Vec<(i64, Arc<Block>)>,
    weight: usize,
}

impl Blocks {
    pub(crate) fn new() -> Result<Self, StoreError> {
        Ok(Self {
            unpacker: Unpacker::new()?,
            kept: Vec::new(),
            weight: 0,
        })
    }

    /// A block by its number; the error `Damaged` when it cannot be made sense of.
    pub(crate) fn get(&mut self, conn: &Connection, num: i64) -> Result<Arc<Block>, Fault> {
        if let Some(at) = self.kept.iter().rposition(|(kept, _)| *kept == num) {
            let found = self.kept.remove(at);
            let block = Arc::clone(&found.1);
            self.kept.push(found);
            return Ok(block);
        }
        let damaged = |what: &str| {
            Fault::Other(StoreError::Damaged {
                block: num,
                what: what.to_owned(),
            })
        };
        let data = conn
            .prepare_cached("SELECT data FROM block WHERE num = ?1")?
            .query_row([num], |row| {
                Ok(row
                    .get_ref(0)?
                    .as_blob()
                    .map(|data| self.unpacker.unpack(num, data)))
            })
            .optional();
        let block = match data {
            Ok(Some(Ok(block))) => Arc::new(block?),
            Ok(Some(Err(_))) => return Err(damaged("it is not a blob")),
            Ok(None) => return Err(damaged("it is missing")),
            // The pages of this blob only: the rows were read, and so will those of other blocks be.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
                return Err(damaged(&error.to_string()));
            }
            Err(error) => return Err(error.into()),
        };
        self.weight += block.weight();
        self.kept.push((num, Arc::clone(&block)));
        while self.weight > MOST && self.kept.len() > 1 {
            self.weight -= self.kept.remove(0).1.weight();
        }
        Ok(block)
    }
}
