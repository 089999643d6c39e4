//! `man`: manual pages from the same words as `--help`.

use std::io::Write as _;

use clap::CommandFactory as _;

use crate::args::{Cli, ManArgs};
use crate::exit::{Advice, Exit};
use crate::terminal;

pub(super) fn run(args: &ManArgs) -> anyhow::Result<Exit> {
    let mut callbox = Cli::command();
    callbox.build();
    let page = match &args.command {
        None => callbox,
        Some(name) => match callbox.find_subcommand(name) {
            Some(command) => command.clone(),
            None => {
                return Err(Advice::usage(
                    format!("callbox has no command {name}"),
                    "callbox --help lists them",
                )
                .into());
            }
        },
    };
    let mut out = terminal::lines();
    clap_mangen::Man::new(page).render(&mut out)?;
    out.flush()?;
    Ok(Exit::Ok)
}
