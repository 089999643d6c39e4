//! `prune`: the configured retention limits, applied now.

use std::io::Write as _;

use callbox_config::Settings;

use crate::exit::Exit;
use crate::log::advise;
use crate::terminal::Screen;
use crate::text::{bytes, plural};

pub(super) fn run(settings: &Settings) -> anyhow::Result<Exit> {
    let retention = &settings.record.retention;
    let pruned = callbox_store::prune(&settings.data, retention.max_age, retention.max_bytes)
        .map_err(|error| advise(&settings.data, error))?;
    let mut screen = Screen::stdout();
    writeln!(
        screen,
        "removed {}, {}, {}; the log is {} smaller",
        plural(pruned.calls, "call"),
        plural(pruned.messages, "message"),
        plural(pruned.sessions, "session"),
        bytes(pruned.bytes),
    )?;
    screen.flush()?;
    Ok(Exit::Ok)
}
