//! Looks for planted secrets in everything that is at rest: raw files, and what is packed inside them.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use rusqlite::Connection;
use rusqlite::types::ValueRef;

use crate::stand::{Stand, binary};
use callbox_testkit::blocking::http1::find;
use callbox_testkit::process::query;

/// Everything at rest, by where it was found.
#[derive(Debug)]
pub(crate) struct AtRest(Vec<(String, Vec<u8>)>);

impl AtRest {
    /// Reads the data directory and callbox's own log; while it runs, the write-ahead log is there, too.
    pub(crate) fn of(stand: &Stand) -> Result<Self> {
        let data = stand.data();
        let mut found = Vec::new();
        for path in files(stand.folder.path())? {
            let bytes = std::fs::read(&path)?;
            found.push((path.display().to_string(), bytes));
        }
        ensure!(!found.is_empty(), "nothing at rest");
        for path in files(&data)? {
            if path.extension().is_some_and(|name| name == "db") {
                columns(&path, &mut found)?;
            }
        }
        for arguments in [
            &["calls", "--json"][..],
            &["sessions", "--json"],
            &["export"],
            &["export", "--har"],
        ] {
            let text = query(binary(), &data, arguments)?;
            found.push((arguments.join(" "), text.into_bytes()));
        }
        let sessions = crate::stand::lines(&query(binary(), &data, &["sessions", "--json"])?)?;
        for session in sessions {
            let id = session["id"].as_str().context("an id")?;
            for arguments in [&["show", id, "--json"][..], &["show", id, "--full"]] {
                let text = query(binary(), &data, arguments)?;
                found.push((arguments.join(" "), text.into_bytes()));
            }
        }
        Ok(Self(found))
    }

    /// Checks that no secret is anywhere.
    pub(crate) fn has_none_of(&self, secrets: &[&str]) -> Result<()> {
        for secret in secrets {
            let places = self.places(secret);
            ensure!(places.is_empty(), "{secret} is in {places:?}");
        }
        Ok(())
    }

    /// Where a text is.
    pub(crate) fn places(&self, text: &str) -> Vec<&str> {
        self.0
            .iter()
            .filter(|(_, bytes)| find(bytes, text.as_bytes()).is_some())
            .map(|(place, _)| place.as_str())
            .collect()
    }
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(self::files(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}

/// The database behind callbox's back.
#[expect(
    clippy::disallowed_methods,
    reason = "looks at the file from outside, on purpose"
)]
pub(crate) fn open(path: &Path) -> rusqlite::Result<Connection> {
    Connection::open(path)
}

/// Every value of every table, and what it holds when it is a zstd frame.
fn columns(path: &Path, found: &mut Vec<(String, Vec<u8>)>) -> Result<()> {
    let db = open(path)?;
    let mut names = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")?;
    let names: Vec<String> = names
        .query_map((), |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for table in names {
        let mut all = db.prepare(&format!("SELECT * FROM \"{table}\""))?;
        let width = all.column_count();
        let mut rows = all.query(())?;
        while let Some(row) = rows.next()? {
            for column in 0..width {
                if let ValueRef::Blob(bytes) | ValueRef::Text(bytes) = row.get_ref(column)? {
                    found.push((format!("{table} column {column}"), bytes.to_vec()));
                    if let Ok(unpacked) = zstd::decode_all(bytes) {
                        found.push((format!("{table} column {column}, unpacked"), unpacked));
                    }
                }
            }
        }
    }
    Ok(())
}
