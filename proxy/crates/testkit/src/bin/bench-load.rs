//! Load client to measure with: keep-alive HTTP/1.1 connections that make `tools/call` requests, one JSON line of figures.
//!
//! `bench-load URL CONNECTIONS SECONDS [RATE]`. Without RATE a closed loop: each connection sends as soon as it is free.
//! With RATE (requests a second) an open loop: requests fall due at a steady pace whatever came back; one that finds every
//! connection busy waits, and its latency counts from when it was due, so that a stalled server cannot hide its stall.
//! Latencies in microseconds. One thread for the connections, one for the pace.

#![allow(
    clippy::print_stdout,
    reason = "a tool: its one line of output is its interface"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, mpsc};

const WARM_UP: Duration = Duration::from_secs(1);

struct Target {
    address: String,
    host: String,
    path: String,
}

fn target(url: &str) -> anyhow::Result<Target> {
    let rest = url
        .strip_prefix("http://")
        .context("URL: only http:// is supported")?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    Ok(Target {
        address: host.to_owned(),
        host: host.to_owned(),
        path: format!("/{path}"),
    })
}

/// Times of one answered request.
#[derive(Clone, Copy)]
struct Sample {
    done: Instant,
    latency: Duration,
    first_event: Duration,
}

/// One connection's read side.
struct Reader {
    buffer: Vec<u8>,
    chunk: Box<[u8]>,
}

enum Framing {
    Length(usize),
    Chunked,
}

impl Reader {
    /// Reads one answer; gives when the first body bytes were here.
    async fn answer(&mut self, stream: &mut TcpStream, id: u64) -> anyhow::Result<Instant> {
        self.buffer.clear();
        let mut first = None;
        let (framing, head) = loop {
            let read = stream.read(&mut self.chunk).await?;
            ensure!(read > 0, "closed before a head");
            self.buffer.extend_from_slice(&self.chunk[..read]);
            if let Some(found) = self.head()? {
                break found;
            }
        };
        loop {
            if first.is_none() && self.buffer.len() > head {
                first = Some(Instant::now());
            }
            if self.complete(&framing, head)? {
                break;
            }
            let read = stream.read(&mut self.chunk).await?;
            ensure!(read > 0, "closed in a body");
            self.buffer.extend_from_slice(&self.chunk[..read]);
        }
        if id.is_multiple_of(64) {
            let wanted = format!("\"id\":{id},");
            ensure!(
                memchr::memmem::find(&self.buffer[head..], wanted.as_bytes()).is_some(),
                "answer {id} has another id"
            );
        }
        first.context("an answer without a body")
    }

    fn head(&self) -> anyhow::Result<Option<(Framing, usize)>> {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut response = httparse::Response::new(&mut headers);
        let httparse::Status::Complete(head) = response.parse(&self.buffer)? else {
            return Ok(None);
        };
        if response.code != Some(200) {
            bail!("status {:?}", response.code);
        }
        for header in response.headers.iter() {
            if header.name.eq_ignore_ascii_case("content-length") {
                return Ok(Some((
                    Framing::Length(std::str::from_utf8(header.value)?.trim().parse()?),
                    head,
                )));
            }
        }
        Ok(Some((Framing::Chunked, head)))
    }

    fn complete(&self, framing: &Framing, head: usize) -> anyhow::Result<bool> {
        match framing {
            Framing::Length(length) => Ok(self.buffer.len() >= head + length),
            Framing::Chunked => {
                // Walk the chunks from the start: answers are a handful of chunks.
                let mut at = head;
                loop {
                    let Some(line) = self
                        .buffer
                        .get(at..)
                        .and_then(|rest| memchr::memchr(b'\n', rest))
                    else {
                        return Ok(false);
                    };
                    let size = std::str::from_utf8(&self.buffer[at..at + line])?.trim();
                    let size = usize::from_str_radix(size, 16)
                        .with_context(|| format!("chunk size {size:?}"))?;
                    at += line + 1 + size + 2;
                    if self.buffer.len() < at {
                        return Ok(false);
                    }
                    if size == 0 {
                        return Ok(true);
                    }
                }
            }
        }
    }
}

struct Run {
    target: Target,
    ids: AtomicU64,
    stop: AtomicBool,
    due: Option<Mutex<mpsc::Receiver<Instant>>>,
}

impl Run {
    async fn connection(&self) -> anyhow::Result<Vec<Sample>> {
        let mut stream = TcpStream::connect(&self.target.address)
            .await
            .context("connect")?;
        stream.set_nodelay(true)?;
        let mut reader = Reader {
            buffer: Vec::with_capacity(1 << 19),
            chunk: vec![0; 65_536].into_boxed_slice(),
        };
        let mut samples = Vec::new();
        let mut request = Vec::with_capacity(512);
        while !self.stop.load(Ordering::Relaxed) {
            let free = Instant::now();
            let due = match &self.due {
                None => None,
                Some(due) => match due.lock().await.recv().await {
                    Some(due) => Some(due),
                    None => break,
                },
            };
            let id = self.ids.fetch_add(1, Ordering::Relaxed);
            let body = format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"search_contacts\",\"arguments\":{{\"query\":\"Dana Kim {id}\",\"limit\":10}}}}}}"
            );
            request.clear();
            request.extend_from_slice(
                format!(
                    "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-06-18\r\nMcp-Session-Id: bench\r\nContent-Length: {}\r\n\r\n{body}",
                    self.target.path, self.target.host, body.len()
                )
                .as_bytes(),
            );
            let sent = Instant::now();
            // A request that waited for a connection counts from when it was due; the pacer's own lateness does not count.
            let start = due.filter(|due| *due < free).unwrap_or(sent);
            stream.write_all(&request).await?;
            let first = reader.answer(&mut stream, id).await?;
            let done = Instant::now();
            samples.push(Sample {
                done,
                latency: done - start,
                first_event: first - start,
            });
        }
        Ok(samples)
    }
}

/// Lets requests fall due, evenly, until the end.
#[allow(
    clippy::disallowed_methods,
    reason = "pacing is this thread's whole job"
)]
fn pace(due: &mpsc::Sender<Instant>, rate: f64, until: Instant) -> u64 {
    let step = Duration::from_secs_f64(1.0 / rate);
    let mut next = Instant::now();
    let mut unsent = 0;
    while next < until {
        if let Some(wait) = next.checked_duration_since(Instant::now()) {
            std::thread::sleep(wait);
        }
        if due.try_send(next).is_err() {
            unsent += 1;
        }
        next += step;
    }
    unsent
}

fn percentile(sorted: &[u128], share: f64) -> u128 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index into the samples"
    )]
    let at = ((sorted.len() as f64 - 1.0) * share).round().max(0.0) as usize;
    sorted.get(at).copied().unwrap_or(0)
}

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [url, connections, seconds, rate @ ..] = args.as_slice() else {
        bail!("bench-load URL CONNECTIONS SECONDS [RATE]")
    };
    let connections: usize = connections.parse().context("CONNECTIONS")?;
    let seconds: f64 = seconds.parse().context("SECONDS")?;
    let rate: Option<f64> = rate
        .first()
        .map(|rate| rate.parse().context("RATE"))
        .transpose()?;
    let begin = Instant::now() + WARM_UP;
    let until = begin + Duration::from_secs_f64(seconds);
    let (pacer, due) = match rate {
        Some(rate) => {
            let (sender, receiver) = mpsc::channel(100_000);
            (
                Some(std::thread::spawn(move || pace(&sender, rate, until))),
                Some(Mutex::new(receiver)),
            )
        }
        None => (None, None),
    };
    let run = Arc::new(Run {
        target: target(url)?,
        ids: AtomicU64::new(1),
        stop: AtomicBool::new(false),
        due,
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (mut samples, mut errors) = (Vec::new(), Vec::new());
    runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..connections {
            let run = Arc::clone(&run);
            tasks.spawn(async move { run.connection().await });
        }
        tokio::time::sleep_until(until.into()).await;
        run.stop.store(true, Ordering::Relaxed);
        while let Some(ended) = tasks.join_next().await {
            match ended.map_err(anyhow::Error::from).and_then(|ended| ended) {
                Ok(more) => samples.extend(more),
                Err(error) => errors.push(format!("{error:#}")),
            }
        }
    });
    let unsent = pacer.map_or(0, |pacer| pacer.join().unwrap_or(u64::MAX));
    let answered = samples.len();
    samples.retain(|sample| sample.done >= begin && sample.done <= until);
    let sorted = |time: fn(&Sample) -> Duration| {
        let mut times: Vec<u128> = samples
            .iter()
            .map(|sample| time(sample).as_micros())
            .collect();
        times.sort_unstable();
        times
    };
    let (latency, first) = (
        sorted(|sample| sample.latency),
        sorted(|sample| sample.first_event),
    );
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let per_second = samples.len() as f64 / seconds;
    println!(
        "{{\"per_second\":{per_second:.0},\"answered\":{answered},\"p50\":{},\"p99\":{},\"p999\":{},\"first_p50\":{},\"first_p99\":{},\"unsent\":{unsent},\"errors\":{}}}",
        percentile(&latency, 0.5),
        percentile(&latency, 0.99),
        percentile(&latency, 0.999),
        percentile(&first, 0.5),
        percentile(&first, 0.99),
        serde_json::to_string(&errors)?,
    );
    Ok(())
}
