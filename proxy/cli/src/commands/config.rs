//! `config`: what is wrong with the settings, what they are, what they may be.

use std::io::Write as _;

use callbox_config::{ConfigError, Problem, Sources};
use serde::Serialize;

use crate::args::{ConfigCheckArgs, ConfigCommand};
use crate::exit::Exit;
use crate::terminal::{self, Screen};
use crate::text::{lines, plural};
use crate::words::{BAD, BOLD, ODD};

pub(super) fn run(sources: &Sources, command: &ConfigCommand) -> anyhow::Result<Exit> {
    let text = match command {
        ConfigCommand::Check(args) => return check(sources, args),
        ConfigCommand::Show => callbox_config::show(sources)?,
        ConfigCommand::Schema => callbox_config::schema(),
    };
    let mut screen = Screen::stdout();
    write!(screen, "{}", lines(&text))?;
    screen.flush()?;
    Ok(Exit::Ok)
}

/// A problem as one JSON object.
#[derive(Serialize)]
struct Line<'a> {
    schema: &'static str,
    severity: &'static str,
    #[serde(flatten)]
    problem: &'a Problem,
}

fn check(sources: &Sources, args: &ConfigCheckArgs) -> anyhow::Result<Exit> {
    let (errors, warnings) = match callbox_config::load(sources) {
        Ok(loaded) => (Vec::new(), loaded.warnings),
        Err(ConfigError::Invalid(problems)) => (problems, Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let found = errors
        .iter()
        .map(|problem| ("error", problem))
        .chain(warnings.iter().map(|problem| ("warning", problem)));
    if args.json {
        let mut out = terminal::lines();
        for (severity, problem) in found {
            serde_json::to_writer(
                &mut out,
                &Line {
                    schema: "callbox.problem/1",
                    severity,
                    problem,
                },
            )?;
            writeln!(out)?;
        }
        out.flush()?;
    } else {
        let mut screen = Screen::stdout();
        for (severity, problem) in found {
            let style = if severity == "error" { BAD } else { ODD };
            writeln!(
                screen,
                "{style}{severity}{style:#}: {}\n",
                lines(&problem.to_string())
            )?;
        }
        let errors = plural(errors.len() as u64, "error");
        let warnings = plural(warnings.len() as u64, "warning");
        writeln!(screen, "{BOLD}{errors}, {warnings}{BOLD:#}")?;
        screen.flush()?;
    }
    Ok(if errors.is_empty() {
        Exit::Ok
    } else {
        Exit::Found
    })
}
