//! An upstream whose every byte the test sends: [`Upstream::start`] hands each request to the test, which answers it
//! when and how it likes; [`Upstream::answering`] answers by a function, for load.

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use super::http1::{Head, Piece, Reader};
use crate::process::PATIENCE;

/// Requests that may wait for the test; more means that the test forgot them.
const WAITING: usize = 4096;

type Script = dyn Fn(&Head, &[u8]) -> Vec<u8> + Send + Sync;

/// The listener. Dropping it closes it; connections stay until their requests are dropped.
#[derive(Debug)]
pub struct Upstream {
    address: SocketAddr,
    asked: Receiver<Asked>,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

struct Shared {
    requests: AtomicUsize,
    connections: AtomicUsize,
    stopped: AtomicBool,
    script: Option<Box<Script>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("requests", &self.requests)
            .finish_non_exhaustive()
    }
}

impl Upstream {
    /// Hands every request to [`Upstream::next`].
    ///
    /// # Errors
    /// No port is free.
    pub fn start() -> anyhow::Result<Self> {
        Self::listen(TcpListener::bind("127.0.0.1:0")?, None)
    }

    /// The same on a certain address, e.g. that of one that has been dropped.
    ///
    /// # Errors
    /// The port is taken.
    pub fn start_on(address: SocketAddr) -> anyhow::Result<Self> {
        Self::listen(TcpListener::bind(address)?, None)
    }

    /// Answers every whole request with the bytes that `script` makes.
    ///
    /// # Errors
    /// No port is free.
    pub fn answering(
        script: impl Fn(&Head, &[u8]) -> Vec<u8> + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        Self::listen(TcpListener::bind("127.0.0.1:0")?, Some(Box::new(script)))
    }

    fn listen(listener: TcpListener, script: Option<Box<Script>>) -> anyhow::Result<Self> {
        let address = listener.local_addr()?;
        let (give, asked) = sync_channel(WAITING);
        let shared = Arc::new(Shared {
            requests: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            script,
        });
        let accepted = Arc::clone(&shared);
        let accepting = std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if accepted.stopped.load(Ordering::Acquire) {
                    return;
                }
                accepted.connections.fetch_add(1, Ordering::AcqRel);
                let (give, shared) = (give.clone(), Arc::clone(&accepted));
                // A connection that fails shows in what the test waits for.
                std::thread::spawn(move || drop(serve(stream, &shared, &give)));
            }
        });
        Ok(Self {
            address,
            asked,
            shared,
            accepting: Some(accepting),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its origin.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The next request, as soon as its head is whole.
    ///
    /// # Errors
    /// None came in time.
    pub fn next(&self) -> anyhow::Result<Asked> {
        self.asked
            .recv_timeout(PATIENCE)
            .context("no request reached the upstream")
    }

    /// Requests that came so far.
    pub fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::Acquire)
    }

    /// Connections that came so far.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Acquire)
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Release);
        // Wakes the accepting thread, which then lets go of the port.
        drop(TcpStream::connect(self.address));
        if let Some(accepting) = self.accepting.take() {
            drop(accepting.join());
        }
    }
}

/// One request; the test answers it.
#[derive(Debug)]
pub struct Asked {
    /// Its start line and fields, byte for byte.
    pub head: Head,
    stream: Arc<Sending>,
    body: Arc<Incoming>,
}

/// The sending side of a connection, shared by its requests; none once it was reset.
type Sending = Mutex<Option<TcpStream>>;

/// A request's body as it arrives, and the end of its connection.
#[derive(Debug, Default)]
struct Incoming {
    state: Mutex<State>,
    changed: Condvar,
}

/// Bytes of a body that are kept; of a larger one only the length is known.
const KEPT: usize = 32 << 20;

#[derive(Debug, Default)]
struct State {
    bytes: Vec<u8>,
    length: u64,
    ended: Option<Piece>,
    closed: bool,
}

impl Incoming {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Takes a body off the connection; false when it broke off.
    fn read(&self, reader: &mut Reader<TcpStream>) -> anyhow::Result<bool> {
        loop {
            match reader.piece()? {
                Piece::Data(data) => self.change(|state| {
                    state.length += data.len() as u64;
                    let room = KEPT.saturating_sub(state.bytes.len());
                    let kept = data.get(..room.min(data.len())).unwrap_or_default();
                    state.bytes.extend_from_slice(kept);
                }),
                end => {
                    let whole = end == Piece::End;
                    self.change(|state| state.ended = Some(end));
                    return Ok(whole);
                }
            }
        }
    }

    fn wait<T>(&self, what: &str, mut ready: impl FnMut(&State) -> Option<T>) -> anyhow::Result<T> {
        let end = Instant::now() + PATIENCE;
        let mut state = self.lock();
        loop {
            if let Some(found) = ready(&state) {
                return Ok(found);
            }
            let left = end.saturating_duration_since(Instant::now());
            ensure!(!left.is_zero(), "{what}: not within {PATIENCE:?}");
            state = self
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Asked {
    /// The request's whole body.
    ///
    /// # Errors
    /// It broke off, or its end did not come in time.
    pub fn body(&self) -> anyhow::Result<Vec<u8>> {
        self.body.wait("the request's body", |state| {
            let bytes = state.bytes.clone();
            state.ended.clone().map(|end| match end {
                Piece::Broken(why) => Err(anyhow::anyhow!("the request's body broke off: {why}")),
                _ => Ok(bytes),
            })
        })?
    }

    /// How much of the request's body has come.
    pub fn body_length(&self) -> u64 {
        self.body.lock().length
    }

    /// Waits until the request's body has `needle`.
    ///
    /// # Errors
    /// It did not come in time.
    pub fn body_has(&self, needle: &str) -> anyhow::Result<()> {
        self.body.wait(needle, |state| {
            super::http1::find(&state.bytes, needle.as_bytes()).map(drop)
        })
    }

    /// Waits until the request's body broke off.
    ///
    /// # Errors
    /// It did not.
    pub fn body_broken(&self) -> anyhow::Result<()> {
        self.body.wait("the request's body breaks off", |state| {
            matches!(state.ended, Some(Piece::Broken(_))).then_some(())
        })
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// The other side no longer takes any.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> anyhow::Result<()> {
        self.sending()
            .as_mut()
            .context("the connection was reset")?
            .write_all(bytes.as_ref())
            .context("the upstream could not send")
    }

    fn sending(&self) -> MutexGuard<'_, Option<TcpStream>> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends one chunk of a chunked body, at once.
    ///
    /// # Errors
    /// The other side no longer takes any.
    pub fn chunk(&mut self, data: impl AsRef<[u8]>) -> anyhow::Result<()> {
        self.send(chunk(data.as_ref()))
    }

    /// Ends a chunked body.
    ///
    /// # Errors
    /// The other side no longer takes any.
    pub fn end(&mut self) -> anyhow::Result<()> {
        self.send("0\r\n\r\n")
    }

    /// Waits until the other side closed the connection; gives how long that took.
    ///
    /// # Errors
    /// It did not.
    pub fn closed(&self) -> anyhow::Result<Duration> {
        let began = Instant::now();
        self.body
            .wait("the upstream's connection is closed", |state| {
                state.closed.then_some(())
            })?;
        Ok(began.elapsed())
    }

    /// Whether the other side closed the connection by now.
    pub fn is_closed(&self) -> bool {
        self.body.lock().closed
    }

    /// Closes the connection.
    ///
    /// # Errors
    /// It is gone already.
    pub fn close(self) -> anyhow::Result<()> {
        match &*self.sending() {
            Some(stream) => Ok(stream.shutdown(std::net::Shutdown::Both)?),
            None => Ok(()),
        }
    }

    /// Ends the connection with a reset.
    ///
    /// # Errors
    /// It is gone already.
    pub fn reset(self) -> anyhow::Result<()> {
        if let Some(stream) = self.sending().take() {
            socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
            // The reset goes out when the last descriptor is closed; this makes the reading thread let go of its own.
            stream.shutdown(std::net::Shutdown::Read)?;
        }
        Ok(())
    }
}

/// `data` as one HTTP chunk.
pub fn chunk(data: &[u8]) -> Vec<u8> {
    let mut chunk = format!("{:x}\r\n", data.len()).into_bytes();
    chunk.extend_from_slice(data);
    chunk.extend_from_slice(b"\r\n");
    chunk
}

fn serve(stream: TcpStream, shared: &Shared, give: &SyncSender<Asked>) -> anyhow::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = Reader::new(stream.try_clone()?);
    let sending = Arc::new(Mutex::new(Some(stream)));
    let mut last: Option<Arc<Incoming>> = None;
    let ended = exchanges(&mut reader, &sending, shared, give, &mut last);
    if let Some(last) = last {
        last.change(|state| state.closed = true);
    }
    ended
}

fn exchanges(
    reader: &mut Reader<TcpStream>,
    sending: &Arc<Sending>,
    shared: &Shared,
    give: &SyncSender<Asked>,
    last: &mut Option<Arc<Incoming>>,
) -> anyhow::Result<()> {
    while let Some(head) = reader.head()? {
        shared.requests.fetch_add(1, Ordering::AcqRel);
        reader.request_body(&head);
        let body = Arc::new(Incoming::default());
        *last = Some(Arc::clone(&body));
        let mut asked = Asked {
            head,
            stream: Arc::clone(sending),
            body: Arc::clone(&body),
        };
        let Some(script) = &shared.script else {
            give.try_send(asked).context("the test takes no requests")?;
            if !body.read(reader)? {
                return Ok(());
            }
            continue;
        };
        if !body.read(reader)? {
            return Ok(());
        }
        let answer = script(&asked.head, &body.lock().bytes);
        asked.send(answer)?;
    }
    Ok(())
}
