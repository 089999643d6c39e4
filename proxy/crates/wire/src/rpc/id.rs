//! Request ids: number or string, never mixed, spelling kept.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};

use serde::de::IgnoredAny;

use crate::json::string_text;

/// A JSON-RPC request id.
///
/// `1` and `"1"` differ, so do `1` and `1.0`; `"a"` and `"\u0061"` are equal, for any parser makes them so.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RequestId {
    /// A number, by its spelling.
    Number(Box<str>),
    /// A string, by its text.
    String(StringId),
}

impl RequestId {
    /// The id a JSON value spells; none if it is neither number nor string.
    ///
    /// `raw` is the whole token, without blanks around it.
    pub fn from_raw_json(raw: &str) -> Option<Self> {
        // A range check would lose ids such as `1e400`, which are numbers all the same.
        serde_json::from_str::<IgnoredAny>(raw).ok()?;
        match (raw.as_bytes().first()?, raw.as_bytes().last()?) {
            (b'"', b'"') => Some(Self::String(StringId::new(raw))),
            (b'-' | b'0'..=b'9', b'0'..=b'9') => Some(Self::Number(raw.into())),
            _ => None,
        }
    }

    /// The id exactly as it was spelled.
    pub fn as_raw_json(&self) -> &str {
        match self {
            Self::Number(raw) => raw,
            Self::String(id) => &id.raw,
        }
    }

    /// Whether two ids that differ would be taken for one by a peer that loses type or precision: `1`, `1.0` and `"1"`, or
    /// integers beyond 2^53 rounded to the same double.
    pub fn resembles(&self, other: &Self) -> bool {
        self == other
            || self
                .magnitude()
                .is_some_and(|value| Some(value) == other.magnitude())
    }

    fn magnitude(&self) -> Option<f64> {
        serde_json::from_str(match self {
            Self::Number(raw) => raw,
            Self::String(id) => id.text(),
        })
        .ok()
    }
}

/// A string id: its spelling, and its text where escapes make that another.
#[derive(Clone, Debug)]
pub struct StringId {
    raw: Box<str>,
    decoded: Option<Box<str>>,
}

impl StringId {
    pub(super) fn new(raw: &str) -> Self {
        let decoded = match string_text(raw) {
            Some(Cow::Owned(text)) => Some(text.into_boxed_str()),
            _ => None,
        };
        Self {
            raw: raw.into(),
            decoded,
        }
    }

    /// The text between the quotes, escapes resolved (or as spelled, if one of them means no character).
    pub fn text(&self) -> &str {
        match &self.decoded {
            Some(decoded) => decoded,
            None => self
                .raw
                .strip_prefix('"')
                .and_then(|raw| raw.strip_suffix('"'))
                .unwrap_or(&self.raw),
        }
    }

    /// Whether `text` is the text and not the spelling of something that has none.
    fn is_text(&self) -> bool {
        self.decoded.is_some() || !self.raw.contains('\\')
    }
}

impl PartialEq for StringId {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text() && self.is_text() == other.is_text()
    }
}

impl Eq for StringId {}

impl Hash for StringId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text().hash(state);
    }
}

/// What stands in the place of an id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum IdField {
    /// No `id` member.
    #[default]
    Missing,
    /// `"id": null`.
    Null,
    /// An id.
    Id(RequestId),
    /// Neither number nor string: its spelling.
    Invalid(Box<str>),
}

impl IdField {
    /// The id, if there is one.
    pub fn id(&self) -> Option<&RequestId> {
        match self {
            Self::Id(id) => Some(id),
            _ => None,
        }
    }
}
