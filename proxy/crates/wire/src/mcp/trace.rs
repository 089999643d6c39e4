//! W3C trace context and baggage, as far as a record needs them.

use std::borrow::Cow;

/// Trace and parent span of a `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent<'a> {
    /// 32 lower-case hex digits, not all zero.
    pub trace: &'a str,
    /// 16 lower-case hex digits, not all zero.
    pub span: &'a str,
}

impl<'a> TraceParent<'a> {
    /// None when it is not valid: then there is no trace, as the specification says.
    pub fn parse(value: &'a str) -> Option<Self> {
        let value = value.trim_matches([' ', '\t']);
        let mut parts = value.splitn(4, '-');
        let (version, trace, span) = (parts.next()?, parts.next()?, parts.next()?);
        let rest = parts.next()?;
        let (flags, more) = (rest.get(..2)?, rest.get(2..)?);
        let ends = more.is_empty() || (version != "00" && more.starts_with('-'));
        let valid = hex(version, 2)
            && version != "ff"
            && hex(trace, 32)
            && hex(span, 16)
            && hex(flags, 2)
            && ends
            && [trace, span]
                .iter()
                .all(|id| id.bytes().any(|digit| digit != b'0'));
        valid.then_some(Self { trace, span })
    }
}

fn hex(text: &str, length: usize) -> bool {
    text.len() == length
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// The value of one member of a `baggage`, percent-decoded, without its properties.
pub fn baggage_member<'a>(baggage: &'a str, key: &str) -> Option<Cow<'a, str>> {
    baggage.split(',').find_map(|member| {
        let member = member.split(';').next()?;
        let (name, value) = member.split_once('=')?;
        (name.trim() == key).then(|| percent_decoded(value.trim()))
    })
}

fn percent_decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [byte, after @ ..] = rest {
        rest = after;
        let pair = after
            .get(..2)
            .and_then(|pair| std::str::from_utf8(pair).ok());
        match pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()) {
            Some(value) if *byte == b'%' => {
                decoded.push(value);
                rest = after.get(2..).unwrap_or_default();
            }
            _ => decoded.push(*byte),
        }
    }
    Cow::Owned(String::from_utf8_lossy(&decoded).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const SPAN: &str = "b7ad6b7169203331";

    #[test]
    fn valid_parents() {
        for value in [
            format!("00-{TRACE}-{SPAN}-01"),
            format!(" 00-{TRACE}-{SPAN}-00 "),
            format!("cc-{TRACE}-{SPAN}-01-what-comes-later"),
        ] {
            let parsed = TraceParent::parse(&value);
            assert_eq!(
                parsed,
                Some(TraceParent {
                    trace: TRACE,
                    span: SPAN
                }),
                "{value}"
            );
        }
    }

    #[test]
    fn invalid_parents_are_no_trace() {
        for value in [
            String::new(),
            format!("00-{TRACE}-{SPAN}"),
            format!("00-{TRACE}-{SPAN}-01-more"),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
            format!("00-{}-{SPAN}-01", "0".repeat(32)),
            format!("00-{TRACE}-{}-01", "0".repeat(16)),
            format!("00-{TRACE}-{SPAN}-0é"),
        ] {
            assert_eq!(TraceParent::parse(&value), None, "{value}");
        }
    }

    #[test]
    fn baggage_members_are_found_and_decoded() {
        let baggage = "a=1, session.id = s%2D1%zz ;p=1;q,b=";
        assert_eq!(
            baggage_member(baggage, "session.id").as_deref(),
            Some("s-1%zz")
        );
        assert_eq!(baggage_member(baggage, "a").as_deref(), Some("1"));
        assert_eq!(baggage_member(baggage, "b").as_deref(), Some(""));
        assert_eq!(baggage_member(baggage, "p"), None);
    }
}
