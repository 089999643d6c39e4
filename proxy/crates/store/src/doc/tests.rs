use proptest::prelude::*;

use super::fields::{put_number, zigzag};
use super::*;

#[test]
fn an_unknown_field_of_a_newer_version_is_passed_over() {
    let mut out = Vec::new();
    let mut fields = Fields(&mut out);
    fields.bytes(120, b"news");
    fields.number(121, 7);
    fields.bytes(tag::KIND, b"notification");
    let mut message = bare_message();
    get_message(&out, &mut message).unwrap();
    assert_eq!(message.kind, "notification");
}

#[test]
fn damage_is_an_error_with_words() {
    let read = |doc: &[u8]| get_message(doc, &mut bare_message());
    assert_eq!(read(&[tag::KIND << 1 | 1, 5, b'a']), Err("ends early"));
    assert_eq!(
        read(&[tag::KIND << 1 | 1, 1, 0xff]),
        Err("text is not UTF-8")
    );
    assert_eq!(
        read(&[tag::BODY << 1 | 1, 1, b'{']),
        Err("recorded JSON is not JSON")
    );
    assert_eq!(
        read(&[tag::DIRECTION << 1, 9]),
        Err("a number stands for nothing known here")
    );
    assert_eq!(read(&[tag::AT << 1, 0xff]), Err("ends early"));
}

fn bare_message() -> Message {
    let session = crate::record::Session {
        id: Uuid::nil(),
        source: crate::record::SessionSource::Inferred,
        key: [0; 16],
        upstream: String::new(),
        principal: None,
        tenant: None,
        asserted: false,
        client: None,
        protocol_version: None,
        started_at: 0,
    };
    Message {
        id: Uuid::nil(),
        exchange_id: Uuid::nil(),
        session: std::sync::Arc::new(session),
        direction: crate::record::Direction::ClientToServer,
        kind: String::new(),
        method: None,
        jsonrpc_id: None,
        call: None,
        at: 0,
        http_status: None,
        body: None,
        flags: Vec::new(),
    }
}

proptest! {
    /// Numbers come back, signed ones too.
    #[test]
    fn numbers_round_trip(value in any::<i64>()) {
        let mut out = Vec::new();
        put_number(&mut out, zigzag(value));
        prop_assert_eq!(Input(&out).number().map(unzigzag), Ok(value));
    }

    /// Garbage never panics.
    #[test]
    fn garbage_does_not_panic(doc in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(get_message(&doc, &mut bare_message()).is_ok() || !doc.is_empty());
    }
}
