//! The tracked spawner: every task of the data path is counted, waited for at the end, and its panic seen.
//!
//! A panic ends the one task it happened in (the runtime catches it there); the guard counts and logs it.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio_util::task::TaskTracker;

/// How many tasks ended by a panic.
#[derive(Clone, Debug, Default)]
pub struct PanicCount(Arc<AtomicU64>);

impl PanicCount {
    /// The count so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Spawns onto the current runtime and keeps track.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    panics: PanicCount,
}

impl Tasks {
    /// A spawner that adds to `panics`.
    pub fn new(panics: PanicCount) -> Self {
        Self {
            tracker: TaskTracker::new(),
            panics,
        }
    }

    /// Runs `task` on the current runtime. `name` is for the log when it panics.
    pub fn spawn<F>(&self, name: &'static str, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let guard = PanicGuard {
            panics: self.panics.clone(),
            name,
        };
        // The handle is dropped on purpose: the tracker waits for the task, the guard sees its panic.
        drop(self.tracker.spawn(async move {
            let _guard = guard;
            task.await;
        }));
    }

    /// Tasks that have not ended.
    pub fn running(&self) -> usize {
        self.tracker.len()
    }

    /// Waits until every task has ended; none may be spawned meanwhile that the caller does not want to wait for.
    pub async fn wait(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }
}

#[derive(Debug)]
struct PanicGuard {
    panics: PanicCount,
    name: &'static str,
}

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.panics.0.fetch_add(1, Ordering::Relaxed);
            tracing::error!(
                task = self.name,
                "task panicked; its exchanges are lost, the others go on"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_counted_and_the_rest_goes_on() {
        let panics = PanicCount::default();
        let tasks = Tasks::new(panics.clone());
        let (sent, received) = tokio::sync::oneshot::channel();
        tasks.spawn("bad", async { panic!("on purpose") });
        tasks.spawn("good", async move {
            assert!(sent.send(()).is_ok(), "the test waits for it");
        });
        tasks.wait().await;
        assert!(received.await.is_ok());
        assert_eq!(panics.get(), 1);
        assert_eq!(tasks.running(), 0);
    }
}
