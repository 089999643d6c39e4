//! The data path, the tap, and the observer behind it.

pub mod tap;
