//! Tests of the observer as a whole: what real peers write goes in as tap events, records come out.

#![allow(clippy::unwrap_used, reason = "a test fails loudly")]

mod cases;
mod feed;
mod legacy;
mod limits;
mod modern;
mod props;
mod speed;
mod tasks;
mod two_endpoints;
