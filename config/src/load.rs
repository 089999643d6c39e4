//! The way in: sources to settings, all problems at once.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde::Deserialize as _;

use crate::env::Env;
use crate::problem::{ConfigError, Origin, Problem};
use crate::raw;
use crate::resolve::{self, Purpose};
use crate::settings::Settings;
use crate::shape::Findings;
use crate::sources::{Layers, Sources};

/// Settings, and what is odd about them.
#[derive(Debug)]
pub struct Loaded {
    /// The settings.
    pub settings: Settings,
    /// What is allowed but probably not meant; for the log at start, and for `callbox config check`.
    pub warnings: Vec<Problem>,
}

/// Loads what a proxy runs on: certificates and secrets are read, an upstream is needed.
///
/// # Errors
/// The file cannot be read, or something is wrong; then everything that is wrong.
pub fn load(sources: &Sources) -> Result<Loaded, ConfigError> {
    let (settings, _, warnings, _) = run(sources, Purpose::Serve)?;
    Ok(Loaded { settings, warnings })
}

impl Settings {
    /// [`load()`], for who has no use for the warnings.
    ///
    /// # Errors
    /// As [`load()`].
    pub fn from_sources(sources: &Sources) -> Result<Self, ConfigError> {
        load(sources).map(|loaded| loaded.settings)
    }

    /// For commands that look at what was recorded (`calls`, `show`, `prune`): no upstream is needed and neither
    /// certificates nor secrets are read, so that these commands work for people who may not read them.
    /// `admin.token` is always none, `upstreams` may be empty.
    ///
    /// # Errors
    /// As [`load()`].
    pub fn for_queries(sources: &Sources) -> Result<Self, ConfigError> {
        run(sources, Purpose::Look).map(|(settings, ..)| settings)
    }
}

/// Reads the text of a configuration file as far as that goes without disk and environment: syntax, keys, types, values,
/// and what they mean together. Never panics, whatever the text.
///
/// # Errors
/// Everything that is wrong with the text.
pub fn parse(text: &str) -> Result<(), ConfigError> {
    let mut layers = Layers::default();
    layers.file(Path::new("callbox.toml"), text);
    finish(layers, &Env::default(), Purpose::Look).map(drop)
}

/// Settings, the same as written, warnings, and where everything comes from.
type Resolved = (Settings, raw::Config, Vec<Problem>, Findings);

pub(crate) fn run(sources: &Sources, purpose: Purpose) -> Result<Resolved, ConfigError> {
    let mut layers = Layers::default();
    if let Some(path) = &sources.file {
        let unreadable = |source| ConfigError::Unreadable {
            path: path.clone(),
            source,
        };
        let bytes = read(path).map_err(unreadable)?;
        match std::str::from_utf8(&bytes) {
            Ok(text) => layers.file(path, text),
            Err(error) => layers
                .findings
                .push(not_utf8(path, &bytes, error.valid_up_to())),
        }
    }
    layers.env(&sources.env);
    layers.flags(&sources.overrides);
    finish(layers, &sources.env, purpose)
}

fn finish(layers: Layers, env: &Env, purpose: Purpose) -> Result<Resolved, ConfigError> {
    let Layers {
        values,
        mut findings,
    } = layers;
    // With a text that is no TOML the rest would be reported as missing.
    if findings
        .problems
        .iter()
        .any(|problem| problem.message.starts_with("not TOML"))
    {
        return Err(invalid(findings));
    }
    let raw = match raw::Config::deserialize(values) {
        Ok(raw) => raw,
        Err(error) => {
            // `shape` has let through what serde does not take: our mistake, but the operator must know which value.
            let message = error.message().replace('\n', ", ");
            findings.push(Problem::new("", Origin::Default, message));
            return Err(invalid(findings));
        }
    };
    let (settings, mut warnings) = resolve::resolve(&raw, env, purpose, &mut findings);
    if !findings.problems.is_empty() {
        return Err(invalid(findings));
    }
    warnings.sort_by(|a, b| a.origin.cmp(&b.origin));
    Ok((settings, raw, warnings, findings))
}

/// The problems in the order of their sources.
fn invalid(mut findings: Findings) -> ConfigError {
    findings.problems.sort_by(|a, b| a.origin.cmp(&b.origin));
    ConfigError::Invalid(findings.problems)
}

fn read(path: &PathBuf) -> io::Result<Vec<u8>> {
    /// No configuration is longer; a device or a log given by mistake has an end.
    const LIMIT: u64 = 4 << 20;
    let mut bytes = Vec::new();
    File::open(path)?.take(LIMIT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LIMIT {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "larger than 4 MiB",
        ));
    }
    Ok(bytes)
}

fn not_utf8(path: &Path, bytes: &[u8], at: usize) -> Problem {
    let before = String::from_utf8_lossy(bytes.get(..at).unwrap_or_default());
    let line = before.matches('\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .chars()
        .count()
        + 1;
    let origin = Origin::File {
        path: path.to_owned(),
        line,
        column,
    };
    Problem::new("", origin, "not TOML: the text is not UTF-8")
}
