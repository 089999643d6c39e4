//! The laws that the fuzz targets check, apart from the fuzzer, so that ordinary tests can replay the seeds.

#![allow(clippy::unwrap_used, reason = "a law that does not hold is a failure")]

use callbox_wire::coding::ContentDecoder;
use callbox_wire::collect::Collector;
use callbox_wire::json::{each_member, string_text};
use callbox_wire::rpc::{self, Body, IdField};
use callbox_wire::sse::{Decoder, SseEvent};

/// Events do not depend on the split, and data stays under the cap.
pub(crate) fn sse_decode(input: &[u8]) {
    const CAP: usize = 64;
    let [length, stream @ ..] = input else { return };
    let read = |length: usize| {
        let mut decoder = Decoder::new(CAP);
        let mut events: Vec<SseEvent> = Vec::new();
        for piece in stream.chunks(length.max(1)) {
            decoder.push(piece, &mut |event| events.push(event));
        }
        (events, decoder.comments(), decoder.finish())
    };
    let whole = read(stream.len());
    assert_eq!(read(usize::from(length & 0x1F)), whole);
    for event in whole.0 {
        assert!(event.data.text.len() <= CAP);
        assert_eq!(event.data.overflow.is_some(), event.data.bytes > CAP as u64);
        assert!(
            event
                .event
                .is_none_or(|event| event.len() <= 3 * Decoder::MAX_FIELD_BYTES)
        );
    }
}

/// Parsing any bytes ends, and an outline says what a parse says.
pub(crate) fn jsonrpc_parse(input: &[u8]) {
    let mut collector = Collector::new(0);
    for piece in input.chunks(3) {
        collector.push(piece);
    }
    let outline = collector.finish().overflow.map(|overflow| overflow.outline);
    let Ok(body) = rpc::parse(input) else { return };
    let outline = outline.unwrap();
    assert!(outline.complete);
    assert_eq!(outline.is_array, matches!(body, Body::Batch(_)));
    let Body::One(message) = body else { return };
    if input.len() > callbox_wire::collect::Outline::MAX_VALUE_BYTES {
        return;
    }
    match (&outline.id, &message.id) {
        (IdField::Invalid(_), IdField::Invalid(_)) => {}
        (outlined, parsed) => assert_eq!(outlined, parsed),
    }
    assert_eq!(outline.method.as_deref(), message.method.as_deref());
    assert_eq!(outline.has_result, message.result.is_some());
    assert_eq!(outline.has_error, message.error.is_some());
    let member = |object: Option<&serde_json::value::RawValue>, wanted: &str| {
        let mut text = None;
        let members = object.map(|object| {
            each_member(object.get(), &mut |name, value| {
                if name == wanted {
                    text = Some(value.get().to_owned());
                }
            })
        });
        text.filter(|_| matches!(members, Some(Ok(()))))
    };
    let text = |raw: Option<String>| {
        raw.and_then(|raw| string_text(&raw).map(std::borrow::Cow::into_owned))
    };
    assert_eq!(outline.tool, text(member(message.params, "name")));
    assert_eq!(
        outline.result_type,
        text(member(message.result, "resultType"))
    );
    assert_eq!(
        outline.is_error,
        member(message.result, "isError").as_deref() == Some("true")
    );
}

/// Output stays under the limit or is earned by input, and an error is final.
pub(crate) fn coding_decode(input: &[u8]) {
    const LIMIT: u64 = 1 << 16;
    let [coding, length, body @ ..] = input else {
        return;
    };
    let coding = match coding {
        b'g' => "gzip",
        b'd' => "deflate",
        b'b' => "br",
        b'z' => "zstd",
        b'2' => "gzip, br",
        _ => return,
    };
    let mut decoder = ContentDecoder::for_header(Some(coding), LIMIT).unwrap();
    let mut given = 0;
    let mut outcome = Ok(());
    for piece in body.chunks(usize::from(length & 0x1F).max(1)) {
        outcome = decoder.push(piece, &mut |bytes| given += bytes.len() as u64);
        if outcome.is_err() {
            break;
        }
    }
    // Each coding over another may earn in turn.
    let earned = if coding.contains(',') {
        101 * LIMIT
    } else {
        101 * body.len() as u64
    };
    assert!(given <= LIMIT.max(earned));
    if outcome.is_err() {
        assert_eq!(decoder.push(body, &mut |_| panic!("stopped")), outcome);
        assert_eq!(decoder.finish(&mut |_| panic!("stopped")), outcome);
    }
}
