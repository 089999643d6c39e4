//! How callbox shows itself: its own log lines, the metric catalogue, and the admin listener that serves them.
//!
//! Facts live in the rooms that make them; this crate gives them names. It never touches traffic or the call log.

pub mod admin;
pub mod labels;
pub mod logging;
pub mod metrics;
pub mod openmetrics;
pub mod repeat;
pub mod snapshot;

pub use admin::{Admin, AdminError, AdminOptions, Readiness};
pub use logging::{LogError, LogHandle, logging};
pub use metrics::Metrics;
pub use repeat::Repeat;
pub use snapshot::Snapshot;
