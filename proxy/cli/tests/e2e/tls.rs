//! TLS and HTTP/2 on both sides of the process, and new certificates without a restart.

use anyhow::{Context as _, Result};
use bytes::Bytes;
use callbox_testkit::blocking::h2;
use callbox_testkit::process::{Callbox, until};
use http_body_util::Full;
use hyper::{Request, Response, Version};
use tempfile::TempDir;

use crate::certificates::Authority;
use crate::mcp;
use crate::stand::{binary, file};

const NAME: &str = "mcp.example.test";

/// An upstream that says how it was asked.
fn upstream(tls: Option<std::sync::Arc<rustls::ServerConfig>>) -> Result<h2::Upstream> {
    h2::Upstream::start(tls, |asked| {
        let host = asked
            .head
            .uri
            .authority()
            .map(ToString::to_string)
            .or_else(|| {
                asked
                    .head
                    .headers
                    .get("host")
                    .and_then(|host| host.to_str().ok())
                    .map(str::to_owned)
            });
        let text = format!(
            "{:?} {} certificate {}",
            asked.head.version,
            host.unwrap_or_default(),
            asked.certificate
        );
        Response::new(Full::from(mcp::result("1", &text)))
    })
}

/// `callbox proxy` with this file.
fn start(folder: &TempDir, text: &str) -> Result<Callbox> {
    let config = folder.path().join("callbox.toml");
    std::fs::write(&config, text)?;
    Callbox::proxy(binary(), &config, &folder.path().join("data"))
}

fn call() -> Result<Request<Full<Bytes>>> {
    Ok(Request::post(format!("https://{NAME}/mcp"))
        .header("host", NAME)
        .header("content-type", "application/json")
        .body(Full::from(mcp::call("1", "search", "{}")))?)
}

/// For HTTP/2, where the authority says what `Host` says in HTTP/1.1.
fn call2() -> Result<Request<Full<Bytes>>> {
    let mut request = call()?;
    request.headers_mut().remove("host");
    *request.version_mut() = Version::HTTP_2;
    Ok(request)
}

fn finish(mut callbox: Callbox) -> Result<()> {
    let (_, _, dropped) = callbox.reconcile()?;
    anyhow::ensure!(dropped == 0.0, "{dropped} dropped");
    anyhow::ensure!(callbox.stop()?.success(), "{}", callbox.log()?);
    Ok(())
}

#[test]
fn certificates_are_shown_and_checked_both_ways_over_http2() -> Result<()> {
    let folder = TempDir::new()?;
    let outer = Authority::new(folder.path(), "outer")?;
    let inner = Authority::new(folder.path(), "inner")?;
    let server = outer.issue("server", NAME, 2090)?;
    let client = outer.issue("client", "agent", 2090)?;
    let stranger = inner.issue("stranger", "agent", 2090)?;
    let backend = inner.issue("backend", NAME, 2090)?;
    let proxy = inner.issue("proxy", "callbox", 2090)?;
    let upstream = upstream(Some(inner.server(&backend)?))?;
    let url = format!("https://127.0.0.1:{}", upstream.address().port());
    let keys = format!(
        "[upstream.tls]\nca = \"{}\"\nserver_name = \"{NAME}\"\n{}",
        inner.ca.display(),
        proxy.keys()
    );
    let listen = format!(
        "[listen.tls]\n{}client_ca = \"{}\"\nclient_certificate = \"required\"",
        server.keys(),
        outer.ca.display()
    );
    let callbox = start(&folder, &file(&url, &keys, &listen))?;

    let mut shown = h2::Client::tls(
        callbox.listen,
        NAME,
        outer.client(&["h2", "http/1.1"], Some(&client))?,
    )?;
    assert!(shown.is_http2());
    let (head, text) = shown.ask(call2()?)?;
    assert_eq!(head.status, 200, "{text}");
    assert!(
        text.contains(&format!("HTTP/2.0 {NAME} certificate true")),
        "{text}"
    );

    for identity in [None, Some(&stranger)] {
        let refused = h2::Client::tls(callbox.listen, NAME, outer.client(&["http/1.1"], identity)?)
            .and_then(|mut client| client.ask(call()?));
        assert!(refused.is_err(), "no certificate, or another authority's");
    }
    let calls = callbox.calls_when(1)?;
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0]["outcome"], "ok");
    finish(callbox)
}

#[test]
fn each_side_speaks_its_own_version() -> Result<()> {
    let folder = TempDir::new()?;
    let authority = Authority::new(folder.path(), "ca")?;
    let server = authority.issue("server", NAME, 2090)?;
    let upstream = upstream(None)?;
    let url = format!("http://{}", upstream.address());
    let listen = format!("[listen]\nh2c = true\n[listen.tls]\n{}", server.keys());
    let callbox = start(&folder, &file(&url, "protocol = \"http2\"", &listen))?;
    // HTTP/1.1 in, HTTP/2 out.
    let mut old = h2::Client::tls(callbox.listen, NAME, authority.client(&["http/1.1"], None)?)?;
    assert!(!old.is_http2());
    let mut request = call()?;
    *request.uri_mut() = "/mcp".parse()?;
    let (_, text) = old.ask(request)?;
    assert!(text.contains(&format!("HTTP/2.0 {NAME}")), "{text}");
    finish(callbox)?;

    // HTTP/2 without TLS in, HTTP/1.1 out.
    let callbox = start(
        &folder,
        &file(&url, "protocol = \"http1\"", "[listen]\nh2c = true"),
    )?;
    let mut new = h2::Client::h2c(callbox.listen)?;
    let (_, text) = new.ask(call2()?)?;
    assert!(text.contains(&format!("HTTP/1.1 {NAME}")), "{text}");
    let mut plain = callbox_testkit::blocking::Client::connect(callbox.listen)?;
    assert_eq!(
        plain
            .ask(mcp::post(&mcp::call("1", "search", "{}")))?
            .status(),
        200,
        "HTTP/1.1 still works"
    );
    assert_eq!(callbox.calls_when(3)?.len(), 3);
    finish(callbox)
}

#[test]
fn http2_without_tls_is_refused_unless_asked_for() -> Result<()> {
    let folder = TempDir::new()?;
    let upstream = upstream(None)?;
    let url = format!("http://{}", upstream.address());
    let callbox = start(&folder, &file(&url, "", ""))?;
    let refused = h2::Client::h2c(callbox.listen).and_then(|mut client| client.ask(call2()?));
    assert!(refused.is_err());
    finish(callbox)
}

#[test]
fn certificates_are_taken_from_their_files_again_on_sighup() -> Result<()> {
    let folder = TempDir::new()?;
    let old = Authority::new(folder.path(), "old")?;
    let new = Authority::new(folder.path(), "new")?;
    let upstream = upstream(None)?;
    let server = old.issue("server", NAME, 2090)?;
    let url = format!("http://{}", upstream.address());
    let callbox = start(
        &folder,
        &file(&url, "", &format!("[listen.tls]\n{}", server.keys())),
    )?;
    let expiry = || callbox.metric("callbox_certificate_expiry_timestamp_seconds", "");
    let before = expiry()?;
    assert!(before > 3.7e9, "2090 in seconds: {before}");

    let mut kept = h2::Client::tls(callbox.listen, NAME, old.client(&["h2"], None)?)?;
    assert_eq!(kept.ask(call2()?)?.0.status, 200);
    assert!(h2::Client::tls(callbox.listen, NAME, new.client(&["h2"], None)?).is_err());

    new.issue("server", NAME, 2080)?;
    callbox.signal("HUP")?;
    let trusting = new.client(&["h2"], None)?;
    let mut client = until("the new certificate is shown", || {
        Ok(h2::Client::tls(callbox.listen, NAME, trusting.clone()).ok())
    })?;
    assert_eq!(client.ask(call2()?)?.0.status, 200);
    assert!(h2::Client::tls(callbox.listen, NAME, old.client(&["h2"], None)?).is_err());
    assert_eq!(kept.ask(call2()?)?.0.status, 200, "open connections stay");
    until("the expiry follows", || {
        Ok((expiry()? < before).then_some(()))
    })?;

    // A key that does not fit is refused, and the certificate in use stays.
    std::fs::copy(old.issue("other", NAME, 2090)?.key, &server.key)?;
    callbox.signal("HUP")?;
    until("the refusal shows", || {
        Ok((callbox.metric("callbox_config_reload_ok", "")? == 0.0).then_some(()))
    })?;
    let mut client =
        h2::Client::tls(callbox.listen, NAME, trusting).context("still the second certificate")?;
    assert_eq!(client.ask(call2()?)?.0.status, 200);
    finish(callbox)
}
