//! Which upstream a request goes to: by host and path prefix, the most specific first. The path is not changed.

use std::sync::Arc;

use callbox_config as config;
use callbox_net::tls::{self, Dated, IdentityFiles, TlsError};
use callbox_net::{Dialer, Host, Pool, PoolLimits, Protocol, Tasks};
use http::HeaderValue;

use crate::tee::RequestTee;
use crate::traffic::{Traffic, UpstreamTraffic};

/// One upstream, ready to send to.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) name: Arc<str>,
    pub(crate) settings: config::Upstream,
    /// One a worker.
    pools: Vec<Arc<Pool<RequestTee>>>,
    /// What goes on as `Host` when it is rewritten, and as `:authority`.
    pub(crate) authority: HeaderValue,
    pub(crate) traffic: Arc<UpstreamTraffic>,
    /// End of the client certificate's validity.
    pub(crate) expires: Option<i64>,
}

/// An upstream that cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum RouteError {
    /// Its TLS files or name are not usable.
    #[error("upstream {upstream:?}: TLS")]
    Tls {
        /// The upstream.
        upstream: String,
        /// What is wrong.
        source: TlsError,
    },
    /// Its host cannot stand in a `Host` field.
    #[error("upstream {upstream:?}: {host:?} is not a host that can be named in a header")]
    Host {
        /// The upstream.
        upstream: String,
        /// The host.
        host: String,
        /// The parser's words.
        source: http::header::InvalidHeaderValue,
    },
}

impl Upstream {
    fn new(
        settings: &config::Upstream,
        tasks: &[Tasks],
        traffic: &Traffic,
    ) -> Result<Self, RouteError> {
        let failed = |source| RouteError::Tls {
            upstream: settings.name.clone(),
            source,
        };
        let tls = if settings.https {
            Some(client_tls(settings).map_err(failed)?)
        } else {
            None
        };
        let expires = tls.as_ref().and_then(|(dated, _)| dated.expires);
        let dialer = Dialer {
            host: Host {
                name: settings.host.clone(),
                port: settings.port,
            },
            tls: tls.map(|(dated, name)| (dated.config, name)),
            connect_timeout: settings.connect_timeout,
            tls_timeout: settings.tls_timeout,
        };
        let protocol = match settings.protocol {
            config::UpstreamProtocol::Http2 => Protocol::Http2,
            config::UpstreamProtocol::Auto if settings.https => Protocol::Auto,
            config::UpstreamProtocol::Auto | config::UpstreamProtocol::Http1 => Protocol::Http1,
        };
        let limits = PoolLimits {
            max_idle: settings.max_idle,
            idle_timeout: settings.idle_timeout,
        };
        let usual = if settings.https { 443 } else { 80 };
        let authority = if settings.port == usual {
            settings.host.clone()
        } else {
            format!("{}:{}", settings.host, settings.port)
        };
        let authority = HeaderValue::from_str(&authority).map_err(|source| RouteError::Host {
            upstream: settings.name.clone(),
            host: settings.host.clone(),
            source,
        })?;
        Ok(Self {
            name: settings.name.as_str().into(),
            settings: settings.clone(),
            pools: tasks
                .iter()
                .map(|tasks| Arc::new(Pool::new(dialer.clone(), protocol, limits, tasks.clone())))
                .collect(),
            authority,
            traffic: traffic.upstream(&settings.name),
            expires,
        })
    }

    /// The pool of one worker.
    pub(crate) fn pool(&self, worker: usize) -> &Arc<Pool<RequestTee>> {
        &self.pools[worker]
    }

    fn takes(&self, host: &str, path: &str) -> bool {
        let host_fits = self
            .settings
            .match_host
            .as_deref()
            .is_none_or(|wanted| wanted.eq_ignore_ascii_case(host));
        host_fits
            && self
                .settings
                .path_prefix
                .as_deref()
                .is_none_or(|prefix| is_below(path, prefix))
    }
}

/// Whether `path` is `prefix` or below it.
fn is_below(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| {
        rest.is_empty() || prefix.ends_with('/') || rest.starts_with('/') || rest.starts_with('?')
    })
}

fn client_tls(
    settings: &config::Upstream,
) -> Result<
    (
        Dated<rustls::ClientConfig>,
        rustls::pki_types::ServerName<'static>,
    ),
    TlsError,
> {
    let alpn: &[&[u8]] = match settings.protocol {
        config::UpstreamProtocol::Auto => &[b"h2", b"http/1.1"],
        config::UpstreamProtocol::Http1 => &[b"http/1.1"],
        config::UpstreamProtocol::Http2 => &[b"h2"],
    };
    let files = &settings.tls;
    let identity = match (&files.certificate, &files.key) {
        (Some(certificate), Some(key)) => Some(IdentityFiles {
            certificate: certificate.clone(),
            key: key.clone(),
        }),
        _ => None,
    };
    let config = tls::client(files.ca.as_deref(), identity.as_ref(), alpn)?;
    let name = tls::server_name(files.server_name.as_deref().unwrap_or(&settings.host))?;
    Ok((config, name))
}

/// The routing table in force.
#[derive(Debug)]
pub(crate) struct Routes {
    /// Most specific first.
    upstreams: Vec<Arc<Upstream>>,
}

impl Routes {
    /// Builds the table. Upstreams whose settings did not change keep their connections from `before`, except that
    /// TLS files are read anew.
    pub(crate) fn new(
        settings: &[config::Upstream],
        tasks: &[Tasks],
        traffic: &Traffic,
        before: Option<&Self>,
    ) -> Result<Self, RouteError> {
        let mut upstreams = Vec::with_capacity(settings.len());
        for upstream in settings {
            let kept = before
                .iter()
                .flat_map(|routes| &routes.upstreams)
                .find(|old| old.settings == *upstream && !upstream.https)
                .cloned();
            upstreams.push(match kept {
                Some(kept) => kept,
                None => Arc::new(Upstream::new(upstream, tasks, traffic)?),
            });
        }
        // Stable: of two equally specific ones the first in the file counts.
        upstreams.sort_by_key(|upstream| {
            let prefix = upstream
                .settings
                .path_prefix
                .as_ref()
                .map_or(0, String::len);
            std::cmp::Reverse((upstream.settings.match_host.is_some(), prefix))
        });
        Ok(Self { upstreams })
    }

    /// The upstream for a host (without port) and a path.
    pub(crate) fn find(&self, host: &str, path: &str) -> Option<&Arc<Upstream>> {
        self.upstreams
            .iter()
            .find(|upstream| upstream.takes(host, path))
    }

    pub(crate) fn upstreams(&self) -> &[Arc<Upstream>] {
        &self.upstreams
    }
}

/// A host without its port.
pub(crate) fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        // The colons of a bare or bracketed IPv6 address are not a port's.
        Some((name, port))
            if !port.ends_with(']') && (!name.contains(':') || name.ends_with(']')) =>
        {
            name
        }
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails loudly")]

    use std::time::Duration;

    use super::*;

    fn upstream(name: &str, host: Option<&str>, prefix: Option<&str>) -> config::Upstream {
        config::Upstream {
            name: name.to_owned(),
            https: false,
            host: "127.0.0.1".to_owned(),
            port: 1,
            path_prefix: prefix.map(str::to_owned),
            match_host: host.map(str::to_owned),
            protocol: config::UpstreamProtocol::Auto,
            tls: config::ClientTls::default(),
            connect_timeout: Duration::from_secs(1),
            tls_timeout: Duration::from_secs(1),
            response_head_timeout: None,
            idle_timeout: Duration::from_secs(1),
            max_idle: 1,
            host_header: config::HostHeader::Keep,
            forwarded: false,
        }
    }

    #[test]
    fn the_most_specific_route_wins() {
        let settings = [
            upstream("any", None, None),
            upstream("crm", None, Some("/crm")),
            upstream("crm-v2", None, Some("/crm/v2")),
            upstream("host", Some("Mcp.example.test"), None),
        ];
        let routes = Routes::new(&settings, &[Tasks::default()], &Traffic::new(1), None).unwrap();
        let found = |host, path| {
            routes
                .find(host, path)
                .map(|found| found.name.to_string())
                .unwrap()
        };
        assert_eq!(found("x", "/"), "any");
        assert_eq!(found("x", "/crm"), "crm");
        assert_eq!(found("x", "/crm/x"), "crm");
        assert_eq!(found("x", "/crmx"), "any");
        assert_eq!(found("x", "/crm/v2/x"), "crm-v2");
        assert_eq!(found("mcp.EXAMPLE.test", "/crm"), "host");
    }

    #[test]
    fn without_a_fitting_route_there_is_none() {
        let routes = Routes::new(
            &[upstream("crm", None, Some("/crm"))],
            &[],
            &Traffic::new(1),
            None,
        )
        .unwrap();
        assert!(routes.find("x", "/").is_none());
    }

    #[test]
    fn ports_are_cut_off() {
        for (host, name) in [
            ("a:80", "a"),
            ("a", "a"),
            ("[::1]:80", "[::1]"),
            ("[::1]", "[::1]"),
            ("::1", "::1"),
        ] {
            assert_eq!(without_port(host), name);
        }
    }
}
