//! `export`: every call of a filter into a file or stdout, one at a time: a log of any size passes through.

mod har;

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use callbox_store::{Call, CallFilter};
use tempfile::NamedTempFile;

use super::calls::each;
use crate::args::ExportArgs;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::log::Log;
use crate::terminal;
use crate::text::plural;

pub(super) fn run(log: &Log, args: &ExportArgs) -> anyhow::Result<Exit> {
    let filter = args.filter.resolve(log)?;
    match args
        .output
        .as_deref()
        .filter(|path| *path != Path::new("-"))
    {
        Some(path) => to_file(log, &filter, args.har, path)?,
        None => write(log, &filter, args.har, &mut terminal::lines(), || Ok(())).map(drop)?,
    }
    Ok(Exit::Ok)
}

/// Beside the file first, then in its place: nobody ever reads half an export, and an old one stays when this one fails.
fn to_file(log: &Log, filter: &CallFilter, har: bool, path: &Path) -> anyhow::Result<()> {
    let failed = || format!("cannot write {}", path.display());
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let file = tempfile::Builder::new()
        .prefix(".callbox-export-")
        .tempfile_in(folder)
        .with_context(failed)?;
    // Ctrl-C must not leave half a file behind.
    let interrupt = Interrupt::listen()?;
    let mut out = BufWriter::with_capacity(64 * 1024, file);
    let calls = write(log, filter, har, &mut out, || {
        ensure!(!interrupt.came(), "interrupted; nothing was written");
        Ok(())
    })?;
    let file = out
        .into_inner()
        .map_err(io::IntoInnerError::into_error)
        .with_context(failed)?;
    keep(file, path).with_context(failed)?;
    writeln!(
        anstream::stderr(),
        "wrote {} to {}",
        plural(calls, "call"),
        path.display()
    )?;
    Ok(())
}

fn keep(file: NamedTempFile, path: &Path) -> io::Result<File> {
    file.as_file().sync_all()?;
    Ok(file.persist(path)?)
}

/// Writes all calls; gives how many.
fn write(
    log: &Log,
    filter: &CallFilter,
    har: bool,
    out: &mut dyn Write,
    check: impl Fn() -> anyhow::Result<()>,
) -> anyhow::Result<u64> {
    let mut progress = Progress::start();
    let mut format = if har {
        Format::Har(har::Archive::begin(out)?)
    } else {
        Format::JsonLines
    };
    each(log, filter, |call| {
        check()?;
        format.call(out, &call)?;
        progress.advance()
    })?;
    format.end(out)?;
    out.flush()?;
    progress.end()
}

enum Format {
    JsonLines,
    Har(har::Archive),
}

impl Format {
    fn call(&mut self, out: &mut dyn Write, call: &Call) -> anyhow::Result<()> {
        match self {
            Self::JsonLines => Ok(writeln!(out, "{}", call.to_json())?),
            Self::Har(archive) => archive.entry(out, call),
        }
    }

    fn end(self, out: &mut dyn Write) -> anyhow::Result<()> {
        match self {
            Self::JsonLines => Ok(()),
            Self::Har(archive) => archive.end(out),
        }
    }
}

/// A line on stderr that counts, when a person is there to see it.
struct Progress {
    shown: bool,
    calls: u64,
    next: Instant,
}

impl Progress {
    const EVERY: Duration = Duration::from_millis(500);

    fn start() -> Self {
        Self {
            shown: io::stderr().is_terminal(),
            calls: 0,
            next: Instant::now() + Self::EVERY,
        }
    }

    fn advance(&mut self) -> anyhow::Result<()> {
        self.calls += 1;
        // Looking at the clock for each call would cost as much as writing it.
        if self.shown && self.calls.is_multiple_of(256) && Instant::now() >= self.next {
            self.next = Instant::now() + Self::EVERY;
            write!(io::stderr(), "\r{}", plural(self.calls, "call"))?;
        }
        Ok(())
    }

    fn end(self) -> anyhow::Result<u64> {
        if self.shown && self.calls >= 256 {
            // Leaves the line to what is said next.
            write!(io::stderr(), "\r\x1b[K")?;
        }
        Ok(self.calls)
    }
}
