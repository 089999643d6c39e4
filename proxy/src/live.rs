//! The settings in force, swapped as a whole by a reload.

use std::time::Duration;

use arc_swap::ArcSwap;
use callbox_config::{ClientCertificate, Durability, HalfClose, Settings, Stamp};
use callbox_net::Tasks;
use callbox_net::tls::{self, ClientAuth, Dated, IdentityFiles, TlsError};

use crate::route::{RouteError, Routes};
use crate::traffic::Traffic;

/// What exchanges and connections read.
pub(crate) type Live = ArcSwap<InForce>;

/// One consistent set.
#[derive(Debug)]
pub(crate) struct InForce {
    pub(crate) routes: Routes,
    pub(crate) tls: Option<Dated<rustls::ServerConfig>>,
    pub(crate) h2c: bool,
    pub(crate) max_connections: usize,
    pub(crate) tls_timeout: Duration,
    pub(crate) head_timeout: Duration,
    pub(crate) drain_timeout: Duration,
    pub(crate) max_request_body: Option<u64>,
    pub(crate) half_close: HalfClose,
    pub(crate) stamp: Stamp,
    pub(crate) durability: Durability,
    pub(crate) durability_timeout: Duration,
}

/// Settings that cannot be put in force.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// An upstream.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// The listener's TLS.
    #[error("listen.tls")]
    Tls(#[from] TlsError),
    /// A change that only a restart can make.
    #[error("{key} cannot be changed while callbox runs; restart it")]
    NeedsRestart {
        /// The key.
        key: &'static str,
    },
}

impl InForce {
    pub(crate) fn new(
        settings: &Settings,
        tasks: &[Tasks],
        traffic: &Traffic,
        before: Option<&Self>,
    ) -> Result<Self, SettingsError> {
        let listen = &settings.listen;
        let tls = listen.tls.as_ref().map(|files| {
            let identity = IdentityFiles {
                certificate: files.certificate.clone(),
                key: files.key.clone(),
            };
            let clients = match (&files.client_ca, files.client_certificate) {
                (None, _) => ClientAuth::None,
                (Some(ca), ClientCertificate::Optional) => ClientAuth::Optional(ca.clone()),
                (Some(ca), ClientCertificate::Required) => ClientAuth::Required(ca.clone()),
            };
            tls::server(&identity, &clients)
        });
        Ok(Self {
            routes: Routes::new(
                &settings.upstreams,
                tasks,
                traffic,
                before.map(|before| &before.routes),
            )?,
            tls: tls.transpose()?,
            h2c: listen.h2c,
            max_connections: listen.max_connections,
            tls_timeout: listen.tls_timeout,
            head_timeout: listen.request_head_timeout,
            drain_timeout: listen.drain_timeout,
            max_request_body: listen.max_request_body,
            half_close: listen.half_close,
            stamp: listen.stamp,
            durability: settings.record.durability,
            durability_timeout: settings.record.durability_timeout,
        })
    }

    /// When each certificate in use ends: what it is for, and seconds since the epoch.
    pub(crate) fn expiries(&self) -> Vec<(String, i64)> {
        let listener = self
            .tls
            .iter()
            .filter_map(|tls| Some(("listen".to_owned(), tls.expires?)));
        let upstreams = self.routes.upstreams().iter();
        listener
            .chain(
                upstreams
                    .filter_map(|upstream| Some((upstream.name.to_string(), upstream.expires?))),
            )
            .collect()
    }
}
