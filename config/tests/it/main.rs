//! The configuration as operators meet it: files, variables, flags, messages and the documents made from the same keys.

#![allow(clippy::unwrap_used, reason = "a panic is a test's way to say no")]

mod bad;
mod desk;
mod examples;
mod golden;
mod precedence;
mod props;
mod reload;
mod show;
