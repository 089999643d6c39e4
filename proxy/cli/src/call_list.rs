//! Calls as rows of a table, for `calls` and `tail`.

use callbox_store::{Call, Micros};
use uuid::Uuid;

use crate::answer::summary;
use crate::clock;
use crate::json::assignments;
use crate::log::Log;
use crate::table::{Cell, Column, Table};
use crate::terminal::Screen;
use crate::text::{truncate, visible};
use crate::words::{self, DIM, ID};

/// How much of a moment each row tells.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Dates {
    /// All rows are of this day; it is in the column's title.
    Day(String),
    /// Month and day with each row.
    Each,
    /// The whole moment, for other programs.
    Whole,
}

impl Dates {
    /// For rows that are all known.
    pub(crate) fn of(screen: &Screen, moments: impl IntoIterator<Item = Micros>) -> Self {
        let mut days = moments.into_iter().map(clock::date);
        let first = days.next().unwrap_or_default();
        if screen.width.is_some() && days.all(|day| day == first) {
            Self::Day(first)
        } else {
            Self::each(screen)
        }
    }

    /// For rows still to come.
    pub(crate) fn each(screen: &Screen) -> Self {
        if screen.width.is_some() {
            Self::Each
        } else {
            Self::Whole
        }
    }

    pub(crate) fn title(&self) -> &str {
        match self {
            Self::Day(day) => day,
            Self::Each | Self::Whole => "TIME",
        }
    }

    pub(crate) fn show(&self, at: Micros) -> String {
        match self {
            Self::Day(_) => clock::second(at),
            Self::Each => clock::day_second(at),
            Self::Whole => clock::rfc3339(at),
        }
    }
}

/// Cells in which the session has a place, too.
const ROOMY: usize = 100;

/// The table of calls, printed a page at a time.
#[derive(Default)]
pub(crate) struct CallList {
    table: Option<Table>,
    rows: usize,
}

impl CallList {
    /// Calls printed so far.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Prints these calls, and the titles before the first.
    pub(crate) fn page(
        &mut self,
        screen: &mut Screen,
        log: &Log,
        dates: &Dates,
        calls: &[Call],
    ) -> anyhow::Result<()> {
        let ids: Vec<Uuid> = calls.iter().map(|call| call.id).collect();
        let sessions: Vec<Uuid> = calls.iter().map(|call| call.session.id).collect();
        let names = log
            .short_calls(&ids)
            .into_iter()
            .zip(log.short_sessions(&sessions));
        let rows: Vec<Vec<Cell>> = names
            .zip(calls)
            .map(|(names, call)| row(screen, dates, call, names))
            .collect();
        if rows.is_empty() {
            return Ok(());
        }
        self.rows += rows.len();
        let first = self.table.is_none();
        let table = self
            .table
            .get_or_insert_with(|| Table::new(columns(screen, dates)));
        table.measure(&rows);
        if first {
            table.head(screen)?;
        }
        for row in &rows {
            table.row(screen, row)?;
        }
        Ok(())
    }
}

/// The session gives way first where there is little room.
fn columns(screen: &Screen, dates: &Dates) -> Vec<Column> {
    let mut columns = vec![Column::new(dates.title()), Column::new("ID")];
    if !screen.narrower_than(ROOMY) {
        columns.push(Column::new("SESSION"));
    }
    columns.extend([
        Column::new("TOOL").shrinks(),
        Column::new("OUTCOME"),
        Column::new("TOOK").right(),
        Column::new("ARGUMENTS"),
    ]);
    columns
}

fn row(
    screen: &Screen,
    dates: &Dates,
    call: &Call,
    (name, session): (String, String),
) -> Vec<Cell> {
    let mut row = vec![
        Cell::styled(dates.show(call.started_at), DIM),
        Cell::styled(name, ID),
    ];
    if !screen.narrower_than(ROOMY) {
        row.push(Cell::new(session));
    }
    row.extend([
        Cell::new(visible(&call.tool)),
        Cell::styled(
            words::outcome(call.outcome),
            words::outcome_style(call.outcome),
        ),
        Cell::new(call.duration_us.map_or_else(|| "-".to_owned(), clock::span)),
        Cell::new(asked(screen, call)),
    ]);
    row
}

/// What was asked, and what was said when it went wrong; flags first, since they are rare and the rest is long.
fn asked(screen: &Screen, call: &Call) -> String {
    /// What the arguments may take from the reason of a failure.
    const ASIDE: usize = 32;
    let room = screen.room();
    let mut text = String::new();
    if !call.flags.is_empty() {
        text = format!("[{}] ", visible(&call.flags.join(" ")));
    }
    let arguments = call
        .arguments
        .as_ref()
        .map(|json| assignments(json.get(), room))
        .unwrap_or_default();
    let told = if words::failed(call.outcome) {
        summary(call, room)
    } else {
        String::new()
    };
    if told.is_empty() {
        return text + &arguments;
    }
    let arguments = truncate(&arguments, screen.width.map_or(usize::MAX, |_| ASIDE));
    let arrow = if arguments.is_empty() { "-> " } else { " -> " };
    format!("{text}{arguments}{arrow}{told}")
}
