//! Sessions by number, id, key, and by what a filter asks for.

use rusqlite::{Connection, OptionalExtension, Result, Row, ToSql};
use uuid::Uuid;

use super::Fault;
use crate::codes::Coded;
use crate::filter::SessionFilter;
use crate::names::{self, Role};
use crate::record::{Client, Micros, Session, SessionSource};
use crate::summary::SessionSummary;

/// A row, its names still numbers.
struct SessionRow {
    session: Session,
    upstream: i64,
    principal: Option<i64>,
    tenant: Option<i64>,
    client: Option<i64>,
    client_version: Option<String>,
    last_at: Option<Micros>,
    calls: Option<i64>,
    failed: Option<i64>,
    seq: Option<u32>,
}

macro_rules! sessions {
    ($rest:literal) => {
        concat!(
            "SELECT id, key, source, upstream, principal, tenant, asserted, client, client_version, protocol_version,
                 started_at, last_at, calls, failed, seq
             FROM session LEFT JOIN activity ON activity.session = session.num ",
            $rest
        )
    };
}

impl SessionRow {
    fn read(row: &Row<'_>) -> Result<Self> {
        let source = SessionSource::from_code(row.get(2)?).unwrap_or(SessionSource::Inferred);
        Ok(Self {
            session: Session {
                id: Uuid::from_bytes(row.get(0)?),
                source,
                key: row.get(1)?,
                upstream: String::new(),
                principal: None,
                tenant: None,
                asserted: row.get(6)?,
                client: None,
                protocol_version: row.get(9)?,
                started_at: row.get(10)?,
            },
            upstream: row.get(3)?,
            principal: row.get(4)?,
            tenant: row.get(5)?,
            client: row.get(7)?,
            client_version: row.get(8)?,
            last_at: row.get(11)?,
            calls: row.get(12)?,
            failed: row.get(13)?,
            seq: row.get(14)?,
        })
    }

    /// Puts the names in.
    fn summary(mut self, conn: &Connection) -> Result<(SessionSummary, u32)> {
        let name = |num: Option<i64>| match num {
            Some(num) => names::text(conn, num),
            None => Ok(None),
        };
        self.session.upstream = name(Some(self.upstream))?.unwrap_or_default();
        self.session.principal = name(self.principal)?;
        self.session.tenant = name(self.tenant)?;
        self.session.client = name(self.client)?.map(|name| Client {
            name,
            version: self.client_version,
        });
        let last_at = self.last_at.unwrap_or(self.session.started_at);
        let count = |number: Option<i64>| number.unwrap_or_default().unsigned_abs();
        let (calls, failed) = (count(self.calls), count(self.failed));
        Ok((
            SessionSummary {
                session: self.session,
                last_at,
                calls,
                failed,
            },
            self.seq.unwrap_or_default(),
        ))
    }
}

/// One session with its counters.
pub(crate) fn by_id(conn: &Connection, id: Uuid) -> Result<Option<SessionSummary>, Fault> {
    let row = conn
        .prepare_cached(sessions!("WHERE id = ?1"))?
        .query_row([id.as_bytes()], SessionRow::read)
        .optional()?;
    Ok(row
        .map(|row| row.summary(conn))
        .transpose()?
        .map(|(summary, _)| summary))
}

/// The latest session with this key, and the number of its last call.
pub(crate) fn by_key(conn: &Connection, key: &[u8; 16]) -> Result<Option<(Session, u32)>, Fault> {
    let row = conn
        .prepare_cached(sessions!("WHERE key = ?1 ORDER BY num DESC LIMIT 1"))?
        .query_row([key], SessionRow::read)
        .optional()?;
    Ok(row
        .map(|row| row.summary(conn))
        .transpose()?
        .map(|(summary, seq)| (summary.session, seq)))
}

/// The session of a call's row.
pub(crate) fn by_number(conn: &Connection, num: i64) -> Result<Session> {
    let row = conn
        .prepare_cached(sessions!("WHERE num = ?1"))?
        .query_row([num], SessionRow::read)
        .optional()?;
    let found = row.map(|row| row.summary(conn)).transpose()?;
    Ok(found.map_or_else(lost, |(summary, _)| summary.session))
}

fn lost() -> Session {
    Session {
        id: Uuid::nil(),
        source: SessionSource::Inferred,
        key: [0; 16],
        upstream: String::new(),
        principal: None,
        tenant: None,
        asserted: false,
        client: None,
        protocol_version: None,
        started_at: 0,
    }
}

/// The number of a session.
pub(crate) fn number(conn: &Connection, id: Uuid) -> Result<Option<i64>> {
    conn.prepare_cached("SELECT num FROM session WHERE id = ?1")?
        .query_row([id.as_bytes()], |row| row.get(0))
        .optional()
}

/// The last sessions that the filter asks for, in the order they started.
pub(crate) fn list(
    conn: &Connection,
    filter: &SessionFilter,
    limit: Option<usize>,
) -> Result<Vec<SessionSummary>, Fault> {
    let Some((attribute, num)) = narrowest(conn, filter)? else {
        return Ok(Vec::new());
    };
    let query = match attribute {
        Attribute::Principal => sessions!("WHERE principal = ?1 ORDER BY num DESC"),
        Attribute::Tenant => sessions!("WHERE tenant = ?1 ORDER BY num DESC"),
        Attribute::Client => sessions!("WHERE client = ?1 ORDER BY num DESC"),
        Attribute::None => sessions!("ORDER BY num DESC"),
    };
    let num: &[&dyn ToSql] = if attribute == Attribute::None {
        &[]
    } else {
        &[&num]
    };
    let mut query = conn.prepare_cached(query)?;
    let mut rows = query.query_map(num, SessionRow::read)?;
    let mut found = Vec::new();
    while limit.is_none_or(|limit| found.len() < limit)
        && let Some(row) = rows.next().transpose()?
    {
        let in_time = filter
            .since
            .is_none_or(|since| row.last_at.unwrap_or(row.session.started_at) >= since)
            && filter
                .until
                .is_none_or(|until| row.session.started_at < until);
        if in_time {
            let (summary, _) = row.summary(conn)?;
            if filter.matches(&summary.session) {
                found.push(summary);
            }
        }
    }
    found.sort_by_key(|summary| (summary.session.started_at, summary.session.id));
    Ok(found)
}

/// What an index can look for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attribute {
    Principal,
    Tenant,
    Client,
    None,
}

/// The attribute to look for, with the number of the name asked for; nothing when nobody has that name.
pub(crate) fn narrowest(
    conn: &Connection,
    filter: &SessionFilter,
) -> Result<Option<(Attribute, i64)>> {
    let asked = [
        (Attribute::Principal, Role::Principal, &filter.principal),
        (Attribute::Client, Role::Client, &filter.client),
        (Attribute::Tenant, Role::Tenant, &filter.tenant),
    ];
    for (attribute, role, name) in asked {
        if let Some(name) = name {
            return Ok(names::find(conn, role, name)?.map(|num| (attribute, num)));
        }
    }
    Ok(Some((Attribute::None, 0)))
}
