//! Values of `Mcp-Name` and `Mcp-Param-*`: raw, or base64 between markers, and whether they say what the body says.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;

use super::members::text;

/// A mirrored header that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Neither marked nor text.
    #[error("not UTF-8")]
    NotText,
    /// Marked as base64, but it is not base64 of UTF-8.
    #[error("marked as base64, but not base64 of UTF-8")]
    Sentinel,
}

/// The text a mirrored header stands for. Blanks around the value belong to HTTP, not to it.
///
/// # Errors
///
/// When it is malformed.
pub fn decode(value: &[u8]) -> Result<Cow<'_, str>, HeaderError> {
    let value = value.trim_ascii();
    let coded = value
        .strip_prefix(b"=?base64?")
        .and_then(|rest| rest.strip_suffix(b"?="));
    match coded {
        None => std::str::from_utf8(value)
            .map(Cow::Borrowed)
            .map_err(|_| HeaderError::NotText),
        Some(coded) => STANDARD
            .decode(coded)
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .map(Cow::Owned)
            .ok_or(HeaderError::Sentinel),
    }
}

/// Whether a decoded `Mcp-Param-*` says the same as the argument it mirrors: strings by text, integers by value.
///
/// None when the argument is of a type that is never mirrored, so that nothing can be said.
pub fn same_value(header: &str, argument: &RawValue) -> Option<bool> {
    match argument.get().as_bytes().first()? {
        b'"' => text(argument).map(|text| text == header),
        b't' | b'f' => Some(argument.get() == header),
        b'-' | b'0'..=b'9' => Some(same_number(header, argument.get())),
        _ => None,
    }
}

fn same_number(a: &str, b: &str) -> bool {
    if a == b {
        return true;
    }
    if let (Ok(a), Ok(b)) = (a.parse::<i128>(), b.parse::<i128>()) {
        return a == b;
    }
    // `7` and `7.0` are one integer in two spellings; only one of them fits the integer type.
    let (a, b) = (a.parse::<f64>(), b.parse::<f64>());
    matches!((a, b), (Ok(a), Ok(b)) if a.is_finite() && a.to_bits() == b.to_bits())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails loudly")]

    use super::*;

    #[test]
    fn b32_a_coded_name_is_decoded_before_it_is_compared() {
        assert_eq!(decode("=?base64?5pCc57Si?=".as_bytes()).unwrap(), "搜索");
        assert_eq!(decode(b" search ").unwrap(), "search");
        assert_eq!(decode("搜索".as_bytes()).unwrap(), "搜索");
        // Markers are lower case; anything else is a value that looks odd.
        assert_eq!(decode(b"=?BASE64?eA==?=").unwrap(), "=?BASE64?eA==?=");
    }

    #[test]
    fn a_broken_sentinel_is_no_value() {
        assert_eq!(decode(b"=?base64?*?="), Err(HeaderError::Sentinel));
        assert_eq!(decode(b"=?base64?/w==?="), Err(HeaderError::Sentinel));
        assert_eq!(decode(b"\xff"), Err(HeaderError::NotText));
        assert_eq!(decode(b"=?base64??=").unwrap(), "");
    }

    #[test]
    fn numbers_compare_by_value() {
        let same = |header, json| same_value(header, serde_json::from_str(json).unwrap());
        for (header, json, expected) in [
            ("7", "7", Some(true)),
            ("7", "7.0", Some(true)),
            ("700", "7e2", Some(true)),
            ("7", "8", Some(false)),
            ("9007199254740993", "9007199254740992", Some(false)),
            ("seven", "7", Some(false)),
            ("7", "\"7\"", Some(true)),
            ("x", "\"\\u0078\"", Some(true)),
            ("true", "true", Some(true)),
            ("True", "true", Some(false)),
            ("x", "null", None),
            ("x", "{}", None),
        ] {
            assert_eq!(same(header, json), expected, "{header} {json}");
        }
    }
}
