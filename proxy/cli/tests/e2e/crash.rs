//! kill -9 under load: what was promised is in the log, and the file is sound.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use callbox_testkit::process::{Callbox, calls, until};

use crate::at_rest;
use crate::load::{self, Load};
use crate::stand::binary;

const ROUNDS: usize = 20;

/// What `durability = "commit"` may lose; a build without optimisation is slower in all it does.
const WINDOW: Duration = Duration::from_millis(if cfg!(debug_assertions) { 100 } else { 50 });

/// Kills callbox twenty times under load; the calls whose answers came `margin` before the kill must be in the log.
fn killed(durability: &str, margin: Duration) -> Result<()> {
    let folder = tempfile::TempDir::new()?;
    let data = folder.path().join("data");
    let upstream = load::thoughtful_upstream("found", Duration::from_millis(4))?;
    let environment = [("CALLBOX__RECORD__DURABILITY", durability)];
    let mut promised: Vec<Promised> = Vec::new();
    let mut answered_in_all = 0;
    for round in 0..ROUNDS {
        let mut callbox = Callbox::up(binary(), &upstream.url(), &data, &[], &environment)?;
        let load = Load::start(callbox.listen, 4, &format!("r{round}"), 300);
        // A little longer in every round: the kill finds the writer in another state each time.
        let enough = 60 + 7 * round as u64;
        let began = Instant::now();
        let stalls = Stalls::watch();
        until("calls are answered", || {
            let long = began.elapsed() > 5 * WINDOW;
            Ok((long && load.answered() >= enough).then_some(()))
        })?;
        let killed = Instant::now();
        callbox.kill()?;
        // Time in which the machine let its threads wait is not the recorder's; a record passes two of them.
        let margin = if margin.is_zero() {
            margin
        } else {
            margin + 2 * stalls.longest()
        };
        let (answered, _) = load.stop()?;
        answered_in_all += answered.len();
        promised.extend(
            answered
                .into_iter()
                .map(|(n, at)| (n, killed.saturating_duration_since(at)))
                .filter(|(_, before)| *before >= margin),
        );
        sound(&data.join("calls.db")).with_context(|| format!("after kill {round}"))?;
        missing(&data, &promised).with_context(|| {
            let log = callbox.log().unwrap_or_default();
            format!("after kill {round}, {margin:?}: {log}")
        })?;
    }
    ensure!(
        promised.len() * 2 > answered_in_all,
        "the test must promise most calls: {}",
        promised.len()
    );
    // Once more, to see that what the last kill left behind is taken up.
    let mut callbox = Callbox::up(binary(), &upstream.url(), &data, &[], &environment)?;
    missing(&data, &promised)?;
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

/// How long this process was not run when it should have been: a busy machine's share in any delay.
#[derive(Debug)]
struct Stalls {
    longest: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Stalls {
    fn watch() -> Self {
        let stalls = Self {
            longest: Arc::default(),
            stop: Arc::default(),
        };
        let (longest, stop) = (Arc::clone(&stalls.longest), Arc::clone(&stalls.stop));
        std::thread::spawn(move || {
            let mut last = Instant::now();
            while !stop.load(Ordering::Acquire) {
                std::thread::park_timeout(Duration::from_millis(1));
                let gap = last.elapsed();
                last += gap;
                let gap = u64::try_from(gap.as_micros()).unwrap_or(u64::MAX);
                longest.fetch_max(gap, Ordering::AcqRel);
            }
        });
        stalls
    }

    fn longest(&self) -> Duration {
        Duration::from_micros(self.longest.load(Ordering::Acquire))
    }
}

impl Drop for Stalls {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
    }
}

fn sound(path: &Path) -> Result<()> {
    let db = at_rest::open(path)?;
    let answer: String = db.query_row("PRAGMA integrity_check", (), |row| row.get(0))?;
    ensure!(answer == "ok", "{answer}");
    Ok(())
}

/// A call's name, and how long before the kill its answer was whole.
type Promised = (String, Duration);

/// Fails when a promised call is not in the log.
fn missing(data: &Path, promised: &[Promised]) -> Result<()> {
    let recorded: HashSet<String> = calls(binary(), data)?
        .iter()
        .filter(|call| call["outcome"] == "ok")
        .filter_map(|call| call["arguments"]["n"].as_str().map(str::to_owned))
        .collect();
    let missing: Vec<&Promised> = promised
        .iter()
        .filter(|(n, _)| !recorded.contains(n))
        .collect();
    let oldest = missing.iter().max_by_key(|(_, before)| *before);
    ensure!(
        missing.is_empty(),
        "{} of {} promised calls are not in the log; the oldest was answered {oldest:?} before the kill",
        missing.len(),
        promised.len(),
    );
    Ok(())
}

#[test]
fn twenty_kills_lose_no_answered_call_before_response() -> Result<()> {
    killed("before-response", Duration::ZERO)
}

#[test]
fn twenty_kills_lose_at_most_the_last_milliseconds_in_commit_mode() -> Result<()> {
    killed("commit", WINDOW)
}
