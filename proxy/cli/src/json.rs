//! Recorded JSON as people read it: on one line, or laid out. Works on the text, never on parsed values, so that numbers,
//! escapes and repeated members stay as they were spelled; all that comes out is inert on a terminal.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::text::{bytes, push_visible, visible};

/// On one line without needless space; stops soon after `room` bytes.
pub(crate) fn compact(json: &str, room: usize) -> String {
    let mut line = String::new();
    let mut string = InString::default();
    for c in json.chars() {
        if string.inside(c) || !c.is_ascii_whitespace() {
            push_visible(&mut line, c);
        }
        if line.len() > room {
            line.push('…');
            break;
        }
    }
    line
}

/// An object's members as `name=value`, anything else as [`compact`] writes it.
pub(crate) fn assignments(json: &str, room: usize) -> String {
    let Ok(Members(members)) = serde_json::from_str(json) else {
        return compact(json, room);
    };
    let mut line = String::new();
    for (name, value) in members {
        if line.len() > room {
            // The caller's truncation shows that there was more.
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        let bare = !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_alphanumeric() || "_-.$".contains(c));
        let name = if bare { name } else { quoted(&name) };
        line.push_str(&visible(&name));
        line.push('=');
        line.push_str(&compact(value.get(), room.saturating_sub(line.len())));
    }
    line
}

/// One member a line, two spaces a level. At most `columns` bytes of each line are kept, the rest is counted; also tells
/// whether that happened.
pub(crate) fn pretty(json: &str, columns: usize) -> (Vec<String>, bool) {
    let mut layout = Layout {
        columns,
        ..Layout::default()
    };
    let mut strings = InString::default();
    let mut chars = json
        .chars()
        .filter(|c| strings.inside(*c) || !c.is_ascii_whitespace())
        .peekable();
    let mut string = InString::default();
    while let Some(c) = chars.next() {
        if string.inside(c) {
            layout.push(c);
            continue;
        }
        match c {
            '{' | '[' => {
                layout.push(c);
                match chars.next_if(|next| matches!(next, '}' | ']')) {
                    Some(close) => layout.push(close),
                    None => layout.open(),
                }
            }
            '}' | ']' => layout.close(c),
            ',' => {
                layout.push(c);
                layout.newline();
            }
            ':' => {
                layout.push(c);
                layout.push(' ');
            }
            c => layout.push(c),
        }
    }
    layout.newline();
    (layout.lines, layout.any_cut)
}

/// Whether a text is a JSON object or array.
pub(crate) fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[']) && serde_json::from_str::<&RawValue>(text).is_ok()
}

/// A text as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Tells string contents from structure, one character at a time.
#[derive(Default)]
struct InString {
    inside: bool,
    escaped: bool,
}

impl InString {
    /// Whether `c` belongs to a string, its quotes included.
    fn inside(&mut self, c: char) -> bool {
        if !self.inside {
            self.inside = c == '"';
            return self.inside;
        }
        if self.escaped {
            self.escaped = false;
        } else if c == '\\' {
            self.escaped = true;
        } else if c == '"' {
            self.inside = false;
        }
        true
    }
}

#[derive(Default)]
struct Layout {
    lines: Vec<String>,
    line: String,
    /// Bytes left out of the current line.
    cut: usize,
    any_cut: bool,
    columns: usize,
    depth: usize,
}

impl Layout {
    fn push(&mut self, c: char) {
        if self.line.len() < self.columns {
            push_visible(&mut self.line, c);
        } else {
            self.cut += c.len_utf8();
        }
    }

    fn open(&mut self) {
        self.depth += 1;
        self.newline();
    }

    fn close(&mut self, c: char) {
        self.depth = self.depth.saturating_sub(1);
        self.newline();
        self.push(c);
    }

    fn newline(&mut self) {
        // Nobody can read hostile depth anyway; without the cap it would cost quadratic space.
        let indent = "  ".repeat(self.depth.min(32));
        let mut line = std::mem::replace(&mut self.line, indent);
        if self.cut > 0 {
            line += "… (+";
            line += &bytes(self.cut as u64);
            line.push(')');
            self.cut = 0;
            self.any_cut = true;
        }
        self.lines.push(line);
    }
}

/// An object's members in their order, repeated ones included.
pub(crate) struct Members<'a>(pub(crate) Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Each).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn arguments_read_like_a_call() {
        let json = "{ \"query\" : \"Dana  Kim\",\n \"limit\":1.50, \"tags\":[ \"a\", null ], \"odd name\":{} }";
        assert_eq!(
            assignments(json, 200),
            r#"query="Dana  Kim" limit=1.50 tags=["a",null] "odd name"={}"#
        );
        assert_eq!(assignments("{\"a\":1,\"a\":2}", 200), "a=1 a=2");
        assert_eq!(assignments("{}", 200), "");
        assert_eq!(assignments("[1, 2]", 200), "[1,2]");
        assert_eq!(
            assignments(r#"{"a":"say \"{ x }\" \\"}"#, 200),
            r#"a="say \"{ x }\" \\""#
        );
    }

    #[test]
    fn recorded_text_stays_inert() {
        assert_eq!(
            assignments("{\"a\u{202e}\":\"\u{9b}31m\"}", 200),
            "\"a\\u202e\"=\"\\u009b31m\""
        );
        assert_eq!(
            pretty("{\"a\":\"\u{9b}31m\"}", 200).0,
            ["{", "  \"a\": \"\\u009b31m\"", "}"]
        );
    }

    #[test]
    fn long_texts_end_early() {
        let json = format!("{{\"a\":\"{}\",\"b\":1}}", "x".repeat(1 << 20));
        assert!(assignments(&json, 100).len() < 120);
        let (lines, cut) = pretty(&json, 20);
        assert!(cut);
        assert_eq!(
            lines.iter().map(String::as_str).collect::<Vec<_>>(),
            [
                "{",
                "  \"a\": \"xxxxxxxxxxxx… (+1,023 KiB)",
                "  \"b\": 1",
                "}"
            ]
        );
    }

    #[test]
    fn layout() {
        insta::assert_snapshot!(pretty(r#"{"a":[1.0,{"b":"x, y: {}"}],"e":[],"o":{},"n":null}"#, 200).0.join("\n"), @r#"
        {
          "a": [
            1.0,
            {
              "b": "x, y: {}"
            }
          ],
          "e": [],
          "o": {},
          "n": null
        }
        "#);
    }

    proptest! {
        /// Laid out or compacted, it is the same JSON.
        #[test]
        fn meaning_is_kept(texts: Vec<String>, number: i64) {
            let value = serde_json::json!({ "texts": texts, "number": number, "nested": [{ "texts": texts }, {}, []] });
            for text in [value.to_string(), serde_json::to_string_pretty(&value)?] {
                let compacted: serde_json::Value = serde_json::from_str(&compact(&text, usize::MAX))?;
                prop_assert_eq!(&compacted, &value);
                let laid_out: serde_json::Value = serde_json::from_str(&pretty(&text, usize::MAX).0.join("\n"))?;
                prop_assert_eq!(&laid_out, &value);
            }
        }
    }
}
