//! What is wrong with a configuration, in words an operator can act on. Owns the form of every message; the checks
//! themselves live where the value is understood. A problem never carries the value of a secret.

use std::fmt::{self, Write as _};
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// Why there are no [`Settings`](crate::Settings).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The configuration file could not be read at all.
    #[error("cannot read the configuration file {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Everything that is wrong, in the order of the sources: file from top to bottom, environment, flags.
    #[error("{}", report(.0))]
    Invalid(Vec<Problem>),
}

impl ConfigError {
    /// The single problems; empty when the file could not be read.
    pub fn problems(&self) -> &[Problem] {
        match self {
            Self::Unreadable { .. } => &[],
            Self::Invalid(problems) => problems,
        }
    }
}

/// One thing that is wrong, or (in [`Loaded::warnings`](crate::Loaded::warnings)) odd.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Key path such as `upstream[1].url`; empty when the text is no TOML.
    pub key: String,
    /// Where the value comes from.
    pub origin: Origin,
    /// What is wrong.
    pub message: String,
    /// The value found, as TOML writes it; none when it is missing or could be a secret.
    pub found: Option<String>,
    /// What is allowed instead.
    pub allowed: Option<String>,
    /// What to do.
    pub fix: Option<String>,
}

impl Problem {
    pub(crate) fn new(key: impl Into<String>, origin: Origin, message: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            origin,
            message: message.into(),
            found: None,
            allowed: None,
            fix: None,
        }
    }

    pub(crate) fn found(mut self, found: impl Into<String>) -> Self {
        self.found = Some(found.into());
        self
    }

    pub(crate) fn allowed(mut self, allowed: impl Into<String>) -> Self {
        self.allowed = Some(allowed.into());
        self
    }

    pub(crate) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.origin != Origin::Default {
            write!(f, "{}: ", self.origin)?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)?;
        for (label, text) in [
            ("found", &self.found),
            ("allowed", &self.allowed),
            ("fix", &self.fix),
        ] {
            if let Some(text) = text {
                write!(f, "\n  {label}: {text}")?;
            }
        }
        Ok(())
    }
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "source", rename_all = "lowercase")]
pub enum Origin {
    /// The configuration file.
    File {
        /// Its path as given; `callbox.toml` for text without a file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Character in the line, from 1.
        column: usize,
    },
    /// An environment variable.
    Env {
        /// Its name.
        name: String,
    },
    /// A flag of the command line.
    Flag {
        /// Its long spelling.
        name: &'static str,
    },
    /// Nobody set it.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line, column } => write!(f, "{}:{line}:{column}", path.display()),
            Self::Env { name } => f.write_str(name),
            Self::Flag { name } => f.write_str(name),
            Self::Default => f.write_str("default"),
        }
    }
}

/// Turns byte offsets of a text into lines and columns.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    path: &'a Path,
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(path: &'a Path, text: &'a str) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0)
            .chain(newlines.map(|(at, _)| at + 1))
            .collect();
        Self { path, text, starts }
    }

    pub(crate) fn path(&self) -> &'a Path {
        self.path
    }

    pub(crate) fn origin(&self, offset: usize) -> Origin {
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self
            .starts
            .get(line.saturating_sub(1))
            .copied()
            .unwrap_or(0);
        let before = self.text.get(start..offset).unwrap_or("");
        Origin::File {
            path: self.path.to_owned(),
            line,
            column: before.chars().count() + 1,
        }
    }
}

fn report(problems: &[Problem]) -> String {
    let mut text = match problems.len() {
        1 => "1 problem in the configuration".to_owned(),
        n => format!("{n} problems in the configuration"),
    };
    for problem in problems {
        // Writing to a String cannot fail.
        write!(text, "\n\n{problem}").ok();
    }
    text
}
