//! `calls`: a table for people, JSON Lines for machines.

use std::io::Write as _;
use std::ops::ControlFlow;

use callbox_store::{Call, CallFilter};

use crate::args::{CallsArgs, ListArgs};
use crate::call_list::{CallList, Dates};
use crate::exit::Exit;
use crate::log::Log;
use crate::terminal::{self, Screen};

/// Rows that are laid out together when all calls are listed.
const PAGE: usize = 1000;

pub(super) fn run(log: &Log, args: &CallsArgs) -> anyhow::Result<Exit> {
    let filter = args.filter.resolve(log)?;
    if args.list.json {
        json(log, &filter, args.list.limit())?;
    } else {
        table(log, &filter, &args.list)?;
    }
    Ok(Exit::Ok)
}

fn json(log: &Log, filter: &CallFilter, limit: Option<usize>) -> anyhow::Result<()> {
    let mut out = terminal::lines();
    let mut print = |call: Call| Ok(writeln!(out, "{}", call.to_json())?);
    match limit {
        Some(_) => log
            .reader
            .calls(filter, limit)?
            .into_iter()
            .try_for_each(print)?,
        None => each(log, filter, &mut print)?,
    }
    Ok(out.flush()?)
}

fn table(log: &Log, filter: &CallFilter, args: &ListArgs) -> anyhow::Result<()> {
    let mut screen = Screen::stdout();
    let mut list = CallList::default();
    let limit = args.limit();
    if limit.is_some() {
        let calls = log.reader.calls(filter, limit)?;
        let dates = Dates::of(&screen, calls.iter().map(|call| call.started_at));
        list.page(&mut screen, log, &dates, &calls)?;
    } else {
        let dates = Dates::each(&screen);
        let mut page = Vec::with_capacity(PAGE);
        each(log, filter, |call| {
            page.push(call);
            if page.len() == PAGE {
                list.page(&mut screen, log, &dates, &page)?;
                page.clear();
            }
            Ok(())
        })?;
        list.page(&mut screen, log, &dates, &page)?;
    }
    screen.flush()?;
    let mut stderr = anstream::stderr();
    if list.rows() == 0 {
        writeln!(stderr, "no calls match in {}", log.dir.display())?;
    } else if let Some(note) = args.note(list.rows()) {
        writeln!(stderr, "{note}")?;
    }
    Ok(())
}

/// [`callbox_store::Reader::each_call`] with a sink that may fail.
pub(super) fn each(
    log: &Log,
    filter: &CallFilter,
    mut sink: impl FnMut(Call) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut result = Ok(());
    log.reader.each_call(filter, &mut |call| match sink(call) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            result = Err(error);
            ControlFlow::Break(())
        }
    })?;
    result
}
