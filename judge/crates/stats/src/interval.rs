//! Intervals for a proportion.

/// Two-sided 95 % quantile of the normal distribution.
pub(crate) const Z95: f64 = 1.959_963_984_540_054;

/// Bounds of a proportion, both within 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower bound.
    pub lower: f64,
    /// Upper bound.
    pub upper: f64,
}

/// Wilson's score interval at 95 % for `passes` of `n`, both possibly fractional (effective) counts.
///
/// None without observations: no number is not zero.
///
/// Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927).
pub fn wilson(passes: f64, n: f64) -> Option<Interval> {
    if n.is_nan() || n <= 0.0 || !(0.0..=n).contains(&passes) {
        return None;
    }
    let p = passes / n;
    let z2 = Z95 * Z95;
    let scale = 1.0 + z2 / n;
    let centre = (p + z2 / (2.0 * n)) / scale;
    let half = Z95 * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt() / scale;
    // At the ends the exact bound is 0 or 1; subtraction leaves dust.
    Some(Interval {
        lower: if passes <= 0.0 {
            0.0
        } else {
            (centre - half).max(0.0)
        },
        upper: if passes >= n {
            1.0
        } else {
            (centre + half).min(1.0)
        },
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn worked_numbers() {
        for (passes, n, lower, upper) in [
            (0.0, 20.0, 0.0, 0.1611),
            (20.0, 20.0, 0.8389, 1.0),
            (9.0, 10.0, 0.5958, 0.9821),
            (45.0, 50.0, 0.7864, 0.9565),
            (90.0, 100.0, 0.8256, 0.9448),
            (180.0, 200.0, 0.8506, 0.9343),
            (450.0, 500.0, 0.8706, 0.9233),
            (59.0, 59.0, 0.9389, 1.0),
        ] {
            let interval = wilson(passes, n).unwrap();
            assert!(
                (interval.lower - lower).abs() < 5e-5,
                "{passes}/{n}: {interval:?}"
            );
            assert!(
                (interval.upper - upper).abs() < 5e-5,
                "{passes}/{n}: {interval:?}"
            );
        }
    }

    #[test]
    fn nothing_observed_is_no_number() {
        assert_eq!(wilson(0.0, 0.0), None);
        assert_eq!(wilson(2.0, 1.0), None);
        assert_eq!(wilson(f64::NAN, 1.0), None);
    }

    proptest! {
        /// The interval holds the point estimate and stays within 0 to 1.
        #[test]
        fn holds_the_estimate(n in 1_u32..100_000, share in 0.0_f64..=1.0) {
            let n = f64::from(n);
            let passes = (n * share).floor();
            let interval = wilson(passes, n).unwrap();
            prop_assert!(0.0 <= interval.lower && interval.upper <= 1.0);
            prop_assert!(interval.lower <= passes / n && passes / n <= interval.upper);
        }
    }
}
