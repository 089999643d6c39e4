//! `_meta`: what travels beside the message proper.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::members::{each_member, id, text};
use crate::rpc::RequestId;

/// Prefix of the keys that the specification reserves.
const RESERVED: &str = "io.modelcontextprotocol/";

/// The members of `_meta` that correlation reads.
#[derive(Clone, Debug, Default)]
pub struct Meta<'a> {
    /// `io.modelcontextprotocol/protocolVersion`: present in every modern request.
    pub protocol_version: Option<Cow<'a, str>>,
    /// `io.modelcontextprotocol/clientInfo`.
    pub client_info: Option<&'a RawValue>,
    /// Task id in `io.modelcontextprotocol/related-task`.
    pub related_task: Option<Cow<'a, str>>,
    /// `io.modelcontextprotocol/subscriptionId`: the id of the listen request.
    pub subscription: Option<RequestId>,
    /// `progressToken`: number or string, never mixed.
    pub progress_token: Option<RequestId>,
    /// `traceparent`, unread.
    pub traceparent: Option<Cow<'a, str>>,
    /// `baggage`, unread.
    pub baggage: Option<Cow<'a, str>>,
    raw: Option<&'a RawValue>,
}

impl<'a> Meta<'a> {
    /// Reads the value of a `_meta` member.
    pub fn of(raw: &'a RawValue) -> Self {
        let mut meta = Self {
            raw: Some(raw),
            ..Self::default()
        };
        each_member(raw.get(), |name, value| {
            match name.strip_prefix(RESERVED).unwrap_or(name) {
                "protocolVersion" => meta.protocol_version = text(value),
                "clientInfo" => meta.client_info = Some(value),
                "related-task" => {
                    each_member(value.get(), |name, value| {
                        if name == "taskId" {
                            meta.related_task = text(value);
                        }
                    });
                }
                "subscriptionId" => meta.subscription = id(value),
                "progressToken" => meta.progress_token = id(value),
                "traceparent" => meta.traceparent = text(value),
                "baggage" => meta.baggage = text(value),
                _ => {}
            }
        });
        meta
    }

    /// A string, or a number as spelled, under a key of somebody's own.
    pub fn named(&self, key: &str) -> Option<Cow<'a, str>> {
        let raw = self.raw?.get();
        // Mostly there is none, and one search tells; a key spelled with escapes is nobody's habit.
        if !raw.contains(key) {
            return None;
        }
        let mut found = None;
        each_member(raw, |name, value| {
            if name == key {
                found = text(value).or_else(|| {
                    id(value).map(|number| Cow::Owned(number.as_raw_json().to_owned()))
                });
            }
        });
        found
    }
}

/// Self-declared name and version: `clientInfo`, `serverInfo`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientInfo {
    /// `name`
    pub name: String,
    /// `version`
    pub version: Option<String>,
}

impl ClientInfo {
    /// None without a name.
    pub fn of(raw: &RawValue) -> Option<Self> {
        let (mut found, mut version) = (None, None);
        each_member(raw.get(), |member, value| match member {
            "name" => found = text(value).map(Cow::into_owned),
            "version" => version = text(value).map(Cow::into_owned),
            _ => {}
        });
        found.map(|name| Self { name, version })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails loudly")]

    use super::*;

    fn raw(text: &str) -> &RawValue {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn reads_what_correlation_needs() {
        let meta = Meta::of(raw(
            r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
            "io.modelcontextprotocol/clientInfo":{"name":"c","version":"2"},
            "io.modelcontextprotocol/related-task":{"taskId":"t1"},"progressToken":7,
            "traceparent":"tp","baggage":"a=b","session.id":"s-1","n":42}"#,
        ));
        assert_eq!(meta.protocol_version.as_deref(), Some("2026-07-28"));
        assert_eq!(meta.related_task.as_deref(), Some("t1"));
        assert_eq!(
            meta.progress_token.clone().unwrap(),
            RequestId::Number("7".into())
        );
        assert_eq!(meta.named("session.id").as_deref(), Some("s-1"));
        assert_eq!(meta.named("n").as_deref(), Some("42"));
        assert_eq!(meta.named("other"), None);
        let client = ClientInfo::of(meta.client_info.unwrap()).unwrap();
        assert_eq!(
            (client.name.as_str(), client.version.as_deref()),
            ("c", Some("2"))
        );
    }

    #[test]
    fn other_types_are_absent() {
        let meta = Meta::of(raw(
            r#"{"progressToken":null,"traceparent":5,"baggage":{}}"#,
        ));
        assert_eq!(meta.progress_token, None);
        assert_eq!((meta.traceparent, meta.baggage), (None, None));
        assert!(Meta::of(raw("[1]")).raw.is_some());
        assert_eq!(ClientInfo::of(raw(r#"{"version":"1"}"#)), None);
    }
}
