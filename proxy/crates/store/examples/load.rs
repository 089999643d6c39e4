//! Measures the log: CPU and bytes per call at a given rate, then the queries.
//!
//! `cargo run --release -p callbox-store --example load -- DIR [CALLS] [CALLS_PER_SECOND] [SESSIONS] [MAX_MIB]`
//! (0 calls per second: as fast as it goes; 0 MiB: no limit, else retention works, too). Linux only, since it reads the writer thread's CPU time from `/proc`.

#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]
#![allow(
    clippy::cast_precision_loss,
    clippy::print_stdout,
    clippy::string_slice,
    reason = "it prints a report, in round figures"
)]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use callbox_store::{
    Batch, Call, CallEvent, CallFilter, Capture, Captured, Client, End, Http, Ids, Options,
    Outcome, Reader, Record, Sample, Session, SessionFilter, SessionSource, open,
};
use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};
use serde_json::value::RawValue;

const TOOLS: usize = 30;
const BATCH: usize = 64;
const WORDS: &str = "account active address agreement amount annual archived assigned balance billing branch budget \
    campaign cancelled category closed company contact contract country created currency customer deadline delivery \
    department discount draft email employee estimate expired forecast industry inventory invoice item language lead \
    ledger location manager margin market meeting member milestone northwind note opportunity order overdue owner \
    partner payment pending phase pipeline price priority product profile project proposal quantity quarter quote \
    receipt region renewal report request revenue review sales schedule segment shipment stage status stock \
    subscription supplier support target task territory ticket total transfer updated vendor warehouse website";

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let dir = PathBuf::from(
        arguments
            .next()
            .ok_or("usage: load DIR [CALLS] [CALLS_PER_SECOND] [SESSIONS] [MAX_MIB]")?,
    );
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |text| text.parse());
    let (calls, rate, sessions, mib) = (number(1_000_000)?, number(0)?, number(32)?, number(0)?);
    let mut options = Options::new(&dir);
    options.max_bytes = if mib == 0 { u64::MAX } else { mib << 20 };
    fill(options, calls, rate, usize::try_from(sessions)?)?;
    ask(&dir)
}

fn fill(options: Options, calls: u64, rate: u64, sessions: usize) -> Result<(), Box<dyn Error>> {
    let file = options.dir.join("calls.db");
    let writer = open(options)?;
    let mut maker = Maker::new(writer.ids(), sessions);
    let begun = Instant::now();
    let mut making = Duration::ZERO;
    let mut sent = 0;
    while sent < calls {
        let making_since = Instant::now();
        let records = (0..BATCH)
            .map(|_| Record::Call(Box::new(maker.call())))
            .collect();
        making += making_since.elapsed();
        let mut batch = Batch {
            records,
            ..Batch::default()
        };
        while let Err(back) = writer.submit(batch) {
            batch = back;
            std::thread::park_timeout(Duration::from_millis(1));
        }
        sent += BATCH as u64;
        if rate > 0 {
            let due = begun + Duration::from_secs_f64(sent as f64 / rate as f64);
            while let Some(left) = due.checked_duration_since(Instant::now()) {
                std::thread::park_timeout(left);
            }
        }
    }
    while writer.health().queued > 0 {
        std::thread::park_timeout(Duration::from_millis(1));
    }
    let elapsed = begun.elapsed();
    let cpu = writer_cpu()?;
    let health = writer.health();
    let written = written_bytes()?;
    writer.close()?;
    let size = fs::metadata(file)?.len();
    let each = |figure: f64| figure / sent as f64;
    println!(
        "calls              {sent} in {:.2} s: {:.0}/s (making them took {:.2} s)",
        elapsed.as_secs_f64(),
        sent as f64 / elapsed.as_secs_f64(),
        making.as_secs_f64()
    );
    println!(
        "writer CPU         {:.2} us a call",
        each(cpu.as_secs_f64() * 1e6)
    );
    println!(
        "commits            {}, {:.0} calls each, mean {:.2} ms, longest {:.1} ms",
        health.commits,
        sent as f64 / health.commits as f64,
        health.commit_time.as_secs_f64() * 1e3 / health.commits as f64,
        health.longest_commit.as_secs_f64() * 1e3
    );
    println!("file               {:.1} bytes a call", each(size as f64));
    println!(
        "written            {:.1} bytes a call, write-ahead log and checkpoints included; log file {} KiB",
        each(written as f64),
        health.wal_bytes / 1024
    );
    println!("dropped            {}", health.dropped_total());
    Ok(())
}

fn ask(dir: &Path) -> Result<(), Box<dyn Error>> {
    let reader = Reader::open(dir)?;
    let last = reader
        .calls(&CallFilter::default(), Some(1))?
        .pop()
        .ok_or("the log is empty")?;
    let all = CallFilter::default();
    let tool = CallFilter {
        tools: vec!["tool_07".to_owned()],
        ..all.clone()
    };
    let rare_tool = CallFilter {
        tools: vec!["rare_tool".to_owned()],
        ..all.clone()
    };
    let failed = CallFilter {
        outcomes: vec![Outcome::ToolError],
        ..all.clone()
    };
    let session = CallFilter {
        session: Some(last.session.id),
        ..all.clone()
    };
    let principal = CallFilter {
        principal: last.session.principal.clone(),
        ..all.clone()
    };
    let minute = CallFilter {
        since: Some(last.started_at - 60_000_000),
        ..all.clone()
    };
    let both = CallFilter {
        tools: vec!["rare_tool".to_owned()],
        principal: last.session.principal.clone(),
        ..all.clone()
    };
    let nobody = CallFilter {
        principal: Some("h:nobody".to_owned()),
        ..all.clone()
    };
    for (name, filter) in [
        ("last 50", &all),
        ("last 50 of a tool", &tool),
        ("last 50 of a rare tool", &rare_tool),
        ("last 50 that failed", &failed),
        ("last 50 of a session", &session),
        ("last 50 of a principal", &principal),
        ("last 50 of a minute", &minute),
        ("rare tool and principal", &both),
        ("unknown principal", &nobody),
    ] {
        let begun = Instant::now();
        let found = reader.calls(filter, Some(50))?.len();
        println!(
            "{name:<25} {found:>3} calls {:>9.2} ms",
            begun.elapsed().as_secs_f64() * 1e3
        );
    }
    let prefix = last.id.simple().to_string();
    let begun = Instant::now();
    reader.resolve(&prefix[..16])?;
    println!(
        "{:<25}           {:>9.2} ms",
        "id from 16 digits",
        begun.elapsed().as_secs_f64() * 1e3
    );
    let begun = Instant::now();
    let sessions = reader.sessions(&SessionFilter::default(), Some(50))?.len();
    println!(
        "{:<25} {sessions:>3}       {:>9.2} ms",
        "last 50 sessions",
        begun.elapsed().as_secs_f64() * 1e3
    );
    let (begun, mut count, mut bytes) = (Instant::now(), 0_u64, 0);
    reader.each_call(&all, &mut |call| {
        count += 1;
        bytes += call.to_json().len();
        std::ops::ControlFlow::Continue(())
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "export of all             {count} calls {seconds:.2} s, {:.1} us each, {} bytes of JSON each",
        seconds * 1e6 / count as f64,
        bytes as u64 / count
    );
    Ok(())
}

/// CPU time of the thread named `callbox-writer`.
fn writer_cpu() -> Result<Duration, Box<dyn Error>> {
    for thread in fs::read_dir("/proc/self/task")? {
        let thread = thread?.path();
        if fs::read_to_string(thread.join("comm"))?.trim() == "callbox-writer" {
            let line = fs::read_to_string(thread.join("schedstat"))?;
            let nanos = line
                .split(' ')
                .next()
                .ok_or("schedstat is empty")?
                .parse()?;
            return Ok(Duration::from_nanos(nanos));
        }
    }
    Err("no thread is named callbox-writer".into())
}

fn written_bytes() -> Result<u64, Box<dyn Error>> {
    let io = fs::read_to_string("/proc/self/io")?;
    let line = io
        .lines()
        .find_map(|line| line.strip_prefix("wchar: "))
        .ok_or("no wchar")?;
    Ok(line.parse()?)
}

struct Maker {
    ids: Ids,
    random: SmallRng,
    words: Vec<&'static str>,
    sessions: Vec<(Arc<Session>, u32)>,
}

impl Maker {
    fn new(mut ids: Ids, count: usize) -> Self {
        let at = now();
        let sessions = (0..count).map(|number| {
            let session = Session {
                id: ids.next(at),
                source: SessionSource::Protocol,
                key: std::array::from_fn(|at| (number >> (at % 4 * 8)).to_le_bytes()[0]),
                upstream: "crm".to_owned(),
                principal: Some(format!("h:{:016x}", number * 7_919)),
                tenant: Some(format!("tenant-{}", number % 10)),
                asserted: false,
                client: Some(Client {
                    name: "load".to_owned(),
                    version: Some("1.0".to_owned()),
                }),
                protocol_version: Some("2025-11-25".to_owned()),
                started_at: at,
            };
            (Arc::new(session), 0)
        });
        let sessions = sessions.collect();
        Self {
            ids,
            random: SmallRng::seed_from_u64(7),
            words: WORDS.split_whitespace().collect(),
            sessions,
        }
    }

    fn text(&mut self, words: usize) -> String {
        let chosen: Vec<_> = (0..words)
            .map(|_| self.words[self.random.random_range(0..self.words.len())])
            .collect();
        chosen.join(" ")
    }

    fn call(&mut self) -> Call {
        let at = now();
        let id = self.ids.next(at);
        let which = self.random.random_range(0..self.sessions.len());
        let (session, seq) = &mut self.sessions[which];
        *seq += 1;
        let (session, seq) = (Arc::clone(session), *seq);
        let tool = match self.random.random_range(0..20_000) {
            0 => "rare_tool".to_owned(),
            number => format!("tool_{:02}", number % TOOLS),
        };
        let failed = self.random.random_range(0..100) == 0;
        let arguments = format!(
            r#"{{"query":"{}","limit":{}}}"#,
            self.text(3),
            self.random.random_range(1..100)
        );
        let result = format!(
            r#"{{"content":[{{"type":"text","text":"{}, {} {}"}}],"isError":{failed}}}"#,
            self.text(13),
            self.random.random_range(1000..1_000_000),
            self.text(2)
        );
        let exchange_id = uuid::Uuid::from_u64_pair(id.as_u64_pair().0, self.random.next_u64());
        let request_id = exchange_id.to_string();
        let trace = format!(
            "{:016x}{:016x}",
            self.random.next_u64(),
            self.random.next_u64()
        );
        let http = http(which, arguments.len(), result.len(), &request_id);
        let duration = self.random.random_range(300..40_000);
        Call {
            id,
            exchange_id,
            request_id: Some(request_id),
            session,
            seq,
            protocol_version: Some("2025-11-25".to_owned()),
            trace_id: Some(trace),
            span_id: None,
            jsonrpc_id: RawValue::from_string(seq.to_string()).expect("a number is JSON"),
            tool,
            request_bytes: arguments.len() as u64 + 92,
            response_bytes: result.len() as u64 + 40,
            arguments: Some(RawValue::from_string(arguments).expect("words are JSON")),
            outcome: if failed {
                Outcome::ToolError
            } else {
                Outcome::Ok
            },
            result: Some(RawValue::from_string(result).expect("words are JSON")),
            error: None,
            end: End::Complete,
            http_status: Some(200),
            started_at: at,
            first_byte_us: Some(duration - 80),
            duration_us: Some(duration),
            legs: 1,
            confirmation: None,
            catalogue: Some("sha256:0f4a6b".to_owned()),
            capture: Captured {
                request: Capture::Full,
                response: Capture::Full,
                reason: None,
            },
            events: vec![CallEvent {
                offset_ms: 1.0,
                kind: "response".to_owned(),
            }],
            flags: Vec::new(),
            sample: Some(Sample {
                probability: 0.05,
                selected: self.random.random_range(0..20) == 0,
            }),
            http,
        }
    }
}

fn now() -> i64 {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .expect("the clock is past 1970");
    i64::try_from(since.as_micros()).expect("the clock is before 292277")
}

/// The HTTP side of a call as clients and servers send it.
fn http(session: usize, arguments: usize, result: usize, request_id: &str) -> Http {
    let request = [
        ("host", "127.0.0.1:8080"),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("authorization", "[redacted:authorization:9f2c1ab0]"),
        (
            "mcp-session-id",
            &format!("[redacted:session:{session:08x}]"),
        ),
        ("mcp-protocol-version", "2025-11-25"),
        ("user-agent", "load/1.0"),
        ("content-length", &(arguments + 92).to_string()),
    ];
    let response = [
        ("content-type", "application/json"),
        ("content-length", &(result + 40).to_string()),
        ("date", "Mon, 30 Nov 2026 14:03:07 GMT"),
        ("x-request-id", request_id),
    ];
    Http {
        method: "POST".to_owned(),
        target: "/mcp".to_owned(),
        version: "HTTP/1.1".to_owned(),
        request_headers: request.into_iter().collect(),
        response_headers: response.into_iter().collect(),
    }
}
