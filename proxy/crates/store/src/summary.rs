//! A session with what has happened in it so far.

use crate::record::{Micros, Session};

/// One line of `callbox sessions`.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionSummary {
    /// The session.
    pub session: Session,
    /// Last activity: a call's end or another message.
    pub last_at: Micros,
    /// Calls recorded since its start, also those that retention has removed.
    pub calls: u64,
    /// Those of them that concluded with anything but `ok`.
    pub failed: u64,
}
