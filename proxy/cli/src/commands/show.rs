//! `show`: one call with everything about it, or a session as a timeline.

mod call;
mod message;
mod session;
mod timeline;

use std::io::Write as _;

use anyhow::Context as _;
use callbox_store::{CallFilter, Resolved};
use uuid::Uuid;

use crate::args::ShowArgs;
use crate::exit::{Advice, Exit};
use crate::log::Log;
use crate::terminal::{self, Screen};

const GONE: &str = "it was removed just now";

pub(super) fn run(log: &Log, args: &ShowArgs) -> anyhow::Result<Exit> {
    let shown = match args.number {
        Some(number) => Resolved::Call(numbered(log, &args.id, number)?),
        None => log.resolve(&args.id)?,
    };
    match (shown, args.json) {
        (Resolved::Call(id), true) => {
            let call = log.reader.call(id)?.context(GONE)?;
            let mut out = terminal::lines();
            writeln!(out, "{}", call.to_json())?;
            out.flush()?;
        }
        (Resolved::Call(id), false) => {
            let call = log.reader.call(id)?.context(GONE)?;
            let mut screen = Screen::stdout();
            let hints = call::print(&mut screen, log, &call, args)?;
            screen.flush()?;
            for hint in hints {
                writeln!(anstream::stderr(), "hint: {hint}")?;
            }
        }
        (Resolved::Session(id), true) => session_json(log, id)?,
        (Resolved::Session(id), false) => session::print(log, id, args.full)?,
    }
    Ok(Exit::Ok)
}

/// A call by its number in a session.
fn numbered(log: &Log, session: &str, number: u32) -> anyhow::Result<Uuid> {
    let filter = CallFilter {
        session: Some(log.session_id(session)?),
        ..CallFilter::default()
    };
    let calls = log.reader.calls(&filter, None)?;
    let Some(call) = calls.iter().rfind(|call| call.seq == number) else {
        let message = format!("session {session} has no call {number} in the log");
        return Err(Advice::new(message, format!("callbox show {session} lists its calls")).into());
    };
    Ok(call.id)
}

/// The session, then its calls and other messages in the order of time.
fn session_json(log: &Log, id: Uuid) -> anyhow::Result<()> {
    let summary = log.reader.session(id)?.context(GONE)?;
    let filter = CallFilter {
        session: Some(id),
        ..CallFilter::default()
    };
    let mut lines: Vec<_> = log
        .reader
        .calls(&filter, None)?
        .iter()
        .map(|call| (call.started_at, call.to_json()))
        .collect();
    lines.extend(
        log.reader
            .messages(id)?
            .iter()
            .map(|message| (message.at, message.to_json())),
    );
    lines.sort_by_key(|(at, _)| *at);
    let mut out = terminal::lines();
    writeln!(out, "{}", summary.to_json())?;
    for (_, line) in lines {
        writeln!(out, "{line}")?;
    }
    Ok(out.flush()?)
}
