//! An MCP-shaped server to measure with: answers `tools/call` at once, as JSON or as SSE, in the size the query asks for.
//!
//! `bench-upstream [ADDRESS]`; prints `{"port":N}` when bound. Query: `mode=json|sse`, `size=BYTES`, `events=N`.
//! `GET /count` tells how many calls it answered; `GET /bytes?size=N` streams N bytes. One thread.

#![allow(
    clippy::print_stdout,
    reason = "a tool: its one line of output is its interface"
)]

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use tokio_util::task::TaskTracker;

/// Frames in order; the length is known when nothing is streamed.
struct Frames {
    waiting: std::vec::IntoIter<Bytes>,
    repeat: u64,
    streamed: bool,
}

impl Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.repeat > 0 {
            static BLOCK: [u8; 65_536] = [b'x'; 65_536];
            let block = Bytes::from_static(&BLOCK);
            let take = self.repeat.min(block.len() as u64);
            self.repeat -= take;
            let take = usize::try_from(take).unwrap_or(block.len());
            return Poll::Ready(Some(Ok(Frame::data(block.slice(..take)))));
        }
        Poll::Ready(self.waiting.next().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.repeat == 0 && self.waiting.as_slice().is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        if self.streamed {
            return SizeHint::default();
        }
        let waiting: usize = self.waiting.as_slice().iter().map(Bytes::len).sum();
        SizeHint::with_exact(self.repeat + waiting as u64)
    }
}

fn answer(frames: Vec<Bytes>, media_type: &'static str, streamed: bool) -> Response<Frames> {
    let mut response = Response::new(Frames {
        waiting: frames.into_iter(),
        repeat: 0,
        streamed,
    });
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

fn query<'a>(request: &'a Request<Incoming>, name: &str) -> Option<&'a str> {
    let pairs = request
        .uri()
        .query()?
        .split('&')
        .filter_map(|pair| pair.split_once('='));
    pairs
        .into_iter()
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value)
}

/// The id's spelling: the digits after the first `"id":`.
fn id_of(body: &[u8]) -> &[u8] {
    let key = b"\"id\":";
    let start = body
        .windows(key.len())
        .position(|window| window == key)
        .map_or(body.len(), |at| at + key.len());
    let rest = body.get(start..).unwrap_or_default();
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        b"null"
    } else {
        &rest[..digits]
    }
}

struct Server {
    calls: AtomicU64,
    texts: std::sync::Mutex<std::collections::HashMap<usize, Bytes>>,
}

impl Server {
    /// Plain words that do not compress to nothing.
    fn text(&self, size: usize) -> Bytes {
        let mut texts = self
            .texts
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        texts
            .entry(size)
            .or_insert_with(|| {
                let mut state = 88_172_645_463_325_252_u64;
                let mut text = String::with_capacity(size + 12);
                while text.len() < size {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    let word = [
                        "contact",
                        "Northwind",
                        "meeting",
                        "invoice",
                        "quarter",
                        "Oslo",
                        "renewal",
                        "pipeline",
                    ];
                    text.push_str(word[usize::try_from(state % 8).unwrap_or(0)]);
                    text.push(' ');
                    text.push_str(&(state % 997).to_string());
                    text.push(' ');
                }
                text.truncate(size);
                Bytes::from(text)
            })
            .clone()
    }

    async fn handle(&self, request: Request<Incoming>) -> Response<Frames> {
        if request.method() == Method::GET {
            let size = query(&request, "size").and_then(|size| size.parse().ok());
            if let (true, Some(size)) = (request.uri().path() == "/bytes", size) {
                let mut response = answer(Vec::new(), "application/octet-stream", false);
                response.body_mut().repeat = size;
                return response;
            }
            let count = self.calls.load(Ordering::Relaxed).to_string();
            return answer(vec![Bytes::from(count)], "text/plain", false);
        }
        let sse = query(&request, "mode") == Some("sse");
        let size = query(&request, "size")
            .and_then(|size| size.parse().ok())
            .unwrap_or(200);
        let events: u32 = query(&request, "events")
            .and_then(|events| events.parse().ok())
            .unwrap_or(1);
        let mut body = BytesMut::new();
        let mut incoming = request.into_body();
        while let Some(Ok(frame)) = incoming.frame().await {
            if let Ok(data) = frame.into_data() {
                body.extend_from_slice(&data);
            }
        }
        let id = id_of(&body);
        let method = |name: &[u8]| body.windows(name.len()).any(|window| window == name);
        if method(b"\"initialize\"") {
            let mut text = BytesMut::from(&b"{\"jsonrpc\":\"2.0\",\"id\":"[..]);
            text.extend_from_slice(id);
            text.extend_from_slice(b",\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"bench\",\"version\":\"1\"}}}");
            let session = format!("bench-{}", self.calls.fetch_add(1, Ordering::Relaxed));
            let mut response = answer(vec![text.freeze()], "application/json", false);
            if let Ok(session) = HeaderValue::from_str(&session) {
                response.headers_mut().insert("mcp-session-id", session);
            }
            return response;
        }
        self.calls.fetch_add(1, Ordering::Relaxed);
        let mut head = BytesMut::with_capacity(96);
        head.extend_from_slice(if sse {
            b"event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":"
        } else {
            b"{\"jsonrpc\":\"2.0\",\"id\":"
        });
        head.extend_from_slice(id);
        head.extend_from_slice(b",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"");
        let tail: &'static [u8] = if sse { b"\"}]}}\n\n" } else { b"\"}]}}" };
        let text = self.text(size);
        let mut frames = Vec::with_capacity(4);
        for n in 1..events {
            frames.push(Bytes::from(format!(
                "event: message\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":1,\"progress\":{n}}}}}\n\n"
            )));
        }
        if size <= 16_384 {
            head.extend_from_slice(&text);
            head.extend_from_slice(tail);
            frames.push(head.freeze());
        } else {
            frames.extend([head.freeze(), text, Bytes::from_static(tail)]);
        }
        answer(
            frames,
            if sse {
                "text/event-stream"
            } else {
                "application/json"
            },
            sse,
        )
    }
}

fn main() -> anyhow::Result<()> {
    let address = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let server = Arc::new(Server {
        calls: AtomicU64::new(0),
        texts: std::sync::Mutex::default(),
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async move {
        let listener = tokio::net::TcpListener::bind(&address).await?;
        println!("{{\"port\":{}}}", listener.local_addr()?.port());
        let tasks = TaskTracker::new();
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let server = Arc::clone(&server);
            tasks.spawn(async move {
                let service = service_fn(move |request| {
                    let server = Arc::clone(&server);
                    async move { Ok::<_, Infallible>(server.handle(request).await) }
                });
                // A client that leaves is no news to a benchmark.
                drop(
                    http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await,
                );
            });
        }
    })
}
