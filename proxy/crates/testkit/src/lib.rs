//! What callbox's own tests share: the running process, scripted peers. Never part of the product.

pub mod blocking;
pub mod peer;
pub mod process;
pub mod scripted;
