//! The store as others see it: real files, real threads, real processes.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests look at the files themselves, and at the time"
)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::format_collect,
    clippy::format_push_string,
    clippy::print_stderr,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "tests: a panic is a failure, and what is skipped is said"
)]

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
