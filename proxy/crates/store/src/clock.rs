//! The wall clock, read in one place.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::record::Micros;

/// Now, in microseconds since the epoch.
pub(crate) fn now() -> Micros {
    #[allow(
        clippy::disallowed_methods,
        reason = "the one place in this crate that reads the wall clock"
    )]
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Micros::try_from(since.as_micros()).unwrap_or(Micros::MAX)
}
