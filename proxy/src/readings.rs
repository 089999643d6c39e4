//! What the rooms count, brought together: for `/metrics` and `/readyz`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use callbox_store::{DropReason as StoreDrop, State};
use callbox_telemetry::Snapshot;

use crate::fault::FaultKind;
use crate::recorder::RecorderWatch;
use crate::tap::{DropReason, TapWatch};
use crate::traffic::Traffic;

/// Everything a scrape reads. Holds counters only: nothing here keeps the data path or the log open.
#[derive(Debug)]
pub(crate) struct Readings {
    pub(crate) traffic: Arc<Traffic>,
    pub(crate) tap: TapWatch,
    pub(crate) recorder: RecorderWatch,
    /// When each certificate ends, as of the last reload.
    pub(crate) certificates: Arc<Mutex<Vec<(String, i64)>>>,
    pub(crate) reload_ok: Arc<AtomicBool>,
}

const CLASSES: [(usize, &str); 5] = [(1, "1xx"), (2, "2xx"), (3, "3xx"), (4, "4xx"), (5, "5xx")];

impl Readings {
    pub(crate) fn snapshot(&self) -> Snapshot {
        let log = self.recorder.health();
        let observer = self.recorder.counts();
        let tap = self.tap.counts();
        let upstreams = self.traffic.upstreams();
        // An exchange that the tap turned away is one record that nobody will ever make.
        let turned_away: Vec<(&'static str, u64)> = DropReason::ALL
            .iter()
            .map(|reason| (reason.name(), tap.exchanges_dropped(*reason)))
            .collect();
        let mut dropped = turned_away.clone();
        dropped.extend(
            StoreDrop::ALL
                .iter()
                .map(|reason| (reason.as_str(), log.dropped_for(*reason))),
        );
        dropped.push(("observer_fault", observer.faults));
        let lost_in_tap: u64 = turned_away.iter().map(|(_, count)| count).sum();
        Snapshot {
            exchanges: upstreams
                .iter()
                .flat_map(|(name, traffic)| {
                    CLASSES.map(|(class, label)| (name.clone(), label, traffic.answers(class)))
                })
                .collect(),
            faults: FaultKind::ALL
                .iter()
                .map(|kind| (kind.name(), self.traffic.faults(*kind)))
                .collect(),
            connections: self.traffic.connections_open(),
            connections_total: self.traffic.connections(),
            client_bytes: (self.traffic.bytes_in(), self.traffic.bytes_out()),
            tap_offered: tap.exchanges() + lost_in_tap,
            tap_bytes: self.tap.bytes_in_flight(),
            offered: log.offered + lost_in_tap + observer.faults,
            stored: log.stored,
            dropped,
            queued: log.queued,
            incomplete: observer.incomplete,
            sessions: observer.sessions,
            exchanges_open: observer.exchanges_open,
            evicted: observer.evicted,
            commits: log.commits,
            commit_seconds: log.commit_time.as_secs_f64(),
            db_bytes: log.db_bytes,
            wal_bytes: log.wal_bytes,
            pruned: log.pruned_calls,
            degraded: match &log.state {
                State::Ok => None,
                State::Degraded { reason, .. } => Some(reason.as_str()),
            },
            certificates: self
                .certificates
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
            reload_ok: self.reload_ok.load(Ordering::Relaxed),
            unacknowledged: tap.durability_late(),
            panics: self.traffic.panics(),
        }
    }

    /// `/readyz` in words: what is lost, since when, and why.
    pub(crate) fn detail(&self) -> String {
        let log = self.recorder.health();
        let now = self.snapshot();
        let lost: serde_json::Map<String, serde_json::Value> = now
            .dropped
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(reason, count)| ((*reason).to_owned(), (*count).into()))
            .collect();
        let recorder = match &log.state {
            State::Ok => serde_json::json!({"state": "ok"}),
            State::Degraded {
                reason,
                since,
                detail,
            } => {
                serde_json::json!({"state": "degraded", "reason": reason.as_str(), "since_us": since, "detail": detail})
            }
        };
        serde_json::json!({
            "recorder": recorder,
            "records": {"offered": now.offered, "stored": now.stored, "pending": now.queued, "dropped": lost},
            "config": if now.reload_ok { "in force" } else { "newest one refused" },
        })
        .to_string()
    }
}
