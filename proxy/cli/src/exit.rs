//! How a command ends: exit codes, and errors as people read them. Owns every word after `error:`; no command prints
//! its own failure.

use std::fmt;
use std::io::{self, Write as _};
use std::process::ExitCode;

use crate::text::lines;

/// What the caller's shell learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done, or nothing found to object to.
    Ok,
    /// The check that was asked for found something.
    Found,
    /// Cannot tell, or something broke.
    Error,
    /// The command line itself is wrong (`EX_USAGE`).
    Usage,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Ok => 0,
            Exit::Found => 1,
            Exit::Error => 2,
            Exit::Usage => 64,
        })
    }
}

/// An error that knows what to do about it.
#[derive(Debug)]
pub(crate) struct Advice {
    message: String,
    hint: String,
    exit: Exit,
}

impl Advice {
    /// Something went wrong, and `hint` helps.
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: hint.into(),
            exit: Exit::Error,
        }
    }

    /// The command line asks for something that cannot be, in a way clap cannot see.
    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            exit: Exit::Usage,
            ..Self::new(message, hint)
        }
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Advice {}

/// Ends a command: prints what went wrong, if anything, and gives the exit code.
pub(crate) fn conclude(result: anyhow::Result<Exit>) -> Exit {
    let error = match result {
        Ok(exit) => return exit,
        Err(error) => error,
    };
    if is_broken_pipe(&error) {
        // The reader has seen enough (`callbox calls | head`).
        return Exit::Ok;
    }
    // Nowhere left to say it if stderr is gone, too.
    print(&error).unwrap_or(());
    error
        .downcast_ref::<Advice>()
        .map_or(Exit::Error, |advice| advice.exit)
}

/// Ends a command line that clap did not take, or that only asked for help or the version.
pub(crate) fn usage(error: &clap::Error) -> Exit {
    // Nowhere left to say it if the stream is gone.
    error.print().unwrap_or(());
    if error.use_stderr() {
        Exit::Usage
    } else {
        Exit::Ok
    }
}

fn print(error: &anyhow::Error) -> io::Result<()> {
    const LABEL: anstyle::Style = anstyle::AnsiColor::Red.on_default().bold();
    const HINT: anstyle::Style = anstyle::AnsiColor::Cyan.on_default().bold();
    let mut stderr = anstream::stderr().lock();
    writeln!(
        stderr,
        "{LABEL}error{LABEL:#}: {}",
        lines(&error.to_string())
    )?;
    for cause in error.chain().skip(1) {
        writeln!(stderr, "  caused by: {}", lines(&cause.to_string()))?;
    }
    if let Some(advice) = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<Advice>())
    {
        writeln!(stderr, "\n{HINT}hint{HINT:#}: {}", lines(&advice.hint))?;
    }
    Ok(())
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref().map(io::Error::kind);
        // serde_json keeps the error of its writer to itself.
        let json = || {
            cause
                .downcast_ref()
                .and_then(serde_json::Error::io_error_kind)
        };
        io.or_else(json) == Some(io::ErrorKind::BrokenPipe)
    })
}
