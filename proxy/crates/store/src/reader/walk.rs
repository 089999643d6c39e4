//! Keys of calls in order, from one or several places at once: an index entry's calls, a session's, or all.
//!
//! Every place gives its keys in order, in portions; they are merged. A place that can have nothing yet (a session that
//! was last active earlier than where the walk is) is not asked before it can.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::RangeInclusive;

use rusqlite::{Connection, Result, params};

/// Towards newer or older calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    Backward,
}

/// Where keys come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    All,
    Tool(i64),
    Outcome(u8),
    Session(i64),
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
    /// A walk over `range`.
    pub(crate) fn new(
        mut sources: Vec<Source>,
        range: RangeInclusive<i64>,
        direction: Direction,
    ) -> Self {
        match direction {
            Direction::Forward => sources.sort_by_key(|source| Reverse(*source.span.start())),
            Direction::Backward => sources.sort_by_key(|source| *source.span.end()),
        }
        Self {
            direction,
            range,
            waiting: sources,
            active: Vec::new(),
            heads: BinaryHeap::new(),
        }
    }

    /// The next key.
    pub(crate) fn next(&mut self, conn: &Connection) -> Result<Option<i64>> {
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
            let place = source.place;
            self.waiting.pop();
            self.active.push(Stream {
                place,
                rest: self.range.clone(),
                fetched: VecDeque::new(),
                portion: FIRST,
            });
            self.advance(conn, self.active.len() - 1)?;
        }
        let Some((Reverse(head), at)) = self.heads.pop() else {
            return Ok(None);
        };
        self.advance(conn, at)?;
        Ok(Some(self.order(head)))
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
        let mut query = conn.prepare_cached(query(self.place, direction))?;
        let selector = match self.place {
            Place::All => None,
            Place::Tool(num) | Place::Session(num) => Some(num),
            Place::Outcome(code) => Some(code.into()),
        };
        let keys = query.query_map(params![start, end, self.portion, selector], |row| {
            row.get(0)
        })?;
        self.fetched = keys.collect::<Result<_>>()?;
        let whole = self.fetched.len() < self.portion as usize;
        self.portion = (self.portion * 2).min(MOST);
        self.rest = match (self.fetched.back(), direction) {
            (Some(last), Direction::Forward) if !whole => *last + 1..=end,
            (Some(last), Direction::Backward) if !whole => start..=*last - 1,
            _ => RangeInclusive::new(1, 0),
        };
        Ok(())
    }
}

/// The statement for a place; each is a range of one index (tested).
pub(crate) fn query(place: Place, direction: Direction) -> &'static str {
    match (place, direction) {
        (Place::All, Direction::Forward) => {
            "SELECT id FROM call WHERE id BETWEEN ?1 AND ?2 AND ?4 IS NULL ORDER BY id LIMIT ?3"
        }
        (Place::All, Direction::Backward) => {
            "SELECT id FROM call WHERE id BETWEEN ?1 AND ?2 AND ?4 IS NULL ORDER BY id DESC LIMIT ?3"
        }
        (Place::Tool(_), Direction::Forward) => {
            "SELECT id FROM call WHERE tool = ?4 AND id BETWEEN ?1 AND ?2 ORDER BY id LIMIT ?3"
        }
        (Place::Tool(_), Direction::Backward) => {
            "SELECT id FROM call WHERE tool = ?4 AND id BETWEEN ?1 AND ?2 ORDER BY id DESC LIMIT ?3"
        }
        (Place::Session(_), Direction::Forward) => {
            "SELECT id FROM call WHERE session = ?4 AND id BETWEEN ?1 AND ?2 ORDER BY id LIMIT ?3"
        }
        (Place::Session(_), Direction::Backward) => {
            "SELECT id FROM call WHERE session = ?4 AND id BETWEEN ?1 AND ?2 ORDER BY id DESC LIMIT ?3"
        }
        (Place::Outcome(_), Direction::Forward) => {
            "SELECT id FROM call WHERE outcome = ?4 AND outcome <> 0 AND id BETWEEN ?1 AND ?2 ORDER BY id LIMIT ?3"
        }
        (Place::Outcome(_), Direction::Backward) => {
            "SELECT id FROM call WHERE outcome = ?4 AND outcome <> 0 AND id BETWEEN ?1 AND ?2 ORDER BY id DESC LIMIT ?3"
        }
    }
}
