//! A session as a timeline a person can read: who, when, how long, what was asked, what came back, what went wrong.

use std::collections::HashMap;
use std::io::Write as _;

use anyhow::Context as _;
use callbox_store::{Call, CallFilter, Capture, Message, Micros, SessionSummary};
use uuid::Uuid;

use super::GONE;
use super::message::{Note, notes};
use crate::answer::{Part, error_text, parts, summary};
use crate::clock;
use crate::json::{assignments, compact};
use crate::log::Log;
use crate::table::{Cell, Column, Table};
use crate::terminal::Screen;
use crate::text::{count, plural, truncate, visible};
use crate::words::{self, BAD, BOLD, DIM, ODD};

/// A silence that deserves a line.
const GAP: u64 = 10_000_000;
/// Lines of an error's text without `--full`.
const ERROR_LINES: usize = 3;

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
    head(&mut screen, &summary)?;
    Timeline::new(&mut screen, &calls, &messages, full).print()?;
    totals(&mut screen, &summary, &calls)?;
    Ok(screen.flush()?)
}

fn head(screen: &mut Screen, summary: &SessionSummary) -> anyhow::Result<()> {
    let session = &summary.session;
    let client = session
        .client
        .as_ref()
        .map_or_else(|| "unknown client".to_owned(), words::client);
    let revision = session
        .protocol_version
        .as_deref()
        .unwrap_or("unknown revision");
    let asserted = if session.asserted { " (asserted)" } else { "" };
    write!(
        screen,
        "session {BOLD}{}{BOLD:#}  {client} -> {}",
        session.id,
        visible(&session.upstream)
    )?;
    write!(screen, "  {}", visible(revision))?;
    if let Some(tenant) = &session.tenant {
        write!(screen, "  tenant {}{asserted}", visible(tenant))?;
    }
    if let Some(principal) = &session.principal {
        write!(screen, "  principal {}{asserted}", visible(principal))?;
    }
    let lasted = clock::span(clock::between(session.started_at, summary.last_at));
    let found = words::name(session.source);
    let from = clock::date_time(session.started_at);
    writeln!(
        screen,
        "\n{DIM}{from} UTC, lasted {lasted}, found by {found}{DIM:#}"
    )?;
    Ok(())
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

fn end(call: &Call) -> Micros {
    let took = call
        .duration_us
        .and_then(|took| i64::try_from(took).ok())
        .unwrap_or(0);
    call.started_at.saturating_add(took)
}

enum Item<'a> {
    Call(&'a Call, Vec<Cell>),
    Note(Note<'a>),
}

struct Timeline<'a> {
    screen: &'a mut Screen,
    full: bool,
    items: Vec<(Micros, Item<'a>)>,
    /// Messages that belong to a call, by its id.
    inside: HashMap<Uuid, Vec<&'a Message>>,
    /// Where the text of a line begins, behind number and time.
    margin: usize,
}

impl<'a> Timeline<'a> {
    fn new(screen: &'a mut Screen, calls: &'a [Call], messages: &'a [Message], full: bool) -> Self {
        let known: std::collections::HashSet<Uuid> = calls.iter().map(|call| call.id).collect();
        let (inside, around): (Vec<&Message>, Vec<&Message>) = messages
            .iter()
            .partition(|message| message.call.is_some_and(|call| known.contains(&call)));
        let room = screen.room();
        let mut items: Vec<_> = calls
            .iter()
            .map(|call| (call.started_at, Item::Call(call, row(call, room))))
            .collect();
        items.extend(
            notes(around)
                .into_iter()
                .map(|note| (note.first.at, Item::Note(note))),
        );
        items.sort_by_key(|(at, _)| *at);
        let mut by_call: HashMap<Uuid, Vec<&Message>> = HashMap::new();
        for message in inside {
            by_call
                .entry(message.call.unwrap_or_default())
                .or_default()
                .push(message);
        }
        let digits = calls
            .iter()
            .map(|call| call.seq)
            .max()
            .unwrap_or(0)
            .to_string()
            .len();
        Self {
            screen,
            full,
            items,
            inside: by_call,
            margin: digits + 2,
        }
    }

    fn print(mut self) -> anyhow::Result<()> {
        let mut table = Table::new(vec![
            Column::new("")
                .right()
                .at_least(self.margin.saturating_sub(2)),
            Column::new(""),
            Column::new("").shrinks(),
            Column::new("").shrinks(),
            Column::new(""),
            Column::new("").right(),
            Column::new(""),
        ]);
        table.measure(self.items.iter().filter_map(|(_, item)| match item {
            Item::Call(_, row) => Some(row),
            Item::Note(_) => None,
        }));
        let mut until = None;
        for (at, item) in std::mem::take(&mut self.items) {
            self.gap(until, at)?;
            match item {
                Item::Call(call, row) => {
                    table.row(self.screen, &row)?;
                    self.below(call)?;
                    until = until.max(Some(end(call)));
                }
                Item::Note(note) => {
                    let time = clock::time(at);
                    self.note(&note, &format!("{:1$}{time}  ", "", self.margin))?;
                    until = until.max(Some(note.answer.map_or(at, |answer| answer.at)));
                }
            }
        }
        Ok(())
    }

    fn gap(&mut self, until: Option<Micros>, at: Micros) -> anyhow::Result<()> {
        let silence = until.map_or(0, |until| clock::between(until, at));
        if silence >= GAP {
            writeln!(
                self.screen,
                "{:1$}{DIM}… {2}{DIM:#}",
                "",
                self.margin,
                clock::span(silence)
            )?;
        }
        Ok(())
    }

    /// What does not fit a call's own line.
    fn below(&mut self, call: &Call) -> anyhow::Result<()> {
        let indent = format!("{:1$}", "", self.margin + 2);
        for line in self.wrong(call) {
            self.line(&indent, &line, BAD)?;
        }
        for note in notes(self.inside.remove(&call.id).unwrap_or_default()) {
            self.note(&note, &indent)?;
        }
        if let Some(answer) = &call.confirmation {
            self.line(&indent, &format!("confirmation: {}", visible(answer)), DIM)?;
        }
        if call.legs > 1 {
            self.line(&indent, &format!("{} exchanges joined", call.legs), DIM)?;
        }
        if (call.capture.request, call.capture.response) != (Capture::Full, Capture::Full) {
            let reason = call.capture.reason.as_deref().unwrap_or("no reason given");
            let (request, response) = (
                words::name(call.capture.request),
                words::name(call.capture.response),
            );
            self.line(
                &indent,
                &format!(
                    "capture: request {request}, response {response}: {}",
                    visible(reason)
                ),
                ODD,
            )?;
        }
        if !call.flags.is_empty() {
            self.line(
                &indent,
                &format!("flags: {}", visible(&call.flags.join(", "))),
                ODD,
            )?;
        }
        Ok(())
    }

    /// The text of a failure, line by line.
    fn wrong(&self, call: &Call) -> Vec<String> {
        if !words::failed(call.outcome) {
            return Vec::new();
        }
        let texts: Vec<String> = match (&call.error, &call.result) {
            (Some(error), _) => vec![error_text(error)],
            (None, Some(result)) => parts(result)
                .into_iter()
                .map(|part| match part {
                    Part::Text(text) => text,
                    Part::Json { title, json } => {
                        format!("{title} {}", compact(json, 2000))
                    }
                })
                .collect(),
            (None, None) => Vec::new(),
        };
        let most = if self.full { usize::MAX } else { ERROR_LINES };
        let lines: Vec<&str> = texts
            .iter()
            .flat_map(|text| text.lines())
            .filter(|line| !line.trim().is_empty())
            .collect();
        let mut shown: Vec<String> = lines
            .iter()
            .take(most)
            .map(|line| visible(line).into_owned())
            .collect();
        if lines.len() > most {
            shown.push(format!(
                "… {} more",
                plural((lines.len() - most) as u64, "line")
            ));
        }
        shown
    }

    fn note(&mut self, note: &Note<'_>, indent: &str) -> anyhow::Result<()> {
        let flags = note.flags();
        let flags = if flags.is_empty() {
            String::new()
        } else {
            format!("  [{}]", visible(&flags.join(" ")))
        };
        let detail = note.detail(self.screen.room());
        let line = format!("{} {}  {detail}{flags}", note.arrow(), note.name());
        self.line(indent, line.trim_end(), DIM)
    }

    fn line(&mut self, indent: &str, text: &str, style: anstyle::Style) -> anyhow::Result<()> {
        let room = self
            .screen
            .width
            .filter(|_| !self.full)
            .map_or(usize::MAX, |cells| cells.saturating_sub(indent.len()));
        Ok(writeln!(
            self.screen,
            "{indent}{style}{}{style:#}",
            truncate(text, room)
        )?)
    }
}

fn row(call: &Call, room: usize) -> Vec<Cell> {
    let arguments = call
        .arguments
        .as_ref()
        .map(|json| assignments(json.get(), room))
        .unwrap_or_default();
    let mut told = if words::failed(call.outcome) {
        String::new()
    } else {
        summary(call, room)
    };
    if call.sample.as_ref().is_some_and(|sample| sample.selected) {
        told += if told.is_empty() {
            "sampled"
        } else {
            "  sampled"
        };
    }
    vec![
        Cell::styled(call.seq.to_string(), DIM),
        Cell::styled(clock::time(call.started_at), DIM),
        Cell::styled(visible(&call.tool), BOLD),
        Cell::new(arguments),
        Cell::styled(
            words::outcome(call.outcome),
            words::outcome_style(call.outcome),
        ),
        Cell::new(call.duration_us.map_or_else(|| "-".to_owned(), clock::span)),
        Cell::new(told),
    ]
}
