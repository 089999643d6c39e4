//! JSON: byte splices in the right places, nothing else changed, no input too odd.

use std::borrow::Cow;
use std::fmt::Write as _;

use callbox_wire::redact::Place;
use serde_json::value::RawValue;

use crate::{ARGUMENTS, RESULT, redactor, shape, with_pointers};

#[test]
fn without_findings_the_very_same_text() {
    let redactor = redactor();
    for text in [
        r#"{"query":"Dana","n":1.0,"m":1e400,"b":[true,false,null],"o":{}}"#,
        "  [ 1 ,\t2\r\n]  ",
        r#""\u00e9\uD834\uDD1E \ud800 \\ \/ \" \b""#,
        r#"{"a":1,"a":2,"":{"":[]}}"#,
        "0",
        "-0.0E+7",
        "true",
        r#""""#,
    ] {
        assert!(
            matches!(redactor.json(text, ARGUMENTS), Cow::Borrowed(same) if same == text),
            "{text}"
        );
    }
}

#[test]
fn around_a_finding_every_byte_stays() {
    let redactor = redactor();
    let text = "{ \"n\":1.00,\n\t\"mail\" : \"caf\\u00e9 <dana\\u0040northwind.example> \\/ \\ud83d\\ude00\",\"x\":-0,\"x\":1E5 }";
    assert_eq!(
        shape(&redactor.json(text, ARGUMENTS)),
        "{ \"n\":1.00,\n\t\"mail\" : \"caf\\u00e9 <[email]> \\/ \\ud83d\\ude00\",\"x\":-0,\"x\":1E5 }"
    );
}

#[test]
fn escapes_hide_nothing() {
    let redactor = redactor();
    let escaped = |text: &str| {
        text.chars().fold(String::new(), |mut out, c| {
            write!(out, "\\u{:04x}", u32::from(c)).unwrap();
            out
        })
    };
    for (secret, kind) in [
        ("dana@northwind.example", "email"),
        ("4111 1111 1111 1111", "card"),
        ("(555)0100123", "phone"),
        ("AKIAIOSFODNN7EXAMPLE", "cloud-key"),
        ("redis://:pw@", ""),
    ] {
        let text = format!(r#"["x {} y"]"#, escaped(secret));
        let out = shape(&redactor.json(&text, ARGUMENTS));
        if kind.is_empty() {
            assert!(!out.contains(&escaped("pw")), "{out}");
        } else {
            assert_eq!(out, format!(r#"["x [{kind}] y"]"#));
        }
    }
    let nested = format!(r#"{{"cfg":"{}"}}"#, escaped(r#"{"password":"K5","b":[1]}"#));
    let out = redactor.json(&nested, ARGUMENTS);
    let value: serde_json::Value = serde_json::from_str(&out).unwrap();
    let inner: serde_json::Value = serde_json::from_str(value["cfg"].as_str().unwrap()).unwrap();
    assert_eq!(shape(inner["password"].as_str().unwrap()), "[key]");
    assert_eq!(inner["b"], serde_json::json!([1]));
}

#[test]
fn secrets_in_names() {
    let redactor = redactor();
    assert_eq!(
        shape(&redactor.json(
            r#"{"dana@northwind.example":{"4111-1111-1111-1111":1}}"#,
            ARGUMENTS
        )),
        r#"{"[email]":{"[card]":1}}"#
    );
}

#[test]
fn every_one_of_repeated_members() {
    let text = r#"{"token":"a","token":"b","x":{"token":"a"}}"#;
    let out = redactor().json(text, ARGUMENTS).into_owned();
    assert_eq!(
        shape(&out),
        r#"{"token":"[key]","token":"[key]","x":{"token":"[key]"}}"#
    );
    let mut digits = out
        .match_indices("[redacted:")
        .map(|(at, _)| out.get(at..at + 23).unwrap());
    let (a, b, again) = (
        digits.next().unwrap(),
        digits.next().unwrap(),
        digits.next().unwrap(),
    );
    assert_eq!(a, again, "equal values, equal placeholders");
    assert_ne!(a, b);
}

#[test]
fn what_is_no_json_goes_whole() {
    let redactor = redactor();
    for text in [
        "",
        " ",
        "{",
        "}",
        "[1,]",
        "[,1]",
        "{\"a\":1,}",
        "{a:1}",
        "{\"a\" 1}",
        "{\"a\":}",
        "[1 2]",
        "01",
        "1.",
        "-",
        "+1",
        ".5",
        "1e",
        "nul",
        "nulll",
        "True",
        "\"",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"a\nb\"",
        "'a'",
        "[1]]",
        "{}{}",
        "[}",
        "{]",
        "\"a\":1",
        "\u{feff}{}",
        "{\"password\":\"K\"",
        "[\"\\",
        "[\"\\u00",
        "NaN",
        "[1]x",
        "{\"a\":1 \"b\":2}",
        "{1:2}",
        "[\"a\":1]",
        "{\"a\"}",
        "/**/1",
    ] {
        assert_eq!(
            shape(&redactor.json(text, ARGUMENTS)),
            r#""[unread]""#,
            "{text:?}"
        );
    }
}

#[test]
fn the_same_grammar_as_the_reader_of_records() {
    // A record is kept as raw JSON: what is let through must be that, and nothing that is need be lost.
    let redactor = redactor();
    for text in [
        "\"\\ud800\"",
        "\"\\udc00\\ud800x\"",
        "\"\\uD834x\"",
        "1E+2",
        "-0",
        " \n1\t",
        "[[[[]]]]",
        "\"\u{7f}\u{2028}\"",
    ] {
        assert!(
            serde_json::from_str::<&RawValue>(text.trim()).is_ok(),
            "{text}"
        );
        assert_eq!(redactor.json(text, ARGUMENTS), text);
    }
}

#[test]
fn schemas_define_secrets_and_hold_none() {
    let redactor = redactor();
    let tools = r#"[{"name":"login","description":"password: at least 8","inputSchema":{"type":"object","properties":{"password":{"type":"string"},"api_key":true},"required":["password"]}}]"#;
    assert_eq!(redactor.json(tools, Place::Schema), tools);
    let example = r#"[{"name":"x","description":"mail dana@northwind.example"}]"#;
    assert_eq!(
        shape(&redactor.json(example, Place::Schema)),
        r#"[{"name":"x","description":"mail [email]"}]"#
    );
    // A schema inside another message.
    let elicit = r#"{"method":"elicitation/create","params":{"message":"Sign in","requestedSchema":{"type":"object","properties":{"password":{"type":"string","minLength":8},"user":{"type":"object","properties":{"token":{"type":"string"}}}}}}}"#;
    assert_eq!(redactor.json(elicit, Place::Message), elicit);
    let answer =
        r#"{"action":"accept","content":{"password":"K","properties":{"password":{"v":"K"}}}}"#;
    assert_eq!(
        shape(&redactor.json(answer, Place::Message)),
        r#"{"action":"accept","content":{"password":"[key]","properties":{"password":"[key]"}}}"#
    );
    let odd = r#"{"inputSchema":{"properties":{"password":"K"},"default":{"password":{"v":"K"}}}}"#;
    assert_eq!(
        shape(&redactor.json(odd, RESULT)),
        r#"{"inputSchema":{"properties":{"password":"[key]"},"default":{"password":"[key]"}}}"#
    );
}

#[test]
fn request_state_is_kept_as_its_digest() {
    let redactor = redactor();
    let result = r#"{"resultType":"input_required","requestState":"sealed","structuredContent":{"requestState":"open"}}"#;
    assert_eq!(
        shape(&redactor.json(result, RESULT)),
        r#"{"resultType":"input_required","requestState":"[state]","structuredContent":{"requestState":"open"}}"#
    );
    let first = redactor
        .json(r#"{"requestState":"s"}"#, RESULT)
        .into_owned();
    assert_eq!(
        first,
        redactor.json(r#"{"requestState":"s"}"#, Place::Message)
    );
}

#[test]
fn pointers() {
    let redactor = with_pointers(&[
        ("crm", "/a/0/b"),
        ("*", "/notes/*/text"),
        ("crm", "/x~1y/z~0"),
        ("crm", "/structuredContent/income"),
    ]);
    let crm = Place::Arguments { tool: "crm" };
    for (text, expected) in [
        (
            r#"{"a":[{"b":1,"c":2},{"b":1}]}"#,
            r#"{"a":[{"b":"[pointer]","c":2},{"b":1}]}"#,
        ),
        (
            r#"{"a":{"0":{"b":[1]}}}"#,
            r#"{"a":{"0":{"b":"[pointer]"}}}"#,
        ),
        (
            r#"{"notes":[{"text":"x"},{"text":"","y":{"text":"x"}}]}"#,
            r#"{"notes":[{"text":"[pointer]"},{"text":"","y":{"text":"x"}}]}"#,
        ),
        (
            r#"{"x/y":{"z~":"s","z":"t"},"b":1}"#,
            r#"{"x/y":{"z~":"[pointer]","z":"t"},"b":1}"#,
        ),
        // Through a string that holds JSON.
        (
            r#"{"a":"[{\"b\":\"s\"}]"}"#,
            r#"{"a":"[{\"b\":\"[pointer]\"}]"}"#,
        ),
    ] {
        assert_eq!(shape(&redactor.json(text, crm)), expected);
    }
    let other = Place::Arguments { tool: "other" };
    assert_eq!(
        redactor.json(r#"{"a":[{"b":1}]}"#, other),
        r#"{"a":[{"b":1}]}"#
    );
    assert_eq!(
        shape(&redactor.json(r#"{"notes":{"k":{"text":1}}}"#, other)),
        r#"{"notes":{"k":{"text":"[pointer]"}}}"#
    );
    // The text that repeats a structured result.
    let result = r#"{"structuredContent":{"income":5},"content":[{"type":"text","text":"{\"income\": 5, \"n\": 1}"}]}"#;
    assert_eq!(
        shape(&redactor.json(result, Place::Result { tool: "crm" })),
        r#"{"structuredContent":{"income":"[pointer]"},"content":[{"type":"text","text":"{\"income\": \"[pointer]\", \"n\": 1}"}]}"#
    );
    let whole = with_pointers(&[("vault", "")]);
    let vault = Place::Result { tool: "vault" };
    for text in ["{\"a\":1}", "[1]", "5"] {
        assert_eq!(shape(&whole.json(text, vault)), r#""[pointer]""#);
    }
}

#[test]
fn depth_costs_no_stack() {
    let redactor = redactor();
    let deep = |levels: usize| {
        format!(
            "{}{}{}",
            "[".repeat(levels),
            r#"{"password":"K"}"#,
            "]".repeat(levels)
        )
    };
    let out = shape(&redactor.json(&deep(10_000), ARGUMENTS));
    assert!(
        out.contains(r#"{"password":"[key]"}"#)
            && out.len() == 10_000 * 2 + r#"{"password":"[key]"}"#.len()
    );
    assert_eq!(
        shape(&redactor.json(&deep(1_000_000), ARGUMENTS)),
        r#""[unread]""#
    );
    let objects = format!("{}1{}", r#"{"a":"#.repeat(10_000), "}".repeat(10_000));
    assert_eq!(redactor.json(&objects, ARGUMENTS), objects);
    // Strings in strings: what lies deeper than they are read is still scanned as text.
    let mut text = r#"{"password":"K5"}"#.to_owned();
    for _ in 0..12 {
        text = serde_json::to_string(&text).unwrap();
        assert!(!redactor.json(&text, ARGUMENTS).contains("K5"));
    }
}

#[test]
fn json_in_text_around_it() {
    let redactor = redactor();
    let text = r#"["Result:\n{\"password\": \"K5\", \"n\": {\"api_key\":12}}\nDone"]"#;
    assert_eq!(
        shape(&redactor.json(text, RESULT)),
        r#"["Result:\n{\"password\": \"[key]\", \"n\": {\"api_key\":[key]}}\nDone"]"#
    );
}
