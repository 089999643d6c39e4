//! Redaction never panics and keeps valid JSON valid.

#![no_main]

use std::sync::LazyLock;

use callbox_wire::redact::{Detector, Place, Redactor, Rules};

static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| {
    let keys = ["password", "token", "api_key"].map(str::to_owned).to_vec();
    let detectors = vec![
        Detector::Pem,
        Detector::Jwt,
        Detector::CloudKey,
        Detector::Card,
        Detector::Email,
        Detector::Phone,
        Detector::Iban,
        Detector::UrlCredential,
        Detector::Ssn,
    ];
    let pointers = vec![
        ("*".to_owned(), "/secret".to_owned()),
        ("t".to_owned(), "/a/*/b".to_owned()),
    ];
    Redactor::new(
        Rules {
            keys,
            detectors,
            pointers,
        },
        &[7; 32],
    )
    .expect("sound rules")
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let [place, text @ ..] = input else { return };
    let place = || match place % 4 {
        0 => Place::Arguments { tool: "t" },
        1 => Place::Result { tool: "t" },
        2 => Place::Message,
        _ => Place::Schema,
    };
    let _: String = REDACTOR.json_prefix(text, place());
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let once = REDACTOR.json(text, place());
    if serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() {
        assert!(
            serde_json::from_str::<serde::de::IgnoredAny>(&once).is_ok(),
            "{once}"
        );
    }
    drop(REDACTOR.text(text));
    drop(REDACTOR.target(text));
    drop(REDACTOR.header("x-note", text));
});
