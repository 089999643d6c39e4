//! `sessions`: a table for people, JSON Lines for machines.

use std::io::Write as _;

use callbox_store::SessionSummary;
use uuid::Uuid;

use crate::args::SessionsArgs;
use crate::call_list::Dates;
use crate::clock;
use crate::exit::Exit;
use crate::log::Log;
use crate::table::{Cell, Column, Table};
use crate::terminal::{self, Screen};
use crate::text::{count, visible};
use crate::words::{self, BAD, DIM, ID, PLAIN};

/// Cells in which it has a place how long a session lasted, and how it was found.
const ROOMY: usize = 100;
const WIDE: usize = 130;

pub(super) fn run(log: &Log, args: &SessionsArgs) -> anyhow::Result<Exit> {
    let limit = args.list.limit();
    let sessions = log.reader.sessions(&args.filter.resolve(log)?, limit)?;
    if args.list.json {
        let mut out = terminal::lines();
        for session in sessions {
            writeln!(out, "{}", session.to_json())?;
        }
        out.flush()?;
        return Ok(Exit::Ok);
    }
    table(log, &sessions)?;
    let mut stderr = anstream::stderr();
    if sessions.is_empty() {
        writeln!(stderr, "no sessions match in {}", log.dir.display())?;
    } else if let Some(note) = args.list.note(sessions.len()) {
        writeln!(stderr, "{note}")?;
    }
    Ok(Exit::Ok)
}

fn table(log: &Log, sessions: &[SessionSummary]) -> anyhow::Result<()> {
    if sessions.is_empty() {
        return Ok(());
    }
    let mut screen = Screen::stdout();
    let dates = Dates::of(
        &screen,
        sessions.iter().map(|summary| summary.session.started_at),
    );
    let ids: Vec<Uuid> = sessions.iter().map(|summary| summary.session.id).collect();
    let names = log.short_sessions(&ids);
    let rows: Vec<Vec<Cell>> = sessions
        .iter()
        .zip(names)
        .map(|(summary, name)| row(&screen, &dates, summary, name))
        .collect();
    let mut table = Table::new(columns(&screen, &dates));
    table.measure(&rows);
    table.head(&mut screen)?;
    for row in &rows {
        table.row(&mut screen, row)?;
    }
    Ok(screen.flush()?)
}

fn columns(screen: &Screen, dates: &Dates) -> Vec<Column> {
    let mut columns = vec![Column::new(dates.title()), Column::new("ID")];
    if !screen.narrower_than(ROOMY) {
        columns.push(Column::new("LASTED").right());
    }
    columns.extend([
        Column::new("CALLS").right(),
        Column::new("FAILED").right(),
        Column::new("CLIENT").shrinks(),
        Column::new("UPSTREAM").shrinks(),
    ]);
    if !screen.narrower_than(WIDE) {
        columns.extend([Column::new("REVISION").shrinks(), Column::new("SOURCE")]);
    }
    columns.extend([Column::new("TENANT").shrinks(), Column::new("PRINCIPAL")]);
    columns
}

/// How it was found, how long it lasted and its revision give way first where there is little room.
fn row(screen: &Screen, dates: &Dates, summary: &SessionSummary, name: String) -> Vec<Cell> {
    let session = &summary.session;
    let shown =
        |text: Option<&str>| text.map_or_else(|| "-".to_owned(), |text| visible(text).into_owned());
    let failed = if summary.failed > 0 { BAD } else { PLAIN };
    let mut row = vec![
        Cell::styled(dates.show(session.started_at), DIM),
        Cell::styled(name, ID),
    ];
    if !screen.narrower_than(ROOMY) {
        let lasted = clock::between(session.started_at, summary.last_at);
        row.push(Cell::new(clock::span(lasted)));
    }
    row.extend([
        Cell::new(count(summary.calls)),
        Cell::styled(count(summary.failed), failed),
        Cell::new(
            session
                .client
                .as_ref()
                .map_or_else(|| "-".to_owned(), words::client),
        ),
        Cell::new(visible(&session.upstream)),
    ]);
    if !screen.narrower_than(WIDE) {
        let revision = shown(session.protocol_version.as_deref());
        row.extend([Cell::new(revision), Cell::new(words::name(session.source))]);
    }
    let principal = session
        .principal
        .as_deref()
        .map_or_else(|| "-".to_owned(), |principal| screen.principal(principal));
    let asserted = if session.asserted { " asserted" } else { "" };
    row.extend([
        Cell::new(shown(session.tenant.as_deref())),
        Cell::new(format!("{principal}{asserted}")),
    ]);
    row
}
