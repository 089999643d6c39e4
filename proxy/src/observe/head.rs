//! Header lines as the tap copied them: the few that correlation reads are found in one pass.

use std::borrow::Cow;

use callbox_config::IdentitySource;

use crate::tap::HeaderText;

/// Name and value of each line, in order.
pub(super) fn lines(text: &HeaderText) -> impl Iterator<Item = (&str, &[u8])> {
    text.0.split(|byte| *byte == b'\n').filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (name, value) = line.split_at(colon);
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        Some((std::str::from_utf8(name).ok()?, value))
    })
}

/// What a request's head says. Of a repeated field the first line counts, except where lines are a list.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RequestFacts<'a> {
    pub(super) content_encoding: Option<&'a [u8]>,
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
            let name = lower(name);
            let slot = match &*name {
                "content-encoding" => &mut facts.content_encoding,
                "accept" => &mut facts.accept,
                "authorization" => &mut facts.authorization,
                "mcp-session-id" => &mut facts.session,
                "mcp-method" => &mut facts.method,
                "mcp-name" => &mut facts.name,
                "last-event-id" => &mut facts.last_event_id,
                "mcp-protocol-version" => {
                    facts.version = facts.version.or_else(|| std::str::from_utf8(value).ok());
                    continue;
                }
                "traceparent" => {
                    facts.traceparent = facts
                        .traceparent
                        .or_else(|| std::str::from_utf8(value).ok());
                    continue;
                }
                "baggage" => {
                    facts.baggage = facts.baggage.or_else(|| std::str::from_utf8(value).ok());
                    continue;
                }
                _ => {
                    facts.params |= name.starts_with("mcp-param-");
                    continue;
                }
            };
            slot.get_or_insert(value);
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
            if name.eq_ignore_ascii_case("content-type") {
                facts.content_type.get_or_insert(value);
            } else if name.eq_ignore_ascii_case("mcp-session-id") && !value.is_empty() {
                facts.session.get_or_insert(value);
            }
        }
        facts
    }
}

/// The content coding of a body, lines joined as one list.
pub(super) fn content_encoding(text: &HeaderText) -> Option<String> {
    joined(text, "content-encoding")
}

/// All lines of one name as a list.
pub(super) fn joined(text: &HeaderText, name: &str) -> Option<String> {
    let mut list: Option<String> = None;
    for (_, value) in lines(text).filter(|(line, _)| line.eq_ignore_ascii_case(name)) {
        let value = String::from_utf8_lossy(value);
        match &mut list {
            None => list = Some(value.into_owned()),
            Some(list) => {
                list.push_str(", ");
                list.push_str(&value);
            }
        }
    }
    list
}

/// The first line of one name.
pub(super) fn value<'a>(text: &'a HeaderText, name: &str) -> Option<&'a [u8]> {
    lines(text)
        .find(|(line, _)| line.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
}

/// Whether a source's header is one of the lines.
pub(super) fn source<'a>(text: &'a HeaderText, source: &IdentitySource) -> Option<&'a [u8]> {
    match source {
        IdentitySource::Header(name) => value(text, name).filter(|value| !value.is_empty()),
        IdentitySource::Claim(_) => None,
    }
}

/// Names come in lower case from hyper; HTTP/1.1 through other hands may not.
fn lower(name: &str) -> Cow<'_, str> {
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Borrowed(name)
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
    fn facts_in_any_case_and_the_first_of_each() {
        let text = text(
            "Mcp-Session-Id: a\nmcp-session-id: b\nMCP-Protocol-Version:2025-11-25\nMcp-Param-Region: x\n",
        );
        let facts = RequestFacts::of(&text);
        assert_eq!(facts.session, Some(&b"a"[..]));
        assert_eq!(facts.version, Some("2025-11-25"));
        assert!(facts.params);
    }

    #[test]
    fn lists_are_joined() {
        let text = text("content-encoding: gzip\nx: 1\nContent-Encoding: br\n");
        assert_eq!(content_encoding(&text).as_deref(), Some("gzip, br"));
        assert_eq!(joined(&text, "y"), None);
    }

    #[test]
    fn values_may_hold_colons_and_any_bytes() {
        let text = HeaderText(b"a: b: c\nbroken\nd: \xe9\n".to_vec());
        let all: Vec<_> = lines(&text).collect();
        assert_eq!(all, [("a", &b"b: c"[..]), ("d", &b"\xe9"[..])]);
        assert_eq!(readable(b"\xe9"), "\u{e9}");
    }
}
