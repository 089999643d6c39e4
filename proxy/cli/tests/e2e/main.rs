//! callbox from outside: real bytes from a client through the process to a scripted upstream, then what the commands
//! and the admin listener say about them. Tests are named after the cases they prove.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test fails, and skips, loudly"
)]

mod at_rest;
mod bodies;
mod canaries;
mod certificates;
mod crash;
mod disk;
mod ends;
mod fidelity;
mod headers;
mod load;
mod mcp;
mod metrics;
mod minutes;
mod mixing;
mod privacy;
mod reload;
mod revisions;
mod stand;
mod stop;
mod storage;
mod streaming;
mod tls;
