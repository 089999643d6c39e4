//! Facts that other rooms count themselves, read once per scrape: traffic, recorder, certificates.
//!
//! Read, not copied at events: so a log line, `/readyz` and a metric can never disagree about them.

use prometheus::core::{Collector, Desc};
use prometheus::proto::{Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType};

/// All of them at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Exchanges ended, by upstream and status class (`2xx` … `5xx`, `fault`).
    pub exchanges: Vec<(String, &'static str, u64)>,
    /// callbox's own answers by kind.
    pub faults: Vec<(&'static str, u64)>,
    /// Open client connections.
    pub connections: u64,
    /// Client connections accepted.
    pub connections_total: u64,
    /// Bytes (from clients, to clients), heads included; of connections that ended.
    pub client_bytes: (u64, u64),
    /// Exchanges the tap was offered.
    pub tap_offered: u64,
    /// Bytes waiting in the tap.
    pub tap_bytes: u64,
    /// Records the observer made, plus exchanges the tap turned away.
    pub offered: u64,
    /// Records committed.
    pub stored: u64,
    /// Lost, by reason.
    pub dropped: Vec<(&'static str, u64)>,
    /// Records made but not committed yet.
    pub queued: u64,
    /// Payloads cut at the configured cap, and the like, by reason.
    pub incomplete: Vec<(&'static str, u64)>,
    /// Sessions in the observer's memory.
    pub sessions: u64,
    /// Exchanges open in the observer.
    pub exchanges_open: u64,
    /// State left memory early, by kind.
    pub evicted: Vec<(&'static str, u64)>,
    /// Commits made.
    pub commits: u64,
    /// Seconds spent in commits.
    pub commit_seconds: f64,
    /// Size of the database file.
    pub db_bytes: u64,
    /// Size of the write-ahead log.
    pub wal_bytes: u64,
    /// Calls removed by retention.
    pub pruned: u64,
    /// Why the recorder loses records, if it does.
    pub degraded: Option<&'static str>,
    /// Earliest end of a certificate in use, seconds since the epoch, by name.
    pub certificates: Vec<(String, i64)>,
    /// Whether the last reload of the configuration was taken into use.
    pub reload_ok: bool,
    /// Responses that went on without waiting for their commit any longer (`before-response`).
    pub unacknowledged: u64,
    /// Connection tasks that ended by a panic.
    pub panics: u64,
}

type Read = Box<dyn Fn() -> Snapshot + Send + Sync>;

/// The collector over a function that reads them.
pub(crate) struct Snapshots {
    read: Read,
    descs: Vec<Desc>,
}

/// Every family a snapshot gives: name, type, help. The order is the order in the reference.
const FAMILIES: &[(&str, MetricType, &str)] = &[
    (
        "callbox_exchanges_total",
        MetricType::COUNTER,
        "HTTP exchanges ended, by upstream and status class",
    ),
    (
        "callbox_faults_total",
        MetricType::COUNTER,
        "Answers callbox gave itself, by kind",
    ),
    (
        "callbox_connections",
        MetricType::GAUGE,
        "Client connections open",
    ),
    (
        "callbox_connections_total",
        MetricType::COUNTER,
        "Client connections accepted",
    ),
    (
        "callbox_client_bytes_total",
        MetricType::COUNTER,
        "Bytes exchanged with clients, heads included, of connections that ended, by direction",
    ),
    (
        "callbox_tap_offered_total",
        MetricType::COUNTER,
        "Exchanges offered to the recorder",
    ),
    (
        "callbox_tap_bytes",
        MetricType::GAUGE,
        "Bytes waiting between the data path and the observer",
    ),
    (
        "callbox_records_offered_total",
        MetricType::COUNTER,
        "Records to be stored: offered = stored + dropped + pending",
    ),
    (
        "callbox_records_stored_total",
        MetricType::COUNTER,
        "Records committed",
    ),
    (
        "callbox_records_pending",
        MetricType::GAUGE,
        "Records made and not committed yet",
    ),
    (
        "callbox_dropped_total",
        MetricType::COUNTER,
        "Records lost, by reason",
    ),
    (
        "callbox_capture_incomplete_total",
        MetricType::COUNTER,
        "Payloads not kept whole, by reason",
    ),
    ("callbox_sessions", MetricType::GAUGE, "Sessions in memory"),
    (
        "callbox_exchanges_open",
        MetricType::GAUGE,
        "Exchanges under way in the observer",
    ),
    (
        "callbox_evicted_total",
        MetricType::COUNTER,
        "State given up before its time for want of room, by kind",
    ),
    (
        "callbox_commits_total",
        MetricType::COUNTER,
        "Commits to the call log",
    ),
    (
        "callbox_commit_seconds_total",
        MetricType::COUNTER,
        "Seconds spent committing",
    ),
    (
        "callbox_db_bytes",
        MetricType::GAUGE,
        "Size of the call log",
    ),
    (
        "callbox_wal_bytes",
        MetricType::GAUGE,
        "Size of its write-ahead log",
    ),
    (
        "callbox_pruned_total",
        MetricType::COUNTER,
        "Calls removed by retention",
    ),
    (
        "callbox_recorder_degraded",
        MetricType::GAUGE,
        "1 while records are being lost, by reason; no series while all is well",
    ),
    (
        "callbox_recorder_up",
        MetricType::GAUGE,
        "1 while every record can be stored, else 0",
    ),
    (
        "callbox_certificate_expiry_timestamp_seconds",
        MetricType::GAUGE,
        "End of validity of a certificate in use",
    ),
    (
        "callbox_config_reload_ok",
        MetricType::GAUGE,
        "1 when the configuration in use is the newest one asked for, 0 when a bad file was refused",
    ),
    (
        "callbox_panics_total",
        MetricType::COUNTER,
        "Connection tasks that ended by a panic",
    ),
    (
        "callbox_unacknowledged_responses_total",
        MetricType::COUNTER,
        "Responses forwarded before their record was on disk in spite of before-response",
    ),
];

impl Snapshots {
    pub(crate) fn new(read: Read) -> Self {
        let descs = FAMILIES
            .iter()
            .map(|(name, _, help)| {
                Desc::new(
                    (*name).to_owned(),
                    (*help).to_owned(),
                    Vec::new(),
                    std::collections::HashMap::new(),
                )
                .expect("invariant: catalogue names are valid")
            })
            .collect();
        Self { read, descs }
    }
}

impl Collector for Snapshots {
    fn desc(&self) -> Vec<&Desc> {
        self.descs.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let now = (self.read)();
        FAMILIES
            .iter()
            .filter_map(|(name, kind, help)| {
                let metrics: Vec<Metric> = now
                    .values(name)
                    .into_iter()
                    .map(|(labels, value)| metric(*kind, &labels, value))
                    .collect();
                if metrics.is_empty() {
                    return None;
                }
                let mut family = MetricFamily::default();
                family.set_name((*name).to_owned());
                family.set_help((*help).to_owned());
                family.set_field_type(*kind);
                family.set_metric(metrics);
                Some(family)
            })
            .collect()
    }
}

type Labelled = (Vec<(&'static str, String)>, f64);

impl Snapshot {
    fn values(&self, family: &str) -> Vec<Labelled> {
        let one = |value: f64| vec![(Vec::new(), value)];
        let by = |label: &'static str, values: &[(&'static str, u64)]| -> Vec<Labelled> {
            values
                .iter()
                .map(|(name, n)| (vec![(label, (*name).to_owned())], float(*n)))
                .collect()
        };
        match family {
            "callbox_exchanges_total" => self
                .exchanges
                .iter()
                .map(|(upstream, class, n)| {
                    (
                        vec![
                            ("status", (*class).to_owned()),
                            ("upstream", upstream.clone()),
                        ],
                        float(*n),
                    )
                })
                .collect(),
            "callbox_faults_total" => by("kind", &self.faults),
            "callbox_connections" => one(float(self.connections)),
            "callbox_connections_total" => one(float(self.connections_total)),
            "callbox_client_bytes_total" => by(
                "direction",
                &[
                    ("request", self.client_bytes.0),
                    ("response", self.client_bytes.1),
                ],
            ),
            "callbox_tap_offered_total" => one(float(self.tap_offered)),
            "callbox_tap_bytes" => one(float(self.tap_bytes)),
            "callbox_records_offered_total" => one(float(self.offered)),
            "callbox_records_stored_total" => one(float(self.stored)),
            "callbox_records_pending" => one(float(self.queued)),
            "callbox_dropped_total" => by("reason", &self.dropped),
            "callbox_capture_incomplete_total" => by("reason", &self.incomplete),
            "callbox_sessions" => one(float(self.sessions)),
            "callbox_exchanges_open" => one(float(self.exchanges_open)),
            "callbox_evicted_total" => by("kind", &self.evicted),
            "callbox_commits_total" => one(float(self.commits)),
            "callbox_commit_seconds_total" => one(self.commit_seconds),
            "callbox_db_bytes" => one(float(self.db_bytes)),
            "callbox_wal_bytes" => one(float(self.wal_bytes)),
            "callbox_pruned_total" => one(float(self.pruned)),
            "callbox_recorder_degraded" => self
                .degraded
                .iter()
                .map(|reason| (vec![("reason", (*reason).to_owned())], 1.0))
                .collect(),
            "callbox_recorder_up" => one(f64::from(u8::from(self.degraded.is_none()))),
            "callbox_certificate_expiry_timestamp_seconds" => self
                .certificates
                .iter()
                .map(|(name, at)| (vec![("certificate", name.clone())], signed(*at)))
                .collect(),
            "callbox_config_reload_ok" => one(f64::from(u8::from(self.reload_ok))),
            "callbox_panics_total" => one(float(self.panics)),
            "callbox_unacknowledged_responses_total" => one(float(self.unacknowledged)),
            _ => Vec::new(),
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "Prometheus values are doubles; counts stay exact below 2^53"
)]
fn float(n: u64) -> f64 {
    n as f64
}

#[expect(
    clippy::cast_precision_loss,
    reason = "seconds since the epoch are far below 2^53"
)]
fn signed(n: i64) -> f64 {
    n as f64
}

fn metric(kind: MetricType, labels: &[(&'static str, String)], value: f64) -> Metric {
    let mut metric = Metric::default();
    metric.set_label(
        labels
            .iter()
            .map(|(name, value)| {
                let mut pair = LabelPair::default();
                pair.set_name((*name).to_owned());
                pair.set_value(value.clone());
                pair
            })
            .collect(),
    );
    if kind == MetricType::COUNTER {
        let mut counter = Counter::default();
        counter.set_value(value);
        metric.set_counter(counter);
    } else {
        let mut gauge = Gauge::default();
        gauge.set_value(value);
        metric.set_gauge(gauge);
    }
    metric
}
