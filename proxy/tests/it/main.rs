//! The data path as its two sides see it: real sockets, peers that the test scripts byte by byte.

#![allow(clippy::unwrap_used, reason = "a test fails loudly")]

mod drain;
mod ends;
mod faults;
mod forward;
mod framing;
mod harness;
mod http2;
mod recorded;
mod reload;
mod streams;
mod tls;
mod transparency;
