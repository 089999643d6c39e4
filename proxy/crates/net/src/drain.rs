//! The signal that the process is about to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Set once; cheap to ask.
#[derive(Clone, Debug, Default)]
pub struct Drain {
    begun: Arc<AtomicBool>,
    expired: Arc<AtomicBool>,
    token: CancellationToken,
}

impl Drain {
    /// From now on nothing new is taken on.
    pub fn begin(&self) {
        self.begun.store(true, Ordering::Release);
        self.token.cancel();
    }

    /// Its deadline passed: what still runs is aborted.
    pub fn expire(&self) {
        self.expired.store(true, Ordering::Release);
    }

    /// Whether its deadline passed.
    pub fn has_expired(&self) -> bool {
        self.expired.load(Ordering::Acquire)
    }

    /// Whether it was begun.
    pub fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Acquire)
    }

    /// Resolves when it is begun.
    pub fn wait(&self) -> WaitForCancellationFutureOwned {
        self.token.clone().cancelled_owned()
    }
}
