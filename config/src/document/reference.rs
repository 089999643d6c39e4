//! `CONFIG.md`.

use super::{alternatives, heading, line};
use crate::keys::{Form, Key, Table, join};
use crate::mismatch::allowed;
use crate::sources::variable;
use crate::write::inline;

/// The keys of a table, then the sections below it.
pub(super) fn table(out: &mut String, table: &Table, path: &str) {
    for key in table.keys.iter().filter(|key| !key.is_section()) {
        setting(out, key, &join(path, &key.name));
    }
    for key in table.keys.iter().filter(|key| key.is_section()) {
        line(out, &format!("\n## `{}`", heading(key, path)));
        let path = join(path, &key.name);
        if !key.doc.is_empty() {
            line(out, &format!("\n{}", key.doc));
        }
        let facts = facts(key, &path);
        if matches!(key.form, Form::List(_)) && !facts.is_empty() {
            line(out, &format!("\n{facts}"));
        }
        if let Some(below) = key.table() {
            self::table(out, below, &path);
        }
    }
}

fn setting(out: &mut String, key: &Key, path: &str) {
    line(out, &format!("\n### `{path}`\n\n{}", key.doc));
    let alternatives = alternatives(key);
    if !alternatives.is_empty() {
        out.push('\n');
        for (value, doc) in alternatives {
            line(out, &format!("- `{value}`: {doc}"));
        }
    }
    line(out, &format!("\n{}", facts(key, path)));
}

/// One line: what may stand there, default, flag, variable, restart.
fn facts(key: &Key, path: &str) -> String {
    let mut facts = Vec::new();
    match &key.form {
        // Their values have been listed.
        Form::Choice(_) => {}
        Form::Table(table) if table.one_of => {}
        Form::List(_) if key.is_section() => {}
        Form::List(item) if matches!(item.form, Form::Choice(_)) => {
            facts.push("a list of these".to_owned());
        }
        _ => facts.push(allowed(key)),
    }
    match (&key.default, &key.example) {
        _ if key.is_section() => {}
        (Some(value), None) => facts.push(format!("default `{}`", inline(value))),
        (Some(value), Some(example)) => {
            facts.push(format!(
                "default `{}`, such as `{}`",
                inline(value),
                inline(example)
            ));
        }
        (None, Some(example)) if key.required => {
            facts.push(format!("required, such as `{}`", inline(example)));
        }
        (None, Some(example)) => facts.push(format!("no default; such as `{}`", inline(example))),
        (None, None) => {}
    }
    if let Some(flag) = &key.flag {
        facts.push(format!("flag `{flag}`"));
    }
    // What is inside a list has no variable.
    if !path.starts_with("upstream.") {
        facts.push(format!("variable `{}`", variable(path)));
    }
    if key.restart {
        facts.push("*needs a restart*".to_owned());
    }
    sentence(&facts.join(" · "))
}

fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect()
    })
}
