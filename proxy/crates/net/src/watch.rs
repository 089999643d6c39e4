//! What hyper does not tell: seen from just below it, on the bytes of one client connection.
//!
//! Three things hyper 1.x hides are needed above it: the raw head (it drops a Content-Length that stands beside a
//! Transfer-Encoding, which must be refused), the bare 4xx it writes by itself for what it cannot parse (which must
//! carry callbox's mark), and whether written bytes left (so that what arrived before a break still goes out). The
//! wrapper looks at bytes in passing and never changes what hyper reads.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use memchr::memmem;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use crate::stream::Stream;

/// Longest request head; hyper refuses a longer one with 431.
pub(crate) const MAX_HEAD: usize = 128 * 1024;

/// Bytes kept from before the last read once they have been parsed: enough for pipelined requests to be looked up.
const KEEP: usize = 4096;

/// Hyper's own answers are head-only and end like this.
const BARE_END: &[u8] = b"content-length: 0\r\n\r\n";

/// What a client still sends after its answer is read and thrown away within these bounds: closing with unread bytes
/// would reset the connection, and the reset would take the answer with it.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 4 << 20;

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
    linger: AtomicBool,
    /// hyper is being polled by the connection's own task.
    polling: AtomicBool,
    /// Wake-ups of that task are superfluous just now.
    quiet: AtomicBool,
    /// One was left out.
    echoed: AtomicBool,
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
            linger: AtomicBool::new(false),
            polling: AtomicBool::new(false),
            quiet: AtomicBool::new(false),
            echoed: AtomicBool::new(false),
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

    /// The client is still sending what nobody reads any more; it must get its answer all the same.
    pub fn linger_on_close(&self) {
        self.linger.store(true, Relaxed);
    }

    /// Runs `poll`, which takes a frame out of one of hyper's body channels, without waking the connection's own task
    /// when it is that task which polls. hyper wakes the channel's other end after each frame; here both ends are
    /// driven by one task, which would only find that there is nothing to do. True beside the result: a wake-up was due
    /// and left out, and it is the caller's to make it good if the frame was not the last.
    pub fn without_echo<T>(&self, poll: impl FnOnce() -> T) -> (T, bool) {
        if !self.polling.load(Relaxed) {
            return (poll(), false);
        }
        self.quiet.store(true, Relaxed);
        let result = poll();
        self.quiet.store(false, Relaxed);
        (result, self.echoed.swap(false, Relaxed))
    }

    pub(crate) fn set_polling(&self, polling: bool) {
        self.polling.store(polling, Relaxed);
    }

    /// Whether a wake-up is to be left out. If so, that is remembered.
    pub(crate) fn is_echo(&self) -> bool {
        let quiet = self.quiet.load(Relaxed);
        if quiet {
            self.echoed.store(true, Relaxed);
        }
        quiet
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

    /// Bytes read and written since the last call, after decryption.
    pub fn take_bytes(&self) -> (u64, u64) {
        (self.read.swap(0, Relaxed), self.written.swap(0, Relaxed))
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

    /// Whether the target just parsed had a fragment, which the parser dropped without a word.
    pub fn had_fragment(&self, method: &str, target: &str) -> bool {
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        memchr::memchr(b'#', &tail).is_some() && {
            let line = format!("{method} {target}#");
            memmem::find(&tail, line.as_bytes()).is_some()
        }
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
    lingering: Option<Lingering>,
}

#[derive(Debug)]
struct Lingering {
    until: Pin<Box<Sleep>>,
    left: usize,
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
            lingering: None,
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

    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let lingering = self.lingering.get_or_insert_with(|| Lingering {
            until: Box::pin(tokio::time::sleep(LINGER)),
            left: LINGER_BYTES,
        });
        let mut scratch = vec![0; 8192];
        while lingering.left > 0 && lingering.until.as_mut().poll(cx).is_pending() {
            let mut buf = ReadBuf::new(&mut scratch);
            match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buf)) {
                Ok(()) if !buf.filled().is_empty() => {
                    lingering.left = lingering.left.saturating_sub(buf.filled().len());
                }
                // The client is done, or gone.
                _ => break,
            }
        }
        Poll::Ready(())
    }

    /// Takes the place of hyper's own answer. True when it was one.
    fn stand_in_for(&mut self, bytes: &[u8]) -> bool {
        let Some(status) = self.watch.bare_refusal(bytes) else {
            return false;
        };
        self.watch.refused.fetch_add(1, Relaxed);
        self.watch.linger_on_close();
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
        if self.lingering.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            if !self.watch.linger.load(Relaxed) {
                return Poll::Ready(Ok(()));
            }
        }
        self.poll_linger(cx).map(Ok)
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
    fn a_fragment_is_seen_and_a_body_with_its_sign_is_not_one() {
        assert!(watch_after(&[b"GET /a?b#c HTTP/1.1\r\n\r\n"]).had_fragment("GET", "/a?b"));
        assert!(
            !watch_after(&[b"GET /a?b HTTP/1.1\r\nx: #1\r\n\r\n# Title"])
                .had_fragment("GET", "/a?b")
        );
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
