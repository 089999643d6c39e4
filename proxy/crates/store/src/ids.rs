//! Ids of calls, messages, sessions and exchanges: UUID v7, unique within a log by their first eight bytes alone.
//!
//! The log uses those eight bytes as its key, so they must never repeat in one file and never go backwards, whatever the
//! clock does and across restarts. The other eight are random: ids of two replicas never meet.

use rand::rngs::{StdRng, SysRng};
use rand::{Rng, SeedableRng};
use uuid::Uuid;

use crate::record::Micros;

/// Parts of a millisecond that the twelve bits after the version count.
const FRACTIONS: u64 = 1 << 12;
/// The version nibble in the upper half of a UUID v7.
const VERSION: u64 = 7 << 12;

/// Mints ids. One generator per log; not for sharing between logs, since order is kept per generator.
pub struct Ids {
    /// Milliseconds and fraction of the newest id, as one number.
    last: u64,
    random: StdRng,
}

impl Ids {
    /// A generator whose ids all come after `newest` (none: an empty log).
    ///
    /// # Panics
    /// When the operating system has no random numbers to give.
    pub fn after(newest: Option<Uuid>) -> Self {
        let random =
            StdRng::try_from_rng(&mut SysRng).expect("the operating system gives random numbers");
        Self {
            last: newest.map_or(0, |id| ticks(key_of(id))),
            random,
        }
    }

    /// The id of something that happened at `at`, later than every id before it.
    pub fn next(&mut self, at: Micros) -> Uuid {
        self.last = instant_ticks(at).max(self.last + 1);
        let upper = ((self.last / FRACTIONS) << 16) | VERSION | (self.last % FRACTIONS);
        let lower = self.random.next_u64() >> 2 | 1 << 63;
        Uuid::from_u64_pair(upper, lower)
    }
}

impl std::fmt::Debug for Ids {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ids")
            .field("last", &self.last)
            .finish_non_exhaustive()
    }
}

/// First half of an id: the key of its row.
pub(crate) fn key_of(id: Uuid) -> i64 {
    id.as_u64_pair().0.cast_signed()
}

/// Second half of an id.
pub(crate) fn tail_of(id: Uuid) -> i64 {
    id.as_u64_pair().1.cast_signed()
}

/// An id from its halves.
pub(crate) fn id_from(key: i64, tail: i64) -> Uuid {
    Uuid::from_u64_pair(key.cast_unsigned(), tail.cast_unsigned())
}

/// The moment that a key carries, exact to the microsecond for ids that were minted here in time.
pub(crate) fn moment_of(key: i64) -> Micros {
    let ticks = ticks(key);
    let millis = ticks / FRACTIONS * 1000;
    (millis + ticks % FRACTIONS * 1000 / FRACTIONS).cast_signed()
}

/// The smallest key of a moment.
pub(crate) fn key_at(at: Micros) -> i64 {
    let ticks = instant_ticks(at);
    (((ticks / FRACTIONS) << 16) | VERSION | (ticks % FRACTIONS)).cast_signed()
}

fn ticks(key: i64) -> u64 {
    let key = key.cast_unsigned();
    (key >> 16) * FRACTIONS + key % FRACTIONS
}

/// Rounded up within the millisecond, so that `moment_of` gives the same microsecond back.
fn instant_ticks(at: Micros) -> u64 {
    // 47 bits of milliseconds keep the key positive; that is the year 6429.
    let at = at.clamp(0, 140_737_488_355_327_000).cast_unsigned();
    at / 1000 * FRACTIONS + (at % 1000 * FRACTIONS).div_ceil(1000)
}

#[cfg(test)]
mod tests;
