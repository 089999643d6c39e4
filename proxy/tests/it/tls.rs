//! TLS on either side: certificates both ways, what is chosen, what is refused, what a break looks like.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use callbox_config::{ClientCertificate, ClientTls, ServerTls, Settings, UpstreamProtocol};
use callbox_net::Tasks;
use callbox_testkit::scripted::Scripted;
use http::Request;
use http_body_util::{BodyExt as _, Empty};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::harness::Callbox;
use super::http2;

/// A CA and what it issued, as files.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    dir: tempfile::TempDir,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            issuer: Issuer::new(params, key),
            pem,
            dir: tempfile::tempdir().unwrap(),
        }
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn ca(&self) -> PathBuf {
        self.write("ca.pem", &self.pem)
    }

    /// Certificate and key for a name, valid until that year.
    pub(crate) fn issue(&self, file: &str, name: &str, year: i32) -> (PathBuf, PathBuf) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (
            self.write(&format!("{file}.pem"), &certificate.pem()),
            self.write(&format!("{file}.key"), &key.serialize_pem()),
        )
    }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

fn chain(path: &Path) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_file_iter(path)
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

fn roots(authority: &Authority) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(chain(&authority.ca()).remove(0)).unwrap();
    roots
}

/// A client that trusts the authority and shows a certificate, if given.
async fn connect(
    callbox: &Callbox,
    authority: &Authority,
    alpn: &[&[u8]],
    identity: Option<&(PathBuf, PathBuf)>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots(authority));
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => builder
            .with_client_auth_cert(
                chain(certificate),
                PrivateKeyDer::from_pem_file(key).unwrap(),
            )
            .unwrap(),
    };
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    let tcp = TcpStream::connect(callbox.addr()).await?;
    TlsConnector::from(Arc::new(config))
        .connect(ServerName::try_from("localhost").unwrap(), tcp)
        .await
}

fn listen(settings: &mut Settings, (certificate, key): (PathBuf, PathBuf)) {
    settings.listen.tls = Some(ServerTls {
        certificate,
        key,
        client_ca: None,
        client_certificate: ClientCertificate::Required,
    });
}

const GET: &str = "GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n";

async fn plain_upstream() -> Scripted {
    Scripted::start(|_, mut peer| async move {
        while let Ok(asked) = peer.read_message().await {
            let line = asked.head.line;
            peer.send(format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{line}",
                line.len()
            ))
            .await?;
        }
        Ok(())
    })
    .await
    .unwrap()
}

async fn ask(tls: &mut TlsStream<TcpStream>) -> std::io::Result<String> {
    tls.write_all(GET.as_bytes()).await?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"GET /x HTTP/1.1") {
        if tls.read_buf(&mut answer).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(String::from_utf8(answer).unwrap())
}

#[tokio::test]
async fn alpn_decides_the_version() {
    let authority = Authority::new();
    let upstream = plain_upstream().await;
    let identity = authority.issue("server", "localhost", 2100);
    let callbox = Callbox::start(upstream.address(), |settings| listen(settings, identity));
    for alpn in [&[b"http/1.1".as_slice()][..], &[]] {
        let mut client = connect(&callbox, &authority, alpn, None).await.unwrap();
        assert!(
            ask(&mut client)
                .await
                .unwrap()
                .starts_with("HTTP/1.1 200 OK\r\n")
        );
    }
    let tasks = Tasks::default();
    let client = connect(&callbox, &authority, &[b"h2", b"http/1.1"], None)
        .await
        .unwrap();
    assert_eq!(client.get_ref().1.alpn_protocol(), Some(b"h2".as_slice()));
    let mut client = http2::over(client, &tasks).await;
    let request = Request::get("https://localhost/x")
        .body(Empty::<Bytes>::new())
        .unwrap();
    let mut answer = client.send_request(request).await.unwrap();
    assert_eq!(
        answer
            .body_mut()
            .frame()
            .await
            .unwrap()
            .unwrap()
            .into_data()
            .unwrap(),
        "GET /x HTTP/1.1"
    );
    // 2100-01-01T00:00:00Z
    assert_eq!(
        callbox.server.expiries(),
        [("listen".to_owned(), 4_102_444_800)]
    );
}

#[tokio::test]
async fn client_certificates_are_asked_for_as_configured() {
    let authority = Authority::new();
    let stranger = Authority::new();
    let upstream = plain_upstream().await;
    let good = authority.issue("good", "client", 2100);
    let bad = stranger.issue("bad", "client", 2100);
    for (policy, without) in [
        (ClientCertificate::Required, false),
        (ClientCertificate::Optional, true),
    ] {
        let identity = authority.issue("server", "localhost", 2100);
        let callbox = Callbox::start(upstream.address(), |settings| {
            listen(settings, identity);
            let tls = settings.listen.tls.as_mut().unwrap();
            (tls.client_ca, tls.client_certificate) = (Some(authority.ca()), policy);
        });
        for (identity, served) in [(Some(&good), true), (None, without), (Some(&bad), false)] {
            // With TLS 1.3 the client learns of the refusal when it reads.
            let answer = match connect(&callbox, &authority, &[], identity).await {
                Ok(mut client) => ask(&mut client).await,
                Err(error) => Err(error),
            };
            assert_eq!(
                answer.is_ok(),
                served,
                "{policy:?} {identity:?}: {answer:?}"
            );
        }
        let refused = if without { 1 } else { 2 };
        let traffic = callbox.server.traffic();
        callbox.server.drain();
        assert_eq!(traffic.handshakes_failed(), refused, "{policy:?}");
    }
}

#[tokio::test]
async fn a_silent_handshake_is_not_waited_for() {
    let authority = Authority::new();
    let upstream = plain_upstream().await;
    let identity = authority.issue("server", "localhost", 2100);
    let callbox = Callbox::start(upstream.address(), |settings| {
        listen(settings, identity);
        settings.listen.tls_timeout = Duration::from_millis(200);
    });
    let mut client = callbox.client().await;
    client.closed().await.unwrap();
}

#[tokio::test]
async fn a_break_is_a_truncation_not_an_end() {
    let authority = Authority::new();
    let (upstream, mut connections) = Scripted::by_hand().await.unwrap();
    let identity = authority.issue("server", "localhost", 2100);
    let callbox = Callbox::start(upstream.address(), |settings| listen(settings, identity));
    let mut client = connect(&callbox, &authority, &[], None).await.unwrap();
    client
        .write_all(b"GET / HTTP/1.0\r\nhost: h\r\n\r\n")
        .await
        .unwrap();
    let mut peer = connections.next().await.unwrap();
    peer.read_head().await.unwrap();
    peer.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n")
        .await
        .unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\nabc") {
        assert!(client.read_buf(&mut answer).await.unwrap() > 0);
    }
    drop(peer);
    assert!(
        client.read_buf(&mut answer).await.is_err(),
        "no close_notify: the client can tell"
    );
}

#[tokio::test]
async fn a_reload_takes_new_certificates_and_a_bad_file_keeps_the_old() {
    let authority = Authority::new();
    let upstream = plain_upstream().await;
    let identity = authority.issue("server", "localhost", 2100);
    let callbox = Callbox::start(upstream.address(), |settings| listen(settings, identity));
    let shown = async || {
        let client = connect(&callbox, &authority, &[], None).await.unwrap();
        client.get_ref().1.peer_certificates().unwrap()[0]
            .clone()
            .into_owned()
    };
    let first = shown().await;
    let (certificate, _) = authority.issue("server", "localhost", 2101);
    callbox.server.reload(&callbox.settings).unwrap();
    assert_ne!(shown().await, first);
    assert_eq!(callbox.server.expiries()[0].1, 4_133_980_800, "2101-01-01");
    let second = shown().await;
    std::fs::write(certificate, "not a certificate").unwrap();
    let error = callbox.server.reload(&callbox.settings).unwrap_err();
    assert_eq!(error.to_string(), "listen.tls");
    assert_eq!(shown().await, second);
}

/// A TLS upstream that answers with the request's first line, over HTTP/1.1; hands in whether a certificate was shown.
async fn tls_upstream(
    authority: &Authority,
    name: &str,
    ask_client: bool,
    tasks: &Tasks,
) -> (std::net::SocketAddr, tokio::sync::mpsc::Receiver<bool>) {
    let (certificate, key) = authority.issue("upstream", name, 2100);
    let builder = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = if ask_client {
        let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(
            Arc::new(roots(authority)),
            provider(),
        );
        builder.with_client_cert_verifier(verifier.build().unwrap())
    } else {
        builder.with_no_client_auth()
    };
    let config = builder
        .with_single_cert(
            chain(&certificate),
            PrivateKeyDer::from_pem_file(key).unwrap(),
        )
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, receiver) = tokio::sync::mpsc::channel(10);
    tasks.spawn("upstream", async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let Ok(mut tls) = TlsAcceptor::from(Arc::new(config.clone()))
                .accept(tcp)
                .await
            else {
                continue;
            };
            sender
                .send(tls.get_ref().1.peer_certificates().is_some())
                .await
                .unwrap();
            let mut asked = Vec::new();
            while !asked.ends_with(b"\r\n\r\n") {
                if tls.read_buf(&mut asked).await.unwrap_or(0) == 0 {
                    break;
                }
            }
            tls.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 15\r\n\r\nGET /x HTTP/1.1")
                .await
                .unwrap();
        }
    });
    (address, receiver)
}

#[tokio::test]
async fn an_https_upstream_is_verified() {
    let tasks = Tasks::default();
    let authority = Authority::new();
    let stranger = Authority::new();
    for (ca, name, server_name, served) in [
        (Some(authority.ca()), "localhost", Some("localhost"), true),
        (Some(authority.ca()), "127.0.0.1", None, true),
        (Some(stranger.ca()), "localhost", Some("localhost"), false),
        (Some(authority.ca()), "localhost", Some("other.test"), false),
        (None, "localhost", Some("localhost"), false),
    ] {
        let (address, _shown) = tls_upstream(&authority, name, false, &tasks).await;
        let text = format!("{ca:?} {name} {server_name:?}");
        let callbox = Callbox::start(address, |settings| {
            let upstream = &mut settings.upstreams[0];
            upstream.https = true;
            upstream.tls = ClientTls {
                ca,
                server_name: server_name.map(str::to_owned),
                ..ClientTls::default()
            };
        });
        let mut client = callbox.client().await;
        client.send(GET).await.unwrap();
        let answered = client.read_message().await.unwrap();
        if served {
            assert_eq!(answered.body, b"GET /x HTTP/1.1", "{text}");
        } else {
            assert_eq!(answered.head.status(), 502, "{text}");
            assert_eq!(
                answered.head.one("callbox-fault"),
                Some("upstream-unreachable"),
                "{text}"
            );
        }
    }
}

#[tokio::test]
async fn an_https_upstream_is_shown_a_certificate() {
    let tasks = Tasks::default();
    let authority = Authority::new();
    let (address, mut shown) = tls_upstream(&authority, "localhost", true, &tasks).await;
    let (certificate, key) = authority.issue("callbox", "callbox", 2100);
    let callbox = Callbox::start(address, |settings| {
        let upstream = &mut settings.upstreams[0];
        upstream.https = true;
        upstream.protocol = UpstreamProtocol::Http1;
        upstream.tls = ClientTls {
            ca: Some(authority.ca()),
            certificate: Some(certificate),
            key: Some(key),
            server_name: Some("localhost".to_owned()),
        };
    });
    let mut client = callbox.client().await;
    client.send(GET).await.unwrap();
    assert_eq!(client.read_message().await.unwrap().head.status(), 200);
    assert!(shown.recv().await.unwrap());
    assert_eq!(
        callbox.server.expiries(),
        [("up".to_owned(), 4_102_444_800)]
    );
}
