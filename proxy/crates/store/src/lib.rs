//! The call log on SQLite: schema, migrations, writer thread, reader, retention, erasure.
//!
//! One process writes a log, through one thread; any number read it meanwhile. This is the only crate with SQL: all
//! others speak of calls, sessions, messages and catalogues. It must not know HTTP, nor decide what is recorded.

mod block;
mod clock;
mod codes;
mod db;
mod doc;
mod erase;
mod error;
mod fault;
mod files;
mod filter;
mod health;
mod ids;
mod json;
mod keys;
mod names;
mod reader;
mod record;
mod retention;
mod segments;
mod summary;
mod writer;

pub use erase::{Erase, Erased, erase};
pub use error::StoreError;
pub use filter::{CallFilter, Resolved, SessionFilter};
pub use health::{DropReason, Health, State};
pub use ids::Ids;
pub use keys::Keys;
pub use reader::{Follower, Reader};
pub use record::*;
pub use retention::{Pruned, prune};
pub use summary::SessionSummary;
pub use writer::{Batch, Options, Record, Writer, open};
