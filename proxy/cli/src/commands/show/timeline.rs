//! The lines of a session: calls in their columns, with what belongs to each below it, and the other messages between.

use std::collections::{HashMap, HashSet};
use std::io::Write as _;

use callbox_store::{Call, Capture, Message, Micros};
use uuid::Uuid;

use super::message::{Note, notes};
use crate::answer::{Part, error_text, parts, summary};
use crate::clock;
use crate::json::{assignments, compact};
use crate::table::{Cell, Column, Table};
use crate::terminal::Screen;
use crate::text::{plural, truncate, visible};
use crate::words::{self, BAD, BOLD, DIM, ODD, PLAIN};

/// A silence that deserves a line.
const GAP: u64 = 10_000_000;
/// Cells in which an answer has its place on the line of its call.
const ROOMY: usize = 100;
/// Lines of an error's text without `--full`.
const ERROR_LINES: usize = 3;

/// When a call was over; its start, while it is not.
pub(super) fn end(call: &Call) -> Micros {
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

/// Everything of a session, ready to be printed.
pub(super) struct Timeline<'a> {
    screen: &'a mut Screen,
    full: bool,
    items: Vec<(Micros, Item<'a>)>,
    /// Messages that belong to a call, by its id.
    inside: HashMap<Uuid, Vec<&'a Message>>,
    /// Where the text of a line begins, behind number and time.
    margin: usize,
}

impl<'a> Timeline<'a> {
    pub(super) fn new(
        screen: &'a mut Screen,
        calls: &'a [Call],
        messages: &'a [Message],
        full: bool,
    ) -> Self {
        let known: HashSet<Uuid> = calls.iter().map(|call| call.id).collect();
        let mut around = Vec::new();
        let mut inside: HashMap<Uuid, Vec<&Message>> = HashMap::new();
        for message in messages {
            match message.call.filter(|call| known.contains(call)) {
                Some(call) => inside.entry(call).or_default().push(message),
                None => around.push(message),
            }
        }
        let lines = calls
            .iter()
            .map(|call| (call.started_at, Item::Call(call, row(call, screen))));
        let mut items: Vec<_> = lines.collect();
        let notes = notes(around).into_iter().filter(|note| !note.is_routine());
        items.extend(notes.map(|note| (note.first.at, Item::Note(note))));
        items.sort_by_key(|(at, _)| *at);
        let longest = calls.iter().map(|call| call.seq).max().unwrap_or(0);
        let digits = longest.to_string().len();
        Self {
            screen,
            full,
            items,
            inside,
            margin: digits + 2,
        }
    }

    pub(super) fn print(mut self) -> anyhow::Result<()> {
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
        let mut until: Option<Micros> = None;
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
        let Some(until) = until else { return Ok(()) };
        let indent = " ".repeat(self.margin);
        let silence = clock::between(until, at);
        if silence >= GAP {
            self.line(&indent, &format!("… {}", clock::span(silence)), DIM)?;
        }
        if clock::date(until) != clock::date(at) {
            self.line(&indent, &clock::date(at), DIM)?;
        }
        Ok(())
    }

    /// What does not fit a call's own line.
    fn below(&mut self, call: &Call) -> anyhow::Result<()> {
        let indent = format!("{:1$}", "", self.margin + 2);
        for line in self.wrong(call) {
            self.line(&indent, &line, BAD)?;
        }
        if self.screen.narrower_than(ROOMY) {
            let told = told(call, self.screen);
            if !told.is_empty() {
                self.line(&indent, &format!("= {told}"), PLAIN)?;
            }
        }
        let notes = notes(self.inside.remove(&call.id).unwrap_or_default());
        let asked = notes.iter().any(Note::is_elicitation);
        for note in &notes {
            self.note(note, &indent)?;
        }
        // In the stateless revision the question is inside the result, and no message of its own shows the answer.
        if let Some(answer) = call.confirmation.as_ref().filter(|_| !asked) {
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
            .map_or(usize::MAX, |cells| cells.saturating_sub(indent.len()));
        Ok(writeln!(
            self.screen,
            "{indent}{style}{}{style:#}",
            truncate(text, room)
        )?)
    }
}

/// What came back and is worth a place on the call's line; a failure has lines of its own.
fn told(call: &Call, screen: &Screen) -> String {
    let mut told = if words::failed(call.outcome) {
        String::new()
    } else {
        summary(call, screen.room())
    };
    if call.sample.as_ref().is_some_and(|sample| sample.selected) {
        told += if told.is_empty() {
            "sampled"
        } else {
            "  sampled"
        };
    }
    told
}

fn row(call: &Call, screen: &Screen) -> Vec<Cell> {
    let arguments = call
        .arguments
        .as_ref()
        .map(|json| assignments(json.get(), screen.room()))
        .unwrap_or_default();
    let told = if screen.narrower_than(ROOMY) {
        String::new()
    } else {
        told(call, screen)
    };
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
