//! Every setting of callbox, once: the file as written, the environment, the flags, and the resolved values.
//!
//! The raw types say what may be written, and their doc comments are the reference; [`Settings`] is what the rest of
//! callbox reads. This crate is the only one that reads the environment. It starts nothing and binds nothing.

mod document;
mod env;
mod keys;
mod load;
mod mismatch;
mod nearest;
mod pem;
mod problem;
mod raw;
mod resolve;
mod restart;
mod schema;
mod settings;
mod shape;
mod show;
mod sources;
mod units;
mod write;

pub use document::{documented_defaults, reference};
pub use env::Env;
pub use load::{Loaded, load, parse};
pub use problem::{ConfigError, Origin, Problem};
pub use schema::schema;
pub use settings::*;
pub use show::show;
pub use sources::{Overrides, Sources};
