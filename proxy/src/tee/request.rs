//! The request's body, on its way to the upstream.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use callbox_net::ConnectionWatch;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::Sleep;

use super::BodyError;
use crate::exchange::Exchange;
use crate::tap::BodyEnd;

/// How long a body waits for the upstream's `100 Continue`. A server that knows nothing of it waits for the body, and
/// RFC 9110 10.1.1 tells the sender not to wait for ever; one second is what the common clients take.
const PATIENCE: Duration = Duration::from_secs(1);

/// Keeps a body back until the upstream asked for it.
///
/// hyper's server sends `100 Continue` when the body is first polled, so the client is asked exactly when the upstream
/// asks, and never when the upstream refuses by the head alone.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    open: AtomicBool,
    waiting: Mutex<Option<Waker>>,
}

impl Gate {
    /// The upstream wants the body.
    pub(crate) fn open(&self) {
        self.open.store(true, Relaxed);
        let waiting = self
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(waiting) = waiting {
            waiting.wake();
        }
    }

    fn is_open(&self, cx: &mut Context<'_>) -> bool {
        if !self.open.load(Relaxed) {
            *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = Some(cx.waker().clone());
        }
        self.open.load(Relaxed)
    }

    /// Whether the body was ever let through.
    pub(crate) fn was_opened(&self) -> bool {
        self.open.load(Relaxed)
    }
}

/// A request's body with its copy going to the tap.
#[derive(Debug)]
pub(crate) struct RequestTee {
    inner: Incoming,
    exchange: Arc<Exchange>,
    watch: Arc<ConnectionWatch>,
    gate: Option<Arc<Gate>>,
    /// How long the gate may stay shut; runs from the first time somebody stands before it.
    patience: Option<Pin<Box<Sleep>>>,
    /// Bytes the limit still allows.
    left: u64,
    ended: bool,
}

impl RequestTee {
    pub(crate) fn new(
        inner: Incoming,
        exchange: Arc<Exchange>,
        watch: Arc<ConnectionWatch>,
        gate: Option<Arc<Gate>>,
        limit: Option<u64>,
    ) -> Self {
        let ended = inner.is_end_stream();
        if ended {
            exchange.request(None, Some(BodyEnd::Complete));
        }
        Self {
            inner,
            exchange,
            watch,
            gate,
            patience: None,
            left: limit.unwrap_or(u64::MAX),
            ended,
        }
    }

    fn end(&mut self, chunk: Option<&Bytes>, end: BodyEnd) {
        if !self.ended {
            self.ended = true;
            self.exchange.request(chunk, Some(end));
        }
    }

    fn poll_gate(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(gate) = &self.gate else {
            return Poll::Ready(());
        };
        if !gate.is_open(cx) {
            let patience = self
                .patience
                .get_or_insert_with(|| Box::pin(tokio::time::sleep(PATIENCE)));
            if patience.as_mut().poll(cx).is_pending() {
                // The head is not kept from the record while the body waits.
                self.exchange.request(None, None);
                return Poll::Pending;
            }
            gate.open();
        }
        (self.gate, self.patience) = (None, None);
        Poll::Ready(())
    }
}

impl Body for RequestTee {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        std::task::ready!(this.poll_gate(cx));
        let inner = &mut this.inner;
        let (polled, echo) = this
            .watch
            .without_echo(|| Pin::new(&mut *inner).poll_frame(cx));
        if echo && !inner.is_end_stream() {
            // There is more to come, and the task that reads it from the client is the one that was not woken.
            cx.waker().wake_by_ref();
        }
        let frame = match polled {
            Poll::Ready(Some(Ok(frame))) => frame,
            Poll::Ready(Some(Err(error))) => {
                this.exchange.mark_client_gone();
                this.end(None, BodyEnd::Error);
                return Poll::Ready(Some(Err(BodyError::Client(error))));
            }
            Poll::Ready(None) => {
                this.end(None, BodyEnd::Complete);
                return Poll::Ready(None);
            }
            Poll::Pending => {
                this.exchange.request(None, None);
                return Poll::Pending;
            }
        };
        this.watch.body_taken();
        if let Some(chunk) = frame.data_ref() {
            let size = chunk.len() as u64;
            if size > this.left {
                this.exchange.mark_too_large();
                this.end(None, BodyEnd::Cancelled);
                return Poll::Ready(Some(Err(BodyError::TooLarge)));
            }
            this.left -= size;
            if this.inner.is_end_stream() {
                this.end(Some(chunk), BodyEnd::Complete);
            } else {
                this.exchange.request(Some(chunk), None);
            }
        } else {
            // Trailers: hyper does not ask for more after them.
            this.end(None, BodyEnd::Complete);
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for RequestTee {
    fn drop(&mut self) {
        self.end(None, BodyEnd::Cancelled);
    }
}
