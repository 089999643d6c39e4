//! The signal that the process is about to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Set once; cheap to ask and to clone.
#[derive(Clone, Debug, Default)]
pub struct Drain(Arc<State>);

#[derive(Debug, Default)]
struct State {
    begun: AtomicBool,
    expired: AtomicBool,
    token: CancellationToken,
}

impl Drain {
    /// From now on nothing new is taken on.
    pub fn begin(&self) {
        self.0.begun.store(true, Ordering::Release);
        self.0.token.cancel();
    }

    /// Whether it was begun.
    pub fn has_begun(&self) -> bool {
        self.0.begun.load(Ordering::Acquire)
    }

    /// Its deadline passed: what still runs is aborted.
    pub fn expire(&self) {
        self.0.expired.store(true, Ordering::Release);
    }

    /// Whether its deadline passed.
    pub fn has_expired(&self) -> bool {
        self.0.expired.load(Ordering::Acquire)
    }

    /// Resolves when it is begun.
    pub fn wait(&self) -> WaitForCancellationFutureOwned {
        self.0.token.clone().cancelled_owned()
    }
}
