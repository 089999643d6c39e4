//! `callbox.toml`.

use super::{alternatives, heading, line};
use crate::keys::{Form, Key, Table, join};
use crate::write::inline;

/// Whether keys are in force or commented out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Live,
    Off,
}

impl State {
    fn mark(self) -> &'static str {
        match self {
            Self::Live => "",
            Self::Off => "#",
        }
    }
}

/// The keys of a table, then the sections below it.
pub(super) fn table(out: &mut String, table: &Table, path: &str, state: State) {
    for key in table.keys.iter().filter(|key| !key.is_section()) {
        setting(out, key, state);
    }
    for key in table.keys.iter().filter(|key| key.is_section()) {
        section(out, key, path, state);
    }
}

fn section(out: &mut String, key: &Key, path: &str, state: State) {
    let is_list = matches!(key.form, Form::List(_));
    // A section without defaults would be incomplete if it were there; of a list, one entry shows what it looks like.
    let state = if key.default.is_some() || is_list {
        state
    } else {
        State::Off
    };
    out.push_str("\n\n");
    words(out, &key.doc, "");
    line(out, &format!("{}{}", state.mark(), heading(key, path)));
    if let Some(below) = key.table() {
        table(out, below, &join(path, &key.name), state);
    }
}

fn setting(out: &mut String, key: &Key, state: State) {
    out.push('\n');
    words(out, &key.doc, "");
    let alternatives = alternatives(key);
    let width = alternatives
        .iter()
        .map(|(value, _)| value.chars().count())
        .max()
        .unwrap_or(0);
    for (value, doc) in &alternatives {
        words(
            out,
            &format!("{value:<width$}  {doc}"),
            &" ".repeat(width + 4),
        );
    }
    if let (Some(_), Some(example)) = (&key.default, &key.example) {
        words(out, &format!("Such as: {}", inline(example)), "");
    }
    if key.restart {
        words(out, "Needs a restart.", "");
    }
    let state = if key.default.is_some() || key.required {
        state
    } else {
        State::Off
    };
    if let Some(value) = key.default.as_ref().or(key.example.as_ref()) {
        line(
            out,
            &format!("{}{} = {}", state.mark(), key.name, inline(value)),
        );
    }
}

/// Comment lines of at most 100 characters; those after the first are indented like `indent`, which also indents the first
/// by two when it is not empty.
fn words(out: &mut String, text: &str, indent: &str) {
    const WIDTH: usize = 100;
    let first = if indent.is_empty() { "# " } else { "#   " };
    for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.is_empty()) {
        let mut line = first.to_owned();
        let mut fresh = true;
        for word in paragraph.split(' ') {
            if !fresh && line.chars().count() + 1 + word.chars().count() > WIDTH {
                out.push_str(line.trim_end());
                out.push('\n');
                line = format!("# {indent}");
                fresh = true;
            }
            if !fresh {
                line.push(' ');
            }
            line.push_str(word);
            fresh = false;
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}
