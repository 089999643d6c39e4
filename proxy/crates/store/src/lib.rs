//! The call log on SQLite.

mod record;

pub use record::*;
