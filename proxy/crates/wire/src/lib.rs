//! Skeleton.

pub mod redact;
