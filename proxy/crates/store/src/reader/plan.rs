//! From a filter to the places to look in, and to the check that each row found there must pass.
//!
//! Several conditions, one is followed: the one under which the fewest calls are. Counting stops early, so a poor guess
//! costs a millisecond and never a scan of the log.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use rusqlite::{Connection, Result, params};

use super::Fault;
use super::load::CallRow;
use super::sessions::{self, Attribute};
use super::walk::{Place, Source};
use crate::codes::Coded;
use crate::filter::{CallFilter, SessionFilter, full_hash};
use crate::ids::key_at;
use crate::names::{self, Role};
use crate::record::{Micros, Outcome};

/// Counting stops here.
const COUNTED: u32 = 10_000;
/// With more sessions than this the calls are gone through instead: that many sessions have most of them.
const SESSIONS: u32 = 20_000;

/// How to answer a filter.
#[derive(Debug)]
pub(crate) struct Plan {
    sources: Vec<Source>,
    range: RangeInclusive<i64>,
    filter: CallFilter,
    tools: Option<Vec<i64>>,
    outcomes: Option<Vec<u8>>,
    catalogues: Option<Vec<i64>>,
    session: Option<i64>,
    sessions: Option<SessionCheck>,
}

/// Whether sessions have the attributes asked for, as far as that is known.
#[derive(Debug)]
struct SessionCheck {
    filter: SessionFilter,
    known: HashMap<i64, bool>,
}

impl Plan {
    /// The plan; nothing when no call can match, e.g. because nobody ever called that tool.
    pub(crate) fn make(conn: &Connection, filter: &CallFilter) -> Result<Option<Self>, Fault> {
        let Some(range) = range(conn, filter)? else {
            return Ok(None);
        };
        let mut plan = Self {
            sources: Vec::new(),
            range,
            filter: filter.clone(),
            tools: None,
            outcomes: None,
            catalogues: None,
            session: None,
            sessions: None,
        };
        if !filter.tools.is_empty() {
            let tools = filter
                .tools
                .iter()
                .filter_map(|tool| names::find(conn, Role::Tool, tool).transpose());
            plan.tools = Some(tools.collect::<Result<_>>()?);
        }
        if !filter.outcomes.is_empty() {
            plan.outcomes = Some(
                filter
                    .outcomes
                    .iter()
                    .map(|outcome| outcome.code())
                    .collect(),
            );
        }
        if let Some(hash) = &filter.catalogue {
            plan.catalogues = Some(names::begin_with(conn, Role::Catalogue, &full_hash(hash))?);
        }
        if let Some(id) = filter.session {
            plan.session = sessions::number(conn, id)?;
            if plan.session.is_none() {
                return Ok(None);
            }
        }
        let attributes = filter.of_session();
        if attributes != SessionFilter::default() {
            plan.sessions = Some(SessionCheck {
                filter: attributes,
                known: HashMap::new(),
            });
        }
        let nobody = |list: &Option<Vec<i64>>| list.as_ref().is_some_and(Vec::is_empty);
        if nobody(&plan.tools) || nobody(&plan.catalogues) {
            return Ok(None);
        }
        plan.sources = plan.choose(conn)?;
        Ok((!plan.sources.is_empty()).then_some(plan))
    }

    /// Where to walk.
    pub(crate) fn take_sources(&mut self) -> Vec<Source> {
        std::mem::take(&mut self.sources)
    }

    /// Keys that are in the time asked for.
    pub(crate) fn range(&self) -> RangeInclusive<i64> {
        self.range.clone()
    }

    /// Whether the row of a call is asked for.
    pub(crate) fn admits(&mut self, conn: &Connection, row: &CallRow) -> Result<bool, Fault> {
        let plain = self.filter.in_time(row.started_at())
            && self.session.is_none_or(|num| num == row.session)
            && self
                .tools
                .as_ref()
                .is_none_or(|tools| tools.contains(&row.tool))
            && self
                .outcomes
                .as_ref()
                .is_none_or(|outcomes| outcomes.contains(&row.outcome))
            && self
                .catalogues
                .as_ref()
                .is_none_or(|wanted| row.catalogue.is_some_and(|num| wanted.contains(&num)));
        match &mut self.sessions {
            Some(check) if plain => check.admits(conn, row.session),
            _ => Ok(plain),
        }
    }

    fn choose(&self, conn: &Connection) -> Result<Vec<Source>, Fault> {
        let everywhere = |place| Source {
            place,
            span: self.range.clone(),
        };
        if let Some(num) = self.session {
            return Ok(vec![everywhere(Place::Session(num))]);
        }
        let mut ways: Vec<Vec<Source>> = vec![vec![everywhere(Place::All)]];
        if let Some(tools) = &self.tools {
            ways.push(
                tools
                    .iter()
                    .map(|num| everywhere(Place::Tool(*num)))
                    .collect(),
            );
        }
        if let Some(outcomes) = &self.outcomes
            && !outcomes.contains(&Outcome::Ok.code())
        {
            ways.push(
                outcomes
                    .iter()
                    .map(|code| everywhere(Place::Outcome(*code)))
                    .collect(),
            );
        }
        let mut best = None;
        let mut fewest = COUNTED;
        for way in ways {
            let count = count(conn, &way, fewest)?;
            if best.is_none() || count < fewest {
                fewest = count;
                best = Some(way);
            }
        }
        let mut best = best.unwrap_or_default();
        // Many calls by every other way, or a way at all through the sessions.
        if fewest > 256
            && let Some(check) = &self.sessions
            && let Some(way) = self.through_sessions(conn, &check.filter)?
        {
            best = way;
        }
        Ok(best)
    }

    /// The sessions asked for, each with the span of its calls; nothing when there are too many, or no index finds them.
    fn through_sessions(
        &self,
        conn: &Connection,
        filter: &SessionFilter,
    ) -> Result<Option<Vec<Source>>, Fault> {
        let Some((attribute, num)) = sessions::narrowest(conn, filter)? else {
            return Ok(Some(Vec::new()));
        };
        let query = match attribute {
            Attribute::Principal => {
                "SELECT num, first_at, last_at FROM session JOIN activity ON activity.session = session.num
                 WHERE principal = ?1 AND calls > 0 LIMIT ?2"
            }
            Attribute::Tenant => {
                "SELECT num, first_at, last_at FROM session JOIN activity ON activity.session = session.num
                 WHERE tenant = ?1 AND calls > 0 LIMIT ?2"
            }
            Attribute::Client => {
                "SELECT num, first_at, last_at FROM session JOIN activity ON activity.session = session.num
                 WHERE client = ?1 AND calls > 0 LIMIT ?2"
            }
            Attribute::None => return Ok(None),
        };
        let spread = Spread::read(conn)?;
        let mut query = conn.prepare_cached(query)?;
        let found = query.query_map(params![num, SESSIONS + 1], |row| {
            let span = key_at(row.get::<_, Micros>(1)? - spread.late)
                ..=key_at(row.get::<_, Micros>(2)? + spread.early) + 1;
            Ok(Source {
                place: Place::Session(row.get(0)?),
                span,
            })
        })?;
        let mut sources = found.collect::<Result<Vec<_>>>()?;
        if sources.len() > SESSIONS as usize {
            return Ok(None);
        }
        sources.retain(|source| {
            source.span.end() >= self.range.start() && source.span.start() <= self.range.end()
        });
        Ok(Some(sources))
    }
}

impl SessionCheck {
    fn admits(&mut self, conn: &Connection, num: i64) -> Result<bool, Fault> {
        if let Some(known) = self.known.get(&num) {
            return Ok(*known);
        }
        let admits = self.filter.matches(&sessions::by_number(conn, num)?);
        self.known.insert(num, admits);
        Ok(admits)
    }
}

/// How far starts lie from the moments in their ids.
struct Spread {
    early: Micros,
    late: Micros,
}

impl Spread {
    fn read(conn: &Connection) -> Result<Self> {
        conn.prepare_cached("SELECT early, late FROM spread")?
            .query_row([], |row| {
                Ok(Self {
                    early: row.get(0)?,
                    late: row.get(1)?,
                })
            })
    }
}

/// Keys that calls in the time asked for can have; nothing when the log is empty. It ends at the newest call there is:
/// a long answer does not run after a busy writer.
fn range(conn: &Connection, filter: &CallFilter) -> Result<Option<RangeInclusive<i64>>> {
    let newest: Option<i64> = conn
        .prepare_cached("SELECT max(id) FROM call")?
        .query_row([], |row| row.get(0))?;
    let Some(newest) = newest else {
        return Ok(None);
    };
    let spread = Spread::read(conn)?;
    let start = filter
        .since
        .map_or(0, |since| key_at(since.saturating_sub(spread.late)));
    let end = filter.until.map_or(newest, |until| {
        key_at(until.saturating_add(spread.early)).saturating_add(0xffff)
    });
    Ok(Some(start..=end.min(newest)))
}

/// Calls under these sources, up to `most`.
fn count(conn: &Connection, sources: &[Source], most: u32) -> Result<u32> {
    let mut total = 0;
    for Source { place, span } in sources {
        let (query, selector) = match place {
            Place::All => (
                "SELECT count(*) FROM (SELECT 1 FROM call WHERE id BETWEEN ?1 AND ?2 AND ?4 IS NULL LIMIT ?3)",
                None,
            ),
            Place::Tool(num) => (
                "SELECT count(*) FROM (SELECT 1 FROM call WHERE tool = ?4 AND id BETWEEN ?1 AND ?2 LIMIT ?3)",
                Some(*num),
            ),
            Place::Outcome(code) => (
                "SELECT count(*) FROM (SELECT 1 FROM call WHERE outcome = ?4 AND outcome <> 0 AND id BETWEEN ?1 AND ?2 LIMIT ?3)",
                Some(i64::from(*code)),
            ),
            Place::Session(num) => (
                "SELECT count(*) FROM (SELECT 1 FROM call WHERE session = ?4 AND id BETWEEN ?1 AND ?2 LIMIT ?3)",
                Some(*num),
            ),
        };
        total += conn.prepare_cached(query)?.query_row(
            params![
                span.start(),
                span.end(),
                most.saturating_sub(total),
                selector
            ],
            |row| row.get::<_, u32>(0),
        )?;
    }
    Ok(total)
}
