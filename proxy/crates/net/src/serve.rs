//! Drives one client connection: HTTP version, head deadline, drain.

use std::error::Error as StdError;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::drain::Drain;
use crate::pool::ExecuteOn;
use crate::stream::Stream;
use crate::tasks::Tasks;
use crate::watch::{ConnectionWatch, MAX_HEAD, Refusal, Watched};

/// HTTP versions a connection may speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepts {
    /// HTTP/1 only, or what ALPN chose.
    Negotiated,
    /// HTTP/1, or HTTP/2 when the client begins with its preface.
    PriorKnowledge,
}

/// How to serve.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// HTTP versions.
    pub accepts: Accepts,
    /// A client that closed its sending side only is still served.
    pub half_close: bool,
    /// From a head's first byte (for the first head: from the start of the connection) to its end.
    pub head_timeout: Duration,
    /// The whole answer that stands in for hyper's own bare refusals.
    pub refusal: Refusal,
}

/// How a connection ended.
#[derive(Debug)]
pub enum Ended {
    /// As HTTP says.
    Closed,
    /// A head took longer than allowed.
    HeadTimeout,
    /// By an error on either side.
    Failed(hyper::Error),
    /// Before HTTP began.
    Io(io::Error),
}

/// HTTP/2 streams at once on one client connection: idle event streams take one each.
const MAX_STREAMS: u32 = 1000;
/// Bytes of one request body that a client may send ahead of a slow upstream.
const STREAM_WINDOW: u32 = 512 * 1024;
/// The same for all streams of a connection.
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;

/// Serves `stream` until it ends.
pub async fn serve<S, B>(
    stream: Stream,
    watch: Arc<ConnectionWatch>,
    service: S,
    options: &ServeOptions,
    tasks: &Tasks,
    drain: &Drain,
) -> Ended
where
    S: Service<Request<Incoming>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<Box<dyn StdError + Send + Sync>>,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    let h2 = match options.accepts {
        Accepts::Negotiated => stream.negotiated_h2(),
        Accepts::PriorKnowledge => {
            match tokio::time::timeout(options.head_timeout, begins_with_preface(&stream)).await {
                Ok(Ok(h2)) => h2,
                Ok(Err(error)) => return Ended::Io(error),
                Err(_) => return Ended::HeadTimeout,
            }
        }
    };
    let io = TokioIo::new(Watched::new(
        stream,
        Arc::clone(&watch),
        !h2,
        options.refusal,
    ));
    if h2 {
        let connection = http2::Builder::new(ExecuteOn(tasks.clone()))
            .timer(TokioTimer::new())
            .auto_date_header(false)
            .max_concurrent_streams(MAX_STREAMS)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(u32::try_from(MAX_HEAD).unwrap_or(u32::MAX))
            .serve_connection(io, service);
        drive(
            connection,
            http2::Connection::graceful_shutdown,
            &watch,
            options,
            drain,
        )
        .await
    } else {
        let connection = http1::Builder::new()
            // No `header_read_timeout`: hyper's also closes connections that are merely idle between two requests, and
            // costs a timer for every request. `drive` keeps the deadline.
            .timer(TokioTimer::new())
            .header_read_timeout(None)
            .auto_date_header(false)
            .preserve_header_case(true)
            .half_close(options.half_close)
            .max_header_size(MAX_HEAD)
            .serve_connection(io, service);
        drive(
            connection,
            http1::Connection::graceful_shutdown,
            &watch,
            options,
            drain,
        )
        .await
    }
}

async fn drive<C>(
    connection: C,
    shut_down: fn(Pin<&mut C>),
    watch: &Arc<ConnectionWatch>,
    options: &ServeOptions,
    drain: &Drain,
) -> Ended
where
    C: Future<Output = hyper::Result<()>>,
{
    let mut connection = pin!(connection);
    let echo = Arc::new(Echo {
        watch: Arc::clone(watch),
        task: Mutex::new(Waker::noop().clone()),
    });
    let waker = Waker::from(Arc::clone(&echo));
    let mut begun = pin!(drain.wait());
    let mut registered = false;
    let mut draining = false;
    let mut deadline: Option<Pin<Box<Sleep>>> = None;
    poll_fn(move |cx| {
        if !draining {
            // Polled once to be woken; after that the flag is enough, and cheaper.
            let wait = !registered && begun.as_mut().poll(cx).is_ready();
            registered = true;
            if wait || drain.has_begun() {
                draining = true;
                shut_down(connection.as_mut());
            }
        }
        echo.forward_to(cx.waker());
        watch.set_polling(true);
        let polled = connection.as_mut().poll(&mut Context::from_waker(&waker));
        watch.set_polling(false);
        match polled {
            Poll::Ready(Ok(())) => return Poll::Ready(Ended::Closed),
            Poll::Ready(Err(error)) => return Poll::Ready(Ended::Failed(error)),
            Poll::Pending => {}
        }
        if !watch.head_pending() {
            deadline = None;
            return Poll::Pending;
        }
        let limit = options.head_timeout;
        let sleep = deadline.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + limit)));
        sleep.as_mut().poll(cx).map(|()| Ended::HeadTimeout)
    })
    .await
}

/// The waker given to hyper: wakes the connection's task, but not while that would be an echo of its own doing.
struct Echo {
    watch: Arc<ConnectionWatch>,
    task: Mutex<Waker>,
}

impl Echo {
    fn forward_to(&self, waker: &Waker) {
        self.task
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone_from(waker);
    }
}

impl Wake for Echo {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.watch.is_echo() {
            self.task
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .wake_by_ref();
        }
    }
}

/// Whether the client speaks HTTP/2 from the first byte. No HTTP/1 method begins like its preface.
async fn begins_with_preface(stream: &Stream) -> io::Result<bool> {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0";
    let mut start = [0; PREFACE.len()];
    loop {
        let n = stream.tcp().peek(&mut start).await?;
        let seen = start.get(..n).unwrap_or_default();
        if n == 0 || n == PREFACE.len() || !PREFACE.starts_with(seen) {
            return Ok(seen == PREFACE);
        }
        // Part of the preface: peeking does not consume, so the socket stays readable. Look again a little later.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
