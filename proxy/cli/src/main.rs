//! The `callbox` binary: arguments in, exit code out. Everything it does is in the modules; nothing else here decides.

mod answer;
mod args;
mod call_list;
mod clock;
mod commands;
mod exit;
mod ids;
mod interrupt;
mod json;
mod log;
mod serve;
mod table;
mod terminal;
mod text;
mod words;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let exit = match args::Cli::try_parse() {
        Ok(cli) => exit::conclude(commands::run(cli)),
        Err(error) => exit::usage(&error),
    };
    exit.into()
}
