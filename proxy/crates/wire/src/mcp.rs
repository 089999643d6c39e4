//! MCP on top of JSON-RPC: names, typed peeks into `params` and `result`, and which revision is spoken.
//!
//! A peek reads the members that correlation needs and leaves the rest where it is. Nothing is validated: what is missing or
//! of another type is simply absent, because the record has to hold what peers really sent.

pub mod catalogue;
pub mod header;
mod members;
mod meta;
pub mod method;
mod params;
mod result;
pub mod revision;
pub mod trace;

pub use self::members::each_member;
pub use self::meta::{ClientInfo, Meta};
pub use self::method::Method;
pub use self::params::Params;
pub use self::result::{ResultFacts, TaskFacts, TaskStatus};
pub use self::revision::{Era, Evidence, Revision};
