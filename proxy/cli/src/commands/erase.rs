//! `erase`: a session's or a principal's records leave the log. Says what goes, and does it only with `--yes`.

use std::io::Write as _;

use callbox_store::{Erase, SessionFilter, SessionSummary};

use crate::args::EraseArgs;
use crate::exit::{Advice, Exit};
use crate::log::{Log, advise};
use crate::terminal::Screen;
use crate::text::plural;
use crate::{clock, words};

pub(super) fn run(log: &Log, args: &EraseArgs) -> anyhow::Result<Exit> {
    let what = match (&args.what.session, &args.what.principal) {
        (Some(prefix), _) => Erase::Session(log.session_id(prefix)?),
        (None, Some(prefix)) => Erase::Principal(log.principal(prefix)?),
        (None, None) => {
            return Err(
                Advice::usage("nothing to erase", "name it with --session or --principal").into(),
            );
        }
    };
    if !args.yes {
        return refuse(log, &what);
    }
    let erased = callbox_store::erase(&log.dir, &what).map_err(|error| advise(&log.dir, error))?;
    let mut screen = Screen::stdout();
    writeln!(
        screen,
        "erased {}: {}, {}, {}",
        name(&what),
        plural(erased.sessions, "session"),
        plural(erased.calls, "call"),
        plural(erased.messages, "message"),
    )?;
    screen.flush()?;
    if !erased.wal_emptied {
        let warning = "a reader still holds the write-ahead log: old pages of it go when that reader ends; \
                       repeat the command to be sure";
        writeln!(anstream::stderr(), "warning: {warning}")?;
    }
    Ok(Exit::Ok)
}

/// Without `--yes`: what would go.
fn refuse(log: &Log, what: &Erase) -> anyhow::Result<Exit> {
    const MOST: usize = 20;
    let sessions = match what {
        Erase::Session(id) => log.reader.session(*id)?.into_iter().collect(),
        Erase::Principal(principal) => {
            let filter = SessionFilter {
                principal: Some(principal.clone()),
                ..SessionFilter::default()
            };
            log.reader.sessions(&filter, None)?
        }
    };
    let mut lines: Vec<String> = sessions
        .iter()
        .take(MOST)
        .map(|summary| line(log, summary))
        .collect();
    if let Some(more) = sessions.get(MOST..).filter(|more| !more.is_empty()) {
        lines.push(format!("and {}", plural(more.len() as u64, "more session")));
    }
    let list = lines.join("\n  ");
    let message = format!("{} was not erased; this would go:\n  {list}", name(what));
    Err(Advice::usage(message, "repeat the command with --yes to erase it").into())
}

fn line(log: &Log, summary: &SessionSummary) -> String {
    let session = &summary.session;
    let client = session
        .client
        .as_ref()
        .map(words::client)
        .unwrap_or_default();
    let started = clock::date_time(session.started_at);
    format!(
        "session {}  {started}  {}  {client}",
        log.short_session(session.id),
        plural(summary.calls, "call")
    )
}

fn name(what: &Erase) -> String {
    match what {
        Erase::Session(id) => format!("session {id}"),
        Erase::Principal(principal) => format!("principal {principal}"),
    }
}
