//! One worker: accepts, serves, sweeps its pools, drains.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use callbox_config::HalfClose;
use callbox_net::{
    Acceptor, Accepts, ConnectionWatch, Drain, Ended, ServeOptions, Stream, Tasks, is_exhausted,
    serve, tune,
};
use hyper::service::service_fn;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

use crate::clock::Clock;
use crate::fault::{Fault, FaultKind, refusal};
use crate::forward::{Client, Worker, exchange};
use crate::live::Live;
use crate::tap::Tap;
use crate::traffic::{Traffic, WorkerTraffic};

/// Pause after an accept that failed for want of something, so that the loop does not spin on it.
const BREATHER: Duration = Duration::from_millis(50);
/// Connections over the cap that are told so at once; more are just closed.
const TOLD: usize = 64;

/// What a worker starts from.
pub(super) struct WorkerStart {
    pub(super) index: usize,
    pub(super) live: Arc<Live>,
    pub(super) tap: Tap,
    pub(super) traffic: Arc<Traffic>,
    pub(super) drain: Drain,
    pub(super) tasks: Tasks,
    /// Client connections of all workers.
    pub(super) open: Arc<AtomicUsize>,
}

impl WorkerStart {
    /// Runs until drained. Returns how many tasks were aborted.
    pub(super) fn run(self, runtime: Runtime, acceptor: Acceptor) -> usize {
        let aborted = runtime.block_on(self.work(acceptor));
        // Dropping the runtime drops what still runs; its bodies tell the tap.
        drop(runtime);
        aborted
    }

    async fn work(self, acceptor: Acceptor) -> usize {
        let listener = match acceptor.register() {
            Ok(listener) => listener,
            Err(error) => {
                tracing::error!(%error, worker = self.index, "worker cannot accept connections");
                return 0;
            }
        };
        let worker = Arc::new(Worker {
            index: self.index,
            live: Arc::clone(&self.live),
            tap: self.tap.clone(),
            traffic: Arc::clone(&self.traffic),
            drain: self.drain.clone(),
            clock: Mutex::new(Clock::new()),
        });
        let sweeper = sweep(Arc::clone(&worker));
        tokio::pin!(sweeper);
        let accepting = async {
            loop {
                match listener.accept().await {
                    Ok((tcp, peer)) => self.take(&worker, tcp, peer),
                    Err(error) if is_exhausted(&error) => {
                        self.count(|traffic| &traffic.accept_errors);
                        tracing::warn!(%error, "connection not accepted");
                        tokio::time::sleep(BREATHER).await;
                    }
                    Err(error) => tracing::debug!(%error, "connection not accepted"),
                }
            }
        };
        tokio::select! {
            () = self.drain.wait() => {}
            () = accepting => {}
            () = &mut sweeper => {}
        }
        drop(listener);
        for upstream in self.live.load().routes.upstreams() {
            upstream.pool(self.index).clear();
        }
        let limit = self.live.load().drain_timeout;
        if tokio::time::timeout(limit, self.tasks.wait())
            .await
            .is_err()
        {
            self.drain.expire();
            let aborted = self.tasks.running();
            tracing::warn!(aborted, worker = self.index, "drain deadline passed");
            return aborted;
        }
        0
    }

    fn count(&self, of: impl Fn(&WorkerTraffic) -> &std::sync::atomic::AtomicU64) {
        if let Some(traffic) = self.traffic.workers.get(self.index) {
            of(traffic).fetch_add(1, Relaxed);
        }
    }

    fn take(&self, worker: &Arc<Worker>, tcp: TcpStream, peer: SocketAddr) {
        self.count(|traffic| &traffic.opened);
        let live = self.live.load();
        let slot = Slot::new(Arc::clone(&self.open), Arc::clone(worker));
        if slot.number > live.max_connections {
            worker.count(FaultKind::ConnectionLimit);
            if live.tls.is_none() && slot.number <= live.max_connections + TOLD {
                self.tasks.spawn("refusal", async move {
                    let _slot = slot;
                    if let Err(error) =
                        tokio::time::timeout(Duration::from_secs(1), tell_full(tcp)).await
                    {
                        tracing::debug!(%error, "refusal not delivered");
                    }
                });
            }
            return;
        }
        let tls = live
            .tls
            .as_ref()
            .map(|tls| (Arc::clone(&tls.config), live.tls_timeout));
        let options = ServeOptions {
            accepts: if tls.is_none() && live.h2c {
                Accepts::PriorKnowledge
            } else {
                Accepts::Negotiated
            },
            half_close: live.half_close == HalfClose::Wait,
            head_timeout: live.head_timeout,
            refusal,
        };
        let (tasks, drain) = (self.tasks.clone(), self.drain.clone());
        let worker = Arc::clone(worker);
        self.tasks.spawn("connection", async move {
            let _slot = slot;
            connection(worker, tcp, peer, tls, options, tasks, drain).await;
        });
    }
}

/// One client connection's place in the count.
struct Slot {
    number: usize,
    open: Arc<AtomicUsize>,
    worker: Arc<Worker>,
}

impl Slot {
    fn new(open: Arc<AtomicUsize>, worker: Arc<Worker>) -> Self {
        let number = open.fetch_add(1, Relaxed) + 1;
        Self {
            number,
            open,
            worker,
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Relaxed);
        if let Some(traffic) = self.worker.traffic.workers.get(self.worker.index) {
            traffic.closed.fetch_add(1, Relaxed);
        }
    }
}

async fn connection(
    worker: Arc<Worker>,
    tcp: TcpStream,
    peer: SocketAddr,
    tls: Option<(Arc<rustls::ServerConfig>, Duration)>,
    options: ServeOptions,
    tasks: Tasks,
    drain: Drain,
) {
    if let Err(error) = tune(&tcp) {
        tracing::debug!(%error, "socket options not set");
    }
    let https = tls.is_some();
    let Some(stream) = secure(&worker, tcp, tls).await else {
        return;
    };
    let watch = Arc::new(ConnectionWatch::default());
    let client = Arc::new(Client {
        worker: Arc::clone(&worker),
        watch: Arc::clone(&watch),
        peer,
        https,
    });
    let service = service_fn(move |request| {
        let client = Arc::clone(&client);
        async move { Ok::<_, Infallible>(exchange(client, request).await) }
    });
    let ended = serve(
        stream,
        Arc::clone(&watch),
        service,
        &options,
        &tasks,
        &drain,
    )
    .await;
    let Some(traffic) = worker.traffic.workers.get(worker.index) else {
        return;
    };
    match ended {
        Ended::Closed => {}
        Ended::HeadTimeout => {
            traffic.heads_late.fetch_add(1, Relaxed);
        }
        Ended::Failed(error) => tracing::debug!(%error, %peer, "connection ended"),
        Ended::Io(error) => tracing::debug!(%error, %peer, "connection ended"),
    }
    let (read, written) = watch.bytes();
    traffic.bytes_in.fetch_add(read, Relaxed);
    traffic.bytes_out.fetch_add(written, Relaxed);
    traffic.fault(FaultKind::BadRequest, watch.refused());
}

async fn secure(
    worker: &Worker,
    tcp: TcpStream,
    tls: Option<(Arc<rustls::ServerConfig>, Duration)>,
) -> Option<Stream> {
    let Some((config, limit)) = tls else {
        return Some(Stream::Plain(tcp));
    };
    let handshake = tokio_rustls::TlsAcceptor::from(config).accept(tcp);
    let error = match tokio::time::timeout(limit, handshake).await {
        Ok(Ok(tls)) => return Some(Stream::Tls(Box::new(tls.into()))),
        Ok(Err(error)) => error,
        Err(late) => io::Error::new(io::ErrorKind::TimedOut, late),
    };
    tracing::debug!(%error, "TLS handshake failed");
    if let Some(traffic) = worker.traffic.workers.get(worker.index) {
        traffic.handshakes_failed.fetch_add(1, Relaxed);
    }
    None
}

async fn tell_full(mut tcp: TcpStream) -> io::Result<()> {
    // The request is read first: closing with unread bytes would reset the connection and take the answer with it.
    let mut request = [0; 4096];
    let n = tokio::io::AsyncReadExt::read(&mut tcp, &mut request).await?;
    if n > 0 {
        let fault = Fault::new(
            FaultKind::ConnectionLimit,
            "too many connections (listen.max_connections)",
        );
        let status = fault.kind.status();
        tcp.write_all(&fault.raw(status)).await?;
    }
    tcp.shutdown().await
}

async fn sweep(worker: Arc<Worker>) {
    loop {
        let every = {
            let live = worker.live.load();
            let upstreams = live.routes.upstreams().iter();
            upstreams
                .map(|upstream| upstream.pool(worker.index).sweep_every())
                .min()
        };
        tokio::time::sleep(every.unwrap_or(Duration::from_secs(1))).await;
        for upstream in worker.live.load().routes.upstreams() {
            upstream.pool(worker.index).sweep();
        }
    }
}
