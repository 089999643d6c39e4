//! Certificates made for one test, as callbox's files and as the peers' configurations.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

/// An authority, and where its files go.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its own certificate.
    pub(crate) ca: PathBuf,
    folder: PathBuf,
}

/// A certificate and its key.
pub(crate) struct Identity {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Authority {
    pub(crate) fn new(folder: &Path, name: &str) -> Result<Self> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = folder.join(format!("{name}.pem"));
        std::fs::write(&ca, params.self_signed(&key)?.pem())?;
        Ok(Self {
            issuer: Issuer::new(params, key),
            ca,
            folder: folder.to_owned(),
        })
    }

    /// A certificate for `name`, valid until that year, in files called `file`.
    pub(crate) fn issue(&self, file: &str, name: &str, year: i32) -> Result<Identity> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(vec![name.to_owned()])?;
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        let identity = Identity {
            certificate: self.folder.join(format!("{file}.pem")),
            key: self.folder.join(format!("{file}.key")),
        };
        std::fs::write(
            &identity.certificate,
            params.signed_by(&key, &self.issuer)?.pem(),
        )?;
        std::fs::write(&identity.key, key.serialize_pem())?;
        Ok(identity)
    }

    fn roots(&self) -> Result<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(&self.ca)?)?;
        Ok(roots)
    }

    /// A client that trusts only this authority, offers these protocols, and shows a certificate if it has one.
    pub(crate) fn client(
        &self,
        protocols: &[&str],
        identity: Option<&Identity>,
    ) -> Result<Arc<ClientConfig>> {
        let builder = ClientConfig::builder().with_root_certificates(self.roots()?);
        let mut config = match identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                builder.with_client_auth_cert(identity.chain()?, identity.private_key()?)?
            }
        };
        config.alpn_protocols = protocols
            .iter()
            .map(|protocol| protocol.as_bytes().to_vec())
            .collect();
        Ok(Arc::new(config))
    }

    /// A server with `identity` that asks for certificates of this authority.
    pub(crate) fn server(&self, identity: &Identity) -> Result<Arc<ServerConfig>> {
        let verifier = WebPkiClientVerifier::builder(Arc::new(self.roots()?)).build()?;
        let mut config = ServerConfig::builder()
            .with_client_cert_verifier(verifier)
            .with_single_cert(identity.chain()?, identity.private_key()?)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

impl Identity {
    fn chain(&self) -> Result<Vec<CertificateDer<'static>>> {
        Ok(CertificateDer::pem_file_iter(&self.certificate)?.collect::<Result<_, _>>()?)
    }

    fn private_key(&self) -> Result<PrivateKeyDer<'static>> {
        Ok(PrivateKeyDer::from_pem_file(&self.key)?)
    }

    /// Lines for a configuration file.
    pub(crate) fn keys(&self) -> String {
        format!(
            "certificate = \"{}\"
key = \"{}\"
",
            self.certificate.display(),
            self.key.display()
        )
    }
}
