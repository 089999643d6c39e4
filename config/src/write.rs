//! Values as TOML on one line, for `show` and for messages. The `toml` crate would spread a text with line breaks over
//! several.

use std::fmt::Write as _;

/// A value on one line.
pub(crate) fn inline(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => quoted(text),
        toml::Value::Array(items) => {
            let items: Vec<_> = items.iter().map(inline).collect();
            format!("[{}]", items.join(", "))
        }
        toml::Value::Table(table) => {
            let entries: Vec<_> = table
                .iter()
                .map(|(name, value)| format!("{name} = {}", inline(value)))
                .collect();
            format!("{{ {} }}", entries.join(", "))
        }
        toml::Value::Integer(_)
        | toml::Value::Float(_)
        | toml::Value::Boolean(_)
        | toml::Value::Datetime(_) => value.to_string(),
    }
}

/// A basic string; control characters are escaped.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            // Writing to a String cannot fail.
            c if c.is_control() => write!(quoted, "\\u{:04X}", u32::from(c)).unwrap_or_default(),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// A text as TOML writes it, shortened when it is long, without the credentials of a URL.
pub(crate) fn shown(text: &str) -> String {
    const LIMIT: usize = 80;
    let text = without_credentials(text);
    let mut start: String = text.chars().take(LIMIT).collect();
    if start.len() < text.len() {
        start.push('…');
    }
    quoted(&start)
}

/// Hides what can be a password in a URL: user information and query.
fn without_credentials(text: &str) -> String {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), text),
    };
    let (user, rest) = match rest.rsplit_once('@') {
        Some((_, rest)) => ("…@", rest),
        None => ("", rest),
    };
    match rest.split_once('?') {
        Some((rest, _)) => format!("{scheme}{user}{rest}?…"),
        None => format!("{scheme}{user}{rest}"),
    }
}

/// A name without line breaks and other characters that would tear a message apart.
pub(crate) fn printable(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.chars().all(bare) {
        name.chars().take(80).collect()
    } else {
        shown(name)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn credentials_in_urls_are_not_shown() {
        for (text, expected) in [
            ("http://u:p@h:1/x", "http://…@h:1/x"),
            ("http://u:p@q@h", "http://…@h"),
            ("u:p@h", "…@h"),
            ("http://h/x?api_key=K", "http://h/x?…"),
            ("http://u:p?@h", "http://…@h"),
            ("http://h", "http://h"),
        ] {
            assert_eq!(without_credentials(text), expected, "{text}");
        }
    }

    proptest! {
        /// Whatever a text holds, it is one line and TOML reads it back.
        #[test]
        fn quoted_texts_are_read_back(text: String) {
            let line = format!("v = {}", quoted(&text));
            prop_assert!(!line.contains(['\n', '\r']));
            let read: toml::Table = toml::from_str(&line)?;
            prop_assert_eq!(read["v"].as_str(), Some(text.as_str()));
        }
    }
}
