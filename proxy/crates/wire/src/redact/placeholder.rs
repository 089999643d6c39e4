//! What stands where a secret was: `[redacted:email:9f2c1ab0]`, the kind and 8 hex digits of the value's keyed digest.
//!
//! Equal values give equal digits whatever the kind, so that a record can still be compared with another; without the
//! key the digits say nothing about the value.

use std::borrow::Cow;
use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use memchr::memmem;
use sha2::Sha256;

use super::bytes::{part, rest};

const OPEN: &[u8] = b"[redacted:";
const DIGITS: usize = 8;

/// Why a value was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Its key's name.
    Key,
    /// A JSON pointer of the configuration.
    Pointer,
    /// `requestState`: whoever has it can go on with the call.
    State,
    /// A session id where it works as a credential.
    Session,
    /// The text ends here in the middle, and the rest of a secret may be missing.
    Cut,
    /// It could not be read.
    Unread,
    Pem,
    Jwt,
    CloudKey,
    Card,
    Email,
    Phone,
    Iban,
    Url,
    Ssn,
}

impl Kind {
    const ALL: [Self; 15] = [
        Self::Key,
        Self::Pointer,
        Self::State,
        Self::Session,
        Self::Cut,
        Self::Unread,
        Self::Pem,
        Self::Jwt,
        Self::CloudKey,
        Self::Card,
        Self::Email,
        Self::Phone,
        Self::Iban,
        Self::Url,
        Self::Ssn,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Pointer => "pointer",
            Self::State => "state",
            Self::Session => "session",
            Self::Cut => "cut",
            Self::Unread => "unread",
            Self::Pem => "pem",
            Self::Jwt => "jwt",
            Self::CloudKey => "cloud-key",
            Self::Card => "card",
            Self::Email => "email",
            Self::Phone => "phone",
            Self::Iban => "iban",
            Self::Url => "url",
            Self::Ssn => "ssn",
        }
    }
}

/// The key, ready for use. Prints nothing of it.
#[derive(Clone)]
pub(super) struct Mint(Hmac<Sha256>);

impl fmt::Debug for Mint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mint(…)")
    }
}

impl Mint {
    pub(super) fn new(key: &[u8; 32]) -> Self {
        Self(Hmac::new_from_slice(key).expect("invariant: HMAC takes a key of any length"))
    }

    pub(super) fn digest(&self, domain: &str, value: &[u8]) -> [u8; 16] {
        let mut mac = self.0.clone();
        // The length in front keeps domains apart that begin alike.
        mac.update(&(domain.len() as u64).to_be_bytes());
        mac.update(domain.as_bytes());
        mac.update(value);
        let whole = mac.finalize().into_bytes();
        let mut out = [0; 16];
        for (to, from) in out.iter_mut().zip(whole) {
            *to = from;
        }
        out
    }

    pub(super) fn placeholder(&self, kind: Kind, value: &[u8]) -> String {
        let [a, b, c, d, ..] = self.digest("placeholder", value);
        format!("[redacted:{}:{a:02x}{b:02x}{c:02x}{d:02x}]", kind.name())
    }
}

/// The length of the placeholder that starts at `i`.
pub(super) fn length_at(text: &[u8], i: usize) -> Option<usize> {
    let tail = rest(text, i).strip_prefix(OPEN)?;
    let kind = Kind::ALL.iter().find(|kind| {
        let name = kind.name().as_bytes();
        tail.starts_with(name) && tail.get(name.len()) == Some(&b':')
    })?;
    let digits = kind.name().len() + 1;
    let close = digits + DIGITS;
    let hex = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    (tail.get(close) == Some(&b']') && part(tail, digits, close).iter().all(hex))
        .then_some(OPEN.len() + close + 1)
}

/// Where the first placeholder starts.
pub(super) fn find(text: &[u8]) -> Option<usize> {
    memmem::find_iter(text, OPEN).find(|&i| length_at(text, i).is_some())
}

/// A name without the placeholders in it, whose words say nothing about its value.
pub(super) fn without(name: &[u8]) -> Cow<'_, [u8]> {
    if memmem::find(name, OPEN).is_none() {
        return Cow::Borrowed(name);
    }
    let mut out = Vec::with_capacity(name.len());
    let mut i = 0;
    while let Some(&byte) = name.get(i) {
        if let Some(length) = length_at(name, i) {
            out.push(b' ');
            i += length;
        } else {
            out.push(byte);
            i += 1;
        }
    }
    Cow::Owned(out)
}

/// Whether `text` is one placeholder and nothing else.
pub(super) fn is_whole(text: &[u8]) -> bool {
    length_at(text, 0) == Some(text.len())
}
