//! `up`, `proxy`: settings from file, environment and flags, then the server.

use callbox_config::{Overrides, Sources};

use crate::args::ServeArgs;
use crate::exit::Exit;
use crate::serve;

pub(super) fn run(mut sources: Sources, args: ServeArgs) -> anyhow::Result<Exit> {
    let ServeArgs {
        upstream,
        listen,
        admin,
        ready_file,
    } = args;
    sources.overrides = Overrides {
        upstream,
        listen,
        admin,
        ..sources.overrides
    };
    let loaded = callbox_config::load(&sources)?;
    serve::up(&sources, &loaded, ready_file.as_deref())
}
