//! Means of weighted samples.

use crate::interval::Z95;

/// One stratum of the population with what was found in its sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stratum {
    /// Units in the population.
    pub population: f64,
    /// Units judged with a decision.
    pub judged: f64,
    /// Of those, passes.
    pub passed: f64,
}

/// A weighted mean with its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Share of passes in the population.
    pub mean: f64,
    /// Standard error.
    pub standard_error: f64,
}

impl Estimate {
    /// Normal 95 % bounds.
    pub fn normal_bounds(self) -> (f64, f64) {
        (
            self.mean - Z95 * self.standard_error,
            self.mean + Z95 * self.standard_error,
        )
    }
}

/// Stratified mean with the finite population correction.
///
/// None when there is no population or a stratum with units has no judged one (collapse it into a neighbour first).
///
/// Source: W. G. Cochran, Sampling Techniques, 3rd ed., sections 5.3 and 5.4.
pub fn stratified(strata: &[Stratum]) -> Option<Estimate> {
    let population: f64 = strata.iter().map(|stratum| stratum.population).sum();
    if population.is_nan() || population <= 0.0 {
        return None;
    }
    let mut mean = 0.0;
    let mut variance = 0.0;
    for stratum in strata.iter().filter(|stratum| stratum.population > 0.0) {
        if stratum.judged.is_nan() || stratum.judged <= 0.0 {
            return None;
        }
        let share = stratum.population / population;
        let p = stratum.passed / stratum.judged;
        mean += share * p;
        if stratum.judged > 1.0 {
            let rest = 1.0 - stratum.judged / stratum.population;
            variance += share * share * rest * p * (1.0 - p) / (stratum.judged - 1.0);
        }
    }
    Some(Estimate {
        mean,
        standard_error: variance.sqrt(),
    })
}

/// Effective sample size of unequal weights: the square of their sum over the sum of their squares.
///
/// Source: L. Kish, Survey Sampling (1965), section 11.7.
pub fn kish(weights: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, squares) = weights
        .into_iter()
        .fold((0.0, 0.0), |(sum, squares), weight| {
            (sum + weight, squares + weight * weight)
        });
    if squares > 0.0 {
        sum * sum / squares
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_numbers() {
        let strata = [
            Stratum {
                population: 8_900.0,
                judged: 445.0,
                passed: 430.0,
            },
            Stratum {
                population: 1_000.0,
                judged: 200.0,
                passed: 180.0,
            },
            Stratum {
                population: 100.0,
                judged: 100.0,
                passed: 80.0,
            },
        ];
        let estimate = stratified(&strata).unwrap();
        assert!((estimate.mean - 0.9580).abs() < 5e-5, "{estimate:?}");
        assert!(
            (estimate.standard_error - 0.007_67).abs() < 5e-6,
            "{estimate:?}"
        );
        let (lower, upper) = estimate.normal_bounds();
        assert!((lower - 0.9430).abs() < 5e-5 && (upper - 0.9730).abs() < 5e-5);
    }

    #[test]
    fn an_unjudged_stratum_is_no_number() {
        let strata = [Stratum {
            population: 10.0,
            judged: 0.0,
            passed: 0.0,
        }];
        assert_eq!(stratified(&strata), None);
        assert_eq!(stratified(&[]), None);
    }

    #[test]
    fn kish_of_the_worked_weights() {
        let weights = [(445, 20.0), (200, 5.0), (100, 1.0)]
            .into_iter()
            .flat_map(|(n, weight)| std::iter::repeat_n(weight, n));
        assert!((kish(weights) - 546.1).abs() < 0.05);
        assert!(kish([]).abs() < f64::EPSILON);
    }
}
