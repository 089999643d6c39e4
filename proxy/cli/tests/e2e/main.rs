//! callbox from outside: real bytes from a client through the process to a scripted upstream, then what the commands
//! and the admin listener say about them. Tests are named after the cases they prove.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails loudly"
)]

mod bodies;
mod canary;
mod ends;
mod fidelity;
mod headers;
mod mcp;
mod privacy;
mod reload;
mod revisions;
mod stand;
mod stop;
mod streaming;
