//! A tool list by its content: the canonical text that is hashed, and the headers that its schemas ask for.
//!
//! Key order, blanks, escapes and the order of tools are no content; every name, number and description is.

use serde::Serialize as _;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::members::{each_member, text};
use crate::json::string_text;

/// Schemas are followed this deep for header annotations.
const MAX_DEPTH: usize = 16;

/// Each level of nesting copies what is below it; text nested deeper is taken as spelled.
const MAX_NESTING: usize = 128;

/// Content hash of the tools of one assembled list, `sha256:` and 64 hex digits.
pub fn hash(tools: &[&RawValue]) -> String {
    let mut canonical: Vec<(String, String)> = tools
        .iter()
        .map(|tool| (name(tool), canonical(tool.get())))
        .collect();
    canonical.sort();
    let mut hash = Sha256::new();
    for (at, (_, tool)) in canonical.iter().enumerate() {
        hash.update(if at == 0 { "[" } else { "," });
        hash.update(tool);
    }
    hash.update(if canonical.is_empty() { "[]" } else { "]" });
    let mut hex = String::with_capacity(7 + 64);
    hex.push_str("sha256:");
    for byte in hash.finalize() {
        for digit in [byte >> 4, byte & 15] {
            hex.push(char::from_digit(u32::from(digit), 16).unwrap_or_default());
        }
    }
    hex
}

/// `name` of a tool, empty without one.
pub fn name(tool: &RawValue) -> String {
    let mut found = String::new();
    each_member(tool.get(), |member, value| {
        if member == "name" {
            found = text(value).map(Into::into).unwrap_or_default();
        }
    });
    found
}

/// The elements of an array, as spelled; none when it is no array.
pub fn elements(array: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(array.get()).ok()
}

/// JSON text with members sorted, blanks gone and strings in one spelling. Numbers keep theirs.
///
/// `json` must be valid; nested beyond any schema's need, it stays as it is.
pub fn canonical(json: &str) -> String {
    enum Frame {
        Array(String),
        Object(Vec<(String, String)>, Option<String>),
    }
    let mut frames = Vec::new();
    let mut rest = json;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', '\r', ',', ':']);
        let Some(first) = rest.bytes().next() else {
            return json.to_owned();
        };
        let mut done = match first {
            b'[' | b'{' if frames.len() == MAX_NESTING => return json.to_owned(),
            b'[' | b'{' => {
                frames.push(if first == b'[' {
                    Frame::Array(String::from("["))
                } else {
                    Frame::Object(Vec::new(), None)
                });
                rest = rest.get(1..).unwrap_or_default();
                continue;
            }
            b']' | b'}' => {
                rest = rest.get(1..).unwrap_or_default();
                match frames.pop() {
                    Some(Frame::Array(text)) => text + "]",
                    Some(Frame::Object(members, _)) => object(members),
                    None => return json.to_owned(),
                }
            }
            _ => {
                let (token, after) = rest.split_at(token_length(rest));
                rest = after;
                one_spelling(token)
            }
        };
        match frames.last_mut() {
            None => return done,
            Some(Frame::Array(text)) => {
                if text.len() > 1 {
                    text.push(',');
                }
                text.push_str(&done);
            }
            Some(Frame::Object(members, key)) => match key.take() {
                None => *key = Some(std::mem::take(&mut done)),
                Some(key) => members.push((key, done)),
            },
        }
    }
}

fn object(mut members: Vec<(String, String)>) -> String {
    // Stable: of repeated names the last one counts, so their order is content.
    members.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut text = String::from("{");
    for (at, (name, value)) in members.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        text.push_str(name);
        text.push(':');
        text.push_str(value);
    }
    text + "}"
}

/// Length of the string, number or literal that `rest` begins with; at least one byte.
fn token_length(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    if bytes.first() != Some(&b'"') {
        let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
        return bytes.iter().position(ends).unwrap_or(bytes.len()).max(1);
    }
    let mut at = 1;
    while let Some(found) = bytes
        .get(at..)
        .and_then(|rest| memchr::memchr2(b'"', b'\\', rest))
    {
        at += found;
        if bytes.get(at) == Some(&b'"') {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

fn one_spelling(token: &str) -> String {
    // A lone surrogate has no text; its spelling must do.
    match string_text(token) {
        Some(text) => {
            let mut out = Vec::with_capacity(token.len());
            match text.serialize(&mut serde_json::Serializer::new(&mut out)) {
                Ok(()) => String::from_utf8(out).unwrap_or_else(|_| token.to_owned()),
                Err(_) => token.to_owned(),
            }
        }
        None => token.to_owned(),
    }
}

/// An input property that clients mirror into `Mcp-Param-<header>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirroredParam {
    /// Header name after `Mcp-Param-`, in lower case.
    pub header: Box<str>,
    /// Member names from `arguments` down to the value.
    pub path: Vec<Box<str>>,
}

impl MirroredParam {
    /// The argument it mirrors, if it is there and not `null`.
    pub fn value<'a>(&self, arguments: &'a RawValue) -> Option<&'a RawValue> {
        let mut at = arguments;
        for step in &self.path {
            let mut next = None;
            each_member(at.get(), |name, value| {
                if name == &**step {
                    next = Some(value);
                }
            });
            at = next?;
        }
        (at.get() != "null").then_some(at)
    }
}

/// The mirrored properties of one tool: `x-mcp-header` annotations that a chain of `properties` reaches.
pub fn mirrored_params(tool: &RawValue) -> Vec<MirroredParam> {
    // Most tools have none; one search spares them the walk.
    if memchr::memmem::find(tool.get().as_bytes(), b"x-mcp-header").is_none() {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut schema = None;
    each_member(tool.get(), |name, value| {
        if name == "inputSchema" {
            schema = Some(value);
        }
    });
    let mut open: Vec<(Vec<Box<str>>, &RawValue)> = Vec::new();
    open.extend(schema.map(|schema| (Vec::new(), schema)));
    while let Some((path, schema)) = open.pop() {
        let mut properties = None;
        each_member(schema.get(), |name, value| match name {
            "properties" => properties = Some(value),
            "x-mcp-header" if !path.is_empty() => {
                if let Some(header) = text(value) {
                    found.push(MirroredParam {
                        header: header.to_ascii_lowercase().into(),
                        path: path.clone(),
                    });
                }
            }
            _ => {}
        });
        if let Some(properties) = properties.filter(|_| path.len() < MAX_DEPTH) {
            each_member(properties.get(), |name, value| {
                let mut path = path.clone();
                path.push(name.into());
                open.push((path, value));
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails loudly")]

    use super::*;

    fn raw(text: &str) -> &RawValue {
        serde_json::from_str(text).unwrap()
    }

    fn hash_of(array: &str) -> String {
        hash(&elements(raw(array)).unwrap())
    }

    #[test]
    fn canonical_text() {
        assert_eq!(
            canonical(r#" { "b" : [1.0, 1e400 ,true, [], {}] , "a":"\u0061\/<", "c" : null } "#),
            r#"{"a":"a/<","b":[1.0,1e400,true,[],{}],"c":null}"#
        );
        assert_eq!(canonical("7"), "7");
        assert_eq!(canonical(r#""\ud800""#), r#""\ud800""#);
        let deep = "[ ".repeat(100_000) + &"]".repeat(100_000);
        assert_eq!(canonical(&deep), deep, "as spelled");
    }

    #[test]
    fn order_and_blanks_are_no_content() {
        let one = hash_of(r#"[{"name":"a","description":"d"},{"name":"b"}]"#);
        assert_eq!(
            one,
            hash_of(r#"[ {"name":"b"}, {"description":"\u0064", "name":"a"} ]"#)
        );
        assert_eq!(one.len(), 7 + 64);
    }

    #[test]
    fn a_description_is_content() {
        assert_ne!(
            hash_of(r#"[{"name":"a","description":"d"}]"#),
            hash_of(r#"[{"name":"a","description":"d."}]"#)
        );
        assert_ne!(hash_of("[]"), hash_of("[{}]"));
    }

    #[test]
    fn mirrored_properties_are_found_through_properties_only() {
        let tool = raw(
            r#"{"name":"t","inputSchema":{"type":"object","x-mcp-header":"no","properties":{
            "region":{"type":"string","x-mcp-header":"Region"},
            "at":{"type":"object","properties":{"zone":{"type":"integer","x-mcp-header":"Zone"}}},
            "list":{"type":"array","items":{"x-mcp-header":"never"}}}}}"#,
        );
        let mut params = mirrored_params(tool);
        params.sort_by(|a, b| a.header.cmp(&b.header));
        let [region, zone] = params.as_slice() else {
            panic!("{params:?}")
        };
        let arguments = raw(r#"{"region":null,"at":{"zone":7}}"#);
        assert_eq!(&*region.header, "region");
        assert!(region.value(arguments).is_none(), "null is not mirrored");
        assert_eq!(zone.value(arguments).unwrap().get(), "7");
    }
}
