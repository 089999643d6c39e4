//! What the observer goes by: the resolved settings that concern it, compiled, and the payloads made by them.
//!
//! This is the only place where recorded text is made: whatever leaves the observer went through the redactor here.

use std::borrow::Cow;
use std::time::Duration;

use callbox_config::{Detector as Configured, IdentitySource, Payloads, Settings};
use callbox_store::{HeaderLine, Keys, RawJson};
use callbox_wire::collect::Overflow;
use callbox_wire::redact::{self, Detector, Place, Redactor};
use serde_json::value::RawValue;

use super::body::Text;
use super::head;
use super::identity::Identity;
use crate::tap::HeaderText;

/// The redaction rules do not compile.
#[derive(Debug, thiserror::Error)]
#[error("record.redact: {0}")]
pub struct RulesError(#[from] redact::RuleError);

/// Rules in force.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(super) redactor: Redactor,
    pub(super) keep_payloads: bool,
    pub(super) max_message_bytes: usize,
    /// Bytes of messages under way, all together.
    pub(super) buffer_bytes: usize,
    pub(super) session_idle: Duration,
    pub(super) conversation: Vec<String>,
    principal: IdentitySource,
    tenant: Option<IdentitySource>,
}

impl Rules {
    pub(crate) fn new(settings: &Settings, keys: &Keys) -> Result<Self, RulesError> {
        Self::with_key(settings, keys.bytes())
    }

    pub(super) fn with_key(settings: &Settings, key: &[u8; 32]) -> Result<Self, RulesError> {
        let record = &settings.record;
        let rules = redact::Rules {
            keys: record.redact.keys.clone(),
            detectors: record
                .redact
                .detectors
                .iter()
                .map(|detector| translate(*detector))
                .collect(),
            pointers: record
                .redact
                .pointers
                .iter()
                .map(|rule| (rule.tool.clone(), rule.pointer.clone()))
                .collect(),
        };
        Ok(Self {
            redactor: Redactor::new(rules, key)?,
            keep_payloads: record.payloads == Payloads::Redacted,
            max_message_bytes: record.max_message_bytes,
            buffer_bytes: record.queue_bytes,
            session_idle: record.session_idle,
            conversation: settings.identity.conversation.clone(),
            principal: settings.identity.principal.clone(),
            tenant: settings.identity.tenant.clone(),
        })
    }

    pub(super) fn identity(&self, headers: &HeaderText, authorization: Option<&[u8]>) -> Identity {
        Identity::of(
            headers,
            authorization,
            &self.principal,
            self.tenant.as_ref(),
            &self.redactor,
        )
    }

    /// JSON for the log.
    pub(super) fn json(&self, raw: &RawValue, place: Place<'_>) -> Option<RawJson> {
        if !self.keep_payloads {
            return None;
        }
        Some(match self.redactor.json(raw.get(), place) {
            Cow::Borrowed(_) => raw.to_owned(),
            Cow::Owned(text) => {
                RawValue::from_string(text).unwrap_or_else(|_| quoted("[redacted]"))
            }
        })
    }

    /// The beginning of a JSON text that was cut, as a JSON string.
    pub(super) fn prefix(&self, text: &[u8], place: Place<'_>) -> Option<RawJson> {
        self.keep_payloads
            .then(|| quoted(&self.redactor.json_prefix(text, place)))
    }

    /// Text that is no JSON-RPC, as a JSON string.
    pub(super) fn plain(&self, text: &Text) -> Option<RawJson> {
        if !self.keep_payloads {
            return None;
        }
        let bytes = text.bytes();
        let looks_like_json = matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'['));
        let readable = match (text.overflow(), looks_like_json) {
            (Some(_), true) => self.redactor.json_prefix(bytes, Place::Message),
            (Some(_), false) => self.redactor.text_prefix(bytes),
            (None, _) => {
                let text = head::readable(bytes);
                // Key names hide values only where JSON is read as JSON; what then cannot be read is text.
                match serde_json::from_str::<&RawValue>(&text) {
                    Ok(json) if looks_like_json => {
                        self.redactor.json(json.get(), Place::Message).into_owned()
                    }
                    _ => self.redactor.text(&text).into_owned(),
                }
            }
        };
        Some(quoted(&readable))
    }

    /// Header lines for the log; none when payloads are not kept.
    pub(super) fn headers(&self, text: &HeaderText) -> Vec<HeaderLine> {
        if !self.keep_payloads {
            return Vec::new();
        }
        head::lines(text)
            .map(|(name, value)| {
                let value = head::readable(value);
                let value = self.redactor.header(name, &value).into_owned();
                (name.to_owned(), value)
            })
            .collect()
    }
}

/// A text as a JSON string.
pub(super) fn quoted(text: &str) -> RawJson {
    serde_json::value::to_raw_value(text).expect("invariant: a string is JSON")
}

/// Longest name of a peer's (tool, method, client) that is kept.
pub(super) const MAX_NAME: usize = 256;

/// The beginning of a text, cut at a character.
pub(super) fn clipped(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let mut clipped: String = text
        .chars()
        .scan(0, |used, letter| {
            *used += letter.len_utf8();
            (*used <= most - '…'.len_utf8()).then_some(letter)
        })
        .collect();
    clipped.push('…');
    clipped
}

/// Why a message is not here whole, in words that name its length and content.
pub(super) fn over_cap(kept: usize, bytes: u64, overflow: &Overflow) -> String {
    let mut reason = format!("over {kept} bytes: {bytes} bytes, sha256:");
    for byte in overflow.sha256 {
        for digit in [byte >> 4, byte & 15] {
            reason.push(char::from_digit(u32::from(digit), 16).unwrap_or_default());
        }
    }
    reason
}

fn translate(detector: Configured) -> Detector {
    match detector {
        Configured::Pem => Detector::Pem,
        Configured::Jwt => Detector::Jwt,
        Configured::CloudKey => Detector::CloudKey,
        Configured::Card => Detector::Card,
        Configured::Email => Detector::Email,
        Configured::Phone => Detector::Phone,
        Configured::Iban => Detector::Iban,
        Configured::UrlCredential => Detector::UrlCredential,
        Configured::Ssn => Detector::Ssn,
    }
}
