//! `callbox config show`: the settings in force as a configuration file, each with its source. What it prints, parses to
//! the same settings; secrets are not in it, only where they are kept.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::keys::{Form, Key, ROOT, Table, join};
use crate::load::run;
use crate::problem::{ConfigError, Origin};
use crate::raw;
use crate::resolve::{Purpose, UNNAMED, workers};
use crate::sources::Sources;
use crate::write::inline;

/// The settings in force as TOML, each line with its source. Paths are as callbox uses them.
///
/// # Errors
/// As [`load`](fn@crate::load), but no upstream is needed and secrets are not read.
pub fn show(sources: &Sources) -> Result<String, ConfigError> {
    let (_, mut raw, _, findings) = run(sources, Purpose::Look)?;
    raw.listen.workers = Some(workers(raw.listen.workers).get());
    if let [only] = raw.upstream.as_mut_slice() {
        only.name.get_or_insert_with(|| UNNAMED.to_owned());
    }
    Ok(render(&raw, &findings.origins))
}

fn render(raw: &raw::Config, origins: &BTreeMap<String, Origin>) -> String {
    // Both always hold: raw types have no value that TOML lacks, and the root is a table.
    let values = toml::Table::try_from(raw).unwrap_or_default();
    let mut page = Page {
        text: String::new(),
        origins,
    };
    if let Some(root) = ROOT.table() {
        page.table(root, "", "", &values);
    }
    page.text
}

struct Page<'a> {
    text: String,
    origins: &'a BTreeMap<String, Origin>,
}

impl Page<'_> {
    /// `path` names keys (`upstream[1].tls`), `heading` is what TOML writes above them (`upstream.tls`).
    fn table(&mut self, table: &Table, path: &str, heading: &str, values: &toml::Table) {
        for key in table.keys.iter().filter(|key| !key.is_section()) {
            let source = self.source(&join(path, &key.name));
            let line = match values.get(&key.name) {
                Some(value) => format!("{} = {}", key.name, inline(value)),
                None => format!("# {} is not set", key.name),
            };
            self.line(&line, &source);
        }
        for key in table.keys.iter().filter(|key| key.is_section()) {
            self.section(
                key,
                &join(path, &key.name),
                &join(heading, &key.name),
                values.get(&key.name),
            );
        }
    }

    fn section(&mut self, key: &Key, path: &str, heading: &str, value: Option<&toml::Value>) {
        match (&key.form, value) {
            (Form::Table(table), Some(toml::Value::Table(values))) => {
                self.line(&format!("\n[{heading}]"), "");
                self.table(table, path, heading, values);
            }
            (Form::List(item), Some(toml::Value::Array(items))) if !items.is_empty() => {
                for (at, value) in items.iter().enumerate() {
                    if let (Some(table), Some(values)) = (item.table(), value.as_table()) {
                        self.line(&format!("\n[[{heading}]]"), "");
                        self.table(table, &format!("{path}[{at}]"), heading, values);
                    }
                }
            }
            _ => {
                let brackets = if matches!(key.form, Form::List(_)) {
                    "[[…]]"
                } else {
                    "[…]"
                };
                let name = brackets.replace('…', heading);
                let source = self.source(path);
                self.text.push('\n');
                self.line(&format!("# {name} is not set"), &source);
            }
        }
    }

    fn line(&mut self, line: &str, source: &str) {
        let line = if source.is_empty() {
            line.to_owned()
        } else {
            format!("{line:<48}  # {source}")
        };
        // Writing to a String cannot fail.
        writeln!(self.text, "{line}").unwrap_or_default();
    }

    fn source(&self, path: &str) -> String {
        match self.origins.get(path).unwrap_or(&Origin::Default) {
            Origin::Default => "default".to_owned(),
            Origin::File { path, line, .. } => format!(
                "file {}:{line}",
                path.display().to_string().replace('\n', " ")
            ),
            Origin::Env { name } => format!("env {name}"),
            Origin::Flag { name } => format!("flag {name}"),
        }
    }
}
