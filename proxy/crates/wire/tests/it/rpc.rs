//! Which text is which message.

use callbox_wire::rpc::{self, Body, DecodeError, ErrorFacts, IdField, Kind, RequestId};
use serde_json::value::RawValue;

fn kinds(text: &str) -> Vec<Kind> {
    rpc::parse(text.as_bytes())
        .unwrap()
        .messages()
        .iter()
        .map(|message| message.kind)
        .collect()
}

#[test]
fn kinds_by_members() {
    use Kind::{Invalid, Notification, Request, Response};
    for (text, kind) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#, Request),
        (r#"{"method":"a","id":"x","params":null}"#, Request),
        (r#"{"jsonrpc":"2.0","method":"a"}"#, Notification),
        (r#"{"jsonrpc":"2.0","id":1,"result":null}"#, Response),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}"#,
            Response,
        ),
        (r#"{"jsonrpc":"2.0","id":null,"error":{}}"#, Response),
        (r#"{"jsonrpc":"2.0","error":{}}"#, Response),
        (r#"{"id":1,"error":null}"#, Response),
        (
            r#"{"id":1,"method":null,"params":null,"result":{}}"#,
            Response,
        ),
        (r#"{"id":1.5,"result":1}"#, Response),
        (r#"{"id":-1,"result":1}"#, Response),
        (r#"{"id":1,"method":"a","result":1}"#, Invalid),
        (r#"{"id":1,"method":"a","error":{}}"#, Invalid),
        (r#"{"id":1,"method":7}"#, Invalid),
        (r#"{"id":1,"method":null}"#, Invalid),
        (r#"{"id":{},"method":"a"}"#, Invalid),
        (r#"{"id":true,"result":1}"#, Invalid),
        (r#"{"id":1}"#, Invalid),
        ("{}", Invalid),
    ] {
        assert_eq!(kinds(text), [kind], "{text}");
    }
}

#[test]
fn batches_keep_order_and_odd_elements() {
    let text =
        r#" [ {"jsonrpc":"2.0","id":1,"method":"a"} , 7, [{}], {"jsonrpc":"2.0","method":"b"}] "#;
    assert_eq!(
        kinds(text),
        [
            Kind::Request,
            Kind::Invalid,
            Kind::Invalid,
            Kind::Notification
        ]
    );
    let body = rpc::parse(text.as_bytes()).unwrap();
    let texts: Vec<&str> = body.messages().iter().map(|message| message.text).collect();
    assert_eq!(
        texts,
        [
            r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#,
            "7",
            "[{}]",
            r#"{"jsonrpc":"2.0","method":"b"}"#
        ]
    );
    assert!(matches!(rpc::parse(b"[]").unwrap(), Body::Batch(messages) if messages.is_empty()));
}

#[test]
fn parts_are_slices_of_the_text() {
    let text = "{ \"params\" : {\"b\":1, \"a\" : 2.50} , \"id\" : \"q\\/1\",\"method\":\"t\\u006fols/call\",\"x9\":[] }";
    let body = rpc::parse(text.as_bytes()).unwrap();
    let [message] = body.messages() else { panic!() };
    assert_eq!(message.params.unwrap().get(), "{\"b\":1, \"a\" : 2.50}");
    assert_eq!(message.method.as_deref(), Some("tools/call"));
    assert_eq!(message.id.id().unwrap().as_raw_json(), "\"q\\/1\"");
    assert!(matches!(message.id.id().unwrap(), RequestId::String(id) if id.text() == "q/1"));
    assert_eq!(message.text, text);
    assert!(message.not_v2 && !message.duplicate_members);
}

#[test]
fn the_last_of_repeated_members_counts() {
    let text = r#"{"jsonrpc":"1.0","id":1,"result":1,"jsonrpc":"2.0","\u0069d":"2","result":2}"#;
    let body = rpc::parse(text.as_bytes()).unwrap();
    let [message] = body.messages() else { panic!() };
    assert!(message.duplicate_members && !message.not_v2);
    assert_eq!(message.id.id().unwrap().as_raw_json(), "\"2\"");
    assert_eq!(message.result.unwrap().get(), "2");
    let early = rpc::parse(br#"{"id":1,"id":2,"method":"a"}"#).unwrap();
    assert!(early.messages()[0].duplicate_members);
    let unnamed = rpc::parse(br#"{"x":1,"x":2}"#).unwrap();
    assert!(
        !unnamed.messages()[0].duplicate_members,
        "members without a meaning are not watched"
    );
}

#[test]
fn a_null_error_next_to_a_result_is_none() {
    let body = rpc::parse(br#"{"id":1,"error":null,"result":null}"#).unwrap();
    let [message] = body.messages() else { panic!() };
    assert!(message.error.is_none());
    assert_eq!(message.result.unwrap().get(), "null");
}

#[test]
fn lone_surrogates_lose_no_message() {
    let body = rpc::parse(
        br#"{"\ud800":1,"jsonrpc":"2.0","id":"\ud800","method":"a","params":{"x":"\udfff"}}"#,
    )
    .unwrap();
    let [message] = body.messages() else { panic!() };
    assert_eq!(message.kind, Kind::Request);
    let id = message.id.id().unwrap();
    assert_eq!(id.as_raw_json(), r#""\ud800""#);
    assert_eq!(Some(id), RequestId::from_raw_json(r#""\ud800""#).as_ref());
    assert_ne!(
        Some(id),
        RequestId::from_raw_json(r#""\\ud800""#).as_ref(),
        "spelling and text do not meet"
    );
}

#[test]
fn ids_from_text() {
    for raw in ["0", "-1", "1.5e3", "1e400", "\"\"", "\"a b\""] {
        assert_eq!(RequestId::from_raw_json(raw).unwrap().as_raw_json(), raw);
    }
    for raw in [
        "", " 1", "1 ", "01", "+1", "null", "true", "{}", "[1]", "\"", "\"a", "\"a\" ", "\"a\"b\"",
        "NaN", "1,2",
    ] {
        assert_eq!(RequestId::from_raw_json(raw), None, "{raw:?}");
    }
    let [a, b] = ["\"a\"", "\"b\""].map(|raw| RequestId::from_raw_json(raw).unwrap());
    assert!(!a.resembles(&b) && a.resembles(&a));
}

#[test]
fn a_byte_order_mark_is_skipped() {
    assert_eq!(kinds("\u{FEFF}{\"method\":\"a\"}"), [Kind::Notification]);
}

#[test]
fn errors_say_where() {
    let error = |text: &[u8]| rpc::parse(text).unwrap_err();
    assert_eq!(
        error(b"{\"a\":\"\xFF\"}"),
        DecodeError::NotUtf8 { offset: 6 }
    );
    assert_eq!(
        error(b"\xEF\xBB\xBF{\"a\":\"\xFF\"}"),
        DecodeError::NotUtf8 { offset: 9 }
    );
    assert_eq!(
        error(b"Accepted"),
        DecodeError::Syntax {
            offset: 0,
            what: "expected value".into()
        }
    );
    assert_eq!(
        error(b"{\"id\":1,\n\"x\":}"),
        DecodeError::Syntax {
            offset: 13,
            what: "expected value".into()
        }
    );
    assert_eq!(
        error(b"[{\"id\":1,}]"),
        DecodeError::Syntax {
            offset: 9,
            what: "key must be a string".into()
        }
    );
    assert_eq!(
        error(b"{} {}"),
        DecodeError::Syntax {
            offset: 3,
            what: "trailing characters".into()
        }
    );
    assert!(matches!(
        error(b"{\"id\":1"),
        DecodeError::Syntax { offset: 7, .. }
    ));
    assert!(matches!(error(b""), DecodeError::Syntax { offset: 0, .. }));
    for scalar in ["1", "\"a\"", " null ", "true"] {
        assert_eq!(
            error(scalar.as_bytes()),
            DecodeError::NotAnObject,
            "{scalar}"
        );
    }
}

#[test]
fn depth_costs_length_only() {
    let depth = 1_000_000;
    let open = "[".repeat(depth);
    assert!(matches!(
        rpc::parse(open.as_bytes()),
        Err(DecodeError::Syntax { .. })
    ));
    let batch = format!("{open}{}", "]".repeat(depth));
    assert_eq!(kinds(&batch), [Kind::Invalid]);
    let call = format!(
        r#"{{"id":1,"method":"a","params":{}{}}}"#,
        "{\"a\":[".repeat(depth),
        "]}".repeat(depth)
    );
    assert_eq!(kinds(&call), [Kind::Request]);
}

#[test]
fn error_facts_take_what_is_there() {
    let facts = |text: &str| ErrorFacts::of(&RawValue::from_string(text.into()).unwrap());
    assert_eq!(
        facts(r#"{"code":-32602,"message":"Unknown tool: \u0022x\u0022","data":{"code":1}}"#),
        ErrorFacts {
            code: Some(-32602),
            message: Some("Unknown tool: \"x\"".into())
        }
    );
    assert_eq!(facts(r#"{"code":"-1","message":7}"#), ErrorFacts::default());
    assert_eq!(facts(r#"{"code":1,"code":2}"#).code, Some(2));
    for text in ["null", "[]", "\"text\"", "{}", r#"{"code":1e99}"#] {
        assert_eq!(facts(text), ErrorFacts::default(), "{text}");
    }
}

#[test]
fn missing_is_the_default() {
    assert_eq!(IdField::default(), IdField::Missing);
}
