//! The store as others see it: real files, real threads, real processes.

#![allow(clippy::unwrap_used, reason = "tests")]

mod corrupt;
mod crash;
mod erase;
mod faults;
mod files;
mod follow;
mod migrate;
mod queries;
mod retention;
mod roundtrip;
mod sample;
mod wal;
mod writer;
