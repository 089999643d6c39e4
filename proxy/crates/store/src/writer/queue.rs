//! The queue in front of the writer thread, with the account of what went through it.
//!
//! One lock covers both, so the account adds up in every snapshot; it is held for a few additions at a time.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::commit::Done;
use super::{Batch, Record};
use crate::health::{DropReason, Health, State};
use crate::record::{Call, Http, Micros};
use crate::retention::{Limits, Pruned};

/// A transaction takes no more than this, so that no commit takes long.
const GROUP_RECORDS: u64 = 8192;
const GROUP_BYTES: u64 = 16 << 20;

/// Queue and account.
#[derive(Debug)]
pub(crate) struct Queue {
    inner: Mutex<Inner>,
    wake: Condvar,
    max_records: u64,
    max_bytes: u64,
}

#[derive(Debug, Default)]
struct Inner {
    waiting: VecDeque<Weighed>,
    /// Records and bytes in `waiting`; the health's figures include the group being committed.
    records: u64,
    bytes: u64,
    /// Somebody waits for a commit.
    urgent: bool,
    closing: bool,
    /// What the thread waits for, so that `submit` wakes it only when it must.
    asleep: Asleep,
    limits: Option<Limits>,
    health: Health,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Asleep {
    #[default]
    No,
    /// For anything.
    ForWork,
    /// For the time to commit, unless it gets urgent.
    ForTime,
}

/// A batch and what it counts for.
#[derive(Debug)]
struct Weighed {
    batch: Batch,
    records: u64,
    bytes: u64,
}

/// Batches to commit together.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) batches: Vec<Batch>,
    pub(crate) records: u64,
    bytes: u64,
}

/// Why the thread woke up.
#[derive(Debug)]
pub(crate) struct Woken {
    /// To commit; may be empty.
    pub(crate) group: Group,
    /// The handle is gone: commit what is left and end.
    pub(crate) closing: bool,
}

impl Queue {
    pub(crate) fn new(max_records: usize, max_bytes: usize) -> Self {
        let (max_records, max_bytes) = (max_records as u64, max_bytes as u64);
        Self {
            inner: Mutex::default(),
            wake: Condvar::new(),
            max_records,
            max_bytes,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing in here panics half-way; a poisoned lock would only add silence to a panic elsewhere.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a batch when there is room. A batch larger than the whole queue is taken when the queue is empty.
    pub(crate) fn push(&self, mut batch: Batch) -> Result<(), Batch> {
        let records = batch.records.len() as u64;
        let bytes = batch.records.iter().map(weight).sum();
        let mut inner = self.lock();
        let full = inner.health.queued + records > self.max_records
            || inner.health.queued_bytes + bytes > self.max_bytes;
        if inner.closing || full && inner.health.queued > 0 {
            return Err(batch);
        }
        let hopeless = match inner.health.state {
            State::Ok => Vec::new(),
            // Traffic does not wait for a disk that is known to be in trouble.
            State::Degraded { .. } => mem::take(&mut batch.committed),
        };
        inner.urgent |= !batch.committed.is_empty();
        inner.records += records;
        inner.bytes += bytes;
        inner.health.offered += records;
        inner.health.queued += records;
        inner.health.queued_bytes += bytes;
        inner.waiting.push_back(Weighed {
            batch,
            records,
            bytes,
        });
        let wake = match inner.asleep {
            Asleep::No => false,
            Asleep::ForWork => true,
            Asleep::ForTime => inner.urgent || self.half_full(&inner),
        };
        if wake {
            inner.asleep = Asleep::No;
        }
        drop(inner);
        if wake {
            self.wake.notify_one();
        }
        call(hopeless);
        Ok(())
    }

    /// Counts a batch that is not taken: because of what the log is degraded by, or because the queue is full.
    pub(crate) fn discard(&self, batch: Batch) {
        let mut inner = self.lock();
        let reason = match inner.health.state {
            _ if inner.closing => DropReason::Closed,
            State::Ok => DropReason::QueueFull,
            State::Degraded { reason, .. } => reason,
        };
        inner.health.offered += batch.records.len() as u64;
        inner.health.dropped[reason.at()] += batch.records.len() as u64;
        drop(inner);
        call(batch.committed);
    }

    fn half_full(&self, inner: &Inner) -> bool {
        inner.records > (self.max_records / 2).min(GROUP_RECORDS)
            || inner.bytes > (self.max_bytes / 2).min(GROUP_BYTES)
    }

    /// Waits for work, at most until `idle`; then for company, until `not_before` or something urgent.
    pub(crate) fn next(&self, not_before: Instant, idle: Instant) -> Woken {
        let mut inner = self.lock();
        loop {
            let now = Instant::now();
            let ready =
                inner.urgent || inner.closing || now >= not_before || self.half_full(&inner);
            let (asleep, until) = match (inner.waiting.is_empty(), ready) {
                (false, true) => break,
                (true, _) if inner.closing || now >= idle => break,
                (true, _) => (Asleep::ForWork, idle),
                (false, false) => (Asleep::ForTime, not_before),
            };
            inner.asleep = asleep;
            let wait = until.saturating_duration_since(now);
            inner = self
                .wake
                .wait_timeout(inner, wait)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            inner.asleep = Asleep::No;
        }
        let mut group = Group::default();
        while let Some(first) = inner.waiting.front() {
            let large = group.records + first.records > GROUP_RECORDS
                || group.bytes + first.bytes > GROUP_BYTES;
            if large && group.records > 0 {
                break;
            }
            let Some(Weighed {
                batch,
                records,
                bytes,
            }) = inner.waiting.pop_front()
            else {
                break;
            };
            group.records += records;
            group.bytes += bytes;
            group.batches.push(batch);
        }
        inner.records -= group.records;
        inner.bytes -= group.bytes;
        inner.urgent = inner
            .waiting
            .iter()
            .any(|waiting| !waiting.batch.committed.is_empty());
        Woken {
            group,
            closing: inner.closing,
        }
    }

    /// Sleeps between attempts; `true` when the handle is gone.
    pub(crate) fn pause(&self, delay: Duration) -> bool {
        let until = Instant::now() + delay;
        let mut inner = self.lock();
        while !inner.closing {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            inner = self
                .wake
                .wait_timeout(inner, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        inner.closing
    }

    /// A group is in the log. Gives back the state that ended with it, if it was not `Ok`.
    pub(crate) fn committed(&self, group: Group, done: Done, took: Duration) -> Option<State> {
        let mut inner = self.lock();
        let health = &mut inner.health;
        health.queued -= group.records;
        health.queued_bytes -= group.bytes;
        health.stored += done.stored;
        health.dropped[DropReason::Invalid.at()] += done.invalid;
        health.calls += done.calls;
        health.commits += 1;
        health.commit_time += took;
        health.last_commit = took;
        health.longest_commit = health.longest_commit.max(took);
        let before = mem::take(&mut health.state);
        drop(inner);
        call(group.batches.into_iter().flat_map(|batch| batch.committed));
        (before != State::Ok).then_some(before)
    }

    /// A group could not be committed now. `true` when this is news. Nobody waits for a commit any longer.
    pub(crate) fn failed(
        &self,
        group: &mut Group,
        reason: DropReason,
        since: Micros,
        detail: &str,
    ) -> bool {
        let mut inner = self.lock();
        let (news, since) = match &inner.health.state {
            State::Degraded {
                reason: before,
                since,
                ..
            } => (*before != reason, *since),
            State::Ok => (true, since),
        };
        inner.health.state = State::Degraded {
            reason,
            since,
            detail: detail.to_owned(),
        };
        let waiting = inner.waiting.iter_mut().map(|waiting| &mut waiting.batch);
        let callbacks: Vec<_> = group
            .batches
            .iter_mut()
            .chain(waiting)
            .flat_map(|batch| mem::take(&mut batch.committed))
            .collect();
        inner.urgent = false;
        drop(inner);
        call(callbacks);
        news
    }

    /// A group is given up, and with it all that waits: the log is being closed and cannot take them.
    pub(crate) fn give_up(&self, group: Group, reason: DropReason) -> u64 {
        let mut inner = self.lock();
        let waiting = mem::take(&mut inner.waiting);
        let lost = inner.health.queued;
        inner.health.dropped[reason.at()] += lost;
        inner.health.queued = 0;
        inner.health.queued_bytes = 0;
        inner.records = 0;
        inner.bytes = 0;
        drop(inner);
        let batches = group
            .batches
            .into_iter()
            .chain(waiting.into_iter().map(|waiting| waiting.batch));
        call(batches.flat_map(|batch| batch.committed));
        lost
    }

    /// Ends the intake and wakes the thread.
    pub(crate) fn close(&self) {
        self.lock().closing = true;
        self.wake.notify_one();
    }

    /// The account.
    pub(crate) fn health(&self) -> Health {
        self.lock().health.clone()
    }

    /// Notes how large the files are.
    pub(crate) fn sizes(&self, db_bytes: u64, wal_bytes: u64) {
        let mut inner = self.lock();
        inner.health.db_bytes = db_bytes;
        inner.health.wal_bytes = wal_bytes;
    }

    /// Notes what retention removed.
    pub(crate) fn pruned(&self, pruned: Pruned) {
        let mut inner = self.lock();
        inner.health.pruned_calls += pruned.calls;
        inner.health.pruned_messages += pruned.messages;
    }

    /// Leaves new limits for the thread.
    pub(crate) fn set_limits(&self, limits: Limits) {
        self.lock().limits = Some(limits);
    }

    /// New limits, once.
    pub(crate) fn take_limits(&self) -> Option<Limits> {
        self.lock().limits.take()
    }
}

/// Tells those who wait.
fn call(waiting: impl IntoIterator<Item = Box<dyn FnOnce() + Send>>) {
    for done in waiting {
        done();
    }
}

/// Bytes a record takes while it waits, roughly: what can be large is counted, the rest is a round figure.
fn weight(record: &Record) -> u64 {
    let bytes = match record {
        Record::Call(call) => call_weight(call),
        Record::Message(message) => 400 + message.body.as_ref().map_or(0, |body| body.get().len()),
        Record::Catalogue(catalogue) => 200 + catalogue.tools.get().len(),
    };
    bytes as u64
}

fn call_weight(call: &Call) -> usize {
    let payloads = [&call.arguments, &call.result, &call.error];
    let payloads: usize = payloads
        .into_iter()
        .flatten()
        .map(|json| json.get().len())
        .sum();
    let Http {
        target,
        request_headers,
        response_headers,
        ..
    } = &call.http;
    let headers = request_headers.iter().chain(response_headers);
    let headers: usize = headers
        .map(|(name, value)| 48 + name.len() + value.len())
        .sum();
    800 + payloads + target.len() + headers + 48 * call.events.len()
}
