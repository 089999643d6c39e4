//! A running data path with an observer that keeps what it is offered.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use anyhow::Result;
use callbox_config as config;
use callbox_proxy::Server;
use callbox_proxy::tap::{BodyEnd, Event, ExchangeId, Side, Tap, TapLimits, tap};
use callbox_testkit::peer::{Message, PATIENCE, Peer};
use callbox_testkit::scripted::{Connections, Scripted};
use tokio::sync::oneshot;

/// What the observer saw of one exchange, put together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) target: String,
    pub(crate) request_id: Option<String>,
    pub(crate) request_headers: String,
    pub(crate) request: Vec<u8>,
    pub(crate) request_end: Option<BodyEnd>,
    pub(crate) status: Option<u16>,
    pub(crate) fault: Option<&'static str>,
    pub(crate) response_headers: String,
    pub(crate) response: Vec<u8>,
    pub(crate) end: Option<BodyEnd>,
    pub(crate) lost: Vec<Side>,
    pub(crate) events: Vec<&'static str>,
}

#[derive(Debug, Default)]
struct Books {
    ids: Vec<ExchangeId>,
    seen: Vec<Seen>,
    flushes: Vec<oneshot::Sender<()>>,
}

/// The observer's books, readable by the test.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observed(Arc<(Mutex<Books>, Condvar)>);

/// What the observer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Observer {
    /// Takes everything and commits at once.
    Prompt,
    /// Takes everything and keeps the commits for the test.
    Manual,
    /// Takes nothing at all.
    Stalled,
}

impl Observed {
    fn note(&self, event: Event, observer: Observer) {
        let (books, changed) = &*self.0;
        let mut books = books.lock().unwrap();
        let id = match &event {
            Event::Request(id, _)
            | Event::RequestChunk(id, _)
            | Event::RequestEnd(id, _)
            | Event::Response(id, _)
            | Event::ResponseChunk(id, ..)
            | Event::Lost(id, _)
            | Event::End(id, ..)
            | Event::Flush(id, _) => *id,
        };
        if let Event::Request(..) = event {
            assert!(!books.ids.contains(&id), "an exchange begins once");
            books.ids.push(id);
            books.seen.push(Seen::default());
        }
        let at = books
            .ids
            .iter()
            .rposition(|known| *known == id)
            .expect("its request came first");
        let mut flush = None;
        let seen = &mut books.seen[at];
        assert!(
            seen.end.is_none() || matches!(event, Event::Flush(..)),
            "nothing comes after the end: {event:?}"
        );
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let name = match event {
            Event::Request(_, head) => {
                (seen.target, seen.request_id) = (head.target, head.request_id);
                seen.request_headers = text(head.headers.0);
                "request"
            }
            Event::RequestChunk(_, chunk) => {
                seen.request.extend_from_slice(&chunk);
                "request chunk"
            }
            Event::RequestEnd(_, end) => {
                seen.request_end = Some(end);
                "request end"
            }
            Event::Response(_, head) => {
                (seen.status, seen.fault) = (Some(head.status.as_u16()), head.fault);
                seen.response_headers = text(head.headers.0);
                "response"
            }
            Event::ResponseChunk(_, _, chunk) => {
                seen.response.extend_from_slice(&chunk);
                "response chunk"
            }
            Event::Lost(_, side) => {
                seen.lost.push(side);
                "lost"
            }
            Event::End(_, _, end) => {
                seen.end = Some(end);
                "end"
            }
            Event::Flush(_, sender) => {
                flush = Some(sender);
                "flush"
            }
        };
        seen.events.push(name);
        if let (Some(sender), Observer::Manual) = (flush, observer) {
            books.flushes.push(sender);
        }
        drop(books);
        changed.notify_all();
    }

    /// All exchanges so far.
    pub(crate) fn exchanges(&self) -> Vec<Seen> {
        self.0.0.lock().unwrap().seen.clone()
    }

    /// Waits until the books say so. Blocks: for use where the test has nothing else to drive.
    pub(crate) fn wait<T>(&self, what: &str, until: impl Fn(&[Seen]) -> Option<T>) -> T {
        let (books, changed) = &*self.0;
        let start = Instant::now();
        let mut books = books.lock().unwrap();
        loop {
            if let Some(found) = until(&books.seen) {
                return found;
            }
            let left = PATIENCE
                .checked_sub(start.elapsed())
                .unwrap_or_else(|| panic!("{what}: not within {PATIENCE:?}: {:#?}", books.seen));
            books = changed.wait_timeout(books, left).unwrap().0;
        }
    }

    /// The only exchange, once it has ended.
    pub(crate) fn ended(&self) -> Seen {
        self.wait("the exchange ends", |seen| match seen {
            [only] if only.end.is_some() => Some(only.clone()),
            _ => None,
        })
    }

    /// Commits what waits, once there is something.
    pub(crate) fn commit(&self) {
        let (books, changed) = &*self.0;
        let mut books = books.lock().unwrap();
        let start = Instant::now();
        while books.flushes.is_empty() {
            let left = PATIENCE
                .checked_sub(start.elapsed())
                .expect("somebody waits for a commit");
            books = changed.wait_timeout(books, left).unwrap().0;
        }
        for flush in books.flushes.drain(..) {
            // The connection may be gone meanwhile.
            flush.send(()).unwrap_or_default();
        }
    }
}

/// A running data path.
#[derive(Debug)]
pub(crate) struct Callbox {
    pub(crate) server: Server,
    pub(crate) tap: Tap,
    pub(crate) observed: Observed,
    pub(crate) settings: config::Settings,
}

impl Callbox {
    /// In front of one upstream, with changed settings.
    pub(crate) fn start(upstream: SocketAddr, change: impl FnOnce(&mut config::Settings)) -> Self {
        Self::with(upstream, Observer::Prompt, change)
    }

    pub(crate) fn with(
        upstream: SocketAddr,
        observer: Observer,
        change: impl FnOnce(&mut config::Settings),
    ) -> Self {
        let mut settings = settings(upstream);
        change(&mut settings);
        let books = Observed::default();
        let limits = TapLimits {
            events: settings.record.queue_events,
            bytes: settings.record.queue_bytes,
        };
        let (give, given) = std::sync::mpsc::sync_channel(1);
        let noted = books.clone();
        std::thread::spawn(move || {
            let (tap, mut receiver) = tap(limits, std::thread::current());
            give.send(tap).unwrap();
            if observer == Observer::Stalled {
                // The receiver lives on, and nobody looks.
                loop {
                    std::thread::park();
                }
            }
            let mut events = Vec::new();
            while receiver.take(&mut events, Duration::from_secs(1)) {
                for event in events.drain(..) {
                    noted.note(event, observer);
                }
            }
        });
        let tap = given.recv().unwrap();
        let server = Server::start(&settings, &tap).unwrap();
        Self {
            server,
            tap,
            observed: books,
            settings,
        }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    pub(crate) async fn client(&self) -> Peer {
        Peer::connect(self.addr()).await.unwrap()
    }
}

/// A data path and an upstream to work by hand.
pub(crate) async fn pair(
    change: impl FnOnce(&mut config::Settings),
) -> (Callbox, Connections, Scripted) {
    let (upstream, connections) = Scripted::by_hand().await.unwrap();
    let callbox = Callbox::start(upstream.address(), change);
    (callbox, connections, upstream)
}

/// Sends `request`, lets the upstream answer `response`, and returns what each side got.
pub(crate) async fn exchange(
    request: impl AsRef<[u8]>,
    response: impl AsRef<[u8]>,
) -> (Message, Message, Callbox) {
    let (callbox, mut connections, _upstream) = pair(|_| {}).await;
    let (asked, answered) = over(&callbox, &mut connections, request, response)
        .await
        .unwrap();
    (asked, answered, callbox)
}

/// The same over a running one, on a new connection.
pub(crate) async fn over(
    callbox: &Callbox,
    connections: &mut Connections,
    request: impl AsRef<[u8]>,
    response: impl AsRef<[u8]>,
) -> Result<(Message, Message)> {
    let mut client = callbox.client().await;
    client.send(request).await?;
    let mut upstream = connections.next().await?;
    let asked = upstream.read_message().await?;
    upstream.send(response).await?;
    let answered = client.read_message().await?;
    Ok((asked, answered))
}

/// Settings in front of one upstream, with the waits of a test.
pub(crate) fn settings(upstream: SocketAddr) -> config::Settings {
    let minute = Duration::from_mins(1);
    config::Settings {
        data: "unused".into(),
        listen: config::Listen {
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            tls: None,
            h2c: false,
            workers: NonZeroUsize::MIN,
            max_connections: 1000,
            tls_timeout: minute,
            request_head_timeout: minute,
            drain_timeout: minute,
            max_request_body: None,
            half_close: config::HalfClose::Gone,
            stamp: config::Stamp::RequestId,
        },
        upstreams: vec![upstream_settings("up", upstream)],
        record: config::Record {
            payloads: config::Payloads::Redacted,
            max_message_bytes: 1 << 20,
            queue_events: 65_536,
            queue_bytes: 64 << 20,
            durability: config::Durability::Commit,
            durability_timeout: minute,
            max_sessions: 1000,
            session_idle: minute,
            redact: config::Redact {
                keys: Vec::new(),
                detectors: Vec::new(),
                pointers: Vec::new(),
            },
            retention: config::Retention {
                max_age: minute,
                max_bytes: 1 << 30,
            },
        },
        identity: config::Identity {
            principal: config::IdentitySource::Header("authorization".to_owned()),
            tenant: None,
            conversation: Vec::new(),
        },
        admin: config::Admin {
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            token: None,
        },
        log: config::Log {
            level: "info".to_owned(),
            format: config::LogFormat::Human,
        },
    }
}

pub(crate) fn upstream_settings(name: &str, address: SocketAddr) -> config::Upstream {
    let minute = Duration::from_mins(1);
    config::Upstream {
        name: name.to_owned(),
        https: false,
        host: address.ip().to_string(),
        port: address.port(),
        path_prefix: None,
        match_host: None,
        protocol: config::UpstreamProtocol::Auto,
        tls: config::ClientTls::default(),
        connect_timeout: minute,
        tls_timeout: minute,
        response_head_timeout: None,
        idle_timeout: minute,
        max_idle: 32,
        host_header: config::HostHeader::Keep,
        forwarded: false,
    }
}
