//! One worker: accepts, serves, sweeps its pools, drains.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
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
use tokio::sync::mpsc;

use super::crew::{Arrival, Crew, Slot};
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
    pub(super) crew: Arc<Crew>,
    /// Connections that other workers accepted for this one.
    pub(super) arrivals: mpsc::Receiver<Arrival>,
}

impl WorkerStart {
    /// Runs until drained. Returns how many tasks were aborted.
    pub(super) fn run(self, runtime: Runtime, acceptor: Acceptor) -> usize {
        let aborted = runtime.block_on(self.work(acceptor));
        // Dropping the runtime drops what still runs; its bodies tell the tap.
        drop(runtime);
        aborted
    }

    async fn work(mut self, acceptor: Acceptor) -> usize {
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
        let mut arrivals = std::mem::replace(&mut self.arrivals, mpsc::channel(1).1);
        let accepting = async {
            loop {
                match listener.accept().await {
                    Ok((tcp, peer)) => self.accept(&worker, tcp, peer),
                    Err(error) if is_exhausted(&error) => {
                        self.count(|traffic| &traffic.accept_errors);
                        tracing::warn!(%error, "connection not accepted");
                        tokio::time::sleep(BREATHER).await;
                    }
                    Err(error) => tracing::debug!(%error, "connection not accepted"),
                }
            }
        };
        let taking_over = async {
            while let Some((tcp, peer, slot)) = arrivals.recv().await {
                match TcpStream::from_std(tcp) {
                    Ok(tcp) => self.serve(&worker, tcp, peer, slot),
                    Err(error) => tracing::warn!(%error, "connection not taken over"),
                }
            }
        };
        tokio::select! {
            () = self.drain.wait() => {}
            () = accepting => {}
            () = taking_over => {}
            () = sweep(Arc::clone(&worker)) => {}
        }
        drop((listener, arrivals));
        let limit = self.live.load().drain_timeout;
        tokio::select! {
            () = self.tasks.wait() => 0,
            () = self.clear_pools() => 0,
            () = tokio::time::sleep(limit) => {
                self.drain.expire();
                let aborted = self.tasks.running();
                tracing::warn!(aborted, worker = self.index, "drain deadline passed");
                aborted
            }
        }
    }

    /// Lets go of idle upstream connections, again and again while exchanges end: one that is kept would keep its task.
    async fn clear_pools(&self) {
        loop {
            for upstream in self.live.load().routes.upstreams() {
                upstream.pool(self.index).clear();
            }
            tokio::time::sleep(BREATHER).await;
        }
    }

    fn count(&self, of: impl Fn(&WorkerTraffic) -> &std::sync::atomic::AtomicU64) {
        if let Some(traffic) = self.traffic.workers.get(self.index) {
            of(traffic).fetch_add(1, Relaxed);
        }
    }

    /// Serves a connection that was accepted here, or hands it to a worker with fewer.
    fn accept(&self, worker: &Arc<Worker>, tcp: TcpStream, peer: SocketAddr) {
        let slot = self.crew.seat(self.index);
        if slot.worker == self.index {
            return self.serve(worker, tcp, peer, slot);
        }
        let handed = match tcp.into_std() {
            Ok(tcp) => self.crew.hand_over((tcp, peer, slot)),
            Err(error) => return tracing::warn!(%error, "connection not handed over"),
        };
        if let Err((tcp, peer, slot)) = handed {
            drop(slot);
            match TcpStream::from_std(tcp) {
                Ok(tcp) => self.serve(worker, tcp, peer, self.crew.seat_at(self.index)),
                Err(error) => tracing::warn!(%error, "connection not kept"),
            }
        }
    }

    fn serve(&self, worker: &Arc<Worker>, tcp: TcpStream, peer: SocketAddr, slot: Slot) {
        let counted = Counted::new(Arc::clone(worker), slot);
        let live = self.live.load();
        let number = counted.slot.number;
        if number > live.max_connections {
            worker.count(FaultKind::ConnectionLimit);
            if live.tls.is_none() && number <= live.max_connections + TOLD {
                self.tasks.spawn("refusal", async move {
                    let _counted = counted;
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
            let _counted = counted;
            connection(worker, tcp, peer, tls, options, tasks, drain).await;
        });
    }
}

/// A connection being served: its place, and the counters.
struct Counted {
    worker: Arc<Worker>,
    slot: Slot,
}

impl Counted {
    fn new(worker: Arc<Worker>, slot: Slot) -> Self {
        if let Some(traffic) = worker.traffic.workers.get(worker.index) {
            traffic.opened.fetch_add(1, Relaxed);
        }
        Self { worker, slot }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
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
    let serving = Arc::clone(&client);
    let service = service_fn(move |request| {
        let client = Arc::clone(&serving);
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
    client.count_bytes();
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
