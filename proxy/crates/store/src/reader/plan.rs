//! From a filter to the places to look in, and to the check that each row found there must pass.
//!
//! Of several conditions one is followed, the others are checked. Counting stops early, so a poor guess costs a
//! millisecond.

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
use crate::segments::{self, Owner};

/// Fewer calls than this are looked at one by one, whatever else could be done.
const FEW: u32 = 2000;
/// With more sessions than this the calls are gone through instead: that many sessions have most of them.
const SESSIONS: u32 = 20_000;
/// Likewise with more lists.
const LISTS: usize = 100_000;

pub(super) const COUNT_ALL: &str =
    "SELECT count(*) FROM (SELECT 1 FROM call WHERE id BETWEEN ?1 AND ?2 AND ?4 IS NULL LIMIT ?3)";
pub(super) const COUNT_OUTCOME: &str = "SELECT count(*) FROM (SELECT 1 FROM call
    WHERE outcome = ?4 AND outcome <> 0 AND id BETWEEN ?1 AND ?2 LIMIT ?3)";
pub(super) const OF_PRINCIPAL: &str = "SELECT num, first_at, last_at
    FROM session JOIN activity ON activity.session = session.num WHERE principal = ?1 LIMIT ?2";
pub(super) const OF_TENANT: &str = "SELECT num, first_at, last_at
    FROM session JOIN activity ON activity.session = session.num WHERE tenant = ?1 LIMIT ?2";
pub(super) const OF_CLIENT: &str = "SELECT num, first_at, last_at
    FROM session JOIN activity ON activity.session = session.num WHERE client = ?1 LIMIT ?2";

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
            if sessions::narrowest(conn, &attributes)?.is_none() {
                return Ok(None);
            }
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

    /// The way on which the fewest calls have to be looked at, as far as counting a few of them tells.
    fn choose(&self, conn: &Connection) -> Result<Vec<Source>, Fault> {
        let everywhere = |place| Source {
            place,
            span: self.range.clone(),
        };
        let all = vec![everywhere(Place::All)];
        if self.few(conn, Place::All)? {
            return Ok(all);
        }
        if let Some(outcomes) = &self.outcomes
            && !outcomes.contains(&Outcome::Ok.code())
        {
            let places: Vec<_> = outcomes.iter().map(|code| Place::Outcome(*code)).collect();
            let mut few = true;
            for place in &places {
                few &= self.few(conn, *place)?;
            }
            if few || self.tools.is_none() && self.session.is_none() && self.sessions.is_none() {
                return Ok(places.into_iter().map(everywhere).collect());
            }
        }
        let by_sessions = match (self.session, &self.sessions) {
            (Some(num), _) => Some(vec![(num, self.range.clone())]),
            (None, Some(check)) => sessions_asked_for(conn, &check.filter)?,
            (None, None) => None,
        };
        let tools: Vec<_> = self
            .tools
            .iter()
            .flatten()
            .map(|num| (Owner::Tool(*num), self.range.clone()))
            .collect();
        match (by_sessions, &self.tools) {
            (None, None) => Ok(all),
            (None, Some(_)) => self.through_lists(conn, &tools),
            (Some(sessions), Some(names))
                if segments::rarer(conn, names, sessions.iter().map(|(num, _)| *num))? =>
            {
                self.through_lists(conn, &tools)
            }
            (Some(sessions), _) => {
                let lists = sessions
                    .into_iter()
                    .map(|(num, span)| (Owner::Session(num), span));
                self.through_lists(conn, &lists.collect::<Vec<_>>())
            }
        }
    }

    /// Whether there are only few calls at a place.
    fn few(&self, conn: &Connection, place: Place) -> Result<bool> {
        let (query, outcome) = match place {
            Place::Outcome(code) => (COUNT_OUTCOME, Some(code)),
            _ => (COUNT_ALL, None),
        };
        let (start, end) = self.range.clone().into_inner();
        let count: u32 = conn
            .prepare_cached(query)?
            .query_row(params![start, end, FEW, outcome], |row| row.get(0))?;
        Ok(count < FEW)
    }

    /// Lists of these owners, and what is in no list.
    fn through_lists(
        &self,
        conn: &Connection,
        owners: &[(Owner, RangeInclusive<i64>)],
    ) -> Result<Vec<Source>, Fault> {
        let overlap = |span: &RangeInclusive<i64>, other: &RangeInclusive<i64>| {
            span.start() <= other.end() && other.start() <= span.end()
        };
        let mut sources = Vec::new();
        for segment in segments::all(conn)? {
            let span = segment.first..=segment.last;
            if !overlap(&span, &self.range) {
                continue;
            }
            for (owner, active) in owners {
                if overlap(&span, active) {
                    sources.push(Source {
                        place: Place::List(segment, *owner),
                        span: span.clone(),
                    });
                }
            }
            if sources.len() > LISTS {
                return Ok(vec![Source {
                    place: Place::All,
                    span: self.range.clone(),
                }]);
            }
        }
        let listed = segments::listed(conn)?;
        sources.push(Source {
            place: Place::Late,
            span: self.range.clone(),
        });
        sources.push(Source {
            place: Place::All,
            span: listed.saturating_add(1)..=i64::MAX,
        });
        Ok(sources)
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

/// A session and the keys its calls can have.
type ActiveSession = (i64, RangeInclusive<i64>);

/// The sessions asked for, each with the span of its calls; nothing when there are too many, or no index finds them.
fn sessions_asked_for(
    conn: &Connection,
    filter: &SessionFilter,
) -> Result<Option<Vec<ActiveSession>>, Fault> {
    let Some((attribute, num)) = sessions::narrowest(conn, filter)? else {
        return Ok(Some(Vec::new()));
    };
    let query = match attribute {
        Attribute::Principal => OF_PRINCIPAL,
        Attribute::Tenant => OF_TENANT,
        Attribute::Client => OF_CLIENT,
        Attribute::None => return Ok(None),
    };
    let spread = Spread::read(conn)?;
    let mut query = conn.prepare_cached(query)?;
    let found = query.query_map(params![num, SESSIONS + 1], |row| {
        let (first_at, last_at): (Micros, Micros) = (row.get(1)?, row.get(2)?);
        let last = key_at(last_at.saturating_add(spread.early)).saturating_add(0xffff);
        Ok((
            row.get(0)?,
            key_at(first_at.saturating_sub(spread.late))..=last,
        ))
    })?;
    let found = found.collect::<Result<Vec<_>>>()?;
    Ok((found.len() <= SESSIONS as usize).then_some(found))
}

/// How far starts lie from the moments in their ids.
struct Spread {
    early: Micros,
    late: Micros,
}

impl Spread {
    fn read(conn: &Connection) -> Result<Self> {
        conn.prepare_cached("SELECT early, late FROM bounds")?
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
