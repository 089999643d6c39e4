//! The data path alone, with an observer that throws everything away: for profiles and for measuring what the path
//! itself costs. Usage: `path LISTEN UPSTREAM-PORT [WORKERS]`.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a tool for developers, not shipped"
)]

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use callbox_config as config;
use callbox_proxy::Server;
use callbox_proxy::tap::{DropReason, TapLimits, tap};

/// As in the shipped binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let listen: SocketAddr = arguments.next().unwrap().parse().unwrap();
    let port: u16 = arguments.next().unwrap().parse().unwrap();
    let workers: usize = arguments
        .next()
        .map_or(1, |workers| workers.parse().unwrap());
    let (give, given) = sync_channel(1);
    std::thread::spawn(move || {
        let (tap, mut receiver) = tap(
            TapLimits {
                events: 65_536,
                bytes: 64 << 20,
            },
            std::thread::current(),
        );
        give.send(tap).unwrap();
        let mut events = Vec::new();
        let mut taken = 0_u64;
        while receiver.take(&mut events, Duration::from_secs(1)) {
            taken += events.len() as u64;
            events.clear();
        }
        eprintln!("taken {taken}");
    });
    let tap = given.recv().unwrap();
    let server = Server::start(&settings(listen, port, workers), &tap).unwrap();
    eprintln!("listening on {}", server.addr());
    loop {
        std::thread::park_timeout(Duration::from_secs(5));
        let counts = tap.counts();
        eprintln!(
            "exchanges {} dropped {:?} connections {}",
            counts.exchanges(),
            DropReason::ALL
                .map(|reason| counts.exchanges_dropped(reason) + counts.chunks_dropped(reason)),
            server.traffic().connections_open(),
        );
    }
}

fn settings(address: SocketAddr, port: u16, workers: usize) -> config::Settings {
    config::Settings {
        data: "unused".into(),
        listen: config::Listen {
            address,
            tls: None,
            h2c: false,
            workers: NonZeroUsize::new(workers).unwrap(),
            max_connections: 10_000,
            tls_timeout: Duration::from_secs(10),
            request_head_timeout: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(30),
            max_request_body: None,
            half_close: config::HalfClose::Gone,
            stamp: config::Stamp::RequestId,
        },
        upstreams: vec![config::Upstream {
            name: "up".to_owned(),
            https: false,
            host: "127.0.0.1".to_owned(),
            port,
            path_prefix: None,
            match_host: None,
            protocol: config::UpstreamProtocol::Auto,
            tls: config::ClientTls::default(),
            connect_timeout: Duration::from_secs(5),
            tls_timeout: Duration::from_secs(5),
            response_head_timeout: None,
            idle_timeout: Duration::from_mins(1),
            max_idle: 256,
            host_header: config::HostHeader::Keep,
            forwarded: false,
        }],
        record: config::Record {
            payloads: config::Payloads::Redacted,
            max_message_bytes: 1 << 20,
            queue_events: 65_536,
            queue_bytes: 64 << 20,
            durability: config::Durability::Commit,
            durability_timeout: Duration::from_secs(1),
            max_sessions: 1000,
            session_idle: Duration::from_mins(1),
            redact: config::Redact {
                keys: Vec::new(),
                detectors: Vec::new(),
                pointers: Vec::new(),
            },
            retention: config::Retention {
                max_age: Duration::from_mins(1),
                max_bytes: 1 << 30,
            },
        },
        identity: config::Identity {
            principal: config::IdentitySource::Header("authorization".to_owned()),
            tenant: None,
            conversation: Vec::new(),
        },
        admin: config::Admin {
            address,
            token: None,
        },
        log: config::Log {
            level: "info".to_owned(),
            format: config::LogFormat::Human,
        },
    }
}
