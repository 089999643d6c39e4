//! callbox from outside: real bytes from a client through the process to a scripted upstream, then what the commands
//! and the admin listener say about them. Tests are named after the cases they prove.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails loudly"
)]

mod ends;
mod mcp;
mod reload;
mod stand;
mod stop;
mod streaming;
