//! A folder with a configuration file in it, and what it takes to load it.

use std::fs;
use std::path::{Path, PathBuf};

use callbox_config::{ConfigError, Env, Loaded, Overrides, Settings, Sources, load};

/// Sources in a folder of their own.
pub(crate) struct Desk {
    folder: tempfile::TempDir,
    pub(crate) sources: Sources,
}

impl Desk {
    /// No file, no variables, no flags.
    pub(crate) fn bare() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            sources: Sources::default(),
        }
    }

    /// With this text as `callbox.toml`.
    pub(crate) fn file(text: &str) -> Self {
        let mut desk = Self::bare();
        desk.sources.file = Some(desk.put("callbox.toml", text));
        desk
    }

    pub(crate) fn env<const N: usize>(mut self, variables: [(&str, &str); N]) -> Self {
        self.sources.env = Env::from_iter(variables);
        self
    }

    pub(crate) fn flags(mut self, overrides: Overrides) -> Self {
        self.sources.overrides = overrides;
        self
    }

    pub(crate) fn upstream(mut self, url: &str) -> Self {
        self.sources.overrides.upstream = vec![url.to_owned()];
        self
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file into the folder.
    pub(crate) fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn load(&self) -> Result<Loaded, ConfigError> {
        load(&self.sources)
    }

    #[track_caller]
    pub(crate) fn settings(&self) -> Settings {
        match self.load() {
            Ok(loaded) => loaded.settings,
            Err(error) => panic!("{error}"),
        }
    }

    /// The error text, with the folder left out.
    #[track_caller]
    pub(crate) fn error(&self) -> String {
        self.text(&self.load().unwrap_err().to_string())
    }

    /// The warnings, with the folder left out.
    #[track_caller]
    pub(crate) fn warnings(&self) -> String {
        let warnings: Vec<_> = self
            .load()
            .unwrap()
            .warnings
            .iter()
            .map(ToString::to_string)
            .collect();
        self.text(&warnings.join("\n\n"))
    }

    /// A text with the folder left out, so that it is the same in every run.
    pub(crate) fn text(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.folder().display()), "")
    }
}

pub(crate) const CERTIFICATE: &str =
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
pub(crate) const KEY: &str = "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n";
