//! Upstream connections of one worker.
//!
//! HTTP/1 connections wait in a last-in-first-out list and are driven by the task that borrows them, so that a request
//! and its answer need no hand-over between tasks. HTTP/2 connections are shared and driven by tasks of their own.
//! A request is given to a second connection only when hyper hands it back unwritten; what may have been written in
//! part is never sent again.

mod fit;

use std::error::Error as StdError;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Version};
use http_body::Body;
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::time::Instant;

use crate::dial::{DialError, Dialer};
use crate::stream::Stream;
use crate::tasks::Tasks;

/// HTTP version towards an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/2 where TLS offers it, else HTTP/1.
    Auto,
    /// HTTP/1 only.
    Http1,
    /// HTTP/2 only.
    Http2,
}

/// What the pool may hold.
#[derive(Clone, Copy, Debug)]
pub struct PoolLimits {
    /// Idle HTTP/1 connections kept.
    pub max_idle: usize,
    /// Idle connections older than this are closed.
    pub idle_timeout: Duration,
}

/// Streams put on one HTTP/2 connection before another is opened; every server must allow this many or says so by
/// making the surplus wait, which a tool call must not.
const STREAMS_PER_CONNECTION: usize = 100;
/// Bytes of one answer that an upstream may send ahead of a slow client.
const STREAM_WINDOW: u32 = 1024 * 1024;
/// The same for all streams of a connection.
const CONNECTION_WINDOW: u32 = 16 * 1024 * 1024;

/// hyper's executor interface on our tracked spawner.
#[derive(Clone, Debug)]
pub struct ExecuteOn(pub Tasks);

impl<F> hyper::rt::Executor<F> for ExecuteOn
where
    F: Future + Send + 'static,
{
    fn execute(&self, task: F) {
        self.0.spawn("http2", async move {
            drop(task.await);
        });
    }
}

/// What goes to an upstream as a request's body.
pub trait RequestBody:
    Body<Data = Bytes, Error: Into<Box<dyn StdError + Send + Sync>>> + Send + Unpin + 'static
{
}
impl<B> RequestBody for B where
    B: Body<Data = Bytes, Error: Into<Box<dyn StdError + Send + Sync>>> + Send + Unpin + 'static
{
}

struct Http1<B: RequestBody> {
    sender: http1::SendRequest<B>,
    connection: http1::Connection<TokioIo<Stream>, B>,
    /// When it became idle, on the pool's coarse clock.
    since: u64,
}

struct Http2<B> {
    sender: http2::SendRequest<B>,
    streams: Arc<AtomicUsize>,
    since: u64,
}

/// Why a request got no answer.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// No connection.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// The connection broke before the answer's head.
    #[error("{host}: lost before the answer's head")]
    Lost {
        /// The upstream.
        host: crate::dial::Host,
        /// hyper's words.
        source: hyper::Error,
    },
}

/// Upstream connections of one worker to one upstream.
pub struct Pool<B: RequestBody> {
    dialer: Dialer,
    protocol: Protocol,
    limits: PoolLimits,
    tasks: Tasks,
    #[expect(
        clippy::vec_box,
        reason = "a connection is large and is moved between here and its borrower"
    )]
    idle: Mutex<Vec<Box<Http1<B>>>>,
    shared: Mutex<Vec<Http2<B>>>,
    /// One dial at a time while HTTP/2 is possible: the others wait for the shared connection.
    dialing: tokio::sync::Mutex<()>,
    /// TLS chose HTTP/1 last time.
    http1_seen: AtomicBool,
    /// Milliseconds since `started`, as of the last sweep: idle times need no clock of their own.
    coarse: AtomicU64,
    started: Instant,
}

impl<B: RequestBody> fmt::Debug for Pool<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("host", &self.dialer.host)
            .field("protocol", &self.protocol)
            .finish_non_exhaustive()
    }
}

impl<B: RequestBody> Pool<B> {
    /// An empty pool. Its connections' tasks are spawned on `tasks`.
    pub fn new(dialer: Dialer, protocol: Protocol, limits: PoolLimits, tasks: Tasks) -> Self {
        Self {
            dialer,
            protocol,
            limits,
            tasks,
            idle: Mutex::default(),
            shared: Mutex::default(),
            dialing: tokio::sync::Mutex::default(),
            http1_seen: AtomicBool::new(protocol == Protocol::Http1),
            coarse: AtomicU64::new(0),
            started: Instant::now(),
        }
    }

    /// How often [`Pool::sweep`] wants to be called.
    pub fn sweep_every(&self) -> Duration {
        (self.limits.idle_timeout / 4).clamp(Duration::from_millis(20), Duration::from_secs(1))
    }

    /// Closes connections that are idle for too long or that the upstream closed.
    pub fn sweep(&self) {
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.coarse.store(now, Relaxed);
        let limit = u64::try_from(self.limits.idle_timeout.as_millis()).unwrap_or(u64::MAX);
        let kept = |since: u64| now.saturating_sub(since) < limit;
        lock(&self.idle).retain_mut(|connection| {
            kept(connection.since)
                && connection
                    .poll(&mut Context::from_waker(Waker::noop()))
                    .is_pending()
        });
        lock(&self.shared).retain_mut(|connection| {
            if connection.streams.load(Relaxed) > 0 {
                connection.since = now;
            }
            !connection.sender.is_closed() && kept(connection.since)
        });
    }

    /// Whether requests go out as HTTP/1, as far as known.
    pub fn speaks_http1(&self) -> bool {
        self.http1_seen.load(Relaxed)
    }

    /// Idle HTTP/1 connections.
    pub fn idle(&self) -> usize {
        lock(&self.idle).len()
    }

    /// Closes every idle connection.
    pub fn clear(&self) {
        lock(&self.idle).clear();
        lock(&self.shared).clear();
    }

    /// Sends `request` and waits for the answer's head.
    ///
    /// # Errors
    /// No connection, or the connection broke.
    pub async fn send(
        self: &Arc<Self>,
        request: &mut Option<Request<B>>,
    ) -> Result<(Response<Incoming>, Channel<B>), SendError> {
        loop {
            let (mut channel, reused) = match self.take() {
                Some(channel) => (channel, true),
                None => (self.open().await?, false),
            };
            let mut sending = request
                .take()
                .expect("invariant: the request is here until a connection takes it");
            let sent = match &mut channel {
                Channel::Http1(lease) => {
                    fit::http1(&mut sending);
                    lease.send(sending).await
                }
                Channel::Http2(lease) => {
                    let host = self.dialer.host.to_string();
                    fit::http2(&mut sending, self.dialer.tls.is_some(), &host);
                    lease.sender.try_send_request(sending).await
                }
                Channel::Detached => {
                    unreachable!("invariant: a channel is detached only after its answer's head")
                }
            };
            match sent {
                Ok(response) => {
                    if let Channel::Http1(lease) = &mut channel {
                        // An HTTP/1.0 server's connection would make hyper speak 1.0 for the next request, and a 1.0
                        // request cannot carry a chunked body.
                        lease.reusable = response.version() == Version::HTTP_11;
                    }
                    return Ok((response, channel));
                }
                Err(mut error) => match error.take_message() {
                    // Nothing was written: the connection had ended while it was idle. The next one.
                    Some(unsent) if reused => *request = Some(unsent),
                    _ => {
                        return Err(SendError::Lost {
                            host: self.dialer.host.clone(),
                            source: error.into_error(),
                        });
                    }
                },
            }
        }
    }

    fn take(self: &Arc<Self>) -> Option<Channel<B>> {
        if self.protocol != Protocol::Http1
            && let Some(lease) = self.take_shared()
        {
            return Some(Channel::Http2(lease));
        }
        let inner = lock(&self.idle).pop()?;
        Some(Channel::Http1(Http1Lease {
            inner: Some(inner),
            pool: Arc::clone(self),
            reusable: true,
        }))
    }

    fn take_shared(&self) -> Option<Http2Lease<B>> {
        let shared = lock(&self.shared);
        let found = shared.iter().find(|http2| {
            !http2.sender.is_closed() && http2.streams.load(Relaxed) < STREAMS_PER_CONNECTION
        })?;
        Some(Http2Lease::new(
            found.sender.clone(),
            Arc::clone(&found.streams),
        ))
    }

    async fn open(self: &Arc<Self>) -> Result<Channel<B>, DialError> {
        if self.http1_seen.load(Relaxed) {
            return self.open_unguarded().await;
        }
        let _one_at_a_time = self.dialing.lock().await;
        match self.take_shared() {
            Some(lease) => Ok(Channel::Http2(lease)),
            None => self.open_unguarded().await,
        }
    }

    async fn open_unguarded(self: &Arc<Self>) -> Result<Channel<B>, DialError> {
        let host = || self.dialer.host.clone();
        let stream = self.dialer.dial().await?;
        let h2 = match self.protocol {
            Protocol::Http1 => false,
            Protocol::Auto => stream.negotiated_h2(),
            Protocol::Http2 if self.dialer.tls.is_some() && !stream.negotiated_h2() => {
                return Err(DialError::Http2 {
                    host: host(),
                    source: None,
                });
            }
            Protocol::Http2 => true,
        };
        self.http1_seen.store(!h2, Relaxed);
        let io = TokioIo::new(stream);
        if !h2 {
            let (sender, connection) = http1::Builder::new()
                .preserve_header_case(true)
                .handshake(io)
                .await
                .map_err(|source| DialError::Http1 {
                    host: host(),
                    source,
                })?;
            let inner = Box::new(Http1 {
                sender,
                connection,
                since: 0,
            });
            return Ok(Channel::Http1(Http1Lease {
                inner: Some(inner),
                pool: Arc::clone(self),
                reusable: true,
            }));
        }
        let (sender, connection) = http2::Builder::new(ExecuteOn(self.tasks.clone()))
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .handshake(io)
            .await
            .map_err(|source| DialError::Http2 {
                host: host(),
                source: Some(source),
            })?;
        self.tasks.spawn("upstream", async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "upstream connection ended");
            }
        });
        let streams = Arc::new(AtomicUsize::new(0));
        let since = self.coarse.load(Relaxed);
        lock(&self.shared).push(Http2 {
            sender: sender.clone(),
            streams: Arc::clone(&streams),
            since,
        });
        Ok(Channel::Http2(Http2Lease::new(sender, streams)))
    }
}

/// A connection in use by one exchange.
#[derive(Debug)]
pub enum Channel<B: RequestBody> {
    /// Borrowed whole, and driven by the borrower.
    Http1(Http1Lease<B>),
    /// Shared; kept so that the connection's streams can be counted.
    Http2(Http2Lease<B>),
    /// Driven by a task of its own until the exchange is over.
    Detached,
}

/// A borrowed HTTP/1 connection. Dropping it closes the connection.
pub struct Http1Lease<B: RequestBody> {
    /// None once the connection ended.
    inner: Option<Box<Http1<B>>>,
    pool: Arc<Pool<B>>,
    reusable: bool,
}

impl<B: RequestBody> fmt::Debug for Http1Lease<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http1Lease")
            .field("open", &self.inner.is_some())
            .finish_non_exhaustive()
    }
}

impl<B: RequestBody> Http1<B> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.connection).poll(cx).map(|ended| {
            if let Err(error) = ended {
                tracing::debug!(%error, "upstream connection ended");
            }
        })
    }
}

impl<B: RequestBody> Http1Lease<B> {
    /// Lets the connection read and write. What it has for its borrower it has after this returns.
    pub fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(inner) = &mut self.inner
            && inner.poll(cx).is_ready()
        {
            // Dropped at once: a request still queued in it comes back to the sender.
            self.inner = None;
        }
    }

    /// Whether the connection is still there.
    pub fn is_open(&self) -> bool {
        self.inner.is_some()
    }

    async fn send(
        &mut self,
        request: Request<B>,
    ) -> Result<Response<Incoming>, TrySendError<Request<B>>> {
        let answer = self
            .inner
            .as_mut()
            .expect("a lease starts with its connection")
            .sender
            .try_send_request(request);
        let mut answer = pin!(answer);
        poll_fn(|cx| {
            self.drive(cx);
            // Only `drive` can resolve it, so it needs no waker of its own ...
            let polled = answer
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()));
            if polled.is_pending() && !tokio::task::coop::has_budget_remaining() {
                // ... but for the one case where the runtime, not the answer, makes it wait.
                cx.waker().wake_by_ref();
            }
            polled
        })
        .await
    }

    /// Gives the connection back after a complete answer. One that is not ready for another request is closed.
    pub fn release(mut self) {
        let Some(mut inner) = self.inner.take() else {
            return;
        };
        if !self.reusable || !inner.sender.is_ready() {
            return;
        }
        inner.since = self.pool.coarse.load(Relaxed);
        let mut idle = lock(&self.pool.idle);
        if idle.len() < self.pool.limits.max_idle {
            idle.push(inner);
        }
    }

    /// Lets a task of its own drive the connection from now on, for exchanges whose two directions go on at once.
    pub fn detach(mut self) {
        if let Some(inner) = self.inner.take() {
            let Http1 {
                connection, sender, ..
            } = *inner;
            // Without the sender the connection ends with this exchange.
            drop(sender);
            self.pool.tasks.spawn("upstream", async move {
                if let Err(error) = connection.await {
                    tracing::debug!(%error, "upstream connection ended");
                }
            });
        }
    }
}

/// One stream's share of an HTTP/2 connection.
pub struct Http2Lease<B> {
    sender: http2::SendRequest<B>,
    streams: Arc<AtomicUsize>,
}

impl<B> Http2Lease<B> {
    fn new(sender: http2::SendRequest<B>, streams: Arc<AtomicUsize>) -> Self {
        streams.fetch_add(1, Relaxed);
        Self { sender, streams }
    }
}

impl<B> Drop for Http2Lease<B> {
    fn drop(&mut self) {
        self.streams.fetch_sub(1, Relaxed);
    }
}

impl<B> fmt::Debug for Http2Lease<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http2Lease").finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
