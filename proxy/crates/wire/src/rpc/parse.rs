//! From text to messages, in linear time and without recursion.

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::id::StringId;
use super::{Body, DecodeError, IdField, Kind, Message, RequestId};
use crate::json::{each_member, string_text};

const MARK: &[u8] = b"\xEF\xBB\xBF";

/// Reads a body or an event's data. A byte order mark before it is skipped, as clients do.
///
/// # Errors
///
/// When the text is no JSON object or array.
pub fn parse(text: &[u8]) -> Result<Body<'_>, DecodeError> {
    let Some(rest) = text.strip_prefix(MARK) else {
        return body(text);
    };
    body(rest).map_err(|error| match error {
        DecodeError::NotUtf8 { offset } => DecodeError::NotUtf8 {
            offset: offset + MARK.len(),
        },
        DecodeError::Syntax { offset, what } => DecodeError::Syntax {
            offset: offset + MARK.len(),
            what,
        },
        DecodeError::NotAnObject => DecodeError::NotAnObject,
    })
}

fn body(text: &[u8]) -> Result<Body<'_>, DecodeError> {
    let text = std::str::from_utf8(text).map_err(|error| DecodeError::NotUtf8 {
        offset: error.valid_up_to(),
    })?;
    match text.trim_ascii_start().as_bytes().first() {
        Some(b'{') => message(text).map(Body::One),
        Some(b'[') => {
            // Each element is read twice: batches are rare, and whole elements are wanted anyway.
            let elements: Vec<&RawValue> =
                serde_json::from_str(text).map_err(|error| syntax(text, &error))?;
            elements
                .into_iter()
                .map(|element| self::element(element.get()))
                .collect::<Result<_, _>>()
                .map(Body::Batch)
        }
        _ => match serde_json::from_str::<IgnoredAny>(text) {
            Ok(_) => Err(DecodeError::NotAnObject),
            Err(error) => Err(syntax(text, &error)),
        },
    }
}

fn element(text: &str) -> Result<Message<'_>, DecodeError> {
    if text.starts_with('{') {
        message(text)
    } else {
        Ok(Members::default().into_message(text))
    }
}

fn message(text: &str) -> Result<Message<'_>, DecodeError> {
    let mut members = Members::default();
    each_member(text, &mut |name, value| members.take(name, value))
        .map_err(|error| syntax(text, &error))?;
    Ok(members.into_message(text))
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
    fn take(&mut self, name: &str, value: &'a RawValue) {
        let slot = match name {
            "jsonrpc" => &mut self.jsonrpc,
            "id" => &mut self.id,
            "method" => &mut self.method,
            "params" => &mut self.params,
            "result" => &mut self.result,
            "error" => &mut self.error,
            _ => return,
        };
        let repeated = slot.replace(value).is_some();
        self.duplicate |= repeated;
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

fn syntax(text: &str, error: &serde_json::Error) -> DecodeError {
    // `serde_json` counts lines and columns; one offset is what a hex dump is searched by.
    let lines = text
        .split_inclusive('\n')
        .take(error.line().saturating_sub(1));
    let before: usize = lines.map(str::len).sum();
    let place = (before + error.column()).saturating_sub(1).min(text.len());
    let what = error.to_string();
    DecodeError::Syntax {
        offset: if error.is_eof() { text.len() } else { place },
        what: what.split(" at line ").next().unwrap_or(&what).to_owned(),
    }
}
