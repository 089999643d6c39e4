//! The data path, the tap, and the observer behind it.

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
