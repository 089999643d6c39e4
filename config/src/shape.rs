//! Checks a value against the tree of keys: unknown keys, wrong types, values outside a closed set or range. Reports every
//! fault with its place and hands on what is sound, so that the rest can be checked in the same run. What a text means
//! (an address, a duration) is `resolve`'s to say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::keys::{Form, Key, ROOT, Table, Text, join};
use crate::nearest::nearest;
use crate::problem::{Lines, Origin, Problem};
use crate::write::quoted;

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

fn unknown(table: &Table, path: &str, name: &str, origin: Origin) -> (Problem, Option<String>) {
    let names = || table.keys.iter().map(|key| key.name.as_str());
    let meant = nearest(name, names())
        .map(|meant| join(path, meant))
        .or_else(|| elsewhere(name));
    let section = if path.is_empty() {
        "at the top".to_owned()
    } else {
        format!("in {path}")
    };
    // Its value is not shown: a misspelt key can hold a secret.
    let mut problem = Problem::new(join(path, &printable(name)), origin, "unknown key").allowed(
        format!("{section}: {}", names().collect::<Vec<_>>().join(", ")),
    );
    if let Some(meant) = &meant {
        problem = problem.fix(format!("did you mean `{meant}`?"));
    }
    (problem, meant)
}

/// The one key of this name in another section.
fn elsewhere(name: &str) -> Option<String> {
    let mut found = Vec::new();
    ROOT.each("", &mut |path, key| {
        if key.name == name {
            found.push(path.to_owned());
        }
    });
    match found.as_slice() {
        [one] => Some(one.clone()),
        _ => None,
    }
}

fn mismatch(key: &Key, path: &str, value: &DeValue<'_>, origin: Origin) -> Problem {
    let secret = key.table().is_some_and(|table| table.secret);
    let message = if secret {
        "secrets are not written into the configuration".to_owned()
    } else if fits(&key.form, value) {
        "value not allowed".to_owned()
    } else {
        format!("expected {}, found {}", expected(&key.form), article(value))
    };
    let mut problem = Problem::new(path, origin, message).allowed(allowed(key));
    if secret {
        return problem.fix("keep the secret in a variable or a file, and name that here");
    }
    if !matches!(value, DeValue::Table(_) | DeValue::Array(_)) {
        problem = problem.found(found(value));
    }
    match fix(key, value) {
        Some(fix) => problem.fix(fix),
        None => problem,
    }
}

/// Right type, wrong value.
fn fits(form: &Form, value: &DeValue<'_>) -> bool {
    matches!(
        (form, value),
        (Form::Whole { .. }, DeValue::Integer(_)) | (Form::Choice(_), DeValue::String(_))
    )
}

fn expected(form: &Form) -> &'static str {
    match form {
        Form::Text(_) | Form::Choice(_) => "a string",
        Form::Whole { .. } => "a whole number",
        Form::Switch => "true or false",
        Form::List(item) if item.table().is_some() => "a list of tables",
        Form::List(_) => "a list",
        Form::Table(_) => "a table",
    }
}

fn article(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// What may stand at a key, in a few words.
pub(crate) fn allowed(key: &Key) -> String {
    match &key.form {
        Form::Choice(choices) => {
            let values = choices.iter().map(|choice| format!("\"{}\"", choice.value));
            values.collect::<Vec<_>>().join(", ")
        }
        Form::Whole {
            min: i64::MIN,
            max: i64::MAX,
        } => "a whole number".to_owned(),
        Form::Whole { min, max: i64::MAX } => format!("a whole number from {min} on"),
        Form::Whole { min, max } => format!("a whole number from {min} to {max}"),
        Form::Switch => "true, false".to_owned(),
        Form::Text(Text::Plain) => "a string".to_owned(),
        Form::Text(Text::Address) => {
            "an IP address with a port, such as \"127.0.0.1:8080\" or \"[::]:8080\"".to_owned()
        }
        Form::Text(Text::Path) => "a path, as a string".to_owned(),
        Form::Text(Text::Duration) => {
            "a duration such as \"500ms\", \"30s\", \"10m\", \"30d\"".to_owned()
        }
        Form::Text(Text::Size) => {
            "a size such as \"512B\", \"64KiB\", \"1MiB\", \"10GiB\"".to_owned()
        }
        Form::List(item) => match &item.form {
            Form::Table(table) => format!("a list of tables with {}", names(table, " and ")),
            _ => format!("a list of: {}", allowed(item)),
        },
        Form::Table(table) if table.one_of => {
            let forms = table
                .keys
                .iter()
                .map(|key| format!("{{ {} = \"…\" }}", key.name));
            forms.collect::<Vec<_>>().join(" or ")
        }
        Form::Table(table) => format!("a table with {}", names(table, ", ")),
    }
}

fn names(table: &Table, between: &str) -> String {
    table
        .keys
        .iter()
        .map(|key| key.name.as_str())
        .collect::<Vec<_>>()
        .join(between)
}

fn fix(key: &Key, value: &DeValue<'_>) -> Option<String> {
    match (&key.form, value) {
        (Form::Choice(choices), DeValue::String(text)) => {
            nearest(text, choices.iter().map(|choice| choice.value.as_str()))
                .map(|meant| format!("did you mean \"{meant}\"?"))
        }
        (Form::Whole { .. }, DeValue::String(text)) if text.parse::<i64>().is_ok() => {
            Some(format!("write a number: {text}"))
        }
        (Form::Switch, DeValue::String(text)) => match text.to_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Some("write true".to_owned()),
            "false" | "no" | "off" | "0" => Some("write false".to_owned()),
            _ => None,
        },
        (Form::Text(Text::Duration), DeValue::Integer(number)) => {
            Some(format!("write the unit: \"{number}s\""))
        }
        (Form::Text(Text::Size), DeValue::Integer(number)) => {
            Some(format!("write the unit: \"{number}B\""))
        }
        (Form::Text(_), DeValue::Integer(number)) => {
            Some(format!("write it in quotes: \"{number}\""))
        }
        (Form::List(_), DeValue::Table(_)) if key.is_section() => {
            Some(format!("double the brackets: [[{}]]", key.name))
        }
        (Form::List(item), DeValue::String(text))
            if matches!(item.form, Form::Text(_) | Form::Choice(_)) =>
        {
            Some(format!("put it in brackets: [{}]", shown(text)))
        }
        (Form::Table(_), DeValue::Array(_)) if key.is_section() => Some(format!(
            "write the section once, in single brackets: [{}]",
            key.name
        )),
        _ => None,
    }
}

fn found(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => shown(text),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(switch) => switch.to_string(),
        DeValue::Datetime(time) => time.to_string(),
        DeValue::Array(_) | DeValue::Table(_) => article(value).to_owned(),
    }
}

/// A text as TOML writes it, shortened when it is long, without the credentials of a URL.
pub(crate) fn shown(text: &str) -> String {
    const LIMIT: usize = 80;
    let text = without_credentials(text);
    let mut start: String = text.chars().take(LIMIT).collect();
    if start.len() < text.len() {
        start.push('…');
    }
    quoted(&start)
}

/// Hides what can be a password in a URL: user information and query.
fn without_credentials(text: &str) -> String {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), text),
    };
    let (user, rest) = match rest.rsplit_once('@') {
        Some((_, rest)) => ("…@", rest),
        None => ("", rest),
    };
    match rest.split_once('?') {
        Some((rest, _)) => format!("{scheme}{user}{rest}?…"),
        None => format!("{scheme}{user}{rest}"),
    }
}

/// A name without line breaks and other characters that would tear a message apart.
fn printable(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.chars().all(bare) {
        name.chars().take(80).collect()
    } else {
        shown(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_in_urls_are_not_shown() {
        for (text, expected) in [
            ("http://u:p@h:1/x", "http://…@h:1/x"),
            ("http://u:p@q@h", "http://…@h"),
            ("u:p@h", "…@h"),
            ("http://h/x?api_key=K", "http://h/x?…"),
            ("http://u:p?@h", "http://…@h"),
            ("http://h", "http://h"),
        ] {
            assert_eq!(without_credentials(text), expected, "{text}");
        }
    }
}
