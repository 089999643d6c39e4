//! Plain counters of the data path, one set a worker so that counting never makes two cores share a cache line.
//!
//! Whoever exposes them adds them up; nothing here knows about metrics libraries.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use callbox_net::PanicCount;
use http::StatusCode;

use crate::fault::FaultKind;

/// Status classes: index 0 is anything outside 1xx to 5xx.
const CLASSES: usize = 6;

#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct WorkerTraffic {
    pub(crate) opened: AtomicU64,
    pub(crate) closed: AtomicU64,
    pub(crate) bytes_in: AtomicU64,
    pub(crate) bytes_out: AtomicU64,
    pub(crate) handshakes_failed: AtomicU64,
    pub(crate) heads_late: AtomicU64,
    pub(crate) accept_errors: AtomicU64,
    faults: [AtomicU64; FaultKind::ALL.len()],
}

impl WorkerTraffic {
    pub(crate) fn fault(&self, kind: FaultKind, count: u64) {
        self.faults[kind as usize].fetch_add(count, Relaxed);
    }
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct WorkerAnswers([AtomicU64; CLASSES]);

/// Answers of one upstream. Lives on through reloads.
#[derive(Debug)]
pub struct UpstreamTraffic {
    workers: Vec<WorkerAnswers>,
}

impl UpstreamTraffic {
    pub(crate) fn answered(&self, worker: usize, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100);
        if let Some(answers) = self.workers.get(worker) {
            answers.0[if class < CLASSES { class } else { 0 }].fetch_add(1, Relaxed);
        }
    }

    /// Answers given to clients with a status of this class (1 to 5), callbox's own faults included.
    pub fn answers(&self, class: usize) -> u64 {
        self.workers
            .iter()
            .filter_map(|worker| worker.0.get(class))
            .map(|count| count.load(Relaxed))
            .sum()
    }
}

/// Counters of the whole data path.
#[derive(Debug)]
pub struct Traffic {
    pub(crate) workers: Vec<WorkerTraffic>,
    upstreams: Mutex<BTreeMap<String, Arc<UpstreamTraffic>>>,
    pub(crate) panics: PanicCount,
}

impl Traffic {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            workers: (0..workers).map(|_| WorkerTraffic::default()).collect(),
            upstreams: Mutex::default(),
            panics: PanicCount::default(),
        }
    }

    /// Client connections accepted so far, those over the cap included.
    pub fn connections(&self) -> u64 {
        self.sum(|worker| &worker.opened)
    }

    /// Client connections open now.
    pub fn connections_open(&self) -> u64 {
        let closed = self.sum(|worker| &worker.closed);
        self.connections().saturating_sub(closed)
    }

    /// Bytes read from clients, heads included, after decryption. Counted as exchanges begin and connections end.
    pub fn bytes_in(&self) -> u64 {
        self.sum(|worker| &worker.bytes_in)
    }

    /// Bytes written to clients, heads included, before encryption. Counted as exchanges begin and connections end.
    pub fn bytes_out(&self) -> u64 {
        self.sum(|worker| &worker.bytes_out)
    }

    /// TLS handshakes with clients that failed or took too long.
    pub fn handshakes_failed(&self) -> u64 {
        self.sum(|worker| &worker.handshakes_failed)
    }

    /// Connections closed because a request head took too long.
    pub fn heads_late(&self) -> u64 {
        self.sum(|worker| &worker.heads_late)
    }

    /// Failed accepts: out of descriptors or memory.
    pub fn accept_errors(&self) -> u64 {
        self.sum(|worker| &worker.accept_errors)
    }

    /// Answers of callbox's own, by kind.
    pub fn faults(&self, kind: FaultKind) -> u64 {
        self.sum(|worker| &worker.faults[kind as usize])
    }

    /// Tasks that ended by a panic.
    pub fn panics(&self) -> u64 {
        self.panics.get()
    }

    /// Answers by upstream.
    pub fn upstreams(&self) -> Vec<(String, Arc<UpstreamTraffic>)> {
        let upstreams = self
            .upstreams
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        upstreams
            .iter()
            .map(|(name, traffic)| (name.clone(), Arc::clone(traffic)))
            .collect()
    }

    pub(crate) fn upstream(&self, name: &str) -> Arc<UpstreamTraffic> {
        let mut upstreams = self
            .upstreams
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let traffic = upstreams.entry(name.to_owned()).or_insert_with(|| {
            Arc::new(UpstreamTraffic {
                workers: self
                    .workers
                    .iter()
                    .map(|_| WorkerAnswers::default())
                    .collect(),
            })
        });
        Arc::clone(traffic)
    }

    fn sum(&self, of: impl Fn(&WorkerTraffic) -> &AtomicU64) -> u64 {
        self.workers
            .iter()
            .map(|worker| of(worker).load(Relaxed))
            .sum()
    }
}
