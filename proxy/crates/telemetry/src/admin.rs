//! The admin listener: `/metrics`, `/livez`, `/readyz`. On its own thread and runtime, loopback unless configured
//! otherwise, so a slow scrape or a stuck data path cannot touch the other.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::metrics::{Format, Metrics};

/// Scrapers and probes at once; more wait for a place.
const MAX_CONNECTIONS: usize = 64;
/// A request head that takes longer is given up.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a stop waits for a scrape under way.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// What `/readyz` answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// Whether traffic can be taken: listeners bound and not draining. A recorder that is behind does not make it false.
    pub ready: bool,
    /// A JSON object that says what is lost and why.
    pub detail: String,
}

/// How to serve.
pub struct AdminOptions {
    /// Bound already, so that a taken port is a start-up error.
    pub listener: TcpListener,
    /// `Authorization: Bearer …` asked for on `/metrics` and `/readyz`.
    pub token: Option<String>,
    /// What to expose.
    pub metrics: Metrics,
    /// Asked at each `/readyz`.
    pub readiness: Arc<dyn Fn() -> Readiness + Send + Sync>,
}

impl std::fmt::Debug for AdminOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AdminOptions")
            .field("listener", &self.listener)
            .field("token", &self.token.as_ref().map(|_| "…"))
            .finish_non_exhaustive()
    }
}

/// Why the admin listener could not start.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// The socket or the runtime could not be set up.
    #[error("admin listener: {0}")]
    Io(#[from] std::io::Error),
}

/// The running listener; dropping it without [`Admin::stop`] leaves it until the process ends.
#[derive(Debug)]
pub struct Admin {
    address: SocketAddr,
    stop: CancellationToken,
    thread: std::thread::JoinHandle<()>,
}

impl Admin {
    /// Starts the thread.
    ///
    /// # Errors
    /// The socket or the runtime could not be set up.
    pub fn start(options: AdminOptions) -> Result<Self, AdminError> {
        let AdminOptions {
            listener,
            token,
            metrics,
            readiness,
        } = options;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let service = Arc::new(Service {
            token,
            metrics,
            readiness,
        });
        let thread = std::thread::Builder::new()
            .name("callbox-admin".to_owned())
            .spawn(move || {
                runtime.block_on(serve(listener, service, stopped));
            })?;
        Ok(Self {
            address,
            stop,
            thread,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Finishes requests under way, for at most a second, and ends the thread.
    pub fn stop(self) {
        self.stop.cancel();
        if self.thread.join().is_err() {
            tracing::error!("the admin listener had panicked");
        }
    }
}

async fn serve(listener: TcpListener, service: Arc<Service>, stop: CancellationToken) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(%error, "the admin listener could not be served");
            return;
        }
    };
    let tasks = TaskTracker::new();
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file descriptors, mostly: wait for some to come back instead of spinning.
                tracing::warn!(%error, "the admin listener could not accept");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            break;
        };
        let service = Arc::clone(&service);
        let stop = stop.clone();
        tasks.spawn(async move {
            let answer = service_fn(move |request| {
                let response = service.answer(&request);
                async move { Ok::<_, Infallible>(response) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .serve_connection(TokioIo::new(stream), answer);
            tokio::pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = stop.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "an admin connection ended early");
            }
            drop(place);
        });
    }
    tasks.close();
    if tokio::time::timeout(STOP_TIMEOUT, tasks.wait())
        .await
        .is_err()
    {
        tracing::debug!("an admin request was cut at the stop");
    }
}

struct Service {
    token: Option<String>,
    metrics: Metrics,
    readiness: Arc<dyn Fn() -> Readiness + Send + Sync>,
}

impl Service {
    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let path = request.uri().path();
        if !matches!(path, "/metrics" | "/livez" | "/readyz") {
            return plain(
                StatusCode::NOT_FOUND,
                "callbox admin: /metrics, /livez, /readyz\n",
            );
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut refused = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
            refused
                .headers_mut()
                .insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refused;
        }
        if path == "/livez" {
            return plain(StatusCode::OK, "ok\n");
        }
        if !self.allowed(request) {
            let mut refused = plain(
                StatusCode::UNAUTHORIZED,
                "admin.token is set: send Authorization: Bearer TOKEN\n",
            );
            refused
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            return refused;
        }
        if path == "/readyz" {
            let Readiness { ready, detail } = (self.readiness)();
            let status = if ready {
                StatusCode::OK
            } else {
                StatusCode::SERVICE_UNAVAILABLE
            };
            return typed(status, "application/json", detail + "\n");
        }
        let accept = request
            .headers()
            .get(header::ACCEPT)
            .and_then(|value| value.to_str().ok());
        let format = Format::negotiate(accept);
        typed(
            StatusCode::OK,
            format.content_type(),
            self.metrics.render(format),
        )
    }

    fn allowed(&self, request: &Request<Incoming>) -> bool {
        let Some(token) = &self.token else {
            return true;
        };
        request
            .headers()
            .get(header::AUTHORIZATION)
            .and_then(|value| value.as_bytes().strip_prefix(b"Bearer "))
            .is_some_and(|given| same(given, token.as_bytes()))
    }
}

/// Equality whose time depends on the lengths only.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len()
        && a.iter()
            .zip(b)
            .fold(0, |differing, (x, y)| differing | (x ^ y))
            == 0
}

fn plain(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    typed(status, "text/plain; charset=utf-8", text.to_owned())
}

fn typed(status: StatusCode, media_type: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use std::io::{Read as _, Write as _};

    use super::*;

    fn start(token: Option<&str>, ready: bool) -> Admin {
        Admin::start(AdminOptions {
            listener: TcpListener::bind("127.0.0.1:0").unwrap(),
            token: token.map(str::to_owned),
            metrics: Metrics::new("0"),
            readiness: Arc::new(move || Readiness {
                ready,
                detail: r#"{"recorder":"ok"}"#.to_owned(),
            }),
        })
        .unwrap()
    }

    fn ask(admin: &Admin, head: &str) -> String {
        let mut stream = std::net::TcpStream::connect(admin.address()).unwrap();
        write!(stream, "{head}\r\nHost: admin\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn serves_its_three_pages_and_nothing_else() {
        let admin = start(None, true);
        assert!(ask(&admin, "GET /livez HTTP/1.1").starts_with("HTTP/1.1 200"));
        assert!(ask(&admin, "GET /metrics HTTP/1.1").contains("callbox_build_info"));
        assert!(ask(&admin, "GET /readyz HTTP/1.1").contains(r#"{"recorder":"ok"}"#));
        assert!(ask(&admin, "GET / HTTP/1.1").starts_with("HTTP/1.1 404"));
        assert!(
            ask(&admin, "POST /metrics HTTP/1.1\r\nContent-Length: 0").starts_with("HTTP/1.1 405")
        );
        let open = ask(
            &admin,
            "GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text; version=1.0.0",
        );
        assert!(open.ends_with("# EOF\n"), "{open}");
        admin.stop();
    }

    #[test]
    fn a_token_guards_all_but_liveness() {
        let admin = start(Some("s3cret"), true);
        assert!(ask(&admin, "GET /livez HTTP/1.1").starts_with("HTTP/1.1 200"));
        assert!(ask(&admin, "GET /metrics HTTP/1.1").starts_with("HTTP/1.1 401"));
        assert!(
            ask(
                &admin,
                "GET /metrics HTTP/1.1\r\nAuthorization: Bearer s3cre7"
            )
            .starts_with("HTTP/1.1 401")
        );
        assert!(
            ask(
                &admin,
                "GET /metrics HTTP/1.1\r\nAuthorization: Bearer s3cret"
            )
            .starts_with("HTTP/1.1 200")
        );
        admin.stop();
    }

    #[test]
    fn not_ready_says_so_by_status() {
        let admin = start(None, false);
        assert!(ask(&admin, "GET /readyz HTTP/1.1").starts_with("HTTP/1.1 503"));
        admin.stop();
    }

    #[test]
    fn a_silent_client_does_not_hold_the_stop() {
        let admin = start(None, true);
        let silent = std::net::TcpStream::connect(admin.address()).unwrap();
        assert!(ask(&admin, "GET /livez HTTP/1.1").starts_with("HTTP/1.1 200"));
        admin.stop();
        drop(silent);
    }
}
