//! A first look at PEM files, so that a wrong path is found by `config check` and not by the first client. Whether a
//! certificate is valid, and belongs to its key, is for the TLS library to say.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// What a file should hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pem {
    Certificate,
    Key,
}

impl Pem {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Certificate => "a PEM file with certificates",
            Self::Key => "a PEM file with a private key",
        }
    }

    fn is_in(self, text: &str) -> bool {
        text.lines().any(|line| {
            let label = line
                .trim()
                .strip_prefix("-----BEGIN ")
                .and_then(|line| line.strip_suffix("-----"));
            label.is_some_and(|label| match self {
                Self::Certificate => label == "CERTIFICATE",
                Self::Key => label.ends_with("PRIVATE KEY"),
            })
        })
    }
}

/// Why a file will not do.
pub(crate) struct Fault {
    pub(crate) message: String,
    pub(crate) fix: Option<&'static str>,
}

/// Whether a file can be read and holds what is expected.
pub(crate) fn check(path: &Path, expected: Pem) -> Result<(), Fault> {
    /// Bundles of all public authorities stay under this.
    const LIMIT: u64 = 4 << 20;
    let fault = |message: String| Fault { message, fix: None };
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(LIMIT).read_to_end(&mut bytes))
        .map_err(|error| fault(format!("cannot be read: {error}")))?;
    let text = String::from_utf8_lossy(&bytes);
    if !expected.is_in(&text) {
        let other = match expected {
            Pem::Certificate if Pem::Key.is_in(&text) => {
                Some("it holds a private key: are the two files swapped?")
            }
            Pem::Key if Pem::Certificate.is_in(&text) => {
                Some("it holds a certificate: are the two files swapped?")
            }
            _ => None,
        };
        return Err(Fault {
            message: format!("is not {}", expected.words()),
            fix: other,
        });
    }
    if expected == Pem::Key && text.contains("ENCRYPTED") {
        return Err(Fault {
            message: "the private key is encrypted".to_owned(),
            fix: Some("decrypt it (openssl pkey -in KEY -out PLAIN), and let only callbox read it"),
        });
    }
    Ok(())
}
