//! The promise itself, as a law: whatever passes is the same on the other side, byte for byte, however it is cut and
//! however it ends. More cases: `PROPTEST_CASES=10000`.

use std::net::SocketAddr;

use callbox_proxy::tap::BodyEnd;
use callbox_testkit::peer::{Message, Peer};
use callbox_testkit::scripted::{Connections, Scripted};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, TestRunner};

use super::harness::{Callbox, Seen};

#[derive(Clone)]
enum Framing {
    /// Nothing says that there is a body, and there is none.
    None,
    Length(Vec<u8>),
    Chunked(Vec<Vec<u8>>),
    /// Responses only: the body ends with the connection.
    UntilClose(Vec<u8>),
}

impl std::fmt::Debug for Framing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (name, parts) = match self {
            Self::None => ("None", Vec::new()),
            Self::Length(body) => ("Length", vec![body.len()]),
            Self::Chunked(chunks) => ("Chunked", chunks.iter().map(Vec::len).collect()),
            Self::UntilClose(body) => ("UntilClose", vec![body.len()]),
        };
        write!(f, "{name}{parts:?}")
    }
}

impl Framing {
    fn field(&self) -> String {
        match self {
            Self::Length(body) => format!("Content-Length: {}\r\n", body.len()),
            Self::Chunked(_) => "Transfer-Encoding: chunked\r\n".to_owned(),
            Self::None | Self::UntilClose(_) => String::new(),
        }
    }

    fn body(&self) -> Vec<u8> {
        match self {
            Self::None => Vec::new(),
            Self::Length(body) | Self::UntilClose(body) => body.clone(),
            Self::Chunked(chunks) => chunks.concat(),
        }
    }

    fn wire(&self) -> Vec<u8> {
        match self {
            Self::Chunked(chunks) => {
                let mut wire = Vec::new();
                for chunk in chunks {
                    wire.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                    wire.extend_from_slice(chunk);
                    wire.extend_from_slice(b"\r\n");
                }
                wire.extend_from_slice(b"0\r\n\r\n");
                wire
            }
            other => other.body(),
        }
    }
}

/// Where a message breaks off: this share of its body's bytes on the wire, by FIN or RST.
#[derive(Clone, Copy, Debug)]
struct Break {
    share: f64,
    reset: bool,
}

#[derive(Clone, Debug)]
struct Case {
    method: &'static str,
    target: String,
    asked: Vec<(String, String)>,
    request: Framing,
    status: u16,
    answered: Vec<(String, String)>,
    response: Framing,
    broken: Option<Break>,
    /// Shares of the wire at which each direction is cut into separate writes.
    cuts: Vec<f64>,
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => vec(any::<u8>(), 0..200),
        2 => vec(any::<u8>(), 3000..6000),
        1 => (1_usize..300_000, any::<u8>()).prop_map(|(size, first)| {
            // Large ones are cheap to make and still differ at every place.
            (0..size).map(|at| first.wrapping_add(u8::try_from(at % 251).unwrap_or(0))).collect()
        }),
        2 => "(data: [a-z那é]{0,9}(\r\n|\n|\r)){0,8}(\n|\r\n)".prop_map(String::into_bytes),
    ]
}

fn framing(response: bool) -> impl Strategy<Value = Framing> {
    let chunks = vec(
        body().prop_filter("no empty chunk", |chunk| !chunk.is_empty()),
        0..5,
    );
    prop_oneof![
        2 => body().prop_map(Framing::Length),
        2 => chunks.prop_map(Framing::Chunked),
        1 => body().prop_map(move |body| if response { Framing::UntilClose(body) } else { Framing::None }),
    ]
}

fn fields() -> impl Strategy<Value = Vec<(String, String)>> {
    let name = prop_oneof![
        "[xX]-[a-zA-Z0-9!#$%&'*+.^_`|~-]{1,12}",
        Just("Mcp-Session-Id".to_owned()),
        Just("MCP-Protocol-Version".to_owned()),
        Just("mcp-param-Region".to_owned()),
        Just("Authorization".to_owned()),
        Just("Cookie".to_owned()),
        Just("set-cookie".to_owned()),
        Just("Content-Encoding".to_owned()),
        Just("WWW-Authenticate".to_owned()),
        Just("Content-Type".to_owned()),
        Just("Accept".to_owned()),
        Just("Date".to_owned()),
        Just("Via".to_owned()),
    ];
    let value = "([!-~é那]([ -~é]{0,20}[!-~])?)?";
    vec((name, value), 0..10)
}

fn case() -> impl Strategy<Value = Case> {
    let target = "/([a-zA-Z0-9._~!$&'()*+,;=:@|{}/-]|%[0-9a-fA-F]{2}){0,30}(\\?([a-zA-Z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-F]{2}){0,20})?";
    let broken = proptest::option::weighted(0.3, (0.0..1.0, any::<bool>()));
    (
        prop_oneof![
            Just("GET"),
            Just("POST"),
            Just("PUT"),
            Just("DELETE"),
            Just("PATCH"),
            Just("mCP")
        ],
        target,
        (fields(), framing(false)),
        prop_oneof![200_u16..204, Just(400), Just(404), Just(500), Just(599)],
        (fields(), framing(true)),
        broken,
        vec(0.0..1.0, 0..4),
    )
        .prop_map(
            |(method, target, (asked, request), status, (answered, response), broken, cuts)| Case {
                method,
                target,
                asked,
                request,
                status,
                answered,
                response,
                broken: broken.map(|(share, reset)| Break { share, reset }),
                cuts,
            },
        )
}

fn lines(fields: &[(String, String)]) -> String {
    let lines: Vec<_> = fields
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    lines.concat()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a share of a length"
)]
fn at(length: usize, share: f64) -> usize {
    ((length as f64) * share) as usize
}

/// Sends in as many writes as there are cuts, each given the time to leave by itself.
async fn send_cut(peer: &mut Peer, wire: &[u8], cuts: &[f64]) -> anyhow::Result<()> {
    let mut places: Vec<_> = cuts.iter().map(|share| at(wire.len(), *share)).collect();
    places.sort_unstable();
    places.push(wire.len());
    let mut from = 0;
    for place in places {
        peer.send(&wire[from..place]).await?;
        tokio::task::yield_now().await;
        from = place;
    }
    Ok(())
}

/// Fields by name in the order of their first appearance: what an HTTP library keeps.
fn grouped<'f>(fields: impl Iterator<Item = (&'f str, &'f str)>) -> Vec<(String, String)> {
    let fields: Vec<_> = fields.collect();
    let mut names: Vec<String> = Vec::new();
    for (name, _) in &fields {
        let name = name.to_ascii_lowercase();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let of = |name: &String| {
        let same = fields
            .iter()
            .filter(|(found, _)| found.eq_ignore_ascii_case(name));
        same.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect::<Vec<_>>()
    };
    names.iter().flat_map(of).collect()
}

fn sent(
    framing: &Framing,
    first: &[(&str, &str)],
    fields: &[(String, String)],
) -> Vec<(String, String)> {
    let framing = framing.field();
    let framing = framing.trim().split_once(": ");
    let fields = fields
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    grouped(
        framing
            .into_iter()
            .chain(first.iter().copied())
            .chain(fields),
    )
}

fn received(message: &Message) -> Vec<(String, String)> {
    let fields = message
        .head
        .fields
        .iter()
        .filter(|(name, _)| name != "x-request-id");
    grouped(fields.map(|(name, value)| (name.as_str(), value.as_str())))
}

struct Running {
    runtime: tokio::runtime::Runtime,
    callbox: Callbox,
    connections: Connections,
    _upstream: Scripted,
    done: usize,
}

impl Running {
    fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let (upstream, connections) = runtime.block_on(Scripted::by_hand()).unwrap();
        let callbox = Callbox::start(upstream.address(), |settings| {
            settings.upstreams[0].max_idle = 0;
        });
        Self {
            runtime,
            callbox,
            connections,
            _upstream: upstream,
            done: 0,
        }
    }

    fn check(&mut self, case: &Case) {
        let address = self.callbox.addr();
        let connections = &mut self.connections;
        self.runtime
            .block_on(pass(address, connections, case))
            .unwrap();
        let at = self.done;
        self.done += 1;
        let seen = self.callbox.observed.wait("it ends", |seen| {
            seen.get(at).filter(|seen| seen.end.is_some()).cloned()
        });
        check_record(case, &seen);
    }
}

async fn pass(
    address: SocketAddr,
    connections: &mut Connections,
    case: &Case,
) -> anyhow::Result<()> {
    let mut client = Peer::connect(address).await?;
    let mut wire = format!(
        "{} {} HTTP/1.1\r\n{}Host: h\r\n{}\r\n",
        case.method,
        case.target,
        case.request.field(),
        lines(&case.asked)
    )
    .into_bytes();
    wire.extend(case.request.wire());
    let asking = send_cut(&mut client, &wire, &case.cuts);
    let taking = async {
        let mut upstream = connections.next().await?;
        let asked = upstream.read_message().await?;
        anyhow::Ok((upstream, asked))
    };
    let (asked, taken) = tokio::join!(asking, taking);
    asked?;
    let (mut upstream, asked) = taken?;
    assert_eq!(
        asked.head.line,
        format!("{} {} HTTP/1.1", case.method, case.target)
    );
    assert_eq!(
        received(&asked),
        sent(&case.request, &[("Host", "h")], &case.asked)
    );
    assert_eq!(asked.body, case.request.body());

    let head = format!(
        "HTTP/1.1 {} So it is\r\n{}{}\r\n",
        case.status,
        case.response.field(),
        lines(&case.answered)
    );
    let body = case.response.wire();
    let kept = case
        .broken
        .map_or(body.len(), |broken| at(body.len(), broken.share));
    let mut wire = head.into_bytes();
    wire.extend_from_slice(&body[..kept]);
    let answering = async {
        send_cut(&mut upstream, &wire, &case.cuts).await?;
        if case.broken.is_some_and(|broken| broken.reset) {
            return upstream.reset();
        }
        drop(upstream);
        Ok(())
    };
    let reading = read_answer(&mut client, case, kept);
    let (answered, read) = tokio::join!(answering, reading);
    answered?;
    read
}

async fn read_answer(client: &mut Peer, case: &Case, kept: usize) -> anyhow::Result<()> {
    let whole = kept == case.response.wire().len();
    let reset = case.broken.is_some_and(|broken| broken.reset);
    if reset {
        // A reset may take with it what was still under way, the head included.
        while matches!(client.read_more().await, Ok(true)) {}
        return Ok(());
    }
    let head = client.read_head().await?;
    assert_eq!(head.line, format!("HTTP/1.1 {} So it is", case.status));
    if !whole && !matches!(case.response, Framing::UntilClose(_)) {
        let tail = client.read_to_end().await?;
        match &case.response {
            Framing::Length(body) => assert_eq!(tail, &body[..kept]),
            _ => assert!(
                !tail.ends_with(b"0\r\n\r\n") || tail.len() > 5,
                "no clean end: {tail:?}"
            ),
        }
        return Ok(());
    }
    let answered = client.read_body(head).await?;
    let mut expected = sent(&case.response, &[], &case.answered);
    let mut body = case.response.body();
    if let Framing::UntilClose(_) = case.response {
        body.truncate(kept);
        expected.push(("transfer-encoding".to_owned(), "chunked".to_owned()));
    }
    assert_eq!(received(&answered), expected);
    assert_eq!(answered.body, body);
    Ok(())
}

fn check_record(case: &Case, seen: &Seen) {
    assert_eq!(seen.target, case.target);
    assert_eq!(seen.request, case.request.body());
    assert_eq!(seen.request_end, Some(BodyEnd::Complete));
    assert!(seen.lost.is_empty());
    let body = case.response.body();
    match case.broken {
        None => {
            assert_eq!(seen.response, body);
            assert_eq!(
                (seen.end, seen.status),
                (Some(BodyEnd::Complete), Some(case.status))
            );
        }
        Some(_) => assert!(body.starts_with(&seen.response)),
    }
}

#[test]
fn whatever_passes_is_the_same_on_the_other_side() {
    let config = Config::default();
    let regressions = FileFailurePersistence::Direct("tests/it/transparency.proptest-regressions");
    let config = Config {
        cases: config.cases.max(500),
        max_shrink_iters: 500,
        failure_persistence: Some(Box::new(regressions)),
        ..config
    };
    let running = std::cell::RefCell::new(Running::start());
    let mut runner = TestRunner::new(config);
    let result = runner.run(&case(), |case| {
        let mut running = running.borrow_mut();
        let checked =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| running.check(&case)));
        if let Err(panic) = checked {
            // Whatever state the failed case left behind must not tinge the smaller ones.
            *running = Running::start();
            let reason = panic
                .downcast_ref::<String>()
                .cloned()
                .unwrap_or_else(|| "panicked".to_owned());
            return Err(TestCaseError::fail(reason));
        }
        Ok(())
    });
    result.unwrap();
}
