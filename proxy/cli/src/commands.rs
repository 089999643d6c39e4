//! One file a command: from typed arguments to what is printed. Each gives an exit code or an error; printing errors is
//! `exit`'s.

mod calls;
mod completions;
mod config;
mod erase;
mod export;
mod man;
mod prune;
mod sessions;
mod show;
mod tail;
mod up;

use callbox_config::{Settings, Sources};

use crate::args::{Cli, Command};
use crate::exit::Exit;
use crate::log::Log;

/// Runs the command that was typed.
pub(crate) fn run(cli: Cli) -> anyhow::Result<Exit> {
    let sources = cli.global.sources();
    match cli.command {
        Command::Up(args) | Command::Proxy(args) => up::run(sources, args),
        Command::Sessions(args) => sessions::run(&open(&sources)?, &args),
        Command::Calls(args) => calls::run(&open(&sources)?, &args),
        Command::Tail(args) => tail::run(&open(&sources)?, &args),
        Command::Show(args) => show::run(&open(&sources)?, &args),
        Command::Export(args) => export::run(&open(&sources)?, &args),
        Command::Erase(args) => erase::run(&open(&sources)?, &args),
        Command::Prune => prune::run(&Settings::for_queries(&sources)?),
        Command::Config(command) => config::run(&sources, &command),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
    }
}

/// The log in the data directory of these settings.
fn open(sources: &Sources) -> anyhow::Result<Log> {
    Log::open(&Settings::for_queries(sources)?.data)
}
