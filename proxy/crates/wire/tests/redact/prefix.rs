//! Documents that were cut: no half of a secret survives, wherever the cut.

use crate::{ARGUMENTS, RESULT, redactor, shape, with_pointers};
use callbox_wire::redact::Place;

#[test]
fn where_the_cut_may_be() {
    let redactor = redactor();
    for (text, expected) in [
        (r#"{"a":1,"password":"hunt"#, r#"{"a":1,"password":"[key]"#),
        (r#"{"a":1,"password":""#, r#"{"a":1,"password":""#),
        (r#"{"a":1,"password":"#, r#"{"a":1,"password":"#),
        (r#"{"a":1,"passw"#, r#"{"a":1,"[cut]"#),
        (r#"{"password":{"a":["x","#, r#"{"password":"[key]""#),
        (r#"{"password":12"#, r#"{"password":"[key]""#),
        (r#"{"password":tr"#, r#"{"password":tr"#),
        (
            r#"{"t":"some words and dana.k"#,
            r#"{"t":"some words and [cut]"#,
        ),
        (r#"{"t":"some words and "#, r#"{"t":"some words and "#),
        (r#"{"t":"card 4111 1111 11"#, r#"{"t":"card [cut]"#),
        (r#"{"t":"call +1 (415) 55"#, r#"{"t":"call [cut]"#),
        (r#"{"t":"IBAN DE89 3704 0044 0532 "#, r#"{"t":"IBAN [cut]"#),
        (
            r#"{"t":"key -----BEGIN PRIVATE KEY-----\nMIIE"#,
            r#"{"t":"key [pem]"#,
        ),
        (
            r#"{"t":"key -----BEGIN PRI"#,
            r#"{"t":"key -----BEGIN [cut]"#,
        ),
        (
            r#"{"t":"Authorization: Bearer ab"#,
            r#"{"t":"Authorization: [key]"#,
        ),
        (
            r#"{"t":"{\"password\":\"hun"#,
            r#"{"t":"{\"password\":\"[key]"#,
        ),
        (
            r#"{"t":"{\"a\":\"{\\\"token\\\":\\\"hun"#,
            r#"{"t":"{\"a\":\"{\\\"token\\\":\\\"[key]"#,
        ),
        (r#"{"t":"x \u00"#, r#"{"t":"x [cut]"#),
        (r#"{"phone":5550"#, r#"{"phone":"[cut]""#),
        (r#"{"n":5550"#, r#"{"n":5550"#),
        (r#"{"n":-"#, r#"{"n":-"#),
        (r#"{"n":5550,"#, r#"{"n":5550,"#),
        (r#"{"a":"b"}"#, r#"{"a":"b"}"#),
        (
            r#"{"mail":"dana@northwind.example","b":"#,
            r#"{"mail":"[email]","b":"#,
        ),
        ("", ""),
        ("[1, oops, \"password\": 1", "[1, [unread]"),
        ("<html>password=x", "[unread]"),
        (r#"{"password":[1,oops"#, r#"{"password":[unread]"#),
    ] {
        assert_eq!(
            shape(&redactor.json_prefix(text.as_bytes(), ARGUMENTS)),
            expected,
            "{text}"
        );
    }
    let pointed = with_pointers(&[("crm", "/note")]);
    let crm = Place::Arguments { tool: "crm" };
    assert_eq!(
        shape(&pointed.json_prefix(br#"{"note":"se cre"#, crm)),
        r#"{"note":"[pointer]"#
    );
}

#[test]
fn bytes_that_are_no_utf8() {
    let redactor = redactor();
    let cut_character = "{\"t\":\"words caf\u{e9}".as_bytes();
    let cut_character = &cut_character[..cut_character.len() - 1];
    assert_eq!(
        shape(&redactor.json_prefix(cut_character, ARGUMENTS)),
        r#"{"t":"words [cut]"#
    );
    let broken = b"{\"t\":\"a b\xFF password=x\",\"password\":\"K\"";
    assert_eq!(
        shape(&redactor.json_prefix(broken, ARGUMENTS)),
        r#"{"t":"a [cut][unread]"#
    );
    assert_eq!(
        shape(&redactor.text_prefix(b"a b\xFF password=x")),
        "a [cut][unread]"
    );
    assert_eq!(
        shape(&redactor.text_prefix(b"error at dana@nor")),
        "error at [cut]"
    );
}

#[test]
fn no_cut_leaks_half_a_secret() {
    let redactor = redactor();
    // Whatever of a secret is left must be too short to matter: under five of its bytes in a row.
    for (before, secret, after) in [
        (
            r#"{"content":[{"type":"text","text":"mail to "#,
            "dana.kim@northwind.example",
            r#" now"}]}"#,
        ),
        (
            r#"{"content":[{"type":"text","text":"card "#,
            "4111-1111-1111-1111",
            r#" now"}]}"#,
        ),
        (
            r#"{"content":[{"type":"text","text":"card "#,
            "4111 1111 1111 1111",
            r#" now"}]}"#,
        ),
        (r#"{"a":"call "#, "+44 20 7946 0958", r#" now"}"#),
        (
            r#"{"a":"account "#,
            "DE89 3704 0044 0532 0130 00",
            r#" now"}"#,
        ),
        (r#"{"a":"ssn "#, "123-45-6789", r#" now"}"#),
        (
            r#"{"a":"x","api_key":""#,
            "correct horse battery staple",
            r#"","z":1}"#,
        ),
        (
            r#"{"a":"x","api_key":{"v":""#,
            "correct horse battery staple",
            r#"","z":1}}"#,
        ),
        (
            r#"{"a":"{\"api_key\":\""#,
            "correct horse battery staple",
            r#"\"}","z":1}"#,
        ),
        (
            r#"{"a":"api_key: "#,
            "correct horse battery staple",
            r#"\n","z":1}"#,
        ),
        (
            r#"{"a":"see https://"#,
            "user:correct-horse",
            r#"@h.test/ now"}"#,
        ),
        (r#"{"a":"key "#, "AKIAIOSFODNN7EXAMPLE", r#" now"}"#),
        (
            r#"{"a":"jwt "#,
            "eyJhbGciOiJub25lIn0.eyJzdWIiOiJkYW5hIn0.AAAA",
            r#" now"}"#,
        ),
        (
            r#"{"a":"-----BEGIN PRIVATE KEY-----\n"#,
            r"MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQC7",
            r#"\n-----END PRIVATE KEY-----\n"}"#,
        ),
        (r#"{"requestState":""#, "sealed and long enough", r#""}"#),
    ] {
        let text = format!("{before}{secret}{after}");
        for cut in 0..=text.len() {
            let out = redactor.json_prefix(text.as_bytes().get(..cut).unwrap(), RESULT);
            for window in secret.as_bytes().windows(5) {
                let window = std::str::from_utf8(window).unwrap();
                assert!(
                    !out.contains(window),
                    "{window:?} of {secret:?} cut at {cut}: {out}"
                );
            }
            assert!(
                cut < before.len() || out.starts_with(before.get(..before.len().min(6)).unwrap()),
                "{out}"
            );
        }
    }
}
