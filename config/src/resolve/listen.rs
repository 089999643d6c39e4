//! `[listen]`.

use std::num::NonZeroUsize;
use std::time::Duration;

use super::Cx;
use crate::pem::Pem;
use crate::raw;
use crate::settings::{ClientCertificate, HalfClose, Listen, ServerTls, Stamp};

pub(super) fn resolve(cx: &mut Cx<'_>, raw: &raw::Listen) -> Listen {
    let tick = Duration::from_millis(1);
    Listen {
        address: cx.address("listen.address", &raw.address),
        tls: raw.tls.as_ref().and_then(|tls| server_tls(cx, tls)),
        h2c: raw.h2c,
        workers: workers(raw.workers),
        max_connections: raw.max_connections,
        tls_timeout: cx.duration("listen.tls_timeout", &raw.tls_timeout, tick),
        request_head_timeout: cx.duration(
            "listen.request_head_timeout",
            &raw.request_head_timeout,
            tick,
        ),
        drain_timeout: cx.duration("listen.drain_timeout", &raw.drain_timeout, Duration::ZERO),
        max_request_body: raw
            .max_request_body
            .as_ref()
            .map(|size| cx.size("listen.max_request_body", size, 1..=1 << 50)),
        half_close: match raw.half_close {
            raw::HalfClose::Gone => HalfClose::Gone,
            raw::HalfClose::Wait => HalfClose::Wait,
        },
        stamp: match raw.stamp {
            raw::Stamp::RequestId => Stamp::RequestId,
            raw::Stamp::None => Stamp::None,
        },
    }
}

/// As configured, or one for each core.
pub(crate) fn workers(configured: Option<usize>) -> NonZeroUsize {
    configured
        .and_then(NonZeroUsize::new)
        .or_else(|| std::thread::available_parallelism().ok())
        .unwrap_or(NonZeroUsize::MIN)
}

fn server_tls(cx: &mut Cx<'_>, raw: &raw::ServerTls) -> Option<ServerTls> {
    for (key, path, words) in [
        (
            "listen.tls.certificate",
            &raw.certificate,
            Pem::Certificate.words(),
        ),
        ("listen.tls.key", &raw.key, Pem::Key.words()),
    ] {
        if path.is_none() {
            cx.missing(key, words);
        }
    }
    let client_ca = cx.pem(
        "listen.tls.client_ca",
        raw.client_ca.as_ref(),
        Pem::Certificate,
    );
    if raw.client_certificate.is_some()
        && client_ca.is_none()
        && cx.all_sound(&["listen.tls.client_ca"])
    {
        let problem = cx
            .problem(
                "listen.tls.client_certificate",
                "has no effect without client_ca",
            )
            .fix("set client_ca, or remove this key");
        cx.findings.push(problem);
    }
    let certificate = cx.pem(
        "listen.tls.certificate",
        raw.certificate.as_ref(),
        Pem::Certificate,
    );
    let key = cx.pem("listen.tls.key", raw.key.as_ref(), Pem::Key);
    Some(ServerTls {
        certificate: certificate?,
        key: key?,
        client_ca,
        client_certificate: match raw.client_certificate {
            Some(raw::ClientCertificate::Required) | None => ClientCertificate::Required,
            Some(raw::ClientCertificate::Optional) => ClientCertificate::Optional,
        },
    })
}
