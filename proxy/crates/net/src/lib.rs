//! Connections: TLS, the listener, the upstream pool, deadlines and the drain.
//!
//! Owns sockets and the HTTP connections on them. Knows nothing of MCP, of recording or of the configuration file:
//! callers hand in plain options and a service.

mod dial;
mod drain;
mod listen;
mod pool;
mod serve;
mod stream;
mod tasks;
pub mod tls;
mod watch;

pub use dial::{DialError, Dialer, Host};
pub use drain::Drain;
pub use listen::{Acceptor, ListenError, Listener, is_exhausted, tune};
pub use pool::{
    Channel, ExecuteOn, Http1Lease, Http2Lease, Pool, PoolLimits, Protocol, RequestBody, SendError,
};
pub use serve::{Accepts, Ended, ServeOptions, serve};
pub use stream::Stream;
pub use tasks::{PanicCount, Tasks};
pub use watch::{ConnectionWatch, Watched};
