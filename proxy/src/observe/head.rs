//! Header lines as the tap copied them, read only where they are asked for.

use crate::tap::HeaderText;

/// The lines of a head: names and values, in order.
pub(super) fn lines(text: &HeaderText) -> impl Iterator<Item = (&str, &[u8])> {
    text.0.split(|byte| *byte == b'\n').filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (name, rest) = line.split_at(colon);
        let value = rest.get(2..).unwrap_or_default();
        Some((std::str::from_utf8(name).ok()?, value))
    })
}

/// The first value of a header, if it is text.
pub(super) fn value<'a>(text: &'a HeaderText, name: &str) -> Option<&'a str> {
    lines(text)
        .find(|(found, _)| found.eq_ignore_ascii_case(name))
        .and_then(|(_, value)| std::str::from_utf8(value).ok())
        .map(str::trim)
}

/// The headers of a request that correlation reads, found in one pass.
#[derive(Debug, Default)]
pub(super) struct RequestFacts<'a> {
    pub(super) content_type: Option<&'a str>,
    pub(super) content_encoding: Option<&'a str>,
    pub(super) session: Option<&'a str>,
    pub(super) version: Option<&'a str>,
    pub(super) mcp_method: Option<&'a str>,
    pub(super) mcp_name: Option<&'a str>,
    pub(super) traceparent: Option<&'a str>,
    pub(super) baggage: Option<&'a str>,
    pub(super) last_event_id: Option<&'a str>,
    pub(super) authorization: Option<&'a str>,
}

impl<'a> RequestFacts<'a> {
    pub(super) fn of(text: &'a HeaderText) -> Self {
        let mut facts = Self::default();
        for (name, value) in lines(text) {
            let place = match name.len() {
                7 if name.eq_ignore_ascii_case("baggage") => &mut facts.baggage,
                8 if name.eq_ignore_ascii_case("mcp-name") => &mut facts.mcp_name,
                10 if name.eq_ignore_ascii_case("mcp-method") => &mut facts.mcp_method,
                11 if name.eq_ignore_ascii_case("traceparent") => &mut facts.traceparent,
                12 if name.eq_ignore_ascii_case("content-type") => &mut facts.content_type,
                13 if name.eq_ignore_ascii_case("authorization") => &mut facts.authorization,
                13 if name.eq_ignore_ascii_case("last-event-id") => &mut facts.last_event_id,
                14 if name.eq_ignore_ascii_case("mcp-session-id") => &mut facts.session,
                16 if name.eq_ignore_ascii_case("content-encoding") => &mut facts.content_encoding,
                20 if name.eq_ignore_ascii_case("mcp-protocol-version") => &mut facts.version,
                _ => continue,
            };
            if place.is_none() {
                *place = std::str::from_utf8(value).ok().map(str::trim);
            }
        }
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_with_colons_and_odd_case() {
        let text = HeaderText(b"MCP-Session-ID: a:b\nX: \nHost: h:1\n".to_vec());
        assert_eq!(value(&text, "mcp-session-id"), Some("a:b"));
        assert_eq!(RequestFacts::of(&text).session, Some("a:b"));
        assert_eq!(lines(&text).count(), 3);
        assert_eq!(value(&text, "x"), Some(""));
    }
}
