//! A client and an upstream for tests that watch callbox as a process: they send and see exact bytes at the moment the
//! test says so, and block, with a deadline. The upstream hands out requests, not connections: which connection of its
//! pool callbox takes is its own business.

pub mod client;
pub mod h2;
pub mod http1;
pub mod upstream;

pub use client::{Answer, Body, Client};
pub use http1::{Head, Piece};
pub use upstream::{Asked, Upstream};
