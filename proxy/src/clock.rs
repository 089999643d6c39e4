//! Ids and times of exchanges: one place that reads the clocks.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use rand::Rng as _;
use rand::rngs::SmallRng;
use uuid::{Builder, Uuid};

/// Makes exchange ids and reads the clocks for one worker.
#[derive(Debug)]
pub(crate) struct Clock {
    random: SmallRng,
}

/// One moment on both clocks, and an id for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) id: Uuid,
    /// Microseconds since the epoch.
    pub(crate) wall: i64,
    pub(crate) at: Instant,
}

impl Clock {
    /// Seeded by the system: ids of several replicas and workers must not meet.
    pub(crate) fn new() -> Self {
        Self {
            random: rand::make_rng(),
        }
    }

    /// Now, with a fresh UUID v7.
    pub(crate) fn now(&mut self) -> Moment {
        #[allow(
            clippy::disallowed_methods,
            reason = "the one place on the data path that reads the wall clock"
        )]
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let mut random = [0; 10];
        self.random.fill_bytes(&mut random);
        let millis = u64::try_from(wall.as_millis()).unwrap_or(u64::MAX);
        Moment {
            id: Builder::from_unix_timestamp_millis(millis, &random).into_uuid(),
            wall: i64::try_from(wall.as_micros()).unwrap_or(i64::MAX),
            at: now(),
        }
    }
}

/// The monotonic clock; tokio's, so that tests can stop it.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
