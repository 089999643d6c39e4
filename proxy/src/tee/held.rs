//! `durability = "before-response"`: no part of an answer goes on before its record is committed.
//!
//! Of an event stream each frame is held, since any may carry the answer. Of another body only the last frame is,
//! because without it the answer is not whole: one frame is kept back until it is known whether it is the last.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::oneshot;
use tokio::time::Sleep;

use super::{BodyError, ResponseTee};
use crate::exchange::Exchange;

/// Waits for the commit of all that was offered of an exchange, but not for ever.
#[derive(Debug)]
pub(crate) struct Commit {
    answer: oneshot::Receiver<()>,
    late: Pin<Box<Sleep>>,
}

impl Commit {
    /// None when nobody will answer.
    pub(crate) fn of(exchange: &Exchange, limit: Duration) -> Option<Self> {
        Some(Self {
            answer: exchange.flush()?,
            late: Box::pin(tokio::time::sleep(limit)),
        })
    }

    /// Resolves when committed, given up, or late (which is counted).
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, exchange: &Exchange) -> Poll<()> {
        if Pin::new(&mut self.answer).poll(cx).is_ready() {
            return Poll::Ready(());
        }
        ready!(self.late.as_mut().poll(cx));
        exchange.tap().count_late();
        Poll::Ready(())
    }
}

/// A body whose parts wait for their record.
#[derive(Debug)]
pub(crate) struct HeldBody {
    tee: ResponseTee,
    limit: Duration,
    /// Each frame waits, not only the last.
    every_frame: bool,
    /// Frames that passed the tee and not the hold: at most two.
    held: VecDeque<Frame<Bytes>>,
    commit: Option<Commit>,
    /// The frame at the front was committed.
    free: bool,
    broken: Option<Broken>,
}

/// A break, and whether hyper was given the time to write what came before it.
#[derive(Debug)]
struct Broken {
    error: BodyError,
    yielded: bool,
}

impl HeldBody {
    pub(crate) fn new(tee: ResponseTee, limit: Duration, every_frame: bool) -> Self {
        Self {
            tee,
            limit,
            every_frame,
            held: VecDeque::new(),
            commit: None,
            free: false,
            broken: None,
        }
    }
}

impl Body for HeldBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        loop {
            if let Some(mut broken) = this.broken.take() {
                if broken.yielded && !this.tee.write_blocked() {
                    return Poll::Ready(Some(Err(broken.error)));
                }
                if !broken.yielded {
                    broken.yielded = true;
                    cx.waker().wake_by_ref();
                }
                this.broken = Some(broken);
                return Poll::Pending;
            }
            if let Some(commit) = &mut this.commit {
                ready!(commit.poll(cx, this.tee.exchange()));
                this.commit = None;
                this.free = true;
            }
            if this.free || this.held.len() > 1 {
                this.free = false;
                return Poll::Ready(this.held.pop_front().map(Ok));
            }
            if this.tee.has_ended() && this.held.is_empty() {
                return Poll::Ready(None);
            }
            if !this.tee.has_ended() {
                match ready!(Pin::new(&mut this.tee).poll_frame(cx)) {
                    Some(Ok(frame)) => this.held.push_back(frame),
                    Some(Err(error)) => {
                        // What came whole goes out before the break.
                        let yielded = this.held.is_empty();
                        this.broken = Some(Broken { error, yielded });
                        if let Some(frame) = this.held.pop_front() {
                            return Poll::Ready(Some(Ok(frame)));
                        }
                        continue;
                    }
                    None => {}
                }
            }
            if this.tee.has_ended() || this.every_frame {
                match Commit::of(this.tee.exchange(), this.limit) {
                    commit @ Some(_) => this.commit = commit,
                    None => this.free = true,
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.held.is_empty() && self.tee.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        // Asked before the first frame only, when nothing is held yet.
        self.tee.size_hint()
    }
}
