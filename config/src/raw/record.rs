//! `[record]`: what is kept, how safely and for how long.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::order::keys;
use super::{DurationText, SizeText};

/// What is kept of the traffic. Recording does not hold traffic up, unless `durability` asks for that: where a limit of
/// this section is reached, the record loses something and a counter says what.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("x-order" = keys::<Self>()))]
pub(crate) struct Record {
    /// Whether arguments, results and other message bodies are kept.
    pub(crate) payloads: Payloads,
    /// How much of one message is kept, counted after decompression. Of a longer one the beginning, its full length and
    /// a hash are recorded. Traffic is not limited by it.
    pub(crate) max_message_bytes: SizeText,
    /// Events (heads, chunks, ends) that may wait between traffic and recorder; over it they are dropped and counted.
    #[schemars(range(min = 16, max = 16_777_216), extend("x-restart" = true))]
    pub(crate) queue_events: usize,
    /// Bytes that may wait there; over it events are dropped and counted. This bounds the recorder's memory.
    #[schemars(extend("x-restart" = true))]
    pub(crate) queue_bytes: SizeText,
    /// When a response may go on to the client.
    #[schemars(extend("x-restart" = true))]
    pub(crate) durability: Durability,
    /// With `before-response`: how long a response waits for its record at most. Then it goes on without, so that a full
    /// disk does not stop traffic.
    pub(crate) durability_timeout: DurationText,
    /// Sessions kept in memory to tell which call belongs to which; over it the ones silent for longest leave. Their
    /// records stay.
    #[schemars(range(min = 1, max = 10_000_000), extend("x-restart" = true))]
    pub(crate) max_sessions: usize,
    /// After this long without a message a session leaves memory, and a conversation that callbox inferred begins anew.
    pub(crate) session_idle: DurationText,
    pub(crate) redact: Redact,
    pub(crate) retention: Retention,
}

impl Default for Record {
    fn default() -> Self {
        Self {
            payloads: Payloads::Redacted,
            max_message_bytes: "1MiB".into(),
            queue_events: 65_536,
            queue_bytes: "64MiB".into(),
            durability: Durability::Commit,
            durability_timeout: "2s".into(),
            max_sessions: 100_000,
            session_idle: "10m".into(),
            redact: Redact::default(),
            retention: Retention::default(),
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Payloads {
    /// Kept, after redaction.
    Redacted,
    /// Not kept: tool names, callers, outcomes, times and sizes only.
    None,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Durability {
    /// At once. Its record reaches the disk some milliseconds later; a crash can lose those milliseconds, a stop loses
    /// nothing.
    Commit,
    /// After its record is on disk, for an audit trail: each response waits for a disk write.
    BeforeResponse,
}

/// What is replaced before anything reaches the disk. The rest of a payload stays as it was, byte for byte, and equal
/// values get equal placeholders, such as `[redacted:email:9f2c1ab0]`, so that calls can still be compared. What cannot
/// be redacted safely is replaced whole.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("x-order" = keys::<Self>()))]
pub(crate) struct Redact {
    /// Names of members whose values are replaced in arguments and results. Whole words, in any case and with any
    /// separator: `api_key` is also `apiKey` and `API-Key`. A list of your own replaces this one.
    pub(crate) keys: Vec<String>,
    /// Kinds of content that are found and replaced wherever they stand. A list of your own replaces this one; `[]`
    /// switches all of them off.
    pub(crate) detectors: Vec<Detector>,
    /// Values to replace by their place: `tool` is a tool's name or `*` for all, `pointer` a JSON pointer (RFC 6901) into
    /// its arguments and results, where `*` as a step stands for any member or element.
    #[schemars(example = RedactPointer::examples())]
    pub(crate) pointers: Vec<RedactPointer>,
}

impl Default for Redact {
    fn default() -> Self {
        const KEYS: [&str; 10] = [
            "password",
            "passwd",
            "secret",
            "token",
            "access_token",
            "refresh_token",
            "api_key",
            "authorization",
            "cookie",
            "private_key",
        ];
        Self {
            keys: KEYS.map(str::to_owned).to_vec(),
            detectors: Detector::ALL.to_vec(),
            pointers: Vec::new(),
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Detector {
    /// PEM blocks: private keys and certificates.
    Pem,
    /// JSON web tokens.
    Jwt,
    /// Keys of the large clouds and services, by their shape.
    CloudKey,
    /// Payment card numbers, by grouping and check digit.
    Card,
    /// E-mail addresses.
    Email,
    /// Phone numbers.
    Phone,
    /// International bank account numbers, by check digits.
    Iban,
    /// User and password in a URL, and query parameters with a name from `keys`.
    UrlCredential,
    /// US social security numbers, by their shape.
    Ssn,
}

impl Detector {
    pub(crate) const ALL: [Self; 9] = [
        Self::Pem,
        Self::Jwt,
        Self::CloudKey,
        Self::Card,
        Self::Email,
        Self::Phone,
        Self::Iban,
        Self::UrlCredential,
        Self::Ssn,
    ];
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("x-order" = keys::<Self>(), "required" = ["tool", "pointer"]))]
pub(crate) struct RedactPointer {
    /// Name of a tool, or `*` for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool: Option<String>,
    /// JSON pointer into the tool's arguments and results; `*` as a step stands for any member or element.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pointer: Option<String>,
}

impl RedactPointer {
    fn examples() -> [Self; 1] {
        [Self {
            tool: Some("create_contact".to_owned()),
            pointer: Some("/notes/*/text".to_owned()),
        }]
    }
}

/// How long calls are kept. Whichever limit is reached first counts; the oldest calls go first.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("x-order" = keys::<Self>()))]
pub(crate) struct Retention {
    /// Calls older than this are deleted.
    pub(crate) max_age: DurationText,
    /// Size of the log on disk above which the oldest calls are deleted.
    pub(crate) max_bytes: SizeText,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            max_age: "30d".into(),
            max_bytes: "10GiB".into(),
        }
    }
}
