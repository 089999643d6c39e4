//! Moments and spans of time as people read them. Always UTC, as in the JSON form and in the servers' own logs.

use jiff::Timestamp;

use callbox_store::Micros;

/// A recorded moment; one that no calendar has (a damaged row) becomes the epoch.
fn timestamp(at: Micros) -> Timestamp {
    Timestamp::from_microsecond(at).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// `2026-11-30T14:03:07.120456Z`
pub(crate) fn rfc3339(at: Micros) -> String {
    format!("{:.6}", timestamp(at))
}

/// `2026-11-30`
pub(crate) fn date(at: Micros) -> String {
    timestamp(at).strftime("%Y-%m-%d").to_string()
}

/// `14:03:07`
pub(crate) fn second(at: Micros) -> String {
    timestamp(at).strftime("%H:%M:%S").to_string()
}

/// `11-30 14:03:07`
pub(crate) fn day_second(at: Micros) -> String {
    timestamp(at).strftime("%m-%d %H:%M:%S").to_string()
}

/// `14:03:07.120`
pub(crate) fn time(at: Micros) -> String {
    timestamp(at).strftime("%H:%M:%S.%3f").to_string()
}

/// `2026-11-30 14:03:07.120`
pub(crate) fn date_time(at: Micros) -> String {
    timestamp(at).strftime("%Y-%m-%d %H:%M:%S.%3f").to_string()
}

/// Now, as the log writes it.
pub(crate) fn now() -> Micros {
    Timestamp::now().as_microsecond()
}

/// How long something took: `0.4 ms`, `34 ms`, `1.2 s`, `4 min 12 s`, `2 h 5 min`, `3 d 4 h`.
pub(crate) fn span(micros: u64) -> String {
    let seconds = micros / 1_000_000;
    match micros {
        0..1000 => format!("0.{} ms", micros / 100),
        1000..10_000 => format!("{}.{} ms", micros / 1000, micros % 1000 / 100),
        10_000..1_000_000 => format!("{} ms", micros / 1000),
        1_000_000..60_000_000 => format!("{}.{} s", seconds, micros % 1_000_000 / 100_000),
        60_000_000..3_600_000_000 => two(seconds / 60, "min", seconds % 60, "s"),
        3_600_000_000..86_400_000_000 => two(seconds / 3600, "h", seconds % 3600 / 60, "min"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3600, "h"),
    }
}

fn two(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    if small == 0 {
        format!("{large} {large_unit}")
    } else {
        format!("{large} {large_unit} {small} {small_unit}")
    }
}

/// Between two moments; none when the second is not later (wall clocks can step back).
pub(crate) fn between(from: Micros, to: Micros) -> u64 {
    u64::try_from(to.saturating_sub(from)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        let at = 1_796_047_387_120_456;
        assert_eq!(rfc3339(at), "2026-11-30T14:03:07.120456Z");
        assert_eq!(date_time(at), "2026-11-30 14:03:07.120");
        assert_eq!(
            (date(at), time(at)),
            ("2026-11-30".into(), "14:03:07.120".into())
        );
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(date(i64::MAX), "1970-01-01");
    }

    #[test]
    fn spans() {
        let spans = [
            0,
            450,
            1000,
            9_999,
            34_000,
            999_999,
            1_250_000,
            59_999_999,
            60_000_000,
            252_000_000,
            7_500_000_000,
        ];
        assert_eq!(
            spans.map(span),
            [
                "0.0 ms",
                "0.4 ms",
                "1.0 ms",
                "9.9 ms",
                "34 ms",
                "999 ms",
                "1.2 s",
                "59.9 s",
                "1 min",
                "4 min 12 s",
                "2 h 5 min"
            ]
        );
        assert_eq!(span(u64::MAX), "213503982 d 8 h");
    }
}
