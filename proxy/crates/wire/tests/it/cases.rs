//! Faults that neighbours had, as far as this crate could have them; the names are those of the catalogue of cases.

use std::collections::HashMap;

use callbox_wire::coding::{CodingError, ContentDecoder};
use callbox_wire::rpc::{self, IdField, Kind, Message, RequestId};

use crate::coding::{decode, gzip};
use crate::sse::events;

fn one(text: &str) -> Message<'_> {
    match rpc::parse(text.as_bytes()).unwrap() {
        rpc::Body::One(message) => message,
        rpc::Body::Batch(_) => panic!("a batch"),
    }
}

#[test]
fn b03_character_cut_at_a_chunk_border() {
    let stream = "data: {\"text\":\"그나那라\"}\n\n".as_bytes();
    let cut = stream.iter().position(|byte| *byte == 0xE9).unwrap() + 1;
    let (first, second) = stream.split_at(cut);
    let events = events(&[first, second]);
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].data.text, "{\"text\":\"그나那라\"}".as_bytes());
}

#[test]
fn b04_every_kind_of_event_end() {
    let events = events(&[b"data: 1\r\n\r\ndata: 2\r\rdata: 3\n\n"]);
    let data: Vec<&[u8]> = events
        .iter()
        .map(|event| event.data.text.as_slice())
        .collect();
    assert_eq!(data, [b"1", b"2", b"3"]);
}

#[test]
fn b05_data_lines_are_joined_by_a_newline() {
    let events = events(&[b"data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":1,\"result\":{}}\n\n"]);
    assert_eq!(events.len(), 1);
    assert_eq!(
        events[0].data.text,
        b"{\"jsonrpc\":\"2.0\",\n\"id\":1,\"result\":{}}"
    );
    let body = rpc::parse(&events[0].data.text).unwrap();
    assert_eq!(body.messages().len(), 1);
    assert_eq!(body.messages()[0].kind, Kind::Response);
}

#[test]
fn b08_gzip_answer_is_read_from_the_copy() {
    let answer = br#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#;
    let text = decode(Some("gzip"), &[&gzip(answer)]).unwrap();
    assert_eq!(text, answer);
}

#[test]
fn b09_what_cannot_be_decoded_is_an_error_that_names_it() {
    let unknown = ContentDecoder::for_header(Some("gzip, compress"), 1 << 20).unwrap_err();
    assert_eq!(unknown.coding, "compress");
    let mut broken = gzip(b"{}");
    broken[15] ^= 0xFF;
    let error = decode(Some("gzip"), &[&broken]).unwrap_err();
    assert!(
        matches!(error, CodingError::Corrupt { coding: "gzip", .. }),
        "{error}"
    );
    let raw = decode(Some("gzip"), &[br#"{"jsonrpc":"2.0"}"#]).unwrap_err();
    assert!(
        matches!(raw, CodingError::Corrupt { coding: "gzip", .. }),
        "{raw}"
    );
}

#[test]
fn b25_string_ids_stay_strings() {
    let message = one(r#"{"jsonrpc":"2.0","id":"init-a1","method":"initialize"}"#);
    let id = message.id.id().unwrap();
    assert!(matches!(id, RequestId::String(text) if text.text() == "init-a1"));
    assert_eq!(id.as_raw_json(), r#""init-a1""#);

    let ids = ["1", "\"1\"", "\"\\u0031\""].map(|raw| RequestId::from_raw_json(raw).unwrap());
    let [number, string, escaped] = &ids;
    assert_ne!(number, string);
    assert_eq!(string, escaped, "the same text, spelled otherwise");
    assert_eq!(escaped.as_raw_json(), "\"\\u0031\"");
    let open = HashMap::from([(number, 'n'), (string, 's')]);
    assert_eq!((open[number], open[escaped]), ('n', 's'));
}

#[test]
fn b26_digits_beyond_a_double_are_kept() {
    let answer = one(r#"{"jsonrpc":"2.0","id":9007199254740993,"result":{"id":9007199254740993}}"#);
    assert_eq!(answer.id.id().unwrap().as_raw_json(), "9007199254740993");
    assert_eq!(answer.result.unwrap().get(), r#"{"id":9007199254740993}"#);
    let call = one(
        r#"{"jsonrpc":"2.0","id":1e400,"method":"tools/call","params":{"arguments":{"x":1e400}}}"#,
    );
    assert_eq!(call.kind, Kind::Request);
    assert_eq!(call.id.id().unwrap().as_raw_json(), "1e400");
    assert_eq!(call.params.unwrap().get(), r#"{"arguments":{"x":1e400}}"#);

    let [asked, rounded] =
        ["9007199254740993", "9007199254740992"].map(|raw| RequestId::from_raw_json(raw).unwrap());
    assert_ne!(asked, rounded);
    assert!(
        asked.resembles(&rounded),
        "what a peer that rounds makes of it is recognised"
    );
}

#[test]
fn b27_number_spelling_is_kept() {
    let call = one(
        r#"{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"arguments":{"n":1.0,"m":1}}}"#,
    );
    assert_eq!(call.id.id().unwrap().as_raw_json(), "0");
    assert_eq!(
        call.params.unwrap().get(),
        r#"{"arguments":{"n":1.0,"m":1}}"#
    );
    let [zero, float, string] =
        ["0", "0.0", "\"0\""].map(|raw| RequestId::from_raw_json(raw).unwrap());
    assert_ne!(zero, float);
    assert!(zero.resembles(&float) && zero.resembles(&string) && float.resembles(&string));
}

#[test]
fn b28_null_id_is_not_a_missing_id() {
    let null = one(r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#);
    assert_eq!((null.kind, &null.id), (Kind::Request, &IdField::Null));
    assert!(null.id.id().is_none(), "nothing to pair with");
    let notification = one(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!(
        (notification.kind, &notification.id),
        (Kind::Notification, &IdField::Missing)
    );
}

#[test]
fn b34_text_is_not_escaped_again() {
    let raw = r#"{"content":[{"type":"text","text":"<a href=\"x\">&\u003c/"}]}"#;
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{raw}}}"#);
    assert_eq!(one(&text).result.unwrap().get(), raw);
    let events = events(&[format!("data: {text}\n\n").as_bytes()]);
    assert_eq!(events[0].data.text, text.as_bytes());
}
