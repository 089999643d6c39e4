//! `tail`: calls as they conclude, until Ctrl-C.

use std::io::Write as _;
use std::time::Duration;

use crate::args::TailArgs;
use crate::call_list::{CallList, Dates};
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::log::Log;
use crate::terminal::{self, Screen};

/// Between two looks: well under the 100 ms in which a record is to be seen.
const INTERVAL: Duration = Duration::from_millis(50);

pub(super) fn run(log: &Log, args: &TailArgs) -> anyhow::Result<Exit> {
    let filter = args.filter.resolve(log)?;
    let interrupt = Interrupt::listen()?;
    let mut follower = log.reader.follow()?;
    let mut printer = if args.json {
        Printer::Json
    } else {
        Printer::people()
    };
    writeln!(
        anstream::stderr(),
        "following {}, Ctrl-C ends it",
        log.dir.display()
    )?;
    while !interrupt.wait(INTERVAL) {
        let mut calls = follower.poll()?;
        calls.retain(|call| filter.matches(call));
        if !calls.is_empty() {
            printer.print(log, &calls)?;
        }
    }
    Ok(Exit::Ok)
}

enum Printer {
    Json,
    People {
        screen: Box<Screen>,
        dates: Dates,
        list: CallList,
    },
}

impl Printer {
    fn people() -> Self {
        let screen = Box::new(Screen::stdout());
        let dates = Dates::each(&screen);
        Self::People {
            screen,
            dates,
            list: CallList::default(),
        }
    }

    /// Prints and flushes, so that a reader sees each call at once.
    fn print(&mut self, log: &Log, calls: &[callbox_store::Call]) -> anyhow::Result<()> {
        match self {
            Self::Json => {
                let mut out = terminal::lines();
                for call in calls {
                    writeln!(out, "{}", call.to_json())?;
                }
                out.flush()?;
            }
            Self::People {
                screen,
                dates,
                list,
            } => {
                list.page(screen, log, dates, calls)?;
                screen.flush()?;
            }
        }
        Ok(())
    }
}
