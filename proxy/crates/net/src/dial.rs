//! Opens connections to one upstream: name look-up, TCP, TLS, each within its deadline.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

use crate::listen::tune;
use crate::stream::Stream;

/// Where to dial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Name or address.
    pub name: String,
    /// Port.
    pub port: u16,
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.name, self.port)
    }
}

/// Why no connection could be had.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// The name has no address.
    #[error("{host}: name look-up failed")]
    Resolve {
        /// What was dialled.
        host: Host,
        /// The resolver's words.
        source: io::Error,
    },
    /// No address answered.
    #[error("{host}: connect failed")]
    Connect {
        /// What was dialled.
        host: Host,
        /// The last address's error.
        source: io::Error,
    },
    /// The connect deadline passed.
    #[error("{host}: no connection within {limit:?}")]
    ConnectTimeout {
        /// What was dialled.
        host: Host,
        /// The deadline.
        limit: Duration,
    },
    /// TLS did not come about.
    #[error("{host}: TLS handshake failed")]
    Tls {
        /// What was dialled.
        host: Host,
        /// What TLS says.
        source: io::Error,
    },
    /// The TLS deadline passed.
    #[error("{host}: no TLS handshake within {limit:?}")]
    TlsTimeout {
        /// What was dialled.
        host: Host,
        /// The deadline.
        limit: Duration,
    },
    /// HTTP/2 was wanted and is not to be had.
    #[error("{host}: HTTP/2 handshake failed")]
    Http2 {
        /// What was dialled.
        host: Host,
        /// hyper's words; none when the server does not offer HTTP/2.
        source: Option<hyper::Error>,
    },
    /// HTTP/1 could not be set up.
    #[error("{host}: HTTP/1 set-up failed")]
    Http1 {
        /// What was dialled.
        host: Host,
        /// hyper's words.
        source: hyper::Error,
    },
}

/// Opens connections to one host.
#[derive(Clone, Debug)]
pub struct Dialer {
    /// Where.
    pub host: Host,
    /// With TLS: trust, identity and the name to verify.
    pub tls: Option<(Arc<rustls::ClientConfig>, ServerName<'static>)>,
    /// For name look-up and TCP together.
    pub connect_timeout: Duration,
    /// For the TLS handshake.
    pub tls_timeout: Duration,
}

impl Dialer {
    /// Opens a connection.
    ///
    /// # Errors
    /// Each step's failure with the host it was for.
    pub async fn dial(&self) -> Result<Stream, DialError> {
        let tcp = self.connect().await?;
        if let Err(error) = tune(&tcp) {
            tracing::debug!(%error, host = %self.host, "socket options not set");
        }
        let Some((config, name)) = &self.tls else {
            return Ok(Stream::Plain(tcp));
        };
        let handshake = TlsConnector::from(Arc::clone(config)).connect(name.clone(), tcp);
        match tokio::time::timeout(self.tls_timeout, handshake).await {
            Ok(Ok(tls)) => Ok(Stream::Tls(Box::new(tls.into()))),
            Ok(Err(source)) => Err(DialError::Tls {
                host: self.host.clone(),
                source,
            }),
            Err(_) => Err(DialError::TlsTimeout {
                host: self.host.clone(),
                limit: self.tls_timeout,
            }),
        }
    }

    async fn connect(&self) -> Result<TcpStream, DialError> {
        let late = || DialError::ConnectTimeout {
            host: self.host.clone(),
            limit: self.connect_timeout,
        };
        let deadline = Instant::now() + self.connect_timeout;
        let addresses = timeout_at(deadline, self.addresses())
            .await
            .map_err(|_| late())?
            .map_err(|source| DialError::Resolve {
                host: self.host.clone(),
                source,
            })?;
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        let count = addresses.len();
        for (index, address) in addresses.into_iter().enumerate() {
            // Each address gets its share of what is left, so that a dead first one leaves time for the others.
            let share = deadline.saturating_duration_since(Instant::now())
                / u32::try_from(count - index).unwrap_or(1);
            match tokio::time::timeout(share, TcpStream::connect(address)).await {
                Ok(Ok(tcp)) => return Ok(tcp),
                Ok(Err(error)) => last = error,
                Err(_) if index + 1 == count => return Err(late()),
                Err(_) => last = io::ErrorKind::TimedOut.into(),
            }
        }
        Err(DialError::Connect {
            host: self.host.clone(),
            source: last,
        })
    }

    async fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        if let Ok(ip) = self.host.name.trim_matches(['[', ']']).parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(ip, self.host.port)]);
        }
        Ok(
            tokio::net::lookup_host((self.host.name.as_str(), self.host.port))
                .await?
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails loudly")]

    use super::*;

    fn dialer(name: &str, port: u16) -> Dialer {
        Dialer {
            host: Host {
                name: name.to_owned(),
                port,
            },
            tls: None,
            connect_timeout: Duration::from_secs(5),
            tls_timeout: Duration::from_secs(5),
        }
    }

    #[tokio::test]
    async fn a_refused_connect_names_the_host() {
        let free = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let error = dialer("127.0.0.1", free).dial().await.unwrap_err();
        assert!(matches!(error, DialError::Connect { .. }), "{error:?}");
        assert_eq!(
            error.to_string(),
            format!("127.0.0.1:{free}: connect failed")
        );
    }

    #[tokio::test]
    async fn names_and_bracketed_addresses_are_dialled() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(dialer("localhost", port).dial().await.is_ok());
        assert!(matches!(
            dialer("[::1]", port).dial().await,
            Err(DialError::Connect { .. })
        ));
    }
}
