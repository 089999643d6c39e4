//! Keys of calls in order, from one or several places at once: an index, lists, or all.
//!
//! Every place gives its keys in order, in portions; they are merged. A place that can have nothing yet (a list of older
//! calls than where the walk is) is not asked before it can.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::RangeInclusive;

use rusqlite::{Connection, Result, params};

use crate::segments::{self, Owner, Segment};

/// Towards newer or older calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    Backward,
}

/// Where keys come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Every call.
    All,
    /// Every call that is in no list yet.
    Late,
    /// Calls with an outcome that is not `ok`.
    Outcome(u8),
    /// A list.
    List(Segment, Owner),
}

/// A place and the keys it can have at most.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) place: Place,
    pub(crate) span: RangeInclusive<i64>,
}

/// Portions begin small, since often the first few keys are all that is wanted.
const FIRST: u32 = 64;
const MOST: u32 = 1024;

/// A merged walk.
#[derive(Debug)]
pub(crate) struct Walk {
    direction: Direction,
    range: RangeInclusive<i64>,
    /// Not asked yet; the next one to ask is last.
    waiting: Vec<Source>,
    active: Vec<Stream>,
    /// Heads of the active streams, the next key on top.
    heads: BinaryHeap<(Reverse<i64>, usize)>,
    last: Option<i64>,
}

#[derive(Debug)]
struct Stream {
    place: Place,
    /// What has not been fetched.
    rest: RangeInclusive<i64>,
    fetched: VecDeque<i64>,
    portion: u32,
}

impl Walk {
    /// A walk over `range`. It may go on in later transactions: what is at work with the log meanwhile moves calls into
    /// lists, and those are sources of their own already.
    pub(crate) fn begin(
        conn: &Connection,
        mut sources: Vec<Source>,
        range: RangeInclusive<i64>,
        direction: Direction,
    ) -> Result<Self> {
        match direction {
            Direction::Forward => sources.sort_by_key(|source| Reverse(*source.span.start())),
            Direction::Backward => sources.sort_by_key(|source| *source.span.end()),
        }
        let mut walk = Self {
            direction,
            range,
            waiting: sources,
            active: Vec::new(),
            heads: BinaryHeap::new(),
            last: None,
        };
        walk.begin_those_due(conn)?;
        Ok(walk)
    }

    /// The next key. No key comes twice, though a list and what came late may both have it.
    pub(crate) fn next(&mut self, conn: &Connection) -> Result<Option<i64>> {
        loop {
            self.begin_those_due(conn)?;
            let Some((Reverse(head), at)) = self.heads.pop() else {
                return Ok(None);
            };
            self.advance(conn, at)?;
            let key = self.order(head);
            if self.last.replace(key) != Some(key) {
                return Ok(Some(key));
            }
        }
    }

    /// Begins with the sources that can have a key before, or at, the smallest one known.
    fn begin_those_due(&mut self, conn: &Connection) -> Result<()> {
        while let Some(source) = self.waiting.last() {
            let first = match self.direction {
                Direction::Forward => *source.span.start(),
                Direction::Backward => *source.span.end(),
            };
            if self
                .heads
                .peek()
                .is_some_and(|(Reverse(head), _)| *head < self.order(first))
            {
                break;
            }
            let Some(Source { place, span }) = self.waiting.pop() else {
                break;
            };
            let rest = *span.start().max(self.range.start())..=*span.end().min(self.range.end());
            self.active.push(Stream {
                place,
                rest,
                fetched: VecDeque::new(),
                portion: FIRST,
            });
            self.advance(conn, self.active.len() - 1)?;
        }
        Ok(())
    }

    /// Smaller comes first. It is its own inverse.
    fn order(&self, key: i64) -> i64 {
        match self.direction {
            Direction::Forward => key,
            Direction::Backward => !key,
        }
    }

    fn advance(&mut self, conn: &Connection, at: usize) -> Result<()> {
        let stream = &mut self.active[at];
        if stream.fetched.is_empty() && !stream.rest.is_empty() {
            stream.fetch(conn, self.direction)?;
        }
        if let Some(key) = stream.fetched.pop_front() {
            self.heads.push((Reverse(self.order(key)), at));
        }
        Ok(())
    }
}

impl Stream {
    fn fetch(&mut self, conn: &Connection, direction: Direction) -> Result<()> {
        let (start, end) = self.rest.clone().into_inner();
        let list = match self.place {
            Place::List(segment, owner) => Some(segments::calls(conn, segment, owner)?),
            Place::Late => Some(segments::late(conn)?),
            Place::All | Place::Outcome(_) => None,
        };
        if let Some(mut keys) = list {
            keys.retain(|key| self.rest.contains(key));
            if direction == Direction::Backward {
                keys.reverse();
            }
            self.fetched = keys.into();
            self.rest = RangeInclusive::new(1, 0);
            return Ok(());
        }
        let mut query = conn.prepare_cached(query(self.place, direction))?;
        let outcome = match self.place {
            Place::Outcome(code) => Some(code),
            _ => None,
        };
        let keys = query.query_map(params![start, end, self.portion, outcome], |row| row.get(0))?;
        self.fetched = keys.collect::<Result<_>>()?;
        let whole = self.fetched.len() < self.portion as usize;
        self.portion = (self.portion * 2).min(MOST);
        self.rest = match (self.fetched.back(), direction) {
            (Some(reached), Direction::Forward) if !whole => *reached + 1..=end,
            (Some(reached), Direction::Backward) if !whole => start..=*reached - 1,
            _ => RangeInclusive::new(1, 0),
        };
        Ok(())
    }
}

/// The statement for a range of calls; each follows one index (tested).
pub(crate) fn query(place: Place, direction: Direction) -> &'static str {
    match (place, direction) {
        (Place::Outcome(_), Direction::Forward) => {
            "SELECT id FROM call WHERE outcome = ?4 AND outcome <> 0 AND id BETWEEN ?1 AND ?2 ORDER BY id LIMIT ?3"
        }
        (Place::Outcome(_), Direction::Backward) => {
            "SELECT id FROM call WHERE outcome = ?4 AND outcome <> 0 AND id BETWEEN ?1 AND ?2 ORDER BY id DESC LIMIT ?3"
        }
        (_, Direction::Forward) => {
            "SELECT id FROM call WHERE id BETWEEN ?1 AND ?2 AND ?4 IS NULL ORDER BY id LIMIT ?3"
        }
        (_, Direction::Backward) => {
            "SELECT id FROM call WHERE id BETWEEN ?1 AND ?2 AND ?4 IS NULL ORDER BY id DESC LIMIT ?3"
        }
    }
}
