//! Header lines as the tap copied them: the few that correlation reads are found in one pass.
//!
//! Names are in lower case, as hyper gives them. Nothing here is allocated for what a request does not have.

use std::borrow::Cow;
use std::sync::LazyLock;

use callbox_config::IdentitySource;
use memchr::{memchr, memmem};

use crate::tap::HeaderText;

/// Name and value of each line, in order.
pub(super) fn lines(text: &HeaderText) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = text.0.as_slice();
    std::iter::from_fn(move || {
        loop {
            if rest.is_empty() {
                return None;
            }
            let (line, after) = rest.split_at(memchr(b'\n', rest).unwrap_or(rest.len()));
            rest = after.get(1..).unwrap_or_default();
            if let Some(colon) = memchr(b':', line) {
                let (name, value) = line.split_at(colon);
                return Some((name, value.get(1..).unwrap_or_default().trim_ascii()));
            }
        }
    })
}

/// What a request's head says. Of a repeated field the first line counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RequestFacts<'a> {
    pub(super) accept: Option<&'a [u8]>,
    pub(super) authorization: Option<&'a [u8]>,
    pub(super) session: Option<&'a [u8]>,
    pub(super) version: Option<&'a str>,
    pub(super) method: Option<&'a [u8]>,
    pub(super) name: Option<&'a [u8]>,
    pub(super) last_event_id: Option<&'a [u8]>,
    pub(super) traceparent: Option<&'a str>,
    pub(super) baggage: Option<&'a str>,
    /// There are `Mcp-Param-*` lines.
    pub(super) params: bool,
}

impl<'a> RequestFacts<'a> {
    pub(super) fn of(text: &'a HeaderText) -> Self {
        let mut facts = Self::default();
        for (name, value) in lines(text) {
            let bytes = match name {
                b"accept" => &mut facts.accept,
                b"authorization" => &mut facts.authorization,
                b"mcp-session-id" => &mut facts.session,
                b"mcp-method" => &mut facts.method,
                b"mcp-name" => &mut facts.name,
                b"last-event-id" => &mut facts.last_event_id,
                b"mcp-protocol-version" | b"traceparent" | b"baggage" => {
                    let text = match name {
                        b"traceparent" => &mut facts.traceparent,
                        b"baggage" => &mut facts.baggage,
                        _ => &mut facts.version,
                    };
                    *text = text.or_else(|| std::str::from_utf8(value).ok());
                    continue;
                }
                _ => {
                    facts.params |= name.starts_with(b"mcp-param-");
                    continue;
                }
            };
            bytes.get_or_insert(value);
        }
        // An empty session id names no session.
        facts.session = facts.session.filter(|id| !id.is_empty());
        facts
    }
}

/// What a response's head says.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ResponseFacts<'a> {
    pub(super) content_type: Option<&'a [u8]>,
    pub(super) session: Option<&'a [u8]>,
}

impl<'a> ResponseFacts<'a> {
    pub(super) fn of(text: &'a HeaderText) -> Self {
        let mut facts = Self::default();
        for (name, value) in lines(text) {
            match name {
                b"content-type" => drop(facts.content_type.get_or_insert(value)),
                b"mcp-session-id" if !value.is_empty() => drop(facts.session.get_or_insert(value)),
                _ => {}
            }
        }
        facts
    }
}

static NAMES_CODING: LazyLock<memmem::Finder<'static>> =
    LazyLock::new(|| memmem::Finder::new("content-encoding:"));

/// The content coding of a body, its lines as one list.
pub(super) fn content_encoding(text: &HeaderText) -> Option<String> {
    // Most bodies have none, and one search tells.
    NAMES_CODING.find(&text.0)?;
    let values: Vec<_> = lines(text)
        .filter(|(name, _)| *name == b"content-encoding")
        .map(|(_, value)| String::from_utf8_lossy(value))
        .collect();
    (!values.is_empty()).then(|| values.join(", "))
}

/// The first line of one name.
pub(super) fn value<'a>(text: &'a HeaderText, name: &str) -> Option<&'a [u8]> {
    lines(text)
        .find(|(line, _)| line.eq_ignore_ascii_case(name.as_bytes()))
        .map(|(_, value)| value)
}

/// Whether a source's header is one of the lines.
pub(super) fn source<'a>(text: &'a HeaderText, source: &IdentitySource) -> Option<&'a [u8]> {
    match source {
        IdentitySource::Header(name) => value(text, name).filter(|value| !value.is_empty()),
        IdentitySource::Claim(_) => None,
    }
}

/// Header values are bytes; those that are no UTF-8 are read as Latin-1, which loses nothing.
pub(super) fn readable(value: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(value) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(value.iter().copied().map(char::from).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(lines: &str) -> HeaderText {
        HeaderText(lines.as_bytes().to_vec())
    }

    #[test]
    fn the_first_of_each() {
        let text = text(
            "mcp-session-id: a\nmcp-session-id: b\nmcp-protocol-version:2025-11-25\nmcp-param-region: x\n",
        );
        let facts = RequestFacts::of(&text);
        assert_eq!(facts.session, Some(&b"a"[..]));
        assert_eq!(facts.version, Some("2025-11-25"));
        assert!(facts.params);
    }

    #[test]
    fn content_codings_are_joined() {
        let text = text("content-encoding: gzip\nx: 1\ncontent-encoding: br\n");
        assert_eq!(content_encoding(&text).as_deref(), Some("gzip, br"));
    }

    #[test]
    fn values_may_hold_colons_and_any_bytes() {
        let text = HeaderText(b"a: b: c\nbroken\nd: \xe9\n".to_vec());
        let all: Vec<_> = lines(&text).collect();
        assert_eq!(all, [(&b"a"[..], &b"b: c"[..]), (&b"d"[..], &b"\xe9"[..])]);
        assert_eq!(readable(b"\xe9"), "\u{e9}");
    }
}
