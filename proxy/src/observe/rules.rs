//! What the observer goes by: the resolved settings that concern it, compiled.

use std::time::Duration;

use callbox_config::{Detector as Configured, IdentitySource, Payloads, Settings};
use callbox_store::{Capture, Http, Keys, RawJson};
use callbox_wire::collect::Collected;
use callbox_wire::redact::{self, Detector, Place, Redactor};
use serde_json::value::RawValue;

use super::exchange::Exchange;
use super::head;
use super::identity::{self, Identity};
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
    pub(super) session_idle: Duration,
    pub(super) conversation: Vec<String>,
    principal: IdentitySource,
    tenant: Option<IdentitySource>,
}

impl Rules {
    pub(crate) fn new(settings: &Settings, keys: &Keys) -> Result<Self, RulesError> {
        let redact = &settings.record.redact;
        let rules = redact::Rules {
            keys: redact.keys.clone(),
            detectors: redact
                .detectors
                .iter()
                .map(|detector| translate(*detector))
                .collect(),
            pointers: redact
                .pointers
                .iter()
                .map(|rule| (rule.tool.clone(), rule.pointer.clone()))
                .collect(),
        };
        Ok(Self {
            redactor: Redactor::new(rules, keys.bytes())?,
            keep_payloads: settings.record.payloads == Payloads::Redacted,
            max_message_bytes: settings.record.max_message_bytes,
            session_idle: settings.record.session_idle,
            conversation: settings.identity.conversation.clone(),
            principal: settings.identity.principal.clone(),
            tenant: settings.identity.tenant.clone(),
        })
    }

    pub(super) fn identity(&self, headers: &HeaderText) -> Identity {
        identity::of(
            headers,
            &self.principal,
            self.tenant.as_ref(),
            &self.redactor,
        )
    }

    /// JSON for the log: redacted; none when payloads are not kept.
    pub(super) fn json(&self, raw: &RawValue, place: Place<'_>) -> Option<RawJson> {
        if !self.keep_payloads {
            return None;
        }
        match self.redactor.json(raw.get(), place) {
            std::borrow::Cow::Borrowed(_) => Some(raw.to_owned()),
            std::borrow::Cow::Owned(text) => RawValue::from_string(text).ok(),
        }
    }

    /// The kept part of a text over the cap, as a JSON string.
    pub(super) fn prefix(&self, text: &Collected, place: Place<'_>) -> Option<RawJson> {
        self.keep_payloads
            .then(|| string(&self.redactor.json_prefix(&text.text, place)))
    }

    /// Text that is not JSON-RPC, as a JSON string.
    pub(super) fn plain(&self, text: &Collected) -> Option<RawJson> {
        if !self.keep_payloads {
            return None;
        }
        let readable = String::from_utf8_lossy(&text.text);
        let redacted = match serde_json::from_slice::<&RawValue>(&text.text) {
            Ok(json) => self.redactor.json(json.get(), Place::Message).into_owned(),
            Err(_) if text.overflow.is_some() => self.redactor.text_prefix(&text.text),
            Err(_) => self.redactor.text(&readable).into_owned(),
        };
        Some(string(&redacted))
    }

    /// The HTTP side of an exchange, redacted.
    pub(super) fn http(&self, exchange: &Exchange) -> Http {
        let request = &exchange.request;
        Http {
            method: request.method.to_string(),
            target: self.redactor.target(&request.target).into_owned(),
            version: format!("{:?}", request.version),
            request_headers: self.headers(&request.headers),
            response_headers: exchange
                .response
                .as_ref()
                .map(|head| self.headers(&head.headers))
                .unwrap_or_default(),
        }
    }

    fn headers(&self, text: &HeaderText) -> Vec<(String, String)> {
        head::lines(text)
            .map(|(name, value)| {
                let value = String::from_utf8_lossy(value);
                (
                    name.to_owned(),
                    self.redactor.header(name, &value).into_owned(),
                )
            })
            .collect()
    }
}

/// Why a message is not here whole.
pub(super) fn over_cap(text: &Collected) -> (Capture, Option<String>) {
    let Some(overflow) = &text.overflow else {
        return (Capture::Full, None);
    };
    let mut digest = String::with_capacity(64);
    for byte in overflow.sha256 {
        for nibble in [byte >> 4, byte & 15] {
            digest.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
        }
    }
    let reason = format!(
        "{} of {} bytes kept, sha256:{digest}",
        text.text.len(),
        text.bytes
    );
    (Capture::Truncated, Some(reason))
}

fn string(text: &str) -> RawJson {
    serde_json::value::to_raw_value(text).expect("invariant: a string is JSON")
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
