//! OpenMetrics 1.0 text from gathered families: counter families without `_total`, an end mark.

use std::fmt::Write as _;

use prometheus::proto::{LabelPair, MetricFamily, MetricType};

/// Writes all families.
pub fn encode(families: &[MetricFamily]) -> String {
    let mut out = String::new();
    for family in families {
        write_family(&mut out, family).expect("invariant: writing to a String does not fail");
    }
    out.push_str("# EOF\n");
    out
}

fn write_family(out: &mut String, family: &MetricFamily) -> std::fmt::Result {
    let kind = family.get_field_type();
    let name = match kind {
        MetricType::COUNTER => family
            .name()
            .strip_suffix("_total")
            .unwrap_or(family.name()),
        _ => family.name(),
    };
    let kind_word = match kind {
        MetricType::COUNTER => "counter",
        MetricType::GAUGE => "gauge",
        MetricType::HISTOGRAM => "histogram",
        MetricType::SUMMARY | MetricType::UNTYPED => "unknown",
    };
    writeln!(out, "# TYPE {name} {kind_word}")?;
    writeln!(out, "# HELP {name} {}", escape(family.help()))?;
    for metric in family.get_metric() {
        let labels = metric.get_label();
        match kind {
            MetricType::COUNTER => sample(
                out,
                &format!("{name}_total"),
                labels,
                None,
                metric.get_counter().get_value(),
            )?,
            MetricType::HISTOGRAM => {
                let histogram = metric.get_histogram();
                let bucket_name = format!("{name}_bucket");
                for bucket in histogram.get_bucket() {
                    let edge = number(bucket.upper_bound());
                    sample(
                        out,
                        &bucket_name,
                        labels,
                        Some(&edge),
                        float(bucket.cumulative_count()),
                    )?;
                }
                sample(
                    out,
                    &bucket_name,
                    labels,
                    Some("+Inf"),
                    float(histogram.get_sample_count()),
                )?;
                sample(
                    out,
                    &format!("{name}_count"),
                    labels,
                    None,
                    float(histogram.get_sample_count()),
                )?;
                sample(
                    out,
                    &format!("{name}_sum"),
                    labels,
                    None,
                    histogram.get_sample_sum(),
                )?;
            }
            _ => sample(out, name, labels, None, metric.get_gauge().get_value())?,
        }
    }
    Ok(())
}

fn sample(
    out: &mut String,
    name: &str,
    labels: &[LabelPair],
    le: Option<&str>,
    value: f64,
) -> std::fmt::Result {
    out.push_str(name);
    let mut open = '{';
    for label in labels {
        write!(out, "{open}{}=\"{}\"", label.name(), escape(label.value()))?;
        open = ',';
    }
    if let Some(le) = le {
        write!(out, "{open}le=\"{le}\"")?;
        open = ',';
    }
    if open == ',' {
        out.push('}');
    }
    writeln!(out, " {}", number(value))
}

/// Canonical floats: OpenMetrics wants `1.0` as a bucket edge, not `1`.
fn number(value: f64) -> String {
    format!("{value:?}")
}

#[expect(clippy::cast_precision_loss, reason = "counts stay exact below 2^53")]
fn float(n: u64) -> f64 {
    n as f64
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('\n', "\\n")
        .replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::metrics::{CallFacts, Format, Metrics};

    #[test]
    fn counters_lose_their_suffix_in_the_type_line_and_the_text_ends() {
        let metrics = Metrics::new("1.2.3");
        metrics.call(CallFacts {
            upstream: "u",
            tool: "a\"b",
            outcome: "ok",
            duration: Some(Duration::from_secs(1)),
            known_tool: true,
        });
        let text = metrics.render(Format::OpenMetrics);
        assert!(text.contains("# TYPE mcp_tool_calls counter\n"));
        assert!(
            text.contains(r#"mcp_tool_calls_total{outcome="ok",tool="a\"b",upstream="u"} 1.0"#),
            "{text}"
        );
        assert!(text.contains(r#"le="1.0"} 1.0"#));
        assert!(text.contains(r#"le="+Inf"} 1.0"#));
        assert!(text.ends_with("# EOF\n"));
    }
}
