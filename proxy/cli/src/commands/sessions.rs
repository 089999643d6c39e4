//! `sessions`: a table for people, JSON Lines for machines.

use std::io::Write as _;

use callbox_store::SessionSummary;

use crate::args::SessionsArgs;
use crate::call_list::Dates;
use crate::exit::Exit;
use crate::log::Log;
use crate::table::{Cell, Column, Table};
use crate::terminal::{self, Screen};
use crate::text::{count, truncate, visible};
use crate::words::{self, BAD, DIM, ID, PLAIN};
use crate::{clock, ids};

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
    table(&sessions)?;
    let mut stderr = anstream::stderr();
    if sessions.is_empty() {
        writeln!(stderr, "no sessions match in {}", log.dir.display())?;
    } else if limit == Some(sessions.len()) {
        writeln!(
            stderr,
            "only the last {} are listed; --limit 0 lists all",
            sessions.len()
        )?;
    }
    Ok(Exit::Ok)
}

fn table(sessions: &[SessionSummary]) -> anyhow::Result<()> {
    if sessions.is_empty() {
        return Ok(());
    }
    let mut screen = Screen::stdout();
    let dates = Dates::of(
        &screen,
        sessions.iter().map(|summary| summary.session.started_at),
    );
    let names = ids::apart(
        &sessions
            .iter()
            .map(|summary| summary.session.id)
            .collect::<Vec<_>>(),
    );
    let rows: Vec<Vec<Cell>> = sessions
        .iter()
        .zip(names)
        .map(|(summary, name)| row(&screen, &dates, summary, name))
        .collect();
    let mut table = Table::new(vec![
        Column::new(dates.title()),
        Column::new("ID"),
        Column::new("LASTED").right(),
        Column::new("CALLS").right(),
        Column::new("FAILED").right(),
        Column::new("CLIENT").shrinks(),
        Column::new("UPSTREAM").shrinks(),
        Column::new("REVISION"),
        Column::new("FOUND BY"),
        Column::new("TENANT").shrinks(),
        Column::new("PRINCIPAL"),
    ]);
    table.measure(&rows);
    table.head(&mut screen)?;
    for row in &rows {
        table.row(&mut screen, row)?;
    }
    Ok(screen.flush()?)
}

fn row(screen: &Screen, dates: &Dates, summary: &SessionSummary, name: String) -> Vec<Cell> {
    let session = &summary.session;
    let shown =
        |text: Option<&str>| text.map_or_else(|| "-".to_owned(), |text| visible(text).into_owned());
    let principal = shown(session.principal.as_deref());
    // `h:` and six digits tell principals apart on a screen, and --principal takes them.
    let principal = if screen.width.is_some() {
        truncate(&principal, 8).replace('…', "")
    } else {
        principal
    };
    let asserted = if session.asserted { " (asserted)" } else { "" };
    vec![
        Cell::styled(dates.show(session.started_at), DIM),
        Cell::styled(name, ID),
        Cell::new(clock::span(clock::between(
            session.started_at,
            summary.last_at,
        ))),
        Cell::new(count(summary.calls)),
        Cell::styled(
            count(summary.failed),
            if summary.failed > 0 { BAD } else { PLAIN },
        ),
        Cell::new(
            session
                .client
                .as_ref()
                .map_or_else(|| "-".to_owned(), words::client),
        ),
        Cell::new(visible(&session.upstream)),
        Cell::new(shown(session.protocol_version.as_deref())),
        Cell::new(words::name(session.source)),
        Cell::new(shown(session.tenant.as_deref())),
        Cell::new(format!("{principal}{asserted}")),
    ]
}
