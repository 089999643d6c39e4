//! kill -9 under load: what was promised is in the log, and the file is sound.

use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use callbox_testkit::process::{Callbox, calls, until};

use crate::at_rest;
use crate::load::{self, Load};
use crate::stand::binary;

const ROUNDS: usize = 20;

/// What `durability = "commit"` may lose.
const WINDOW: Duration = Duration::from_millis(50);

/// Kills callbox twenty times under load; the calls whose answers came `margin` before the kill must be in the log.
fn killed(durability: &str, margin: Duration) -> Result<()> {
    let folder = tempfile::TempDir::new()?;
    let data = folder.path().join("data");
    let upstream = load::upstream("found")?;
    let environment = [("CALLBOX__RECORD__DURABILITY", durability)];
    let mut promised = Vec::new();
    let mut answered_in_all = 0;
    for round in 0..ROUNDS {
        let mut callbox = Callbox::up(binary(), &upstream.url(), &data, &[], &environment)?;
        let load = Load::start(callbox.listen, 4, &format!("r{round}"), 300);
        // A little longer in every round: the kill finds the writer in another state each time.
        let enough = 60 + 7 * round as u64;
        let began = Instant::now();
        until("calls are answered", || {
            let long = began.elapsed() > 5 * WINDOW;
            Ok((long && load.answered() >= enough).then_some(()))
        })?;
        let killed = Instant::now();
        callbox.kill()?;
        let (answered, _) = load.stop()?;
        answered_in_all += answered.len();
        promised.extend(
            answered
                .into_iter()
                .filter(|(_, at)| *at + margin <= killed || margin.is_zero())
                .map(|(n, _)| n),
        );
        sound(&data.join("calls.db")).with_context(|| format!("after kill {round}"))?;
        let missing = missing(&data, &promised)?;
        ensure!(
            missing.is_empty(),
            "after kill {round}: {} of {} promised calls are not in the log, e.g. {:?}",
            missing.len(),
            promised.len(),
            missing.iter().take(5).collect::<Vec<_>>()
        );
    }
    ensure!(
        promised.len() * 2 > answered_in_all,
        "the test must promise most calls: {}",
        promised.len()
    );
    // Once more, to see that what the last kill left behind is taken up.
    let mut callbox = Callbox::up(binary(), &upstream.url(), &data, &[], &environment)?;
    ensure!(missing(&data, &promised)?.is_empty());
    for call in calls(binary(), &data)? {
        ensure!(
            call["outcome"] != "pending",
            "left open by a kill, then abandoned: {call}"
        );
    }
    callbox.reconcile()?;
    ensure!(callbox.stop()?.success());
    Ok(())
}

fn sound(path: &Path) -> Result<()> {
    let db = at_rest::open(path)?;
    let answer: String = db.query_row("PRAGMA integrity_check", (), |row| row.get(0))?;
    ensure!(answer == "ok", "{answer}");
    Ok(())
}

fn missing(data: &Path, promised: &[String]) -> Result<Vec<String>> {
    let recorded: HashSet<String> = calls(binary(), data)?
        .iter()
        .filter(|call| call["outcome"] == "ok")
        .filter_map(|call| call["arguments"]["n"].as_str().map(str::to_owned))
        .collect();
    Ok(promised
        .iter()
        .filter(|n| !recorded.contains(*n))
        .cloned()
        .collect())
}

#[test]
fn twenty_kills_lose_no_answered_call_before_response() -> Result<()> {
    killed("before-response", Duration::ZERO)
}

#[test]
fn twenty_kills_lose_at_most_the_last_milliseconds_in_commit_mode() -> Result<()> {
    killed("commit", WINDOW)
}
