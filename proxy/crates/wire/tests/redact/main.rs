//! Redaction, tested from outside: what users can rely on, the cases it was built for, and laws that hold for any input.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests stop at the first surprise, and the measurement prints"
)]

mod cases;
mod detectors;
mod json;
mod keys;
mod laws;
mod other;
mod prefix;
mod speed;

use std::fmt::Write as _;
use std::sync::LazyLock;

use callbox_wire::redact::{Detector, Place, Redactor, Rules};

pub(crate) const KEYS: [&str; 10] = [
    "password",
    "passwd",
    "secret",
    "token",
    "access_token",
    "refresh_token",
    "api_key",
    "authorization",
    "cookie",
    "private_key",
];

/// The defaults of the configuration.
pub(crate) fn rules() -> Rules {
    Rules {
        keys: KEYS.map(str::to_owned).to_vec(),
        detectors: Detector::ALL.to_vec(),
        pointers: Vec::new(),
    }
}

/// One with the default rules and the key of sevens.
pub(crate) fn redactor() -> &'static Redactor {
    static REDACTOR: LazyLock<Redactor> =
        LazyLock::new(|| Redactor::new(rules(), &[7; 32]).unwrap());
    &REDACTOR
}

pub(crate) fn only(detector: Detector) -> Redactor {
    let rules = Rules {
        detectors: vec![detector],
        ..Rules::default()
    };
    Redactor::new(rules, &[7; 32]).unwrap()
}

pub(crate) fn with_pointers(pointers: &[(&str, &str)]) -> Redactor {
    let pointers = pointers
        .iter()
        .map(|&(tool, pointer)| (tool.to_owned(), pointer.to_owned()));
    let rules = Rules {
        pointers: pointers.collect(),
        ..rules()
    };
    Redactor::new(rules, &[7; 32]).unwrap()
}

pub(crate) const ARGUMENTS: Place<'static> = Place::Arguments { tool: "any" };
pub(crate) const RESULT: Place<'static> = Place::Result { tool: "any" };

/// The text with the digits of placeholders blanked: `[redacted:email:9f2c1ab0]` becomes `[email]`.
pub(crate) fn shape(text: &str) -> String {
    let mut out = String::new();
    let mut tail = text;
    while let Some((before, after)) = tail.split_once("[redacted:") {
        out.push_str(before);
        match after.split_once(']') {
            Some((inside, rest)) => {
                let (kind, digits) = inside.split_once(':').unwrap();
                assert!(
                    digits.len() == 8 && digits.bytes().all(|b| b.is_ascii_hexdigit()),
                    "{text}"
                );
                write!(out, "[{kind}]").unwrap();
                tail = rest;
            }
            None => panic!("placeholder without an end: {text}"),
        }
    }
    out.push_str(tail);
    out
}
