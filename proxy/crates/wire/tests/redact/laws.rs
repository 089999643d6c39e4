//! Laws that hold for any input, looked for with random ones.

use std::borrow::Cow;
use std::fmt::Write as _;

use callbox_wire::redact::{Place, Redactor};
use proptest::prelude::*;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::{ARGUMENTS, RESULT, redactor, rules};

/// Secrets that are one wherever they stand.
const CANARIES: [&str; 12] = [
    "dana.kim@northwind.example",
    "4111 1111 1111 1111",
    "5555-5555-5555-4444",
    "378282246310005",
    "(555)0100123",
    "+44 20 7946 0958",
    "DE89 3704 0044 0532 0130 00",
    "123-45-6789",
    "eyJhbGciOiJub25lIn0.eyJzdWIiOiJkYW5hIn0.c2lnbmF0dXJl",
    "AKIAIOSFODNN7EXAMPLE",
    "https://kim:Canary-9@h.test/",
    "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ\n-----END PRIVATE KEY-----",
];

/// The part of a canary that must not be seen again.
fn core(canary: &str) -> &str {
    match canary {
        url if url.starts_with("https") => "Canary-9",
        pem if pem.starts_with("-----") => "MIIEvQIBADANBgkqhkiG9w0BAQ",
        other => other,
    }
}

/// What separates words, breaks off, or looks like the beginning of something.
const PIECES: [&str; 56] = [
    "password",
    "token",
    "API key",
    "secret=",
    "password: ",
    "Authorization: Bearer ",
    "\"cookie\":",
    "x",
    "Dana",
    "42",
    "2026-11-30",
    "=",
    ":",
    "&",
    ";",
    ",",
    "?",
    "#",
    "%",
    "%40",
    "%3D",
    "%20",
    "+",
    "-",
    "--",
    "-----BEGIN ",
    "-----",
    "-----END X-----",
    ".",
    "..",
    "/",
    "//",
    "://",
    "@",
    "h.test",
    "u:p@",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "'",
    "\\",
    "\\n",
    "\n",
    " ",
    "\t",
    "eyJ",
    "4111",
    "555-",
    "DE89",
    "[redacted:key:00c0ffee]",
    "[redacted:",
    "é",
];

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => prop::sample::select(&PIECES[..]).prop_map(str::to_owned),
        1 => prop::sample::select(&CANARIES[..]).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
        1 => "[0-9]{1,20}",
    ]
}

fn soup() -> impl Strategy<Value = String> + Clone {
    prop::collection::vec(piece().boxed(), 0..14)
        .prop_map(|pieces| pieces.concat())
        .boxed()
}

/// Any JSON value, with names that matter among the others.
fn json_value(
    leaf: impl Strategy<Value = String> + Clone + 'static,
    names: &'static [&'static str],
) -> impl Strategy<Value = Value> {
    let name = prop_oneof![
        prop::sample::select(names).prop_map(str::to_owned),
        "[a-z]{0,5}",
        leaf.clone(),
    ];
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        leaf.prop_map(Value::from),
    ];
    scalar.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner.clone()), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
            // JSON in a string.
            inner.prop_map(|value| Value::from(value.to_string())),
        ]
    })
}

/// `value` written with escapes and blanks that a writer may choose.
fn spelled(value: &Value, choices: &mut impl FnMut() -> u32, out: &mut String) {
    let blank =
        |out: &mut String, choice: u32| out.push_str(["", "", " ", "\n\t"][choice as usize % 4]);
    match value {
        Value::String(text) => {
            out.push('"');
            for c in text.chars() {
                match (c, choices() % 8) {
                    (_, 0) => {
                        for unit in c.encode_utf16(&mut [0; 2]) {
                            write!(out, "\\u{unit:04X}").unwrap();
                        }
                    }
                    ('/', 1..=3) => out.push_str("\\/"),
                    ('"' | '\\', _) => out.extend(['\\', c]),
                    ('\n', _) => out.push_str("\\n"),
                    (c, _) if c < ' ' => write!(out, "\\u{:04x}", u32::from(c)).unwrap(),
                    (c, _) => out.push(c),
                }
            }
            out.push('"');
        }
        Value::Array(elements) => {
            out.push('[');
            for (i, element) in elements.iter().enumerate() {
                out.push_str(if i > 0 { "," } else { "" });
                blank(out, choices());
                spelled(element, choices, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (i, (name, member)) in members.iter().enumerate() {
                out.push_str(if i > 0 { "," } else { "" });
                spelled(&Value::from(name.as_str()), choices, out);
                blank(out, choices());
                out.push(':');
                blank(out, choices());
                spelled(member, choices, out);
            }
            out.push('}');
        }
        other => out.push_str(&other.to_string()),
    }
}

/// Names that change how a value is read.
const NAMES: &[&str] = &[
    "password",
    "requestState",
    "inputSchema",
    "properties",
    "phone",
    "_meta",
    "progressToken",
];

fn document(
    leaf: impl Strategy<Value = String> + Clone + 'static,
) -> impl Strategy<Value = String> {
    written(json_value(leaf, NAMES))
}

fn written(value: impl Strategy<Value = Value>) -> impl Strategy<Value = String> {
    (value, any::<u64>()).prop_map(|(value, mut state)| {
        let mut out = String::new();
        let mut choices = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            u32::try_from(state >> 33).unwrap()
        };
        spelled(&value, &mut choices, &mut out);
        out
    })
}

/// Every text that a reader could find: names and strings, also those in JSON in strings.
fn texts(json: &str, found: &mut Vec<String>) {
    fn walk(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::String(text) => texts(text, found),
            Value::Array(elements) => elements.iter().for_each(|element| walk(element, found)),
            Value::Object(members) => members.iter().for_each(|(name, member)| {
                found.push(name.clone());
                walk(member, found);
            }),
            _ => {}
        }
    }
    found.push(json.to_owned());
    if let Ok(value) = serde_json::from_str::<Value>(json) {
        walk(&value, found);
    }
}

/// Whether `out` is `text` with some spans replaced by placeholders.
fn is_splice(text: &str, out: &str) -> bool {
    let mut pieces = Vec::new();
    let mut tail = out;
    while let Some((before, after)) = tail.split_once("[redacted:") {
        pieces.push(before);
        tail = after.split_once(']').map_or("", |(_, rest)| rest);
    }
    pieces.push(tail);
    // A value that was no string gets quotes of its own.
    let bare = |piece: &str| {
        piece
            .trim_start_matches(['\\', '"'])
            .trim_end_matches(['\\', '"'])
            .to_owned()
    };
    let mut from = 0;
    pieces.iter().all(|piece| {
        let piece = bare(piece);
        match text.get(from..).and_then(|rest| rest.find(&piece)) {
            Some(at) => {
                from += at + piece.len();
                true
            }
            None => false,
        }
    })
}

fn places() -> impl Strategy<Value = Place<'static>> {
    prop::sample::select(vec![ARGUMENTS, RESULT, Place::Message, Place::Schema])
}

proptest! {
    /// Valid comes out valid and spliced, invalid comes out whole.
    #[test]
    fn json_stays_json(text in document(soup()), place in places()) {
        let out = redactor().json(&text, place);
        prop_assert!(serde_json::from_str::<&RawValue>(&text).is_ok(), "the generator writes JSON");
        prop_assert!(serde_json::from_str::<&RawValue>(out.trim()).is_ok(), "{out}");
        prop_assert!(!out.contains("[redacted:unread:"), "{out}");
        prop_assert!(is_splice(&text, &out), "{text}\n{out}");
    }

    #[test]
    fn damaged_json_is_read_as_the_reader_of_records_reads_it(
        text in document("[a-z]{0,3}"), at in any::<prop::sample::Index>(), with in prop::sample::select(&PIECES[..]), cut in 0_usize..4,
    ) {
        let at = at.index(text.len() + 1);
        let (Some(before), Some(after)) = (text.get(..at), text.get(at..).map(|rest| rest.get(cut.min(rest.len())..).unwrap_or(rest))) else { return Ok(()) };
        let text = format!("{before}{with}{after}");
        let out = redactor().json(&text, ARGUMENTS);
        let valid = serde_json::from_str::<&RawValue>(&text).is_ok();
        prop_assert_eq!(valid, !out.starts_with("\"[redacted:unread:"), "{}", text);
        prop_assert!(serde_json::from_str::<&RawValue>(out.trim()).is_ok());
    }

    #[test]
    fn without_findings_nothing_is_copied(text in written(json_value("[ a-z]{0,12}", &["inputSchema", "_meta"]))) {
        prop_assert!(matches!(redactor().json(&text, ARGUMENTS), Cow::Borrowed(_)));
    }

    /// It settles: a placeholder may change what the text right beside it is, so the second time may find that as well.
    /// After that nothing changes.
    #[test]
    fn idempotent(text in soup(), json in document(soup()), place in places()) {
        let redactor = redactor();
        let settles = |text: &str, redact: &dyn Fn(&str) -> String| {
            let twice = redact(&redact(text));
            prop_assert_eq!(&redact(&twice), &twice, "{}", text);
            Ok(())
        };
        settles(&text, &|text| redactor.text(text).into_owned())?;
        settles(&text, &|text| redactor.target(text).into_owned())?;
        for name in ["authorization", "cookie", "set-cookie", "x-other", "mcp-name", "mcp-session-id"] {
            settles(&text, &|text| redactor.header(name, text).into_owned())?;
        }
        settles(&json, &|text| redactor.json(text, place).into_owned())?;
    }

    /// Planted anywhere, in any spelling, at any depth of strings in strings: it is gone.
    #[test]
    fn no_canary_survives(
        which in prop::sample::select(&CANARIES[..]), left in "( |[a-z]{1,6} |\n|<|\"){0,2}", right in "( [a-z]{1,6}|,|;|\n|>|\"){0,2}",
        wraps in prop::collection::vec(0_u8..5, 0..5), state in any::<u64>(), place in places(),
    ) {
        let mut state = state;
        let mut choices = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            u32::try_from(state >> 33).unwrap()
        };
        let mut value = Value::from(format!("{left}{which}{right}"));
        for wrap in wraps {
            value = match wrap {
                0 => serde_json::json!([1, value, "x"]),
                1 => serde_json::json!({"a": 1.5, "deep": value}),
                2 => match value {
                    Value::String(name) => serde_json::json!({name: true}),
                    other => other,
                },
                _ => {
                    let mut text = String::new();
                    spelled(&value, &mut choices, &mut text);
                    Value::from(text)
                }
            };
        }
        let mut text = String::new();
        spelled(&value, &mut choices, &mut text);
        let out = redactor().json(&text, place);
        let mut found = Vec::new();
        texts(&out, &mut found);
        for seen in &found {
            prop_assert!(!seen.contains(core(which)), "{text}\n{out}");
        }
    }

    /// The value of a secret's name goes, whatever it is.
    #[test]
    fn no_value_of_a_secret_name_survives(
        name in prop::sample::select(&["password", "userPassword", "API-KEY", "x_refresh_token", "Cookie"][..]),
        value in json_value("[a-z]{0,3}", NAMES), strings in 0_u8..4,
    ) {
        let mut value = serde_json::json!({"a": {name: [value, "canary7", {"b": "canary7"}]}});
        for _ in 0..strings {
            value = serde_json::json!({"text": value.to_string()});
        }
        let text = value.to_string();
        let out = redactor().json(&text, ARGUMENTS);
        prop_assert!(!out.contains("canary7"), "{out}");
        // The same, cut anywhere.
        for cut in 0..=text.len() {
            if let Some(prefix) = text.get(..cut) {
                prop_assert!(!redactor().json_prefix(prefix.as_bytes(), ARGUMENTS).contains("canary"));
            }
        }
    }

    /// Equal placeholders with one key, others with another.
    #[test]
    fn placeholders_follow_the_key(which in prop::sample::select(&CANARIES[..])) {
        let other = Redactor::new(rules(), &[8; 32]).unwrap();
        let text = format!("a {which} b {which} c");
        let out = redactor().text(&text).into_owned();
        let halves = out.split_once(" b ").map(|(one, two)| (one.trim_start_matches("a ").to_owned(), two.trim_end_matches(" c").to_owned()));
        let (one, two) = halves.unwrap();
        prop_assert_eq!(one, two);
        prop_assert_eq!(&redactor().text(&text), &out);
        prop_assert_ne!(&other.text(&text), &out);
    }

    /// No input is too odd.
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200), text in soup(), place in places()) {
        let redactor = redactor();
        redactor.json_prefix(&bytes, place);
        redactor.text_prefix(&bytes);
        redactor.json_prefix(text.as_bytes(), place);
        redactor.text_prefix(text.as_bytes());
        let lossy = String::from_utf8_lossy(&bytes);
        redactor.json(&lossy, place);
        redactor.text(&lossy);
        redactor.target(&lossy);
        redactor.header(&text, &lossy);
    }
}
