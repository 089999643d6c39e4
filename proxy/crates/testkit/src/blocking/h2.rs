//! A client and an upstream for HTTP/2 and TLS, by hyper: frames and handshakes are not what these tests are about.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::http::{request, response};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio_rustls::{TlsAcceptor, TlsConnector};
use tokio_util::task::TaskTracker;

use crate::process::PATIENCE;

/// Largest body that is read.
const LARGEST_BODY: usize = 64 << 20;

/// A client connection.
#[derive(Debug)]
pub struct Client {
    runtime: Runtime,
    sender: Sender,
}

#[derive(Debug)]
enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// A response whose body comes frame by frame.
#[derive(Debug)]
pub struct Open<'a> {
    runtime: &'a Runtime,
    /// Status and fields.
    pub head: response::Parts,
    body: Incoming,
}

impl Client {
    /// HTTP/2 without TLS, by prior knowledge.
    ///
    /// # Errors
    /// No connection.
    pub fn h2c(address: SocketAddr) -> anyhow::Result<Self> {
        let runtime = runtime()?;
        let sender = runtime.block_on(async {
            let tcp = TcpStream::connect(address).await?;
            start_http2(tcp).await
        })?;
        Ok(Self { runtime, sender })
    }

    /// TLS; HTTP/2 when both sides agree on it by ALPN, else HTTP/1.1.
    ///
    /// # Errors
    /// No connection, or the handshake failed.
    pub fn tls(
        address: SocketAddr,
        name: &str,
        config: Arc<rustls::ClientConfig>,
    ) -> anyhow::Result<Self> {
        let runtime = runtime()?;
        let name = ServerName::try_from(name.to_owned())?;
        let sender = runtime.block_on(async {
            let tcp = TcpStream::connect(address).await?;
            let tls = TlsConnector::from(config).connect(name, tcp).await?;
            if tls.get_ref().1.alpn_protocol() == Some(b"h2") {
                start_http2(tls).await
            } else {
                let (sender, connection) = http1::handshake(TokioIo::new(tls)).await?;
                TaskTracker::new().spawn(async move { drop(connection.await) });
                Ok::<_, anyhow::Error>(Sender::Http1(sender))
            }
        })?;
        Ok(Self { runtime, sender })
    }

    /// Whether the connection speaks HTTP/2.
    pub fn is_http2(&self) -> bool {
        matches!(self.sender, Sender::Http2(_))
    }

    /// Sends a request and waits for the whole answer.
    ///
    /// # Errors
    /// There was none in time, or it broke off.
    pub fn ask(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> anyhow::Result<(response::Parts, String)> {
        let mut open = self.open(request)?;
        let mut text = Vec::new();
        while let Some(data) = open.data()? {
            text.extend_from_slice(&data);
            ensure!(text.len() <= LARGEST_BODY, "a body without end");
        }
        Ok((open.head, String::from_utf8(text)?))
    }

    /// Sends a request and waits for the answer's head.
    ///
    /// # Errors
    /// There was none in time.
    pub fn open(&mut self, request: Request<Full<Bytes>>) -> anyhow::Result<Open<'_>> {
        let Self { runtime, sender } = self;
        let answered = runtime.block_on(async {
            tokio::time::timeout(PATIENCE, async {
                match sender {
                    Sender::Http1(sender) => {
                        sender.ready().await?;
                        sender.send_request(request).await
                    }
                    Sender::Http2(sender) => {
                        sender.ready().await?;
                        sender.send_request(request).await
                    }
                }
            })
            .await
        });
        let (head, body) = answered.context("no answer in time")??.into_parts();
        Ok(Open {
            runtime,
            head,
            body,
        })
    }
}

impl Open<'_> {
    /// The next data of the body; none at its end.
    ///
    /// # Errors
    /// It broke off, or nothing came in time.
    pub fn data(&mut self) -> anyhow::Result<Option<Bytes>> {
        let body = &mut self.body;
        self.runtime.block_on(async {
            loop {
                match tokio::time::timeout(PATIENCE, body.frame()).await? {
                    Some(frame) => {
                        if let Ok(data) = frame?.into_data() {
                            return Ok(Some(data));
                        }
                    }
                    None => return Ok(None),
                }
            }
        })
    }
}

async fn start_http2<S>(stream: S) -> anyhow::Result<Sender>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    TaskTracker::new().spawn(async move { drop(connection.await) });
    Ok(Sender::Http2(sender))
}

/// What an [`Upstream`] was asked.
#[derive(Debug)]
pub struct Asked {
    /// Request line and fields.
    pub head: request::Parts,
    /// The whole body.
    pub body: Vec<u8>,
    /// Whether the client showed a certificate.
    pub certificate: bool,
}

type Script = dyn Fn(Asked) -> Response<Full<Bytes>> + Send + Sync;

/// A server for HTTP/1.1 and HTTP/2, with or without TLS, that answers by a function.
#[derive(Debug)]
pub struct Upstream {
    address: SocketAddr,
    /// Its tasks end with it.
    _runtime: Runtime,
}

impl Upstream {
    /// Listens on a free port.
    ///
    /// # Errors
    /// There is none.
    pub fn start(
        tls: Option<Arc<rustls::ServerConfig>>,
        script: impl Fn(Asked) -> Response<Full<Bytes>> + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = runtime()?;
        let script: Arc<Script> = Arc::new(script);
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let tasks = TaskTracker::new();
            loop {
                let (tcp, _) = listener.accept().await?;
                let (tls, script) = (tls.clone(), Arc::clone(&script));
                // A connection that fails shows in what the test waits for.
                tasks.spawn(async move { drop(connection(tcp, tls, script).await) });
            }
            #[expect(unreachable_code, reason = "names the error type of the task")]
            Ok::<(), std::io::Error>(())
        });
        Ok(Self {
            address,
            _runtime: runtime,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

async fn connection(
    tcp: TcpStream,
    tls: Option<Arc<rustls::ServerConfig>>,
    script: Arc<Script>,
) -> anyhow::Result<()> {
    let Some(tls) = tls else {
        return serve(tcp, false, script).await;
    };
    let tls = TlsAcceptor::from(tls).accept(tcp).await?;
    let certificate = tls.get_ref().1.peer_certificates().is_some();
    serve(tls, certificate, script).await
}

async fn serve<S>(stream: S, certificate: bool, script: Arc<Script>) -> anyhow::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let script = Arc::clone(&script);
        async move {
            let (head, mut incoming) = request.into_parts();
            let mut body = Vec::new();
            while let Some(frame) = incoming.frame().await {
                if let Ok(data) = frame?.into_data() {
                    body.extend_from_slice(&data);
                }
                if body.len() > LARGEST_BODY {
                    bail!("a body without end");
                }
            }
            Ok::<_, anyhow::Error>(script(Asked {
                head,
                body,
                certificate,
            }))
        }
    });
    auto::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), service)
        .await
        .map_err(|error| anyhow::anyhow!(error))
}

fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
}
