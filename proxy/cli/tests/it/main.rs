//! Tests of the real binary on real data directories, and of the house around it.
#![allow(
    clippy::too_many_lines,
    reason = "a snapshot is as long as what it shows"
)]
#![allow(
    clippy::unwrap_used,
    clippy::string_slice,
    reason = "a test that panics has failed, as it should"
)]

mod arrows;
mod calls;
mod config;
mod erase;
mod export;
mod fixture;
mod hostile;
mod ids;
mod run;
mod show;
mod tail;
mod terminal;
mod usage;
