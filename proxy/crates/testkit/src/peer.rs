//! Scripted peers: a client and an upstream that send and see exact bytes, at the moment the test says so.
//!
//! No mock library can send half an event, reset a connection or stall; these can. They block, with a deadline.

pub mod client;
pub mod h2;
pub mod http1;
pub mod upstream;

pub use client::{Answer, Body, Client};
pub use http1::{Head, Piece};
pub use upstream::{Asked, Upstream};
