//! The three sources of settings, laid over one another: file, then environment, then flags. What comes out is one tree of
//! sound values, with the origin of each and every problem of shape.

use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::env::{Env, PREFIX};
use crate::keys::{Form, Key, ROOT, join};
use crate::mismatch::allowed;
use crate::nearest::nearest;
use crate::problem::{Lines, Origin, Problem};
use crate::shape::{self, Findings, Place};
use crate::write::shown;

/// Everything settings can come from. Later fields win over earlier ones.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The configuration file; none: defaults, environment and flags only.
    pub file: Option<PathBuf>,
    /// The environment.
    pub env: Env,
    /// The flags.
    pub overrides: Overrides,
}

/// Settings given as flags, as they were typed.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// `--upstream`: origins such as `http://127.0.0.1:3001`; any replaces every `[[upstream]]`.
    pub upstream: Vec<String>,
    /// `--listen`
    pub listen: Option<String>,
    /// `--admin`
    pub admin: Option<String>,
    /// `--data`, relative to the working directory.
    pub data: Option<PathBuf>,
    /// `--log-level`
    pub log_level: Option<String>,
    /// `--log-format`
    pub log_format: Option<String>,
}

/// The sources, laid over one another.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    pub(crate) values: toml::Table,
    pub(crate) findings: Findings,
}

impl Layers {
    /// Lays the text of a file. Of a text that is no TOML nothing is taken.
    pub(crate) fn file(&mut self, path: &Path, text: &str) {
        let lines = Lines::new(path, text);
        let (table, errors) = DeTable::parse_recoverable(text);
        if errors.is_empty() {
            let place = Place::File(lines);
            if let Some(root) = ROOT.table() {
                self.values = shape::entries(root, "", table.get_ref(), &place, &mut self.findings);
            }
            return;
        }
        for error in errors {
            let at = error.span().map_or(0, |span| span.start);
            // Only the message: the line itself could hold a secret.
            let message = format!("not TOML: {}", error.message().replace('\n', ", "));
            self.findings
                .push(Problem::new("", lines.origin(at), message));
        }
    }

    /// Lays the variables that begin with `CALLBOX__`.
    pub(crate) fn env(&mut self, env: &Env) {
        for (name, rest, value) in env.overrides() {
            let origin = Origin::Env {
                name: name.to_owned(),
            };
            let Some((path, keys)) = find(rest) else {
                self.findings.push(unknown_variable(rest, origin));
                continue;
            };
            let Some(text) = value else {
                let problem = Problem::new(path, origin, "the variable is not UTF-8");
                self.findings.push(problem);
                continue;
            };
            self.lay(&path, &keys, text, &Place::Env(name));
        }
    }

    /// Lays the flags.
    pub(crate) fn flags(&mut self, overrides: &Overrides) {
        let Overrides {
            upstream,
            listen,
            admin,
            data,
            log_level,
            log_format,
        } = overrides;
        let data = data.as_ref().map(|path| path.to_str());
        if data == Some(None) {
            let origin = Origin::Flag { name: "--data" };
            self.findings
                .push(Problem::new("data", origin, "the path is not UTF-8"));
        }
        for (rest, flag, value) in [
            ("DATA", "--data", data.flatten()),
            ("LISTEN__ADDRESS", "--listen", listen.as_deref()),
            ("ADMIN__ADDRESS", "--admin", admin.as_deref()),
            ("LOG__LEVEL", "--log-level", log_level.as_deref()),
            ("LOG__FORMAT", "--log-format", log_format.as_deref()),
        ] {
            if let (Some(text), Some((path, keys))) = (value, find(rest)) {
                self.lay(&path, &keys, text, &Place::Flag(flag));
            }
        }
        self.upstream_flags(upstream);
    }

    fn upstream_flags(&mut self, origins: &[String]) {
        let origin = Origin::Flag { name: "--upstream" };
        let url = match origins {
            [] => return,
            [url] => url,
            several => {
                let problem = Problem::new("upstream", origin, "given more than once")
                    .found(
                        several
                            .iter()
                            .map(|url| shown(url))
                            .collect::<Vec<_>>()
                            .join(", "),
                    )
                    .allowed("one origin: a flag cannot say which requests go where")
                    .fix("write one [[upstream]] with name, url and match for each into a file");
                self.findings.push(problem);
                return;
            }
        };
        self.forget("upstream");
        for path in ["upstream", "upstream[0]", "upstream[0].url"] {
            self.findings
                .origins
                .insert(path.to_owned(), origin.clone());
        }
        let entry = toml::Table::from_iter([("url".to_owned(), toml::Value::from(url.as_str()))]);
        self.values
            .insert("upstream".to_owned(), toml::Value::from(vec![entry]));
    }

    /// Lays one text at a key. `keys` leads from the root to it.
    fn lay(&mut self, path: &str, keys: &[&'static Key], text: &str, place: &Place<'_>) {
        let Some((key, parents)) = keys.split_last() else {
            return;
        };
        let Some(value) = self.read(key, path, text, place) else {
            return;
        };
        self.forget(path);
        let Some(value) = shape::check(key, path, &value, place, &mut self.findings) else {
            return;
        };
        let mut table = &mut self.values;
        let mut above = String::new();
        for parent in parents {
            above = join(&above, &parent.name);
            let below = table
                .entry(parent.name.clone())
                .or_insert_with(|| toml::Value::Table(toml::Table::new()));
            let toml::Value::Table(below) = below else {
                return;
            };
            let origins = &mut self.findings.origins;
            if parent.table().is_some_and(|table| table.one_of) {
                // Two variables for one choice contradict one another, which `resolve` reports; a file is overruled.
                below.retain(|name, _| {
                    matches!(origins.get(&join(&above, name)), Some(Origin::Env { .. }))
                });
                origins.insert(above.clone(), place.origin(0));
            } else {
                origins
                    .entry(above.clone())
                    .or_insert_with(|| place.origin(0));
            }
            table = below;
        }
        table.insert(key.name.clone(), value);
    }

    /// The text of a variable or flag as a value: a text as it stands, everything else as TOML.
    fn read<'t>(
        &mut self,
        key: &Key,
        path: &str,
        text: &'t str,
        place: &Place<'_>,
    ) -> Option<Spanned<DeValue<'t>>> {
        let plain = || Some(Spanned::new(0..text.len(), DeValue::String(text.into())));
        if matches!(key.form, Form::Text(_) | Form::Choice(_)) {
            return plain();
        }
        match DeValue::parse(text) {
            Ok(value) => Some(value),
            // What does not look like a list or table was meant as a text; `shape` says what is expected instead.
            Err(_) if !text.trim_start().starts_with(['[', '{']) => plain(),
            Err(error) => {
                let message = format!("not a TOML value: {}", error.message().replace('\n', ", "));
                let problem = Problem::new(path, place.origin(0), message).allowed(allowed(key));
                self.findings.push(problem);
                None
            }
        }
    }

    /// Drops what earlier sources said about a key.
    fn forget(&mut self, path: &str) {
        let below = |other: &str| {
            other
                .strip_prefix(path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        self.findings.origins.retain(|other, _| !below(other));
    }
}

/// The key of a variable's name after the prefix: its path, and the keys that lead to it.
fn find(rest: &str) -> Option<(String, Vec<&'static Key>)> {
    let mut keys: Vec<&'static Key> = Vec::new();
    let mut table = ROOT.table()?;
    let mut names = rest.split("__").peekable();
    let mut path = String::new();
    while let Some(name) = names.next() {
        let key = table
            .keys
            .iter()
            .find(|key| key.name.to_uppercase() == name)?;
        path = join(&path, &key.name);
        keys.push(key);
        if names.peek().is_some() {
            match &key.form {
                Form::Table(below) => table = below,
                _ => return None,
            }
        }
    }
    Some((path, keys))
}

/// Name of the variable that sets a key.
pub(crate) fn variable(path: &str) -> String {
    format!("{PREFIX}{}", path.to_uppercase().replace('.', "__"))
}

fn unknown_variable(rest: &str, origin: Origin) -> Problem {
    let mut names = Vec::new();
    ROOT.each("", &mut |path, key| {
        // Items of a list have no variable of their own.
        if !path.starts_with("upstream.") && !path.contains("pointers.") && !key.is_section()
            || path == "upstream"
        {
            names.push(variable(path));
        }
    });
    let meant = nearest(
        rest,
        names.iter().filter_map(|name| name.strip_prefix(PREFIX)),
    );
    let problem = Problem::new("", origin, "no setting has this name").allowed(format!(
        "{PREFIX}SECTION__KEY in capitals, such as {PREFIX}LISTEN__ADDRESS"
    ));
    if rest.starts_with("UPSTREAM__") {
        let list = "[{ name = \"crm\", url = \"http://127.0.0.1:3001\" }]";
        return problem.fix(format!("set the whole list: {PREFIX}UPSTREAM='{list}'"));
    }
    match meant {
        Some(meant) => problem.fix(format!("did you mean {PREFIX}{meant}?")),
        None => problem.fix(format!(
            "unset {PREFIX}{rest}, or look the name up in the reference"
        )),
    }
}
