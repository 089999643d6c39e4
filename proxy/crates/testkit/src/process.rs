//! A running `callbox` with a data directory of its own, and the questions tests ask it.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

/// Longest wait for anything that should take milliseconds; generous, because machines that run tests are busy.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until `condition` gives something.
///
/// # Errors
/// It did not within [`PATIENCE`]; the message names `what`.
pub fn until<T>(
    what: &str,
    mut condition: impl FnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<T> {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = condition()? {
            return Ok(found);
        }
        ensure!(Instant::now() < end, "{what}: not within {PATIENCE:?}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// The process; killed when dropped.
#[derive(Debug)]
pub struct Callbox {
    binary: PathBuf,
    child: Child,
    /// Where clients connect.
    pub listen: SocketAddr,
    /// Where `/metrics` is.
    pub admin: SocketAddr,
    /// The data directory.
    pub data: PathBuf,
    log: PathBuf,
}

#[derive(serde::Deserialize)]
struct Ready {
    listen: SocketAddr,
    admin: SocketAddr,
}

impl Callbox {
    /// `callbox up` in front of `upstream` (an origin) on free ports, data in `data`, with further arguments and environment.
    ///
    /// # Errors
    /// It did not come up; the message holds its log.
    pub fn up(
        binary: &Path,
        upstream: &str,
        data: &Path,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let mut command = Command::new(binary);
        command.args(["up", "--upstream", upstream]).args(arguments);
        Self::start(binary, command, data, environment)
    }

    /// `callbox proxy` with a configuration file.
    ///
    /// # Errors
    /// It did not come up; the message holds its log.
    pub fn proxy(binary: &Path, config: &Path, data: &Path) -> anyhow::Result<Self> {
        let mut command = Command::new(binary);
        command.arg("proxy").arg("--config").arg(config);
        Self::start(binary, command, data, &[])
    }

    fn start(
        binary: &Path,
        mut command: Command,
        data: &Path,
        environment: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let folder = data
            .parent()
            .context("the data directory needs a parent folder")?;
        let name = data
            .file_name()
            .context("the data directory needs a name")?
            .to_string_lossy()
            .into_owned();
        let ready_file = folder.join(format!("{name}.ready"));
        if ready_file.exists() {
            std::fs::remove_file(&ready_file)?;
        }
        let log = folder.join(format!("{name}.log"));
        command
            .args([
                "--listen",
                "127.0.0.1:0",
                "--admin",
                "127.0.0.1:0",
                "--data",
            ])
            .arg(data)
            .arg("--ready-file")
            .arg(&ready_file)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&log)?);
        let mut child = command
            .spawn()
            .with_context(|| format!("start {}", binary.display()))?;
        let ready = until("callbox is ready", || {
            if let Some(status) = child.try_wait()? {
                bail!(
                    "callbox ended with {status}: {}",
                    std::fs::read_to_string(&log)?
                );
            }
            Ok(std::fs::read(&ready_file)
                .ok()
                .and_then(|text| serde_json::from_slice::<Ready>(&text).ok()))
        })?;
        Ok(Self {
            binary: binary.to_owned(),
            child,
            listen: ready.listen,
            admin: ready.admin,
            data: data.to_owned(),
            log,
        })
    }

    /// Process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by name, e.g. `TERM`.
    ///
    /// # Errors
    /// `kill` could not be run.
    pub fn signal(&self, name: &str) -> anyhow::Result<()> {
        let status = Command::new("kill")
            .arg(format!("-{name}"))
            .arg(self.pid().to_string())
            .status()?;
        ensure!(status.success(), "kill -{name}: {status}");
        Ok(())
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// It went on.
    pub fn wait(&mut self) -> anyhow::Result<ExitStatus> {
        let child = &mut self.child;
        until("callbox ends", || Ok(child.try_wait()?))
    }

    /// SIGTERM, then the exit status.
    ///
    /// # Errors
    /// It did not end.
    pub fn stop(&mut self) -> anyhow::Result<ExitStatus> {
        self.signal("TERM")?;
        self.wait()
    }

    /// SIGKILL.
    ///
    /// # Errors
    /// It could not be killed.
    pub fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// What it wrote to stderr so far.
    ///
    /// # Errors
    /// The file is gone.
    pub fn log(&self) -> anyhow::Result<String> {
        Ok(std::fs::read_to_string(&self.log)?)
    }

    /// Runs a query command on the data directory; gives stdout.
    ///
    /// # Errors
    /// It failed; the message holds stderr.
    pub fn query(&self, arguments: &[&str]) -> anyhow::Result<String> {
        query(&self.binary, &self.data, arguments)
    }

    /// `calls --json`, parsed.
    ///
    /// # Errors
    /// The command failed or a line is not JSON.
    pub fn calls(&self) -> anyhow::Result<Vec<serde_json::Value>> {
        calls(&self.binary, &self.data)
    }

    /// Waits until `calls --json` has at least `n` concluded calls, and gives all calls.
    ///
    /// # Errors
    /// There were fewer.
    pub fn calls_when(&self, n: usize) -> anyhow::Result<Vec<serde_json::Value>> {
        until("the calls are recorded", || {
            let calls = self.calls()?;
            Ok((calls
                .iter()
                .filter(|call| call["outcome"] != "pending")
                .count()
                >= n)
                .then_some(calls))
        })
    }

    /// Body of an admin page.
    ///
    /// # Errors
    /// No answer.
    pub fn admin_page(&self, path: &str) -> anyhow::Result<String> {
        let mut stream = TcpStream::connect(self.admin)?;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: admin\r\nConnection: close\r\n\r\n"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer
            .split_once("\r\n\r\n")
            .map_or(String::new(), |(_, body)| body.to_owned()))
    }

    /// Sum of a metric over its label sets whose line contains `label`.
    ///
    /// # Errors
    /// No answer.
    pub fn metric(&self, name: &str, label: &str) -> anyhow::Result<f64> {
        let page = self.admin_page("/metrics")?;
        let values = page.lines().filter(|line| {
            line.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with(['{', ' ']))
                && line.contains(label)
        });
        Ok(values
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum())
    }

    /// Checks `offered = stored + dropped` once nothing is pending; gives (offered, stored, dropped).
    ///
    /// # Errors
    /// The books do not balance.
    pub fn reconcile(&self) -> anyhow::Result<(f64, f64, f64)> {
        until("the recorder's books balance", || {
            let offered = self.metric("callbox_records_offered_total", "")?;
            let stored = self.metric("callbox_records_stored_total", "")?;
            let dropped = self.metric("callbox_dropped_total", "")?;
            let pending = self.metric("callbox_records_pending", "")?;
            Ok((pending == 0.0 && (offered - stored - dropped).abs() < 0.5)
                .then_some((offered, stored, dropped)))
        })
    }
}

impl Drop for Callbox {
    fn drop(&mut self) {
        // Already ended in most tests; nothing to do about a failure here.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Runs a query command on a data directory, whether or not a proxy runs.
///
/// # Errors
/// It failed; the message holds stderr.
pub fn query(binary: &Path, data: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let done = Command::new(binary)
        .args(arguments)
        .arg("--data")
        .arg(data)
        .stdin(Stdio::null())
        .output()?;
    ensure!(
        done.status.success(),
        "callbox {arguments:?}: {}: {}",
        done.status,
        String::from_utf8_lossy(&done.stderr)
    );
    Ok(String::from_utf8(done.stdout)?)
}

/// `calls --json` on a data directory, parsed.
///
/// # Errors
/// The command failed or a line is not JSON.
pub fn calls(binary: &Path, data: &Path) -> anyhow::Result<Vec<serde_json::Value>> {
    query(binary, data, &["calls", "--json"])?
        .lines()
        .map(|line| serde_json::from_str(line).with_context(|| line.to_owned()))
        .collect()
}
