//! The proxy as a process: puts store, observer, data path and admin listener together, and follows signals.
//!
//! Order matters at both ends. Up: the log is open and the observer runs before the first client can connect. Down: the
//! data path drains first, then the observer takes what is left, then the log is closed, and the admin listener last, so
//! that a final scrape sees every call.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use callbox_config::Settings;
use callbox_telemetry::{Admin, AdminError, AdminOptions, LogHandle, Metrics, Readiness};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::readings::Readings;
use crate::recorder::{Recorder, RecorderError};
use crate::server::{Server, StartError};

/// Addresses in use, once everything is bound.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// For clients.
    pub listen: SocketAddr,
    /// For scrapers and probes.
    pub admin: SocketAddr,
}

/// What the process around the proxy provides.
pub struct Hooks<'a> {
    /// Version, for `callbox_build_info`.
    pub version: &'a str,
    /// Reads the settings again, for SIGHUP; the error is for the log.
    pub reload: &'a dyn Fn() -> Result<Settings, String>,
    /// The log's level, for SIGHUP.
    pub log: LogHandle,
    /// Called once everything is bound.
    pub ready: &'a dyn Fn(Bound) -> std::io::Result<()>,
}

impl std::fmt::Debug for Hooks<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hooks")
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// Why the proxy did not start, or did not end well.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Signals or the ready file.
    #[error("{what}: {source}")]
    Io {
        /// Doing what.
        what: &'static str,
        /// The system's words.
        source: std::io::Error,
    },
    /// The admin address.
    #[error("admin.address {address}: {source}; free the port or choose another with --admin")]
    AdminAddress {
        /// As configured.
        address: SocketAddr,
        /// The system's words.
        source: std::io::Error,
    },
    /// The admin listener.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// The call log.
    #[error(transparent)]
    Recorder(#[from] RecorderError),
    /// The data path.
    #[error(transparent)]
    Start(#[from] StartError),
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Drained; all that was recorded is in the log.
    Drained,
    /// A second signal cut the drain short.
    AtOnce,
}

/// Runs until SIGTERM or SIGINT.
///
/// # Errors
/// Something could not be opened, bound or closed.
pub fn run(settings: &Settings, hooks: &Hooks<'_>) -> Result<Ended, RunError> {
    let io = |what| move |source| RunError::Io { what, source };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(io("start the signal runtime"))?;
    let mut signals = {
        let _context = runtime.enter();
        Signals::listen().map_err(io("listen for signals"))?
    };
    let address = settings.admin.address;
    let admin_socket =
        TcpListener::bind(address).map_err(|source| RunError::AdminAddress { address, source })?;
    let metrics = Metrics::new(hooks.version);
    let (recorder, tap) = Recorder::start(settings, &metrics)?;
    let server = match Server::start(settings, &tap) {
        Ok(server) => server,
        Err(error) => {
            drop(tap);
            recorder.finish()?;
            return Err(error.into());
        }
    };
    let ready = Arc::new(AtomicBool::new(true));
    let reload_ok = Arc::new(AtomicBool::new(true));
    let certificates = Arc::new(Mutex::new(server.expiries()));
    let readings = Arc::new(Readings {
        traffic: server.traffic(),
        tap: tap.watch(),
        recorder: recorder.watch(),
        certificates: Arc::clone(&certificates),
        reload_ok: Arc::clone(&reload_ok),
    });
    let scraped = Arc::clone(&readings);
    metrics.watch(move || scraped.snapshot());
    drop(tap);
    let admin = Admin::start(AdminOptions {
        listener: admin_socket,
        token: settings
            .admin
            .token
            .as_ref()
            .map(|token| token.expose().to_owned()),
        metrics,
        readiness: {
            let ready = Arc::clone(&ready);
            Arc::new(move || Readiness {
                ready: ready.load(Ordering::Relaxed),
                detail: readings.detail(),
            })
        },
    })?;
    (hooks.ready)(Bound {
        listen: server.addr(),
        admin: admin.address(),
    })
    .map_err(io("say that it is ready"))?;

    let mut current = settings.clone();
    loop {
        match runtime.block_on(signals.next()) {
            Asked::Stop => break,
            Asked::Reload => {
                let applied = reload(&mut current, hooks, &server, &recorder);
                reload_ok.store(applied, Ordering::Relaxed);
                *certificates.lock().unwrap_or_else(PoisonError::into_inner) = server.expiries();
            }
        }
    }
    ready.store(false, Ordering::Relaxed);
    tracing::info!(deadline = ?current.listen.drain_timeout, "stopping: running calls may finish");
    stop(&runtime, &mut signals, server, recorder, admin)
}

/// Drains the data path, closes the log, ends the admin listener; a further signal cuts it short.
fn stop(
    runtime: &tokio::runtime::Runtime,
    signals: &mut Signals,
    server: Server,
    recorder: Recorder,
    admin: Admin,
) -> Result<Ended, RunError> {
    let (done, drained) = tokio::sync::oneshot::channel();
    let drain = std::thread::Builder::new()
        .name("callbox-drain".to_owned())
        .spawn(move || {
            let drained = server.drain();
            if drained.aborted > 0 {
                tracing::warn!(
                    aborted = drained.aborted,
                    "the drain's deadline passed: what was left was cut off"
                );
            }
            let closed = recorder.finish();
            // Nobody listens any more after a second signal.
            done.send(closed).unwrap_or_default();
        })
        .map_err(|source| RunError::Io {
            what: "start the drain",
            source,
        })?;
    let closed = runtime.block_on(async {
        tokio::select! {
            closed = drained => Some(closed),
            Asked::Stop = signals.next() => None,
        }
    });
    let Some(closed) = closed else {
        tracing::warn!("stopped at once: records not committed yet are lost");
        return Ok(Ended::AtOnce);
    };
    admin.stop();
    if drain.join().is_err() {
        tracing::error!("the drain had panicked");
    }
    if let Ok(Err(error)) = closed {
        return Err(error.into());
    }
    tracing::info!("stopped");
    Ok(Ended::Drained)
}

/// Puts new settings in force; false when the old ones stay.
fn reload(current: &mut Settings, hooks: &Hooks<'_>, server: &Server, recorder: &Recorder) -> bool {
    let new = match (hooks.reload)() {
        Ok(new) => new,
        Err(problems) => {
            tracing::error!(%problems, "reload refused: the configuration in force stays; mend it and send SIGHUP again");
            return false;
        }
    };
    let waiting = Settings::needs_restart(current, &new);
    if let Err(error) = server.reload(&new) {
        tracing::error!(%error, "reload refused: the configuration in force stays; mend it and send SIGHUP again");
        return false;
    }
    if let Err(error) = recorder.reload(&new) {
        tracing::error!(%error, "reload refused: the recording rules in force stay; mend them and send SIGHUP again");
        return false;
    }
    if let Err(error) = hooks.log.set_level(&new.log.level) {
        tracing::error!(%error, "the log level in force stays");
        return false;
    }
    if waiting.is_empty() {
        tracing::info!("reloaded");
    } else {
        tracing::warn!(
            keys = waiting.join(", "),
            "reloaded; these keys wait for a restart"
        );
    }
    *current = new;
    true
}

enum Asked {
    Stop,
    Reload,
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.terminate.recv() => Asked::Stop,
            _ = self.interrupt.recv() => Asked::Stop,
            _ = self.hangup.recv() => Asked::Reload,
        }
    }
}
