//! TLS configurations from files, and when their certificates end.
//!
//! One provider, named in place. There is no way to switch verification off.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, InvalidDnsNameError, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

/// A TLS setting that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A PEM file that cannot be read or has no such item.
    #[error("{path}: {what} not read; expected a PEM file")]
    Pem {
        /// The file.
        path: PathBuf,
        /// Certificates or key.
        what: &'static str,
        /// The parser's words.
        source: rustls::pki_types::pem::Error,
    },
    /// A certificate file without a certificate.
    #[error("{path}: no certificate in it")]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// A certificate whose dates cannot be read.
    #[error("{path}: certificate not understood: {reason}")]
    Certificate {
        /// The file.
        path: PathBuf,
        /// The parser's words.
        reason: String,
    },
    /// Certificate and key do not fit, or a CA is not acceptable.
    #[error("{path}: not usable")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// rustls' words.
        source: rustls::Error,
    },
    /// A CA file for client certificates that cannot be used.
    #[error("{path}: no usable CA for client certificates")]
    ClientCa {
        /// The file.
        path: PathBuf,
        /// rustls' words.
        source: rustls::client::VerifierBuilderError,
    },
    /// The system has no CA certificates.
    #[error("no CA certificate found on this system; install ca-certificates or name a file")]
    NoRoots,
    /// A name that TLS cannot verify.
    #[error("{name:?} is neither a DNS name nor an address, so TLS cannot verify it")]
    Name {
        /// The name.
        name: String,
        /// The parser's words.
        source: InvalidDnsNameError,
    },
    /// The provider lacks a protocol version.
    #[error("TLS set-up failed")]
    Provider(#[source] rustls::Error),
}

/// A certificate chain and its key, in files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityFiles {
    /// PEM chain, leaf first.
    pub certificate: PathBuf,
    /// PEM key.
    pub key: PathBuf,
}

/// Whether clients must show a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientAuth {
    /// They are not asked.
    None,
    /// Checked against the CA file when shown.
    Optional(PathBuf),
    /// Without one from this CA the handshake fails.
    Required(PathBuf),
}

/// A configuration and when its certificate ends.
#[derive(Clone, Debug)]
pub struct Dated<T> {
    /// The configuration.
    pub config: Arc<T>,
    /// End of the leaf's validity, seconds since the epoch; none without a certificate.
    pub expires: Option<i64>,
}

/// The listener's side. Offers HTTP/2 and HTTP/1.1.
///
/// # Errors
/// A file that cannot be read, or contents that do not fit.
pub fn server(
    identity: &IdentityFiles,
    clients: &ClientAuth,
) -> Result<Dated<ServerConfig>, TlsError> {
    let provider = provider();
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Provider)?;
    let builder = match clients {
        ClientAuth::None => builder.with_no_client_auth(),
        ClientAuth::Optional(ca) | ClientAuth::Required(ca) => {
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots_from(ca)?), provider);
            let verifier = if matches!(clients, ClientAuth::Optional(_)) {
                verifier.allow_unauthenticated()
            } else {
                verifier
            };
            let verifier = verifier.build().map_err(|source| TlsError::ClientCa {
                path: ca.clone(),
                source,
            })?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let (chain, key) = load(identity)?;
    let expires = Some(expiry(&identity.certificate, &chain)?);
    let mut config = builder
        .with_single_cert(chain, key)
        .map_err(|source| TlsError::Unusable {
            path: identity.certificate.clone(),
            source,
        })?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Dated {
        config: Arc::new(config),
        expires,
    })
}

/// An upstream's side. `ca` stands in for the system's roots.
///
/// # Errors
/// A file that cannot be read, contents that do not fit, or no root certificate at all.
pub fn client(
    ca: Option<&Path>,
    identity: Option<&IdentityFiles>,
    alpn: &[&[u8]],
) -> Result<Dated<ClientConfig>, TlsError> {
    let roots = match ca {
        Some(path) => roots_from(path)?,
        None => system_roots()?,
    };
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Provider)?
        .with_root_certificates(roots);
    let (mut config, expires) = match identity {
        None => (builder.with_no_client_auth(), None),
        Some(identity) => {
            let (chain, key) = load(identity)?;
            let expires = expiry(&identity.certificate, &chain)?;
            let config = builder
                .with_client_auth_cert(chain, key)
                .map_err(|source| TlsError::Unusable {
                    path: identity.certificate.clone(),
                    source,
                })?;
            (config, Some(expires))
        }
    };
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(Dated {
        config: Arc::new(config),
        expires,
    })
}

/// The name that TLS verifies for a host.
///
/// # Errors
/// Neither a DNS name nor an address.
pub fn server_name(host: &str) -> Result<ServerName<'static>, TlsError> {
    ServerName::try_from(host.trim_matches(['[', ']']).to_owned()).map_err(|source| {
        TlsError::Name {
            name: host.to_owned(),
            source,
        }
    })
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let failed = |source| TlsError::Pem {
        path: path.to_owned(),
        what: "certificates",
        source,
    };
    let chain: Vec<_> = CertificateDer::pem_file_iter(path)
        .map_err(failed)?
        .collect::<Result<_, _>>()
        .map_err(failed)?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate {
            path: path.to_owned(),
        });
    }
    Ok(chain)
}

fn load(
    identity: &IdentityFiles,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
    let chain = certificates(&identity.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&identity.key).map_err(|source| TlsError::Pem {
        path: identity.key.clone(),
        what: "key",
        source,
    })?;
    Ok((chain, key))
}

fn roots_from(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots
            .add(certificate)
            .map_err(|source| TlsError::Unusable {
                path: path.to_owned(),
                source,
            })?;
    }
    Ok(roots)
}

fn system_roots() -> Result<RootCertStore, TlsError> {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "a system CA certificate was not loaded");
    }
    let mut roots = RootCertStore::empty();
    let (added, _ignored) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        Err(TlsError::NoRoots)
    } else {
        Ok(roots)
    }
}

fn expiry(path: &Path, chain: &[CertificateDer<'_>]) -> Result<i64, TlsError> {
    let failed = |reason: String| TlsError::Certificate {
        path: path.to_owned(),
        reason,
    };
    let leaf = chain
        .first()
        .ok_or_else(|| failed(io::Error::from(io::ErrorKind::NotFound).to_string()))?;
    let (_, certificate) =
        x509_parser::parse_x509_certificate(leaf).map_err(|error| failed(error.to_string()))?;
    Ok(certificate.validity().not_after.timestamp())
}
