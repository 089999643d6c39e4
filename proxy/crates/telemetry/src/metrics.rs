//! The metric catalogue: `mcp_` for facts about the traffic, `callbox_` for callbox itself.
//!
//! One registry per process role, handed around; no globals. Labels are closed sets, or peers' strings from capped sets.

use std::sync::Arc;
use std::time::Duration;

use prometheus::{
    HistogramOpts, HistogramVec, IntCounterVec, IntGauge, Opts, Registry, TextEncoder,
};

use crate::labels::CappedLabel;
use crate::openmetrics;
use crate::snapshot::{Snapshot, Snapshots};

/// Tool names that keep their own series (judging.md 2.6).
const MAX_TOOLS: usize = 100;

/// Fast tools answer in milliseconds, slow ones work for minutes: 5 ms to 10 min, about three steps a decade.
const CALL_SECONDS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0,
];

/// All metrics; a clone is the same set.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Registry,
    calls: IntCounterVec,
    duration: HistogramVec,
    tools: CappedLabel,
}

/// One concluded call, as the counters see it.
#[derive(Clone, Copy, Debug)]
pub struct CallFacts<'a> {
    /// Name of the upstream, from the configuration.
    pub upstream: &'a str,
    /// `params.name`, the client's words.
    pub tool: &'a str,
    /// Outcome in the words of the call log.
    pub outcome: &'static str,
    /// None for calls without a meaningful one.
    pub duration: Option<Duration>,
    /// The upstream answered with a result, so the name is a real tool's: it may take a place in the capped set.
    pub known_tool: bool,
}

impl Metrics {
    /// A fresh registry with every fixed series at zero.
    pub fn new(version: &str) -> Self {
        let registry = Registry::new();
        let calls = register(
            &registry,
            IntCounterVec::new(
                Opts::new(
                    "mcp_tool_calls_total",
                    "Tool calls concluded, by upstream, tool and outcome",
                ),
                &["upstream", "tool", "outcome"],
            ),
        );
        let duration = register(
            &registry,
            HistogramVec::new(
                HistogramOpts::new(
                    "mcp_tool_call_duration_seconds",
                    "From the request's head to the end of the answer",
                )
                .buckets(CALL_SECONDS.to_vec()),
                &["upstream", "tool"],
            ),
        );
        let overflow = register(
            &registry,
            IntCounterVec::new(
                Opts::new(
                    "mcp_label_overflow_total",
                    "Observations whose label value became _other",
                ),
                &["label"],
            ),
        );
        let build = register(
            &registry,
            IntGauge::with_opts(
                Opts::new("callbox_build_info", "Version of callbox")
                    .const_label("version", version),
            ),
        );
        build.set(1);
        Self {
            tools: CappedLabel::new(MAX_TOOLS, overflow.with_label_values(&["tool"])),
            registry,
            calls,
            duration,
        }
    }

    /// Adds the facts that other rooms count, read at each scrape.
    pub fn watch(&self, read: impl Fn() -> Snapshot + Send + Sync + 'static) {
        let collector = Snapshots::new(Box::new(read));
        if let Err(error) = self.registry.register(Box::new(collector)) {
            tracing::error!(%error, "metrics of the recorder are missing: they were registered twice");
        }
    }

    /// Names of a `tools/list` take their places before invented ones can, and their series begin at zero.
    pub fn tool_listed(&self, upstream: &str, tool: &str) {
        self.tools.admit(tool);
        self.tools.with(tool, false, |tool| {
            for outcome in ["ok", "tool_error", "rpc_error", "timeout", "cancelled"] {
                self.calls.with_label_values(&[upstream, tool, outcome]);
            }
        });
    }

    /// Counts one concluded call.
    pub fn call(&self, call: CallFacts<'_>) {
        self.tools.with(call.tool, call.known_tool, |tool| {
            self.calls
                .with_label_values(&[call.upstream, tool, call.outcome])
                .inc();
            if let Some(duration) = call.duration {
                self.duration
                    .with_label_values(&[call.upstream, tool])
                    .observe(duration.as_secs_f64());
            }
        });
    }

    /// The exposition: text 0.0.4, or OpenMetrics 1.0.
    pub fn render(&self, format: Format) -> String {
        let families = self.registry.gather();
        match format {
            Format::Text => {
                let mut out = String::new();
                if let Err(error) = TextEncoder::new().encode_utf8(&families, &mut out) {
                    tracing::error!(%error, "a metric could not be written");
                }
                out
            }
            Format::OpenMetrics => openmetrics::encode(&families),
        }
    }
}

/// Exposition format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus text 0.0.4.
    Text,
    /// OpenMetrics 1.0 text.
    OpenMetrics,
}

impl Format {
    /// From a request's `Accept`.
    pub fn negotiate(accept: Option<&str>) -> Self {
        match accept {
            Some(accept) if accept.contains("application/openmetrics-text") => Self::OpenMetrics,
            _ => Self::Text,
        }
    }

    /// Media type of the answer.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

fn register<M: prometheus::core::Collector + Clone + 'static>(
    registry: &Registry,
    metric: prometheus::Result<M>,
) -> M {
    let metric = metric.expect("invariant: catalogue names and labels are valid");
    registry
        .register(Box::new(metric.clone()))
        .expect("invariant: each metric is registered once");
    metric
}

/// The shared handle that most rooms hold.
pub type SharedMetrics = Arc<Metrics>;

#[cfg(test)]
mod tests {
    use super::*;

    fn call<'a>(tool: &'a str, outcome: &'static str, known_tool: bool) -> CallFacts<'a> {
        CallFacts {
            upstream: "crm",
            tool,
            outcome,
            duration: Some(Duration::from_millis(12)),
            known_tool,
        }
    }

    #[test]
    fn b49_series_are_bounded_whatever_peers_invent() {
        let metrics = Metrics::new("0");
        metrics.tool_listed("crm", "search");
        for n in 0..5_000 {
            metrics.call(call(&format!("invented_{n}"), "rpc_error", false));
        }
        for n in 0..5_000 {
            metrics.call(call(&format!("real_{n}"), "ok", true));
        }
        metrics.call(call("search", "ok", false));
        let text = metrics.render(Format::Text);
        let series = text.lines().filter(|line| !line.starts_with('#')).count();
        // 100 tools with at most 5 outcomes and 19 histogram lines each, `_other`, and the fixed ones
        assert!(series < 3_000, "{series} series");
        assert!(
            text.contains(r#"mcp_tool_calls_total{outcome="ok",tool="search",upstream="crm"} 1"#)
        );
        assert!(text.contains(
            r#"mcp_tool_calls_total{outcome="rpc_error",tool="_other",upstream="crm"} 5000"#
        ));
        assert!(
            text.contains(r#"mcp_label_overflow_total{label="tool"} 9901"#),
            "{}",
            text.lines()
                .filter(|l| l.contains("overflow"))
                .collect::<String>()
        );
    }

    #[test]
    fn a_listed_tool_starts_at_zero() {
        let metrics = Metrics::new("0");
        metrics.tool_listed("crm", "delete_contact");
        assert!(metrics.render(Format::Text).contains(
            r#"mcp_tool_calls_total{outcome="tool_error",tool="delete_contact",upstream="crm"} 0"#
        ));
    }

    #[test]
    fn snapshots_are_read_at_each_scrape() {
        let metrics = Metrics::new("0");
        let reads = Arc::new(std::sync::atomic::AtomicU64::new(0));
        let source = Arc::clone(&reads);
        metrics.watch(move || Snapshot {
            stored: source.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
            dropped: vec![("disk_full", 7)],
            ..Snapshot::default()
        });
        assert!(
            metrics
                .render(Format::Text)
                .contains("callbox_records_stored_total 0")
        );
        let text = metrics.render(Format::Text);
        assert!(text.contains("callbox_records_stored_total 1"));
        assert!(text.contains(r#"callbox_dropped_total{reason="disk_full"} 7"#));
    }
}
