//! The only door to the process environment. Everything else in callbox is handed an [`Env`], and so are tests.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;

/// Prefix of the variables that set keys.
pub(crate) const PREFIX: &str = "CALLBOX__";

/// Environment variables, read once. Never prints a value.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Env(BTreeMap<String, OsString>);

impl Env {
    /// The environment of this process.
    #[allow(clippy::disallowed_methods, reason = "this is the door")]
    pub fn from_process() -> Self {
        // A name that is not UTF-8 cannot be one of ours; with the replacement character in it, it is reported if it
        // begins like one.
        std::env::vars_os()
            .map(|(name, value)| (name.to_string_lossy().into_owned(), value))
            .collect()
    }

    /// Value of a variable, if it is set and UTF-8.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.to_str()
    }

    /// Whether a variable is set, to whatever value.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The variables that set keys, in order of their names: name, rest of the name, value if it is UTF-8.
    pub(crate) fn overrides(&self) -> impl Iterator<Item = (&str, &str, Option<&str>)> {
        self.0
            .range(PREFIX.to_owned()..)
            .map_while(|(name, value)| {
                name.strip_prefix(PREFIX)
                    .map(|rest| (name.as_str(), rest, value.to_str()))
            })
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Env({} variables)", self.0.len())
    }
}

impl<K: Into<String>, V: Into<OsString>> FromIterator<(K, V)> for Env {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(variables: I) -> Self {
        Self(
            variables
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
    }
}
