//! The data path, the tap, and the observer behind it.
//!
//! What the path cannot pass, because hyper has no way for it: informational answers other than `100 Continue`;
//! trailers whose names no `Trailer` field announced, towards HTTP/1; the order of *different* fields when a repeated
//! one stands between them (repeated ones are grouped where the first stood); heads with more than 100 fields (431
//! towards clients, 502 for an upstream) or over 128 KiB; targets with a raw `<`, `>` or `#`,
//! with `` ` `` in the path or `"` in the query (400).

mod clock;
mod exchange;
mod fault;
mod forward;
mod headers;
mod live;
mod observe;
mod readings;
mod recorder;
mod route;
pub mod run;
mod server;
pub mod tap;
mod tee;
mod traffic;

pub use fault::{FAULT_HEADER, FaultKind, Party};
pub use live::SettingsError;
pub use route::RouteError;
pub use server::{Drained, Server, StartError};
pub use traffic::{Traffic, UpstreamTraffic};
