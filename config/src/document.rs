//! The two texts for operators, both made from the keys: the documented default file `callbox.toml` and the reference
//! `CONFIG.md`. Adds no words about single keys; those are the doc comments of the raw types.

mod defaults;
mod reference;

use crate::keys::{Form, Key, ROOT, join};

const FILE_HEAD: &str = "\
#:schema ./schema.json

# Every setting of callbox with its default. A file of your own needs only what differs.
#
#   # text     explains what follows
#   #key = …   has no default; take the # away to set it
#
# Durations are written \"500ms\", \"30s\", \"10m\", \"30d\", sizes \"512B\", \"64KiB\", \"1MiB\", \"10GiB\".
# Relative paths are relative to the folder of this file. Secrets are never written here, only where they are kept.
# An environment variable such as CALLBOX__LISTEN__ADDRESS wins over this file, a flag such as --listen over both.
# SIGHUP reads this file again; keys marked \"Needs a restart\" wait for one. `callbox config check` lists every problem.
";

const REFERENCE_HEAD: &str = "\
# Configuration reference

<!-- Made from config/src/raw.rs and below; CALLBOX_BLESS=1 writes it anew. -->

Settings come from four places, each overriding the ones before: defaults, one TOML file (`--config callbox.toml`),
environment variables, flags. No file is needed: `callbox up --upstream http://127.0.0.1:3001` runs on defaults.

- **Check and see.** `callbox config check` lists all problems at once, with line, key, what was found, what is allowed.
  `callbox config show` prints the settings in force and where each comes from.
- **Environment.** `CALLBOX__SECTION__KEY` in capitals, with two underscores between the parts:
  `CALLBOX__RECORD__DURABILITY=before-response`, `CALLBOX__ADMIN__TOKEN__FILE=/run/secrets/admin-token`. Lists and
  tables are written as TOML: `CALLBOX__RECORD__REDACT__KEYS='[\"password\", \"token\"]'`. A variable with this prefix
  that names no key is an error, like an unknown key in the file.
- **Lists** are replaced, never joined: a later source that sets one sets all of it.
- **Paths.** Relative ones in the file are relative to the file's folder, in variables and flags to the working
  directory. `~` is not expanded.
- **Durations** are numbers with units: `\"500ms\"`, `\"30s\"`, `\"1h 30m\"`, `\"30d\"`. A day has 24 hours.
- **Sizes** are whole numbers with a unit: `B`, `KiB`, `MiB`, `GiB`, `TiB` (powers of 1024), `kB`, `MB`, `GB`, `TB`
  (powers of 1000).
- **Secrets** are never in the configuration: `{ env = \"NAME\" }` or `{ file = \"PATH\" }` says where one is kept.
- **Reload.** SIGHUP reads everything again. A configuration with problems changes nothing, and the log says what is
  wrong. Keys marked *needs a restart* keep their old value until then, and the log names them.

[callbox.toml](callbox.toml) has every key with its default, [examples/](examples) whole files to start from, and
[schema.json](schema.json) lets an editor complete and check.
";

/// The documented default file: every key with its words and its default.
pub fn documented_defaults() -> String {
    let mut out = FILE_HEAD.to_owned();
    if let Some(root) = ROOT.table() {
        defaults::table(&mut out, root, "", defaults::State::Live);
    }
    out
}

/// The reference in Markdown.
pub fn reference() -> String {
    let mut out = REFERENCE_HEAD.to_owned();
    if let Some(root) = ROOT.table() {
        out.push_str("\n## At the top of the file\n");
        reference::table(&mut out, root, "");
    }
    out
}

fn line(out: &mut String, line: &str) {
    out.push_str(line);
    out.push('\n');
}

/// The values or alternatives of a key, each with its words: closed sets, and tables of which one key is written.
fn alternatives(key: &Key) -> Vec<(String, &str)> {
    match &key.form {
        Form::Choice(choices) => choices
            .iter()
            .map(|choice| (format!("\"{}\"", choice.value), choice.doc.as_str()))
            .collect(),
        Form::Table(table) if table.one_of => table
            .keys
            .iter()
            .map(|key| (format!("{{ {} = \"…\" }}", key.name), key.doc.as_str()))
            .collect(),
        Form::List(item) if !key.is_section() => alternatives(item),
        _ => Vec::new(),
    }
}

/// How a section is opened: `[listen]`, `[[upstream]]`.
fn heading(key: &Key, path: &str) -> String {
    let path = join(path, &key.name);
    if matches!(key.form, Form::List(_)) {
        format!("[[{path}]]")
    } else {
        format!("[{path}]")
    }
}
