//! Many calls at once, each told apart by its arguments.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use callbox_testkit::blocking::{Client, Upstream};

use crate::mcp;

/// An upstream that answers every call with the same text.
pub(crate) fn upstream(text: &str) -> Result<Upstream> {
    let answer = mcp::json(&mcp::result("1", text)).into_bytes();
    Upstream::answering(move |_, _| answer.clone())
}

/// The same, with a tool that takes its time: load that a recorder keeps up with, also in a debug build.
pub(crate) fn thoughtful_upstream(text: &str, takes: Duration) -> Result<Upstream> {
    let answer = mcp::json(&mcp::result("1", text)).into_bytes();
    Upstream::answering(move |_, _| {
        let done = Instant::now() + takes;
        while let Some(left) = done.checked_duration_since(Instant::now()) {
            std::thread::park_timeout(left);
        }
        answer.clone()
    })
}

/// Text that does not compress, the same for the same seed.
pub(crate) fn noise(seed: u64, length: usize) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut state = seed.wrapping_mul(2) | 1;
    (0..length)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            char::from(LETTERS[usize::try_from(state >> 58).unwrap_or_default()])
        })
        .collect()
}

/// One call named `n`, with `padding` in its arguments.
pub(crate) fn call(n: &str, padding: &str) -> String {
    mcp::post(&mcp::call(
        "1",
        "load",
        &format!(r#"{{"n":"{n}","padding":"{padding}"}}"#),
    ))
}

/// `threads` clients, `each` calls a client, as fast as they are answered.
pub(crate) fn run(address: SocketAddr, threads: usize, each: usize, padding: usize) -> Result<()> {
    let clients: Vec<_> = (0..threads)
        .map(|thread| {
            std::thread::spawn(move || -> Result<()> {
                let mut client = Client::connect(address)?;
                for k in 0..each {
                    let noise = noise((thread * each + k) as u64, padding);
                    let answer = client.ask(call(&format!("{thread}-{k}"), &noise))?;
                    ensure!(answer.status() == 200, "{:?}", answer.head);
                }
                Ok(())
            })
        })
        .collect();
    for client in clients {
        client.join().ok().context("a client panicked")??;
    }
    Ok(())
}

/// What one client got: the names of its answered calls, and when each answer was whole.
pub(crate) type Answered = Vec<(String, Instant)>;

/// Clients that call until they are stopped or their connection ends.
#[derive(Debug)]
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    clients: Vec<JoinHandle<(Answered, Option<String>)>>,
}

impl Load {
    /// Starts `threads` of them; `name` is the beginning of their calls' names.
    pub(crate) fn start(address: SocketAddr, threads: usize, name: &str, padding: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let answered = Arc::new(AtomicU64::new(0));
        let clients = (0..threads)
            .map(|thread| {
                let (stop, count) = (Arc::clone(&stop), Arc::clone(&answered));
                let name = format!("{name}-{thread}");
                std::thread::spawn(move || {
                    let mut answered = Answered::new();
                    let failed =
                        client(address, &name, padding, &stop, &count, &mut answered).err();
                    (answered, failed.map(|error| format!("{error:#}")))
                })
            })
            .collect();
        Self {
            stop,
            answered,
            clients,
        }
    }

    /// Calls answered so far.
    pub(crate) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Acquire)
    }

    /// Ends the clients; gives what they got, and how those failed that failed.
    pub(crate) fn stop(self) -> Result<(Answered, Vec<String>)> {
        self.stop.store(true, Ordering::Release);
        let mut all = Answered::new();
        let mut failures = Vec::new();
        for client in self.clients {
            let (answered, failed) = client.join().ok().context("a client panicked")?;
            all.extend(answered);
            failures.extend(failed);
        }
        Ok((all, failures))
    }
}

fn client(
    address: SocketAddr,
    name: &str,
    padding: usize,
    stop: &AtomicBool,
    count: &AtomicU64,
    answered: &mut Answered,
) -> Result<()> {
    let mut client = Client::connect(address)?;
    let mut k = 0;
    while !stop.load(Ordering::Acquire) {
        let n = format!("{name}-{k}");
        let answer = client.ask(call(&n, &noise(k, padding)))?;
        ensure!(
            answer.status() == 200 && answer.body.broken.is_none(),
            "{answer:?}"
        );
        answered.push((n, Instant::now()));
        count.fetch_add(1, Ordering::AcqRel);
        k += 1;
    }
    Ok(())
}
