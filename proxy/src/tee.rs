//! The two bodies of an exchange: each forwards frame by frame and offers a copy of what passed.
//!
//! Framing stays what it was: length and end are the inner body's own. A body ends in the record exactly once, also
//! when it is dropped half-way.

mod held;
mod request;
mod response;

pub(crate) use held::{Commit, HeldBody};
pub(crate) use request::{Gate, RequestTee};
pub(crate) use response::{ResponseTee, Upstreamed};

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// Why a body broke off. hyper turns it into a reset or a short body; the text is for the log.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("the client's body broke off")]
    Client(#[source] hyper::Error),
    #[error("the upstream's body broke off")]
    Upstream(#[source] hyper::Error),
    #[error("the request's body is over the limit")]
    TooLarge,
    #[error("callbox stops")]
    Draining,
}

/// The body of an answer.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The upstream's, passed on as it comes.
    Passed(ResponseTee),
    /// The upstream's, each part held back until its record is committed.
    Held(Box<HeldBody>),
    /// Callbox's own words.
    Own(Option<Bytes>),
}

impl Body for Answer {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut *self {
            Self::Passed(tee) => Pin::new(tee).poll_frame(cx),
            Self::Held(held) => Pin::new(&mut **held).poll_frame(cx),
            Self::Own(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Passed(tee) => tee.is_end_stream(),
            Self::Held(held) => held.is_end_stream(),
            Self::Own(text) => text.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Passed(tee) => tee.size_hint(),
            Self::Held(held) => held.size_hint(),
            Self::Own(text) => {
                SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64))
            }
        }
    }
}
