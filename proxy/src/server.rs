//! The data path as a whole: workers, reload, drain.
//!
//! Each worker is a thread with a runtime of its own: its accepts, its clients' connections and its upstream
//! connections. No lock and no wake-up crosses from one worker to another while an exchange is under way.

mod crew;
mod worker;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use callbox_config::Settings;
use callbox_net::{Acceptor, Drain, ListenError, Listener, Tasks};

use crew::{Arrival, Crew};
use tokio::sync::mpsc;

use crate::live::{InForce, Live, SettingsError};
use crate::tap::Tap;
use crate::traffic::Traffic;

/// The data path cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The settings.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A worker.
    #[error("worker {index} did not start")]
    Worker {
        /// Which.
        index: usize,
        /// The system's words.
        source: std::io::Error,
    },
}

/// How the drain went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Connections and upstream tasks still at work when the deadline passed; they were aborted.
    pub aborted: usize,
}

/// The running data path.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    live: Arc<Live>,
    tasks: Vec<Tasks>,
    traffic: Arc<Traffic>,
    drain: Drain,
    /// What a restart would be needed for.
    fixed: Mutex<Settings>,
    workers: Vec<JoinHandle<usize>>,
}

impl Server {
    /// Binds, starts the workers, and returns. Everything offered to `tap` is the observer's.
    ///
    /// # Errors
    /// The address, the certificates, an upstream, or the system's limits.
    pub fn start(settings: &Settings, tap: &Tap) -> Result<Self, StartError> {
        let count = settings.listen.workers.get();
        let traffic = Arc::new(Traffic::new(count));
        let tasks: Vec<_> = (0..count)
            .map(|_| Tasks::new(traffic.panics.clone()))
            .collect();
        let live = Arc::new(Live::from_pointee(InForce::new(
            settings, &tasks, &traffic, None,
        )?));
        let listener = Listener::bind(settings.listen.address)?;
        let drain = Drain::default();
        let (crew, doors) = Crew::new(count);
        let mut server = Self {
            address: listener.address(),
            live,
            traffic,
            drain,
            fixed: Mutex::new(settings.clone()),
            workers: Vec::with_capacity(count),
            tasks,
        };
        for (index, arrivals) in doors.into_iter().enumerate() {
            let acceptor = listener.share()?;
            let worker =
                server.start_worker(index, acceptor, tap.clone(), Arc::clone(&crew), arrivals);
            match worker {
                Ok(worker) => server.workers.push(worker),
                Err(source) => {
                    server.drain();
                    return Err(StartError::Worker { index, source });
                }
            }
        }
        Ok(server)
    }

    fn start_worker(
        &self,
        index: usize,
        acceptor: Acceptor,
        tap: Tap,
        crew: Arc<Crew>,
        arrivals: mpsc::Receiver<Arrival>,
    ) -> std::io::Result<JoinHandle<usize>> {
        let worker = worker::WorkerStart {
            index,
            live: Arc::clone(&self.live),
            tap,
            traffic: Arc::clone(&self.traffic),
            drain: self.drain.clone(),
            tasks: self.tasks[index].clone(),
            crew,
            arrivals,
        };
        // The runtime is made here so that its failure is the start's, not the thread's.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        std::thread::Builder::new()
            .name(format!("callbox-path-{index}"))
            .spawn(move || worker.run(runtime, acceptor))
    }

    /// The bound address.
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// The counters.
    pub fn traffic(&self) -> Arc<Traffic> {
        Arc::clone(&self.traffic)
    }

    /// When each certificate in use ends: what it is for, and seconds since the epoch.
    pub fn expiries(&self) -> Vec<(String, i64)> {
        self.live.load().expiries()
    }

    /// Puts new settings in force: routes, limits, certificates. Exchanges under way go on with the old ones.
    ///
    /// # Errors
    /// Settings that cannot be used; the old ones stay.
    pub fn reload(&self, settings: &Settings) -> Result<(), SettingsError> {
        let mut fixed = self.fixed.lock().unwrap_or_else(PoisonError::into_inner);
        let (old, new) = (&fixed.listen, &settings.listen);
        let needs_restart = [
            ("listen.address", old.address != new.address),
            ("listen.workers", old.workers != new.workers),
            ("listen.tls", old.tls.is_some() != new.tls.is_some()),
        ];
        if let Some((key, _)) = needs_restart.into_iter().find(|(_, changed)| *changed) {
            return Err(SettingsError::NeedsRestart { key });
        }
        let next = InForce::new(
            settings,
            &self.tasks,
            &self.traffic,
            Some(&self.live.load()),
        )?;
        self.live.store(Arc::new(next));
        *fixed = settings.clone();
        Ok(())
    }

    /// Stops: no new connections, idle streams end at once, the rest has until the drain's deadline. Blocks.
    pub fn drain(mut self) -> Drained {
        self.drain.begin();
        let mut drained = Drained::default();
        for worker in std::mem::take(&mut self.workers) {
            if let Ok(aborted) = worker.join() {
                drained.aborted += aborted;
            } else {
                tracing::error!("a worker panicked");
            }
        }
        drained
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Workers of a server that was dropped without a drain end on their own.
        self.drain.begin();
    }
}
