//! One exchange's books: which of its events were offered, in which order, and that its end is offered once.
//!
//! Shared by the two bodies. Events that come in one breath are offered together: head, only chunk and end of a small
//! message cost one slot of the queue. Nothing is held back beyond the frame it belongs to.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use bytes::Bytes;
use callbox_net::Drain;
use uuid::Uuid;

use crate::clock;
use crate::tap::{BodyEnd, Event, Events, RequestHead, ResponseHead, Side, Tap};

/// Frames smaller than this are copied for the observer: a slice would pin the connection's whole read buffer, and the
/// connection would have to get a new one for each answer. Copying this much costs less than that.
const COPY_BELOW: usize = 16 * 1024;

const ADMITTED: u8 = 1;
const REFUSED: u8 = 2;
const REQUEST_DONE: u8 = 4;
const ENDED: u8 = 8;
const REQUEST_LOST: u8 = 16;
const RESPONSE_LOST: u8 = 32;
const TOO_LARGE: u8 = 64;
const CLIENT_GONE: u8 = 128;

/// The books of one exchange.
#[derive(Debug)]
pub(crate) struct Exchange {
    id: Uuid,
    tap: Tap,
    drain: Drain,
    state: AtomicU8,
    /// Heads not offered yet: they wait for their first chunk.
    heads: Mutex<Heads>,
}

#[derive(Debug, Default)]
struct Heads {
    request: Option<Box<RequestHead>>,
    response: Option<Box<ResponseHead>>,
    /// Who waits for the end of the request's body.
    waiting: Option<Waker>,
}

impl Exchange {
    pub(crate) fn new(id: Uuid, tap: Tap, drain: Drain, head: Box<RequestHead>) -> Self {
        let heads = Heads {
            request: Some(head),
            ..Heads::default()
        };
        Self {
            id,
            tap,
            drain,
            state: AtomicU8::new(0),
            heads: Mutex::new(heads),
        }
    }

    /// Whether callbox stops, and how far that is.
    pub(crate) fn drain(&self) -> &Drain {
        &self.drain
    }

    /// Nobody goes on with it: the client left, or the drain's deadline passed.
    pub(crate) fn abandon(&self) {
        self.end(
            None,
            if self.drain.has_expired() {
                BodyEnd::Timeout
            } else {
                BodyEnd::Cancelled
            },
        );
    }

    /// The tap it is offered to.
    pub(crate) fn tap(&self) -> &Tap {
        &self.tap
    }

    /// Part of the request's body, its end, or both. With neither, a head that still waits is offered.
    pub(crate) fn request(&self, chunk: Option<&Bytes>, end: Option<BodyEnd>) {
        if self.is(ENDED) {
            return;
        }
        let id = self.id;
        let head = self
            .heads()
            .request
            .take()
            .map(|head| Event::Request(id, head));
        if head.is_some() || !self.is(REFUSED) {
            let chunk = chunk.map(|chunk| Event::RequestChunk(id, copy(chunk)));
            let end = end.map(|end| Event::RequestEnd(id, end));
            self.offer(Side::Request, head, chunk, end);
        }
        if end.is_some() {
            self.set(REQUEST_DONE);
            let waiting = self.heads().waiting.take();
            if let Some(waiting) = waiting {
                waiting.wake();
            }
        }
    }

    /// The response's head. It is offered with what comes next of the response.
    pub(crate) fn response(&self, head: Box<ResponseHead>) {
        // The request's head is first in any case.
        if self.is_head_waiting() {
            self.request(None, None);
        }
        self.heads().response = Some(head);
    }

    /// Part of the response's body. With nothing, a head that still waits is offered.
    pub(crate) fn response_chunk(&self, chunk: Option<&Bytes>) {
        if self.is(ENDED | REFUSED) {
            return;
        }
        let head = self
            .heads()
            .response
            .take()
            .map(|head| Event::Response(self.id, head));
        let chunk = chunk.map(|chunk| Event::ResponseChunk(self.id, clock::now(), copy(chunk)));
        self.offer(Side::Response, head, chunk, None);
    }

    /// The exchange ended, with its last chunk if it came with one. What comes after the first call is ignored.
    pub(crate) fn end(&self, chunk: Option<&Bytes>, end: BodyEnd) {
        if self.is(ENDED) {
            return;
        }
        if self.is_head_waiting() {
            self.request(None, None);
        }
        self.set(ENDED);
        if self.is(REFUSED) {
            return;
        }
        let head = self
            .heads()
            .response
            .take()
            .map(|head| Event::Response(self.id, head));
        let at = clock::now();
        let chunk = chunk.map(|chunk| Event::ResponseChunk(self.id, at, copy(chunk)));
        let gap = || Event::Lost(self.id, Side::Response);
        // A gap is told of before what follows it. A head is never lost and still waiting at once.
        let last = if self.is(RESPONSE_LOST) {
            [Some(gap()), chunk]
        } else {
            [head, chunk]
        };
        self.tap.end(last, gap(), Event::End(self.id, at, end));
    }

    /// Asks the observer to say when all that was offered is committed. None: it will not say.
    pub(crate) fn flush(&self) -> Option<tokio::sync::oneshot::Receiver<()>> {
        if self.is(REFUSED) {
            return None;
        }
        let (sender, receiver) = tokio::sync::oneshot::channel();
        if !self.tap.offer(Events::One(Event::Flush(self.id, sender))) {
            return None;
        }
        self.tap.hurry();
        Some(receiver)
    }

    /// Whether the request's body is over, in whatever way.
    pub(crate) fn request_done(&self) -> bool {
        self.is(REQUEST_DONE)
    }

    /// The same, and wakes the caller when it is.
    pub(crate) fn poll_request_done(&self, cx: &mut Context<'_>) -> bool {
        if !self.is(REQUEST_DONE) {
            self.heads().waiting = Some(cx.waker().clone());
        }
        self.is(REQUEST_DONE)
    }

    /// The request's body went over the limit.
    pub(crate) fn mark_too_large(&self) {
        self.set(TOO_LARGE);
    }

    /// Whether it did.
    pub(crate) fn too_large(&self) -> bool {
        self.is(TOO_LARGE)
    }

    /// The client broke off in the middle of the request's body.
    pub(crate) fn mark_client_gone(&self) {
        self.set(CLIENT_GONE);
    }

    /// Whether it did.
    pub(crate) fn client_gone(&self) -> bool {
        self.is(CLIENT_GONE)
    }

    fn offer(&self, side: Side, head: Option<Event>, chunk: Option<Event>, end: Option<Event>) {
        let lost = match side {
            Side::Request => REQUEST_LOST,
            Side::Response => RESPONSE_LOST,
        };
        let begins = side == Side::Request && head.is_some();
        let gap = self.is(lost).then_some(Event::Lost(self.id, side));
        let events = match (head.or(gap), chunk, end) {
            (None, None, None) => return,
            (Some(one), None, None) | (None, Some(one), None) | (None, None, Some(one)) => {
                Events::One(one)
            }
            (Some(one), Some(two), None)
            | (Some(one), None, Some(two))
            | (None, Some(one), Some(two)) => Events::Two([one, two]),
            (Some(one), Some(two), Some(three)) => Events::Three([one, two, three]),
        };
        if begins {
            self.set(if self.tap.begin(events) {
                ADMITTED
            } else {
                REFUSED
            });
        } else if self.tap.offer(events) {
            self.clear(lost);
        } else {
            self.set(lost);
        }
    }

    fn is_head_waiting(&self) -> bool {
        !self.is(ADMITTED | REFUSED)
    }

    fn heads(&self) -> MutexGuard<'_, Heads> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is(&self, flag: u8) -> bool {
        self.state.load(Relaxed) & flag != 0
    }

    fn set(&self, flag: u8) {
        self.state.fetch_or(flag, Relaxed);
    }

    fn clear(&self, flag: u8) {
        if self.is(flag) {
            self.state.fetch_and(!flag, Relaxed);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        // The bodies end it; this is for an exchange that never got that far.
        self.abandon();
    }
}

fn copy(chunk: &Bytes) -> Bytes {
    if chunk.len() < COPY_BELOW {
        Bytes::copy_from_slice(chunk)
    } else {
        chunk.clone()
    }
}
