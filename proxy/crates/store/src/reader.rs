//! Queries, beside a running writer: read-only, in short transactions.

use std::ops::ControlFlow;
use std::path::Path;

use uuid::Uuid;

use crate::error::StoreError;
use crate::filter::{CallFilter, Resolved, SessionFilter};
use crate::record::{Call, Catalogue, Message};
use crate::summary::SessionSummary;

/// A read-only view of a call log.
#[derive(Debug)]
pub struct Reader {}

/// Delivers calls as they conclude.
#[derive(Debug)]
pub struct Follower {}

const NOT_BUILT: StoreError = StoreError::Thread("has no reader yet");

impl Reader {
    /// Opens the log of a data directory.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let _ = dir;
        Err(NOT_BUILT)
    }

    /// The last `limit` calls (none: all) that the filter asks for, newest last.
    pub fn calls(
        &self,
        filter: &CallFilter,
        limit: Option<usize>,
    ) -> Result<Vec<Call>, StoreError> {
        let _ = (filter, limit);
        Err(NOT_BUILT)
    }

    /// Every call that the filter asks for, oldest first, until `sink` breaks off. Paged: no transaction outlives a page.
    pub fn each_call(
        &self,
        filter: &CallFilter,
        sink: &mut dyn FnMut(Call) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let _ = (filter, sink);
        Err(NOT_BUILT)
    }

    /// What an id, or the beginning of one, stands for.
    ///
    /// # Errors
    /// `BadId`, `NoSuchId`, `AmbiguousId`.
    pub fn resolve(&self, prefix: &str) -> Result<Resolved, StoreError> {
        Err(StoreError::NoSuchId(prefix.to_owned()))
    }

    /// One call.
    pub fn call(&self, id: Uuid) -> Result<Option<Call>, StoreError> {
        let _ = id;
        Err(NOT_BUILT)
    }

    /// One session.
    pub fn session(&self, id: Uuid) -> Result<Option<SessionSummary>, StoreError> {
        let _ = id;
        Err(NOT_BUILT)
    }

    /// The last `limit` sessions (none: all) that the filter asks for, by their start, newest last.
    pub fn sessions(
        &self,
        filter: &SessionFilter,
        limit: Option<usize>,
    ) -> Result<Vec<SessionSummary>, StoreError> {
        let _ = (filter, limit);
        Err(NOT_BUILT)
    }

    /// The messages of a session other than its calls, in order.
    pub fn messages(&self, session: Uuid) -> Result<Vec<Message>, StoreError> {
        let _ = session;
        Err(NOT_BUILT)
    }

    /// A tool list by its hash.
    pub fn catalogue(&self, hash: &str) -> Result<Option<Catalogue>, StoreError> {
        let _ = hash;
        Err(NOT_BUILT)
    }

    /// Follows the log from here on.
    pub fn follow(&self) -> Result<Follower, StoreError> {
        Err(NOT_BUILT)
    }
}

impl Follower {
    /// The calls that concluded since the last poll, in the order they did, each once.
    pub fn poll(&mut self) -> Result<Vec<Call>, StoreError> {
        Err(NOT_BUILT)
    }
}
