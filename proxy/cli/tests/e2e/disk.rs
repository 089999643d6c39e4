//! Disk full, disk that cannot be written, a lock that another process holds: traffic goes on, losses are counted,
//! recording resumes by itself.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use callbox_testkit::blocking::Client;
use callbox_testkit::process::{Callbox, until};

use crate::at_rest;
use crate::load::{self, Load};
use crate::mcp;
use crate::stand::{Setup, Stand, binary};

/// Small queues, so that losses begin soon.
const SMALL_QUEUES: &[(&str, &str)] = &[
    ("RECORD__QUEUE_BYTES", "1MiB"),
    ("RECORD__QUEUE_EVENTS", "1024"),
];

/// A file system of its own; taken down when dropped.
#[derive(Debug)]
struct Small(PathBuf);

impl Small {
    /// None, with a word on stderr, where the test may not mount.
    fn mount(at: &Path, size: &str) -> Result<Option<Self>> {
        std::fs::create_dir(at)?;
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(at)
            .output()?;
        if !done.status.success() {
            eprintln!(
                "SKIPPED: needs to mount a tmpfs: {}",
                String::from_utf8_lossy(&done.stderr)
            );
            return Ok(None);
        }
        Ok(Some(Self(at.to_owned())))
    }

    /// Fills it to the last byte; gives the file that does.
    fn fill(&self) -> Result<PathBuf> {
        let path = self.0.join("filler");
        let mut file = std::fs::File::create(&path)?;
        while file.write_all(&[b'x'; 4096]).is_ok() {}
        Ok(path)
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // The process that held it is gone by then; a failure shows as a leftover mount.
        drop(Command::new("umount").arg("-l").arg(&self.0).status());
    }
}

fn readiness(callbox: &Callbox) -> Result<(u16, String)> {
    let mut admin = Client::connect(callbox.admin)?;
    let answer = admin.ask("GET /readyz HTTP/1.1\r\nHost: admin\r\n\r\n")?;
    Ok((answer.status(), answer.text()))
}

/// Waits until records are lost for `reason`, and checks that readiness says so without turning.
fn loses(callbox: &Callbox, reason: &str) -> Result<()> {
    until("records are lost and counted", || {
        Ok((callbox.metric("callbox_dropped_total", "")? > 0.0).then_some(()))
    })?;
    until("the reason shows", || {
        let degraded = callbox.metric("callbox_recorder_degraded", reason)?;
        Ok((degraded > 0.0).then_some(()))
    })
    .with_context(|| callbox.admin_page("/metrics").unwrap_or_default())?;
    let (status, detail) = readiness(callbox)?;
    ensure!(
        status == 200,
        "readiness is about traffic: {status} {detail}"
    );
    ensure!(detail.contains(reason), "{detail}");
    Ok(())
}

/// Waits until records are stored again.
fn resumes(callbox: &Callbox) -> Result<()> {
    until("recording resumes by itself", || {
        Ok((callbox.metric("callbox_recorder_up", "")? > 0.0).then_some(()))
    })?;
    let stored = callbox.metric("callbox_records_stored_total", "")?;
    until("more is stored", || {
        Ok((callbox.metric("callbox_records_stored_total", "")? > stored).then_some(()))
    })
}

/// A call after all that, and its record.
fn still_works(callbox: &Callbox) -> Result<()> {
    let mut client = Client::connect(callbox.listen)?;
    let answer = client.ask(mcp::post(&mcp::call("1", "afterwards", "{}")))?;
    ensure!(answer.status() == 200);
    until("the call is recorded", || {
        let found = callbox.query(&["calls", "--json", "--tool", "afterwards"])?;
        Ok(found.contains(r#""outcome":"ok""#).then_some(()))
    })
    .with_context(|| {
        let detail = readiness(callbox).map(|(_, detail)| detail);
        format!("{detail:?} {}", callbox.log().unwrap_or_default())
    })
}

#[test]
fn a_full_disk_loses_records_and_no_request() -> Result<()> {
    let folder = tempfile::TempDir::new()?;
    let Some(small) = Small::mount(&folder.path().join("small"), "16m")? else {
        return Ok(());
    };
    let upstream = load::upstream("found")?;
    let environment = SMALL_QUEUES
        .iter()
        .map(|(name, value)| (format!("CALLBOX__{name}"), *value))
        .collect::<Vec<_>>();
    let environment: Vec<_> = environment
        .iter()
        .map(|(name, value)| (name.as_str(), *value))
        .collect();
    let mut callbox = Callbox::up(
        binary(),
        &upstream.url(),
        &small.0.join("data"),
        &[],
        &environment,
    )?;
    let load = Load::start(callbox.listen, 3, "disk", 2000);
    until("calls are answered", || {
        Ok((load.answered() > 20).then_some(()))
    })?;
    let filler = small.fill()?;
    loses(&callbox, "disk_full")?;
    let (answered, failures) = load.stop()?;
    ensure!(failures.is_empty(), "no request fails: {failures:?}");
    ensure!(!answered.is_empty());
    // Less load when there is room again, or the small disk would be full of calls at once.
    let trickle = Load::start(callbox.listen, 1, "trickle", 10);
    std::fs::remove_file(filler)?;
    resumes(&callbox)?;
    let (_, failures) = trickle.stop()?;
    ensure!(failures.is_empty(), "no request fails: {failures:?}");
    still_works(&callbox)?;
    let (status, detail) = readiness(&callbox)?;
    let detail: serde_json::Value = serde_json::from_str(&detail)?;
    ensure!(
        status == 200 && detail["recorder"]["state"] == "ok",
        "{detail}"
    );
    callbox.reconcile()?;
    ensure!(callbox.stop()?.success(), "{}", callbox.log()?);
    // B46: a word for each change of state, not for each record lost.
    let log = callbox.log()?;
    ensure!(log.lines().count() < 20, "{log}");
    Ok(())
}

/// Files made immutable until dropped.
#[derive(Debug)]
struct Immutable(Vec<PathBuf>);

impl Immutable {
    fn make(folder: &Path) -> Result<Option<Self>> {
        let files = std::fs::read_dir(folder)?
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<Vec<_>>>()?;
        let files = Self(files.into_iter().filter(|path| path.is_file()).collect());
        if files.change("+i")? {
            return Ok(Some(files));
        }
        eprintln!("SKIPPED: needs chattr on this file system");
        Ok(None)
    }

    fn change(&self, flag: &str) -> Result<bool> {
        Ok(Command::new("chattr")
            .arg(flag)
            .args(&self.0)
            .output()?
            .status
            .success())
    }
}

impl Drop for Immutable {
    fn drop(&mut self) {
        // Otherwise the folder stays behind, which shows.
        drop(self.change("-i"));
    }
}

#[test]
fn b50_a_log_that_cannot_be_written_shows_and_traffic_goes_on() -> Result<()> {
    let stand = Setup::default()
        .answered_by(load::upstream("found")?)
        .set_all(SMALL_QUEUES)
        .start()?;
    load::run(stand.callbox.listen, 1, 5, 10)?;
    stand.calls(5)?;
    let Some(immutable) = Immutable::make(&stand.data())? else {
        return stand.finish_whole();
    };
    let load = Load::start(stand.callbox.listen, 3, "read-only", 2000);
    until("records are lost and counted", || {
        Ok((stand.count("callbox_dropped_total", "")? > 0).then_some(()))
    })?;
    let (status, detail) = readiness(&stand.callbox)?;
    ensure!(
        status == 200 && detail.contains("degraded"),
        "{status} {detail}"
    );
    ensure!(stand.count("callbox_recorder_up", "")? == 0);
    drop(immutable);
    resumes(&stand.callbox)?;
    let (_, failures) = load.stop()?;
    ensure!(failures.is_empty(), "no request fails: {failures:?}");
    still_works(&stand.callbox)?;
    stand.finish().map(drop)
}

#[test]
fn b50_a_lock_that_another_process_holds_shows_and_traffic_goes_on() -> Result<()> {
    let stand: Stand = Setup::default()
        .answered_by(load::upstream("found")?)
        .set_all(SMALL_QUEUES)
        .start()?;
    load::run(stand.callbox.listen, 1, 5, 10)?;
    stand.calls(5)?;
    let other = at_rest::open(&stand.data().join("calls.db"))?;
    other.execute_batch("BEGIN IMMEDIATE")?;
    let load = Load::start(stand.callbox.listen, 3, "locked", 2000);
    loses(&stand.callbox, "busy")?;
    other.execute_batch("ROLLBACK")?;
    resumes(&stand.callbox)?;
    let (_, failures) = load.stop()?;
    ensure!(failures.is_empty(), "no request fails: {failures:?}");
    still_works(&stand.callbox)?;
    stand.finish().map(drop)
}

#[test]
fn an_answer_waits_for_its_record_only_so_long() -> Result<()> {
    let stand = Setup::default()
        .answered_by(load::upstream("found")?)
        .set("RECORD__DURABILITY", "before-response")
        .set("RECORD__DURABILITY_TIMEOUT", "300ms")
        .start()?;
    load::run(stand.callbox.listen, 1, 5, 10)?;
    ensure!(
        stand.callbox.calls()?.len() == 5,
        "visible once answered, without waiting"
    );
    let other = at_rest::open(&stand.data().join("calls.db"))?;
    other.execute_batch("BEGIN IMMEDIATE")?;
    let began = std::time::Instant::now();
    load::run(stand.callbox.listen, 1, 1, 10)?;
    ensure!(began.elapsed().as_millis() >= 300, "it waited");
    ensure!(
        stand.count("callbox_unacknowledged_responses_total", "")? == 1,
        "and that is counted"
    );
    other.execute_batch("ROLLBACK")?;
    stand.calls(6)?;
    stand.finish_whole()
}
