//! Values as TOML on one line. The `toml` crate would spread a text with line breaks over several.

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
