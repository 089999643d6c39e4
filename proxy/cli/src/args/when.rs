//! Moments as people type them: a time that has passed since (`1h`, `2d 3h`), or a date and time.

use callbox_store::Micros;
use jiff::civil::DateTime;
use jiff::fmt::friendly::SpanParser;
use jiff::tz::TimeZone;
use jiff::{SpanRelativeTo, Timestamp};

use crate::clock;

/// Reads `--since` and `--until`.
pub(super) fn moment(text: &str) -> Result<Micros, String> {
    moment_at(text, clock::now())
}

fn moment_at(text: &str, now: Micros) -> Result<Micros, String> {
    if let Some(ago) = ago(text) {
        return Ok(now.saturating_sub(ago));
    }
    let zoned = text.parse::<Timestamp>().ok();
    // Without an offset it is UTC, like every time callbox prints.
    let civil = || {
        TimeZone::UTC
            .to_timestamp(text.parse::<DateTime>().ok()?)
            .ok()
    };
    zoned.or_else(civil).map(Timestamp::as_microsecond).ok_or_else(|| {
        "expected how long ago, such as `90s`, `1h` or `2d`, or a time, such as `2026-11-30` or `2026-11-30T14:00:00Z`".to_owned()
    })
}

/// A duration back from now; days are 24 hours.
fn ago(text: &str) -> Option<Micros> {
    let span = SpanParser::new().parse_span(text).ok()?;
    let duration = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    i64::try_from(duration.as_micros())
        .ok()
        .filter(|micros| *micros >= 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Micros = 1_796_080_800_000_000; // 2026-11-30T23:20:00Z

    #[test]
    fn moments_as_people_type_them() {
        for (text, expected) in [
            ("90s", NOW - 90_000_000),
            ("1h", NOW - 3_600_000_000),
            ("1h30m", NOW - 5_400_000_000),
            ("2d", NOW - 172_800_000_000),
            ("1w", NOW - 604_800_000_000),
            ("2026-11-30T23:20:00Z", NOW),
            ("2026-12-01T00:20:00+01:00", NOW),
            ("2026-11-30T23:20:00", NOW),
            ("2026-11-30T23:20", NOW),
            ("2026-11-30 23:20", NOW),
            ("2026-11-30", NOW - (23 * 60 + 20) * 60_000_000),
        ] {
            assert_eq!(moment_at(text, NOW), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_moment() {
        for text in [
            "",
            "1",
            "yesterday",
            "-1h",
            "1mo",
            "2026-13-01",
            "99999999999999d",
            "2026",
        ] {
            assert!(moment_at(text, NOW).is_err(), "{text}");
        }
    }
}
