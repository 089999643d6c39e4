//! What the crate promises, tested through its public API. One binary: linking once is enough.

#![allow(
    clippy::unwrap_used,
    clippy::string_slice,
    reason = "a test may stop at what it did not expect"
)]

mod cases;
mod coding;
mod collect;
mod corpus;
mod props;
mod rpc;
mod sse;
