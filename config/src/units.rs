//! Durations and sizes as operators write them: `30s`, `1h 30m`, `30d`; `512B`, `1MiB`, `10GB`. Parses and prints; both
//! ways round-trip.

use std::time::Duration;

use jiff::SpanRelativeTo;
use jiff::fmt::friendly::SpanParser;

/// A hundred years: far enough for every purpose, and no sum of an instant and this overflows.
pub(crate) const LONGEST: Duration = Duration::from_hours(36_500 * 24);

/// Reads a duration. Days are 24 hours; months and years have no fixed length and are refused.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let span = SpanParser::new().parse_span(text).ok()?;
    let signed = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    Duration::try_from(signed).ok()
}

/// Writes a duration in the largest unit that keeps it whole: `90s`, `10m`, `30d`.
pub(crate) fn duration_text(duration: Duration) -> String {
    const UNITS: [(&str, u128); 7] = [
        ("d", 86_400_000_000_000),
        ("h", 3_600_000_000_000),
        ("m", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1000),
        ("ns", 1),
    ];
    let nanos = duration.as_nanos();
    if nanos == 0 {
        return "0s".to_owned();
    }
    UNITS
        .iter()
        .find(|(_, unit)| nanos.is_multiple_of(*unit))
        .map_or_else(
            || format!("{nanos}ns"),
            |(name, unit)| format!("{}{name}", nanos / unit),
        )
}

const SIZES: [(&str, u64); 11] = [
    ("B", 1),
    ("kB", 1000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("PB", 1_000_000_000_000_000),
    ("PiB", 1 << 50),
];

/// Reads a size: a whole number and a unit, in any case, with or without a space between them.
pub(crate) fn size(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    let unit = unit.trim_start();
    let (_, factor) = SIZES
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

/// Writes a size in the largest binary unit that keeps it whole.
pub(crate) fn size_text(bytes: u64) -> String {
    const UNITS: [(&str, u64); 5] = [
        ("PiB", 1 << 50),
        ("TiB", 1 << 40),
        ("GiB", 1 << 30),
        ("MiB", 1 << 20),
        ("KiB", 1 << 10),
    ];
    UNITS
        .iter()
        .find(|(_, unit)| bytes > 0 && bytes.is_multiple_of(*unit))
        .map_or_else(
            || format!("{bytes}B"),
            |(name, unit)| format!("{}{name}", bytes / unit),
        )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_as_people_write_them() {
        for (text, seconds) in [
            ("30s", 30.0),
            ("1h30m", 5400.0),
            ("1h 30m", 5400.0),
            ("90 seconds", 90.0),
            ("30d", 2_592_000.0),
            ("2w", 1_209_600.0),
            ("1.5s", 1.5),
            ("250ms", 0.25),
            ("0s", 0.0),
        ] {
            assert_eq!(
                duration(text),
                Some(Duration::from_secs_f64(seconds)),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_duration() {
        for text in [
            "",
            "30",
            "s",
            "-5s",
            "5s ago",
            "1mo",
            "1y",
            "10 parsecs",
            "1e9s",
            "99999999999999999999d",
            "30s\0",
        ] {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_as_people_write_them() {
        for (text, bytes) in [
            ("0B", 0),
            ("512B", 512),
            ("1KiB", 1024),
            ("1 MiB", 1 << 20),
            ("1mib", 1 << 20),
            ("10GiB", 10 << 30),
            ("1kB", 1000),
            ("5MB", 5_000_000),
            ("2TB", 2_000_000_000_000),
            ("1PiB", 1 << 50),
        ] {
            assert_eq!(size(text), Some(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_size() {
        for text in [
            "",
            "MiB",
            "12",
            "1M",
            "1.5GiB",
            "-1MiB",
            "1MiBs",
            "99999999999PiB",
            "1 M iB",
            "１MiB",
        ] {
            assert_eq!(size(text), None, "{text}");
        }
    }

    proptest! {
        /// Every duration we print is read back as the same duration.
        #[test]
        fn durations_round_trip(nanos in 0..LONGEST.as_nanos()) {
            let duration_in = Duration::from_nanos(u64::try_from(nanos)?);
            prop_assert_eq!(duration(&duration_text(duration_in)), Some(duration_in));
        }

        /// Every size we print is read back as the same size.
        #[test]
        fn sizes_round_trip(bytes: u64) {
            prop_assert_eq!(size(&size_text(bytes)), Some(bytes));
        }
    }
}
