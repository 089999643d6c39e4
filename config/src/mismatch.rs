//! What is said when a key does not exist or a value has the wrong type: what was expected, what was found, and what was
//! probably meant. Never shows what could be a secret.

use toml::de::DeValue;

use crate::keys::{Form, Key, ROOT, Table, Text, join};
use crate::nearest::nearest;
use crate::problem::{Origin, Problem};
use crate::write::{printable, shown};

/// A key that does not exist, and the one it was meant to be.
pub(crate) fn unknown(
    table: &Table,
    path: &str,
    name: &str,
    origin: Origin,
) -> (Problem, Option<String>) {
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

/// A value that cannot stand where it stands.
pub(crate) fn mismatch(key: &Key, path: &str, value: &DeValue<'_>, origin: Origin) -> Problem {
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
        DeValue::Boolean(_) => "a boolean",
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
        Form::Switch => "true or false".to_owned(),
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
            Form::Text(Text::Plain) => "a list of strings".to_owned(),
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
            let items: Vec<_> = text.split(',').map(|item| shown(item.trim())).collect();
            Some(format!("put it in brackets: [{}]", items.join(", ")))
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
