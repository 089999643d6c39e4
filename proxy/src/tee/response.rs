//! The response's body, on its way to the client.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use callbox_net::{Channel, ConnectionWatch};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::{BodyError, RequestTee};
use crate::exchange::Exchange;
use crate::tap::BodyEnd;

/// An answer's body and the connection it comes from.
#[derive(Debug)]
pub(crate) struct Upstreamed {
    pub(crate) inner: Incoming,
    pub(crate) channel: Option<Channel<RequestTee>>,
}

impl Upstreamed {
    /// The next frame. An HTTP/1 connection is read from here, by the task that wants the frame.
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
        watch: &ConnectionWatch,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(Channel::Http1(lease)) = &mut self.channel else {
            return Pin::new(&mut self.inner).poll_frame(cx);
        };
        // Only `drive` can bring frames, so the body needs no waker of its own; and since it is driven again before
        // there is nothing more to give, it need not be told that a frame was taken.
        let inner = &mut self.inner;
        let mut take = || {
            let mut quiet = Context::from_waker(Waker::noop());
            watch
                .without_echo(|| Pin::new(&mut *inner).poll_frame(&mut quiet))
                .0
        };
        match take() {
            Poll::Pending => {
                lease.drive(cx);
                take()
            }
            ready @ Poll::Ready(_) => ready,
        }
    }

    /// The body is over and was whole: the connection may be used again.
    fn release(&mut self) {
        if let Some(Channel::Http1(lease)) = self.channel.take() {
            lease.release();
        }
    }
}

/// A response's body with its copy going to the tap.
#[derive(Debug)]
pub(crate) struct ResponseTee {
    body: Upstreamed,
    exchange: Arc<Exchange>,
    watch: Arc<ConnectionWatch>,
    /// For event streams that a stop ends at once.
    endless: Option<Endless>,
    /// The length that stands in the head of an answer without a body (HEAD, 204, 304, or a length of 0): hyper keeps
    /// the field, and its place, only when the body claims it, and then sends none.
    declared: Option<u64>,
    /// An answer that is delimited by the end of the connection: a break must be a reset.
    close_delimited: bool,
    /// Something was given (the head, to begin with) since the last time there was nothing to give.
    flowed: bool,
    /// The break, kept back until what came before it has left.
    broken: Option<BodyError>,
    ended: bool,
}

/// A stream that ends only when somebody leaves.
#[derive(Debug)]
struct Endless {
    stop: Pin<Box<WaitForCancellationFutureOwned>>,
    /// The last bytes, to tell whether an event is under way.
    last: [u8; 4],
}

impl ResponseTee {
    pub(crate) fn new(
        body: Upstreamed,
        exchange: Arc<Exchange>,
        watch: Arc<ConnectionWatch>,
        declared: Option<u64>,
    ) -> Self {
        let mut tee = Self {
            body,
            exchange,
            watch,
            endless: None,
            declared,
            close_delimited: false,
            flowed: true,
            broken: None,
            ended: false,
        };
        if tee.body.inner.is_end_stream() {
            tee.complete(None);
        }
        tee
    }

    /// Marks a stream that a stop ends at once.
    pub(crate) fn endless(mut self) -> Self {
        self.endless = Some(Endless {
            stop: Box::pin(self.exchange.drain().wait()),
            last: *b"\r\n\r\n",
        });
        self
    }

    /// Marks an answer whose end is the end of the connection.
    pub(crate) fn close_delimited(mut self) -> Self {
        self.close_delimited = true;
        self
    }

    /// Whether the last frame was given.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// The exchange's books.
    pub(crate) fn exchange(&self) -> &Exchange {
        &self.exchange
    }

    /// Whether bytes given to hyper have not left yet.
    pub(crate) fn write_blocked(&self) -> bool {
        self.watch.write_blocked()
    }

    fn end(&mut self, chunk: Option<&Bytes>, end: BodyEnd) {
        if !self.ended {
            self.ended = true;
            self.exchange.end(chunk, end);
            self.watch.exchange_ended();
        }
    }

    fn complete(&mut self, chunk: Option<&Bytes>) {
        self.body.release();
        if !self.exchange.request_done() {
            self.watch.linger_on_close();
        }
        self.end(chunk, BodyEnd::Complete);
    }

    fn fail(
        &mut self,
        error: BodyError,
        end: BodyEnd,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.close_delimited {
            self.watch.reset_on_close();
        }
        self.end(None, end);
        Poll::Ready(Some(Err(error)))
    }

    fn poll_stop(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Some(endless) = &mut self.endless else {
            return Poll::Pending;
        };
        if !self.exchange.drain().has_begun() && endless.stop.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        // Between two events the stream ends as if the server had closed it; within one it breaks.
        if matches!(
            &endless.last,
            [_, _, b'\n', b'\n'] | [_, _, b'\r', b'\r'] | b"\r\n\r\n"
        ) {
            self.end(None, BodyEnd::Timeout);
            return Poll::Ready(None);
        }
        self.fail(BodyError::Draining, BodyEnd::Timeout)
    }
}

impl Body for ResponseTee {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        if this.ended {
            return Poll::Ready(None);
        }
        if let Some(error) = this.broken.take() {
            if this.watch.write_blocked() {
                // Woken when the socket takes more.
                this.broken = Some(error);
                return Poll::Pending;
            }
            return this.fail(error, BodyEnd::Error);
        }
        let frame = match this.body.poll_frame(cx, &this.watch) {
            Poll::Ready(Some(Ok(frame))) => frame,
            Poll::Ready(Some(Err(error))) => {
                let error = BodyError::Upstream(error);
                if this.flowed || this.watch.write_blocked() {
                    // hyper drops what it has not written when a body fails. Let it write first.
                    this.broken = Some(error);
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                return this.fail(error, BodyEnd::Error);
            }
            Poll::Ready(None) => {
                this.complete(None);
                return Poll::Ready(None);
            }
            Poll::Pending => {
                this.flowed = false;
                // A head without a chunk in sight is not kept from the record.
                this.exchange.response_chunk(None);
                return this.poll_stop(cx);
            }
        };
        if let Some(chunk) = frame.data_ref() {
            this.flowed = true;
            if let Some(endless) = &mut this.endless {
                endless.saw(chunk);
            }
            if this.body.inner.is_end_stream() {
                this.complete(Some(chunk));
            } else {
                this.exchange.response_chunk(Some(chunk));
            }
        } else {
            // Trailers: hyper does not ask for more after them.
            this.complete(None);
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.declared.is_none() && self.body.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.declared {
            Some(length) => SizeHint::with_exact(length),
            None => self.body.inner.size_hint(),
        }
    }
}

impl Endless {
    fn saw(&mut self, chunk: &[u8]) {
        for byte in chunk
            .iter()
            .skip(chunk.len().saturating_sub(self.last.len()))
        {
            self.last.rotate_left(1);
            self.last[3] = *byte;
        }
    }
}

impl Drop for ResponseTee {
    fn drop(&mut self) {
        if !self.ended {
            self.exchange.abandon();
            self.watch.exchange_ended();
        }
    }
}
