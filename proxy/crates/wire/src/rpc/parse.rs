//! From text to messages, in linear time and without recursion.
//!
//! The JSON grammar is `serde_json`'s. Member values are taken as `RawValue`, whose scan keeps its stack on the heap, so a
//! document of a million brackets is only long. A derived struct would not do: it refuses repeated members.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::id::StringId;
use super::{Body, DecodeError, IdField, Kind, Message, RequestId};
use crate::json::string_text;

/// Reads a body or an event's data. A byte order mark before it is skipped, as clients do.
///
/// # Errors
///
/// When the text is no JSON object or array.
pub fn parse(text: &[u8]) -> Result<Body<'_>, DecodeError> {
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    let text = std::str::from_utf8(text).map_err(|error| DecodeError::NotUtf8 {
        offset: error.valid_up_to(),
    })?;
    match text.trim_ascii_start().as_bytes().first() {
        Some(b'{') => object(text).map(Body::One),
        Some(b'[') => {
            let elements: Vec<&RawValue> =
                serde_json::from_str(text).map_err(|error| syntax(text, &error))?;
            elements
                .into_iter()
                .map(|element| element_message(element.get()))
                .collect::<Result<_, _>>()
                .map(Body::Batch)
        }
        _ => match serde_json::from_str::<IgnoredAny>(text) {
            Ok(_) => Err(DecodeError::NotAnObject),
            Err(error) => Err(syntax(text, &error)),
        },
    }
}

fn object(text: &str) -> Result<Message<'_>, DecodeError> {
    let members: Members<'_> = serde_json::from_str(text).map_err(|error| syntax(text, &error))?;
    Ok(members.into_message(text))
}

fn element_message(text: &str) -> Result<Message<'_>, DecodeError> {
    if text.starts_with('{') {
        object(text)
    } else {
        Ok(Members::default().into_message(text))
    }
}

/// The members of one object that JSON-RPC names, each the last of its name.
#[derive(Default)]
struct Members<'a> {
    jsonrpc: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    duplicate: bool,
}

impl<'a> Members<'a> {
    fn slot(&mut self, name: &str) -> Option<&mut Option<&'a RawValue>> {
        Some(match name {
            "jsonrpc" => &mut self.jsonrpc,
            "id" => &mut self.id,
            "method" => &mut self.method,
            "params" => &mut self.params,
            "result" => &mut self.result,
            "error" => &mut self.error,
            _ => return None,
        })
    }

    fn into_message(mut self, text: &'a str) -> Message<'a> {
        if self.result.is_some() && self.error.is_some_and(|error| error.get() == "null") {
            self.error = None;
        }
        let id = self.id.map_or(IdField::Missing, |raw| id_field(raw.get()));
        let method = self.method.and_then(|raw| string_text(raw.get()));
        let answers = self.result.is_some() || self.error.is_some();
        // Serialisers that write absent members as null are read as they are meant.
        let named = self.method.filter(|raw| raw.get() != "null");
        let kind = match (&id, named, answers) {
            (IdField::Invalid(_), ..) | (_, None, false) | (_, Some(_), true) => Kind::Invalid,
            (_, None, true) => Kind::Response,
            (_, Some(_), false) if method.is_none() => Kind::Invalid,
            (IdField::Missing, Some(_), false) => Kind::Notification,
            (_, Some(_), false) => Kind::Request,
        };
        Message {
            kind,
            id,
            method,
            params: self.params,
            result: self.result,
            error: self.error,
            duplicate_members: self.duplicate,
            not_v2: self.jsonrpc.is_none_or(|raw| raw.get() != r#""2.0""#),
            text,
        }
    }
}

fn id_field(raw: &str) -> IdField {
    match raw.as_bytes().first() {
        Some(b'"') => IdField::Id(RequestId::String(StringId::new(raw))),
        Some(b'-' | b'0'..=b'9') => IdField::Id(RequestId::Number(raw.into())),
        _ if raw == "null" => IdField::Null,
        _ => IdField::Invalid(raw.into()),
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON-RPC message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Members::default();
        // Names as raw values, too: a lone surrogate in one is odd, but no reason to lose the message.
        while let Some(name) = map.next_key::<&RawValue>()? {
            let name = string_text(name.get()).unwrap_or(Cow::Borrowed(""));
            match members.slot(&name) {
                Some(slot) => {
                    let value: &RawValue = map.next_value()?;
                    let repeated = slot.replace(value).is_some();
                    members.duplicate |= repeated;
                }
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(members)
    }
}

fn syntax(text: &str, error: &serde_json::Error) -> DecodeError {
    // `serde_json` counts lines and columns; one offset is what a hex dump is searched by.
    let before: usize = text
        .split_inclusive('\n')
        .take(error.line().saturating_sub(1))
        .map(str::len)
        .sum();
    let what = error.to_string();
    let what = what.split(" at line ").next().unwrap_or(&what).to_owned();
    DecodeError::Syntax {
        offset: (before + error.column()).saturating_sub(1).min(text.len()),
        what,
    }
}
