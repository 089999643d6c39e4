//! An upstream that does what the test says, connection by connection.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use crate::peer::{PATIENCE, Peer};

/// A listening upstream. Dropping it closes everything.
#[derive(Debug)]
pub struct Scripted {
    address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    failures: Arc<Mutex<Vec<String>>>,
    _accepting: AbortOnDropHandle<()>,
}

impl Scripted {
    /// Runs `script` for each connection; its number (from 0) comes with it. A script that fails is remembered for
    /// [`Scripted::failures`].
    ///
    /// # Errors
    /// No port is free.
    pub async fn start<S, F>(script: S) -> Result<Self>
    where
        S: Fn(usize, Peer) -> F + Send + 'static,
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let accepted = Arc::new(AtomicUsize::new(0));
        let failures = Arc::new(Mutex::new(Vec::new()));
        let (count, failed) = (Arc::clone(&accepted), Arc::clone(&failures));
        let accepting = run(async move {
            let mut running = Vec::new();
            while let Ok((tcp, _)) = listener.accept().await {
                let number = count.fetch_add(1, Ordering::SeqCst);
                let Ok(peer) = Peer::new(tcp) else { continue };
                let (work, failed) = (script(number, peer), Arc::clone(&failed));
                running.push(run(async move {
                    if let Err(error) = work.await {
                        let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                        failed.push(format!("connection {number}: {error:#}"));
                    }
                }));
            }
        });
        Ok(Self {
            address,
            accepted,
            failures,
            _accepting: accepting,
        })
    }

    /// An upstream whose connections the test takes one by one, to work them itself.
    ///
    /// # Errors
    /// No port is free.
    pub async fn by_hand() -> Result<(Self, Connections)> {
        let (sender, receiver) = mpsc::channel(64);
        let upstream = Self::start(move |_, peer| {
            let sender = sender.clone();
            async move { Ok(sender.send(peer).await?) }
        })
        .await?;
        Ok((upstream, Connections(receiver)))
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections so far.
    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    /// What scripts failed of.
    pub fn failures(&self) -> Vec<String> {
        self.failures
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Connections to work by hand, in the order they came.
#[derive(Debug)]
pub struct Connections(mpsc::Receiver<Peer>);

impl Connections {
    /// The next connection.
    ///
    /// # Errors
    /// None comes.
    pub async fn next(&mut self) -> Result<Peer> {
        use anyhow::Context as _;
        let peer = tokio::time::timeout(PATIENCE, self.0.recv())
            .await
            .context("no connection came")?;
        peer.context("the upstream is gone")
    }

    /// Whether one waits already.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the handle aborts the task when the test lets go of it"
)]
fn run(task: impl Future<Output = ()> + Send + 'static) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(task))
}
