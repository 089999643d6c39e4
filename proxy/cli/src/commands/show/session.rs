//! A session as a page a person can read: who, when and how long above, the timeline, the sums below.

use std::io::Write as _;

use anyhow::Context as _;
use callbox_store::{Call, CallFilter, SessionSummary};
use uuid::Uuid;

use super::GONE;
use super::timeline::{Timeline, end};
use crate::clock;
use crate::log::Log;
use crate::terminal::Screen;
use crate::text::{count, plural, truncate, visible, width};
use crate::words::{self, BOLD, DIM};

pub(super) fn print(log: &Log, id: Uuid, full: bool) -> anyhow::Result<()> {
    let summary = log.reader.session(id)?.context(GONE)?;
    let calls = log.reader.calls(
        &CallFilter {
            session: Some(id),
            ..CallFilter::default()
        },
        None,
    )?;
    let messages = log.reader.messages(id)?;
    let mut screen = Screen::stdout();
    if full {
        screen.width = None;
    }
    let short = log.short_session(id);
    head(&mut screen, &summary, &short)?;
    Timeline::new(&mut screen, &calls, &messages, full).print()?;
    totals(&mut screen, &summary, &calls)?;
    screen.flush()?;
    let interesting = calls
        .iter()
        .rfind(|call| words::failed(call.outcome))
        .or(calls.last());
    if let Some(Call { seq, .. }) = interesting {
        writeln!(
            anstream::stderr(),
            "hint: callbox show {short} {seq} shows all of call {seq}"
        )?;
    }
    Ok(())
}

fn head(screen: &mut Screen, summary: &SessionSummary, short: &str) -> anyhow::Result<()> {
    let session = &summary.session;
    let client = session
        .client
        .as_ref()
        .map_or_else(|| "unknown client".to_owned(), words::client);
    let asserted = if session.asserted { " (asserted)" } else { "" };
    let mut about = vec![
        format!("session {short}"),
        format!("{client} -> {}", visible(&session.upstream)),
        visible(
            session
                .protocol_version
                .as_deref()
                .unwrap_or("unknown revision"),
        )
        .into_owned(),
    ];
    about.extend(
        session
            .tenant
            .as_ref()
            .map(|tenant| format!("tenant {}{asserted}", visible(tenant))),
    );
    about.extend(
        session
            .principal
            .as_ref()
            .map(|principal| format!("principal {}{asserted}", screen.principal(principal))),
    );
    let when = [
        session.id.to_string(),
        format!("{} UTC", clock::date_time(session.started_at)),
        format!(
            "lasted {}",
            clock::span(clock::between(session.started_at, summary.last_at))
        ),
        format!("source {}", words::name(session.source)),
    ];
    flow(screen, &about, BOLD)?;
    flow(screen, &when, DIM)
}

/// Facts side by side, on as many lines as it takes.
fn flow(screen: &mut Screen, facts: &[String], style: anstyle::Style) -> anyhow::Result<()> {
    let cells = screen.width.unwrap_or(usize::MAX);
    let mut line = String::new();
    for fact in facts {
        let fact = truncate(fact, cells.saturating_sub(2));
        if !line.is_empty() && width(&line) + 2 + width(&fact) > cells {
            writeln!(screen, "{style}{line}{style:#}")?;
            line.clear();
        }
        line += if line.is_empty() { "" } else { "  " };
        line += &fact;
    }
    Ok(writeln!(screen, "{style}{line}{style:#}")?)
}

fn totals(screen: &mut Screen, summary: &SessionSummary, calls: &[Call]) -> anyhow::Result<()> {
    let of = |wanted: fn(&Call) -> bool| calls.iter().filter(|call| wanted(call)).count();
    let failed = of(|call| words::failed(call.outcome));
    let pending = of(|call| call.outcome == callbox_store::Outcome::Pending);
    let in_tools = calls.iter().filter_map(|call| call.duration_us).sum();
    let mut parts = vec![
        plural(calls.len() as u64, "call"),
        format!("{failed} failed"),
    ];
    if pending > 0 {
        parts.push(format!("{pending} pending"));
    }
    parts.push(format!("{} in tools", clock::span(in_tools)));
    if calls.len() > 1 {
        parts.push(format!("{} between them", clock::span(between(calls))));
    }
    writeln!(screen, "{BOLD}{}{BOLD:#}", parts.join(", "))?;
    let removed = summary.calls.saturating_sub(calls.len() as u64);
    if removed > 0 {
        writeln!(
            screen,
            "{DIM}{} more no longer in the log{DIM:#}",
            count(removed)
        )?;
    }
    Ok(())
}

/// Time in which no call ran, from the first to the last.
fn between(calls: &[Call]) -> u64 {
    let mut idle = 0;
    let mut busy_until = calls.first().map_or(0, end);
    for call in calls {
        idle += clock::between(busy_until, call.started_at);
        busy_until = busy_until.max(end(call));
    }
    idle
}
