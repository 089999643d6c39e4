//! What hyper does not tell: seen from just below it, on the bytes of one client connection.
//!
//! Three things hyper 1.x hides are needed above it: the raw head (it drops a Content-Length that stands beside a
//! Transfer-Encoding, which must be refused), the bare 4xx it writes by itself for what it cannot parse (which must
//! carry callbox's mark), and whether written bytes left (so that what arrived before a break still goes out). The
//! wrapper looks at bytes in passing and never changes what hyper reads.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use memchr::memmem;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::stream::Stream;

/// Longest request head; hyper refuses a longer one with 431.
pub(crate) const MAX_HEAD: usize = 128 * 1024;

/// Bytes kept from before the last read once they have been parsed: enough for pipelined requests to be looked up.
const KEEP: usize = 4096;

/// Hyper's own answers are head-only and end like this.
const BARE_END: &[u8] = b"content-length: 0\r\n\r\n";

const IDLE: u8 = 0;
const ANSWERING: u8 = 1;
const WRITTEN: u8 = 2;

/// State of one client connection, shared by the wrapper below hyper and the service above it.
///
/// All of it is used by one task only; the atomics are there because a task may be moved.
#[derive(Debug)]
pub struct ConnectionWatch {
    http1: AtomicBool,
    tail: Mutex<Vec<u8>>,
    /// Bytes in `tail` have been parsed since the last read.
    parsed: AtomicBool,
    /// A head has begun (or is awaited for the first time) and is not complete.
    head_pending: AtomicBool,
    in_flight: AtomicBool,
    phase: AtomicU8,
    blocked: AtomicBool,
    reset: AtomicBool,
    refused: AtomicU64,
    read: AtomicU64,
    written: AtomicU64,
}

impl Default for ConnectionWatch {
    fn default() -> Self {
        Self {
            http1: AtomicBool::new(true),
            tail: Mutex::default(),
            parsed: AtomicBool::new(false),
            head_pending: AtomicBool::new(true),
            in_flight: AtomicBool::new(false),
            phase: AtomicU8::new(IDLE),
            blocked: AtomicBool::new(false),
            reset: AtomicBool::new(false),
            refused: AtomicU64::new(0),
            read: AtomicU64::new(0),
            written: AtomicU64::new(0),
        }
    }
}

impl ConnectionWatch {
    /// A request head was parsed.
    pub fn exchange_began(&self) {
        self.head_pending.store(false, Relaxed);
        if self.http1.load(Relaxed) {
            self.parsed.store(true, Relaxed);
            self.in_flight.store(true, Relaxed);
            self.phase.store(IDLE, Relaxed);
        }
    }

    /// Part of a request's body was taken.
    pub fn body_taken(&self) {
        self.parsed.store(true, Relaxed);
    }

    /// The last frame of the response was given to hyper.
    pub fn exchange_ended(&self) {
        self.in_flight.store(false, Relaxed);
        self.phase.store(ANSWERING, Relaxed);
    }

    /// The connection is broken off: the client must see a reset, because a plain close would look like the regular
    /// end of a body that is delimited by the close.
    pub fn reset_on_close(&self) {
        self.reset.store(true, Relaxed);
    }

    /// Whether bytes given to hyper have not all reached the socket.
    pub fn write_blocked(&self) -> bool {
        self.blocked.load(Relaxed)
    }

    /// Whether a request head is under way, or the connection's first one is awaited.
    pub fn head_pending(&self) -> bool {
        self.head_pending.load(Relaxed)
    }

    /// Requests that hyper refused by itself.
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Bytes read and written so far, after decryption.
    pub fn bytes(&self) -> (u64, u64) {
        (self.read.load(Relaxed), self.written.load(Relaxed))
    }

    /// Whether the head just parsed, known to have a Transfer-Encoding, also has a Content-Length.
    ///
    /// Looks the head up in the raw bytes by its request line. When it is not there (pipelined far back behind another
    /// request's large body) the answer is yes: what cannot be checked is refused.
    pub fn has_content_length(&self, method: &str, target: &str) -> bool {
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let line = format!("{method} {target} HTTP/1.");
        let mut found = false;
        for start in memmem::find_iter(&tail, line.as_bytes()) {
            found = true;
            if head_has(tail.get(start..).unwrap_or_default(), b"content-length") {
                return true;
            }
        }
        !found
    }

    fn saw_read(&self, bytes: &[u8]) {
        self.read.fetch_add(bytes.len() as u64, Relaxed);
        if !self.http1.load(Relaxed) || bytes.is_empty() {
            return;
        }
        if !self.in_flight.load(Relaxed) {
            self.head_pending.store(true, Relaxed);
        }
        if self.phase.load(Relaxed) == WRITTEN {
            self.phase.store(IDLE, Relaxed);
        }
        let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let parsed = self.parsed.swap(false, Relaxed);
        let room = if parsed { KEEP } else { MAX_HEAD + KEEP };
        if tail.len() + bytes.len() > room {
            if parsed {
                tail.clear();
            } else {
                let surplus = (tail.len() + bytes.len() - room).min(tail.len());
                tail.drain(..surplus);
            }
        }
        let from = bytes.len().saturating_sub(MAX_HEAD + KEEP);
        tail.extend_from_slice(bytes.get(from..).unwrap_or_default());
    }

    fn saw_write(&self, asked: usize, result: &Poll<io::Result<usize>>) {
        let done = match result {
            Poll::Ready(Ok(n)) => {
                self.written.fetch_add(*n as u64, Relaxed);
                *n == asked
            }
            _ => false,
        };
        self.blocked.store(!done, Relaxed);
        if self.phase.load(Relaxed) == ANSWERING {
            self.phase.store(WRITTEN, Relaxed);
        }
    }

    /// The status of an answer hyper makes by itself, when these bytes are one.
    fn bare_refusal(&self, bytes: &[u8]) -> Option<u16> {
        if self.in_flight.load(Relaxed)
            || self.phase.load(Relaxed) != IDLE
            || !self.http1.load(Relaxed)
        {
            return None;
        }
        let status = bytes.strip_prefix(b"HTTP/1.1 ")?.get(..3)?;
        if status.first() != Some(&b'4') || !bytes.ends_with(BARE_END) {
            return None;
        }
        std::str::from_utf8(status).ok()?.parse().ok()
    }
}

/// Whether the header block that starts here names `name` (given in lower case).
fn head_has(head: &[u8], name: &[u8]) -> bool {
    head.split(|b| *b == b'\n')
        .skip(1)
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .take_while(|line| !line.is_empty())
        .any(|line| {
            line.get(..name.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(name))
                && line.get(name.len()) == Some(&b':')
        })
}

/// Makes the whole answer for a refusal of hyper's, given its status.
pub(crate) type Refusal = fn(u16) -> Vec<u8>;

/// A client connection that is watched.
#[derive(Debug)]
pub struct Watched {
    stream: Stream,
    watch: Arc<ConnectionWatch>,
    refusal: Refusal,
    /// The rest of an answer that stands in for hyper's own.
    standing_in: Vec<u8>,
}

impl Watched {
    pub(crate) fn new(
        stream: Stream,
        watch: Arc<ConnectionWatch>,
        http1: bool,
        refusal: Refusal,
    ) -> Self {
        watch.http1.store(http1, Relaxed);
        Self {
            stream,
            watch,
            refusal,
            standing_in: Vec::new(),
        }
    }

    fn poll_stand_in(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.standing_in.is_empty() {
            let n = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.standing_in))?;
            if n == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.watch.written.fetch_add(n as u64, Relaxed);
            self.standing_in.drain(..n);
        }
        Poll::Ready(Ok(()))
    }

    /// Takes the place of hyper's own answer. True when it was one.
    fn stand_in_for(&mut self, bytes: &[u8]) -> bool {
        let Some(status) = self.watch.bare_refusal(bytes) else {
            return false;
        };
        self.watch.refused.fetch_add(1, Relaxed);
        self.standing_in = (self.refusal)(status);
        true
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if self.watch.reset.load(Relaxed)
            && let Err(error) = SockRef::from(self.stream.tcp()).set_linger(Some(Duration::ZERO))
        {
            tracing::debug!(%error, "connection not reset");
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        self.watch
            .saw_read(buf.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_stand_in(cx))?;
        if self.stand_in_for(buf) {
            return Poll::Ready(Ok(buf.len()));
        }
        let result = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.watch.saw_write(buf.len(), &result);
        result
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_stand_in(cx))?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_stand_in(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_stand_in(cx))?;
        if let [only] = bufs
            && self.stand_in_for(only)
        {
            return Poll::Ready(Ok(only.len()));
        }
        let result = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.watch
            .saw_write(bufs.iter().map(|buf| buf.len()).sum(), &result);
        result
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch_after(reads: &[&[u8]]) -> ConnectionWatch {
        let watch = ConnectionWatch::default();
        for read in reads {
            watch.saw_read(read);
        }
        watch
    }

    #[test]
    fn both_framings_are_seen_in_either_order_and_any_case() {
        for head in [
            "POST /a HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\ncontent-LENGTH: 3\r\n\r\n",
            "POST /a HTTP/1.1\nTransfer-Encoding: chunked\ncontent-length:3\n\n",
        ] {
            for cut in 0..head.len() {
                let (one, two) = head.as_bytes().split_at(cut);
                assert!(
                    watch_after(&[one, two]).has_content_length("POST", "/a"),
                    "{head:?} cut at {cut}"
                );
            }
        }
    }

    #[test]
    fn a_body_that_looks_like_a_header_is_not_one() {
        let watch = watch_after(&[
            b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nContent-Length: 3\r\n",
        ]);
        assert!(!watch.has_content_length("POST", "/a"));
    }

    #[test]
    fn what_is_no_longer_there_is_refused() {
        let watch = watch_after(&[b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"]);
        watch.exchange_began();
        watch.saw_read(&[b'x'; KEEP + 1]);
        assert!(watch.has_content_length("POST", "/a"));
    }

    #[test]
    fn the_tail_stays_small_over_many_requests_and_large_bodies() {
        let watch = ConnectionWatch::default();
        for _ in 0..1000 {
            watch.saw_read(b"GET / HTTP/1.1\r\n\r\n");
            watch.exchange_began();
            watch.exchange_ended();
        }
        let kept =
            |watch: &ConnectionWatch| watch.tail.lock().map_or(usize::MAX, |tail| tail.len());
        assert!(kept(&watch) <= KEEP, "{}", kept(&watch));
        for _ in 0..10 {
            watch.saw_read(&vec![b'x'; 1_000_000]);
        }
        assert!(kept(&watch) <= MAX_HEAD + KEEP, "{}", kept(&watch));
    }

    #[test]
    fn only_an_answer_out_of_nowhere_is_a_refusal() {
        let bare = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
        let watch = watch_after(&[b"garbage"]);
        assert_eq!(watch.bare_refusal(bare), Some(400));
        watch.exchange_began();
        assert_eq!(watch.bare_refusal(bare), None, "an exchange is under way");
        watch.exchange_ended();
        assert_eq!(
            watch.bare_refusal(bare),
            None,
            "its answer is about to be written"
        );
        watch.saw_write(3, &Poll::Ready(Ok(3)));
        assert_eq!(
            watch.bare_refusal(bare),
            None,
            "its answer was written, nothing read since"
        );
        watch.saw_read(b"garbage");
        assert_eq!(watch.bare_refusal(bare), Some(400));
        assert_eq!(watch.bare_refusal(b"HTTP/1.1 100 Continue\r\n\r\n"), None);
    }
}
