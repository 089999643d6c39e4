//! Ids from their beginnings, git style.

use rusqlite::{Connection, params};
use uuid::Uuid;

use super::Fault;
use crate::filter::Resolved;
use crate::ids::id_from;

/// Candidates named in an error, and one more to know that there are.
const MOST: u32 = 10;

pub(super) const CALLS: &str =
    "SELECT id, tail FROM call WHERE id BETWEEN ?1 AND ?2 ORDER BY id LIMIT ?3";
pub(super) const SESSIONS: &str =
    "SELECT id FROM session WHERE id BETWEEN ?1 AND ?2 ORDER BY id LIMIT ?3";

/// The ids that begin with some digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    first: u128,
    last: u128,
}

impl Range {
    /// From the first hex digits of a UUID, dashes or not, any case.
    pub(crate) fn parse(prefix: &str) -> Option<Self> {
        let mut first = 0;
        let mut digits = 0;
        for character in prefix.chars().filter(|character| *character != '-') {
            first = first << 4 | u128::from(character.to_digit(16)?);
            digits += 1;
            if digits > 32 {
                return None;
            }
        }
        if digits == 0 {
            return None;
        }
        let open = 4 * (32 - digits);
        let first = first << open;
        Some(Self {
            first,
            last: first | ((1 << open) - 1),
        })
    }

    /// Calls and sessions in the range, a few of them.
    pub(crate) fn search(self, conn: &Connection) -> Result<Vec<Resolved>, Fault> {
        let halves = |id: u128| {
            let (key, tail) = Uuid::from_u128(id).as_u64_pair();
            (key.cast_signed(), tail.cast_signed())
        };
        let ((first, first_tail), (last, last_tail)) = (halves(self.first), halves(self.last));
        let mut found = Vec::new();
        // Negative keys would be ids whose first digit is 8 or more: the year 6429.
        if first >= 0 && last >= 0 {
            let mut calls = conn.prepare_cached(CALLS)?;
            let calls = calls.query_map(params![first, last, MOST], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?;
            for call in calls {
                let (key, tail): (i64, i64) = call?;
                let whole_half = first != last;
                if whole_half
                    || (first_tail.cast_unsigned()..=last_tail.cast_unsigned())
                        .contains(&tail.cast_unsigned())
                {
                    found.push(Resolved::Call(id_from(key, tail)));
                }
            }
        }
        let mut sessions = conn.prepare_cached(SESSIONS)?;
        let (first, last) = (self.first.to_be_bytes(), self.last.to_be_bytes());
        let sessions = sessions.query_map(params![first, last, MOST], |row| row.get(0))?;
        for session in sessions {
            found.push(Resolved::Session(Uuid::from_bytes(session?)));
        }
        Ok(found)
    }
}
