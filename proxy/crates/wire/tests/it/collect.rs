//! Messages up to the cap, and beyond it.

use callbox_wire::collect::{Collector, Outline};
use callbox_wire::rpc::{IdField, RequestId};
use sha2::{Digest, Sha256};

fn outline(text: &str) -> Outline {
    let mut collector = Collector::new(0);
    collector.push(text.as_bytes());
    let whole = collector.finish().overflow.unwrap().outline;
    for byte in text.as_bytes() {
        collector.push(std::slice::from_ref(byte));
    }
    assert_eq!(
        collector.finish().overflow.unwrap().outline,
        whole,
        "byte by byte: {text}"
    );
    whole
}

fn id(raw: &str) -> IdField {
    IdField::Id(RequestId::from_raw_json(raw).unwrap())
}

#[test]
fn up_to_the_cap_nothing_is_lost() {
    let mut collector = Collector::new(10);
    for text in ["", "12345", "1234567890"] {
        for byte in text.as_bytes() {
            collector.push(std::slice::from_ref(byte));
        }
        let collected = collector.finish();
        assert_eq!(
            (
                collected.text.as_slice(),
                collected.bytes,
                collected.overflow
            ),
            (text.as_bytes(), text.len() as u64, None)
        );
    }
}

#[test]
fn beyond_the_cap_the_first_bytes_stay_and_the_whole_is_hashed() {
    let mut collector = Collector::new(10);
    for _ in 0..2 {
        collector.push(b"123456");
        assert_eq!(collector.bytes(), 6);
        collector.push(b"789012");
        collector.push(b"3");
        let collected = collector.finish();
        assert_eq!(
            (collected.text.as_slice(), collected.bytes),
            (b"1234567890".as_slice(), 13)
        );
        let hash: [u8; 32] = Sha256::digest(b"1234567890123").into();
        assert_eq!(collected.overflow.unwrap().sha256, hash);
    }
}

#[test]
fn memory_stays_under_the_cap() {
    let mut collector = Collector::new(1000);
    for _ in 0..200 {
        collector.push(&[b'x'; 7]);
    }
    assert!(collector.finish().text.capacity() <= 1000);
}

#[test]
fn an_id_after_a_long_result_is_found() {
    let mut collector = Collector::new(1 << 16);
    collector.push(br#"{"result":{"content":[{"type":"text","text":""#);
    for _ in 0..1000 {
        collector.push(&[b'a'; 9000]);
        collector.push(br#"\"}{ \\ \"id\":9 \u007d"#);
    }
    collector.push(br#""}],"isError":true,"resultType":"complete"},"jsonrpc":"2.0","id":"last"}"#);
    let collected = collector.finish();
    assert_eq!(collected.text.len(), 1 << 16);
    assert!(collected.bytes > 9_000_000);
    let outline = collected.overflow.unwrap().outline;
    assert_eq!(outline.id, id("\"last\""));
    assert!(
        outline.complete
            && outline.has_result
            && outline.is_error
            && !outline.has_error
            && !outline.is_array
    );
    assert_eq!(outline.result_type.as_deref(), Some("complete"));
}

#[test]
fn a_long_call_tells_its_tool() {
    let outline = outline(
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"arguments":{"name":"no","id":5},"name":"s\u0065arch"},"id":17}"#,
    );
    assert_eq!(
        (outline.method.as_deref(), outline.tool.as_deref()),
        (Some("tools/call"), Some("search"))
    );
    assert_eq!(outline.id, id("17"));
    assert!(!outline.has_result && !outline.has_error && outline.complete);
}

#[test]
fn only_members_in_their_place_count() {
    let outline = outline(
        r#"{"x":{"id":1,"method":"m","result":{"isError":true}},"params":[{"name":"t"}],"result":[{"isError":true}],"error":{"id":2}}"#,
    );
    assert_eq!(outline.id, IdField::Missing);
    assert_eq!(
        (outline.method, outline.tool, outline.is_error),
        (None, None, false)
    );
    assert!(outline.has_result && outline.has_error && outline.complete);
}

#[test]
fn repeated_members_forget_the_earlier() {
    let outline = outline(
        r#"{"id":1,"id":null,"method":"a","method":7,"params":{"name":"a"},"params":{},"result":{"isError":true,"resultType":"x"},"result":{"isError":false}}"#,
    );
    assert_eq!(outline.id, IdField::Null);
    assert_eq!(
        (
            outline.method,
            outline.tool,
            outline.result_type,
            outline.is_error
        ),
        (None, None, None, false)
    );
}

#[test]
fn a_later_value_of_another_type_forgets_too() {
    let outline = outline(
        r#"{"params":{"name":"a"},"params":[1],"result":{"isError":true,"resultType":"x"},"result":7}"#,
    );
    assert_eq!((outline.tool, outline.result_type), (None, None));
    assert!(outline.has_result && !outline.is_error);
}

#[test]
fn names_may_be_escaped_throughout() {
    let escaped = "resultType"
        .bytes()
        .map(|byte| format!("\\u{byte:04x}"))
        .collect::<Vec<_>>()
        .concat();
    let outline = outline(&format!(r#"{{"result":{{"{escaped}":"complete"}}}}"#));
    assert_eq!(outline.result_type.as_deref(), Some("complete"));
}

#[test]
fn a_null_error_next_to_a_result_is_none() {
    assert!(!outline(r#"{"error":null,"result":1}"#).has_error);
    assert!(outline(r#"{"error":null}"#).has_error);
    assert!(outline(r#"{"error":null,"error":{},"result":1}"#).has_error);
}

#[test]
fn batches_are_named_and_not_read() {
    let batch = outline(r#" [{"id":1,"method":"a"},{"id":"]"}] "#);
    assert!(batch.is_array && batch.complete);
    assert_eq!((batch.id, batch.method), (IdField::Missing, None));
}

#[test]
fn what_is_not_whole_is_not_complete() {
    for text in [
        "",
        "{",
        r#"{"id":1"#,
        r#"{"id":1}}"#,
        r#"{"id":1} x"#,
        "[",
        "[]]",
        "12",
        "\"a\"",
        "{,}",
        r#"{"a" 1}"#,
        r#"{"a":1,}"#,
        "[{}",
    ] {
        let mut collector = Collector::new(0);
        collector.push(text.as_bytes());
        assert!(
            collector
                .finish()
                .overflow
                .is_none_or(|overflow| !overflow.outline.complete),
            "{text}"
        );
    }
    assert_eq!(
        outline(r#"{"id":1,"method":"a","params":{"name":"t","#)
            .tool
            .as_deref(),
        Some("t")
    );
    assert_eq!(
        outline(r#"{"id":1}}"#).id,
        id("1"),
        "known before the fault"
    );
}

#[test]
fn long_names_and_ids_do_not_grow() {
    let long = "x".repeat(Outline::MAX_VALUE_BYTES);
    let outline = outline(&format!(
        r#"{{"{long}":1,"id":"{long}","method":"{long}","params":{{"name":"{long}"}}}}"#
    ));
    assert_eq!(outline.id, IdField::Invalid("".into()));
    assert_eq!(
        (outline.method, outline.tool, outline.complete),
        (None, None, true)
    );
}

#[test]
fn depth_is_only_counted() {
    let deep = format!(
        r#"{{"params":{}{},"id":1}}"#,
        "[{\"a\":".repeat(100_000),
        "}]".repeat(100_000)
    );
    let mut collector = Collector::new(10);
    collector.push(deep.as_bytes());
    let outline = collector.finish().overflow.unwrap().outline;
    assert_eq!((outline.id, outline.complete), (id("1"), true));
}

#[test]
fn a_message_can_be_cut_short_of_the_cap_and_the_next_one_is_whole() {
    let mut collector = Collector::new(100);
    collector.push(br#"{"id":1,"#);
    collector.keep_no_more();
    collector.push(br#""result":{"isError":true}}"#);
    assert_eq!(collector.held(), 8);
    let cut = collector.finish();
    assert_eq!((cut.text.as_slice(), cut.bytes), (&br#"{"id":1,"#[..], 34));
    assert!(cut.overflow.unwrap().outline.is_error);
    collector.push(br#"{"id":2}"#);
    assert_eq!(collector.finish().overflow, None);
}
