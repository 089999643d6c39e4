//! `completions`: scripts for shells.

use std::io::Write as _;

use clap::CommandFactory as _;

use crate::args::{Cli, CompletionsArgs};
use crate::exit::Exit;
use crate::terminal;

pub(super) fn run(args: &CompletionsArgs) -> anyhow::Result<Exit> {
    // Into memory first: the generator panics when it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "callbox", &mut script);
    let mut out = terminal::lines();
    out.write_all(&script)?;
    out.flush()?;
    Ok(Exit::Ok)
}
