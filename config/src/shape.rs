//! Checks a value against the tree of keys: unknown keys, wrong types, values outside a closed set or range. Reports every
//! fault with its place and hands on what is sound, so that the rest can be checked in the same run. What a text means
//! (an address, a duration) is `resolve`'s to say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::keys::{Form, Key, Table, Text, join};
use crate::mismatch::{mismatch, unknown};
use crate::problem::{Lines, Origin, Problem};
use crate::write::shown;

/// Where values come from, which decides what is said about their place and what relative paths are relative to.
#[derive(Debug)]
pub(crate) enum Place<'a> {
    File(Lines<'a>),
    Env(&'a str),
    Flag(&'static str),
}

impl Place<'_> {
    pub(crate) fn origin(&self, offset: usize) -> Origin {
        match self {
            Self::File(lines) => lines.origin(offset),
            Self::Env(name) => Origin::Env {
                name: (*name).to_owned(),
            },
            Self::Flag(name) => Origin::Flag { name },
        }
    }

    /// The folder of the file; flags and environment mean the working directory.
    fn folder(&self) -> &Path {
        match self {
            Self::File(lines) => lines.path().parent().unwrap_or(Path::new("")),
            Self::Env(_) | Self::Flag(_) => Path::new(""),
        }
    }
}

/// What was found wrong so far, and where each value stands.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) problems: Vec<Problem>,
    /// Origin of each key that somebody set.
    pub(crate) origins: BTreeMap<String, Origin>,
    /// Keys that have a problem, or that a misspelt key was meant to be: follow-up problems would only be noise.
    pub(crate) excused: BTreeSet<String>,
}

impl Findings {
    pub(crate) fn push(&mut self, problem: Problem) {
        self.excused.insert(problem.key.clone());
        self.problems.push(problem);
    }

    /// Neither the key nor a part of it has had a problem.
    pub(crate) fn is_sound(&self, key: &str) -> bool {
        !self.excused.iter().any(|excused| {
            let below = |outer: &str, inner: &str| {
                inner
                    .strip_prefix(outer)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
            };
            below(key, excused) || below(excused, key)
        })
    }
}

/// Returns what is sound of `value`, which stands at `path` and should be what `key` says.
pub(crate) fn check(
    key: &Key,
    path: &str,
    value: &Spanned<DeValue<'_>>,
    place: &Place<'_>,
    findings: &mut Findings,
) -> Option<toml::Value> {
    let origin = place.origin(value.span().start);
    let checked = match (&key.form, value.get_ref()) {
        (Form::Table(table), DeValue::Table(found)) => {
            findings.origins.insert(path.to_owned(), origin.clone());
            Some(toml::Value::Table(entries(
                table, path, found, place, findings,
            )))
        }
        (Form::List(item), DeValue::Array(found)) => {
            let checked = found.iter().enumerate();
            let checked = checked
                .map(|(at, found)| check(item, &format!("{path}[{at}]"), found, place, findings));
            // A hole would renumber what follows; the list is given up, its problems are reported.
            checked
                .collect::<Vec<_>>()
                .into_iter()
                .collect::<Option<Vec<_>>>()
                .map(toml::Value::Array)
        }
        (Form::Switch, DeValue::Boolean(found)) => Some((*found).into()),
        (Form::Whole { min, max }, DeValue::Integer(found)) => {
            let whole = i64::from_str_radix(found.as_str(), found.radix()).ok();
            whole
                .filter(|whole| (min..=max).contains(&whole))
                .map(toml::Value::from)
        }
        (Form::Choice(choices), DeValue::String(found)) => choices
            .iter()
            .any(|choice| choice.value == found.as_ref())
            .then(|| found.as_ref().into()),
        (Form::Text(Text::Path), DeValue::String(found)) => {
            return path_text(path, found, origin, place, findings);
        }
        (Form::Text(_), DeValue::String(found)) => Some(found.as_ref().into()),
        _ => None,
    };
    match checked {
        Some(_) => {
            findings.origins.insert(path.to_owned(), origin);
        }
        // A list that was given up has said why.
        None if matches!(
            (&key.form, value.get_ref()),
            (Form::List(_), DeValue::Array(_))
        ) => {}
        None => {
            let problem = mismatch(key, path, value.get_ref(), origin);
            findings.push(problem);
        }
    }
    checked
}

/// The sound entries of a table.
pub(crate) fn entries(
    table: &Table,
    path: &str,
    found: &DeTable<'_>,
    place: &Place<'_>,
    findings: &mut Findings,
) -> toml::Table {
    let mut sound = toml::Table::new();
    for (name, value) in found {
        let below = join(path, name.get_ref());
        if let Some(key) = table.get(name.get_ref()) {
            if let Some(value) = check(key, &below, value, place, findings) {
                sound.insert(key.name.clone(), value);
            }
        } else {
            let origin = place.origin(name.span().start);
            let (problem, meant) = unknown(table, path, name.get_ref(), origin);
            findings.excused.extend(meant);
            findings.push(problem);
        }
    }
    sound
}

/// Paths are placed here, where their source is known.
fn path_text(
    path: &str,
    text: &str,
    origin: Origin,
    place: &Place<'_>,
    findings: &mut Findings,
) -> Option<toml::Value> {
    let problem = |message: &str| Problem::new(path, origin.clone(), message).found(shown(text));
    let placed = place.folder().join(text);
    if text.is_empty() {
        findings.push(problem("an empty path").allowed("a path"));
    } else if text.contains('\0') {
        findings.push(problem("a path cannot hold a NUL character").allowed("a path"));
    } else if text.starts_with('~') {
        findings.push(problem("`~` is not expanded").fix("write the path out, from `/` on"));
    } else if let Some(placed) = placed.to_str() {
        findings.origins.insert(path.to_owned(), origin);
        return Some(placed.into());
    } else {
        findings.push(
            problem("the folder of the file is not UTF-8").fix("write the path out, from `/` on"),
        );
    }
    None
}
