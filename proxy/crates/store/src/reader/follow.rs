//! Following the log: calls in the order in which they concluded.
//!
//! Blocks are numbered in commit order and say which calls concluded in them, so a call that began long ago is
//! delivered when it concludes, and none is delivered twice.

use super::{Fault, Reader};
use crate::block::Kind;
use crate::error::StoreError;
use crate::reader::load::CallRow;
use crate::record::Call;

/// Blocks read in one transaction.
const BLOCKS: u32 = 16;

/// Delivers calls as they conclude.
#[derive(Debug)]
pub struct Follower {
    reader: Reader,
    /// The last block that was looked at.
    after: i64,
}

impl Follower {
    pub(super) fn begin(reader: Reader) -> Result<Self, StoreError> {
        let after = reader.read(|loader| {
            Ok(loader
                .conn
                .query_row("SELECT ifnull(max(num), 0) FROM block", [], |row| {
                    row.get(0)
                })?)
        })?;
        Ok(Self { reader, after })
    }

    /// The calls that concluded since the last poll, in the order they did, each once. Cheap when there are none; a
    /// long backlog comes in several polls.
    pub fn poll(&mut self) -> Result<Vec<Call>, StoreError> {
        let after = self.after;
        let (calls, last) = self.reader.read(|loader| {
            let blocks: Vec<i64> = loader
                .conn
                .prepare_cached("SELECT num FROM block WHERE num > ?1 ORDER BY num LIMIT ?2")?
                .query_map([after, BLOCKS.into()], |row| row.get(0))?
                .collect::<rusqlite::Result<_>>()?;
            let mut calls = Vec::new();
            for num in &blocks {
                let block = match self.reader.blocks.borrow_mut().get(loader.conn, *num) {
                    Ok(block) => block,
                    Err(Fault::Other(error @ StoreError::Damaged { .. })) => {
                        tracing::warn!(%error, "calls of a block not followed");
                        continue;
                    }
                    Err(other) => return Err(other),
                };
                for doc in block
                    .docs()
                    .filter(|doc| matches!(doc.kind, Kind::Concluded | Kind::Mark))
                {
                    if let Some(row) = CallRow::find(loader.conn, doc.key)? {
                        calls.push(loader.call(&row)?);
                    }
                }
            }
            Ok((calls, blocks.last().copied()))
        })?;
        if let Some(last) = last {
            self.after = last;
        }
        Ok(calls)
    }
}
