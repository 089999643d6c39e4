//! The listening socket: bound once, shared by all workers, with the socket options that a proxy needs.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::{Domain, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::{TcpListener, TcpStream};

/// Pending connections the kernel may queue.
const BACKLOG: i32 = 1024;

/// A silent peer is asked after this long whether it is still there; without it, a client that vanished without a
/// FIN would hold its connection, and its call upstream, for ever.
const KEEPALIVE: TcpKeepalive = TcpKeepalive::new()
    .with_time(Duration::from_mins(1))
    .with_interval(Duration::from_secs(15));

/// The address cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}")]
pub struct ListenError {
    /// The address asked for.
    pub address: SocketAddr,
    /// The system's words.
    pub source: io::Error,
}

/// A bound socket that can be given to several workers.
#[derive(Debug)]
pub struct Listener {
    socket: std::net::TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Binds.
    ///
    /// # Errors
    /// The address is taken, not ours, or not allowed.
    pub fn bind(address: SocketAddr) -> Result<Self, ListenError> {
        let failed = |source| ListenError { address, source };
        let socket =
            Socket::new(Domain::for_address(address), Type::STREAM, None).map_err(failed)?;
        // A restart must not wait for the last instance's connections to leave TIME_WAIT.
        socket.set_reuse_address(true).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        socket.bind(&address.into()).map_err(failed)?;
        socket.listen(BACKLOG).map_err(failed)?;
        let socket = std::net::TcpListener::from(socket);
        let address = socket.local_addr().map_err(failed)?;
        Ok(Self { socket, address })
    }

    /// The bound address; with port 0 asked for, the port that was given.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A handle for one worker.
    ///
    /// # Errors
    /// The process is out of file descriptors.
    pub fn share(&self) -> Result<Acceptor, ListenError> {
        let socket = self.socket.try_clone().map_err(|source| ListenError {
            address: self.address,
            source,
        })?;
        Ok(Acceptor {
            socket,
            address: self.address,
        })
    }
}

/// One worker's handle on the listening socket, not yet tied to a runtime.
#[derive(Debug)]
pub struct Acceptor {
    socket: std::net::TcpListener,
    address: SocketAddr,
}

impl Acceptor {
    /// Ties the handle to the current runtime.
    ///
    /// # Errors
    /// The runtime cannot watch the socket.
    pub fn register(self) -> Result<TcpListener, ListenError> {
        TcpListener::from_std(self.socket).map_err(|source| ListenError {
            address: self.address,
            source,
        })
    }
}

/// Whether an accept error means that the process or the system is short of something, so that trying again at once
/// would spin.
pub fn is_exhausted(error: &io::Error) -> bool {
    // A connection that was reset while it waited is not our trouble; all else (descriptors, memory) is.
    !matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

/// Socket options of every connection: no Nagle (an SSE event must not wait for an acknowledgement), keep-alive probes.
///
/// # Errors
/// The socket is already gone.
pub fn tune(tcp: &TcpStream) -> io::Result<()> {
    tcp.set_nodelay(true)?;
    SockRef::from(tcp).set_tcp_keepalive(&KEEPALIVE)
}
