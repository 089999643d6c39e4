//! Estimators and intervals for sampled pass/fail verdicts. Pure arithmetic: no time, no storage, no randomness.
//!
//! The number is honest only with its interval and its effective sample size, so they are computed side by side here.

mod interval;
mod stratified;

pub use interval::{Interval, wilson};
pub use stratified::{Estimate, Stratum, kish, stratified};
